"""Which preemptions has no measurement counted yet? Called by `publish_usage`, which counts each once."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from taskgov.ports import Clock, DocumentStore, StateStore
from taskgov.services.failures import Failures
from taskgov.services.happenings import RECENT, preempted_id
from taskgov.services.tell_teams import told_before
from taskgov.snapshot.model import Snapshot
from taskgov.usage.workloads import Preemption

MOST_FAILED: Final = 3
"""After so many marks that cannot be written, the others are left to the next measurement: the table may be down."""


@dataclass(frozen=True, slots=True)
class Marked:
    """The preemptions to be counted, and whether all that there are have been counted then."""

    new: tuple[Preemption, ...]
    is_whole: bool
    """If not, teams are not notified yet: what they were notified of is taken as counted, and never would be."""


@dataclass(frozen=True, slots=True)
class NewPreemptions:
    """Marks preemptions as counted. Its fields are the ports it uses."""

    documents: DocumentStore
    state: StateStore
    clock: Clock
    failures: Failures

    def __call__(self, snapshot: Snapshot, preemptions: Iterable[Preemption], by: str | None) -> Marked:
        """Return the preemptions to be counted, and record who counted them: each counts once.

        Those of which teams were notified were counted before: the table is not queried for them again. One whose mark
        cannot be written is reported, and the next measurement counts it.
        """
        now, arn = self.clock.now(), snapshot.cluster.arn
        recent = [preemption for preemption in preemptions if now - preemption.at < RECENT]
        told = self._told(snapshot) if recent else ()
        new: list[Preemption] = []
        failed = 0
        for preemption in recent:
            if preempted_id(preemption) in told:
                continue
            try:
                if self.state.count_once(arn, preemption.identity, now, by=by):
                    new.append(preemption)
            except Exception as error:  # noqa: BLE001 - the others and all other values count; it is reported
                self.failures.report(snapshot.cluster.name, "mark a preemption as counted", error)
                failed += 1
                if failed == MOST_FAILED:
                    break
        return Marked(tuple(new), is_whole=failed == 0)

    def _told(self, snapshot: Snapshot) -> Collection[str]:
        """Return what need not be looked up in the table; nothing where that cannot be read: the marks decide."""
        try:
            return told_before(self.documents, snapshot)
        except Exception as error:  # noqa: BLE001 - it only saves queries; it is reported
            self.failures.report(snapshot.cluster.name, "read what teams were notified of", error)
            return ()
