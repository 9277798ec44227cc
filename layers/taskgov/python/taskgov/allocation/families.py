"""Expand promises on hardware families into one row or share for each type that the cluster has.

A count is divided by the room of each type: the usable capacity, minus quotas that are left alone, exact rows, and the
parts of earlier teams (by name). An excess over all room is divided by usable capacity, and the plan reports the
shortage. A larger count never lowers the part of a type (`taskgov.division`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from taskgov.allocation.units import in_instances
from taskgov.division import Party, divide
from taskgov.findings.of_plan import FAMILY_WITHOUT_NODES
from taskgov.hyperpod.hardware import stands_for
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.measured import Share, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov.allocation.capacity import TypeCapacity
    from taskgov.allocation.promises import Promise
    from taskgov.findings import Finding
    from taskgov.policy.families import FamilyPromise


def with_families(
    promises: Iterable[Promise], capacities: Mapping[str, TypeCapacity], kept: Iterable[ComputeQuotaResource]
) -> tuple[tuple[Promise, ...], tuple[Finding, ...]]:
    """Return the promises with a row or share of each type of their families, and a finding for each without nodes.

    `kept` are the rows of quotas that are left alone. Where the cluster has no nodes of a family, what the team holds
    of it today stays. A type on which the team has an exact row or share is left out. Promises come by name of the
    team, so that the order of the document does not matter.
    """
    given = tuple(promises)
    if not any(promise.families for promise in given):
        return given, ()
    room = _Room(capacities)
    for row in (*kept, *(row for promise in given for row in promise.rows)):
        room.take(row)
    expanded: dict[str, Promise] = {}
    findings: list[Finding] = []
    for promise in given:
        team = _Team(promise)
        for family in sorted(promise.families, key=lambda family: (family.family, family.unit)):
            team.expand(family, capacities, room)
        expanded[promise.team] = team.promise()
        findings += [_without_nodes(promise.team, family) for family in team.without_nodes]
    return tuple(expanded[promise.team] for promise in given), tuple(findings)


@dataclass(slots=True)
class _Team:
    """The rows and shares of one team's family promises so far."""

    given: Promise
    rows: list[ComputeQuotaResource] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    without_nodes: list[FamilyPromise] = field(default_factory=list)

    def promise(self) -> Promise:
        rows, shares = (*self.given.rows, *self.rows), (*self.given.shares, *self.shares)
        return replace(self.given, rows=rows, shares=shares, of_families=dict(self.words))

    def is_free(self, instance_type: str) -> bool:
        """Return whether the team has no exact row or share on this type."""
        rows, shares = (*self.given.rows, *self.rows), (*self.given.shares, *self.shares)
        named = {row.instance_type for row in rows} | {share.instance_type for share in shares}
        return instance_type not in named

    def expand(self, family: FamilyPromise, capacities: Mapping[str, TypeCapacity], room: _Room) -> None:
        types = [name for name in _types(family, capacities) if self.is_free(name)]
        if not types:
            self._stay(family)
        elif family.count is None:
            self._share(family, types, room)
        else:
            self._divide(family, family.count, types, room)

    def _stay(self, family: FamilyPromise) -> None:
        self.without_nodes.append(family)
        today = self.given.holds.compute_quota_config.compute_quota_resources if self.given.holds else ()
        held = [
            row for row in today if stands_for(family.family, row.instance_type) and self.is_free(row.instance_type)
        ]
        self.rows += held
        self.words |= {row.instance_type: f"of {family.words}, which has no nodes" for row in held}

    def _share(self, family: FamilyPromise, types: list[str], room: _Room) -> None:
        whole = room.whole(family.unit, types)
        floors = whole.split(family.floor)
        ceilings = {} if family.ceiling is None else whole.split(family.ceiling)
        for name in types:
            share = Share(
                instance_type=name,
                unit=family.unit,
                percent=family.percent,
                weight=family.weight,
                floor=floors[name],
                ceiling=ceilings.get(name),
            )
            self.shares.append(share)
            self.words[name] = f"of {family.words}"

    def _divide(self, family: FamilyPromise, count: int, types: list[str], room: _Room) -> None:
        for name, amount in room.left(family.unit, types).split(count).items():
            if amount:
                in_unit = "count" if family.unit is Unit.INSTANCES else "accelerators"
                row = ComputeQuotaResource.model_validate({"instance_type": name, in_unit: amount})
                room.take(row)
                self.rows.append(row)
                self.words[name] = f"{amount} of the {count} {family.unit.value} of {family.words}"


def _without_nodes(team: str, family: FamilyPromise) -> Finding:
    return FAMILY_WITHOUT_NODES.about(team, {"family": family.family}, team=team, family=family.words)


def _types(promise: FamilyPromise, capacities: Mapping[str, TypeCapacity]) -> Iterator[str]:
    for name, capacity in sorted(capacities.items()):
        if capacity.has_nodes and stands_for(promise.family, name) and _units_of_one(promise.unit, capacity):
            yield name


def _units_of_one(unit: Unit, capacity: TypeCapacity) -> int:
    """Return the units of one instance; 0 if it has no accelerators, or their number is unknown."""
    if unit is Unit.INSTANCES:
        return 1
    return capacity.resources.accelerators if capacity.resources else 0


@dataclass(frozen=True, slots=True)
class _Units:
    """What types have, in whole units: `room` is divided first, then `whole` says how what exceeds it is divided."""

    room: Mapping[str, int]
    whole: Mapping[str, int]

    def split(self, count: int) -> dict[str, int]:
        """Divide a count: the parts sum to it, and one more never makes a part smaller."""
        within = min(count, sum(self.room.values()))
        # Nobody passes its room: at it, a claim is room / (2 x room + 1), below 1/2; one below its room claims more.
        parts = divide(within, [Party(name, room) for name, room in self.room.items()])
        beyond = divide(count - within, [Party(name, whole) for name, whole in self.whole.items()])
        return {name: parts[name] + beyond[name] for name in self.room}


class _Room:
    """The rest of each type, in instances."""

    def __init__(self, capacities: Mapping[str, TypeCapacity]) -> None:
        self._capacities = capacities
        self._left = {name: Fraction(capacity.line.usable) for name, capacity in capacities.items()}

    def take(self, row: ComputeQuotaResource) -> None:
        """Subtract a row of a quota."""
        if row.instance_type in self._left:
            self._left[row.instance_type] -= in_instances(row, self._capacities[row.instance_type])

    def left(self, unit: Unit, types: Iterable[str]) -> _Units:
        """Return what is left of these types."""
        names = tuple(types)
        room = {name: max(0, int(self._left[name] * self._one(unit, name))) for name in names}
        return _Units(room, self.whole(unit, names).whole)

    def whole(self, unit: Unit, types: Iterable[str]) -> _Units:
        """Return all that is usable of these types."""
        usable = {name: self._capacities[name].line.usable * self._one(unit, name) for name in types}
        return _Units(usable, usable)

    def _one(self, unit: Unit, name: str) -> int:
        return _units_of_one(unit, self._capacities[name])
