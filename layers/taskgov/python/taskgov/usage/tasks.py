"""What is every task doing? One line for each Workload, as the Tasks tab of the SageMaker console has it.

`taskgov jobs` and the audit report show it. It is one pass over the workloads: no scheduler runs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from operator import is_

from taskgov.hyperpod.names import INSTANCE_TYPE_LABEL
from taskgov.kueue.named import named
from taskgov.quantities import ResourceName, is_accelerator
from taskgov.scheduling import moment
from taskgov.scheduling.instants import Instant
from taskgov.scheduling.objects import Admission, Workload
from taskgov.scheduling.reading import read_workload
from taskgov.scheduling.status_reading import read_admission, read_conditions
from taskgov.snapshot.derived import once
from taskgov.snapshot.model import KubernetesObject, KueueObjects, Snapshot
from taskgov.usage.node_shortage import short_of_nodes
from taskgov.usage.quota_usage import usage_in

Place = tuple[str, str, ResourceName]
"""Cluster queue, instance type, resource."""


class TaskState(StrEnum):
    """What a task is doing: stable tokens."""

    RUNNING = "running"
    WAITING_FOR_NODES = "waiting-for-nodes"
    """It is admitted, and there are no nodes for its pods yet."""
    PENDING = "pending"
    """It waits for quota."""
    PREEMPTED = "preempted"
    """It lost its quota to other work, and waits to be admitted again."""
    SUSPENDED = "suspended"
    """Its Workload is deactivated (`spec.active: false`): it is not queued."""
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Task:
    """One task. Amounts are in base units; `job` is the name that `explain` takes, with the team or without."""

    team: str
    job: str
    kind: str
    """The kind of the job that owns the Workload; `Workload` where nothing does."""
    state: TaskState
    since: datetime
    """Since when it has been in this state."""
    created: datetime
    priority_class: str | None
    priority: int
    instance_types: tuple[str, ...]
    """Where it is admitted, else what its node selectors name."""
    asks: Mapping[ResourceName, int]
    beyond_quota: Mapping[ResourceName, int]
    """What it holds beyond its team's quota: borrowed and over quota together (`taskgov.usage.loans`).

    Kueue counts it by queue, not by task: it is attributed to the tasks that Kueue would reclaim first (lowest
    priority, then the last that was admitted)."""

    @property
    def leading(self) -> Mapping[ResourceName, int]:
        """The accelerators that it requests; all that it requests where there are none."""
        return {name: amount for name, amount in self.asks.items() if is_accelerator(name) and amount} or self.asks


def tasks_of(snapshot: Snapshot) -> tuple[Task, ...]:
    """Return every task, the newest first; ties by team and name.

    The order is inferred: the documentation of the Tasks tab names none. A report and the pages of teams ask for them
    one after the other: they are made once.
    """
    asked = snapshot.nodes, snapshot.policy, snapshot.cluster
    made = _made(snapshot.kueue)
    known = next((tasks for of, tasks in made if all(map(is_, of, asked))), None)
    if known is None:
        known = _tasks(snapshot)
        made.append((asked, known))
    return known


@once
def _made(_kueue: KueueObjects) -> list[tuple[tuple[object, ...], tuple[Task, ...]]]:
    """Return what was made of these objects so far, with what else it was made of."""
    return []


def _tasks(snapshot: Snapshot) -> tuple[Task, ...]:
    read = _read_all(snapshot.kueue)
    beyond = _beyond_quota(snapshot, read)
    short = short_of_nodes(snapshot)
    tasks = (_task(item, beyond.get(item.workload.key, {}), is_short=item.workload.key in short) for item in read)
    return tuple(sorted(tasks, key=lambda task: (-task.created.timestamp(), task.team, task.job)))


class _Read:
    """A Workload with what it holds and the conditions that are true."""

    def __init__(self, item: KubernetesObject, classes: Mapping[str, int]) -> None:
        status = item.get("status") or {}
        self.item = item
        self.workload: Workload = read_workload(item, classes)
        conditions = read_conditions(status)
        self.true = {kind: condition for kind, condition in conditions.items() if condition.status}
        self.lacks_pods = "PodsReady" in conditions.keys() - self.true.keys()
        holds = "QuotaReserved" in self.true and "Finished" not in self.true
        self.admission: Admission | None = read_admission(status) if holds else None

    @property
    def reserved(self) -> Instant:
        return self.true["QuotaReserved"].since


@once
def _read_all(kueue: KueueObjects) -> tuple[_Read, ...]:
    """Return all Workloads."""
    classes = {priority["metadata"]["name"]: int(priority["value"]) for priority in kueue.priority_classes}
    return tuple(_Read(item, classes) for item in kueue.workloads)


def _task(read: _Read, beyond_quota: Mapping[ResourceName, int], *, is_short: bool) -> Task:
    workload, its = read.workload, named(read.item)
    state, since = _state(read, is_short=is_short)
    owners = read.item["metadata"].get("ownerReferences") or ()
    asks: dict[ResourceName, int] = {}
    for pods in workload.pod_sets:
        for resource, amount in pods.requests:
            asks[resource] = asks.get(resource, 0) + pods.count * amount
    return Task(
        team=its.team,
        job=its.job,
        kind=next((owner.get("kind", "Workload") for owner in owners if owner.get("controller", True)), "Workload"),
        state=state,
        since=moment(since),
        created=moment(workload.created),
        priority_class=workload.priority_class,
        priority=workload.priority,
        instance_types=tuple(sorted(_instance_types(read))),
        asks=asks,
        beyond_quota=beyond_quota,
    )


def _state(read: _Read, *, is_short: bool) -> tuple[TaskState, Instant]:
    true, created = read.true, read.workload.created
    evicted = true["Evicted"].since if "Evicted" in true else created
    if "Finished" in true:
        return TaskState.FINISHED, true["Finished"].since
    if not read.workload.active:
        return TaskState.SUSPENDED, evicted
    if "Preempted" in true:
        return TaskState.PREEMPTED, true["Preempted"].since
    if read.admission is None:
        return TaskState.PENDING, evicted
    admitted = true["Admitted"].since if "Admitted" in true else read.reserved
    return TaskState.WAITING_FOR_NODES if is_short or read.lacks_pods else TaskState.RUNNING, admitted


def _instance_types(read: _Read) -> set[str]:
    if read.admission is not None:
        return {flavor for pods in read.admission.pod_sets for flavor in pods.flavors.values()}
    wanted = (dict(pods.node_selector).get(INSTANCE_TYPE_LABEL) for pods in read.workload.pod_sets)
    return {name for name in wanted if name}


def _beyond_quota(snapshot: Snapshot, read: Iterable[_Read]) -> dict[str, dict[ResourceName, int]]:
    """Return what each workload holds beyond quota, by key: accelerators, and cpu of those that hold none."""
    left: dict[Place, int] = {
        (line.queue, line.instance_type, line.resource): line.borrowed + line.over_quota
        for line in usage_in(snapshot.kueue).lines
        if line.borrowed or line.over_quota
    }
    holding = [item for item in read if item.admission is not None] if left else []
    found: dict[str, dict[ResourceName, int]] = {}
    for item in sorted(holding, key=lambda item: (item.workload.priority, -item.reserved, item.workload.key)):
        for place, amount in _held(item.admission):
            part = min(amount, left.get(place, 0))
            if part:
                left[place] -= part
                of_task = found.setdefault(item.workload.key, {})
                of_task[place[2]] = of_task.get(place[2], 0) + part
    return found


def _held(admission: Admission | None) -> Iterator[tuple[Place, int]]:
    """Return what an admission holds of what counts: accelerators, else cpu."""
    if admission is None:
        return
    held = [
        ((admission.cluster_queue, flavor, resource), pods.usage.get(resource, 0))
        for pods in admission.pod_sets
        for resource, flavor in pods.flavors.items()
    ]
    leading = [(place, amount) for place, amount in held if is_accelerator(place[2])]
    yield from leading or [(place, amount) for place, amount in held if place[2] == "cpu"]
