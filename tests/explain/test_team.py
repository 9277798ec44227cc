"""Where each unit of a team's quota came from, and its share of the rest."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from taskgov.policy.document import PolicyDocument
from taskgov.violations import Violation
from taskgov_explain.find import UnknownNameError
from taskgov_explain.team import TeamExplanation, explain_team
from tests.allocation.world import P5, document, fixed, nodes, row, snapshot
from tests.support.golden import assert_golden
from tests.support.lab import G5, Lab
from tests.support.memory import CLUSTER_ARN

GOLDEN = Path(__file__).parent / "golden"


def governed(*, nodes: int = 10, **sections: Any) -> Lab:
    """Team A has a fixed promise, team B a share; A borrows one of B's."""
    lab = Lab().team("team-a", 4).team("team-b", 4).team("shared-pool", 2, strategy="Lend", weight=0).machines(nodes)
    lab.policy = PolicyDocument.model_validate(
        {
            "apiVersion": "taskgov/v1",
            "cluster": {"name": "ml-cluster", "arn": CLUSTER_ARN},
            "teams": [
                {"name": "team-a", "tier": 2, "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 4}]}},
                {"name": "team-b", "share": [{"instanceType": G5, "percent": 40, "floor": 2}]},
            ],
            "sharedPool": {"team": "shared-pool"},
            **sections,
        }
    )
    return lab.submit("team-a", "a-own", pods=5).submit("team-b", "b-own", pods=2)


def test_each_unit_of_a_row_has_a_sentence_with_its_own_numbers() -> None:
    lease = {
        "to": "team-a",
        "from": "shared-pool",
        "instanceType": P5,
        "count": 2,
        "unit": "accelerators",
        "start": "2026-11-20T09:00Z",
        "end": "2026-11-21T09:00Z",
        "reason": "deadline",
    }
    policy = document(fixed("team-a", row(P5, Count=1)), leases=[lease])
    told = [line.because.partition(",")[0] for line in explain_team(snapshot(policy, nodes(4, P5)), "team-a").quotas]
    assert told == [
        f"team-a 0 -> {number} {P5}: guaranteed 1" for number in ("10 Accelerators", "240 VCpu", "2560 MemoryInGiB")
    ]


def sources(answer: TeamExplanation) -> list[tuple[float, str]]:
    return [(each.amount, each.origin) for line in answer.quotas for each in line.sources]


def test_a_fixed_promise_is_the_documents() -> None:
    answer = explain_team(governed().snapshot(), "team-a")
    assert sources(answer) == [(4, "guaranteed by the document")]
    assert answer.governed == "The document guarantees it a fixed quota (tier 2)."


def test_a_share_is_a_part_of_what_is_usable() -> None:
    assert sources(explain_team(governed().snapshot(), "team-b")) == [(4, "40 % of 10 usable")]


def test_the_pool_takes_what_the_others_leave() -> None:
    answer = explain_team(governed().snapshot(), "shared-pool")
    assert sources(answer) == [(2, "remainder of capacity 10 ml.g5.8xlarge")]


def test_leases_move_units_and_say_until_when() -> None:
    lease = {
        "to": "team-a",
        "from": "team-b",
        "instanceType": G5,
        "count": 1,
        "start": "2026-11-20T09:00:00Z",
        "end": "2026-11-27T18:00:00Z",
        "reason": "paper deadline",
    }
    snapshot = governed(leases=[lease]).snapshot()
    to, of = (sources(explain_team(snapshot, team)) for team in ("team-a", "team-b"))
    assert to[1] == (1, "1 leased from team-b until 2026-11-27 18:00 UTC (paper deadline)")
    assert of[1] == (-1, "1 leased to team-a until 2026-11-27 18:00 UTC (paper deadline)")


def test_a_shortage_is_what_was_taken() -> None:
    answer = explain_team(governed(nodes=5).snapshot(), "team-a")
    assert sources(answer)[0] == (4, "guaranteed by the document")
    assert sources(answer)[1] == (-1, "capacity 5 ml.g5.8xlarge, guarantees of 6, 5 to give, tier 2 gives")


@pytest.mark.parametrize("team", ["team-a", "team-b", "shared-pool"])
@pytest.mark.parametrize("nodes", [3, 6, 10, 14])
def test_the_sources_of_a_number_add_up_to_it(team: str, nodes: int) -> None:
    for line in explain_team(governed(nodes=nodes).snapshot(), team).quotas:
        assert sum(each.amount for each in line.sources) == pytest.approx(line.after)


def test_use_loans_and_entitlement_are_one_sentence() -> None:
    [share] = explain_team(governed().snapshot(), "team-a").shares
    assert share.because.startswith("team-a uses 5 GPUs with a quota of 4, borrows 1 from ")
    assert (share.borrowed, share.guaranteed, share.used) == (1, 4, 5)


def test_without_a_document_todays_quota_is_the_promise() -> None:
    lab = Lab().team("team-a", 4).machines(4)
    answer = explain_team(lab.snapshot(), "team-a")
    assert answer.governed.startswith("There is no policy document")
    assert sources(answer) == [(4, "left as it is: there is no policy document")]


def test_with_a_document_that_breaks_rules_it_is_too_and_the_reason_says_so() -> None:
    broken = (Violation("teams[0].name", '"Team A"', "must be lower-case"),)
    answer = explain_team(replace(Lab().team("team-a", 4).machines(4).snapshot(), policy_violations=broken), "team-a")
    assert answer.governed.startswith("The policy document breaks rules: ")
    assert sources(answer) == [(4, "left as it is: the policy document breaks rules")]


def test_an_unknown_team_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"there is no team named team-aa; did you mean team-a"):
        explain_team(governed().snapshot(), "team-aa")


def test_a_whole_answer_is_kept_as_a_golden_file() -> None:
    text = to_json(explain_team(governed(nodes=5).snapshot(), "team-a"), indent=2).decode() + "\n"
    assert_golden(GOLDEN / "team-a.json", text)


def test_a_frozen_team_and_one_that_is_not_in_the_document_are_left_as_they_are() -> None:
    frozen = explain_team(governed(guardrails={"freeze": ["team-a"]}).snapshot(), "team-a")
    assert frozen.governed.startswith("The document freezes it")
    assert [each.code for each in frozen.findings] == ["team-frozen"]
    lab = Lab().team("newcomer", 1).machines(1)
    lab.policy = governed().policy
    answer = explain_team(lab.snapshot(), "newcomer")
    assert answer.governed.startswith("It is not in the policy document")
    assert sources(answer) == [(1, "left as it is: it is not in the policy document")]


def test_what_waits_is_counted() -> None:
    answer = explain_team(governed().submit("team-b", "waits", pods=30).snapshot(), "team-b")
    assert answer.pending == "1 workload waits for 30 accelerators, the oldest since 2026-11-20 11:00."


def test_a_lender_is_shown_to_whom_it_lends() -> None:
    lab = Lab(fair_share=False).team("team-a", 2).team("team-b", 2).machines(4).submit("team-a", "own", pods=3)
    [share] = explain_team(lab.snapshot(), "team-b").shares
    assert share.because == "team-b uses 0 GPUs with a quota of 2, lends 1 to team-a."
