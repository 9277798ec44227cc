"""What is known of a job before it runs, and of jobs that ran.

Times are seconds on any one clock, durations are seconds.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

Group = tuple[str, ...]
"""What similar jobs have in common."""


class Chance(Protocol):
    """A source of random numbers: `random.Random` with a seed, so that one seed always gives the same futures."""

    def random(self) -> float:
        """Return a number in [0, 1)."""
        ...


class Request(NamedTuple):
    """A job's team, GPUs, submitter (empty if unknown) and declared time limit in seconds."""

    team: str
    gpus: int
    owner: str = ""
    limit: float | None = None
    size: int = 0
    """At least so many jobs are in its batch, as `taskgov.estimates.batches.size_class` says; 0 if unknown."""
    batch: int = 0
    """The batch: jobs that are `alike` and have the same number here were submitted together; 0 if unknown."""


def groups_of(request: Request) -> Iterator[Group]:
    """Yield the groups of a job, narrowest first, without its own batch.

    Example:
        >>> list(groups_of(Request("a", 8)))
        [('team', 'a', '8'), ('team', 'a'), ('gpus', '8'), ()]

    """
    if request.size:
        yield "size", request.team, request.owner, str(request.gpus), str(request.size)
    if request.owner:
        yield "owner", request.team, request.owner, str(request.gpus)
        yield "owner", request.team, request.owner
    yield "team", request.team, str(request.gpus)
    yield "team", request.team
    yield "gpus", str(request.gpus)
    yield ()


def narrowest(request: Request) -> Group:
    """Return the narrowest group of a job."""
    return next(groups_of(request))


def alike(request: Request) -> Group:
    """Return the group of a job whose jobs are of one batch if they are submitted together."""
    return next(groups_of(request._replace(size=0)))


def own_batch(request: Request) -> Group:
    """Return the batch of a job as a group; none if it is unknown or has one or two jobs.

    Example:
        >>> own_batch(Request("a", 8, size=3, batch=1700000000))
        ('batch', 'a', '', '8', '1700000000')
        >>> own_batch(Request("a", 8, size=1, batch=1700000000))
        ()

    """
    if request.size <= 1 or not request.batch:
        return ()
    return "batch", request.team, request.owner, str(request.gpus), str(request.batch)


def of_another_batch(request: Request) -> Request:
    """Return the request of a job like this one that is not of its batch."""
    return request._replace(batch=0) if request.batch else request


class Ran(NamedTuple):
    """A job that started: how long it ran, and whether it ended by itself.

    For a job that still runs or lost its quota, `ended` is False and `seconds` is a lower bound.
    """

    request: Request
    started: float
    seconds: float
    ended: bool


class Arrival(NamedTuple):
    """A job and its time of arrival."""

    request: Request
    at: float


def sound(ran: Ran, now: float) -> bool:
    """Return whether a run is plausible: it started before now, is not negative and did not end after now.

    A clock that was reset or a damaged record can produce other runs, which callers leave out.

    Example:
        >>> sound(Ran(Request("a", 1), 10, 5, ended=True), 20), sound(Ran(Request("a", 1), 10, 50, ended=True), 20)
        (True, False)

    """
    return isfinite(ran.seconds) and ran.started <= now and 0 <= ran.seconds <= now - ran.started + 1
