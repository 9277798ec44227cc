"""Find who may be preempted beside those of a prediction, because it rests on what the model does not follow.

A workload that waits (or waited, and is predicted to start) in an uncertain competition may need other victims than the
model chooses, or need some where the model sees room. Whom Kueue's rules let it take, as quotas and use stand, is
threatened:

| where | who is threatened |
| --- | --- |
| its own queue | whom `withinClusterQueue` allows it |
| a queue that borrows in the same tree | whom `reclaimWithinCohort` allows it, if it is within its queue's quota |
| the same, under fair sharing | these also if its queue's share with it is not above that queue's |
| the same, without fair sharing | whom `borrowWithinCohort` allows it |

A queue counts as borrowing if it would with the uncertain work that waits there. A request is within its queue's quota
if there is room for it once those have left whom it may take there; quota of cohorts themselves counts as room.
Source: `pkg/scheduler/preemption/classical` and `fairsharing` of Kueue.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING, Final

from taskgov.scheduling.candidates import allows
from taskgov.scheduling.doubts import flavors_of
from taskgov.scheduling.objects import LOWER_PRIORITY, NEVER, flavor_resource
from taskgov.scheduling.shares import dominant_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov.scheduling.doubts import Doubts
    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.objects import FlavorResource, PodSet
    from taskgov.scheduling.quota import QuotaNode
    from taskgov.scheduling.state import QueueState, Record
    from taskgov.scheduling.store import Store

_NOBODY: Final = frozenset({NEVER, ""})
"""Policies by which nobody is preempted."""
_MOST_CHOICES: Final = 16
"""Combinations of flavors that are considered."""


@dataclass(frozen=True, slots=True)
class Threat:
    """Waiting workloads of one shape and place in line, and a queue in which they may preempt, by which policy."""

    preemptor_queue: str
    pod_sets: tuple[PodSet, ...]
    priority: int
    since: Instant
    queue: str
    policy: str
    frs: frozenset[FlavorResource]
    threshold: int | None = None

    def reaches(self, record: Record) -> bool:
        """Return whether one of them may preempt a running workload of the queue."""
        over = self.threshold is not None and record.workload.priority > self.threshold
        return not over and not self.frs.isdisjoint(record.usage) and allows(self.policy, self, record)


def threats_of(store: Store, waiting: Iterable[str], doubts: Doubts) -> frozenset[Threat]:
    """Return what threatens whom, by these waiting workloads as far as they are uncertain."""
    store.settle_tree()
    records = [store.records[key] for key in waiting if key in doubts and key in store.records]
    wanted: dict[str, dict[FlavorResource, int]] = {}
    for record in records:
        if record.queue is not None and record.admission is None and not record.finished:
            of_queue = wanted.setdefault(record.queue.spec.name, {})
            for fr, amount in _may_use(store, record).items():
                of_queue[fr] = of_queue.get(fr, 0) + amount
    found: set[Threat] = set()
    seen: set[object] = set()
    for record in records:
        queue = record.queue
        if queue is None or record.finished or not store.is_active(queue):
            continue
        shape = queue.spec.name, record.workload.pod_sets, record.workload.priority, record.queued_since
        if shape not in seen:
            seen.add(shape)
            found.update(_threats(store, record, queue, wanted))
    return frozenset(found)


def threatened(store: Store, threats: Iterable[Threat]) -> frozenset[str]:
    """Return the running workloads that may be preempted so."""
    keys: set[str] = set()
    for threat in threats:
        queue = store.queues.get(threat.queue)
        running = () if queue is None else queue.running_records()
        keys.update(record.key for record in running if record.key not in keys and threat.reaches(record))
    return frozenset(keys)


def _threats(
    store: Store, record: Record, queue: QueueState, wanted: Mapping[str, Mapping[FlavorResource, int]]
) -> Iterator[Threat]:
    preemption = queue.spec.preemption
    requests, frs = _requests(record), frozenset(_may_use(store, record))

    def threat(to: str, policy: str, threshold: int | None = None) -> Threat:
        workload, since = record.workload, record.queued_since
        return Threat(queue.spec.name, workload.pod_sets, workload.priority, since, to, policy, frs, threshold)

    own = threat(queue.spec.name, preemption.within_cluster_queue)
    if own.policy not in _NOBODY:
        yield own
    reclaims, borrow, root = preemption.reclaim_within_cohort, preemption.borrow_within_cohort, queue.node.root
    fits = reclaims not in _NOBODY and _is_within_nominal(record, queue, requests, own)
    for node in () if root.is_queue else root.subtree_queues():
        other = store.queues[node.name]
        if other is queue or not _may_borrow(node, frs, wanted.get(node.name, {})) or not store.is_active(other):
            continue
        if fits or (
            store.config.fair_sharing and reclaims not in _NOBODY and _is_not_above(record, queue, requests, other, frs)
        ):
            yield threat(node.name, reclaims)
        if not store.config.fair_sharing and borrow is not None and borrow.policy not in _NOBODY:
            yield threat(node.name, LOWER_PRIORITY, borrow.max_priority_threshold)


def _may_use(store: Store, record: Record) -> dict[FlavorResource, int]:
    """Return what a workload requests of each flavor that it may get."""
    requests, flavors = _requests(record), flavors_of(store, record)
    return {flavor_resource(flavor, name): amount for flavor in flavors for name, amount in requests.items()}


def _may_borrow(node: QuotaNode, frs: frozenset[FlavorResource], wanted: Mapping[FlavorResource, int]) -> bool:
    """Return whether a queue uses more than its quota of some of `frs`, or would with the uncertain work that waits."""
    return any(node.subtree.get(fr, 0) < node.usage.get(fr, 0) + wanted.get(fr, 0) for fr in frs)


def _requests(record: Record) -> dict[str, int]:
    total: dict[str, int] = {}
    for demand in record.demand.pod_sets:
        for name, amount in demand.requests.items():
            total[name] = total.get(name, 0) + amount
    return total


def _is_within_nominal(record: Record, queue: QueueState, requests: Mapping[str, int], own: Threat) -> bool:
    """Return whether its queue's own quota has room for a workload, without itself and whom it may take there."""
    if any(node.quotas for node in queue.node.ancestors()):
        return True
    free: dict[FlavorResource, int] = {}
    for other in queue.running_records():
        if other is record or allows(own.policy, own, other):
            for fr, amount in other.usage.items():
                free[fr] = free.get(fr, 0) + amount

    def has_room(fr: FlavorResource, amount: int) -> bool:
        left = queue.node.subtree.get(fr, 0) - queue.node.usage.get(fr, 0) + free.get(fr, 0)
        return fr in own.frs and amount <= left

    return all(
        any(has_room(flavor_resource(flavor, name), amount) for flavor in group.flavors)
        for group in queue.spec.groups
        for name, amount in requests.items()
        if name in group.resources
    )


def _is_not_above(
    record: Record, queue: QueueState, requests: Mapping[str, int], other: QueueState, frs: frozenset[FlavorResource]
) -> bool:
    """Return whether a queue's share with a workload is, on some flavors, not above the share of another.

    Queues that meet above a cohort of their own are compared by their cohorts in Kueue: they count as not above.
    """
    if queue.node.parent is not other.node.parent:
        return True
    theirs = dominant_share(other.node).rank
    if record.admission is not None:
        return dominant_share(queue.node).rank <= theirs
    choices = [
        [flavor for flavor in group.flavors if any(flavor_resource(flavor, name) in frs for name in group.resources)]
        for group in queue.spec.groups
    ]
    for flavors in islice(product(*filter(None, choices)), _MOST_CHOICES):
        extra = {fr: requests[name] for flavor in flavors for name in requests if (fr := f"{flavor}/{name}") in frs}
        if dominant_share(queue.node, extra).rank <= theirs:
            return True
    return False
