"""Which quotas do teams begin with, where a cluster has none? Parts of what counts now, in a style of sharing.

`draft_policy` puts them into the first document. Pure: from a person's wishes and the cluster to plain values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from taskgov.division import Party, divide
from taskgov.errors import InvalidRequestError
from taskgov.quantities import CPU
from taskgov.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from taskgov.allocation.capacity import TypeCapacity

_TEAM: Final = re.compile(r"(?P<name>[^:]*)(?::(?P<parts>[0-9]{1,6}))?")


class Style(StrEnum):
    """How teams share what they do not use (`docs/choosing.md`)."""

    STRICT = "strict"
    FLEXIBLE = "flexible"
    SHARED_POOL = "shared-pool"


SETTINGS: Final[Mapping[Style, Mapping[str, Any]]] = {
    Style.STRICT: {"Strategy": "DontLend"},
    Style.FLEXIBLE: {"Strategy": "LendAndBorrow", "BorrowLimit": 100},
    Style.SHARED_POOL: {"Strategy": "LendAndBorrow", "BorrowLimit": 500},
}
SCHEDULER: Final[Mapping[str, Any]] = {
    "FairShare": "Enabled",
    "PriorityClasses": [
        {"Name": "inference", "Weight": 90},
        {"Name": "experimentation", "Weight": 80},
        {"Name": "training", "Weight": 70},
        {"Name": "fine-tuning", "Weight": 50},
    ],
}
"""The cluster policy that the published workshops begin with."""
WEIGHT: Final = 10
"""Alike for every team: parts say how much a team owns, and nobody has been put first yet."""


@dataclass(frozen=True, slots=True)
class TeamWish:
    """A team, and how many parts of each instance type it is to have."""

    name: str
    parts: int = 1


@dataclass(frozen=True, slots=True)
class FirstTeams:
    """A person's wishes for a cluster without quotas. No instance types means all that count now."""

    teams: tuple[TeamWish, ...]
    instance_types: tuple[str, ...] = ()
    style: Style = Style.FLEXIBLE


def team_wish(text: str) -> TeamWish:
    """Read a team as it is typed. Raises `ValueError`; whether the name may be one, the document's rules say.

    Example:
        >>> team_wish("research:2"), team_wish("students")
        (TeamWish(name='research', parts=2), TeamWish(name='students', parts=1))

    """
    found = _TEAM.fullmatch(text.strip())
    parts = int(found["parts"] or 1) if found else 0
    if found is None or not found["name"] or not parts:
        raise ValueError(f"{text!r} is not a team such as research, or research:2 for two parts of what there is")
    return TeamWish(found["name"], parts)


def first_sections(
    wanted: FirstTeams, capacities: Mapping[str, TypeCapacity], *, pool_is_native: bool, has_scheduler: bool
) -> dict[str, Any]:
    """Return the document's sections for these teams.

    All of a type is divided by parts; in the style of a shared pool half of it, and the pool takes the rest. Raises
    `InvalidRequestError` that names each type that does not count, and each that has less to divide than there are
    teams.
    """
    usable = {name: capacity for name, capacity in capacities.items() if capacity.line.usable}
    types = wanted.instance_types or tuple(usable)
    problems = [*_not_there(types, usable)]
    divided = {name: _divided(wanted, usable[name]) for name in sorted({*types} & usable.keys())}
    for name, (_, amounts) in divided.items():
        if not all(amounts.values()):
            rule = f"has too little for {len(amounts)} teams: name fewer, or other instance types"
            problems.append(Violation("--instance-type", name, rule))
    if problems:
        raise InvalidRequestError("no teams can begin with this", tuple(problems))
    sections: dict[str, Any] = {} if has_scheduler else {"schedulerConfig": dict(SCHEDULER)}
    sections["teams"] = [_team(wish, wanted.style, divided) for wish in wanted.teams]
    if wanted.style is Style.SHARED_POOL and not pool_is_native:
        sections["sharedPool"] = {"team": "shared-pool", "takes": "remainder"}
    return sections


def _not_there(types: Sequence[str], usable: Mapping[str, TypeCapacity]) -> Iterator[Violation]:
    counted = ", ".join(usable) or "none"
    if not types:
        yield Violation("--instance-type", "all", "must count now, and no node of any does")
    for name in sorted({*types} - usable.keys()):
        yield Violation("--instance-type", name, f"must have nodes that count now; these have: {counted}")


def _divided(wanted: FirstTeams, capacity: TypeCapacity) -> tuple[str, dict[str, int]]:
    """Return the unit and what each team has of a type: the largest unit of which everybody can have one at least."""
    teams = {team.name: team for team in wanted.teams}  # what is named twice the document's rules refuse
    for unit, whole in _units(capacity):
        if whole >= len(teams):
            total = max(whole // 2, len(teams)) if wanted.style is Style.SHARED_POOL else whole
            return unit, divide(total, [Party(team.name, team.parts, floor=1) for team in teams.values()])
    return "Count", dict.fromkeys(teams, 0)


def _units(capacity: TypeCapacity) -> Iterator[tuple[str, int]]:
    usable, instance = capacity.line.usable, capacity.per_instance
    yield "Count", usable
    if accelerators := capacity.resources.accelerators if capacity.resources else 0:
        yield "Accelerators", usable * accelerators
    elif instance.get(CPU):
        yield "VCpu", usable * (instance[CPU] // 1000)


def _team(wish: TeamWish, style: Style, divided: Mapping[str, tuple[str, dict[str, int]]]) -> dict[str, Any]:
    rows = [{"InstanceType": name, unit: amounts[wish.name]} for name, (unit, amounts) in divided.items()]
    quota = {
        "ComputeQuotaResources": rows,
        "ResourceSharingConfig": dict(SETTINGS[style]),
        "PreemptTeamTasks": "LowerPriority",
    }
    return {"name": wish.name, "quota": quota, "fairShareWeight": WEIGHT}
