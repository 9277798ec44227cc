"""Suppose something: what the plan would be, who would start, wait or leave, now and over time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskgov.allocation import predict
from taskgov.allocation.plan import Change
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.played import PlayedPath
from taskgov.allocation.predict import LoopError, Player, Stage
from taskgov.kueue.named import named
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.model import Snapshot
from taskgov_explain import find, sides
from taskgov_explain.find import UnknownNameError
from taskgov_explain.quota_settings import QuotaSetting
from taskgov_explain.suppose import Hypothesis, suppose
from taskgov_explain.what_if import WhatIf, what_if
from tests.allocation.test_loops import weight_zero
from tests.support.lab import G5, P5, Lab, workload
from tests.support.memory import CLUSTER_ARN, NOON
from tests.support.plans import update


def asked(snapshot: Snapshot, **hypothesis: Any) -> WhatIf:
    return what_if(snapshot, suppose(snapshot, Hypothesis(**hypothesis)))


def two_teams() -> Lab:
    lab = Lab().team("team-a", 4, borrow=50).team("team-b", 4).machines(8)
    return lab.submit("team-a", "a-own", pods=4).submit("team-b", "b-own").submit("team-a", "a-more", pods=3, ago=30)


def governed(nodes: int = 8) -> Lab:
    lab = Lab().team("team-a", 4).team("team-b", 4).machines(nodes)
    lab.policy = PolicyDocument.model_validate(
        {
            "apiVersion": "taskgov/v1",
            "cluster": {"name": "ml-cluster", "arn": CLUSTER_ARN},
            "teams": [
                {"name": team, "tier": tier, "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 4}]}}
                for team, tier in (("team-a", 1), ("team-b", 2))
            ],
        }
    )
    return lab


def states(answer: WhatIf) -> dict[str, tuple[str, str, str]]:
    return {each.workload: (each.now, each.before, each.after) for each in answer.workloads}


def used(answer: WhatIf) -> dict[str, tuple[int, int]]:
    return {each.team: (each.before.used, each.after.used) for each in answer.teams}


def test_to_suppose_nothing_changes_nothing() -> None:
    answer = asked(two_teams().snapshot())
    assert not answer.plan.changes
    assert all(each.before == each.after for each in answer.teams)
    assert not any(each.differs for each in answer.workloads)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from(["team-a", "team-b"]), st.integers(1, 5)), max_size=5),
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_whatever_quotas_are_supposed_lent_is_borrowed_and_nobody_holds_what_he_was_not_given(
    jobs: list[tuple[str, int]], quotas: tuple[int, int]
) -> None:
    lab = Lab().team("team-a", 4, borrow=50).team("team-b", 4).machines(8)
    for number, (team, pods) in enumerate(jobs):
        lab.submit(team, f"job-{number}", pods=pods, ago=60 - number)
    chosen = tuple(QuotaSetting(team, G5, count) for team, count in zip(("team-a", "team-b"), quotas, strict=True))
    answer = asked(lab.snapshot(), quotas=chosen)
    for side in ([each.before for each in answer.teams], [each.after for each in answer.teams]):
        assert sum(each.lent for each in side) == sum(each.borrowed for each in side)
    running = sum(each.gpus for each in answer.workloads if each.after == "runs")
    assert sum(each.after.used for each in answer.teams) == running


def test_a_higher_quota_without_a_document_lets_waiting_work_start() -> None:
    answer = asked(two_teams().snapshot(), quotas=(QuotaSetting("team-a", G5, 6),))
    assert states(answer)["team-a/a-more"] == ("waits", "waits", "runs")
    assert used(answer)["team-a"] == (4, 7)


def test_with_a_document_a_quota_is_supposed_in_the_document_and_the_plan_writes_it() -> None:
    answer = asked(governed().snapshot(), quotas=(QuotaSetting("team-a", G5, 3),))
    [change] = answer.plan.changes
    assert (change.team, change.gpus_before, change.gpus_after) == ("team-a", 4, 3)


def test_nodes_that_are_lost_lower_quotas_by_tier_and_leave_admitted_work_without_machines() -> None:
    lab = governed().submit("team-b", "b-own", pods=4).submit("team-a", "a-own", pods=3)
    answer = asked(lab.snapshot(), lost_nodes={G5: 2})
    assert {each.team: each.gpus_after for each in answer.plan.changes} == {"team-b": 2}
    [short] = answer.shortfalls
    assert (short.held, short.offered) == (7, 6)
    assert {each.team: each.after.quota for each in answer.teams} == {"team-a": 4, "team-b": 2}


def test_nodes_that_join_count_at_once() -> None:
    answer = asked(governed(nodes=6).snapshot(), added_nodes={G5: 2})
    assert [each.usable for each in answer.plan.capacity] == [8]
    assert not asked(governed(nodes=8).snapshot(), added_nodes={G5: 2}).shortfalls


def test_submitted_work_that_takes_back_lent_quota_preempts_the_borrower() -> None:
    lab = Lab().team("team-a", 4).team("team-b", 4).machines(8).submit("team-a", "borrows", pods=6)
    new = workload("team-b", "urgent", 1, pods=4, created=NOON)
    answer = asked(lab.snapshot(), submitted=(new,))
    assert states(answer)["team-b/urgent"] == ("absent", "absent", "runs")
    [lost] = [each for each in answer.workloads if each.preempted_by]
    assert (lost.workload, lost.preempted_by, lost.because) == (
        "team-a/borrows",
        "team-b/urgent",
        "InCohortReclamation",
    )


def test_what_is_preempted_without_the_supposition_too_is_not_its_doing() -> None:
    lab = Lab().team("team-a", 4).team("team-b", 4).machines(8).submit("team-a", "borrows", pods=6)
    lab.put(workload("team-b", "owner", 1, pods=4, created=NOON))
    answer = asked(lab.snapshot(), submitted=(workload("team-b", "tiny", 9, created=NOON),))
    assert states(answer)["team-a/borrows"] == ("runs", "waits", "waits")
    assert not any(each.preempted_by for each in answer.workloads)


def test_who_does_not_run_now_waits_and_is_not_preempted() -> None:
    lab = Lab().team("team-a", 4).team("team-b", 4).machines(8)
    lab.put(workload("team-a", "borrows", 1, pods=6, created=NOON))
    lab.put(workload("team-b", "tiny", 1, created=NOON))
    new = workload("team-b", "owner", 1, pods=3, created=NOON + timedelta(seconds=1))
    answer = asked(lab.snapshot(), submitted=(new,))
    assert states(answer)["team-a/borrows"] == ("waits", "runs", "waits")
    assert not any(each.preempted_by for each in answer.workloads)


def test_a_weight_decides_who_borrows_what_is_left() -> None:
    lab = Lab().team("team-a", 1, borrow=500).team("team-b", 1, borrow=500).team("pool", 3, strategy="Lend").machines(5)
    lab.submit("team-a", "a-own").submit("team-b", "b-own", ago=59)
    lab.put(workload("team-a", "a-more", 1, pods=2, created=NOON - timedelta(minutes=20)))
    lab.put(workload("team-b", "b-more", 1, pods=2, created=NOON - timedelta(minutes=10)))
    snapshot = lab.snapshot()
    assert states(asked(snapshot))["team-a/a-more"][2] == "runs"
    answer = asked(snapshot, weights={"team-b": 90, "team-a": 1})
    assert (states(answer)["team-a/a-more"][2], states(answer)["team-b/b-more"][2]) == ("waits", "runs")


def test_a_workload_is_named_once_for_both_sides_and_their_risks(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, name = two_teams().snapshot(), Mock(side_effect=named)
    monkeypatch.setattr(find, "named", name)
    assert asked(snapshot, lost_nodes={G5: 1}).workloads
    assert name.call_count == len(snapshot.kueue.workloads)


def test_run_times_give_starts_and_ends_side_by_side() -> None:
    snapshot = two_teams().snapshot()
    keys = {f"team-a/{job}": f"hyperpod-ns-team-a/pytorchjob-{job}-a1b2c" for job in ("a-own", "a-more")}
    times = dict.fromkeys(keys.values(), timedelta(hours=3))
    answer = what_if(snapshot, suppose(snapshot, Hypothesis(quotas=(QuotaSetting("team-a", G5, 6),))), times)
    courses = {each.workload: each for each in answer.courses}
    more = courses["team-a/a-more"]
    assert more.starts_before == courses["team-a/a-own"].ends_before == NOON + timedelta(hours=2)
    assert (more.starts_after, more.ends_after) == (NOON, NOON + timedelta(hours=3))


def test_who_runs_on_loans_is_at_risk_from_every_lender() -> None:
    lab = Lab().team("team-a", 2, borrow=300).team("team-b", 3).machines(5).submit("team-a", "borrows", pods=4)
    [risk] = asked(lab.snapshot()).risks
    assert (risk.workload, risk.lender, risk.size, risk.unused) == ("team-a/borrows", "team-b", 2, 3)


def test_nobody_is_at_risk_within_the_own_quota() -> None:
    assert not asked(two_teams().snapshot()).risks


def test_the_snapshot_is_not_changed_and_the_answer_is_the_same_each_time() -> None:
    snapshot = two_teams().snapshot()
    twin = replace(snapshot)
    first, second = (asked(snapshot, lost_nodes={G5: 1}) for _ in range(2))
    assert (first, snapshot) == (second, twin)


@pytest.mark.parametrize(
    ("hypothesis", "said"),
    [
        ({"lost_nodes": {G5: 9}}, "9 ml.g5.8xlarge nodes cannot be lost: 8 are healthy"),
        ({"lost_nodes": {"ml.g5.9xlarge": 1}}, "did you mean ml.g5.8xlarge"),
        ({"quotas": (QuotaSetting("team-c", G5, 1),)}, "there is no team named team-c; did you mean team-"),
        ({"weights": {"nobody": 1}}, "there is no team named nobody; there are team-a, team-b"),
    ],
)
def test_what_is_not_there_cannot_be_supposed(hypothesis: dict[str, Any], said: str) -> None:
    with pytest.raises((UnknownNameError, ValueError), match=said):
        asked(two_teams().snapshot(), **hypothesis)


# The path of a plan


def mixed() -> Lab:
    """A full cluster on which the document moves GPUs one way and vCPUs the other."""
    lab = Lab(instance_type=P5).machines(1)
    held = {"team-a": {"Accelerators": 2, "VCpu": 96}, "team-b": {"Accelerators": 6, "VCpu": 96, "MemoryInGiB": 1024}}
    wanted = {
        "team-a": {"Accelerators": 4, "VCpu": 48},
        "team-b": {"Accelerators": 4, "VCpu": 144, "MemoryInGiB": 1024},
    }
    for team, amounts in held.items():
        lab.team(team, 0, ComputeQuotaConfig={"ComputeQuotaResources": [{"InstanceType": P5, **amounts}]})
    lab.policy = PolicyDocument.model_validate(
        {
            "apiVersion": "taskgov/v1",
            "cluster": {"name": "ml-cluster", "arn": CLUSTER_ARN},
            "teams": [
                {"name": team, "quota": {"ComputeQuotaResources": [{"InstanceType": P5, **amounts}]}}
                for team, amounts in wanted.items()
            ],
        }
    )
    return lab


def test_a_quota_that_is_written_twice_is_one_row_from_its_first_state_to_its_last() -> None:
    answer = asked(mixed().snapshot())
    rows = {each.team: each for each in answer.quotas}
    assert len(rows) == len(answer.quotas) == 2
    assert {team: (each.gpus_before, each.gpus_after) for team, each in rows.items()} == {
        "team-a": (2, 4),
        "team-b": (6, 4),
    }
    for low in [change for change in answer.plan.changes if change.is_low]:
        [last] = [change for change in answer.plan.changes if change.team == low.team and not change.is_low]
        assert rows[low.team].waves == (low.wave, last.wave)
        words = f"wave {low.wave} only lowers it, wave {last.wave} gives it the rest"
        assert rows[low.team].because.endswith(words)
    assert any(len(each.waves) == 2 for each in answer.quotas)


def test_a_quota_that_failed_is_one_row_that_says_how_it_is_recovered() -> None:
    lab = governed()
    failed = lab.quotas[0].model_copy(update={"status": "DeleteFailed"})
    answer = asked(replace(lab.snapshot(), quotas=(failed, lab.quotas[1])))
    [row] = answer.quotas
    assert (row.team, row.gpus_before, row.gpus_after) == ("team-a", 4, 4)
    assert row.because.endswith("wave 1 deletes it, wave 2 creates it again")
    assert {each.team: (each.before.quota, each.after.quota) for each in answer.teams}["team-a"] == (4, 4)


def test_queues_that_do_not_come_to_rest_within_the_budget_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "steps_for", lambda _model: 1)
    snapshot = two_teams().submit("team-b", "b-more", pods=6, ago=20).submit("team-b", "b-last", pods=7).snapshot()
    answer = asked(snapshot, quotas=(QuotaSetting("team-a", G5, 6),))
    assert answer.not_settled == (
        "the cluster as it is: not settled within 1 model steps",
        "the supposed cluster: not settled within 1 model steps",
    )
    assert not answer.loops


def test_a_plan_that_is_not_played_to_its_end_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "MODEL_STEPS", 1)
    monkeypatch.setattr(sides, "steps_for", lambda _model: 1)
    answer = asked(governed().submit("team-b", "b-own", pods=4).snapshot(), quotas=(QuotaSetting("team-a", G5, 3),))
    assert answer.plan.changes
    assert not answer.not_settled
    waiting = governed().submit("team-b", "b-own", pods=4).submit("team-b", "b-more", pods=8, ago=30)
    answer = asked(waiting.snapshot(), quotas=(QuotaSetting("team-a", G5, 3),))
    assert any("wave 1" in each or "the cluster as it is" in each for each in answer.not_settled)


def test_a_plan_whose_waves_never_settle_in_some_order_is_played_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def restless(*_: object) -> Stage:
        raise LoopError("workloads would preempt one another forever: a, b")

    monkeypatch.setattr(sides, "_reached", restless)
    answer = asked(governed().snapshot(), quotas=(QuotaSetting("team-a", G5, 3),))
    [said] = answer.not_settled
    assert said == "workloads would preempt one another forever: a, b; the plan was simulated as one write"
    assert {each.team: each.after.quota for each in answer.teams} == {"team-a": 3, "team-b": 4}


@pytest.mark.parametrize(("jobs", "loops"), [((), False), ((3, 2, 4), False), ((3,), True)])
def test_the_path_of_a_plan_is_played_once_and_what_if_says_the_same(
    monkeypatch: pytest.MonkeyPatch, jobs: tuple[int, ...], *, loops: bool
) -> None:
    lab = governed().submit("team-b", "b-own", pods=4).submit("team-a", "a-more", pods=6, ago=30)
    for number, pods in enumerate(jobs):
        lab.submit("team-b", f"job-{number}", pods=pods, ago=20 - number)
    played: list[int] = []
    after = Player.after

    def counted(
        player: Player, stage: Stage, wave: Sequence[Change], number: int, *, every_order: bool = True
    ) -> Stage:
        played.append(number)
        if loops:
            raise LoopError("workloads would preempt one another forever: a, b")
        return after(player, stage, wave, number, every_order=every_order)

    monkeypatch.setattr(Player, "after", counted)
    plan_quotas(suppose(lab.snapshot(), Hypothesis(lost_nodes={G5: 3})), mode="plan")
    of_plan = len(played)
    once = asked(lab.snapshot(), lost_nodes={G5: 3})
    assert 0 < of_plan == len(played) - of_plan
    monkeypatch.setattr(PlayedPath, "is_of", lambda *_: False)
    assert asked(lab.snapshot(), lost_nodes={G5: 3}) == once
    assert len(played) > 3 * of_plan


def test_a_path_in_another_order_is_another_path() -> None:
    ant, bee, cat = update(0, "ant", "a", 1, 2), update(1, "bee", "b", 2, 4), update(2, "cat", "c", 1, 2)
    changes = (replace(ant, wave=1), replace(bee, wave=1), replace(cat, wave=2))
    path = PlayedPath(((_bare(ant), _bare(bee)), (_bare(cat),)), 9, Stage(()))
    assert path.is_of(changes)
    assert path.is_of(replace(change, because="other words", index=7) for change in changes)
    assert not path.is_of((changes[1], changes[0], changes[2]))
    assert not path.is_of(changes[:2])
    assert not path.is_of(replace(change, wave=1) for change in changes)
    assert not path.is_of((*changes[:2], replace(changes[2], after=bee.after)))


def _bare(change: Change) -> Change:
    return replace(change, index=0, because="")


def test_a_supposition_that_the_scheduler_does_not_see_has_its_model_once() -> None:
    snapshot = governed().snapshot()
    assert suppose(snapshot, Hypothesis(lost_nodes={G5: 3})).kueue is snapshot.kueue


def test_a_loop_that_the_supposition_brings_about_is_named_with_what_ends_it() -> None:
    """Without its weight team-a's infinite share is taken from forever (`tests/allocation/test_loops.py`)."""
    assert asked(weight_zero(weight=10)).loop is None
    answer = asked(weight_zero(weight=10), weights={"team-a": 0})
    assert answer.loops == ("team-a/home", "team-a/late")
    assert answer.loop is not None
    assert answer.loop.workloads == ("team-a/home", "team-a/late")
    assert answer.loop.remedies[0].words == "FairShareWeight of team-a: 10"


def test_supposed_quotas_are_in_the_queues_on_which_the_plan_is_predicted() -> None:
    """Without a document nothing is planned; with one for team-b only, team-a's quota is supposed in itself."""
    lab = two_teams().machines(2)
    team = {"name": "team-b", "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 4}]}}
    cluster = {"name": "ml-cluster", "arn": CLUSTER_ARN}
    lab.policy = PolicyDocument.model_validate({"apiVersion": "taskgov/v1", "cluster": cluster, "teams": [team]})
    answer = asked(lab.snapshot(), quotas=(QuotaSetting("team-a", G5, 6),))
    assert {each.team: (each.before.quota, each.after.quota) for each in answer.teams} == {
        "team-a": (4, 6),
        "team-b": (4, 4),
    }
    assert states(answer)["team-a/a-more"] == ("waits", "waits", "runs")
