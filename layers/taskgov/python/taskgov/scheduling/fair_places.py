"""Order queues among those of their cohort when one is to give something back under fair sharing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling.quota import QuotaNode

if TYPE_CHECKING:
    from taskgov.scheduling.shares import Share
    from taskgov.scheduling.state import Record

Place = tuple[bool, float, tuple[int, bool, int, int, str, str], QuotaNode]
"""What orders a queue among those of its cohort, and the queue. Places of two queues differ: so do their candidates."""


def queue_place(node: QuotaNode, share: Share, first: Record, *, own: bool) -> Place:
    """Return a queue's place by its share and then its `first` candidate: others come before the preemptor's own."""
    infinite, amount = share.rank
    evicted, priority, since, uid, key, _ = first.running_key()
    return not infinite, -amount, (evicted, own, priority, since, uid, key), node


def rank_of(place: Place) -> tuple[bool, float]:
    """Return the share's rank of a place (`Share.rank`)."""
    return not place[0], -place[1]


def almost_meeting(a: QuotaNode, b: QuotaNode) -> tuple[QuotaNode, QuotaNode]:
    """Return the children, on either side, of the lowest cohort that holds both queues."""
    if a.parent is b.parent and a.parent is not None:
        return a, b
    above_a: dict[QuotaNode, QuotaNode] = {}
    child = a
    for cohort in a.ancestors():
        above_a[cohort] = child
        child = cohort
    child = b
    for cohort in b.ancestors():
        if cohort in above_a:
            return above_a[cohort], child
        child = cohort
    raise ValueError(f"{a.name} and {b.name} share no cohort")
