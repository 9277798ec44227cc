"""Which flavors could a workload get? The flavor assigner: quota, fungibility and scan progress.

`Assigner.assign` answers for one workload against the quota tree as it stands. Rules:
`pkg/scheduler/flavorassigner/flavorassigner.go` of Kueue.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from taskgov.scheduling.grades import is_preferred, tries_next
from taskgov.scheduling.objects import (
    NEVER,
    ClusterQueue,
    FlavorResource,
    Fungibility,
    PodSet,
    PodSetAdmission,
    ResourceGroup,
    Usage,
    flavor_resource,
)
from taskgov.scheduling.quota import QuotaNode, available, lowest_subtree_that_fits
from taskgov.scheduling.reasons import (
    InsufficientQuota,
    InsufficientUnusedQuota,
    NotNominated,
    Reason,
    ResourceUnavailable,
    SliceElsewhere,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_NOTHING: Final[Mapping[str, int]] = {}


class Oracle(Protocol):
    """Answers whether preemption could make room."""

    def __call__(self, fr: FlavorResource, amount: int) -> tuple[Mode, int]:
        """Return `NO_CANDIDATES`, `PREEMPT` or `RECLAIM` for `amount` of `fr`, and the borrow level afterwards."""


class Eligibility(Protocol):
    """Answers which flavors pods may use at all."""

    def __call__(self, flavors: tuple[str, ...], pod_sets: Sequence[PodSet]) -> Sequence[Attempt | None]:
        """Return for each flavor the attempt that ends at once, or `None` when they may use it."""


@dataclass(frozen=True, slots=True)
class Assigner:
    """The circumstances of one search: a queue with its quota, and what is known about flavors and preemption.

    `replaced` is what the pod sets of the slice hold that this workload replaces, `None` when it replaces none.
    """

    queue: ClusterQueue
    node: QuotaNode
    group_of: Mapping[str, ResourceGroup]
    eligible: Eligibility
    oracle: Oracle
    fair_sharing: bool
    scan: tuple[dict[str, int], ...] = ()
    nominated: tuple[dict[str, str], ...] | None = None
    replaced: tuple[PodSetAdmission, ...] | None = None

    def assign(self, demand: Demand) -> Assignment:
        """Find flavors for each pod set in turn; after one that finds none the rest is not considered."""
        assignment = Assignment()
        for indexes in demand.groups:
            if not self._assign_together(demand, indexes, assignment):
                break
        return assignment

    def _assign_together(self, demand: Demand, indexes: tuple[int, ...], assignment: Assignment) -> bool:
        """Give the pod sets at `indexes` the same flavors; say whether they got any."""
        covers_pods = "pods" in self.group_of
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
            group = self.group_of.get(resource)
            if group is None:
                if amount == 0:
                    continue
                return None, [ResourceUnavailable(resource)], attempts
            search = _GroupSearch(self, group, requests, assignment.usage, resource, indexes)
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
        borrow, may_reclaim = lowest_subtree_that_fits(self.node, fr, amount)
        if amount <= max(0, available(self.node, fr)):
            return FIT, borrow
        if self._may_preempt(fr, amount, may_reclaim=may_reclaim):
            mode, after = self.oracle(fr, amount)
            return mode, borrow if mode == NO_CANDIDATES else after
        return NO_FIT, borrow

    def _may_preempt(self, fr: FlavorResource, amount: int, *, may_reclaim: bool) -> bool:
        """Within nominal quota, or where lent quota can be reclaimed, or where borrowing may preempt."""
        rules = self.queue.preemption
        borrow = rules.borrow_within_cohort
        return (
            self.node.subtree.get(fr, 0) >= amount
            or may_reclaim
            or (borrow is not None and borrow.policy != NEVER)
            or (self.fair_sharing and rules.reclaim_within_cohort != NEVER)
        )


class _GroupSearch:
    """The walk over the flavors of one resource group."""

    __slots__ = (
        "assigner",
        "attempts",
        "best_mode",
        "group",
        "index",
        "indexes",
        "reasons",
        "requests",
        "trigger",
        "used",
    )

    def __init__(
        self,
        assigner: Assigner,
        group: ResourceGroup,
        requests: Mapping[str, int],
        used: Usage,
        trigger: str,
        indexes: tuple[int, ...],
    ) -> None:
        self.assigner = assigner
        self.group = group
        self.requests = {r: amount for r, amount in requests.items() if r in group.resources}
        self.used = used
        self.trigger = trigger
        self.index, self.indexes = indexes[0], indexes
        self.attempts: list[Attempt] = []
        self.reasons: list[Reason] = []
        self.best_mode: Mode = NO_FIT

    def run(self, pod_sets: Sequence[PodSet]) -> dict[str, Choice] | None:
        """Return the choice for each requested resource of the group, or `None`; fills `reasons` and `attempts`."""
        fungibility = self.assigner.queue.fungibility
        flavors = self.group.flavors
        rejected = self._rejected(pod_sets)
        best: dict[str, tuple[Mode, int]] | None = None
        best_grade = (NO_FIT, 0)
        best_flavor, last = "", -1
        for last in range(self._start(), len(flavors)):
            flavor, rejection = flavors[last], rejected[last]
            if rejection is not None:
                self.attempts.append(rejection)
                self.reasons += rejection.reasons
                continue
            modes, grade = self._try(flavor, fungibility)
            if not tries_next(grade, fungibility):
                best, best_grade, best_flavor = modes, grade, flavor
                break
            if is_preferred(grade, best_grade, fungibility):
                best, best_grade, best_flavor = modes, grade, flavor
        if best is None:
            return None
        self.best_mode = best_grade[0]
        tried = -1 if last == len(flavors) - 1 else last
        return {r: Choice(best_flavor, mode, borrow, tried) for r, (mode, borrow) in best.items()}

    def _start(self) -> int:
        """Continue where the last scan of this pod set stopped."""
        scan = self.assigner.scan
        return scan[self.index].get(self.trigger, -1) + 1 if self.index < len(scan) else 0

    def _rejected(self, pod_sets: Sequence[PodSet]) -> Sequence[Attempt | None]:
        """Return the attempts that end at once: a flavor was not nominated before, or the pods may not use it."""
        flavors, nominated = self.group.flavors, self.assigner.nominated
        rejected = self.assigner.eligible(flavors, pod_sets)
        if nominated is None:
            return rejected
        only = nominated[self.index].get(self.trigger) if self.index < len(nominated) else None
        return [
            attempt if flavor == only else Attempt(flavor, NO_FIT, 0, (NotNominated(flavor, self.trigger),))
            for flavor, attempt in zip(flavors, rejected, strict=True)
        ]

    def _try(self, flavor: str, fungibility: Fungibility) -> tuple[dict[str, tuple[Mode, int]], tuple[Mode, int]]:
        """Ask for every resource of the group; the flavor is worth its worst resource.

        After a resource that does not fit the others are still asked, for their reasons.
        """
        modes: dict[str, tuple[Mode, int]] = {}
        reasons: list[Reason] = []
        worst = (FIT, 0)
        for resource, amount in self.requests.items():
            request = amount
            if self.assigner.replaced is not None:
                elsewhere, request = self._beyond(self.assigner.replaced, flavor, resource, amount)
                if elsewhere is not None:
                    reasons.append(elsewhere)
                    worst = (NO_FIT, 0)
            grade, reason = self._ask(flavor, resource, request)
            if reason is not None:
                reasons.append(reason)
            if is_preferred(worst, grade, fungibility):
                worst = grade
            modes[resource] = grade
        self._note(flavor, worst[0], worst[1], reasons)
        return modes, worst

    def _beyond(
        self, replaced: tuple[PodSetAdmission, ...], flavor: str, resource: str, amount: int
    ) -> tuple[Reason | None, int]:
        """Return why a slice cannot have this flavor, if its predecessor has another, and what it requests beyond it.

        As in Kueue, what pod sets behind the first with another flavor hold is not deducted then.
        """
        for index in self.indexes:
            before = replaced[index] if index < len(replaced) else None
            held = "" if before is None else before.flavors.get(resource, "")
            if before is None or held != flavor:
                return SliceElsewhere(flavor, held), amount
            amount -= before.usage.get(resource, 0)
        return None, amount

    def _ask(self, flavor: str, resource: str, request: int) -> tuple[tuple[Mode, int], Reason | None]:
        assigner = self.assigner
        fr = flavor_resource(flavor, resource)
        before = self.used.get(fr, 0)
        amount = before + request
        capacity = assigner.node.potential.get(fr, 0)
        if amount > capacity:
            return (NO_FIT, 0), InsufficientQuota(resource, flavor, before, request, capacity)
        grade = assigner.fits_quota(fr, amount)
        if grade[0] == FIT:
            return grade, None
        return grade, InsufficientUnusedQuota(resource, flavor, amount - max(0, available(assigner.node, fr)))

    def _note(self, flavor: str, mode: Mode, borrow: int, reasons: list[Reason]) -> None:
        self.attempts.append(Attempt(flavor, mode, borrow, tuple(reasons)))
        self.reasons += reasons
