"""How do queues and cohorts hang together? Builds the quota trees from the specs, with the usage of running workloads.

Called by `kueue_model` whenever a ClusterQueue or Cohort changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling.limits import settle_limits
from taskgov.scheduling.objects import Cohort
from taskgov.scheduling.quota import QuotaNode, link

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.scheduling.state import QueueState


def build_forest(queues: Iterable[QueueState], cohorts: Mapping[str, Cohort]) -> dict[str, QuotaNode]:
    """Give every queue its node and return the cohorts' nodes by name.

    A cohort that is only named, by a queue or a child, has no quota of its own. Cohorts in a circle are left without
    parent: their queues are inactive (`in_circle`).
    """
    queues = sorted(queues, key=lambda q: q.spec.name)
    names = set(cohorts) | {q.spec.cohort for q in queues if q.spec.cohort}
    names |= {c.parent for c in cohorts.values() if c.parent}
    nodes = {name: _cohort_node(name, cohorts) for name in sorted(names)}
    for name, node in nodes.items():
        parent = cohorts[name].parent if name in cohorts else None
        if parent and not in_circle(name, cohorts):
            link(node, nodes[parent])
    for queue in queues:
        spec = queue.spec
        before = queue.node
        queue.node = QuotaNode(spec.name, spec.quotas, spec.weight, is_queue=True)
        queue.node.take_own_limits_of(before)
        queue.node.usage = queue.total_usage()
        if spec.cohort:
            link(queue.node, nodes[spec.cohort])
    for root in [*nodes.values(), *(q.node for q in queues)]:
        if root.parent is None:
            settle_limits(root)
    return nodes


def in_circle(name: str, cohorts: Mapping[str, Cohort]) -> bool:
    """Return whether following the parents of cohort `name` leads round forever."""
    seen: set[str] = set()
    at: str | None = name
    while at is not None and at in cohorts:
        if at in seen:
            return True
        seen.add(at)
        at = cohorts[at].parent
    return False


def _cohort_node(name: str, cohorts: Mapping[str, Cohort]) -> QuotaNode:
    cohort = cohorts.get(name, Cohort(name))
    return QuotaNode(name, cohort.quotas, cohort.weight, is_queue=False)
