"""Who borrows most? The dominant resource share of a queue or cohort, exactly as Kueue computes it.

Rules: `pkg/cache/scheduler/fair_sharing.go` of Kueue. Called by the fair-sharing tournament, fair preemption and the
status of queues.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.quantities import UNLIMITED
from taskgov.scheduling.objects import FlavorResource, Usage, resource_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.scheduling.quota import QuotaNode

_NOTHING: Final[Mapping[FlavorResource, int]] = {}
Rank = tuple[bool, float]
"""What shares are compared by (`Share.rank`)."""


class Share(NamedTuple):
    """How much a node borrows of its most borrowed resource, in thousandths of what its parent could lend.

    | value | means |
    | --- | --- |
    | `ratio` 0, `borrowing` False | borrows nothing (a root always) |
    | `ratio` 0, `borrowing` True | borrows what nobody could lend |
    | `weight` 0, `ratio` above 0 | an infinite share: `weighted` is `UNLIMITED` |
    """

    ratio: float = 0.0
    weight: float = 1.0
    dominant: str = ""
    borrowing: bool = False
    rank: Rank = (False, 0.0)
    """What shares are compared by, as `share_of` sets it: borrowers without weight come last, among them by ratio."""

    @property
    def value(self) -> float:
        """The exact weighted share, `inf` for a borrower without weight."""
        if self.ratio == 0:
            return 0.0
        return math.inf if self.weight == 0 else self.ratio / self.weight

    @property
    def weighted(self) -> int:
        """The share as Kueue reports it (`weightedShare`): rounded up, MaxInt64 when infinite."""
        value = self.value
        return UNLIMITED if math.isinf(value) else math.ceil(value)


def dominant_share(node: QuotaNode, extra: Mapping[FlavorResource, int] = _NOTHING) -> Share:
    """Return the share of `node` as it would be with `extra` usage; a node without parent has none."""
    parent = node.parent
    if parent is None:
        return _no_share(node.weight)
    over = _over_with(node, extra) if extra else node.over
    if not over:
        return _no_share(node.weight)
    borrowed: dict[str, int] = {}
    subtree = node.subtree
    for fr, amount in over.items():
        if fr in subtree:  # what is held without any quota of it counts nowhere
            resource = resource_of(fr)
            borrowed[resource] = borrowed.get(resource, 0) + amount
    if not borrowed:
        return _no_share(node.weight)
    ratio, dominant, lendables = 0.0, "", parent.lendable
    for resource in sorted(borrowed) if len(borrowed) > 1 else borrowed:  # a tie goes to the first name
        lendable = lendables.get(resource, 0)
        share = 1000.0 * borrowed[resource] / lendable if lendable > 0 else 0.0
        if share > ratio:
            ratio, dominant = share, resource
    return share_of(ratio, node.weight, dominant, borrowing=True)


def share_of(ratio: float, weight: float, dominant: str = "", *, borrowing: bool = False) -> Share:
    """Return a share with its rank, which is compared more often than shares are made."""
    rank = (False, 0.0) if ratio == 0 else (True, ratio) if weight == 0 else (False, ratio / weight)
    return Share(ratio, weight, dominant, borrowing, rank)


def _over_with(node: QuotaNode, extra: Mapping[FlavorResource, int]) -> Usage:
    """Return what `node` would hold above its quota with `extra` usage."""
    over = dict(node.over)
    for fr, amount in extra.items():
        over[fr] = node.usage.get(fr, 0) + amount - node.subtree.get(fr, 0)
    return {fr: amount for fr, amount in over.items() if amount > 0}


class SharesOfQueues:
    """The shares of queues during a search: that of a queue is another one only when somebody leaves it.

    `at_first` are those that are known when it begins.
    """

    def __init__(self, at_first: Mapping[QuotaNode, Share]) -> None:
        self._at_first = at_first
        self._of_queues: dict[QuotaNode, Share] = {}
        self._changed: set[QuotaNode] = set()

    def of(self, node: QuotaNode) -> Share:
        """Return the share that a queue or cohort has now."""
        if not node.is_queue:
            return dominant_share(node)
        share = self._of_queues.get(node)
        if share is None:
            share = None if self.has_changed(node) else self._at_first.get(node)
            share = self._of_queues[node] = share or dominant_share(node)
        return share

    def has_changed(self, node: QuotaNode) -> bool:
        """Return whether anybody left a queue."""
        return node in self._changed

    def forget(self, node: QuotaNode) -> None:
        """Take note that somebody left a queue, or that its usage is another one."""
        self._changed.add(node)
        self._of_queues.pop(node, None)


@lru_cache(maxsize=1024)
def _no_share(weight: float) -> Share:
    return Share(weight=weight)
