"""Limits judge each quota by its own past, and quotas of one name apart."""

from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation.applied_record import MOST_WEIGHT, WEIGHT_OF_ONE
from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.plan import Outcome
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.model import ComputeQuota
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import PastQuota
from tests.allocation.limits_world import HOUR, failed, record, stopped_by
from tests.allocation.world import NOW, document, fixed, nodes, quota, row, snapshot


def known_as(quota_id: str, team: str, count: int, **fields: Any) -> ComputeQuota:
    return quota(team, row(Count=count), **fields).model_copy(update={"compute_quota_id": quota_id})


def two_of_a_team(**guardrails: Any) -> Snapshot:
    """Team-a's first quota falls from 8 to 6; nothing is known of its past. The second is left alone."""
    first, second = known_as("first", "team-a", 8, name="a-quota"), known_as("second", "team-a", 1, name="b-quota")
    policy = document(fixed("team-a", row(Count=6)), guardrails=guardrails, pool=False)
    return snapshot(policy, nodes(20), [first, second])


def test_a_low_write_of_another_quota_is_not_where_a_quota_began() -> None:
    world = two_of_a_team(maxDecreasePercent=10)
    began = quota("team-a", row(Count=6)).compute_quota_config
    other = replace(record(world.quotas[1], began_from=began), version=world.quotas[0].compute_quota_version)
    assert stopped_by(replace(world, applied=(other,))) == ["max-decrease"]


def test_what_another_quota_was_is_not_a_quotas_past() -> None:
    world = two_of_a_team(maxDecreasePerPeriod={"percent": 30, "hours": 24})
    past = (PastQuota(NOW - HOUR, quota("team-a", row(Count=16)).compute_quota_config),)
    other = record(world.quotas[1], history=past)
    assert stopped_by(replace(world, applied=(other,))) == []


@pytest.mark.parametrize(("hours", "stopped"), [(24, []), (48, ["max-decrease-per-period"])])
def test_a_past_that_was_cut_stops_what_reaches_further_back(hours: int, stopped: list[str]) -> None:
    world = two_of_a_team(maxDecreasePerPeriod={"percent": 30, "hours": hours})
    config = quota("team-a", row(Count=8)).compute_quota_config
    many = MOST_WEIGHT // (WEIGHT_OF_ONE + 1)
    past = tuple(PastQuota(NOW - 30 * HOUR * (many - number) / many, config) for number in range(many))
    assert stopped_by(replace(world, applied=(record(world.quotas[0], history=past),))) == stopped
    assert stopped_by(replace(world, applied=(record(world.quotas[0], history=past[9:]),))) == []


def test_what_is_created_has_the_past_of_the_teams_quota_before_it() -> None:
    policy = document(
        fixed("team-a", row(Count=6)), guardrails={"maxIncreasePerPeriod": {"percent": 50, "hours": 24}}, pool=False
    )
    gone = known_as("gone", "team-a", 2)
    past = (PastQuota(NOW - HOUR, gone.compute_quota_config),)
    assert stopped_by(snapshot(policy, nodes(6), applied=(record(gone, history=past),))) == ["max-increase-per-period"]


def of_one_name(ant: int, bee: int, **guardrails: Any) -> Snapshot:
    """Two teams whose quotas have one name: 8 and 2 become `ant` and `bee`."""
    quotas = [known_as("one", "ant", 8, name="gpus"), known_as("two", "bee", 2, name="gpus")]
    policy = document(fixed("ant", row(Count=ant)), fixed("bee", row(Count=bee)), guardrails=guardrails, pool=False)
    return snapshot(policy, nodes(20), quotas)


def test_quotas_of_one_name_are_judged_apart() -> None:
    plan = plan_quotas(of_one_name(2, 8, maxDecreasePercent=50, approveAbove={"changedGpus": 5}), mode="apply")
    assert [verdict.guardrail for verdict in failed(plan)] == ["max-decrease", "approval"]
    assert {change.team: [each.passed for each in change.guardrails] for change in plan.changes} == {
        "ant": [False],
        "bee": [],
    }


def test_the_digest_of_the_changes_has_all_quotas_of_one_name() -> None:
    plan = plan_quotas(of_one_name(7, 6), mode="apply")
    less = quota("ant", row(Count=5)).compute_quota_config
    others = tuple(replace(each, after=less) if each.team == "ant" else each for each in plan.changes)
    assert changes_sha256(plan) != changes_sha256(replace(plan, changes=others))


def test_quotas_of_one_name_are_cut_back_apart() -> None:
    plan = plan_quotas(of_one_name(4, 8, maxDecreasePercent=25, onLimit="partial"), mode="apply")
    assert plan.outcome is Outcome.APPLY
    lines = {line.team: (line.before, line.after) for line in plan.allocations}
    assert lines == {"ant": (8, 6), "bee": (2, 8)}
