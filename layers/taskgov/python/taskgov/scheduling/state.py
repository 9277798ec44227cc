"""Where does everything stand? The mutable records behind a `KueueModel`: one per workload, one per cluster queue.

Only this room touches them: `kueue_model` on behalf of callers, `cycle` while it decides.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any, Final

from taskgov.scheduling.config import DEFAULTS, ManagerConfig
from taskgov.scheduling.demand import demand_of
from taskgov.scheduling.objects import (
    CHECK_READY,
    CHECK_REJECTED,
    CHECK_RETRY,
    RESTARTS,
    Admission,
    CheckState,
    ClusterQueue,
    Condition,
    PodSetAdmission,
    ResourceGroup,
    Usage,
    Workload,
    flavor_resource,
)
from taskgov.scheduling.quota import QuotaNode
from taskgov.scheduling.reasons import ADMISSION_GATED, IN_COHORT_RECLAIM_WHILE_BORROWING, ON_HOLD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.pending import PendingQueue
    from taskgov.scheduling.pending_class import PendingClass
    from taskgov.scheduling.scan import Scan

QUOTA_RESERVED: Final = "QuotaReserved"
ADMITTED: Final = "Admitted"
EVICTED: Final = "Evicted"
PREEMPTED: Final = "Preempted"
REQUEUED: Final = "Requeued"
FINISHED: Final = "Finished"
PODS_READY: Final = "PodsReady"
WAITING_FOR_REPLACEMENT_PODS: Final = "WaitingForReplacementPods"
PODS_READY_TIMEOUT: Final = "PodsReadyTimeout"
BY_ADMISSION_CHECK: Final = "AdmissionCheck"
_TIMED_BY_CHECK: Final = frozenset({BY_ADMISSION_CHECK})
_TIMED_BY_EVICTION: Final = _TIMED_BY_CHECK | {PODS_READY_TIMEOUT}
_JUST_AFTER: Final = 1000
"""A millisecond, in microseconds."""
_UNKNOWN_RESERVATION: Final = 2**63 - 1


RunningKey = tuple[int, int, int, str, str, "Record"]


class Record:
    """One workload: its spec, what it holds, its conditions, and its place in a queue."""

    __slots__ = (
        "admission",
        "checks",
        "conditions",
        "config",
        "demand",
        "key",
        "queue",
        "requeue_at",
        "requeue_count",
        "scan",
        "ticket",
        "usage",
        "waiting",
        "workload",
    )

    def __init__(self, workload: Workload, config: ManagerConfig = DEFAULTS) -> None:
        self.workload = workload
        self.config = config
        self.key = workload.key
        self.demand = demand_of(workload.pod_sets, workload.reclaimable if config.gate("ReclaimablePods") else ())
        self.queue: QueueState | None = None
        self.conditions: dict[str, Condition] = {}
        self.checks: dict[str, CheckState] = {}
        self.admission: Admission | None = None
        self.usage: Usage = {}
        self.scan: Scan | None = None
        self.waiting: PendingClass[Record] | None = None
        self.ticket = 0
        self.requeue_at: Instant | None = None
        self.requeue_count = 0

    def copy(self) -> Record:
        """Return a record of its own in the same state; its place in a queue is for the queue's copy to set."""
        twin = Record.__new__(Record)  # a third of the time of `copy`: each question copies all workloads
        twin.workload, twin.config, twin.key, twin.demand = self.workload, self.config, self.key, self.demand
        twin.admission, twin.usage = self.admission, self.usage
        twin.scan, twin.ticket = self.scan, self.ticket
        twin.requeue_at, twin.requeue_count = self.requeue_at, self.requeue_count
        twin.conditions, twin.checks = dict(self.conditions), dict(self.checks)
        twin.queue = twin.waiting = None
        return twin

    @property
    def evicted(self) -> bool:
        """Whether it is being evicted and still holds quota."""
        condition = self.conditions.get(EVICTED)
        return condition is not None and condition.status

    @property
    def has_failed_check(self) -> bool:
        """Whether an admission check has sent it back or refused it."""
        return any(check.state in {CHECK_RETRY, CHECK_REJECTED} for check in self.checks.values())

    @property
    def finished(self) -> bool:
        """Whether it is done for good."""
        condition = self.conditions.get(FINISHED)
        return condition is not None and condition.status

    @property
    def admitted(self) -> bool:
        """Whether it may run: it holds quota, and no admission check is still to agree.

        Without a condition, a workload is admitted when it has quota and no checks to wait for.
        """
        condition = self.conditions.get(ADMITTED)
        return (condition is not None and condition.status) or (self.admission is not None and not self.unready)

    @property
    def on_hold(self) -> bool:
        """Whether its job gave its quota back and does not want it now (Kueue: `IsOnHold`)."""
        reserved = self.conditions.get(QUOTA_RESERVED)
        return reserved is not None and not reserved.status and reserved.reason == ON_HOLD

    @property
    def gates(self) -> str:
        """The admission gates that are closed, as its annotation names them; empty for none."""
        return self.workload.gates if self.config.gate("AdmissionGatedBy") else ""

    @property
    def needs_word(self) -> bool:
        """Whether Kueue's controller may have something to write on it before the scheduler considers it."""
        return bool(self.checks or self.workload.gates or self.gates_said or self.stopped_by)

    @property
    def stopped_by(self) -> str:
        """What keeps it out until it is over: its queue was stopped, or it was deactivated; empty for nothing."""
        requeued = self.conditions.get(REQUEUED)
        return "" if requeued is None or requeued.status or requeued.reason not in RESTARTS else requeued.reason

    @property
    def gates_said(self) -> bool:
        """Whether its condition says that a gate keeps it out."""
        reserved = self.conditions.get(QUOTA_RESERVED)
        return reserved is not None and reserved.reason == ADMISSION_GATED

    @property
    def barred(self) -> bool:
        """Whether it may not queue, whatever quota there is (Kueue: `IsAdmissible` in `pkg/workload/workload.go`).

        A gate is closed, its job does not want quota now, or pods are missing that replace failed ones.
        """
        if self.workload.gates and self.gates:
            return True
        waiting = self.conditions.get(WAITING_FOR_REPLACEMENT_PODS)
        return self.on_hold or (waiting is not None and waiting.status)

    @property
    def unready(self) -> tuple[str, ...]:
        """The admission checks that have yet to agree, by name."""
        return tuple(sorted(name for name, check in self.checks.items() if check.state != CHECK_READY))

    @property
    def queued_since(self) -> Instant:
        """The moment that orders it in its queue (Kueue: `GetQueueOrderTimestamp` in `pkg/workload/workload.go`).

        Creation; or eviction by an admission check, or because pods were not ready in time and the configuration says
        for it; or, without the gate `PrioritySortingWithinCohort`, just after it was preempted by one that borrows.
        """
        evicted = self.conditions.get(EVICTED)
        if evicted is not None and evicted.status and evicted.reason in self._timed_by_eviction:
            return evicted.since
        preempted = self.conditions.get(PREEMPTED)
        if preempted is not None and preempted.status and preempted.reason == IN_COHORT_RECLAIM_WHILE_BORROWING:
            by_priority = self.config.gate("PrioritySortingWithinCohort")
            return self.workload.created if by_priority else preempted.since + _JUST_AFTER
        return self.workload.created

    @property
    def _timed_by_eviction(self) -> frozenset[str]:
        return _TIMED_BY_CHECK if self.config.backoff.by_creation else _TIMED_BY_EVICTION

    def hold(self, admission: Admission, usage: Usage | None = None) -> None:
        """Take what `admission` gives, scaled down where pods are reclaimable: `usage`, where that is known."""
        self.admission = admission
        self.usage = self._usage_of(admission) if usage is None else usage

    def _usage_of(self, admission: Admission) -> Usage:
        counts = {p.pod_set.name: p.count for p in self.demand.pod_sets}
        usage: Usage = {}
        for pod_set in admission.pod_sets:
            held = pod_set if pod_set.count <= counts.get(pod_set.name, pod_set.count) else self._scaled(pod_set)
            for resource, flavor in held.flavors.items():
                fr = flavor_resource(flavor, resource)
                usage[fr] = usage.get(fr, 0) + held.usage.get(resource, 0)
        return usage

    @property
    def held(self) -> tuple[PodSetAdmission, ...]:
        """What each pod set holds now, without pods that are reclaimable (Kueue: `totalRequestsFromAdmission`)."""
        return () if self.admission is None else tuple(self._scaled(p) for p in self.admission.pod_sets)

    def _scaled(self, pod_set: PodSetAdmission) -> PodSetAdmission:
        """Scale down to the pods that are left; a pod set that was admitted with fewer keeps what it has."""
        count = next((p.count for p in self.demand.pod_sets if p.pod_set.name == pod_set.name), pod_set.count)
        if count >= pod_set.count:
            return pod_set
        usage = {resource: amount // pod_set.count * count for resource, amount in pod_set.usage.items()}
        return PodSetAdmission(pod_set.name, count, pod_set.flavors, usage)

    def let_go(self) -> None:
        """Hold nothing any more."""
        self.admission, self.usage = None, {}

    def set_condition(self, kind: str, *, status: bool, reason: str, message: Any, now: Instant) -> None:
        """Write a condition; the moment changes only when the status does."""
        before = self.conditions.get(kind)
        since = before.since if before is not None and before.status == status else now
        self.conditions[kind] = Condition(status, reason, message, since)

    def running_key(self) -> RunningKey:
        """Order of candidates for preemption within one queue (Kueue: CandidatesOrdering).

        Already evicted first, then lower priority, then the more recent reservation, then the smaller UID.
        """
        reserved = self.conditions.get(QUOTA_RESERVED)
        since = reserved.since if reserved is not None and reserved.status else _UNKNOWN_RESERVATION
        return (0 if self.evicted else 1, self.workload.priority, -since, self.workload.uid, self.key, self)


class QueueState:
    """One cluster queue: its spec, its place in the quota tree, who runs, who waits."""

    __slots__ = ("generation", "group_of", "node", "pending", "running", "spec")

    def __init__(self, spec: ClusterQueue, pending: PendingQueue[Record]) -> None:
        self.spec = spec
        self.pending = pending
        self.generation = 0
        self.running: list[RunningKey] = []
        self.group_of: Mapping[str, ResourceGroup] = {}
        self.node = QuotaNode(spec.name, spec.quotas, spec.weight, is_queue=True)
        self.redefine(spec)

    def redefine(self, spec: ClusterQueue) -> None:
        """Take a new spec. If two groups have one resource, the first counts (Kueue: `RGByResource`)."""
        self.spec = spec
        self.group_of = {resource: group for group in reversed(spec.groups) for resource in group.resources}

    def copy(self, twins: Mapping[Record, Record]) -> QueueState:
        """Return a queue of its own with the given copies of its workloads; not yet part of a tree."""
        twin = QueueState(self.spec, self.pending.copy(twins))
        twin.generation = self.generation
        twin.node.take_own_limits_of(self.node)
        twin.running = [(*entry[:-1], twins[entry[-1]]) for entry in self.running]
        return twin

    def total_usage(self) -> Usage:
        """Sum what all its workloads hold."""
        usage: Usage = {}
        for entry in self.running:
            for fr, amount in entry[-1].usage.items():
                usage[fr] = usage.get(fr, 0) + amount
        return usage

    def add(self, record: Record) -> None:
        """Count `record` among the running (the quota tree is the caller's business)."""
        insort(self.running, record.running_key())

    def remove(self, record: Record) -> None:
        """Count `record` no longer among the running. Its conditions must be as they were when it was added."""
        index = bisect_left(self.running, record.running_key())
        del self.running[index]

    def running_records(self) -> Iterable[Record]:
        """Everyone who holds quota here, in candidate order."""
        return (entry[-1] for entry in self.running)
