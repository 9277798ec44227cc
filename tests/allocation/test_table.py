"""The numbers that a plan shows are those that it writes: changes of units, and quotas that no wave can write."""

from fractions import Fraction
from typing import Any

import pytest

from taskgov.allocation.capacity import count_capacity
from taskgov.allocation.claims import Claim
from taskgov.allocation.lease_book import lease_book
from taskgov.allocation.leases import LeaseState
from taskgov.allocation.plan import Reason
from taskgov.allocation.planner import plan_quotas, row_sources
from taskgov.allocation.sources import Cause, Trail, amounts_in
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaResource
from taskgov.policy.document import CapacityRules
from taskgov.snapshot.model import Snapshot
from tests.allocation.test_lease_parts import lease
from tests.allocation.world import NOW, P5, document, fixed, nodes, quota, row, snapshot

UNKNOWN = "ml.z9.4xlarge"
Shown = list[tuple[str, float, float]]
UNITS: dict[str, tuple[dict[str, Any], dict[str, Any], Shown]] = {
    "accelerators beside vCPUs that stay": (
        {"VCpu": 48, "MemoryInGiB": 100},
        {"Accelerators": 2, "VCpu": 24},
        [("Accelerators", 0, 2)],
    ),
    "vCPUs that stay without accelerators": (
        {"Accelerators": 2, "VCpu": 10},
        {"VCpu": 24},
        [("Accelerators", 2, 0), ("VCpu", 10, 24)],
    ),
    "memory instead of vCPUs": ({"VCpu": 24}, {"MemoryInGiB": 64}, [("MemoryInGiB", 0, 64), ("VCpu", 24, 0)]),
    "instances instead of accelerators": (
        {"Accelerators": 8},
        {"Count": 2},
        [("Accelerators", 8, 0), ("Count", 0, 2)],
    ),
    "what HyperPod filled in": ({"Accelerators": 2, "VCpu": 48}, {"Accelerators": 2}, [("Accelerators", 2, 2)]),
}


@pytest.mark.parametrize("case", UNITS)
def test_a_number_ends_only_where_its_unit_does(case: str) -> None:
    stands, promised, shown = UNITS[case]
    world = snapshot(
        document(fixed("ant", row(P5, **promised)), pool=False), nodes(4, P5), [quota("ant", row(P5, **stands))]
    )
    lines = plan_quotas(world, mode="apply").allocations
    assert [(line.unit, line.before, line.after) for line in lines] == shown
    assert sum(line.gpus_before for line in lines) == stands.get("Accelerators", 0)


def without_room(**sections: Any) -> Snapshot:
    """A quota on a type whose numbers nobody knows stays as it is, and leaves no room for another one."""
    teams = fixed("ant", row(UNKNOWN, Accelerators=1)), fixed("cat", row(UNKNOWN, Count=1)), fixed("dog")
    return snapshot(document(*teams, pool=False, **sections), nodes(3, UNKNOWN), [quota("ant", row(UNKNOWN, Count=3))])


def test_a_quota_that_no_wave_can_write_is_shown_as_it_stands() -> None:
    world = without_room()
    plan = plan_quotas(world, mode="apply")
    assert not plan.changes
    [finding] = [each for each in plan.findings if each.code == "no-room"]
    assert finding.subject == "cat"
    [line] = [line for line in plan.allocations if line.team == "cat"]
    assert (line.before, line.after) == (0, 0)
    assert "left as it is: no wave of the plan can write it" in line.because
    [trail] = row_sources(world)["cat"].values()
    told = [(source.cause, source.amounts) for source in trail.sources]
    assert told == [(Cause.PROMISE, {"Count": Fraction(1)}), (Cause.NOT_WRITTEN, {"Count": Fraction(-1)})]


def test_a_lease_is_not_active_while_no_wave_can_write_it() -> None:
    world = without_room(leases=[lease("cat", "ant", 1, UNKNOWN)])
    [entry] = lease_book(world)
    assert entry.state is LeaseState.PLANNED


def test_slices_stay_slices_where_a_row_is_spelled_out() -> None:
    """A limit may write a row of slices with its vCPUs and memory: the share in it is told in slices, too."""
    profile = "mig-1g.10gb"

    def slices(count: int, **parts: float) -> ComputeQuotaResource:
        partition = AcceleratorPartition(type=profile, count=count)
        return ComputeQuotaResource(instance_type=P5, accelerator_partition=partition).model_copy(update=parts)

    capacity = count_capacity(nodes(1, P5), CapacityRules(), NOW, InstanceTypeTable())[P5]
    share = Claim("ant", slices(8), Reason.SHARE, "", lambda: Trail().to(slices(8), Cause.SHARE, ""))
    limited = slices(6, vcpu=20.0, memory_in_gib=200.0)
    trail = share.moved_to(limited, Cause.LIMIT, "", capacity).tell()
    assert [(source.cause, source.amounts[profile]) for source in trail.sources] == [
        (Cause.SHARE, Fraction(8)),
        (Cause.LIMIT, Fraction(-2)),
    ]
    assert trail.amounts == amounts_in(limited)
