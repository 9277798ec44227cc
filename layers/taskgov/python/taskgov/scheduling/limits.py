"""What follows from quotas in their tree? Limits and the usage of cohorts, for a whole tree or after one queue changed.

Rules: `pkg/cache/scheduler/resource_node.go` of Kueue.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from taskgov.quantities import UNLIMITED, add

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.scheduling.objects import FlavorResource, Quota
    from taskgov.scheduling.quota import QuotaNode


def settle_limits(root: QuotaNode) -> None:
    """Derive limits and cohort usage of a whole tree from the quotas and the usage of its queues."""
    _derive_upwards(root)
    _derive_downwards(root, root)


def requote(node: QuotaNode, quotas: Mapping[FlavorResource, Quota], weight: float) -> bool:
    """Give a queue other amounts of the same flavors and resources, and derive what follows from them in its tree.

    Returns False, and changes nothing, where the whole tree has to be derived: other flavors, or amounts without end.
    """
    if list(quotas) != list(node.quotas):
        return False
    changed = {fr: quota.nominal for fr, quota in quotas.items() if quota != node.quotas[fr]}
    path = [node, *node.ancestors()]
    if any(nominal + at.subtree[fr] >= UNLIMITED for fr, nominal in changed.items() for at in path):
        return False
    before = [[_passed_on(at, fr) for fr in changed] for at in path[:-1]]
    node.quotas, node.weight, node.subtree = quotas, weight, node.subtree | changed
    _derive_own(node)
    for (child, above), passed in zip(pairwise(path), before, strict=True):
        for fr, (lent, used) in zip(changed, passed, strict=True):
            lends, uses = _passed_on(child, fr)
            above.subtree[fr] += lends - lent
            if uses != used:
                above.usage[fr] = above.usage.get(fr, 0) + uses - used
        _derive_own(above)
    node.root.forget_most()
    return True


def _passed_on(node: QuotaNode, fr: FlavorResource) -> tuple[int, int]:
    """Return what a node lends to its parent, and what it uses there."""
    local = node.local.get(fr, 0)
    return node.subtree.get(fr, 0) - local, max(0, node.usage.get(fr, 0) - local)


def _derive_upwards(node: QuotaNode) -> None:
    """Set subtree and local quota, height and cohort usage, children first."""
    if not (node.is_queue and node.subtree):  # what a queue has of its own may be known (`take_own_limits_of`)
        node.subtree = {fr: quota.nominal for fr, quota in node.quotas.items()}
    if not node.is_queue:
        node.usage = {}
    for child in node.cohorts + node.queues:
        _derive_upwards(child)
        _count_in(child, node)
    _derive_own(node)
    node.height = max([1 if node.queues else 0, *(cohort.height + 1 for cohort in node.cohorts)])


def _derive_own(node: QuotaNode) -> None:
    """Set what follows from the quotas, the subtree quota and the usage of a node alone."""
    node.local = {
        fr: max(0, node.subtree[fr] - quota.lending_limit)
        for fr, quota in node.quotas.items()
        if quota.lending_limit is not None
    }
    node.over = {fr: over for fr, used in node.usage.items() if (over := used - node.subtree.get(fr, 0)) > 0}
    node.borrow_room = {
        fr: node.subtree[fr] - node.local.get(fr, 0) + quota.borrowing_limit
        for fr, quota in node.quotas.items()
        if quota.borrowing_limit is not None and node.parent is not None
    }


def _count_in(child: QuotaNode, node: QuotaNode) -> None:
    """Count in `node` what a child lends, and what it uses beyond what it does not lend."""
    subtree, usage, local = node.subtree, node.usage, child.local
    for fr, amount in child.subtree.items():
        lent = amount - local.get(fr, 0) if local and amount < UNLIMITED else amount
        subtree[fr] = add(subtree[fr], lent) if fr in subtree else min(lent, UNLIMITED)
    for fr, used in child.usage.items():
        usage[fr] = usage.get(fr, 0) + max(0, used - local.get(fr, 0))


def _derive_downwards(node: QuotaNode, root: QuotaNode) -> None:
    """Set root and path, parents first."""
    parent = node.parent
    node.root = root
    node.path = f"{parent.path}/{node.name}" if parent else f"/{node.name}"
    for child in node.cohorts + node.queues:
        _derive_downwards(child, root)
