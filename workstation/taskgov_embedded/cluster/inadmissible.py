"""Why can a workload not be considered? Its queue is missing or takes nothing: Kueue's workload controller says so.

The scheduler never sees such a workload, so that the reason has to come from here (Kueue v0.19,
`pkg/controller/core/workload_controller.go`: the same conditions, in the same order).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from taskgov_embedded.cluster.states import condition_status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.cluster.objects import KubeObject, ObjectStore

QUOTA_RESERVED: Final = "QuotaReserved"


def with_blocker(workload: KubeObject, store: ObjectStore, moment: str) -> KubeObject:
    """Return the workload with the condition that says which queue is in its way, or as it is."""
    pending = condition_status(workload, QUOTA_RESERVED) != "True" and condition_status(workload, "Finished") != "True"
    because = _blocker(workload, store) if pending else None
    if because is None:
        return workload
    status = workload.get("status", {})
    others = [other for other in status.get("conditions", ()) if other["type"] != QUOTA_RESERVED]
    condition = {"type": QUOTA_RESERVED, "status": "False", "reason": "Inadmissible", "message": because}
    since = _since(store.find("workloads", workload["metadata"]["name"], workload["metadata"]["namespace"]), moment)
    return {**workload, "status": {**status, "conditions": [{**condition, "lastTransitionTime": since}, *others]}}


def _blocker(workload: KubeObject, store: ObjectStore) -> str | None:
    name = workload["spec"].get("queueName", "")
    local = store.find("localqueues", name, workload["metadata"]["namespace"])
    if local is None:
        return f"LocalQueue {name} doesn't exist"
    if local["spec"].get("stopPolicy", "None") != "None":
        return f"LocalQueue {name} is inactive"
    queue_name = local["spec"]["clusterQueue"]
    queue = store.find("clusterqueues", queue_name)
    if queue is None:
        return f"ClusterQueue {queue_name} doesn't exist"
    return f"ClusterQueue {queue_name} is inactive" if condition_status(queue, "Active") == "False" else None


def _since(before: Mapping[str, Any] | None, moment: str) -> str:
    """Return since when there is no quota: a condition keeps its moment as long as its status stays."""
    for condition in (before or {}).get("status", {}).get("conditions", ()):
        if condition["type"] == QUOTA_RESERVED and condition["status"] == "False":
            return str(condition["lastTransitionTime"])
    return moment
