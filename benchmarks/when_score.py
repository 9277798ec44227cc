"""Score estimates of starts that were kept, by the rules of `taskgov.estimates.scoring`, beside the aims."""

from __future__ import annotations

import json
from math import inf, isfinite, nan
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from taskgov.estimates.quantiles import HALF, NINE, Estimate
from taskgov.estimates.recalibration import Correction, Outcome, corrections, of_use
from taskgov.estimates.scoring import Scored, by_team, score

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PARTS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, HALF, 0.6, 0.7, 0.8, 0.85, NINE, 0.95)
"""Quantiles that are kept of each estimate."""
LEAST: Final = 100
"""A team with so many estimates has a line of its own."""
MOST: Final = 1000
"""With so many outcomes of a team, those that no longer count are dropped."""


class Kept(NamedTuple):
    """An estimate with everything that its score needs; moments and lengths in seconds."""

    at: float
    job: int
    team: str
    number: int
    """0 at submission, 1 after 60 s, 2 at a full hour."""
    came: float
    start: float
    waits: Sequence[float]
    """The quantiles `PARTS` of what the futures said."""
    simple: Sequence[float]
    """What the three baselines say."""
    futures: int
    took: float
    """Processor time."""

    @classmethod
    def read(cls, line: str) -> Self:
        """Return what a line of a file says."""
        return cls(*json.loads(line))

    def raw(self) -> Estimate:
        """Return the two quantiles."""
        return Estimate(self.waits[PARTS.index(HALF)], self.waits[PARTS.index(NINE)])


class Given(NamedTuple):
    """An estimate as it is given, and how it is scored."""

    kept: Kept
    scored: Scored


def given_of(kept: Sequence[Kept], *, correct: bool = True) -> list[Given]:
    """Return estimates as they are given, each corrected by the outcomes that were known at its moment.

    Those of one moment and team share a correction. What no longer counts in an account does not count here.
    """
    outcomes: dict[str, list[Outcome]] = {}
    end = max((one.at for one in kept), default=0.0)
    found = []
    shared: dict[tuple[float, str], Correction] = {}
    for one in sorted(kept, key=lambda one: (one.at, one.job)):
        raw = estimate = one.raw()
        if correct:
            key = (one.at, one.team)
            if key not in shared:
                shared = {key: _correction(outcomes, one.team, one.at)}
            estimate = shared[key].of(raw)
            outcomes.setdefault(one.team, []).append(Outcome(one.team, one.at, raw, estimate, one.start))
        started = one.start < inf
        waited = (one.start if started else end) - one.at
        found.append(Given(one, Scored(one.team, estimate, waited, started, at_submission=one.number == 0)))
    return found


def _correction(outcomes: dict[str, list[Outcome]], team: str, now: float) -> Correction:
    """Return the correction of a team by the outcomes of all teams."""
    own = outcomes.get(team, [])
    if len(own) >= MOST:
        seen = [one if one.start <= now else one._replace(start=inf) for one in own]
        own[:] = [own[place] for place in of_use(seen, now)]
    everybody = sorted((one for others in outcomes.values() for one in others), key=lambda one: one.made)
    return corrections([team], everybody, now)[team]


class Row(NamedTuple):
    """A line of the table: what was asked for and what was measured."""

    name: str
    required: str
    stretch: str
    measured: str
    raw: str


def table(title: str, kept: Sequence[Kept], first: float, cpu: str) -> Iterator[str]:
    """Give the table of a size: estimates of submissions from a moment on count, earlier ones only correct them."""
    sides = [[one for one in given_of(kept, correct=correct) if one.kept.came >= first] for correct in (True, False)]
    columns = [_cells(side) for side in sides]
    number = len(sides[0])
    jobs = sum(one.kept.number == 0 for one in sides[0])
    yield f"| {title}: {number:,} estimates of {jobs:,} jobs | required | stretch | measured | not recalibrated |"
    yield "| --- | --- | --- | --- | --- |"
    for (name, required, stretch), measured, raw in zip(AIMS, *columns, strict=True):
        yield f"| {name} | {required} | {stretch} | {measured} | {raw} |"
    yield f"| CPU for 100 futures with 250 waiting jobs | at most 5 s | at most 2 s | {cpu} | |"
    found = score([one.scored for one in sides[0]])
    yield ""
    yield f"{found.beyond} beyond the horizon; {found.open} whose nine of ten is neither over nor hit"
    for team, own in by_team([one.scored for one in sides[0]], LEAST).items():
        yield f"{team}: {own.number:,} estimates, P50 covers {_percent(own.half)}, P90 covers {_percent(own.nine)}"


AIMS: Final = (
    ("P50 covers", "45 to 55 %", ""),
    ("P90 covers", "85 to 95 %", "88 to 92 %"),
    (f"P90 covers, the worst team of {LEAST} estimates or more", "at least 80 %", ""),
    ("within a factor of 2, at submission", "at least 66 %", "at least 72 %"),
    ("median error of P50", "", ""),
    ("of the best baseline", "", ""),
    ("one divided by the other", "at most 0.72", "at most 0.6"),
    ("median P90/P50, at submission", "at most 3", "at most 2.2"),
)


def _cells(side: Sequence[Given]) -> list[str]:
    scored = [one.scored for one in side]
    total, teams = score(scored), by_team(scored, LEAST)
    own, best = errors(side)
    worst = min((team for team in teams if isfinite(teams[team].nine)), key=lambda team: teams[team].nine, default="")
    return [
        f"{total.half:.0%}",
        f"{total.nine:.0%}",
        f"{teams[worst].nine:.0%} ({worst})" if worst else "none",
        f"{total.within:.0%}",
        f"{own / 60:.0f} min",
        f"{best / 60:.0f} min",
        f"{own / best:.2f}" if best else "n/a",
        f"{total.spread:.1f}",
    ]


def _percent(part: float) -> str:
    """Return a part as text. All estimates of a team can be beyond the horizon: none of them is right or wrong."""
    return f"{part:.0%}" if isfinite(part) else "n/a"


def errors(side: Sequence[Given]) -> tuple[float, float]:
    """Return the median error of the half, and that of the best baseline on the same estimates, in seconds."""
    counted = [one for one in side if one.scored.started and isfinite(one.scored.estimate.half)]
    if not counted:
        return nan, nan
    own = median(abs(one.scored.estimate.half - one.scored.waited) for one in counted)
    best = min(median(abs(one.kept.simple[place] - one.scored.waited) for one in counted) for place in range(3))
    return own, best
