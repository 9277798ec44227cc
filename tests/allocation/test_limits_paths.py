"""Limits judge a quota by its path: where it began, what it is deleted with, and what changes hands."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from taskgov.allocation.exchange import Exchange, exchange
from taskgov.allocation.goals import Goal
from taskgov.allocation.plan import Outcome
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import PastQuota
from tests.allocation.limits_world import A100, HOUR, UNKNOWN, failed, mig, record, stopped_by
from tests.allocation.world import C5, G5, NOW, P5, config, document, fixed, nodes, quota, row, snapshot


def test_a_run_that_was_broken_off_after_its_low_write_is_judged_from_where_it_began() -> None:
    """8 GPUs and 96 vCPUs were to become 7 and 192; the low write stands, and the rest is no increase by half."""
    began = ComputeQuotaConfig.model_validate(config(row(P5, Accelerators=8, VCpu=160, MemoryInGiB=2048)))
    low = quota("team-a", row(P5, Accelerators=7, VCpu=100, MemoryInGiB=2048))
    policy = document(
        fixed("team-a", row(P5, Accelerators=7, VCpu=160, MemoryInGiB=2048)),
        guardrails={"maxIncreasePercent": 0, "maxIncreasePerPeriod": {"percent": 0, "hours": 24}},
        pool=False,
    )
    past = (PastQuota(NOW - HOUR, began),)
    way_back = snapshot(policy, nodes(2, P5), [low], applied=(record(low, hours=1, history=past, began_from=began),))
    assert stopped_by(way_back) == []
    edited = replace(way_back, applied=(replace(way_back.applied[0], version=0),))
    assert "max-increase" in stopped_by(edited)


def failing(status: str, **guardrails: Any) -> Snapshot:
    policy = document(fixed("team-a", row(P5, Count=2)), guardrails=guardrails, pool=False)
    return snapshot(policy, nodes(2, P5), [quota("team-a", row(P5, Count=2), status=status)])


def test_deleting_a_failed_quota_that_holds_something_is_a_decrease() -> None:
    assert stopped_by(failing("UpdateRollbackFailed", maxDecreasePercent=25)) == ["max-decrease"]
    assert stopped_by(failing("UpdateRollbackFailed", minimumQuota={"team-a": 1})) == ["minimum-quota"]
    without_nodes = replace(failing("UpdateRollbackFailed"), nodes=())
    assert stopped_by(without_nodes) == ["nodes-seen"]
    asks = plan_quotas(failing("UpdateRollbackFailed", approveAbove={"changedGpus": 15}), mode="apply")
    assert asks.outcome is Outcome.NEEDS_APPROVAL
    assert failed(asks)[0].because == "16 GPUs would change hands. More than 15 need approval."


def test_deleting_what_never_was_in_force_is_none() -> None:
    assert stopped_by(failing("CreateFailed", maxDecreasePercent=0, minimumQuota={"team-a": 1})) == []


def test_what_is_created_again_rises_from_what_the_failed_quota_held() -> None:
    world = failing("UpdateRollbackFailed", maxIncreasePercent=25)
    assert stopped_by(world) == []
    more = document(fixed("team-a", row(P5, Count=3)), guardrails={"maxIncreasePercent": 25}, pool=False)
    assert stopped_by(replace(world, policy=more, nodes=nodes(3, P5))) == ["max-increase"]


EXCHANGES: Mapping[str, tuple[list[ComputeQuota], list[Mapping[str, Any]], float]] = {
    "8 GPUs of one type for 8 of another": ([quota("a", row(P5, Count=1))], [fixed("a", row(G5, Count=8))], 8),
    "8 GPUs of a type from one team to another": (
        [quota("a", row(P5, Count=1)), quota("b", row(P5, Count=1))],
        [fixed("a", row(P5, Count=2)), fixed("b", row(P5, Count=0))],
        8,
    ),
    "what is given of one type and taken of two": (
        [quota("a", row(P5, Count=1))],
        [fixed("a", row(P5, Accelerators=4), row(G5, Count=8))],
        8,
    ),
    "MIG in sevenths": ([quota("a", mig("mig-1g.5gb", 7))], [fixed("a", mig("mig-7g.40gb", 1))], 0),
    "seven slices that nobody takes": ([quota("a", mig("mig-1g.5gb", 7))], [fixed("a", mig("mig-1g.5gb", 0))], 1),
}


@pytest.mark.parametrize(("quotas", "teams", "want"), EXCHANGES.values(), ids=EXCHANGES.keys())
def test_gpus_that_change_hands(quotas: list[ComputeQuota], teams: list[Mapping[str, Any]], want: float) -> None:
    def outcome(limit: int) -> Outcome:
        policy = document(*teams, guardrails={"approveAbove": {"changedGpus": limit}}, pool=False)
        everything = (*nodes(4, P5), *nodes(10), *nodes(2, A100))
        return plan_quotas(snapshot(policy, everything, quotas), mode="apply").outcome

    assert outcome(int(want)) is Outcome.APPLY
    if want:
        assert outcome(int(want) - 1) is Outcome.NEEDS_APPROVAL


def test_whole_instances_of_an_unknown_type_are_no_zero_gpus() -> None:
    before, after = (ComputeQuotaConfig.model_validate(config(row(UNKNOWN, Count=count))) for count in (8, 5))
    assert exchange([Goal("a-quota", "a", before, before, after)], {}) == Exchange(Fraction(0), (UNKNOWN,))
    named = ComputeQuotaConfig.model_validate(config(row(UNKNOWN, Count=8, Accelerators=3)))
    assert exchange([Goal("a-quota", "a", before, before, named)], {}) == Exchange(Fraction(3), (UNKNOWN,))


UNCOUNTED = {
    "instances become vCPUs": (row(UNKNOWN, VCpu=96), row(UNKNOWN, VCpu=48)),
    "memory falls": (row(UNKNOWN, VCpu=96, MemoryInGiB=512), row(UNKNOWN, VCpu=96, MemoryInGiB=1)),
    "named accelerators become whole instances": (row(UNKNOWN, Accelerators=1), row(UNKNOWN, Count=1)),
    "what an instance has is overruled": (row(UNKNOWN, Count=8), row(UNKNOWN, Count=8, Accelerators=1)),
}


@pytest.mark.parametrize("case", UNCOUNTED)
def test_whatever_moves_of_an_unknown_type_is_not_known_to_be_no_gpus(case: str) -> None:
    before, after = UNCOUNTED[case]
    plan = plan_quotas(unknown_type(before, after, approveAbove={"changedGpus": 500}), mode="apply")
    assert plan.outcome is Outcome.NEEDS_APPROVAL
    assert failed(plan)[0].because.endswith(f"How many {UNKNOWN} has is not known.")


def test_accelerators_that_rows_of_an_unknown_type_name_are_known() -> None:
    rows = row(UNKNOWN, Accelerators=4, VCpu=96), row(UNKNOWN, Accelerators=2, VCpu=48)
    plan = plan_quotas(unknown_type(*rows, approveAbove={"changedGpus": 2}, minimumQuota={"a": 2}), mode="apply")
    assert plan.outcome is Outcome.APPLY


@pytest.mark.parametrize(
    ("before", "after"), [(row(UNKNOWN, Count=8), row(UNKNOWN, Count=2)), UNCOUNTED["instances become vCPUs"]]
)
def test_a_minimum_says_no_when_an_unknown_type_falls(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    world = unknown_type(before, after, minimumQuota={"a": 1})
    [verdict] = failed(plan_quotas(world, mode="apply"))
    assert verdict.guardrail == "minimum-quota"
    assert verdict.because == (
        f"a would have 0 accelerators; its minimum is 1. How many {UNKNOWN} has is not known, and counts as none."
    )
    assert (
        verdict.remedy == f"add {UNKNOWN} to instanceTypes in the policy document, or lower guardrails.minimumQuota.a"
    )
    assert stopped_by(unknown_type(after, before, minimumQuota={"a": 1})) == []
    safe = quota("a", before, row(P5, Count=2))
    assert world.policy is not None
    promise = document(fixed("a", after, row(P5, Count=2)), guardrails={"minimumQuota": {"a": 16}}, pool=False)
    assert stopped_by(replace(world, policy=promise, quotas=(safe,), nodes=nodes(2, P5))) == []


def unknown_type(before: Mapping[str, Any], after: Mapping[str, Any], **guardrails: Any) -> Snapshot:
    policy = document(fixed("a", after), guardrails=guardrails, capacity={"overcommitPercent": 10}, pool=False)
    return snapshot(policy, nodes(1), [quota("a", before)])


def test_an_empty_node_list_is_a_failed_reading_for_vcpus_too() -> None:
    policy = document(fixed("team-a", row(C5, VCpu=80)), pool=False)
    kept = snapshot(policy, (), [quota("team-a", row(C5, VCpu=80), row(G5, VCpu=8))])
    assert stopped_by(kept) == ["nodes-seen"]
