"""The Kubernetes objects of a large cluster, as long as an API server sends them: decisions use a small part."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig, Switch
from taskgov.hyperpod.names import INSTANCE_TYPE_LABEL, NODE_HEALTH, cluster_queue_of, local_queue_of, namespace_of
from taskgov.kueue.render import render

Item = dict[str, Any]

TYPES: Final = (
    *(f"ml.g5.{size}xlarge" for size in ("", 2, 4, 8, 12, 16, 24, 48)),
    *(f"ml.g6.{size}xlarge" for size in ("", 2, 4, 8, 12, 16, 24, 48)),
    *("ml.p4d.24xlarge", "ml.p4de.24xlarge", "ml.p5.48xlarge", "ml.p5en.48xlarge"),
)
"""All have GPUs, so that each job counts for its team's share. With Neuron devices too, of which few can be lent, these
alone would decide a share: two teams with equal ones would preempt each other's GPU jobs forever, also in Kueue."""
SINCE: Final = "2026-11-20T08:00:00Z"
_TABLE: Final = InstanceTypeTable()
_ALLOCATABLE: Final = {"cpu": "191450m", "memory": "2063190Mi", "ephemeral-storage": "94284Mi", "pods": "100"}
_REPOSITORY: Final = "111122223333.dkr.ecr.us-east-1.amazonaws.com/machine-learning"
_CPU_JOB: Final = {"cpu": "250m", "memory": "512Mi"}


def node(number: int) -> Item:
    """Return a Node with all that the API server sends; one in twenty is broken."""
    name = f"hyperpod-i-{number:017x}"
    conditions = ("NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    images = [
        {"names": [f"{_REPOSITORY}/image-{n}@sha256:{'ab' * 32}", f"{_REPOSITORY}/image-{n}:v1"], "sizeBytes": 10**9}
        for n in range(40)
    ]
    instance_type = TYPES[number % len(TYPES)]
    numbers = _TABLE.require(instance_type)
    amounts = {**_ALLOCATABLE, numbers.accelerator_resource: str(numbers.accelerators), "vpc.amazonaws.com/efa": "32"}
    return {
        "metadata": {
            "name": name,
            "uid": f"{number:032x}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-11-01T08:00:00Z",
            "labels": {
                INSTANCE_TYPE_LABEL: instance_type,
                NODE_HEALTH: "Unschedulable" if number // len(TYPES) % 20 == 19 else "Schedulable",
                "sagemaker.amazonaws.com/deep-health-check-status": "Passed",
                **{f"example.com/label-{n}": f"value-{n}" for n in range(20)},
            },
            "annotations": {f"example.com/annotation-{n}": "x" * 40 for n in range(8)},
            "managedFields": [_managed_fields(n, 20) for n in range(3)],
        },
        "spec": {"providerID": f"aws:///use1-az1/sagemaker/cluster/{name}", "taints": []},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                {"type": kind, "status": str(kind == "Ready"), "lastHeartbeatTime": "2026-11-20T11:59:30Z"}
                for kind in conditions
            ],
            "images": images,
            "nodeInfo": {f"field{n}": "v" * 30 for n in range(10)},
        },
    }


def job(team: str, index: int, instance_type: str, *, whole: int, admitted: bool) -> Item:
    """Return a Workload of one pod set on one instance type: `whole` instances, or a part of one for 0."""
    name, count = f"{team}-job-{index}", max(whole, 1)
    numbers = _TABLE.require(instance_type)
    requests = {**_CPU_JOB, **({numbers.accelerator_resource: str(numbers.accelerators)} if whole else {})}
    workload: Item = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": namespace_of(team),
            "uid": f"uid-{name}",
            "resourceVersion": str(index),
            "generation": 1,
            "creationTimestamp": f"2026-11-20T07:{index:02}:00Z",
            "labels": {"kueue.x-k8s.io/job-uid": f"job-{name}"},
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"job-{name}", "controller": True}
            ],
            "managedFields": [_managed_fields(n, 20) for n in range(2)],
        },
        "spec": {
            "active": True,
            "queueName": local_queue_of(team),
            "priority": 0,
            "priorityClassName": "",
            "podSets": [{"name": "main", "count": count, "template": _template(instance_type, requests)}],
        },
        "status": {"conditions": [_condition("QuotaReserved", met=admitted), _condition("PodsReady", met=admitted)]},
    }
    if admitted:
        usage = {name: _times(amount, count) for name, amount in requests.items()}
        assignment = {
            "name": "main",
            "count": count,
            "flavors": dict.fromkeys(requests, instance_type),
            "resourceUsage": usage,
        }
        workload["status"] = {
            "admission": {"clusterQueue": cluster_queue_of(team), "podSetAssignments": [assignment]},
            "conditions": [_condition("QuotaReserved", met=True), _condition("Admitted", met=True)],
        }
    return workload


