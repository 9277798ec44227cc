"""Limits, steps, rows and the shared pool at one and at nothing."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from taskgov.allocation.capacity import count_capacity
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.wording import said_number
from taskgov.allocation.writes import _difference, _greater, _Sums
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota
from taskgov.policy.document import CapacityRules, PolicyDocument
from tests.allocation.limits_world import UNKNOWN, failed, moving, stopped_by
from tests.allocation.steps import a_world, counts_of, rows_of
from tests.allocation.work import SCHEDULER
from tests.allocation.world import C5, G5, NOW, P5, document, fixed, nodes, quota, row, snapshot
from tests.support.plans import update

M5 = "ml.m5.xlarge"
"""No accelerator, 4 vCPU, 16 GiB."""
REST = {"VCpu": 192, "MemoryInGiB": 2048}


def test_the_last_gpu_falls_by_100_percent() -> None:
    world = moving(row(P5, Accelerators=1, **REST), row(P5, Accelerators=0, **REST), maxDecreasePercent=25)
    [verdict] = failed(plan_quotas(world, mode="apply"))
    assert verdict.because == (
        "team-a ml.p5.48xlarge 1 -> 0 GPUs falls by 100 % in one step; the most allowed is 25 %."
    )


def test_one_gpu_is_something_to_measure_an_increase_from() -> None:
    before, after = row(P5, Accelerators=1, **REST), row(P5, Accelerators=2, **REST)
    assert stopped_by(moving(before, after, maxIncreasePercent=99)) == ["max-increase"]
    assert stopped_by(moving(before, after, maxIncreasePercent=100)) == []


def test_on_a_type_without_nodes_nobody_takes_what_is_not_given() -> None:
    held = a_world({"a": [row(Count=12)]}, {"a": [row(Count=6)], "b": [row(Count=6)]}, {}).held_back()
    assert counts_of(held) == {"a": 9, "b": 3}


def test_who_can_take_nothing_yet_gets_no_row_of_nothing() -> None:
    stands = {"b": [row(P5, Accelerators=8, **REST)]}
    wanted = {
        "a": [row(P5, Accelerators=4, VCpu=48, MemoryInGiB=1024)],
        "b": [row(P5, Accelerators=4, VCpu=144, MemoryInGiB=1024)],
    }
    held = a_world(stands, wanted, {P5: 1}, guardrails={"maxDecreasePercent": 0, "onLimit": "partial"}).held_back()
    assert rows_of(held) == {"a": [], "b": stands["b"]}


POLICY = document(fixed("team-a", row(Count=2)))
FROZEN = document(fixed("team-a", row(Count=2)), guardrails={"freeze": ["shared-pool"]})
OFF = quota("shared-pool", row(Count=1), activation_state="Disabled")


@pytest.mark.parametrize(
    ("policy", "quotas"),
    [(FROZEN, []), (FROZEN, [quota("shared-pool", row(Count=1))]), (POLICY, [OFF])],
    ids=["frozen before there is a quota", "frozen with its quota", "switched off"],
)
def test_a_shared_pool_that_is_closed_is_neither_written_nor_made_anew(
    policy: PolicyDocument, quotas: list[ComputeQuota]
) -> None:
    plan = plan_quotas(snapshot(policy, nodes(8), quotas), mode="apply")
    assert [change.team for change in plan.changes] == ["team-a"]


def test_what_a_write_moves_is_what_is_there_after_it_less_what_was_there() -> None:
    gpu, cpu, memory = (G5, "gpu"), (G5, "cpu"), (G5, "memory")
    assert _difference({cpu: 4, memory: 2}, {gpu: 1, memory: 2}) == {gpu: 1, cpu: -4}


def test_the_greater_of_nothing_and_nothing_is_nothing() -> None:
    gpu, cpu = (G5, "gpu"), (G5, "cpu")
    assert _greater({gpu: 0}, {cpu: 0}) == {gpu: 0, cpu: 0}
    assert _greater({gpu: 3, cpu: 1}, {gpu: 2, cpu: 4}) == {gpu: 3, cpu: 4}


def test_names_of_new_quotas_are_numbered_one_after_another() -> None:
    taken = [quota(team, row(Count=1), name=name) for team, name in (("b", "a-quota"), ("c", "a-quota-2"))]
    policy = document(*(fixed(team, row(Count=1)) for team in "abc"), pool=False)
    [change] = plan_quotas(snapshot(policy, nodes(3), taken), mode="apply").changes
    assert (change.team, change.name) == ("a", "a-quota-3")


def test_a_number_is_said_in_full_however_large_it_is() -> None:
    assert said_number(Fraction(10**17 + 1)) == "100000000000000001"


WANTED = {"FairShare": "Enabled"}


@pytest.mark.parametrize("status", [None, "Created", "CreateFailed"])
def test_a_write_of_the_cluster_policy_is_a_write_of_no_gpus(status: str | None) -> None:
    held = None if status is None else replace_status(status)
    world = replace(snapshot(document(pool=False, schedulerConfig=WANTED)), scheduler_config=held)
    changes = plan_quotas(world, mode="apply").changes
    assert len(changes) == (2 if status == "CreateFailed" else 1)
    assert {(change.team, change.gpus_before, change.gpus_after) for change in changes} == {("", 0, 0)}


def replace_status(status: str) -> ClusterSchedulerConfig:
    return SCHEDULER.model_copy(update={"status": status})


def test_a_new_cluster_policy_has_a_name_that_the_api_takes() -> None:
    world = snapshot(document(pool=False, schedulerConfig=WANTED))
    named = {}
    for name in ("ml", "a" * 63, "b" * 55 + "-" + "c" * 7):
        [change] = plan_quotas(replace(world, cluster=replace(world.cluster, name=name)), mode="apply").changes
        named[name] = change.name
    assert list(named.values()) == ["ml-policy", "a" * 56 + "-policy", "b" * 55 + "-policy"]


def test_the_type_that_moves_most_represents_a_quota() -> None:
    stands = quota("team-a", row(C5, Count=5), row(M5, Count=5))
    policy = document(fixed("team-a", row(C5, Count=6), row(M5, Count=9)), pool=False)
    machines = [*nodes(9, C5), *nodes(9, M5)]
    [change] = plan_quotas(snapshot(policy, machines, [stands]), mode="apply").changes
    assert change.because.startswith(f"5 -> 9 {M5}: ")


FEW: Mapping[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "an instance of an unknown type less": (row(UNKNOWN, Count=2), row(UNKNOWN, Count=1), True),
    "an instance of an unknown type more": (row(UNKNOWN, Count=1), row(UNKNOWN, Count=2), False),
    "a thousandth of a vCPU less": (row(C5, VCpu=4.001, MemoryInGiB=8), row(C5, VCpu=4, MemoryInGiB=8), True),
    "a thousandth of a vCPU more": (row(C5, VCpu=4, MemoryInGiB=8), row(C5, VCpu=4.001, MemoryInGiB=8), False),
}


@pytest.mark.parametrize(("before", "after", "gives"), FEW.values(), ids=FEW.keys())
def test_however_little_moves_it_is_given_or_taken(before: dict[str, Any], after: dict[str, Any], gives: bool) -> None:
    config = [quota("a", each).compute_quota_config for each in (before, after)]
    change = replace(update(0, "a", "id-a", 0, 0), before=config[0], after=config[1])
    machines = nodes(2, before["InstanceType"])
    made = _Sums(count_capacity(machines, CapacityRules(), NOW, InstanceTypeTable()), {}).write(change)
    assert (made.gives, made.takes) == (gives, not gives)


def test_slices_that_a_queue_holds_instead_of_a_gpu_are_given_and_the_gpu_is_taken() -> None:
    """In sevenths of GPUs both come to the same; the write of a weight brings the queue to what the quota says."""
    says = quota("a", row(P5, Accelerators=1, **REST)).compute_quota_config
    change = replace(update(0, "a", "id-a", 0, 0), before=says, after=says)
    there = count_capacity(nodes(1, P5), CapacityRules(), NOW, InstanceTypeTable())
    slices = {(P5, "nvidia.com/mig-1g.10gb"): 7, (P5, "nvidia.com/gpu"): -1}
    drifted, as_said = (_Sums(there, drifts).write(change) for drifts in ({"id-a": slices}, {}))
    assert (drifted.gives, drifted.takes) == (True, True)
    assert (as_said.gives, as_said.takes) == (False, False)
