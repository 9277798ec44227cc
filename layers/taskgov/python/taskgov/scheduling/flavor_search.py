"""Which flavors could a workload get? The flavor assigner: quota, fungibility and scan progress.

`Assigner.assign` answers for one workload against the quota tree as it stands. Most heads fit in the first flavor that
their pods may use; what they get then depends on their shape and on how high they borrow, and is searched once for all
of them. Rules: `pkg/scheduler/flavorassigner/flavorassigner.go` of Kueue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Protocol

from taskgov.scheduling.assignment import (
    FIT,
    NO_CANDIDATES,
    NO_FIT,
    Assignment,
    Attempt,
    Choice,
    Mode,
    PodSetAssignment,
    append,
)
from taskgov.scheduling.demand import Demand, total
from taskgov.scheduling.group_search import GroupSearch
from taskgov.scheduling.objects import (
    NEVER,
    TRY_NEXT_FLAVOR,
    FlavorResource,
    PodSet,
    PodSetAdmission,
    flavor_resource,
)
from taskgov.scheduling.quota import available, lowest_subtree_that_fits
from taskgov.scheduling.reasons import Reason, ResourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from taskgov.scheduling.eligibility import FlavorBook
    from taskgov.scheduling.state import QueueState

_NOTHING: Final[Mapping[str, int]] = {}


class Oracle(Protocol):
    """Answers whether preemption could make room."""

    def __call__(self, fr: FlavorResource, amount: int) -> tuple[Mode, int]:
        """Return `NO_CANDIDATES`, `PREEMPT` or `RECLAIM` for `amount` of `fr`, and the borrow level afterwards."""


class Assigner(ABC):
    """The circumstances of one search: a queue with its quota, and what is known about flavors and preemption.

    `replaced` is what the pod sets of the slice hold that this workload replaces, `None` when it replaces none.
    """

    __slots__ = ("fair_sharing", "flavors", "nominated", "queue", "replaced", "scan")

    def __init__(
        self,
        queue: QueueState,
        flavors: FlavorBook,
        *,
        fair_sharing: bool,
        scan: tuple[dict[str, int], ...] = (),
        nominated: tuple[dict[str, str], ...] | None = None,
        replaced: tuple[PodSetAdmission, ...] | None = None,
    ) -> None:
        self.queue = queue
        self.flavors = flavors
        self.fair_sharing = fair_sharing
        self.scan = scan
        self.nominated = nominated
        self.replaced = replaced

    @abstractmethod
    def oracle(self, fr: FlavorResource, amount: int) -> tuple[Mode, int]:
        """Answer as an `Oracle`."""

    def assign(self, demand: Demand) -> Assignment:
        """Find flavors for each pod set in turn; after one that finds none the rest is not considered."""
        decided_by = self._fits_at_once(demand)
        if decided_by is None:
            return self.search(demand)
        return self.flavors.fit(decided_by) or self.flavors.keep_fit(decided_by, self.search(demand))

    def _fits_at_once(self, demand: Demand) -> Hashable | None:
        """Return all that decides about the assignment, where the first flavor that the pods may use has room for them.

        `None` where it does not, or where more than that decides: no or several pod sets, groups, or given flavors.
        """
        if len(demand.pod_sets) != 1 or self.nominated is not None or self.replaced is not None:
            return None
        [pod_set], queue = demand.pod_sets, self.queue
        covers_pods = "pods" in queue.group_of
        requests = pod_set.with_pods if covers_pods else pod_set.requests
        trigger = next(iter(requests), "")
        group = queue.group_of.get(trigger)
        if group is None:
            return None
        start = self.scan[0].get(trigger, -1) + 1 if self.scan else 0
        flavors, rejected = group.flavors, self.flavors.rejected(group.flavors, (pod_set.pod_set,))
        for index in range(start, len(flavors)):
            if rejected[index] is None:
                break
        else:
            return None
        node, heights = queue.node, []
        for resource, amount in requests.items():
            fr = flavor_resource(flavors[index], resource)
            missing = amount > node.potential.get(fr, 0) or amount > max(0, available(node, fr))
            if missing or queue.group_of.get(resource) is not group:
                return None
            heights.append(lowest_subtree_that_fits(node, fr, amount)[0])
        tries_next = index + 1 < len(flavors) and queue.spec.fungibility.when_can_borrow == TRY_NEXT_FLAVOR
        if tries_next and any(heights):
            return None
        return demand, covers_pods, flavors, start, index, *heights

    def search(self, demand: Demand) -> Assignment:
        """Return what `assign` does, searched for this workload alone."""
        assignment = Assignment()
        for indexes in demand.groups:
            if not self._assign_together(demand, indexes, assignment):
                break
        return assignment

    def _assign_together(self, demand: Demand, indexes: tuple[int, ...], assignment: Assignment) -> bool:
        """Give the pod sets at `indexes` the same flavors; say whether they got any."""
        covers_pods = "pods" in self.queue.group_of
        members = [demand.pod_sets[i] for i in indexes]
        parts = [m.with_pods if covers_pods else m.requests for m in members]
        found, reasons, attempts = self._find_flavors(total(parts), indexes, [m.pod_set for m in members], assignment)
        for member, requests in zip(members, parts, strict=True):
            choices = {r: found[r] for r in requests if r in found} if found is not None else {}
            name = member.pod_set.name
            held = _NOTHING if self.replaced is None else self._held(name)
            append(assignment, PodSetAssignment(name, member.count, requests, choices, reasons, attempts, held))
        return found is not None

    def _held(self, pod_set: str) -> Mapping[str, int]:
        return next((p.usage for p in self.replaced or () if p.name == pod_set), _NOTHING)

    def _find_flavors(
        self,
        requests: Mapping[str, int],
        indexes: tuple[int, ...],
        pod_sets: Sequence[PodSet],
        assignment: Assignment,
    ) -> tuple[dict[str, Choice] | None, list[Reason], list[list[Attempt]]]:
        """Search each resource group that `requests` touch; the first that fails decides alone."""
        found: dict[str, Choice] = {}
        reasons: list[Reason] = []
        attempts: list[list[Attempt]] = []
        for resource, amount in requests.items():
            if resource in found:
                continue
            group = self.queue.group_of.get(resource)
            if group is None:
                if amount == 0:
                    continue
                return None, [ResourceUnavailable(resource)], attempts
            search = GroupSearch(self, group, requests, assignment.usage, resource, indexes)
            choices = search.run(pod_sets)
            attempts.append(search.attempts)
            if choices is None:
                return None, search.reasons, attempts
            found |= choices
            if search.best_mode != FIT:
                reasons += search.reasons
        return found, reasons, attempts

    def fits_quota(self, fr: FlavorResource, amount: int) -> tuple[Mode, int]:
        """Say how `amount` of `fr` could be had now, and from how high up the tree (FA: fitsResourceQuota)."""
        node = self.queue.node
        borrow, may_reclaim = lowest_subtree_that_fits(node, fr, amount)
        if amount <= max(0, available(node, fr)):
            return FIT, borrow
        if self._may_preempt(fr, amount, may_reclaim=may_reclaim):
            mode, after = self.oracle(fr, amount)
            return mode, borrow if mode == NO_CANDIDATES else after
        return NO_FIT, borrow

    def _may_preempt(self, fr: FlavorResource, amount: int, *, may_reclaim: bool) -> bool:
        """Within nominal quota, or where lent quota can be reclaimed, or where borrowing may preempt."""
        rules = self.queue.spec.preemption
        borrow = rules.borrow_within_cohort
        return (
            self.queue.node.subtree.get(fr, 0) >= amount
            or may_reclaim
            or (borrow is not None and borrow.policy != NEVER)
            or (self.fair_sharing and rules.reclaim_within_cohort != NEVER)
        )
