"""How much longer will this job run? Laws of its group, wider groups where a group has few jobs.

| group, the narrowest first | where |
| --- | --- |
| team, owner and GPUs; team and owner | the owner is known |
| team and GPUs; team | |
| GPUs; everybody | |

Each law counts the jobs that started last, as many as it takes for `LAST` ends of a team (or owner) and GPUs and `MORE`
of a wider group: of a burst nearly all still run, and those that ended already are the short ones. A wider group counts
as `WIDER` jobs of a narrower one, so that a group without history is its wider group, and one with 60 jobs is nearly
itself alone. Of a job that runs already, the groups count by how many of their jobs got as old.
Nothing at all is known (from a minute to a week, each length as likely as its double) with a weight of `VAGUE` beside
the square of how many jobs everybody's law counts: with 3 jobs that is two of three draws, with 60 one of 180. So an
estimate from a handful of records is never sharp.
"""

from __future__ import annotations

from collections import Counter
from math import inf, sqrt
from typing import TYPE_CHECKING, Final

from taskgov.estimates.requests import sound
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
"""What a job counts that runs longer than all of a group: between none, which is early, and one, which is late."""
LONGEST: Final = 60 * 86400.0
"""No run time that is drawn is longer."""

Group = tuple[str, ...]
_NOTHING: Final = Law(())


def groups_of(request: Request) -> Iterator[Group]:
    """Give the groups of a job, the narrowest first.

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


def _most(group: Group) -> int:
    """Return of how many jobs of a group the ends count."""
    narrow = {"team": 3, "owner": 4}
    return LAST if group and len(group) == narrow.get(group[0]) else MORE


class Prospect:
    """The laws of one job from its age on, each with its weight."""

    __slots__ = ("age", "laws", "limit")

    def __init__(self, laws: list[tuple[float, Law]], age: float, limit: float | None) -> None:
        """Take laws, the narrowest first, with sums of weights that end at 1."""
        self.laws, self.age, self.limit = laws, age, limit

    def draw(self, which: float, part: float) -> float:
        """Return a run time in all, in seconds, longer than the age: two numbers from 0 up to 1 say which.

        `which` takes the law, `part` the place in it. Beyond the end of a law a wider one is used.
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
        if seconds is None and age > 0:  # nobody is known to have run longer: the longer it ran, the longer it will
            seconds = max(age, SHORTEST) / sqrt(max(1.0 - part, 1e-9))
        elif seconds is None:
            seconds = SHORTEST * (WEEK / SHORTEST) ** part
        seconds = max(min(seconds, LONGEST), self.age + 1.0)
        return seconds if self.limit is None else max(min(seconds, self.limit), self.age + 1.0)


class RunTimes:
    """The laws of all groups of a history; runs that cannot have been by `now` are left out."""

    def __init__(self, history: Iterable[Ran], now: float = inf) -> None:
        self._seen: dict[Group, list[tuple[float, bool]]] = {(): []}
        ended: Counter[Group] = Counter()
        for ran in sorted((ran for ran in history if sound(ran, now)), key=lambda ran: ran.started, reverse=True):
            for group in groups_of(ran.request):
                seen = self._seen.setdefault(group, [])
                if ended[group] < _most(group):
                    seen.append((ran.seconds, ran.ended))
                    ended[group] += ran.ended
        self._laws: dict[Group, Law] = {}

    def law(self, group: Group) -> Law:
        """Return the law of a group; one of nobody has no steps."""
        law = self._laws.get(group)
        if law is None:
            law = self._laws[group] = Law(self._seen.get(group, ()), next_one=NEXT)
        return law

    def known(self, team: str) -> int:
        """Return how many of a team's jobs its law counts."""
        return self.law(("team", team)).count

    def prospect(self, request: Request, age: float = 0.0) -> Prospect:
        """Return the law of a job of this age, 0 for one that has not started."""
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
        return Prospect([*found, (1.0, _NOTHING)], age, request.limit)
