"""The distribution of how long a job will run, from the run times of similar jobs. Small groups borrow from wider ones.

| group, narrowest first | used if |
| --- | --- |
| team, owner and GPUs; team and owner | the owner is known |
| team and GPUs; team | |
| GPUs; everybody | |

Each group takes the jobs that started last, until `LAST` of them have ended (team or owner, and GPUs) or `MORE` (wider
groups). Taking a number of ends, not of jobs, avoids a bias: most jobs of a recent burst still run, and those that have
ended are the short ones.

A wider group counts as `WIDER` more jobs of the narrower one that reach each age (`taskgov.estimates.run_law`), without
the jobs that narrower groups have already: counted twice, the longest of them would make the mean too long. A group
without history therefore equals its wider group, and how long its oldest jobs run on is mostly taken from there.

What is assumed without any history counts as `VAGUE` / n ** 2 more jobs, where n jobs of everybody have ended: 6.7 jobs
beside 3, 0.0015 beside 200. An estimate from a handful of ends is therefore never sharp, however many jobs run.
"""

from __future__ import annotations

from collections import Counter
from math import erfc, inf, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.requests import groups_of, narrowest, sound
from taskgov.estimates.run_law import NORMAL, SHORTEST, VAGUE_LAW, combined

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskgov.estimates.requests import Group, Ran, Request
    from taskgov.estimates.run_law import RunLaw

LAST: Final = 150
MORE: Final = 300
WIDER: Final = 3.0
VAGUE: Final = 60.0
LONGEST: Final = 60 * 86400.0
"""Longest run time that is drawn, in seconds."""
LEAST: Final = 1e-9
"""No quantile is nearer to 1 than this."""


def _ends_taken(group: Group) -> int:
    """Return how many ended jobs the law of a group takes."""
    narrow = {"team": 3, "owner": 4}
    return LAST if group and len(group) == narrow.get(group[0]) else MORE


class Prospect(NamedTuple):
    """The distribution of one job's total run time, given its age."""

    law: RunLaw
    age: float
    """Seconds."""
    limit: float
    below: float
    """The probability to run at most as long as its age; 0 if it has not started."""

    def seconds(self, score: float) -> float:
        """Return the total run time at a normal score, longer than the age, and within the limit if the age is."""
        rest = max(0.5 * erfc(score / sqrt(2.0)), LEAST)
        if self.below >= 1.0:  # no known job ran longer: the longer it has run, the longer it will run
            found = max(self.age, SHORTEST) / sqrt(rest)
        elif self.below > 0.0:
            found = self.law.seconds(NORMAL.inv_cdf(max(1.0 - (1.0 - self.below) * rest, LEAST)))
        else:
            found = self.law.seconds(score)
        return max(min(found, LONGEST, self.limit), self.age + 1.0)


class RunTimes:
    """The laws of all groups of a history. Runs that are not plausible at `now` are left out."""

    def __init__(self, history: Iterable[Ran], now: float = inf) -> None:
        """Take runs in any order."""
        self._jobs = sorted((ran for ran in history if sound(ran, now)), key=lambda ran: ran.started, reverse=True)
        self._of_group: dict[Group, list[int]] = {(): []}
        ended: Counter[Group] = Counter()
        for number, ran in enumerate(self._jobs):
            for group in groups_of(ran.request):
                if ended[group] < _ends_taken(group):
                    self._of_group.setdefault(group, []).append(number)
                    ended[group] += ran.ended
        self._ended = ended[()]
        self._laws: dict[Group, RunLaw] = {}

    @property
    def count(self) -> int:
        """The number of jobs in the law of everybody."""
        return len(self._of_group[()])

    def known(self, team: str) -> int:
        """Return the number of jobs in a team's law."""
        return len(self._of_group.get(("team", team), ()))

    def law(self, request: Request) -> RunLaw:
        """Return the distribution of the run times of jobs like this one."""
        group = narrowest(request)
        law = self._laws.get(group)
        if law is None:
            law = self._laws[group] = self._combined(groups_of(request))
        return law

    def _combined(self, groups: Iterable[Group]) -> RunLaw:
        levels, counted = [], set[int]()
        for group in groups:
            more = [number for number in self._of_group.get(group, ()) if number not in counted]
            if more:
                counted.update(more)
                levels.append([(self._jobs[number].seconds, self._jobs[number].ended) for number in more])
        law, strength = VAGUE_LAW, VAGUE / max(self._ended, 1) ** 2
        for seen in reversed(levels):
            law, strength = combined(seen, law, strength), WIDER
        return law

    def prospect(self, request: Request, age: float = 0.0) -> Prospect:
        """Return the distribution of a job's run time. `age`: seconds that it has run, 0 if it has not started."""
        law, limit = self.law(request), inf if request.limit is None else request.limit
        return Prospect(law, age, limit, law.below(age) if age > 0 else 0.0)
