"""One workload with everything that is needed to judge it, worked out once and only when it is requested."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from taskgov.allocation.predict import steps_for
from taskgov.kueue.named import Named
from taskgov.scheduling import Budget, KueueModel, Preempted, moment, settle
from taskgov.scheduling.objects import ClusterQueue, FlavorResource, PodSet, Workload
from taskgov.scheduling.reading import read_cluster_queue, read_workload
from taskgov.scheduling.reasons import InsufficientQuota, InsufficientUnusedQuota
from taskgov.scheduling.status_reading import read_admission, read_conditions
from taskgov.snapshot.model import KubernetesObject, Snapshot
from taskgov_explain.find import workloads_in

if TYPE_CHECKING:
    from datetime import datetime

    from taskgov.scheduling.assignment import Assignment
    from taskgov.scheduling.objects import Admission, Condition


class Case:
    """A workload of a snapshot, before the snapshot's scheduler (`world`, which is not changed)."""

    def __init__(self, snapshot: Snapshot, world: KueueModel, named: Named) -> None:
        self.snapshot, self.world, self.named = snapshot, world, named
        status = named.item.get("status") or {}
        self.conditions: dict[str, Condition] = read_conditions(status)
        held = read_admission(status)
        self.admission: Admission | None = held if self.holds("QuotaReserved") else None

    @cached_property
    def item(self) -> dict[str, Any]:
        """The Workload as the scheduler reads it."""
        return {**self.named.item, "kind": "Workload"}

    @cached_property
    def workload(self) -> Workload:
        """The workload, with the priority that its class gives it."""
        classes = {
            priority_class["metadata"]["name"]: int(priority_class["value"])
            for priority_class in self.snapshot.kueue.priority_classes
        }
        return read_workload(self.item, classes)

    def holds(self, condition: str) -> bool:
        """Return whether a condition is true."""
        return condition in self.conditions and self.conditions[condition].status

    def since(self, condition: str) -> "datetime | None":
        """Return since when a condition is true."""
        return moment(self.conditions[condition].since) if self.holds(condition) else None

    @property
    def is_pending(self) -> bool:
        """Whether it waits for quota."""
        return not self.holds("Finished") and self.admission is None

    @cached_property
    def local_queue(self) -> KubernetesObject | None:
        """The LocalQueue that it names, if there is one."""
        for queue in self.snapshot.kueue.local_queues:
            metadata = queue["metadata"]
            if (metadata["namespace"], metadata["name"]) == (self.workload.namespace, self.workload.queue):
                return queue
        return None

    @cached_property
    def queue_name(self) -> str | None:
        """The ClusterQueue that it is in, or that its LocalQueue leads to."""
        if self.admission is not None:
            return self.admission.cluster_queue
        return None if self.local_queue is None else str(self.local_queue["spec"]["clusterQueue"])

    @cached_property
    def queue(self) -> ClusterQueue | None:
        """The ClusterQueue's spec, if there is one."""
        return None if self.queue_object is None else read_cluster_queue(self.queue_object)

    @cached_property
    def queue_object(self) -> KubernetesObject | None:
        """The ClusterQueue as the cluster has it, if there is one."""
        queues = self.snapshot.kueue.cluster_queues
        return next((queue for queue in queues if queue["metadata"]["name"] == self.queue_name), None)

    @cached_property
    def asks(self) -> dict[str, int]:
        """What all its pods request together, as far as Kueue counts it."""
        return asked_by(self.world.read(self.item).pod_sets)

    @cached_property
    def assignment(self) -> "Assignment | None":
        """What the scheduler could give it now, were it the next; None where there is no queue to ask."""
        return None if self.queue is None else self.world.assign(self.item, self.queue.name)

    @cached_property
    def victims(self) -> tuple[Preempted, ...]:
        """The workloads that it would preempt now, if it were the next."""
        return () if self.queue is None else tuple(self.world.victims(self.item, self.queue.name))

    @cached_property
    def rested(self) -> KueueModel:
        """The world when nothing more happens as long as nobody finishes, or when the budget of steps is used up."""
        twin = self.world.copy()
        settle(twin, self.snapshot.taken_at, budget=Budget(steps_for(twin)))
        return twin

    @cached_property
    def _names(self) -> dict[str, str]:
        return {workload.key: workload.shown for workload in workloads_in(self.snapshot.kueue)}

    def shown(self, key: str) -> str:
        """Return what people call the workload of this key."""
        return self._names.get(key, key)

    @cached_property
    def lacking(self) -> tuple[FlavorResource, ...]:
        """The flavors and resources of which there is too little for it, in the order in which they were tried."""
        return tuple(f"{shortfall.flavor}/{shortfall.resource}" for shortfall in self.shortfalls)

    @cached_property
    def shortfalls(self) -> tuple[InsufficientQuota | InsufficientUnusedQuota, ...]:
        """What Kueue finds too little, flavor by flavor."""
        if self.assignment is None:
            return ()
        attempts = (attempt for pods in self.assignment.pod_sets for group in pods.attempts for attempt in group)
        kinds = InsufficientQuota | InsufficientUnusedQuota
        found = (reason for attempt in attempts for reason in attempt.reasons if isinstance(reason, kinds))
        return tuple(dict.fromkeys(found))


def asked_by(pod_sets: Iterable[PodSet]) -> dict[str, int]:
    """Return what all pods of these sets request together."""
    asked: dict[str, int] = {}
    for pods in pod_sets:
        for resource, amount in pods.requests:
            asked[resource] = asked.get(resource, 0) + pods.count * amount
    return asked