def rendered_objects(
    quotas: Sequence[ComputeQuota], running: Mapping[str, Sequence[Item]], table: InstanceTypeTable
) -> dict[str, list[Item]]:
    """Return Kueue's objects, by their plural, for quotas and the jobs that run on each team's queue."""
    rendered = render(quotas, SchedulerConfig(fair_share=Switch.ENABLED), table)
    queues = [{**queue, "status": _status(queue, running)} for queue in rendered.cluster_queues]
    return {
        "resourceflavors": [_sent(item) for item in rendered.resource_flavors],
        "clusterqueues": [_sent(item) for item in queues],
        "localqueues": [_sent(item) for item in rendered.local_queues],
        "workloadpriorityclasses": [],
        "cohorts": [],
    }


def _status(queue: Item, running: Mapping[str, Sequence[Item]]) -> Item:
    held = Counter[tuple[str, str]]()
    for workload in running.get(queue["metadata"]["name"], ()):
        for assignment in workload["status"]["admission"]["podSetAssignments"]:
            for resource, amount in assignment["resourceUsage"].items():
                held[assignment["flavors"][resource], resource] += _base(amount)
    flavors = [
        {
            "name": flavor["name"],
            "resources": [
                {
                    "name": resource["name"],
                    "total": _text(resource["name"], held[flavor["name"], resource["name"]]),
                    "borrowed": "0",
                }
                for resource in flavor["resources"]
            ],
        }
        for group in queue["spec"]["resourceGroups"]
        for flavor in group["flavors"]
    ]
    return {
        "admittedWorkloads": 25,
        "pendingWorkloads": 25,
        "reservingWorkloads": 25,
        "flavorsReservation": flavors,
        "flavorsUsage": flavors,
        "conditions": [_condition("Active", met=True)],
        "fairSharing": {"weightedShare": 0},
    }


def _sent(item: Item) -> Item:
    """Return an object with what the server adds."""
    metadata = {"uid": "0" * 32, "resourceVersion": "1", "managedFields": [_managed_fields(n, 40) for n in range(2)]}
    return {**item, "metadata": {**item["metadata"], **metadata}}


def _template(instance_type: str, requests: Mapping[str, str]) -> Item:
    container = {
        "name": "main",
        "image": f"{_REPOSITORY}/train:v1",
        "command": ["python", "-m", "train", *(f"--option-{n}=value-{n}" for n in range(20))],
        "env": [{"name": f"VARIABLE_{n}", "value": "v" * 40} for n in range(20)],
        "resources": {"requests": requests, "limits": requests},
        "volumeMounts": [{"name": f"volume-{n}", "mountPath": f"/mnt/volume-{n}"} for n in range(6)],
    }
    volumes = [{"name": f"volume-{n}", "persistentVolumeClaim": {"claimName": f"claim-{n}"}} for n in range(6)]
    spec = {
        "containers": [container],
        "volumes": volumes,
        "restartPolicy": "Never",
        "nodeSelector": {INSTANCE_TYPE_LABEL: instance_type},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
    return {"metadata": {"labels": {f"example.com/label-{n}": f"value-{n}" for n in range(10)}}, "spec": spec}


def _condition(kind: str, *, met: bool) -> Item:
    return {
        "type": kind,
        "status": str(met),
        "reason": kind if met else "Pending",
        "message": "" if met else "couldn't assign flavors to pod set main: insufficient unused quota",
        "lastTransitionTime": SINCE,
        "observedGeneration": 1,
    }


def _managed_fields(number: int, fields: int) -> Item:
    of_parts: Item = {f"f:field-{n}": {".": {}, f"f:part-{n}": {}} for n in range(fields)}
    return {"manager": f"manager-{number}", "operation": "Update", "apiVersion": "v1", "fieldsV1": of_parts}


def _times(amount: str, count: int) -> str:
    digits = amount.rstrip("mMi")
    return f"{int(digits) * count}{amount[len(digits) :]}"


def _base(amount: str) -> int:
    """Return an amount in the unit in which it is written here: thousandths of a CPU, mebibytes, pieces."""
    return int(amount.rstrip("mMi"))


def _text(resource: str, amount: int) -> str:
    return f"{amount}{ {'cpu': 'm', 'memory': 'Mi'}.get(resource, '') }" if amount else "0"


def by_queue(jobs: Iterator[Item]) -> dict[str, list[Item]]:
    """Return the jobs that hold quota, by the queue in which they do."""
    found: dict[str, list[Item]] = {}
    for workload in jobs:
        admission = workload["status"].get("admission")
        if admission:
            found.setdefault(admission["clusterQueue"], []).append(workload)
    return found
