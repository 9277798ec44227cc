"""What came of a scheduling cycle? Values that callers read; texts are made when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from taskgov.scheduling.assignment import FIT, NO_FIT, PUBLIC_MODES, Assignment
from taskgov.scheduling.instants import Instant
from taskgov.scheduling.objects import Admission
from taskgov.scheduling.pending import Requeue


@dataclass(frozen=True, slots=True)
class Admitted:
    """A workload that got its quota. `borrowing` is how high up the tree it borrows, 0 for not at all."""

    workload: str
    uid: str
    cluster_queue: str
    admission: Admission
    borrowing: int
    considered: str


@dataclass(frozen=True, slots=True)
class Preempted:
    """A workload that was told to leave; it keeps its quota until its eviction is finished."""

    workload: str
    uid: str
    cluster_queue: str
    preemptor: str
    preemptor_queue: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a workload did not get quota in a cycle: what could be assigned, or what happened to it; with what is awaited."""

    assignment: Assignment | None
    remark: str = ""
    victims: int = 0

    def __str__(self) -> str:
        message = self.remark or (self.assignment.message if self.assignment else "")
        return f"{message}. Pending the preemption of {self.victims} workload(s)" if self.victims else message


@dataclass(frozen=True, slots=True)
class Waiting:
    """A workload that was looked at and did not get quota.

    Parameters
    ----------
    reason, verdict
        What its QuotaReserved condition says; `message` is the verdict as text.
    requeue
        How it went back to its queue.
    in_line
        Whether it may be looked at in the next cycle; else it is inadmissible until capacity changes.

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
    """What one scheduling cycle decided, in the order in which it was decided."""

    number: int
    now: Instant
    admitted: tuple[Admitted, ...] = ()
    preempted: tuple[Preempted, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    skipped_preemptions: Mapping[str, int] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        """Whether nothing was admitted or preempted."""
        return not self.admitted and not self.preempted


def considered_flavors(assignment: Assignment) -> str:
    """List the flavors that were looked at and not taken, as the QuotaReserved event does; empty when there are none."""
    parts = []
    for pod_set in assignment.pod_sets:
        tried = [
            f"{a.flavor}(preemptionMode={PUBLIC_MODES[a.mode]};{','.join(map(str, a.reasons))})"
            for group in pod_set.attempts
            for a in group
            if a.mode != FIT
        ]
        if tried:
            parts.append(f"{pod_set.name}: {', '.join(tried)}")
    return "; ".join(parts)
