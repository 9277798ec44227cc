"""The distribution of how long a job will run, from the run times of similar jobs. Small groups borrow from wider ones.

| group, narrowest first | used if |
| --- | --- |
| its own batch | it has three jobs or more |
| team, owner, GPUs and size of the batch | the batch is known |
| team, owner and GPUs; team and owner | the owner is known |
| team and GPUs; team | |
| GPUs; everybody | |

Each group takes the jobs that started last, until `LAST` of them have ended (up to team and GPUs) or `MORE` (wider
groups). Taking a number of ends, not of jobs, avoids a bias: most jobs of a recent burst still run, and those that have
ended are the short ones.

The last jobs of a busy team may all have started today: they do not show how many run for days. So at each of `AGES`,
the latest jobs that reached this age decide from there on. This also holds for running jobs.

A wider group counts as `WIDER` more jobs of the narrower one that reach each age (`taskgov.estimates.run_law`), without
the jobs that narrower groups have already: counted twice, the longest of them would make the mean too long. A group
without history therefore equals its wider group, and how long its oldest jobs run on is mostly taken from there.

The jobs of a batch tend to be equally long, so they show little about those of another batch, however many they are. If
nearly all jobs of a group are of one batch, its wider group therefore counts as `WIDER` batches.

Where few jobs of all these groups reached a running job's age, what is assumed without history counts too
(`taskgov.estimates.little_known`). The estimate is then wide, no matter how many shorter jobs are known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from functools import partial
from math import erfc, inf, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.little_known import doubt, vague_law, vague_law_of_old
from taskgov.estimates.requests import Request, groups_of, narrowest, own_batch, sound
from taskgov.estimates.run_law import NORMAL, Rest, combined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from taskgov.estimates.requests import Group, Ran
    from taskgov.estimates.run_law import RunLaw

LAST: Final = 150
MORE: Final = 300
WIDER: Final = 3.0
MATES: Final = 50
"""So many jobs of a batch are taken into a group, so that one batch does not fill it."""
LONGEST: Final = 60 * 86400.0
"""Longest run time that is drawn, in seconds."""
AGES: Final = tuple(600.0 * 3**step for step in range(8))
"""At each of these ages, 10 minutes to 15 days in seconds, the latest jobs that reached it decide from there on."""
NEARLY_ALL: Final = 0.9
"""If so much of a distribution is below a running job's age, the job has one of its own."""
FEW: Final = 10
"""So does one that at most so many known jobs outlived."""
LONGEST_KNOWN: Final = 20
"""At least so many of the longest known jobs show how long old jobs run on."""
MOST: Final = 20_000
"""How many of the latest jobs that reached an age show how long old jobs run on."""
LEAST: Final = 1e-9
"""No quantile is nearer to 1 than this."""


def _ends_taken(group: Group) -> int:
    """Return how many ended jobs the law of a group takes."""
    narrow = {"team": 3, "owner": 4, "size": 5}
    return LAST if group and len(group) == narrow.get(group[0]) else MORE


NOBODY: Final = Request("", 0)
"""Has the distribution of everybody."""


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
        if self.below > 0.0:
            found = self.law.seconds(NORMAL.inv_cdf(max(1.0 - (1.0 - self.below) * rest, LEAST)))
        else:
            found = self.law.seconds(score)
        return max(min(found, LONGEST, self.limit), self.age + 1.0)


def reached(age: float) -> float:
    """Return the last of `AGES` up to an age; 0 below the first one.

    Example:
        >>> reached(30.0), reached(1800.0), reached(2000.0)
        (0.0, 1800.0, 1800.0)

    """
    place = bisect_right(AGES, age)
    return AGES[place - 1] if place else 0.0


