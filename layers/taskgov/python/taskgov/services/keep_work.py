"""Keep the record of work: what a measurement adds to it.

Each measurement writes one document, the memory (`taskgov.work.memory`), on condition that nobody wrote it meanwhile:
of two measurements at once the second reads again. Final records move from there into the files of days, once an hour
and at the end of a day. A file of a day is read, added to and written under the same condition. If a function stops
between the two, the next measurement adds the same again, which changes nothing. A process that wrote the memory last
does not read it: the condition of the write shows whether it has changed.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Final

from taskgov.errors import ConflictError
from taskgov.json_rows import Rows
from taskgov.ports import StoredVersion, VersionedDocuments
from taskgov.services.failures import Failures
from taskgov.services.work_record import read_day
from taskgov.snapshot.model import Snapshot
from taskgov.usage.attempt_facts import facts_with_attempt, nobody
from taskgov.usage.cluster_usage import ClusterUsage
from taskgov.usage.workload_facts import FollowedKueue, Told
from taskgov.work import day as days
from taskgov.work.day import Day, joined, midnight
from taskgov.work.follow import Look, advance
from taskgov.work.memory import KEY, Tracked, WorkMemory, rows_of_tracked
from taskgov.work.quotas import standing_of

WRITTEN_EACH: Final = timedelta(hours=1)
MOST_UNWRITTEN: Final = 1_000
"""Attempts that end and are not in the file of a day yet: beyond these it is written at once."""
TRIES: Final = 5
"""How often a write is tried while others write the same file."""
UNREADABLE_FOR: Final = timedelta(days=7)
"""What belongs to a day that cannot be read waits this long for it: the bucket keeps earlier versions no longer."""
MOST_KNOWN: Final = 200
MOST_KNOWN_BYTES: Final = 100_000
"""Memories that a process does not read again: how many, and up to which size."""
UNKNOWN_PERIOD: Final = timedelta(minutes=10)
"""The period of measurements if the schedule has no rate."""
_RATE: Final = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")


@dataclass(frozen=True, slots=True)
class _Written:
    """A memory with its document. A process that finds the same document again does not parse it."""

    body: bytes
    memory: WorkMemory
    rows: Rows[Tracked]


@dataclass(frozen=True, slots=True)
class KeepWork:
    """Adds a measurement to the record. Its fields are the ports it uses."""

    documents: VersionedDocuments
    failures: Failures
    period: timedelta
    known: dict[str, StoredVersion] = field(default_factory=dict, repr=False, compare=False)
    """The memory of each cluster as this process wrote it last."""
    last: dict[str, _Written] = field(default_factory=dict, repr=False, compare=False)
    """The memory that this process made last, by its key: of one cluster."""

    def __call__(self, snapshot: Snapshot, usage: ClusterUsage) -> None:
        """Add a measurement. What fails is reported: usage is published, and the time is marked as not measured."""
        name = snapshot.cluster.name
        try:
            self._keep(name, self._look(snapshot, usage))
        except Exception as error:  # noqa: BLE001 - publishing continues; the error is reported
            self.failures.report(name, "keep the record of work", error)

    def _look(self, snapshot: Snapshot, usage: ClusterUsage) -> Look:
        kueue = snapshot.kueue
        told: tuple[Told, ...] = ()
        if isinstance(kueue, FollowedKueue):
            states, told = kueue.facts, kueue.told
        else:
            states = tuple(facts_with_attempt(item, nobody) for item in kueue.workloads)
        return Look(
            at=snapshot.taken_at,
            period=self.period,
            states=states,
            standing=standing_of(usage, kueue, snapshot.taken_at),
            told=told,
            unreadable=frozenset(
                (odd.namespace or "", odd.name) for odd in snapshot.unreadable_objects if odd.kind == "Workload"
            ),
        )

    def _keep(self, cluster_name: str, look: Look) -> None:
        key = KEY.format(cluster_name)

        def after_look(stored: bytes | None) -> bytes | None:
            written = self.last.get(key)
            before = written.memory if written and written.body == stored else self._memory(cluster_name, stored)
            after = advance(before, look)
            if after is before:
                return None
            if _is_due(after):
                after = replace(after, unwritten=self._write_days(cluster_name, after, look), written_at=after.at)
            rows = written.rows if written else rows_of_tracked()
            body = after.to_bytes(rows)
            self.last.clear()
            self.last[key] = _Written(body, after, rows)
            return body

        stored = self._change(key, after_look, self.known.pop(key, None))
        if stored is not None and len(stored.body) <= MOST_KNOWN_BYTES and len(self.known) < MOST_KNOWN:
            self.known[key] = stored

    def _memory(self, cluster_name: str, stored: bytes | None) -> WorkMemory:
        """Return the memory; a damaged one is reported, and replaced: the time since is not measured."""
        if stored is None:
            return WorkMemory()
        try:
            return WorkMemory.from_bytes(stored)
        except ValueError as error:
            self.failures.report(cluster_name, "read the memory of work", error)
            return WorkMemory()

    def _write_days(self, cluster_name: str, memory: WorkMemory, look: Look) -> Day:
        """Add to the files of days; return what has to wait, because the file of its day cannot be read."""
        waiting = []
        for day, part in memory.unwritten.by_day().items():
            try:
                self._write_day(cluster_name, day, part)
            except ValueError as error:
                self.failures.report(cluster_name, "read a day of the record of work", error)
                if look.at - midnight(day) <= UNREADABLE_FOR:
                    waiting.append(part)
        return joined(waiting)

    def _write_day(self, cluster_name: str, day: date, part: Day) -> None:
        """Add to the file of a day. Raises `ValueError` where it cannot be read: it stays as it is."""
        key = days.KEY.format(cluster_name, day.isoformat())

        def with_part(stored: bytes | None) -> bytes:
            return days.to_bytes(part if stored is None else read_day(key, stored).with_(part), day)

        self._change(key, with_part)

    def _change(
        self, key: str, changed: Callable[[bytes | None], bytes | None], found: StoredVersion | None = None
    ) -> StoredVersion | None:
        """Replace a document by what is made of it, and return it; None where there is nothing to write.

        Where it is another one than the one that was found, or than the one that was read, it is read again.
        """
        for turn in range(1, TRIES + 1):
            found = found or self.documents.find_version(key)
            before = found.body if found else None
            after = changed(before)
            if after is None or after == before:
                return found
            try:
                return self.documents.put_version(key, after, "application/gzip", found)
            except ConflictError:
                found = None
                if turn == TRIES:
                    raise
        return None


def period_of(schedule: str) -> timedelta:
    """Return how often a schedule of EventBridge Scheduler comes.

    Example:
        >>> period_of("rate(1 minute)"), period_of("rate(2 hours)").total_seconds(), period_of("cron(0 * * * ? *)")
        (datetime.timedelta(seconds=60), 7200.0, datetime.timedelta(seconds=600))

    """
    found = _RATE.fullmatch(schedule.strip())
    return timedelta(**{f"{found[2]}s": int(found[1])}) if found else UNKNOWN_PERIOD


def _is_due(memory: WorkMemory) -> bool:
    """Return whether it is time for the files of days: an hour is over, or a day, or much has ended."""
    if memory.at is None or memory.written_at is None:
        return True
    is_new_day = memory.at.date() > memory.written_at.date()
    is_old = memory.at - memory.written_at >= WRITTEN_EACH
    return is_new_day or is_old or len(memory.unwritten.attempts) > MOST_UNWRITTEN
