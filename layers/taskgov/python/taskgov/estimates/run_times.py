"""Draw how long a job will run, from the run times of similar jobs. Small groups borrow from wider ones.

A *law* is the distribution of the run times of a group (`taskgov.estimates.survival`).

| group, narrowest first | used if |
| --- | --- |
| team, owner and GPUs; team and owner | the owner is known |
| team and GPUs; team | |
| GPUs; everybody | |

Each law takes the jobs that started last, until `LAST` of them have ended (team or owner, and GPUs) or `MORE` (wider
groups). Taking a number of ends, not of jobs, avoids a bias: most jobs of a recent burst still run, and those that have
ended are the short ones.

Weights: a wider group counts as `WIDER` jobs of the narrower one. A group without history therefore equals its wider
group, and one with 60 jobs hardly uses it. For a job that already runs, each group counts only its jobs that reached
the same age.

A vague prior (log-uniform from a minute to a week) has the weight `VAGUE` / (n * n + `VAGUE`), where n is the number of
jobs in the law of everybody: two of three draws with 3 jobs, one of 180 with 60. An estimate from a handful of records
is therefore never sharp.
"""

from __future__ import annotations

from collections import Counter
from math import inf, sqrt
from typing import TYPE_CHECKING, Final

from taskgov.estimates.requests import sound
from taskgov.estimates.shared_factor import Shared, shared_of
from taskgov.estimates.survival import Law

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from taskgov.estimates.requests import Ran, Request

LAST: Final = 60
MORE: Final = 300
WIDER: Final = 5.0
VAGUE: Final = 20.0
SHORTEST: Final = 60.0
WEEK: Final = 7 * 86400.0
NEXT: Final = 0.5
"""Weight of a job that runs longer than all of a group. With 0 estimates are too early, with 1 too late."""
LONGEST: Final = 60 * 86400.0
"""Longest run time that is drawn, in seconds."""

Group = tuple[str, ...]
_EMPTY: Final = Law(())


def groups_of(request: Request) -> Iterator[Group]:
    """Yield the groups of a job, narrowest first.

    Example:
        >>> from taskgov.estimates.requests import Request
        >>> list(groups_of(Request("a", 8)))
        [('team', 'a', '8'), ('team', 'a'), ('gpus', '8'), ()]

    """
    if request.owner:
        yield "owner", request.team, request.owner, str(request.gpus)
        yield "owner", request.team, request.owner
    yield "team", request.team, str(request.gpus)
    yield "team", request.team
    yield "gpus", str(request.gpus)
    yield ()


def _ends_taken(group: Group) -> int:
    """Return how many ended jobs the law of a group takes."""
    narrow = {"team": 3, "owner": 4}
    return LAST if group and len(group) == narrow.get(group[0]) else MORE


class Prospect:
    """The distribution of one job's total run time, given its age: a mixture of laws."""

    __slots__ = ("age", "laws", "limit")

    def __init__(self, laws: list[tuple[float, Law]], age: float, limit: float | None) -> None:
        """Take laws, narrowest first, each with its cumulative weight. The last weight is 1."""
        self.laws, self.age, self.limit = laws, age, limit

    def draw(self, which: float, part: float) -> float:
        """Return a total run time in seconds, longer than the age. `which` and `part` are random numbers in [0, 1).

        `which` selects the law, `part` the quantile in it. Beyond the end of a law, a wider one is used.
        """
        age, place = self.age, 0
        while place < len(self.laws) - 1 and self.laws[place][0] <= which:
            place += 1
        seconds: float | None = None
        for _, law in self.laws[place:]:
            left = law.longer_than(age)
            if left <= 0:
                continue
            target = left * (1.0 - part)
            seconds = law.between(1.0 - target, age)
            if seconds is not None:
                break
            rest = law.longer_than(law.last)
            part, age = 1.0 - target / rest, max(age, law.last)
        if seconds is None and age > 0:  # no known job ran longer: the longer it has run, the longer it will run
            seconds = max(age, SHORTEST) / sqrt(max(1.0 - part, 1e-9))
        elif seconds is None:
            seconds = SHORTEST * (WEEK / SHORTEST) ** part
        seconds = max(min(seconds, LONGEST), self.age + 1.0)
        return seconds if self.limit is None else max(min(seconds, self.limit), self.age + 1.0)


class RunTimes:
    """The laws of all groups of a history. Runs that are not plausible at `now` are left out."""

    def __init__(self, history: Iterable[Ran], now: float = inf) -> None:
        self._seen: dict[Group, list[tuple[float, bool]]] = {(): []}
        ended: Counter[Group] = Counter()
        for ran in sorted((ran for ran in history if sound(ran, now)), key=lambda ran: ran.started, reverse=True):
            for group in groups_of(ran.request):
                seen = self._seen.setdefault(group, [])
                if ended[group] < _ends_taken(group):
                    seen.append((ran.seconds, ran.ended))
                    ended[group] += ran.ended
        self._laws: dict[Group, Law] = {}
        self._shared: dict[tuple[str, float], Shared] = {}

    def law(self, group: Group) -> Law:
        """Return the law of a group. The law of an empty group has no steps."""
        law = self._laws.get(group)
        if law is None:
            law = self._laws[group] = Law(self._seen.get(group, ()), next_one=NEXT)
        return law

    def known(self, team: str) -> int:
        """Return the number of jobs in a team's law."""
        return self.law(("team", team)).count

    def shared(self, team: str, correlation: float) -> Shared:
        """Return the distribution of the number that a team's run times share, given the jobs that it started last."""
        found = self._shared.get((team, correlation))
        if found is None:
            group = "team", team
            found = self._shared[team, correlation] = shared_of(self.law(group), self._seen.get(group, ()), correlation)
        return found

    def prospect(self, request: Request, age: float = 0.0) -> Prospect:
        """Return the distribution of a job's run time. `age`: seconds that it has run, 0 if it has not started."""
        laws = [self.law(group) for group in groups_of(request)]
        shares: list[float] = []
        wider, counts, something = 1.0, 0.0, 0.0
        for law in reversed(laws):
            own = law.count * (law.longer_than(age) if age < law.last else 0.0)
            shares.append(own / (own + counts * wider) if own else 0.0)
            if not shares[1:]:
                something = own * own / (own * own + VAGUE)
            wider = (own + counts * wider) / (law.count + counts) if law.count + counts else 1.0
            counts = WIDER
        found, left = [], 1.0
        for law, share in zip(laws, reversed(shares), strict=True):
            if share:
                left *= 1.0 - share
                found.append((something * (1.0 - left), law))
        return Prospect([*found, (1.0, _EMPTY)], age, request.limit)
