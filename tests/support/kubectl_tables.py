"""What would a person see? The tables of kubectl and of the HyperPod CLI, over the cluster's objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov_embedded.cluster.ages import age
from taskgov_embedded.cluster.states import SUSPENDED, job_state, jobs_in
from taskgov_embedded.cluster.tables import headers, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from taskgov_embedded.cluster.objects import ObjectStore

JOB_COLUMNS: Final = ("NAME", "NAMESPACE", "STATUS", "AGE")

_DESCRIBED: Final = (
    ("Last Transition Time", "lastTransitionTime"),
    ("Message", "message"),
    ("Observed Generation", "observedGeneration"),
    ("Reason", "reason"),
    ("Status", "status"),
    ("Type", "type"),
)


class Views:
    """Tables and descriptions at one moment after another; `now` tells the age of things."""

    def __init__(self, store: ObjectStore, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now

    def workloads(self, namespace: str) -> str:
        """Return `kubectl get workloads -n <namespace>` (the printer columns of Kueue's CRD)."""
        return self._table("workloads", namespace)

    def pods(self, namespace: str) -> str:
        """Return `kubectl get pods -n <namespace>`."""
        return self._table("pods", namespace)

    def jobs(self, namespace: str | None = None) -> str:
        """Return the jobs with their state, as `hyp list` shows them: no age while suspended."""
        rows = []
        for job in jobs_in(self._store, namespace):
            state = job_state(self._store, job)
            shown = "N/A" if state == SUSPENDED else age(job, self._now())
            rows.append((job["metadata"]["name"], job["metadata"]["namespace"], state, shown))
        return table(JOB_COLUMNS, rows)

    def conditions(self, namespace: str, workload: str) -> str:
        """Return a workload's conditions in the words of `kubectl describe workload`."""
        found = self._store.get("workloads", workload, namespace)
        lines = ["Status:", "  Conditions:"]
        for condition in found.get("status", {}).get("conditions", ()):
            lines += [f"    {label + ':':<23}{condition[field]}" for label, field in _DESCRIBED if condition.get(field)]
        return "\n".join(lines)

    def _table(self, plural: str, namespace: str) -> str:
        items = self._store.list(plural, namespace)
        return table(headers(plural), [row(plural, one, self._now()) for one in items])


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
