"""Where numbers come from: each source names its true cause, and all of them add up."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from taskgov.allocation.planner import plan_quotas, row_sources
from taskgov.allocation.sources import Cause, Trail
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.snapshot.model import ObservedUse, Snapshot
from tests.allocation.limits_world import record
from tests.allocation.world import C5, G5, NOW, P5, broken, config, document, fixed, nodes, quota, row, share, snapshot

HOUR = timedelta(hours=1)
THREE = {"Count": Fraction(3)}
Told = list[tuple[str, float]]


def told(world: Snapshot, team: str, unit: str = "Count") -> Told:
    [trail] = row_sources(world)[team].values()
    return [(source.cause.value, float(source.amounts[unit])) for source in trail.sources if unit in source.amounts]


def lease(count: int, **fields: Any) -> dict[str, Any]:
    when = {"start": NOW - HOUR, "end": NOW + HOUR, "reason": "deadline"}
    return {"to": "a", "from": "b", "instanceType": G5, "count": count, **when, **fields}


def edited(policy: dict[str, Any]) -> Snapshot:
    """A quota of 3 that a person made 5."""
    stands = quota("a", row(Count=5), version=2)
    written = record(quota("a", row(Count=3), version=1))
    return snapshot(document(fixed("a", row(Count=3)), **policy), nodes(9), [stands], applied=(written,))


USE = (ObservedUse("a", G5, hours=200.0, peak_instances=1.0, pending=False),)
CASES: dict[str, tuple[Snapshot, str, Told]] = {
    "a promise that fits": (snapshot(document(fixed("a", row(Count=3))), nodes(9)), "a", [("promise", 3)]),
    "a shortage, proportional and then rounded": (
        snapshot(document(fixed("a", row(Count=6)), fixed("b", row(Count=6))), [*nodes(9), *broken(3)]),
        "a",
        [("promise", 6), ("shortage", -1.5), ("rounding", 0.5)],
    ),
    "the floor of another": (
        snapshot(
            document(fixed("a", row(Count=6)), fixed("b", row(Count=6)), guardrails={"minimumQuota": {"b": 6}}),
            nodes(9),
        ),
        "a",
        [("promise", 6), ("shortage", -1.5), ("bounds-of-others", -1.5)],
    ),
    "its own floor": (
        snapshot(
            document(fixed("a", row(Count=6)), fixed("b", row(Count=6)), guardrails={"minimumQuota": {"a": 5}}),
            nodes(9),
        ),
        "a",
        [("promise", 6), ("shortage", -1.5), ("floor", 0.5)],
    ),
    "floors that do not fit": (
        snapshot(document(share("a", 50, floor=6), share("b", 50, floor=2)), nodes(4)),
        "a",
        [("share", 2), ("floor", 4), ("incident", -3)],
    ),
    "a ceiling": (snapshot(document(share("a", 50, ceiling=2)), nodes(9)), "a", [("share", 4.5), ("ceiling", -2.5)]),
    "demand": (
        snapshot(document(fixed("a", row(Count=10)), demand={"enabled": True}), nodes(10), observed_use=USE),
        "a",
        [("promise", 10), ("demand", -1)],
    ),
    "a lease": (
        snapshot(document(fixed("a", row(Count=1)), fixed("b", row(Count=4)), leases=[lease(2)]), nodes(9)),
        "b",
        [("promise", 4), ("lease", -2)],
    ),
    "a lease that is refused": (
        snapshot(document(fixed("a", row(Count=1)), fixed("b", row(Count=4)), leases=[lease(6)]), nodes(9)),
        "a",
        [("promise", 1)],
    ),
    "a lease that is given in part": (
        snapshot(
            document(fixed("a", row(Count=1)), fixed("b", row(Count=4)), leases=[lease(6, partial=True)]), nodes(9)
        ),
        "a",
        [("promise", 1), ("lease", 4)],
    ),
    "an edit that is kept": (edited({}), "a", [("edit-kept", 5)]),
    "an edit that is adopted": (edited({"handEdits": "adopt"}), "a", [("edit-adopted", 5)]),
    "an edit that is put right": (edited({"handEdits": "putRight"}), "a", [("promise", 3)]),
    "a team that nobody governs": (
        snapshot(document(fixed("a", row(Count=3))), nodes(9), [quota("other", row(Count=2))]),
        "other",
        [("left-alone", 2)],
    ),
    "the shared pool": (snapshot(document(fixed("a", row(Count=3))), nodes(9)), "shared-pool", [("shared-pool", 6)]),
    "a type without nodes": (
        snapshot(document(fixed("a", row(C5, Count=3)), pool=False), nodes(9), [quota("a", row(C5, Count=1))]),
        "a",
        [("promise", 3), ("no-nodes", -2)],
    ),
    "a limit that holds back": (
        snapshot(
            document(fixed("a", row(Count=2)), guardrails={"maxDecreasePercent": 25, "onLimit": "partial"}),
            nodes(9),
            [quota("a", row(Count=8))],
        ),
        "a",
        [("promise", 2), ("limit", 4)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("world", "team", "want"), CASES.values(), ids=CASES.keys())
def test_each_source_names_its_cause(world: Snapshot, team: str, want: Told) -> None:
    assert told(world, team) == want


@pytest.mark.parametrize("world", [world for world, _, _ in CASES.values()], ids=CASES.keys())
def test_the_sources_add_up_to_the_plan(world: Snapshot) -> None:
    plan = plan_quotas(world, mode="plan")
    found = row_sources(world)
    for line in plan.allocations:
        trails = [trail for key, trail in found.get(line.team, {}).items() if key[0] == line.instance_type]
        assert sum(float(trail.amounts.get(line.unit, 0)) for trail in trails) == pytest.approx(line.after)


def test_what_was_said_of_instances_is_said_again_of_parts_when_a_lease_brings_them() -> None:
    policy = document(
        fixed("a", row(P5, Count=2)), fixed("b", row(P5, Count=6)), pool=False,
        leases=[lease(2, instanceType=P5, unit="accelerators")],
    )  # fmt: skip
    world = snapshot(policy, nodes(4, P5))
    assert told(world, "a", "Accelerators") == [("promise", 16), ("shortage", -8), ("lease", 2)]
    assert told(world, "a", "VCpu") == [("promise", 384), ("shortage", -192), ("lease", 48)]
    assert told(world, "a") == []


def test_a_trail_that_does_not_move_is_the_same() -> None:
    trail = Trail().to(THREE, Cause.PROMISE, "promised")
    assert trail.to(THREE, Cause.DEMAND, "used less") is trail
    assert replace(trail).amounts == THREE


def test_what_the_document_no_longer_promises_has_no_source() -> None:
    world = snapshot(document(fixed("a", row(Count=2))), nodes(9), [quota("a", row(Count=2), row(C5, Count=4))])
    assert {key[0] for key in row_sources(world)["a"]} == {G5}
    gone = ComputeQuotaConfig.model_validate(config(row(Count=2)))
    [change] = [each for each in plan_quotas(world, mode="plan").changes if each.team == "a"]
    assert change.after == gone
