"""The state of the record of work between two measurements, and the records that are in no day's file yet.

One document for each cluster, `memory/<cluster>/work.json.gz`. If it is lost, nothing is guessed: the conditions of
existing Workloads are recorded again (duplicates are stored once), and the time since the last measurement counts as
not measured.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self

from taskgov.json_form import DAMAGED
from taskgov.json_rows import COMPACT, Rows
from taskgov.scheduling.instants import Instant
from taskgov.usage.workload_facts import WorkloadFacts
from taskgov.work.attempt import Attempt
from taskgov.work.day import Day, attempt_data, attempt_of, moment, stamp, standing_data, standing_of
from taskgov.work.standing import Standing

FORM: Final = 1
KEY: Final = "memory/{}/work.json.gz"


@dataclass(frozen=True, slots=True)
class Tracked:
    """An existing Workload, and its last known attempt, ended or not."""

    namespace: str
    name: str
    attempt: Attempt
    latest: Instant = 0
    """When one of its conditions last changed, in the last known state."""
    evictions: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of evictions, as counted by Kueue (`status.schedulingStats`)."""
    past_seconds: int | None = None
    """Total seconds of its earlier admissions, as counted by Kueue (`accumulatedPastExecutionTimeSeconds`)."""
    state: WorkloadFacts | None = field(default=None, repr=False, compare=False)
    """The state that it was made of, in this process only. The same object says nothing new."""


@dataclass(frozen=True, slots=True)
class WorkMemory:
    """The memory of one cluster. `at` is the time of the last measurement, None before the first."""

    at: datetime | None = None
    standing: Standing | None = None
    """The whole standing at the last measurement."""
    tracked: Mapping[str, Tracked] = field(default_factory=dict)
    """By UID."""
    unwritten: Day = field(default_factory=Day)
    """Records that are in no day's file yet."""
    written_at: datetime | None = None
    """When day files were last written."""

    def to_bytes(self, rows: Rows[Tracked] | None = None) -> bytes:
        """Return the document. Equal memories give equal bytes. With `rows`, only new records are converted."""
        head = {
            "form": FORM,
            "at": self.at and stamp(self.at),
            "writtenAt": self.written_at and stamp(self.written_at),
            "standing": self.standing and standing_data(self.standing),
            "unwritten": [*self.unwritten.lines()],
        }
        tracked = (rows or rows_of_tracked()).to_json(self.tracked.items())
        text = f'{json.dumps(head, separators=COMPACT)[:-1]},"tracked":{tracked}}}'
        return gzip.compress(text.encode(), compresslevel=1, mtime=0)

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Read what `to_bytes` wrote. Raises `ValueError` for anything else, including another `form`."""
        try:
            document = json.loads(gzip.decompress(stored))
            if document["form"] != FORM:
                raise ValueError(f"it is of form {document['form']!r} and not {FORM}")
            return cls(
                at=document["at"] and moment(document["at"]),
                standing=document["standing"] and standing_of(document["standing"]),
                tracked={tracked.attempt.uid: tracked for tracked in map(_tracked, document["tracked"])},
                unwritten=Day.of_lines(document["unwritten"]),
                written_at=document["writtenAt"] and moment(document["writtenAt"]),
            )
        except DAMAGED as error:
            raise ValueError(f"it is not a memory of work ({type(error).__name__})") from error


def rows_of_tracked() -> Rows[Tracked]:
    """Return the rows of a new document, for `WorkMemory.to_bytes`."""
    return Rows(_row)


def _row(tracked: Tracked) -> list[Any]:
    state = (tracked.latest, dict(tracked.evictions), tracked.past_seconds)
    return [tracked.namespace, tracked.name, attempt_data(tracked.attempt), *state]


def _tracked(row: list[Any]) -> Tracked:
    namespace, name, attempt, latest, evictions, past = row
    counted = {str(reason): int(times) for reason, times in evictions.items()}
    return Tracked(str(namespace), str(name), attempt_of(attempt), int(latest), counted, past)
