"""Shares and leases of a world: in instances and in parts of them, by percentage and by weight.

What is drawn includes the rims: percentages that sum to 99.99 or 100.05, floors that ask for more than there is,
weights beside percentages and fixed promises, leases on types without nodes, and leases that are given in part.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from benchmarks.worlds_cluster import NOW, TYPES, Machines
from benchmarks.worlds_draw import Draw

Share = dict[str, Any]
SETS: Final[tuple[tuple[float, ...], ...]] = (
    (33.33, 33.33, 33.33),
    (33.35, 33.35, 33.35),
    (50, 49.99),
    (50, 50.05),
    (25, 25, 50),
    (60, 40),
    (100,),
)
"""Percentages that divide all of a type: they sum to within 0.1 of 100."""
SOME: Final = (0, 5, 10, 12.5, 20, 25, 33.33)
WEIGHTS: Final = (1, 1, 1, 2, 5, 100)
MOMENTS: Final[tuple[tuple[float, float], ...]] = (
    (-48, 96),
    (-2, 24),
    (-0.5, 24),
    (0, 24),
    (6, 24),
    (-30, 29),
    (-10, 10),
)
"""Hours from now to the start of a lease, and how long it lasts: long active, just begun, due, ended."""


def draw_shares(draw: Draw, machines: Machines, teams: Sequence[str]) -> Mapping[tuple[str, str], Share]:
    """Return team and instance type -> its share, type by type: who has none there may have a fixed promise."""
    found: dict[tuple[str, str], Share] = {}
    for instance_type in machines.types:
        holders = [team for team in teams if draw.chance(draw.mix.shares)]
        whole = [each for each in SETS if len(each) <= len(holders)]
        percents = list(draw.pick(whole)) if whole and draw.chance(0.3) else []
        some_weigh = draw.chance(draw.mix.weights)
        unit = _unit(draw, machines, instance_type)
        for team in draw.shuffled(holders):
            share: Share = {"instanceType": instance_type}
            if percents:
                share["percent"] = percents.pop()
            elif some_weigh and draw.chance(0.7):
                share["weight"] = draw.pick(WEIGHTS)
            else:
                share["percent"] = draw.pick(SOME)
            share |= unit if draw.chance(0.8) else _unit(draw, machines, instance_type)
            found[team, instance_type] = share | _bounds(draw, machines, share)
    return found


def draw_leases(
    draw: Draw, machines: Machines, teams: Sequence[Mapping[str, Any]], pool: Sequence[str]
) -> list[dict[str, Any]]:
    """Return leases between teams of the document and the shared pool, some of a type that the cluster does not have.

    Donors mostly have something of the type.
    """
    leases: list[dict[str, Any]] = []
    parties = [*(team["name"] for team in teams), *pool]
    there = [name for name in machines.types if machines.healthy(name)]
    for _ in range(draw.number(1, 4)):
        instance_type = draw.pick(machines.types) if draw.chance(0.95) else draw.pick(TYPES)
        if there and draw.chance(0.6):
            instance_type = draw.pick(there)
        able = [team["name"] for team in teams if _has_promise(team, instance_type)]
        donor = draw.pick(able if able and draw.chance(0.7) else parties)
        borrower = draw.pick([name for name in parties if name != donor])
        begun, length = draw.pick(MOMENTS)
        start = NOW + timedelta(hours=begun)
        measured = {"instanceType": instance_type, **_unit(draw, machines, instance_type)}
        profile = _profile_of(next((team for team in teams if team["name"] == donor), {}), instance_type)
        if profile and draw.chance(0.7):
            measured |= {"unit": "acceleratorPartition", "acceleratorPartitionType": profile}
        elif "acceleratorPartitionType" in measured and draw.chance(0.7):
            measured = {"instanceType": instance_type}
        lease = {
            **measured,
            "to": borrower,
            "from": donor,
            "count": _count(draw, machines, measured),
            "start": start.isoformat(),
            "end": (start + timedelta(hours=length)).isoformat(),
            "reason": "a deadline",
        }
        if draw.chance(0.4):
            lease |= {"partial": True, "count": lease["count"] * draw.number(1, 4)}
        leases.append(lease)
    return leases


def _has_promise(team: Mapping[str, Any], instance_type: str) -> bool:
    rows = team.get("quota", {}).get("ComputeQuotaResources", ())
    mine = (row for row in rows if row["InstanceType"] == instance_type)
    some = [row for row in mine if any(amount for name, amount in row.items() if name != "InstanceType")]
    return bool(some) or any(share["instanceType"] == instance_type for share in team.get("share", ()))


def _profile_of(team: Mapping[str, Any], instance_type: str) -> str:
    """Return the MIG profile of which a team has slices of a type; empty where it has none."""
    rows = team.get("quota", {}).get("ComputeQuotaResources", ())
    mine = (row for row in rows if row["InstanceType"] == instance_type)
    fixed = [row["AcceleratorPartition"]["Type"] for row in mine if "AcceleratorPartition" in row]
    shares = [share for share in team.get("share", ()) if share["instanceType"] == instance_type]
    return next(iter([*fixed, *(share.get("acceleratorPartitionType", "") for share in shares)]), "")


def _unit(draw: Draw, machines: Machines, instance_type: str) -> dict[str, Any]:
    """Draw in what is counted; a unit that the type does not have is drawn at times, too."""
    if not draw.chance(draw.mix.units):
        return {}
    numbers = machines.table.require(instance_type)
    parts = ["vcpu", "memoryInGiB"]
    if numbers.accelerators or draw.chance(0.05):
        parts += ["accelerators"] * 4
    if numbers.mig_profiles:
        parts += ["acceleratorPartition"] * (2 if draw.mix.mig else 1)
    unit = draw.pick(parts)
    if unit != "acceleratorPartition":
        return {"unit": unit}
    return {"unit": unit, "acceleratorPartitionType": draw.pick(numbers.mig_profiles)}


def _bounds(draw: Draw, machines: Machines, share: Share) -> dict[str, int]:
    """Draw a floor and a ceiling in the share's unit, the floor below the ceiling."""
    scale = max(_per_instance(machines, share) // 2, 1)
    bounds: dict[str, int] = {}
    if draw.chance(0.35):
        bounds["floor"] = draw.number(0, 2) * scale + (draw.number(0, 2) if scale > 1 else 0)
    if draw.chance(0.3):
        bounds["ceiling"] = bounds.get("floor", 0) + draw.number(0, 3) * scale
    return bounds


def _count(draw: Draw, machines: Machines, measured: Mapping[str, Any]) -> int:
    """Draw how much is leased: up to two instances, often some of their parts only."""
    per_instance = _per_instance(machines, measured)
    if per_instance == 1 or draw.chance(0.6):
        return draw.number(1, min(per_instance, 4) if per_instance > 1 else draw.pick([1, 1, 2]))
    return draw.number(1, 2) * per_instance + draw.number(0, 1)


def _per_instance(machines: Machines, measured: Mapping[str, Any]) -> int:
    """Return how many of its unit one instance is, about."""
    numbers = machines.table.require(measured["instanceType"])
    units = {
        "accelerators": numbers.accelerators,
        "vcpu": numbers.vcpu,
        "memoryInGiB": int(numbers.memory_gib),
        "acceleratorPartition": numbers.gpu,
    }
    return max(units.get(measured.get("unit", ""), 1), 1)
