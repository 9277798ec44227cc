"""Find the lost nodes whose loss their provider confirms: SageMaker, EC2, or the autoscaler that removes them.

| a lost node | is confirmed by |
| --- | --- |
| in SageMaker's list | a status other than `Running`, a health label of HyperPod, a deep health check not passed |
| in any list | a taint of the autoscaler that removes it |
| a machine of plain EKS | EC2, if it does not list the machine, or lists it as stopping, stopped or terminated |
| a machine of plain EKS that still runs | Auto Scaling, if it terminates the machine and waits for a lifecycle hook |
| of a training plan or Capacity Block | its end: AWS reclaims the machines 30 or 60 minutes before |
| of an instance group that is being scaled down | TargetCount below the number listed, for as many nodes |
| in no list | SageMaker's list, with as many nodes of its group as CurrentCount or TargetCount, or without the group |
"""

from itertools import chain
from operator import attrgetter
from typing import Final

from taskgov.snapshot.health import node_fault
from taskgov.snapshot.leaving import has_left
from taskgov.snapshot.model import InstanceGroup, Node, Snapshot

NOT_FOUND: Final = "not-found"
"""The `ec2_state` of a machine that EC2 does not list, or no longer lists."""
REMOVED: Final = "removed-by-auto-scaling"
"""The `ec2_state` of a machine that runs until the lifecycle hooks of its Auto Scaling group are done."""
EC2_GONE: Final = frozenset({NOT_FOUND, REMOVED, "shutting-down", "terminated", "stopping", "stopped"})
_REMOVED_BY: Final = frozenset({"karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler"})


def confirmed_nodes(snapshot: Snapshot) -> frozenset[str]:
    """Return the names of the nodes whose loss their provider confirms."""
    by_group: dict[str | None, list[Node]] = {}
    for node in snapshot.nodes:
        by_group.setdefault(node.instance_group, []).append(node)
    groups = {group.name: group for group in snapshot.cluster.instance_groups}
    listed = {name: sum(node.instance_status is not None for node in by_group.get(name, ())) for name in groups}
    confirmed = {
        node.name
        for node in chain(snapshot.nodes, snapshot.gone)
        if _says_so(node) or has_left(node, snapshot.taken_at)
    }
    for name, group in groups.items():
        missed = [node for node in by_group.get(name, ()) if node_fault(node) is not None]
        leaving = 0 if group.target_count is None else listed[name] - group.target_count
        leaving -= sum(node.name in confirmed for node in missed)
        unsaid = sorted((node for node in missed if node.name not in confirmed), key=attrgetter("name"))
        confirmed |= {node.name for node in unsaid[: max(0, leaving)]}
    for node in snapshot.gone:
        its_group = groups.get(node.instance_group or "")
        if node.instance_group and groups and (its_group is None or _is_whole(its_group, listed[its_group.name])):
            confirmed.add(node.name)
    return frozenset(confirmed)


def _says_so(node: Node) -> bool:
    if node_fault(node) is None:
        return False
    return (
        node.instance_status not in {None, "Running"}
        or node.health not in {None, "Schedulable"}
        or node.deep_health_check not in {None, "Passed"}
        or node.ec2_state in EC2_GONE
        or any(taint.key in _REMOVED_BY for taint in node.taints)
    )


def _is_whole(group: InstanceGroup, listed: int) -> bool:
    """Return whether SageMaker lists as many nodes of a group as its CurrentCount or TargetCount."""
    counts = [count for count in (group.current_count, group.target_count) if count is not None]
    return bool(counts) and listed >= min(counts)


def is_confirmed_empty(snapshot: Snapshot) -> bool:
    """Return whether all instance groups have CurrentCount 0 and TargetCount 0."""
    groups = snapshot.cluster.instance_groups
    return bool(groups) and all(group.current_count == 0 and group.target_count == 0 for group in groups)
