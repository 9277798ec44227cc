"""Keep what happened in the stack, in order: the story that the demo prints and that tests ask about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from taskgov_embedded.virtual_time.clock import VirtualClock

Kind = Literal[
    "event",
    "delivery",
    "execution",
    "state",
    "invocation",
    "write",
    "denied",
    "fault",
    "settled",
    "note",
    "deployment",
    "alarm",
]


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened. `what` is a short sentence, `detail` the data behind it."""

    time: datetime
    kind: Kind
    what: str
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.time:%H:%M:%S} {self.kind:<10} {self.what}"


class Timeline:
    """Moments in the order in which they happened."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._moments: list[Moment] = []
        self.listeners: list[Callable[[Moment], None]] = []
        """Called with each moment after it was noted."""

    def add(self, kind: Kind, what: str, **detail: Any) -> None:
        """Note that something happens now."""
        moment = Moment(self._clock.now, kind, what, detail)
        self._moments.append(moment)
        for listener in self.listeners:
            listener(moment)

    def of(self, *kinds: Kind) -> list[Moment]:
        """Return the moments of these kinds."""
        return [moment for moment in self._moments if moment.kind in kinds]

    def since(self, place: int) -> list[Moment]:
        """Return what happened after the first `place` moments (see `len`)."""
        return self._moments[place:]

    def __iter__(self) -> Iterator[Moment]:
        return iter(self._moments)

    def __len__(self) -> int:
        return len(self._moments)

    def __str__(self) -> str:
        return "\n".join(map(str, self._moments))
