"""What is known of a job before it runs, and what is known of jobs that ran.

Moments are seconds on any one clock, lengths are seconds.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Chance(Protocol):
    """Where numbers by chance come from: `random.Random` with a seed, so that the same seed gives the same futures."""

    def random(self) -> float:
        """Return a number from 0 up to 1, without 1."""
        ...


class Request(NamedTuple):
    """Whose a job is, how many GPUs it holds, who submitted it (empty: not known), and its declared time limit."""

    team: str
    gpus: int
    owner: str = ""
    limit: float | None = None


class Ran(NamedTuple):
    """A job that started: for how long it ran, and whether it ended by itself.

    One that still runs, or lost its quota, ran for at least so long (`ended` is False).
    """

    request: Request
    started: float
    seconds: float
    ended: bool


class Arrival(NamedTuple):
    """A job that came, and when."""

    request: Request
    at: float


def sound(ran: Ran, now: float) -> bool:
    """Say whether a run may have been: it began before now, took no negative time and did not end after now.

    A clock that was set, or a damaged record, gives others; they are left out.

    Example:
        >>> sound(Ran(Request("a", 1), 10, 5, ended=True), 20), sound(Ran(Request("a", 1), 10, 50, ended=True), 20)
        (True, False)

    """
    return ran.started <= now and 0 <= ran.seconds <= now - ran.started + 1
