"""The settings that advice tries: a few rules for quotas, borrow limits and preemption.

Quotas are never searched one by one: such a search overfits the past. Rules have only a few choices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt
from typing import TYPE_CHECKING, Final

from taskgov.advice.past import Use
from taskgov.advice.rules import Rule
from taskgov.division import Party, divide

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from taskgov.advice.today import TeamToday, Today

NO_LIMIT: Final = 10_000
"""The highest borrow limit that the API accepts, in percent: in effect no limit."""
LIMITS: Final = (50, 100, 200, 500, NO_LIMIT)


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A quota rule, the borrow limit of all borrowers (percent; None: today's limits), and preemption settings."""

    rule: Rule
    limit: int | None = None
    fair: bool = True
    """`FairShare`: the team that borrows least is served first, and may preempt those that borrow more."""
    never: bool | None = None
    """True: `PreemptTeamTasks: Never` for all teams; False: `LowerPriority`; None: as each team has it."""


@dataclass(frozen=True, slots=True)
class TeamTerms:
    """A team in a replay: its GPUs, how many it may borrow (None: it neither lends nor borrows), and its settings."""

    quota: int
    limit: int | None
    weight: int
    never: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """The settings of a replay: the terms of each team."""

    teams: tuple[tuple[str, TeamTerms], ...]
    fair: bool


def other_limits(today: Today) -> tuple[int, ...]:
    """Return the limits to try: all, except one that every team has today."""
    limits = {team.limit for team in today.teams if team.borrows}
    return tuple(limit for limit in LIMITS if limits and limits != {limit})


def terms_of(candidate: Candidate, use: Mapping[str, Use], today: Today) -> Terms:
    """Return the terms of all teams under a candidate, given what they used."""
    quotas = quotas_of(candidate.rule, use, today)
    return Terms(tuple((team.team, _terms(candidate, team, quotas[team.team])) for team in today.teams), candidate.fair)


def _terms(candidate: Candidate, team: TeamToday, quota: int) -> TeamTerms:
    percent = team.limit if candidate.limit is None or not team.borrows else candidate.limit
    limit = quota * percent // 100 if team.absolute is None else team.absolute
    never = team.never if candidate.never is None or team.why_held == "it is frozen" else candidate.never
    return TeamTerms(quota, limit if team.shares else None, team.weight, never)


def alone(terms: Terms) -> Terms:
    """Return terms with the same quotas and no lending or borrowing."""
    return replace(terms, teams=tuple((team, replace(own, limit=None)) for team, own in terms.teams))


def quotas_of(rule: Rule, use: Mapping[str, Use], today: Today) -> dict[str, int]:
    """Return the quotas of a rule, in GPUs. Quotas that may move are divided again, within bounds, in whole units."""
    quotas = {team.team: team.quota for team in today.teams}
    moving = [team for team in today.teams if team.moves]
    if rule is Rule.TODAY or not moving:
        return quotas
    unit = today.unit
    total = sum(team.quota for team in moving) // unit
    weights = _weights(rule, [use.get(team.team, Use()) for team in moving], total * unit)
    parties = [
        Party(team.team, weight, team.least // unit, None if team.most is None else team.most // unit)
        for team, weight in zip(moving, weights, strict=True)
    ]
    return quotas | {team: units * unit for team, units in divide(total, parties).items()}


def _weights(rule: Rule, use: Sequence[Use], total: int) -> list[int]:
    match rule:
        case Rule.USE:
            return [round(own.gpu_seconds) for own in use]
        case Rule.PEAK:
            return [round(1000 * own.peak) for own in use]
        case Rule.ROOT:
            return [isqrt(round(1_000_000 * own.gpu_seconds)) for own in use]
        case Rule.WATER:
            return [round(1000 * level) for level in _max_min_fair([own.peak for own in use], total)]
        case Rule.EQUAL | Rule.TODAY:
            return [1] * len(use)


def _max_min_fair(needs: Sequence[float], total: float) -> Iterator[float]:
    """Yield a max-min fair part for each need; the rest is added in proportion to the needs."""
    left, given = total, dict[int, float]()
    order = sorted(range(len(needs)), key=lambda place: needs[place])
    for number, place in enumerate(order):
        given[place] = min(needs[place], left / (len(needs) - number))
        left -= given[place]
    whole = sum(needs) or 1.0
    yield from (given[place] + max(0.0, left) * need / whole for place, need in enumerate(needs))
