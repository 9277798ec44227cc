"""What would a person see? The tables of kubectl and of the HyperPod CLI, over the cluster's objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from taskgov_embedded.cluster.jobs import JOB_TYPES, is_suspended
from taskgov_embedded.cluster.objects import TYPE_OF_KIND, KubeObject, ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

WORKLOAD_COLUMNS: Final = ("NAME", "QUEUE", "RESERVED IN", "ADMITTED", "FINISHED", "AGE")
POD_COLUMNS: Final = ("NAME", "READY", "STATUS", "RESTARTS", "AGE")
JOB_COLUMNS: Final = ("NAME", "NAMESPACE", "STATUS", "AGE")

_DESCRIBED: Final = (
    ("Last Transition Time", "lastTransitionTime"),
    ("Message", "message"),
    ("Observed Generation", "observedGeneration"),
    ("Reason", "reason"),
    ("Status", "status"),
    ("Type", "type"),
)

RUNNING: Final = "Running"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
WAITING_FOR_NODES: Final = "Admitted, waiting for nodes"

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


class Views:
    """Tables and descriptions at one moment after another; `now` tells the age of things."""

    def __init__(self, store: ObjectStore, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now

    def workloads(self, namespace: str) -> str:
        """Return `kubectl get workloads -n <namespace>` (the printer columns of Kueue's CRD)."""
        rows = [
            (
                one["metadata"]["name"],
                one["spec"].get("queueName", ""),
                one.get("status", {}).get("admission", {}).get("clusterQueue", ""),
                condition_status(one, "Admitted"),
                condition_status(one, "Finished"),
                self._age(one),
            )
            for one in self._store.list("workloads", namespace)
        ]
        return table(WORKLOAD_COLUMNS, rows)

    def pods(self, namespace: str) -> str:
        """Return `kubectl get pods -n <namespace>`."""
        rows = [
            (one["metadata"]["name"], *_pod_state(one), "0", self._age(one))
            for one in self._store.list("pods", namespace)
        ]
        return table(POD_COLUMNS, rows)

    def jobs(self, namespace: str | None = None) -> str:
        """Return the jobs with their state, as `hyp list` shows them: no age while suspended."""
        rows = []
        for job in jobs_in(self._store, namespace):
            state = job_state(self._store, job)
            age = "N/A" if state == SUSPENDED else self._age(job)
            rows.append((job["metadata"]["name"], job["metadata"]["namespace"], state, age))
        return table(JOB_COLUMNS, rows)

    def conditions(self, namespace: str, workload: str) -> str:
        """Return a workload's conditions in the words of `kubectl describe workload`."""
        found = self._store.get("workloads", workload, namespace)
        lines = ["Status:", "  Conditions:"]
        for condition in found.get("status", {}).get("conditions", ()):
            lines += [f"    {label + ':':<23}{condition[field]}" for label, field in _DESCRIBED if condition.get(field)]
        return "\n".join(lines)

    def _age(self, item: KubeObject) -> str:
        created = datetime.strptime(item["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        return human_duration(int((self._now() - created).total_seconds()))


def jobs_in(store: ObjectStore, namespace: str | None = None) -> list[KubeObject]:
    """Return the jobs that are not plain pods, by kind, namespace and name."""
    kinds = [kind for kind in JOB_TYPES if kind != "Pod"]
    return [job for kind in kinds for job in store.list(TYPE_OF_KIND[kind].plural, namespace)]


def job_state(store: ObjectStore, job: KubeObject) -> str:
    """Return what a job is doing: suspended, running, waiting for nodes though admitted, or done."""
    if "True" in {condition_status(job, "Succeeded"), condition_status(job, "Complete")}:
        return SUCCEEDED
    if is_suspended(job):
        return SUSPENDED
    pods = pods_belonging_to(store, job)
    running = bool(pods) and all(pod["status"]["phase"] == "Running" for pod in pods)
    return RUNNING if running else WAITING_FOR_NODES


def pods_belonging_to(store: ObjectStore, job: KubeObject) -> list[KubeObject]:
    """Return the pods whose owner is this job (a pod is its own)."""
    uid = job["metadata"]["uid"]
    return [
        pod
        for pod in store.list("pods", job["metadata"]["namespace"])
        if pod["metadata"]["uid"] == uid or any(one["uid"] == uid for one in pod["metadata"].get("ownerReferences", ()))
    ]


def condition_status(item: KubeObject, kind: str) -> str:
    """Return a condition's status, or nothing when the object has no such condition."""
    for condition in item.get("status", {}).get("conditions", ()):
        if condition["type"] == kind:
            return str(condition["status"])
    return ""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table as kubectl does: columns as wide as their widest cell and three spaces, the last one unpadded.

    Example:
        >>> print(table(("NAME", "AGE"), [("worker-0", "5m")]))
        NAME       AGE
        worker-0   5m

    """
    lines = [tuple(columns), *map(tuple, rows)]
    widths = [max(len(line[index]) for line in lines) + 3 for index in range(len(columns) - 1)]
    return "\n".join(
        "".join(cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=True)) for line in lines
    )


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


def _pod_state(pod: KubeObject) -> tuple[str, str]:
    """Return kubectl's READY and STATUS of a pod."""
    containers = len(pod["spec"].get("containers", ())) or 1
    phase: str = pod["status"]["phase"]
    if "deletionTimestamp" in pod["metadata"]:
        return f"{containers}/{containers}", "Terminating"
    if pod["spec"].get("schedulingGates"):
        return f"0/{containers}", "SchedulingGated"
    return f"{containers if phase == 'Running' else 0}/{containers}", phase
