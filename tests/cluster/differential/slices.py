"""Jobs that change while they run: a slice of an elastic job, a pod that is done and not needed again."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.cluster.kube import Object

_REPLACES: Final = "kueue.x-k8s.io/workload-slice-replacement-for"


def a_slice(running: Object, change: int) -> Object:
    """Return a new slice of the job of a running workload, with so many pods more in its last pod set."""
    metadata = running["metadata"]
    spec = copy.deepcopy(running["spec"])
    for pod_set in spec["podSets"]:
        pod_set.pop("minCount", None)
    spec["podSets"][-1]["count"] = max(1, spec["podSets"][-1]["count"] + change)
    return {
        "apiVersion": running["apiVersion"],
        "kind": "Workload",
        "metadata": {
            "name": f"{metadata['name']}-s",
            "namespace": metadata["namespace"],
            "annotations": {_REPLACES: f"{metadata['namespace']}/{metadata['name']}"},
        },
        "spec": spec,
    }


def one_pod_less(running: Object) -> tuple[str, int] | None:
    """Return the pod set of which one more pod is done, and how many are then; `None` when none is left to be."""
    held = running["status"]["admission"]["podSetAssignments"][-1]
    told = running["status"].get("reclaimablePods") or ()
    done = next((one["count"] for one in told if one["name"] == held["name"]), 0)
    return (held["name"], done + 1) if done < held["count"] else None
