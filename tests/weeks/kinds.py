"""The kinds of events that are drawn from: methods of a state machine, some often, and what they leave."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from hypothesis import strategies as st


@dataclass(frozen=True)
class Event:
    """One kind of event: how often it is drawn, with what, and when it can happen."""

    often: int
    arguments: Mapping[str, st.SearchStrategy[Any]]
    possible: Callable[[Any], bool]


EVENTS: Final[dict[str, Event]] = {}
Method = TypeVar("Method", bound=Callable[..., None])


def event(
    *, often: int = 1, possible: Callable[[Any], bool] = lambda _: True, **arguments: st.SearchStrategy[Any]
) -> Callable[[Method], Method]:
    """Let a method be an event: it is called with what is drawn for each argument; with `drawn` it draws more."""

    def keep(method: Method) -> Method:
        EVENTS[method.__name__] = Event(often, arguments, possible)
        return method

    return keep


@dataclass(frozen=True)
class Resting:
    """A cluster on which nothing is to be done, until a moment is worth another run."""

    recheck_at: datetime | None


@dataclass(frozen=True)
class BrokenOff:
    """A run that ends after some waves, and some writes of the next one."""

    waves: int
    writes: int
    lost: bool
    """The record of the last write was not kept, only that it was about to be made."""
