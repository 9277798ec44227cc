"""What can be said of a cluster of which a person sees only a part? What is theirs; the rest is named, never guessed.

`taskgov status`, `jobs` and `explain` ask. A number that needs more than what was seen (lent, idle, fair share, who
borrows) is left out: half of the queues give half of the truth.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from taskgov.hyperpod.names import team_of_namespace
from taskgov.kueue.named import named
from taskgov.quantities import CPU, ResourceName, is_accelerator
from taskgov.scheduling.status_reading import read_admission, read_conditions
from taskgov.snapshot.model import KubernetesObject, Snapshot
from taskgov.snapshot.unseen import Part
from taskgov.usage.capacity import Offers, leading_resources
from taskgov.usage.quota_usage import team_of, usage_of

STANDING_NEEDS: Final = frozenset({Part.NODES, Part.COHORTS, Part.CLUSTER_QUEUES, Part.WORKLOADS})
"""Without any of these nobody can say who lends, what is idle, and what fair sharing gives."""
EXPLAINING_NEEDS: Final = frozenset(Part) - {Part.INSTANCES, Part.RECORDS}
"""The scheduler decides with all of these; SageMaker's list of instances only adds those that did not join."""
LISTING_NEEDS: Final = frozenset({Part.WORKLOADS, Part.NODES, Part.PRIORITY_CLASSES})
"""What a list of tasks shows, beside what each holds beyond quota (`beyond_quota_unknown`)."""

_SENTENCES: Final[Mapping[Part, str]] = {
    Part.WORKLOADS: "tasks of other teams: who holds what, and which tasks are before yours in line",
    Part.CLUSTER_QUEUES: "other teams' quotas: what is lent, idle, borrowed, from whom, and the fair shares",
    Part.COHORTS: "cohorts: quota that belongs to no team",
    Part.NODES: "nodes: the capacity, and whether there are machines for admitted tasks",
    Part.RESOURCE_FLAVORS: "resource flavors: which instance types suit a task",
    Part.PRIORITY_CLASSES: "priority classes: the value of a class, if a task does not state it",
    Part.LIMIT_RANGES: "limit ranges: what they add to a task's requests, and which tasks are refused for them",
    Part.RUNTIME_CLASSES: "runtime classes: what they add to a task's requests",
    Part.QUOTAS: "compute quotas in SageMaker: the planned quotas of the teams",
    Part.CLUSTER_POLICY: "the cluster policy: whether idle quota is shared by weight",
    Part.RECORDS: "what the stack stores: the policy document, leases, who edited a quota",
    Part.INSTANCES: "SageMaker's list of instances: those that have not joined the cluster",
}
_OWN_QUEUE_HIDDEN: Final = "quotas: neither your team's nor other teams'"
_FEW_TASKS: Final = "whether there are machines for admitted tasks: other teams' tasks hold machines too"


@dataclass(frozen=True, slots=True)
class OwnLine:
    """One team on one instance type and leading resource, in base units; None: not visible."""

    team: str
    instance_type: str
    resource: ResourceName
    quota: int | None
    used: int
    """By the ClusterQueue where it is visible, else by the tasks that are."""
    unused: int | None
    """Quota that the team does not use itself: idle or lent."""
    beyond_quota: int | None
    """What it holds beyond its quota: borrowed or over quota; which of them depends on what other teams leave idle."""


def sees_all(snapshot: Snapshot, needs: frozenset[Part]) -> bool:
    """Return whether everything that an answer needs was seen."""
    return not needs & {gap.part for gap in snapshot.unseen}


def not_visible(snapshot: Snapshot, needs: frozenset[Part]) -> tuple[str, ...]:
    """Return what the person's rights do not show of what an answer needs, as sentences."""
    unseen = {gap.part: gap for gap in snapshot.unseen if gap.part in needs}
    said = []
    for part, sentence in _SENTENCES.items():
        if part in unseen:
            hidden = part is Part.CLUSTER_QUEUES and not unseen[part].seen
            said.append(_OWN_QUEUE_HIDDEN if hidden else sentence)
    if Part.WORKLOADS in unseen and Part.NODES in needs - unseen.keys():
        said.append(_FEW_TASKS)
    return tuple(said)


