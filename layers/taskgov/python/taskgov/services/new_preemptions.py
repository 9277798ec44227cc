"""Which preemptions has no measurement counted yet? Called by `publish_usage`, which counts each once."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from taskgov.ports import Clock, DocumentStore, StateStore
from taskgov.services.failures import Failures
from taskgov.services.happenings import RECENT, preempted_id
from taskgov.services.tell_teams import MOST_AT_ONCE, known_before
from taskgov.snapshot.model import Snapshot
from taskgov.usage.workloads import Preemption

MOST_FAILED: Final = 3
"""After so many marks that cannot be written, the others are left to the next measurement: the table may be down."""


@dataclass(frozen=True, slots=True)
class Marked:
    """The preemptions to be counted, and the identities (`preempted_id`) of all recent ones that were counted."""

    new: tuple[Preemption, ...]
    counted: frozenset[str]


@dataclass(frozen=True, slots=True)
class NewPreemptions:
    """Marks preemptions as counted. Its fields are the ports it uses."""

    documents: DocumentStore
    state: StateStore
    clock: Clock
    failures: Failures

    def __call__(self, snapshot: Snapshot, preemptions: Iterable[Preemption], by: str | None) -> Marked:
        """Return the preemptions to be counted, and record who counted them: each counts once.

        Those that the memory of notices has were counted before: the table is not queried for them again. Of the others
        a measurement marks the first `MOST_AT_ONCE`. One whose mark cannot be written is reported. The next measurement
        counts what is left.
        """
        now, arn = self.clock.now(), snapshot.cluster.arn
        recent = {preempted_id(preemption): preemption for preemption in preemptions if now - preemption.at < RECENT}
        counted = set(self._known(snapshot)).intersection(recent) if recent else set[str]()
        new: list[Preemption] = []
        failed = 0
        for identity in [identity for identity in recent if identity not in counted][:MOST_AT_ONCE]:
            try:
                if self.state.count_once(arn, recent[identity].identity, now, by=by):
                    new.append(recent[identity])
                counted.add(identity)
            except Exception as error:  # noqa: BLE001 - the others and all other values count; it is reported
                self.failures.report(snapshot.cluster.name, "mark a preemption as counted", error)
                failed += 1
                if failed == MOST_FAILED:
                    break
        return Marked(tuple(new), frozenset(counted))

    def _known(self, snapshot: Snapshot) -> Collection[str]:
        """Return what need not be looked up in the table; nothing where that cannot be read: the marks decide."""
        try:
            return known_before(self.documents, snapshot)
        except Exception as error:  # noqa: BLE001 - it only saves queries; it is reported
            self.failures.report(snapshot.cluster.name, "read what teams were notified of", error)
            return ()
