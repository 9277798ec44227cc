"""Which columns does `kubectl get` show of a type, and what is in them? The tables that the API server prints.

Columns of custom resources are those of their definitions (Kueue v0.19, training operator, KubeRay), those of built-in
types kubectl's own (Kubernetes v1.36 `pkg/printers/internalversion`). Cells are text; an absent value is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from taskgov_embedded.cluster.states import (
    RUNNING,
    SUCCEEDED,
    SUSPENDED,
    WAITING_FOR_NODES,
    condition_status,
    job_state,
    pod_state,
    pods_belonging_to,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from taskgov_embedded.cluster.objects import KubeObject, Listable

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400
_AGE_STEPS: Final = (
    (2 * _MINUTE, "s", 1, "", 1),
    (10 * _MINUTE, "m", _MINUTE, "s", 1),
    (3 * _HOUR, "m", _MINUTE, "", 1),
    (8 * _HOUR, "h", _HOUR, "m", _MINUTE),
    (2 * _DAY, "h", _HOUR, "", 1),
    (8 * _DAY, "d", _DAY, "h", _HOUR),
    (2 * _YEAR, "d", _DAY, "", 1),
)
"""Up to which age (seconds) which units are shown: unit and its seconds, then the smaller one, if any."""

Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableType:
    """The columns between NAME and AGE, and what an object has in them."""

    columns: tuple[str, ...] = ()
    cells: Callable[[Listable, KubeObject], Cells] = lambda _store, _item: ()
    wide: tuple[str, ...] = ()
    wide_cells: Callable[[KubeObject], Cells] = lambda _item: ()
    """Columns after AGE that `-o wide` adds."""


def headers(plural: str) -> tuple[str, ...]:
    """Return the names of a type's columns as kubectl shows them, without those of `-o wide`.

    Example:
        >>> headers("workloads")
        ('NAME', 'QUEUE', 'RESERVED IN', 'ADMITTED', 'FINISHED', 'AGE')

    """
    return ("NAME", *(name.upper() for name in _type(plural).columns), "AGE")


def row(store: Listable, plural: str, item: KubeObject, now: datetime) -> Cells:
    """Return an object's cells, in the order of `headers`."""
    return (item["metadata"]["name"], *_type(plural).cells(store, item), age(item, now))


