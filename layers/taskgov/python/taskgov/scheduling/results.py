"""The results of a scheduling cycle, as values; texts are made when they are requested."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.scheduling.assignment import NO_FIT, PUBLIC_MODES, Assignment
from taskgov.scheduling.instants import SECOND, Instant
from taskgov.scheduling.reasons import SLICE_REPLACED, replaced_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.scheduling.objects import Admission
    from taskgov.scheduling.unmodelled import NotModelled

_LONGEST_WAIT: Final = (2**63 - 1) // 1000  # Go's longest duration, in microseconds


class Requeue(Enum):
    """Why a workload comes back from a cycle without quota."""

    NO_FIT = "NoFit"
    NO_CANDIDATES = "PreemptionNoCandidates"
    PENDING_PREEMPTION = "PendingPreemption"
    FAILED_AFTER_NOMINATION = "FailedAfterNomination"
    NAMESPACE_MISMATCH = "NamespaceMismatch"
    GENERIC = ""
    KEPT = "Kept"
    """No reason of Kueue's: the scheduler keeps the workload until the pods of others are ready, and admits it then."""


class Admitted(NamedTuple):
    """A workload that got its quota, and what the flavor search found for it.

    It runs at once, unless it `waits_for` admission checks. `replaces` is the slice of the same job that it takes the
    place of, which is finished; empty for none.
    """

    workload: str
    uid: str
    cluster_queue: str
    admission: Admission
    assignment: Assignment
    queued_since: Instant
    waits_for: tuple[str, ...] = ()
    replaces: str = ""
    job_uid: str = ""

    @property
    def borrowing(self) -> int:
        """How high up the tree it borrows, 0 for not at all."""
        return self.assignment.borrowing

    @property
    def considered(self) -> str:
        """The flavors that were considered before and do not fit, in words; empty for none."""
        return self.assignment.considered


class Preempted(NamedTuple):
    """A workload that is being evicted; it keeps its quota until the eviction is finished."""

    workload: str
    uid: str
    cluster_queue: str
    preemptor: str
    preemptor_queue: str
    reason: str
    message: str


class Verdict(NamedTuple):
    """Why a workload did not get quota in a cycle: what could be assigned, or what happened to it."""

    assignment: Assignment | None
    remark: str = ""
    victims: int = 0

    def __str__(self) -> str:
        message = self.remark or (self.assignment.message if self.assignment else "")
        return f"{message}. Pending the preemption of {self.victims} workload(s)" if self.victims else message


class Waiting(NamedTuple):
    """A workload that was considered and did not get quota.

    Parameters
    ----------
    reason, verdict
        What its QuotaReserved condition says; `message` is the verdict as text.
    requeue
        How it went back to its queue.
    in_line
        Whether it may be considered in the next cycle; else it is inadmissible until capacity changes.

    """

    workload: str
    cluster_queue: str
    reason: str
    verdict: Verdict
    requeue: Requeue
    in_line: bool

    @property
    def message(self) -> str:
        """The text of the condition."""
        return str(self.verdict)

    @property
    def mode(self) -> str:
        """What the flavor search came to: `Fit`, `Preempt` or `NoFit`."""
        assignment = self.verdict.assignment
        return PUBLIC_MODES[NO_FIT if assignment is None else assignment.mode]


@dataclass(frozen=True, slots=True)
class CycleResult:
    """What one scheduling cycle decided, in the order in which it was decided.

    `skipped_preemptions` counts, by queue, entries that could not preempt because of an earlier one; `not_modelled`
    names what the input uses and this model does not follow.
    """

    number: int
    now: Instant
    admitted: tuple[Admitted, ...] = ()
    preempted: tuple[Preempted, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    skipped_preemptions: Mapping[str, int] = field(default_factory=dict)
    not_modelled: tuple[NotModelled, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether nothing was admitted or preempted."""
        return not self.admitted and not self.preempted


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes event about a workload, as Kueue records it."""

    workload: str
    type: str
    reason: str
    message: str


def events(result: CycleResult) -> list[Event]:
    """Give the events Kueue records for a cycle: admissions, evictions with their preemptors, who waits."""
    found: list[Event] = []
    for a in result.admitted:
        waited = min(result.now - a.queued_since, _LONGEST_WAIT) / SECOND
        considered = f"; Flavors considered: {a.considered}" if a.considered else ""
        reserved = (
            f"Quota reserved in ClusterQueue {a.cluster_queue}, wait time since queued was {waited:.0f}s{considered}"
        )
        admitted = f"Admitted by ClusterQueue {a.cluster_queue}, wait time since reservation was 0s"
        found += [Event(a.workload, "Normal", "QuotaReserved", reserved)]
        if not a.waits_for:
            found += [Event(a.workload, "Normal", "Admitted", admitted)]
        if a.replaces:
            found += [Event(a.replaces, "Normal", SLICE_REPLACED, replaced_message(a.uid, a.job_uid))]
    for p in result.preempted:
        by = f"Preempted workload {p.workload} (UID: {p.uid}) in ClusterQueue {p.cluster_queue}"
        found += [Event(p.workload, "Normal", "EvictedDueToPreempted", p.message)]
        found += [Event(p.workload, "Normal", "Preempted", p.message)]
        found += [Event(p.preemptor, "Normal", "PreemptedWorkload", by)]
    found += [
        Event(w.workload, "Warning", w.reason, w.message) for w in result.waiting if w.requeue is not Requeue.KEPT
    ]
    return found
