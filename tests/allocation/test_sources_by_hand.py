"""Where the numbers of a quota come from, cause by cause, with amounts worked out by hand."""

from fractions import Fraction
from typing import Any

import pytest

from taskgov.allocation.planner import row_sources
from taskgov.allocation.sources import Cause, Source, Trail
from taskgov.snapshot.model import Snapshot
from tests.allocation.limits_world import UNKNOWN
from tests.allocation.test_governed import edited, governed
from tests.allocation.test_lease_parts import GPUS, SLICES, lease, slices, world
from tests.allocation.world import C5, P5, document, fixed, nodes, quota, row, share, snapshot

UNTIL = "until 2026-11-20 15:00 UTC (deadline)"
DIVIDED = "floors and ceilings of other shares"
SHORT = "capacity 8 ml.g5.8xlarge"
OFFER = {"nvidia.com/gpu": 8, "cpu": 180_000, "memory": 2_000 * 2**30}


def told(trail: Trail) -> list[str]:
    """Return each source as `cause amounts: because`."""
    return [
        f"{each.cause} {', '.join(f'{amount} {unit}' for unit, amount in each.amounts.items())}: {each.because}"
        for each in trail.sources
    ]


def alone(*teams: dict[str, Any], machines: int, quotas: Any = (), **sections: Any) -> Snapshot:
    return snapshot(document(*teams, pool=False, **sections), nodes(machines), quotas)


