"""Draw future arrivals by resampling those of the last two weeks (a block bootstrap).

Each block of six hours is copied from the same six hours of one of the last 14 days, chosen at random. This keeps the
daily rhythm and the bursts. A random factor (`SPREAD`) scales the demand of a whole future. Blocks that were not
measured are never copied. If none of the 14 was, any other measured six hours of the last 14 days take their place.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from copy import copy
from functools import cached_property
from math import exp
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.estimates.batches import NO_BATCH, batches, new_batch
from taskgov.estimates.requests import alike

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskgov.estimates.requests import Arrival, Chance, Request

DAY: Final = 86400.0
BLOCK: Final = DAY / 4
DAYS: Final = 14
BLOCKS: Final = round(DAYS * DAY / BLOCK)
SPREAD: Final = 0.3
"""Standard deviation of the logarithm of a future's demand."""
_NORMAL: Final = NormalDist()


class Coming(NamedTuple):
    """A job that arrives in a future, `after` seconds from its beginning."""

    request: Request
    after: float
    batch: int = NO_BATCH
    """The batch that it is part of (`taskgov.estimates.batches`)."""


class Past:
    """The arrivals of a history, and the measured spans (start, end). Without spans, all of it counts as measured."""

    def __init__(
        self, arrivals: Sequence[Arrival], now: float, measured: Sequence[tuple[float, float]] | None = None
    ) -> None:
        """Take arrivals in any order. Those after `now` are left out."""
        self._arrivals = sorted((arrival for arrival in arrivals if arrival.at <= now), key=lambda come: come.at)
        self._moments = [arrival.at for arrival in self._arrivals]
        self.now = now
        first = self._moments[0] if self._moments else now
        spans = ((first, now),) if measured is None else tuple(measured)
        self._spans = spans

    @cached_property
    def requests(self) -> tuple[Request, ...]:
        """The distinct requests of the arrivals, in order of first arrival."""
        return tuple(dict.fromkeys(arrival.request for arrival in self._arrivals))

    @cached_property
    def rows(self) -> tuple[Sequence[float], Sequence[int]]:
        """The times of the arrivals, in order, and the index of each one's request in `requests`."""
        place = {request: number for number, request in enumerate(self.requests)}
        return array("d", self._moments), array("q", [place[arrival.request] for arrival in self._arrivals])

    @cached_property
    def batches(self) -> Sequence[int]:
        """The batch of each arrival, in order."""
        group = {request: alike(request) for request in self.requests}
        return array("q", batches([(group[arrival.request], arrival.at) for arrival in self._arrivals]))

    def later(self, now: float) -> Past:
        """Return the same past as of a slightly later time, with no new arrivals."""
        twin = copy(self)
        twin.now = now
        return twin

    def usable(self, first: float, last: float) -> bool:
        """Return whether at least nine tenths of a stretch of the past were measured."""
        seen = sum(max(0.0, min(last, end) - max(first, start)) for start, end in self._spans)
        return seen >= 0.9 * (last - first)

    def sources(self, start: float) -> list[float]:
        """Return the start times of the measured blocks that may be copied to a block that begins at `start`."""
        nearest = int(-(-(start + BLOCK - self.now) // DAY))
        same_hours = [start - back * DAY for back in range(nearest, nearest + DAYS)]
        found = list(filter(self._is_measured, same_hours))
        # Without arrivals, an estimate would be far too early.
        return found or list(filter(self._is_measured, (self.now - (back + 1) * BLOCK for back in range(BLOCKS))))

    def _is_measured(self, start: float) -> bool:
        return self.usable(start, start + BLOCK)

    @property
    def is_representative(self) -> bool:
        """Whether at least a day of the last 14 was measured. Otherwise, arrivals of other hours are unknown."""
        first = self.now - DAYS * DAY
        return sum(max(0.0, min(self.now, end) - max(first, start)) for start, end in self._spans) >= DAY

    def again(self, horizon: float, chance: Chance) -> Iterator[Coming]:
        """Yield arrivals for the next `horizon` seconds, by time; none for a block without a measured counterpart."""
        factor = exp(SPREAD * _NORMAL.inv_cdf(max(chance.random(), 1e-9)))
        start, block = self.now, 0
        while start < self.now + horizon:
            sources = self.sources(start)
            if sources:
                source = sources[int(chance.random() * len(sources))]
                yield from self._moved(source, start, factor, chance, block)
            start, block = start + BLOCK, block + 1

    def _moved(self, source: float, start: float, factor: float, chance: Chance, block: int) -> Iterator[Coming]:
        first, last = bisect_left(self._moments, source), bisect_left(self._moments, source + BLOCK)
        for place in range(first, last):
            arrival, batch = self._arrivals[place], new_batch(block, self.batches[place], len(self._arrivals))
            times = int(factor + chance.random())
            for _ in range(times):
                yield Coming(arrival.request, start - self.now + arrival.at - source, batch)
