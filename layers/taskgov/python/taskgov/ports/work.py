"""The record of work, for its readers: reports, forecasts, accounts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from taskgov.work.attempt import Attempt
from taskgov.work.measured import Span
from taskgov.work.standing import Standing


@dataclass(frozen=True, slots=True)
class WorkDone:
    """What is on record of a cluster between two moments. Moments that no span covers were not measured."""

    start: datetime
    end: datetime
    ended: tuple[Attempt, ...] = ()
    """Attempts that ended in it, by the moment they ended; each once."""
    still: tuple[Attempt, ...] = ()
    """Attempts that wait or run at the very last measurement, for any two moments."""
    measured: tuple[Span, ...] = ()
    """Spans without a missing measurement; apart and in order, cut at the two moments."""
    standings: tuple[Standing, ...] = ()
    """How quotas stood, in order. Each measured span begins with one; one holds until the next, or the span's end."""
    looked_at: datetime | None = None
    """The very last measurement; None if there was none."""


class WorkRecord(Protocol):
    """The record of work of all clusters. Raises ThrottledError, UpstreamError, InvalidRequestError (a damaged day)."""

    def between(self, cluster_name: str, start: datetime, end: datetime) -> WorkDone:
        """Return what is on record of a cluster from `start` up to `end`; empty where nothing is."""
        ...
