"""Which columns does `kubectl get` show of a type, and what is in them? The tables that the API server prints.

Columns of custom resources are those of their definitions (Kueue v0.19, training operator v1.9, KubeRay v1.6; a
ClusterQueue, a LocalQueue and a WorkloadPriorityClass have no age), those of built-in types kubectl's own (Kubernetes
v1.36 `pkg/printers/internalversion`). Cells are text; an absent value is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from taskgov_embedded.cluster.ages import age, age_of, moment_of
from taskgov_embedded.cluster.states import condition_status, pod_state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from taskgov_embedded.cluster.objects import KubeObject

Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a type: its name, and what an object has in it. `wide` ones are shown by `-o wide` only."""

    name: str
    cell: Callable[[KubeObject, datetime], str]
    wide: bool = False


def headers(plural: str) -> tuple[str, ...]:
    """Return the names of a type's columns as kubectl shows them, without those of `-o wide`.

    Example:
        >>> headers("workloads")
        ('NAME', 'QUEUE', 'RESERVED IN', 'ADMITTED', 'FINISHED', 'AGE')

    """
    return tuple(column.name.upper() for column in _columns(plural) if not column.wide)


def row(plural: str, item: KubeObject, now: datetime) -> Cells:
    """Return an object's cells, in the order of `headers`."""
    return tuple(column.cell(item, now) for column in _columns(plural) if not column.wide)


def table_of(plural: str, items: Sequence[KubeObject], now: datetime, metadata: Mapping[str, Any]) -> KubeObject:
    """Return the `Table` that the API server answers when kubectl requests one."""
    columns = _columns(plural)
    rows = [
        {
            "cells": [column.cell(item, now) for column in columns],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": item["metadata"],
            },
        }
        for item in items
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata),
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": rows,
    }


def _definition(column: Column) -> dict[str, Any]:
    form = "name" if column.name == "Name" else ""
    return {
        "name": column.name,
        "type": "string",
        "format": form,
        "description": "",
        "priority": 1 if column.wide else 0,
    }


def _at(item: Mapping[str, Any], *path: str) -> str:
    found: Any = item
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return "" if found is None else str(found)


def _field(name: str, *path: str, absent: str = "", wide: bool = False) -> Column:
    return Column(name, lambda item, _now: _at(item, *path) or absent, wide)


def _told(name: str, cell: Callable[[KubeObject], str], *, wide: bool = False) -> Column:
    return Column(name, lambda item, _now: cell(item), wide)


def _condition(name: str) -> Column:
    return _told(name, lambda item: condition_status(item, name))


def _job_status(item: KubeObject) -> str:
    """Name a Job's state as `kubectl get jobs` does: of its conditions the one that counts."""
    for kind in ("Complete", "Failed", "Suspended"):
        if condition_status(item, kind) == "True":
            return kind
    return "Running"


def _completions(item: KubeObject) -> str:
    spec = item["spec"]
    return f"{_at(item, 'status', 'succeeded') or 0}/{spec.get('completions', spec.get('parallelism', 1))}"


def _duration(item: KubeObject, now: datetime) -> str:
    begun, ended = _at(item, "status", "startTime"), _at(item, "status", "completionTime")
    return age_of(begun, moment_of(ended) if ended else now) if begun else ""


def _ready_replicas(item: KubeObject) -> str:
    return f"{_at(item, 'status', 'readyReplicas') or 0}/{item['spec'].get('replicas', 1)}"


def _last_condition(item: KubeObject) -> str:
    """Return what `.status.conditions[-1:].type` is, the column of the training operator."""
    return next((str(condition["type"]) for condition in reversed(item.get("status", {}).get("conditions", ()))), "")


def _node_status(item: KubeObject) -> str:
    ready = "Ready" if condition_status(item, "Ready") == "True" else "NotReady"
    return ready + (",SchedulingDisabled" if item["spec"].get("unschedulable") else "")


def _last_seen(item: KubeObject, now: datetime) -> str:
    return age_of(item.get("lastTimestamp") or item.get("firstTimestamp"), now)


def _ports(item: KubeObject) -> str:
    ports = item["spec"].get("ports") or ()
    return ",".join(f"{port['port']}/{port.get('protocol', 'TCP')}" for port in ports) or "<none>"


def _containers(field: str) -> Callable[[KubeObject], str]:
    return lambda item: ",".join(
        str(container.get(field, "")) for container in item["spec"]["template"]["spec"].get("containers", ())
    )


