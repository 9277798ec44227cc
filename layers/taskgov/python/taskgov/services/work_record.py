"""Read the record of work: the files of days, and what the memory has since the last measurement."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from taskgov.errors import InvalidRequestError
from taskgov.ports import DocumentStore
from taskgov.ports.work import WorkDone
from taskgov.work import day as days
from taskgov.work import memory
from taskgov.work.day import Day
from taskgov.work.measured import clipped
from taskgov.work.memory import WorkMemory
from taskgov.work.standing import Standing


@dataclass(frozen=True, slots=True)
class RecordedWork:
    """The `WorkRecord` port over the documents of a bucket. Its fields are the ports it uses."""

    documents: DocumentStore

    def between(self, cluster_name: str, start: datetime, end: datetime) -> WorkDone:
        """Return what is on record of a cluster; a request for each day."""
        known = self._memory(cluster_name)
        some = [self._day(cluster_name, f"{day:%Y-%m-%d}") for day in days.days_between(start, end)]
        found = days.joined([*some, known.unwritten])
        return WorkDone(
            start=start,
            end=end,
            ended=tuple(attempt for attempt in found.attempts if attempt.ended and start <= attempt.ended < end),
            still=tuple(tracked.attempt for tracked in known.tracked.values() if tracked.attempt.ended is None),
            measured=clipped(found.measured, start, end),
            standings=tuple(_from(found.standings, start, end)),
            looked_at=known.at,
        )

    def _memory(self, cluster_name: str) -> WorkMemory:
        key = memory.KEY.format(cluster_name)
        stored = self.documents.find(key)
        try:
            return WorkMemory() if stored is None else WorkMemory.from_bytes(stored)
        except ValueError as error:
            raise InvalidRequestError(f"{key} cannot be read ({error}); the next measurement replaces it") from error

    def _day(self, cluster_name: str, day: str) -> Day:
        key = days.KEY.format(cluster_name, day)
        stored = self.documents.find(key)
        try:
            return Day() if stored is None else read_day(key, stored)
        except ValueError as error:
            raise InvalidRequestError(
                f"{error}; restore an earlier version of it, or delete it: its hours are not measured then"
            ) from error


def read_day(key: str, stored: bytes) -> Day:
    """Return the day of a file. Raises `ValueError` that names a damaged one."""
    try:
        return days.from_bytes(stored)
    except ValueError as error:
        raise ValueError(f"{key} cannot be read ({error})") from error


def _from(standings: tuple[Standing, ...], start: datetime, end: datetime) -> Iterator[Standing]:
    """Yield the standings before `end`; what came before `start` is given as the whole that it came to."""
    before: Standing | None = None
    later = []
    for standing in standings:
        if standing.at <= start:
            before = standing if before is None or standing.whole else standing.after(before)
        elif standing.at < end:
            later.append(standing)
    if before is not None:
        yield Standing(max(before.at, start), before.lines, before.capacity)
    yield from later
