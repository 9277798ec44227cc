"""Objects of a cluster with every field that decisions read."""

import json
from typing import Any

import yaml

from taskgov.adapters.kubernetes.trimming import (
    kept,
    trimmed,
    trimmed_limit_range,
    trimmed_node,
    trimmed_runtime_class,
    trimmed_workload,
)
from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.lease_book import lease_book
from taskgov.allocation.planner import plan_quotas
from taskgov.contracts.steps import AuditClusterRequest
from taskgov.services.measure_usage import measure_usage
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from taskgov.snapshot.model import KueueObjects
from taskgov.snapshot.readable import KINDS
from taskgov.usage.cluster_usage import cluster_usage
from taskgov.usage.workload_memory import record_of
from taskgov.work.owners import name_of
from tests.fuzz.samples import DOCUMENT, audit_of, busy
from tests.support.clusters import GovernedCluster
from tests.support.memory import CLUSTER_ARN

Object = dict[str, Any]
AT = "2026-11-20T08:00:00Z"
OWNER = "owner"
"""The annotation that names a job's owner."""
TOLERATION = {"key": "k", "operator": "Exists", "value": "", "effect": "NoSchedule"}
TAINT = {"key": "k", "value": "v", "effect": "PreferNoSchedule"}
EXPRESSION = {"key": "a", "operator": "In", "values": ["b"]}
METADATA = {
    "uid": "u",
    "generation": 3,
    "labels": {"a": "b", "kueue.x-k8s.io/priority-class": "training"},
    "annotations": {"kueue.x-k8s.io/workload-slice-replacement-for": "x", OWNER: "ana"},
    "creationTimestamp": AT,
    "ownerReferences": [
        {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "job", "uid": "o", "controller": True}
    ],
}


def condition(kind: str) -> Object:
    return {"type": kind, "status": "True", "reason": "r", "message": "m", "lastTransitionTime": AT}


NODE: Object = {
    "metadata": {**METADATA, "name": "stranger", "labels": {"node.kubernetes.io/instance-type": "ml.g5.12xlarge"}},
    "spec": {
        "providerID": "aws:///us-east-1a/i-0123456789abcdef0",
        "taints": [TAINT],
        "unschedulable": False,
    },
    "status": {
        "conditions": [condition("Ready")],
        "allocatable": {"cpu": "4", "nvidia.com/gpu": "4"},
        "capacity": {"cpu": "4", "nvidia.com/gpu": "4"},
    },
}
SUMMARY: Object = {
    "InstanceId": "i-0123456789abcdef0",
    "InstanceGroupName": "workers",
    "InstanceType": "ml.g5.12xlarge",
    "InstanceStatus": {"Status": "Running", "Message": "m"},
    "PrivateDnsHostname": "ip-10-0-0-1.ec2.internal",
}
GROUP: Object = {
    "InstanceGroupName": "workers",
    "InstanceType": "ml.g5.12xlarge",
    "ThreadsPerCore": 1,
    "InstanceTypeDetails": [{"InstanceType": "ml.g5.12xlarge", "ThreadsPerCore": 1}],
    "CurrentCount": 2,
    "TargetCount": 2,
    "TrainingPlanArn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring",
}
POD: Object = {
    "nodeSelector": {"node.kubernetes.io/instance-type": "ml.g5.12xlarge"},
    "tolerations": [TOLERATION],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [EXPRESSION]}]
            }
        }
    },
    "overhead": {"cpu": "10m"},
    "resources": {"requests": {"cpu": "5"}, "limits": {"cpu": "6"}},
    "runtimeClassName": "kata",
    "priority": 5,
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z"}],
    "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
    "initContainers": [
        {
            "name": "i",
            "restartPolicy": "Always",
            "resources": {"requests": {"cpu": "1"}},
            "ports": [{"containerPort": 1, "hostPort": 80}],
        }
    ],
}
CLASS = {"group": "g", "kind": "WorkloadPriorityClass", "name": "training"}
WORKLOAD: Object = {
    "priority": 3,
    "priorityClassName": "training",
    "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
    "priorityClassRef": CLASS,
    "active": True,
    "maximumExecutionTimeSeconds": 60,
}
STATUS: Object = {
    "admissionChecks": [
        {
            "name": "c",
            "state": "Ready",
            "message": "m",
            "lastTransitionTime": AT,
            "requeueAfterSeconds": 3,
            "retryCount": 1,
        }
    ],
    "schedulingStats": {"evictions": [{"reason": "Preempted", "underlyingCause": "x", "count": 1}]},
    "accumulatedPastExecutionTimeSeconds": 30,
    "requeueState": {"count": 1, "requeueAt": AT},
    "reclaimablePods": [{"name": "main", "count": 0}],
    "unhealthyNodes": [{"name": "n"}],
    "resourceRequests": [{"name": "main", "resources": {"cpu": "1"}}],
}
QUEUE: Object = {
    "admissionChecks": ["c"],
    "admissionChecksStrategy": {"admissionChecks": [{"name": "c", "onFlavors": ["f"]}]},
    "namespaceSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [EXPRESSION]},
    "stopPolicy": "None",
    "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"},
    "queueingStrategy": "BestEffortFIFO",
    "fairSharing": {"weight": "1"},
    "admissionScope": {"admissionMode": "x"},
}
CONSUMED = {"admissionFairSharingStatus": {"consumedResources": {"cpu": "1"}, "lastUpdate": AT}}
LIMITS = {
    "type": "Container",
    "max": {"cpu": "9"},
    "min": {"cpu": "1"},
    "default": {"cpu": "2"},
    "defaultRequest": {"cpu": "1"},
}
TRIMS: Object = {
    "workloads": lambda item: trimmed_workload(item, OWNER),
    "limit_ranges": trimmed_limit_range,
    "runtime_classes": trimmed_runtime_class,
}