_NAME: Final = _field("Name", "metadata", "name")
_AGE: Final = Column("Age", age)
_PLAIN: Final = (_NAME, _AGE)
_OF_CONTAINERS: Final = (
    _told("Containers", _containers("name"), wide=True),
    _told("Images", _containers("image"), wide=True),
)

TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    "workloads": (
        _NAME,
        _field("Queue", "spec", "queueName"),
        _field("Reserved in", "status", "admission", "clusterQueue"),
        _condition("Admitted"),
        _condition("Finished"),
        _AGE,
    ),
    "pods": (
        _NAME,
        _told("Ready", lambda item: pod_state(item)[0]),
        _told("Status", lambda item: pod_state(item)[1]),
        _told("Restarts", lambda _item: "0"),
        _AGE,
        _field("IP", "status", "podIP", absent="<none>", wide=True),
        _field("Node", "spec", "nodeName", absent="<none>", wide=True),
        _told("Nominated Node", lambda _item: "<none>", wide=True),
        _told("Readiness Gates", lambda _item: "<none>", wide=True),
    ),
    "namespaces": (_NAME, _told("Status", lambda _item: "Active"), _AGE),
    "nodes": (
        _NAME,
        _told("Status", _node_status),
        _told("Roles", lambda _item: "<none>"),
        _AGE,
        _field("Version", "status", "nodeInfo", "kubeletVersion"),
    ),
    "events": (
        Column("Last Seen", _last_seen),
        _field("Type", "type"),
        _field("Reason", "reason"),
        _told("Object", lambda item: f"{item['involvedObject']['kind'].lower()}/{item['involvedObject']['name']}"),
        _field("Message", "message"),
    ),
    "services": (
        _NAME,
        _field("Type", "spec", "type", absent="ClusterIP"),
        _field("Cluster-IP", "spec", "clusterIP", absent="None"),
        _told("External-IP", lambda _item: "<none>"),
        _told("Port(s)", _ports),
        _AGE,
    ),
    "deployments": (
        _NAME,
        _told("Ready", _ready_replicas),
        _field("Up-to-date", "status", "updatedReplicas", absent="0"),
        _field("Available", "status", "availableReplicas", absent="0"),
        _AGE,
        *_OF_CONTAINERS,
    ),
    "statefulsets": (_NAME, _told("Ready", _ready_replicas), _AGE, *_OF_CONTAINERS),
    "jobs": (
        _NAME,
        _told("Status", _job_status),
        _told("Completions", _completions),
        Column("Duration", _duration),
        _AGE,
        *_OF_CONTAINERS,
    ),
    "pytorchjobs": (_NAME, _told("State", _last_condition), _AGE),
    "rayjobs": (
        _NAME,
        _field("Job Status", "status", "jobStatus"),
        _field("Deployment Status", "status", "jobDeploymentStatus"),
        _field("Ray Cluster Name", "status", "rayClusterName"),
        _field("Start Time", "status", "startTime"),
        _field("End Time", "status", "endTime"),
        _AGE,
    ),
    "clusterqueues": (
        _NAME,
        _field("Cohort", "spec", "cohortName"),
        _field("Strategy", "spec", "queueingStrategy", wide=True),
        _field("Pending Workloads", "status", "pendingWorkloads"),
        _field("Admitted Workloads", "status", "admittedWorkloads", wide=True),
    ),
    "localqueues": (
        _NAME,
        _field("ClusterQueue", "spec", "clusterQueue"),
        _field("Pending Workloads", "status", "pendingWorkloads"),
        _field("Admitted Workloads", "status", "admittedWorkloads"),
    ),
    "workloadpriorityclasses": (_NAME, _field("Value", "value")),
    "customresourcedefinitions": (_NAME, _field("Created At", "metadata", "creationTimestamp")),
    "validatingadmissionpolicies": (
        _NAME,
        _told("Validations", lambda item: str(len(item["spec"].get("validations", ())))),
        _field("ParamKind", "spec", "paramKind", "kind", absent="<unset>"),
        _AGE,
    ),
    "validatingadmissionpolicybindings": (
        _NAME,
        _field("PolicyName", "spec", "policyName"),
        _field("ParamRef", "spec", "paramRef", "name", absent="<unset>"),
        _AGE,
    ),
}


def _columns(plural: str) -> tuple[Column, ...]:
    return TABLES.get(plural, _PLAIN)