def own_lines(snapshot: Snapshot) -> tuple[OwnLine, ...]:
    """Return how the teams stand that can be seen; by team, instance type and resource."""
    usage = usage_of(snapshot.kueue.cluster_queues)
    leading = leading_resources(usage, Offers(snapshot))
    lines = [
        OwnLine(
            team=line.team,
            instance_type=line.instance_type,
            resource=line.resource,
            quota=line.guaranteed,
            used=line.used,
            unused=max(0, line.guaranteed - line.used),
            beyond_quota=max(0, line.used - line.guaranteed),
        )
        for line in usage.lines
        if (line.instance_type, line.resource) in leading
    ]
    return tuple(sorted((*lines, *_without_queue(snapshot)), key=lambda line: (line.team, line.instance_type)))


def beyond_quota_unknown(snapshot: Snapshot) -> frozenset[tuple[str, str]]:
    """Return the tasks (team and job) of which nobody can say whether they hold anything beyond quota.

    What a team has beyond its quota is attributed to tasks: its ClusterQueue and all tasks in it must be seen for that.
    """
    holding = [(named(item), queue) for item in snapshot.kueue.workloads if (queue := _holds_in(item))]
    counts = {queue: sum(holder_queue == queue for _, holder_queue in holding) for _, queue in holding}
    unknown = {queue for queue in counts if queue not in _reserving(snapshot)} | {
        queue for queue, number in _reserving(snapshot).items() if number is not None and number > counts.get(queue, 0)
    }
    return (
        frozenset((its.team, its.job) for its, queue in holding if queue in unknown) if snapshot.unseen else frozenset()
    )


def _reserving(snapshot: Snapshot) -> dict[str, int | None]:
    """Return how many workloads hold quota in each ClusterQueue that is visible, as Kueue counts them."""
    return {
        str(cluster_queue["metadata"]["name"]): (cluster_queue.get("status") or {}).get("reservingWorkloads")
        for cluster_queue in snapshot.kueue.cluster_queues
    }


def _holds_in(item: KubernetesObject) -> str | None:
    """Return the ClusterQueue in which a workload holds quota."""
    status = item.get("status") or {}
    true = {kind for kind, condition in read_conditions(status).items() if condition.status}
    admission = read_admission(status) if "QuotaReserved" in true and "Finished" not in true else None
    return None if admission is None else str(admission.cluster_queue)


def _without_queue(snapshot: Snapshot) -> Iterable[OwnLine]:
    """Add up what the visible tasks hold in ClusterQueues that are not visible."""
    seen = {cluster_queue["metadata"]["name"] for cluster_queue in snapshot.kueue.cluster_queues}
    used: dict[tuple[str, str, ResourceName], int] = {}
    for item in snapshot.kueue.workloads:
        if (queue := _holds_in(item)) is None or queue in seen:
            continue
        admission = read_admission(item.get("status") or {})
        namespace = item["metadata"].get("namespace") or ""
        for pods in admission.pod_sets if admission else ():
            for resource, flavor in pods.flavors.items():
                place = (team_of_namespace(namespace) or namespace, str(flavor), resource)
                used[place] = used.get(place, 0) + pods.usage.get(resource, 0)
    accelerated = {place[:2] for place, amount in used.items() if is_accelerator(place[2]) and amount}
    return [
        OwnLine(team, instance_type, resource, quota=None, used=amount, unused=None, beyond_quota=None)
        for (team, instance_type, resource), amount in used.items()
        if (is_accelerator(resource) if (team, instance_type) in accelerated else resource == CPU) and amount
    ]


def visible_teams(snapshot: Snapshot) -> set[str]:
    """Return the teams of which something can be seen: a queue, a task, or a compute quota."""
    quotas = (quota.compute_quota_target.team_name for quota in snapshot.quotas)
    local = (local_queue["metadata"].get("namespace") or "" for local_queue in snapshot.kueue.local_queues)
    return {
        *quotas,
        *(team_of(cluster_queue) for cluster_queue in snapshot.kueue.cluster_queues),
        *(team_of_namespace(namespace) or namespace for namespace in local),
        *(named(item).team for item in snapshot.kueue.workloads),
    }