CASES: dict[str, tuple[Snapshot, dict[str, list[str]]]] = {
    "an edit that is adopted is the promise": (
        edited(governed("adopt"), Count=5),
        {
            "team-a": ["edit-adopted 5 Count: the edit by hand that was taken as the guarantee"],
            "shared-pool": ["shared-pool 3 Count: remainder of capacity 8 ml.g5.8xlarge"],
        },
    ),
    "an edit that is kept": (
        edited(governed("keep"), Count=5),
        {
            "team-a": ["edit-kept 5 Count: left as it is: it was changed by hand"],
            "shared-pool": ["shared-pool 3 Count: remainder of capacity 8 ml.g5.8xlarge"],
        },
    ),
    "a quota that is left alone": (
        alone(fixed("a", row(Count=2)), machines=4, quotas=[quota("a", row(Count=3))], guardrails={"freeze": ["a"]}),
        {"a": ["left-alone 3 Count: left as it is: the team is frozen"]},
    ),
    "a floor is what the share lacks of it": (
        alone(share("a", 10, floor=5), share("b", 50), machines=10),
        {
            "a": ["share 1 Count: 10 % of 10 usable", "floor 4 Count: floor 5"],
            "b": ["share 5 Count: 50 % of 10 usable"],
        },
    ),
    "what a ceiling leaves goes to the other shares": (
        alone(share("a", 50, ceiling=3), share("b", 50), machines=9),
        {
            "a": ["share 9/2 Count: 50 % of 9 usable", "ceiling -3/2 Count: ceiling 3"],
            "b": ["share 9/2 Count: 50 % of 9 usable", f"bounds-of-others 3/2 Count: {DIVIDED}"],
        },
    ),
    "what is no whole unit": (
        alone(share("a", 40), share("b", 40), machines=4),
        {
            "a": ["share 8/5 Count: 40 % of 4 usable", "rounding 2/5 Count: division in whole instances"],
            "b": ["share 8/5 Count: 40 % of 4 usable", "rounding -3/5 Count: division in whole instances"],
        },
    ),
    "at basis allocatable a promise and its rest are spelled out": (
        snapshot(
            document(
                {
                    "name": "a",
                    "tier": 1,
                    "share": [{"instanceType": P5, "percent": 37.5, "unit": "accelerators", "ceiling": 6}],
                },
                fixed("b", row(P5, Count=1)),
                capacity={"basis": "allocatable"},
            ),
            nodes(2, P5, allocatable=OFFER),
        ),
        {
            "a": ["share 6 Accelerators, 135 VCpu, 1500 MemoryInGiB: 37.5 % of 16 usable accelerators"],
            "b": ["promise 8 Accelerators, 180 VCpu, 2000 MemoryInGiB: guaranteed 1"],
            "shared-pool": [
                "shared-pool 2 Accelerators, 45 VCpu, 500 MemoryInGiB: remainder of capacity 2 ml.p5.48xlarge"
            ],
        },
    ),
    "machines that tell no memory": (
        snapshot(
            document(fixed("a", row(P5, Count=1)), capacity={"basis": "allocatable"}),
            nodes(3, P5, allocatable={"nvidia.com/gpu": 8, "cpu": 180_000}),
        ),
        {
            "a": ["promise 8 Accelerators, 180 VCpu: guaranteed 1"],
            "shared-pool": ["shared-pool 16 Accelerators, 360 VCpu: remainder of capacity 3 ml.p5.48xlarge"],
        },
    ),
    "a shortage takes in proportion": (
        alone(fixed("a", row(Count=6)), fixed("b", row(Count=10)), machines=8),
        {
            "a": [
                "promise 6 Count: guaranteed by the document",
                f"shortage -3 Count: {SHORT}, guarantees of 16, 8 to give, tier 1 gives",
            ],
            "b": [
                "promise 10 Count: guaranteed by the document",
                f"shortage -5 Count: {SHORT}, guarantees of 16, 8 to give, tier 1 gives",
            ],
        },
    ),
    "a floor in a shortage is paid by the others": (
        alone(
            fixed("a", row(Count=6)),
            fixed("b", row(Count=6)),
            machines=8,
            guardrails={"minimumQuota": {"a": 5, "b": 3}},
        ),
        {
            "a": [
                "promise 6 Count: guaranteed by the document",
                f"shortage -2 Count: {SHORT}, guarantees of 12, 8 to give, tier 1 gives",
                "floor 1 Count: floor 5",
            ],
            "b": [
                "promise 6 Count: guaranteed by the document",
                f"shortage -2 Count: {SHORT}, guarantees of 12, 8 to give, tier 1 gives",
                "bounds-of-others -1 Count: floors and ceilings of other teams",
            ],
        },
    ),
    "floors that do not fit": (
        alone(
            share("a", 50, floor=6), fixed("b", row(Count=8)), machines=8, guardrails={"minimumQuota": {"b": 6}}
        ),
        {
            "a": [
                "share 4 Count: 50 % of 8 usable",
                "floor 2 Count: floor 6",
                f"incident -2 Count: {SHORT}, floors of 12, 8 to give",
            ],
            "b": [
                "promise 8 Count: guaranteed by the document",
                f"shortage -2 Count: {SHORT}: floors come first",
                f"incident -2 Count: {SHORT}, floors of 12, 8 to give",
            ],
        },
    ),
    "nothing is added on a type without nodes": (
        alone(fixed("a", row(Count=6)), machines=0, quotas=[quota("a", row(Count=4))]),
        {
            "a": [
                "promise 6 Count: guaranteed by the document",
                "no-nodes -2 Count: the type has no nodes; nothing is added",
            ]
        },
    ),
    "parts of a type that nobody knows": (
        snapshot(
            document(fixed("a", row(UNKNOWN, Accelerators=6))),
            nodes(4, UNKNOWN),
            [quota("a", row(UNKNOWN, Accelerators=4)), quota("shared-pool", row(UNKNOWN, Count=2))],
        ),
        {
            "a": [
                "promise 6 Accelerators: guaranteed by the document",
                "unknown-type -2 Accelerators: the resources of the type are not known; left as it is",
            ],
            "shared-pool": ["unknown-type 2 Count: the resources of the type are not known; left as it is"],
        },
    ),
    "accelerators on a type without": (
        snapshot(document(fixed("a", row(C5, Accelerators=6, VCpu=8)), pool=False), nodes(4, C5)),
        {
            "a": [
                "promise 6 Accelerators, 8 VCpu: guaranteed by the document",
                "ceiling -6 Accelerators: ml.c5.2xlarge has no accelerators",
            ]
        },
    ),
    "a lease in parts spells out the instances of its donor": (
        world(lease("a", "b", 2, **GPUS), a={"Accelerators": 2}, b={"Count": 2}),
        {
            "a": [
                "promise 2 Accelerators: guaranteed by the document",
                f"lease 2 Accelerators: 2 accelerators leased from b {UNTIL}",
            ],
            "b": [
                "promise 16 Accelerators, 384 VCpu, 4096 MemoryInGiB: guaranteed by the document",
                f"lease -2 Accelerators, -48 VCpu, -512 MemoryInGiB: 2 accelerators leased to a {UNTIL}",
            ],
            "shared-pool": [
                "shared-pool 14 Accelerators, 336 VCpu, 3584 MemoryInGiB: remainder of capacity 4 ml.p5.48xlarge"
            ],
        },
    ),
    "what a shortage left is spelled out with its sources": (
        world(lease("a", "b", 2, **GPUS), a={}, b={"Count": 8}),
        {
            "a": [f"lease 2 Accelerators: 2 accelerators leased from b {UNTIL}"],
            "b": [
                "promise 64 Accelerators, 1536 VCpu, 16384 MemoryInGiB: guaranteed by the document",
                ("shortage -32 Accelerators, -768 VCpu, -8192 MemoryInGiB: "
                "capacity 4 ml.p5.48xlarge, guarantees of 8, 4 to give, tier 1 gives"),
                f"lease -2 Accelerators, -48 VCpu, -512 MemoryInGiB: 2 accelerators leased to a {UNTIL}",
            ],
            "shared-pool": [],
        },
    ),
    "leases with the shared pool in both directions": (
        world(
            lease("shared-pool", "b", 3, **GPUS), lease("a", "shared-pool", 1, **GPUS),
            a={"Accelerators": 2, "VCpu": 20}, b={"Accelerators": 16},
        ),
        {
            "a": [
                "promise 2 Accelerators, 20 VCpu: guaranteed by the document",
                f"lease 1 Accelerators, 24 VCpu: 1 accelerators leased from shared-pool {UNTIL}",
            ],
            "b": [
                "promise 16 Accelerators: guaranteed by the document",
                f"lease -3 Accelerators: 3 accelerators leased to shared-pool {UNTIL}",
            ],
            "shared-pool": [
                "shared-pool 14 Accelerators, 364 VCpu, 3584 MemoryInGiB: remainder of capacity 4 ml.p5.48xlarge",
                f"lease -1 Accelerators, -24 VCpu, -256 MemoryInGiB: 1 accelerators leased to a {UNTIL}",
                f"lease 3 Accelerators, 72 VCpu, 768 MemoryInGiB: 3 accelerators leased from b {UNTIL}",
            ],
        },
    ),
    "a lease of slices": (
        world(lease("a", "b", 2, **SLICES), a=slices(1), b=slices(5), sharedPool=None),
        {
            "a": [
                "promise 1 mig-1g.10gb: guaranteed by the document",
                f"lease 2 mig-1g.10gb: 2 mig-1g.10gb leased from b {UNTIL}",
            ],
            "b": [
                "promise 5 mig-1g.10gb: guaranteed by the document",
                f"lease -2 mig-1g.10gb: 2 mig-1g.10gb leased to a {UNTIL}",
            ],
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize(("each", "want"), CASES.values(), ids=CASES.keys())
def test_each_source_of_a_quota_has_its_cause_and_its_amounts(each: Snapshot, want: dict[str, list[str]]) -> None:
    assert {
        team: [line for trail in trails.values() for line in told(trail)] for team, trails in row_sources(each).items()
    } == want


def test_what_slices_leave_to_the_shared_pool_is_rounded_down_to_whole_accelerators() -> None:
    """6 of 224 slices are promised: 218/7 accelerators are left."""
    each = world(lease("a", "b", 2, **SLICES), a=slices(1), b=slices(5))
    [trail] = row_sources(each)["shared-pool"].values()
    assert [(source.cause, source.amounts["Accelerators"]) for source in trail.sources] == [
        (Cause.POOL, Fraction(218, 7)),
        (Cause.ROUNDING, Fraction(-1, 7)),
    ]
    assert trail.sources[-1].because == "the remainder is less than a whole unit"


def test_a_trail_is_said_again_in_other_units() -> None:
    first, second = (
        Source(Cause.PROMISE, {"VCpu": Fraction(0), "Count": Fraction(4)}, "promised"),
        Source(Cause.SHORTAGE, {"Count": Fraction(-1)}, "short"),
    )
    again = Trail((first, second)).restated("Count", Fraction(3), {"Accelerators": Fraction(24)})
    assert told(again) == ["promise 32 Accelerators: promised", "shortage -8 Accelerators: short"]


def test_nothing_is_nothing_in_all_units() -> None:
    assert Trail().restated("Count", Fraction(3), {"Accelerators": Fraction(0)}) == Trail()
