"""Score estimates of starts that were kept, by the rules of `taskgov.estimates.scoring`, beside the aims."""

from __future__ import annotations

import json
import random
from itertools import chain
from math import inf, isfinite, nan
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from taskgov.estimates.quantiles import HALF, NINE, Estimate, quantile
from taskgov.estimates.recalibration import Correction, Outcome, corrections, of_use
from taskgov.estimates.scoring import Scored, by_team, score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PARTS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, HALF, 0.6, 0.7, 0.8, 0.85, NINE, 0.95)
"""Quantiles that are kept of each estimate."""
LEAST: Final = 100
"""A team with so many estimates has a line of its own."""
MOST: Final = 1000
"""With so many outcomes of a team, those that no longer count are dropped."""
DAY: Final = 86400.0
SPAN: Final = 3 * DAY
SAMPLES: Final = 200


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


class Figures(NamedTuple):
    """The figures of a table, as in `AIMS`. Parts are from 0 to 1, errors in seconds; NaN if no estimate counts."""

    half: float
    nine: float
    worst: float
    within: float
    error: float
    best: float
    ratio: float
    spread: float


def table(title: str, kept: Sequence[Kept], first: float, cpu: str) -> Iterator[str]:
    """Give the table of a size: estimates of submissions from a moment on count, earlier ones only correct them."""
    sides = [given_of(kept, correct=correct) for correct in (True, False)]
    given, raw = ([one for one in side if one.kept.came >= first] for side in sides)
    jobs = sum(one.kept.number == 0 for one in given)
    found, teams = score([one.scored for one in given]), by_team([one.scored for one in given], LEAST)
    size = f"{title}: {len(given):,} estimates of {jobs:,} jobs"
    yield f"| {size} | required | stretch | measured | range | not recalibrated |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for aim, measured, spread, before in zip(AIMS, figures(given), ranges(given), figures(raw), strict=True):
        cells = aim.required, aim.stretch, aim.text(measured), " to ".join(map(aim.text, spread)), aim.text(before)
        yield f"| {aim.name} | {' | '.join(cells)} |"
    yield f"| CPU for 100 futures with 250 waiting jobs | at most 5 s | at most 2 s | {cpu} | | |"
    yield ""
    yield f"{found.beyond} beyond the horizon; {found.open} whose nine of ten is neither over nor hit"
    yield f"range: nine of ten of {SAMPLES} random choices of as many spans of {SPAN / DAY:.0f} days"
    for team, own in teams.items():
        yield f"{team}: {own.number:,} estimates, P50 covers {_percent(own.half)}, P90 covers {_percent(own.nine)}"


def figures(given: Sequence[Given]) -> Figures:
    """Return the figures of some estimates."""
    scored = [one.scored for one in given]
    total, teams = score(scored), by_team(scored, LEAST).values()
    worst = min((team.nine for team in teams if isfinite(team.nine)), default=nan)
    own, best = errors(given)
    ratio = own / best if best else nan
    return Figures(total.half, total.nine, worst, total.within, own, best, ratio, total.spread)


def ranges(given: Sequence[Given], samples: int = SAMPLES, seed: int = 1) -> list[tuple[float, float]]:
    """Return from where to where each figure is in nine of ten samples (a block bootstrap).

    A sample has as many spans of `SPAN` as there are, each chosen at random from all of them. Whole spans are chosen
    because the jobs of a burst share their fate: single estimates would make the ranges far too narrow.
    """
    spans: dict[float, list[Given]] = {}
    for one in given:
        spans.setdefault(one.kept.at // SPAN, []).append(one)
    chance, choices = random.Random(seed), list(spans.values())
    found = [figures([*chain.from_iterable(chance.choices(choices, k=len(choices)))]) for _ in range(samples)]
    return [_middle(list(filter(isfinite, values))) for values in zip(*found, strict=True)]


def _middle(values: Sequence[float]) -> tuple[float, float]:
    """Return the 5th and the 95th percentile."""
    ordered = sorted(values)
    return (quantile(ordered, 0.05), quantile(ordered, 0.95)) if ordered else (nan, nan)


def _percent(part: float) -> str:
    """Return a part as text. All estimates of a team can be beyond the horizon: none of them is right or wrong."""
    return f"{part:.0%}" if isfinite(part) else "n/a"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if isfinite(seconds) else "n/a"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else "n/a"


def _times(value: float) -> str:
    return f"{value:.1f}" if isfinite(value) else "n/a"


class Aim(NamedTuple):
    """A figure: its name, what is asked of it, and how it is written."""

    name: str
    required: str
    stretch: str
    text: Callable[[float], str]


AIMS: Final = (
    Aim("P50 covers", "45 to 55 %", "", _percent),
    Aim("P90 covers", "85 to 95 %", "88 to 92 %", _percent),
    Aim(f"P90 covers, the worst team of {LEAST} estimates or more", "at least 80 %", "", _percent),
    Aim("within a factor of 2, at submission", "at least 66 %", "at least 72 %", _percent),
    Aim("median error of P50", "", "", _minutes),
    Aim("of the best baseline", "", "", _minutes),
    Aim("one divided by the other", "at most 0.72", "at most 0.6", _ratio),
    Aim("median P90/P50, at submission", "at most 3", "at most 2.2", _times),
)


def errors(side: Sequence[Given]) -> tuple[float, float]:
    """Return the median error of the half, and that of the best baseline on the same estimates, in seconds."""
    counted = [one for one in side if one.scored.started and isfinite(one.scored.estimate.half)]
    if not counted:
        return nan, nan
    own = median(abs(one.scored.estimate.half - one.scored.waited) for one in counted)
    best = min(median(abs(one.kept.simple[place] - one.scored.waited) for one in counted) for place in range(3))
    return own, best
