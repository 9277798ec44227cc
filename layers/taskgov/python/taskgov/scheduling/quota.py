"""How much can a queue still use? The tree of quotas: cluster queues are its leaves, cohorts its inner nodes.

A node's **local** quota (Kueue: guaranteed) is what it does not lend; usage beyond it spills into the parent. Limits
are derived once per change of the specs (`limits`); usage is kept up to date along the path to the root, and
with it what exceeds the quota of a subtree (`over`), so that a question costs the depth of the tree. Rules:
`pkg/cache/scheduler/resource_node.go` of Kueue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.quantities import add
from taskgov.scheduling.objects import FlavorResource, Quota, Usage, resource_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class QuotaNode:
    """One cluster queue or cohort in the tree; amounts by flavor and resource, missing ones are 0."""

    __slots__ = (
        "_lendable",
        "_potential",
        "borrow_room",
        "cohorts",
        "height",
        "is_queue",
        "local",
        "name",
        "over",
        "parent",
        "path",
        "queues",
        "quotas",
        "root",
        "subtree",
        "usage",
        "weight",
    )

    def __init__(self, name: str, quotas: Mapping[FlavorResource, Quota], weight: float, *, is_queue: bool) -> None:
        self.name = name
        self.quotas = quotas
        self.weight = weight
        self.is_queue = is_queue
        self.parent: QuotaNode | None = None
        self.root = self
        self.cohorts: list[QuotaNode] = []
        self.queues: list[QuotaNode] = []
        self.subtree: Usage = {}
        self.local: Usage = {}
        self.borrow_room: Usage = {}
        self._potential: Usage | None = None
        self._lendable: dict[str, int] | None = None
        self.usage: Usage = {}
        self.over: Usage = {}
        self.height = 0
        self.path = f"/{name}"

    def ancestors(self) -> Iterator[QuotaNode]:
        """Walk from the parent up to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def potential(self) -> Usage:
        """The most that it could use were all else idle (Kueue: potentialAvailable).

        Like `lendable` it is derived when it is first read: most questions are about one queue of a large tree.
        """
        if self._potential is None:
            self._potential = {fr: _potential(self, fr) for fr in {**self.root.subtree, **self.subtree}}
        return self._potential

    @property
    def lendable(self) -> dict[str, int]:
        """What a cohort could give of each resource, over all flavors of the tree."""
        if self._lendable is None:
            self._lendable = {}
            for fr in self.root.subtree:
                resource = resource_of(fr)
                self._lendable[resource] = add(self._lendable.get(resource, 0), self.potential.get(fr, 0))
        return self._lendable

    @property
    def tree(self) -> str:
        """The name of the tree below this root: `Cohort/name`, or `ClusterQueue/name` for a queue on its own."""
        return f"{'ClusterQueue' if self.is_queue else 'Cohort'}/{self.name}"

    def take_own_limits_of(self, before: QuotaNode) -> None:
        """Take what was derived for a queue from the same quotas alone."""
        if before.quotas is self.quotas:
            self.subtree = before.subtree

    def forget_most(self) -> None:
        """Derive `potential` and `lendable` of this node and those below it again when they are read."""
        self._potential = self._lendable = None
        for child in self.cohorts + self.queues:
            child.forget_most()

    def subtree_queues(self) -> Iterator[QuotaNode]:
        """Walk all cluster queues below this cohort, child cohorts first."""
        for cohort in self.cohorts:
            yield from cohort.subtree_queues()
        yield from self.queues


def link(child: QuotaNode, parent: QuotaNode) -> None:
    """Put `child` under `parent`."""
    child.parent = parent
    (parent.queues if child.is_queue else parent.cohorts).append(child)


def _potential(node: QuotaNode, fr: FlavorResource) -> int:
    subtree = node.subtree.get(fr, 0)
    if node.parent is None:
        return subtree
    most = add(node.local.get(fr, 0), node.parent.potential.get(fr, 0))
    quota = node.quotas.get(fr)
    if quota is not None and quota.borrowing_limit is not None:
        most = min(add(subtree, quota.borrowing_limit), most)
    return most


