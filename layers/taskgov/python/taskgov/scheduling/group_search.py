"""Which flavor of a resource group could a workload get? The walk over the flavors of one group, in order.

Called by `flavor_search`. Rules: `pkg/scheduler/flavorassigner/flavorassigner.go` of Kueue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from taskgov.scheduling.assignment import FIT, NO_FIT, Attempt, Choice, Mode
from taskgov.scheduling.grades import is_preferred, tries_next
from taskgov.scheduling.objects import flavor_resource
from taskgov.scheduling.quota import available
from taskgov.scheduling.reasons import InsufficientQuota, InsufficientUnusedQuota, NotNominated, Reason, SliceElsewhere

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskgov.scheduling.eligibility import FlavorBook
    from taskgov.scheduling.objects import FlavorResource, Fungibility, PodSet, PodSetAdmission, ResourceGroup, Usage
    from taskgov.scheduling.state import QueueState


class Circumstances(Protocol):
    """What a walk depends on beside the requests, as `flavor_search.Assigner` has it."""

    queue: QueueState
    flavors: FlavorBook
    scan: tuple[dict[str, int], ...]
    nominated: tuple[dict[str, str], ...] | None
    replaced: tuple[PodSetAdmission, ...] | None

    def fits_quota(self, fr: FlavorResource, amount: int) -> tuple[Mode, int]:
        """Return how `amount` of `fr` would fit, and the borrow level."""


class GroupSearch:
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
        assigner: Circumstances,
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
        fungibility = self.assigner.queue.spec.fungibility
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
        rejected = self.assigner.flavors.rejected(flavors, pod_sets)
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
        capacity = assigner.queue.node.potential.get(fr, 0)
        if amount > capacity:
            return (NO_FIT, 0), InsufficientQuota(resource, flavor, before, request, capacity)
        grade = assigner.fits_quota(fr, amount)
        if grade[0] == FIT:
            return grade, None
        return grade, InsufficientUnusedQuota(resource, flavor, amount - max(0, available(assigner.queue.node, fr)))

    def _note(self, flavor: str, mode: Mode, borrow: int, reasons: list[Reason]) -> None:
        self.attempts.append(Attempt(flavor, mode, borrow, tuple(reasons)))
        self.reasons += reasons