class RunTimes:
    """The laws of all groups of a history. Runs that are not plausible at `now` are left out."""

    def __init__(self, history: Iterable[Ran], now: float = inf) -> None:
        """Take runs in any order."""
        self._jobs = sorted((ran for ran in history if sound(ran, now)), key=lambda ran: ran.started, reverse=True)
        self._pairs = [(ran.seconds, ran.ended) for ran in self._jobs]
        self._by_length = sorted((ran.seconds, number) for number, ran in enumerate(self._jobs))
        self._batch: list[int] = []
        """The batch of each job, by its first job; an unknown one is its own."""
        self._of_batch: dict[Group, list[int]] = {}
        self._longest: dict[Group, float] = {}
        """The longest run of each batch."""
        for number, ran in enumerate(self._jobs):
            batch = own_batch(ran.request)
            self._batch.append(self._of_batch[batch][0] if batch in self._of_batch else number)
            if batch:
                self._of_batch.setdefault(batch, []).append(number)
                self._longest[batch] = max(self._longest.get(batch, 0.0), ran.seconds)
        self._groups: dict[Group, Sequence[tuple[Group, int]]] = {}
        """The groups of jobs with the same narrowest group, and how many ended jobs the law of each takes."""
        self._laws: dict[tuple[Group, Group, float], RunLaw] = {}
        self._steps: dict[tuple[tuple[int, ...], int], RunLaw] = {}
        """The law of a group's jobs and its wider groups, by the jobs and the law (its `id`) of the wider groups."""
        self._assumptions: dict[float, RunLaw] = {}
        self._doubts: dict[float, Callable[[float], float]] = {}
        self._longer: dict[float, Mapping[Group, Sequence[int]]] = {}

    @property
    def count(self) -> int:
        """The number of jobs in the law of everybody."""
        return len(self._that_ran_longer(0.0).get((), ()))

    def known(self, team: str) -> int:
        """Return the number of jobs in a team's law."""
        return len(self._that_ran_longer(0.0).get(("team", team), ()))

    def law(self, request: Request, age: float = 0.0) -> RunLaw:
        """Return a distribution of the run times of jobs like this one that holds for those of this age, in seconds."""
        law = self._law_since(request, age if self._few_ran_longer(age) else reached(age))
        return law if law.below(age) < NEARLY_ALL else self._law_since(request, age)

    def _law_since(self, request: Request, since: float) -> RunLaw:
        """Return the distribution of the run times that exceed a time."""
        batch = own_batch(request)
        key = batch if self._longest.get(batch, 0.0) > since else (), narrowest(request), since
        law = self._laws.get(key)
        if law is None:
            law = self._laws[key] = self._combined(request, since, self._rest(request, since))
        return law

    def _rest(self, request: Request, since: float) -> Rest | None:
        """Return the distribution of run times that exceed the next of `AGES`, if a known job ran that long."""
        until = next((age for age in AGES if age > since), inf)
        known = self._shorter(until) < len(self._by_length)
        return Rest(until, self._law_since(request, until)) if known else None

    def _few_ran_longer(self, age: float) -> bool:
        return age > 0.0 and len(self._by_length) - self._shorter(age) <= FEW

    def _shorter(self, age: float) -> int:
        """Return how many of the known jobs, by length, ran at most this long."""
        return bisect_right(self._by_length, (age, len(self._jobs)))

    def _combined(self, request: Request, since: float, rest: Rest | None) -> RunLaw:
        own = self._of_own_batch(request, since)
        levels, counted = [own] if own else [], set(own)
        of_group = self._that_ran_longer(since)
        for group in groups_of(request):
            more = tuple(number for number in of_group.get(group, ()) if number not in counted)
            if more:
                counted.update(more)
                levels.append(more)
        law = self._assumed(since)
        for place in range(len(levels) - 1, -1, -1):
            numbers = levels[place]
            if place == len(levels) - 1 and numbers is not own:
                strength = self._doubt(since)
            else:
                strength = partial(_always, WIDER * (1.0 if numbers is own else self._jobs_of_one(numbers)))
            if place == 0:
                return combined(self._seen(numbers), law, strength, since, rest)
            # Many requests have the same wider groups. How their jobs run on after `rest.since` is not used.
            step = numbers, id(law)
            found = self._steps.get(step)
            if found is None:
                found = self._steps[step] = combined(
                    self._seen(numbers), law, strength, since, self._rest(NOBODY, since)
                )
            law = found
        return law

    def _seen(self, numbers: Sequence[int]) -> Sequence[tuple[float, bool]]:
        """Return how long jobs ran, and whether they ended then."""
        return [self._pairs[number] for number in numbers]

    def _of_own_batch(self, request: Request, since: float) -> tuple[int, ...]:
        """Return the jobs of a job's batch that ran longer than a time, as many as count."""
        found, ended = list[int](), 0
        for number in self._of_batch.get(own_batch(request), ()):
            if ended < LAST and self._jobs[number].seconds > since:
                found.append(number)
                ended += self._jobs[number].ended
        return tuple(found)

    def _jobs_of_one(self, numbers: Sequence[int]) -> float:
        """Return how many jobs count as one: all of them if they are one batch; one if they are two batches or more."""
        of_batch = Counter(self._batch[number] for number in numbers)
        together = sum(count * count for count in of_batch.values()) / max(len(numbers), 1)
        several = len(numbers) / together if together else 2.0
        return float(together ** min(max(2.0 - several, 0.0), 1.0))

    def _doubt(self, since: float) -> Callable[[float], float]:
        found = self._doubts.get(since)
        if found is None:
            numbers = self._that_ran_longer(since).get((), ())
            found = self._doubts[since] = doubt(self._seen(numbers), self._jobs_of_one(numbers))
        return found

    def _assumed(self, since: float) -> RunLaw:
        law = self._assumptions.get(since)
        if law is None:
            longest = self._by_length[min(self._shorter(since), max(len(self._by_length) - LONGEST_KNOWN, 0)) :]
            seen = [(seconds, self._jobs[number].ended) for seconds, number in longest]
            law = self._assumptions[since] = vague_law_of_old(since, seen) if since else vague_law()
        return law

    def _that_ran_longer(self, since: float) -> Mapping[Group, Sequence[int]]:
        """Return the jobs of each group that ran longer than a time, latest first, as many as its law takes."""
        found = self._longer.get(since)
        if found is None:
            numbers: Sequence[int] = range(len(self._jobs))
            if since:
                numbers = sorted(number for _, number in self._by_length[self._shorter(since) :])[:MOST]
            of_group: dict[Group, list[int]] = {}
            ended: Counter[Group] = Counter()
            of_batch: Counter[int] = Counter()
            for number in numbers:
                batch = self._batch[number]
                of_batch[batch] += 1
                if of_batch[batch] > MATES:
                    continue
                request, _, _, has_ended = self._jobs[number]
                first = narrowest(request)
                groups = self._groups.get(first)
                if groups is None:
                    groups = self._groups[first] = [(group, _ends_taken(group)) for group in groups_of(request)]
                for group, most in groups:
                    if ended[group] < most:
                        of_group.setdefault(group, []).append(number)
                        ended[group] += has_ended
            found = self._longer[since] = of_group
        return found

    def prospect(self, request: Request, age: float = 0.0) -> Prospect:
        """Return the distribution of a job's run time. `age`: seconds that it has run, 0 if it has not started."""
        known_age, limit = min(age, LONGEST), inf if request.limit is None else request.limit
        law = self.law(request, known_age)
        return Prospect(law, age, limit, law.below(known_age) if age > 0 else 0.0)


def _always(jobs: float, age: float) -> float:  # noqa: ARG001 -- at all ages
    return jobs