def table_of(
    store: Listable, plural: str, items: Sequence[KubeObject], now: datetime, metadata: Mapping[str, Any]
) -> KubeObject:
    """Return the `Table` that the API server answers when kubectl asks for one."""
    kind = _type(plural)
    shown = ("Name", *kind.columns, "Age")
    columns = [_column(name, 0) for name in shown] + [_column(name, 1) for name in kind.wide]
    rows = [
        {
            "cells": [*row(store, plural, item, now), *kind.wide_cells(item)],
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
        "columnDefinitions": columns,
        "rows": rows,
    }


def age(item: Mapping[str, Any], now: datetime) -> str:
    """Return how old an object is; an object without a moment of creation has no age."""
    created = item["metadata"].get("creationTimestamp")
    if created is None:
        return "<unknown>"
    moment = datetime.strptime(created, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return human_duration(int((now - moment).total_seconds()))


def human_duration(seconds: int) -> str:
    """Write an age as kubectl does (apimachinery `duration.HumanDuration`).

    Example:
        >>> [human_duration(n) for n in (11, 119, 120, 227, 599, 600, 10800, 30000, 90000, 200000)]
        ['11s', '119s', '2m', '3m47s', '9m59s', '10m', '3h', '8h', '25h', '2d7h']

    """
    for limit, unit, size, small_unit, small_size in _AGE_STEPS:
        if seconds < limit:
            return _two_parts(
                max(0, seconds) // size, unit, seconds % size // small_size if small_unit else 0, small_unit
            )
    return _two_parts(seconds // _YEAR, "y", seconds % _YEAR // _DAY, "d")


def _two_parts(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def _column(name: str, priority: int) -> dict[str, Any]:
    form = "name" if name == "Name" else ""
    return {"name": name, "type": "string", "format": form, "description": "", "priority": priority}


def _at(item: Mapping[str, Any], *path: str) -> str:
    found: Any = item
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return "" if found is None else str(found)


def _workload(_store: Listable, item: KubeObject) -> Cells:
    reserved_in = _at(item, "status", "admission", "clusterQueue")
    states = (condition_status(item, "Admitted"), condition_status(item, "Finished"))
    return (_at(item, "spec", "queueName"), reserved_in, *states)


def _ready_pods(store: Listable, item: KubeObject) -> tuple[int, int]:
    """Count the running pods of a Deployment, StatefulSet or Job, and those that it has."""
    pods = pods_belonging_to(store, item)
    return sum(pod["status"]["phase"] == "Running" for pod in pods), len(pods)


def _deployment(store: Listable, item: KubeObject) -> Cells:
    ready, present = _ready_pods(store, item)
    return (f"{ready}/{_replicas(item)}", str(present), str(ready))


def _replicas(item: KubeObject) -> int:
    return int(item["spec"].get("replicas", 1))


def _batch_job(store: Listable, item: KubeObject) -> Cells:
    state = job_state(store, item)
    wanted = item["spec"].get("completions", item["spec"].get("parallelism", 1))
    shown = {SUCCEEDED: "Complete", SUSPENDED: "Suspended"}.get(state, "Running")
    return (shown, f"{wanted if state == SUCCEEDED else 0}/{wanted}")


def _ray_job(store: Listable, item: KubeObject) -> Cells:
    state = job_state(store, item)
    job = {RUNNING: "RUNNING", SUCCEEDED: "SUCCEEDED"}.get(state, "")
    return (job, {SUCCEEDED: "Complete", WAITING_FOR_NODES: "Initializing"}.get(state, state))


def _training_job(store: Listable, item: KubeObject) -> Cells:
    state = job_state(store, item)
    return ("Created" if state == WAITING_FOR_NODES else state,)


def _node(_store: Listable, item: KubeObject) -> Cells:
    ready = "Ready" if condition_status(item, "Ready") == "True" else "NotReady"
    cordoned = ",SchedulingDisabled" if item["spec"].get("unschedulable") else ""
    return (ready + cordoned, "<none>")


def _event(_store: Listable, item: KubeObject) -> Cells:
    about = item["involvedObject"]
    return (item["type"], item["reason"], f"{about['kind'].lower()}/{about['name']}", item["message"])


TABLES: Final[Mapping[str, TableType]] = {
    "workloads": TableType(("Queue", "Reserved in", "Admitted", "Finished"), _workload),
    "pods": TableType(
        ("Ready", "Status", "Restarts"),
        lambda _store, item: (*pod_state(item), "0"),
        ("IP", "Node", "Nominated Node", "Readiness Gates"),
        lambda item: ("<none>", _at(item, "spec", "nodeName") or "<none>", "<none>", "<none>"),
    ),
    "namespaces": TableType(("Status",), lambda _store, _item: ("Active",)),
    "nodes": TableType(("Status", "Roles"), _node),
    "events": TableType(("Type", "Reason", "Object", "Message"), _event),
    "services": TableType(
        ("Type", "Cluster-IP"), lambda _store, item: (_at(item, "spec", "type") or "ClusterIP", "None")
    ),
    "deployments": TableType(("Ready", "Up-to-date", "Available"), _deployment),
    "statefulsets": TableType(("Ready",), lambda store, item: (f"{_ready_pods(store, item)[0]}/{_replicas(item)}",)),
    "jobs": TableType(("Status", "Completions"), _batch_job),
    "pytorchjobs": TableType(("State",), _training_job),
    "rayjobs": TableType(("Job Status", "Deployment Status"), _ray_job),
    "clusterqueues": TableType(
        ("Cohort", "Pending Workloads"),
        lambda _store, item: (_at(item, "spec", "cohortName"), _at(item, "status", "pendingWorkloads")),
    ),
    "localqueues": TableType(
        ("ClusterQueue", "Pending Workloads", "Admitted Workloads"),
        lambda _store, item: (
            _at(item, "spec", "clusterQueue"),
            _at(item, "status", "pendingWorkloads"),
            _at(item, "status", "admittedWorkloads"),
        ),
    ),
    "workloadpriorityclasses": TableType(("Value",), lambda _store, item: (_at(item, "value"),)),
}
_PLAIN: Final = TableType()


def _type(plural: str) -> TableType:
    return TABLES.get(plural, _PLAIN)
