"""Why a node cannot take new work now, if it cannot.

`memory` keeps since when, `taskgov.allocation.capacity` counts. A node counts when Kubernetes has it ready and
schedulable, SageMaker says Running, and no health label or taint of HyperPod says otherwise (HyperPod developer
guide, "Kubernetes labels for resiliency"; HyperPod's own idle pool also requires MIG state `success`).
"""

from typing import Final

from taskgov.snapshot.model import Node, Taint

_KEEPING_WORK_OUT: Final = frozenset({"NoSchedule", "NoExecute"})
_TAINTS_OF_TROUBLE: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "sagemaker.amazonaws.com/node-health-status",
    "karpenter.sh/disrupted",
    "ToBeDeletedByClusterAutoscaler",
)
"""Keys (by prefix) that a controller sets on a node in trouble; one that reserves nodes for GPU work is none."""


def node_fault(node: Node) -> str | None:
    """Return in a few words why the node cannot take work, or None when it is healthy.

    Example:
        >>> [node_fault(Node("n", "ml.g5.8xlarge", cordoned=cordoned)) for cordoned in (False, True)]
        [None, 'cordoned']

    """
    if not node.in_kubernetes:
        return f"not in Kubernetes (SageMaker: {node.instance_status or 'unknown'})"
    if node.instance_status not in {None, "Running"}:
        return f"SageMaker: {node.instance_status}"
    if node.health not in {None, "Schedulable"}:
        return node.health
    if not node.ready:
        return "not ready"
    if node.cordoned:
        return "cordoned"
    return _slow_fault(node)


def _slow_fault(node: Node) -> str | None:
    if node.deep_health_check not in {None, "Passed"}:
        return f"deep health check {node.deep_health_check}"
    if node.mig_state not in {None, "success"}:
        return f"MIG state {node.mig_state}"
    tainted = next((taint for taint in node.taints if _is_trouble(taint)), None)
    return None if tainted is None else f"taint {tainted.key}"


def _is_trouble(taint: Taint) -> bool:
    return taint.effect in _KEEPING_WORK_OUT and taint.key.startswith(_TAINTS_OF_TROUBLE)
