"""What moves into a row of a quota and out of it, to the last part."""

from typing import Any

import pytest

from taskgov.allocation.capacity import count_capacity
from taskgov.allocation.leases import Given
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.set_aside import said_leases
from taskgov.allocation.transfer import moved, without_leases
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.document import CapacityBasis, CapacityRules
from taskgov.policy.measured import Lease
from tests.allocation.limits_world import UNKNOWN
from tests.allocation.test_leases import lease
from tests.allocation.test_units import capacity
from tests.allocation.world import C5, G5, NOW, P5, config, document, fixed, nodes, quota, row, snapshot

GPUS = {"unit": "accelerators"}
MIG = "mig-1g.10gb"


def slices(count: int, **parts: Any) -> dict[str, Any]:
    return {"AcceleratorPartition": {"Type": MIG, "Count": count}, **parts}


def resource(instance_type: str = P5, **amounts: Any) -> ComputeQuotaResource:
    return ComputeQuotaResource.model_validate(row(instance_type, **amounts))


ALL_OF_13 = {"Accelerators": 13, "VCpu": 312.0, "MemoryInGiB": 3328.0}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], int, dict[str, Any]]] = {
    "instances": ({"Count": 3}, {"Count": 2}, 1, {"Count": 5}),
    "instances to none": ({"Count": 0}, {"Count": 2}, 1, {"Count": 2}),
    "no instances": ({"Count": 3}, {"Count": 0}, 1, {"Count": 3}),
    "instances out": ({"Count": 3}, {"Count": 2}, -1, {"Count": 1}),
    "all instances out": ({"Count": 2}, {"Count": 2}, -1, {"Count": 0}),
    "more instances out than there are": ({"Count": 1}, {"Count": 2}, -1, {"Count": 0}),
    "accelerators": ({"Accelerators": 3}, {"Accelerators": 2}, 1, {"Accelerators": 5}),
    "all accelerators out": ({"Accelerators": 2}, {"Accelerators": 2}, -1, {"Accelerators": 0}),
    "more accelerators out than there are": ({"Accelerators": 2}, {"Accelerators": 3}, -1, {"Accelerators": 0}),
    "an instance to accelerators": ({"Accelerators": 3}, {"Count": 1}, 1, {"Accelerators": 11}),
    "accelerators with the vCPUs and the memory that the row states": (
        {"Accelerators": 4, "VCpu": 50.5, "MemoryInGiB": 600},
        {"Accelerators": 2},
        1,
        {"Accelerators": 6, "VCpu": 98.5, "MemoryInGiB": 1112.0},
    ),
    "vCPUs of a row of vCPUs": ({"VCpu": 24.5}, {"VCpu": 8}, -1, {"VCpu": 16.5}),
    "memory of a row of memory": ({"MemoryInGiB": 24.5}, {"MemoryInGiB": 8}, 1, {"MemoryInGiB": 32.5}),
    "whole GiB of seven digits": ({"MemoryInGiB": 1234567.0}, {"MemoryInGiB": 1024}, 1, {"MemoryInGiB": 1235591.0}),
    "accelerators out of instances": ({"Count": 2}, {"Accelerators": 3}, -1, ALL_OF_13),
    "slices": (slices(3), slices(2), 1, slices(5)),
    "slices out": (slices(3), slices(2), -1, slices(1)),
    "more slices out than there are": (slices(1), slices(2), -1, slices(0)),
    "slices with what the row states": (
        slices(7, VCpu=24, MemoryInGiB=256), slices(7), 1, slices(14, VCpu=48.0, MemoryInGiB=512.0),
    ),
    "slices out with more than what the row states": (
        slices(7, VCpu=20, MemoryInGiB=200), slices(7), -1, slices(0, VCpu=0.0, MemoryInGiB=0.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("had", "amount", "sign", "want"), CASES.values(), ids=CASES.keys())
def test_an_amount_moves_in_or_out(
    had: dict[str, Any], amount: dict[str, Any], sign: int, want: dict[str, Any]
) -> None:
    becomes = moved(resource(**had), resource(**amount), capacity(), out=sign < 0)
    assert becomes.to_api() == {"InstanceType": P5, **want}


def test_of_a_type_that_is_unknown_whole_instances_move_and_nothing_else() -> None:
    there = capacity(UNKNOWN)
    for known in (there, None):
        assert moved(resource(UNKNOWN, Count=2), resource(UNKNOWN, Count=1), known).count == 3
        parts = resource(UNKNOWN, Accelerators=2)
        assert moved(parts, resource(UNKNOWN, Accelerators=1), known) == parts
        assert moved(resource(UNKNOWN, Count=2), resource(UNKNOWN, Accelerators=1), known).count == 2


def test_machines_that_report_accelerators_alone_bring_nothing_else() -> None:
    rules = CapacityRules(basis=CapacityBasis.ALLOCATABLE)
    machines = nodes(2, P5, allocatable={"nvidia.com/gpu": 8})
    [there] = count_capacity(machines, rules, NOW, InstanceTypeTable()).values()
    had = resource(Accelerators=8, VCpu=5.5, MemoryInGiB=100.5)
    becomes = moved(had, resource(Count=1), there)
    assert becomes.to_api() == row(P5, Accelerators=16, VCpu=5.5, MemoryInGiB=100.5)


CAPACITIES = {P5: capacity(), C5: capacity(C5)}


@pytest.mark.parametrize(
    ("rows", "net", "want"),
    [
        ([row(P5, Count=3)], {P5: 1}, [row(P5, Count=2)]),
        ([row(P5, Count=3)], {P5: -2}, [row(P5, Count=5)]),
        ([row(P5, Count=3)], {P5: 0}, [row(P5, Count=3)]),
        ([row(P5, Count=3)], {C5: -1}, [row(P5, Count=3), row(C5, Count=1)]),
        ([row(P5, Count=3)], {C5: 1}, [row(P5, Count=3)]),
        ([row(P5, **slices(3))], {f"{P5} {MIG}": 1}, [row(P5, **slices(2))]),
        ([row(P5, Count=1)], {f"{P5} {MIG}": -1}, [row(P5, Count=1), row(P5, **slices(1))]),
        ([row(P5, Count=1), row(C5, Count=4)], {C5: 1, P5: -1}, [row(P5, Count=2), row(C5, Count=3)]),
    ],
)
def test_without_leases_a_quota_is_what_it_would_be(
    rows: list[dict[str, Any]], net: dict[str, int], want: list[dict[str, Any]]
) -> None:
    found = without_leases(ComputeQuotaConfig.model_validate(config(*rows)), net, CAPACITIES)
    assert [each.to_api() for each in found.compute_quota_resources] == want


def test_leases_that_are_there_as_before_are_named_once_however_many_they_move() -> None:
    given = [Given(Lease.model_validate(lease(count=count)), count) for count in (200, 150)]
    assert said_leases("team-a", G5, given, {G5: 350}) == (
        "200 leased from shared-pool, 150 leased from shared-pool set aside"
    )
    assert said_leases("team-a", G5, given[:1], {G5: -350}) == (
        "200 leased from shared-pool, 350 leased to others before set aside"
    )
    assert said_leases("team-a", G5, [], {f"{P5} accelerators": 3}) == ""
    assert said_leases("team-a", P5, [], {f"{P5} accelerators": 3}) == (
        "3 accelerators leased from others before set aside"
    )


@pytest.mark.parametrize(
    ("holds", "unit"), [({"Accelerators": 6}, {}), ({"Count": 6}, GPUS), ({"Accelerators": 6}, GPUS)], ids=str
)
def test_of_a_type_that_is_unknown_no_parts_are_lent(holds: dict[str, Any], unit: dict[str, Any]) -> None:
    teams = [fixed(name, row(UNKNOWN, **holds)) for name in "ab"]
    held = [quota(name, row(UNKNOWN, **holds)) for name in "ab"]
    given = {**lease("a", "b", instanceType=UNKNOWN), **unit}
    plan = plan_quotas(snapshot(document(*teams, leases=[given], pool=False), nodes(12, UNKNOWN), held), mode="apply")
    assert "lease-refused" in [finding.code for finding in plan.findings]
    assert plan.changes == ()