class World:
    """A busy cluster with whole objects, in which one may be replaced."""

    def __init__(self, cluster: GovernedCluster, nodes: list[Object], kueue: dict[str, list[Object]]) -> None:
        self.cluster, self.nodes, self.kueue = cluster, nodes, kueue
        self.take = cluster.take_snapshot()
        self.put("nodes", nodes[-1])

    def put(self, kind: str, spoiled: Any) -> None:
        """Replace the last object of a kind; all arrive as the reader of the API keeps them."""
        nodes = [*self.nodes[:-1], spoiled] if kind == "nodes" else self.nodes
        kueue = {name: [*items[:-1], spoiled] if name == kind else items for name, items in self.kueue.items()}
        self.cluster.kubernetes.node_objects = [kept(item, trimmed_node) for item in nodes]
        found: Object = {
            name: tuple(kept(item, TRIMS.get(name, trimmed)) for item in items) for name, items in kueue.items()
        }
        self.cluster.kubernetes.kueue = KueueObjects(**found)

    def play(self, kind: str, spoiled: Any, *, audit: bool) -> None:
        """Plan, measure and keep workloads; audit if it is asked for."""
        self.put(kind, spoiled)
        snapshot = snapshot_from_json(snapshot_to_json(self.take(CLUSTER_ARN)))
        plan_to_json(plan_quotas(snapshot, mode="apply"))
        measure_usage(cluster_usage(snapshot), snapshot.taken_at, lease_book(snapshot))
        for item in self.cluster.kubernetes.kueue.workloads:
            record_of(item, lambda found: name_of(found, OWNER))
        if audit:
            run = AuditClusterRequest(cluster_arn=CLUSTER_ARN, run_id="audit-1")
            audit_of(self.cluster, self.take)(run)


def whole_world() -> World:
    """Return a cluster in which work runs, waits and was preempted."""
    cluster = busy()
    cluster.documents.stored["policies/ml-cluster.yaml"] = yaml.safe_dump(DOCUMENT).encode()
    cluster.take_snapshot()
    nodes = [*cluster.kubernetes.node_objects, NODE]
    kueue = _copied({name: list(getattr(cluster.kubernetes.kueue, name)) for name in KINDS})
    for item in kueue["workloads"]:
        _fill(item, WORKLOAD, STATUS)
        item["spec"]["podSets"][0] |= {"minCount": 1, "topologyRequest": {"podSetGroupName": "g"}}
        item["spec"]["podSets"][0]["template"]["spec"] |= POD
    kueue["workloads"].append(_running(kueue))
    for item in kueue["cluster_queues"]:
        used = item["status"]["flavorsReservation"]
        status = {"conditions": [condition("Active")], "fairSharing": {"weightedShare": 3}, "flavorsUsage": used}
        _fill(item, QUEUE, status)
    for item in kueue["local_queues"]:
        _fill(item, {"stopPolicy": "None", "fairSharing": {"weight": "1"}}, {"fairSharing": CONSUMED})
    for item in kueue["resource_flavors"]:
        _fill(item, {"nodeTaints": [TAINT], "tolerations": [TOLERATION], "topologyName": "t"}, {})
    kueue["cohorts"].append({"metadata": {**METADATA, "name": "root"}, "spec": {"fairSharing": {"weight": "1"}}})
    kueue["priority_classes"].append({"metadata": {**METADATA, "name": "training"}, "value": 10})
    kueue["limit_ranges"] = [
        {"metadata": {"name": "l", "namespace": "hyperpod-ns-team-a"}, "spec": {"limits": [LIMITS]}}
    ]
    kueue["runtime_classes"] = [{"metadata": {"name": "kata"}, "overhead": {"podFixed": {"cpu": "1"}}}]
    return World(cluster, _copied(nodes), _copied(kueue))


def _fill(item: Object, spec: Object, status: Object) -> None:
    item["metadata"] = {**METADATA, **item["metadata"]}
    item["spec"] = {**item.get("spec", {}), **spec}
    item["status"] = {**status, **item.get("status", {})}


def _running(kueue: dict[str, list[Object]]) -> Object:
    work: Object = _copied(kueue["workloads"][0])
    work["metadata"] |= {"name": "runs", "uid": "uid-runs"}
    assignment = {
        "name": "main",
        "count": 1,
        "flavors": {"nvidia.com/gpu": kueue["resource_flavors"][0]["metadata"]["name"]},
        "resourceUsage": {"nvidia.com/gpu": "1"},
    }
    queue = kueue["cluster_queues"][0]["metadata"]["name"]
    work["status"] |= {
        "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
        "conditions": [condition("QuotaReserved"), condition("Admitted")],
    }
    return work


def _copied(value: Any) -> Any:
    """Return a copy that shares nothing, as JSON has it."""
    return json.loads(json.dumps(value))
