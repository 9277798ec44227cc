"""Has an admitted workload machines to run on? In a sentence."""

from typing import TYPE_CHECKING

from taskgov.usage.amounts import words
from taskgov.usage.node_shortage import short_of_nodes

if TYPE_CHECKING:
    from taskgov_explain.case import Case


def node_shortage(case: "Case") -> str | None:
    """Return why an admitted workload has to wait for nodes, or None when there are enough."""
    if case.admission is None or case.holds("PodsReady"):
        return None
    if short := short_of_nodes(case.snapshot).get(case.named.key):
        return (
            f"It has its quota, but the healthy {short.instance_type} nodes offer "
            f"{words(short.resource, short.offered)}, "
            f"and workloads admitted before it hold {short.taken} of them: it needs {short.asked}."
        )
    ready = case.conditions.get("PodsReady")
    if ready is not None and not ready.status:
        return f"It has its quota, but not all its pods are ready ({ready.reason})."
    return None