def available(node: QuotaNode, fr: FlavorResource, returned: int = 0) -> int:
    """Return what `node` can still use of `fr`, counting what it may borrow, if the root had `returned` more.

    Negative after over-admission, e.g. when a quota was lowered under running work.
    """
    kept, most = 0, None  # what local quotas have left on the way up, and what the limits on the way allow
    while (parent := node.parent) is not None:
        spilled = node.usage.get(fr, 0) - node.local.get(fr, 0)
        if spilled < 0:
            kept, spilled = kept - spilled, 0
        limit = node.borrow_room.get(fr)
        if limit is not None and (most is None or kept + limit - spilled < most):
            most = kept + limit - spilled
        node = parent
    room = kept + node.subtree.get(fr, 0) - node.usage.get(fr, 0) + returned
    return room if most is None or room < most else most


def has_room(node: QuotaNode, usage: Mapping[FlavorResource, int]) -> bool:
    """Return whether `node` can still use all of `usage`; what is not positive needs no room."""
    for fr, amount in usage.items():  # noqa: SIM110 - asked of every head and victim: a generator takes twice as long
        if amount > 0 and amount > available(node, fr):
            return False
    return True


def local_available(node: QuotaNode, fr: FlavorResource) -> int:
    """Return what is left of the quota that `node` does not lend."""
    return max(0, node.local.get(fr, 0) - node.usage.get(fr, 0))


def would_borrow(node: QuotaNode, fr: FlavorResource, amount: int) -> bool:
    """Return whether `amount` more of `fr` exceeds the quota of `node`'s own subtree (Kueue: BorrowingWith)."""
    return node.subtree.get(fr, 0) < node.usage.get(fr, 0) + amount


def within_nominal(node: QuotaNode, keys: Iterable[FlavorResource]) -> bool:
    """Return whether `node` uses no more than its own subtree's quota of each of `keys`."""
    return not node.over or node.over.keys().isdisjoint(keys)


def add_usage(node: QuotaNode, usage: Mapping[FlavorResource, int]) -> None:
    """Count `usage` in `node`, and what exceeds local quotas in its ancestors."""
    for fr, amount in usage.items():
        at: QuotaNode | None = node
        while at is not None:
            held, local = at.usage, at.local
            used = held.get(fr, 0)
            now = held[fr] = used + amount
            over = now - at.subtree.get(fr, 0)
            if over > 0:
                at.over[fr] = over
            elif amount < 0:
                at.over.pop(fr, None)
            kept = local.get(fr, 0) - used if local or used < 0 else 0
            if kept < 0:  # noqa: PLR1730 - the innermost loop of a plan: a call costs as much as the rest
                kept = 0
            if amount <= kept:
                break
            amount -= kept  # noqa: PLW2901 -- what the local quota does not hold continues to the parent
            at = at.parent


def remove_usage(node: QuotaNode, usage: Mapping[FlavorResource, int]) -> None:
    """Undo `add_usage`: what the parent held is given back first."""
    for fr, amount in usage.items():
        at: QuotaNode | None = node
        while at is not None:
            held, above, local = at.usage, at.over, at.local
            used = held.get(fr, 0)
            now = held[fr] = used - amount
            over = now - at.subtree.get(fr, 0)
            if over > 0:
                above[fr] = over
            elif fr in above:
                del above[fr]
            spilled = used - local.get(fr, 0) if local else used
            if spilled <= 0:
                break
            if spilled < amount:  # noqa: PLR1730 - as above
                amount = spilled  # noqa: PLW2901 -- only what had spilled leaves the parent
            at = at.parent


def shift_usage(node: QuotaNode, fr: FlavorResource, amount: int) -> None:
    """Count `amount` more, or less, in `node` alone: its ancestors do not learn of it."""
    used = node.usage[fr] = node.usage.get(fr, 0) + amount
    over = used - node.subtree.get(fr, 0)
    if over > 0:
        node.over[fr] = over
    else:
        node.over.pop(fr, None)


def lowest_subtree_that_fits(node: QuotaNode, fr: FlavorResource, amount: int) -> tuple[int, bool]:
    """Find how far up the tree `amount` more of `fr` must borrow.

    Returns the height of the lowest subtree whose own quota holds the request (0: the queue itself) and whether
    that subtree lies below the root, so that lent quota may be reclaimed (Kueue: `hierarchical_preemption.go`).
    """
    at: QuotaNode | None = node
    while at is not None:
        if not would_borrow(at, fr, amount):
            return at.height, at.parent is not None
        amount -= local_available(at, fr)
        at = at.parent
    return node.root.height, False
