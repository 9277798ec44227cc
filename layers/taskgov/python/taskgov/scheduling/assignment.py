"""What could a workload get? The outcome of a flavor search: choices, modes, borrow levels, reasons, and its words.

Made by `flavor_search`, read by everyone else. Rules: `pkg/scheduler/flavorassigner/flavorassigner.go` of Kueue.

| mode | means |
| --- | --- |
| `NO_FIT` | cannot be, even when all others leave |
| `NO_CANDIDATES` | could be after preemption, but nobody may be preempted |
| `PREEMPT` | fits after preemption in the own queue |
| `RECLAIM` | fits after reclaiming from other queues only |
| `FIT` | fits now |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.scheduling.objects import FlavorResource, PodSetAdmission, Usage, flavor_resource
from taskgov.scheduling.reasons import Blocker, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Mode = int
NO_FIT: Final[Mode] = 0
NO_CANDIDATES: Final[Mode] = 1
PREEMPT: Final[Mode] = 2
RECLAIM: Final[Mode] = 3
FIT: Final[Mode] = 4

PUBLIC_MODES: Final = ("NoFit", "Preempt", "Preempt", "Preempt", "Fit")
POSSIBILITIES: Final = (None, "NoCandidates", "Preempt", "Reclaim", None)


class Choice(NamedTuple):
    """The flavor given to one resource of a pod set; `tried` is the index to continue after, -1 when all were seen."""

    flavor: str
    mode: Mode
    borrow: int
    tried: int


class Attempt(NamedTuple):
    """The result of trying one flavor for one resource group."""

    flavor: str
    mode: Mode
    borrow: int
    reasons: tuple[Reason, ...]

    @property
    def blocker(self) -> Blocker:
        """The most severe reason why the flavor does not fit; none when preemption might help."""
        if self.mode != NO_FIT:
            return Blocker.NONE
        return max((reason.blocker for reason in self.reasons), default=Blocker.NONE)


@dataclass(slots=True)
class PodSetAssignment:
    """What one pod set would get; no `choices` when nothing fits, no `reasons` when everything does."""

    name: str
    count: int
    requests: Mapping[str, int]
    choices: dict[str, Choice]
    reasons: Sequence[Reason]
    attempts: Sequence[Sequence[Attempt]]
    held: Mapping[str, int] = field(default_factory=dict)
    """What the slice that this one replaces holds already: only the rest counts as new usage."""

    @property
    def mode(self) -> Mode:
        """The worst mode of its resources."""
        if not self.reasons:
            return FIT
        return min((choice.mode for choice in self.choices.values()), default=NO_FIT)

    @property
    def blocker(self) -> Blocker:
        """Over groups the most severe of the least severe reason over flavors that do not fit."""
        if not any(self.attempts):
            return Blocker.NO_MATCHING_FLAVOR
        groups = ([a.blocker for a in group if a.mode == NO_FIT] for group in self.attempts)
        return max((min(group, default=Blocker.NONE) for group in groups), default=Blocker.NONE)


@dataclass(slots=True)
class Assignment:
    """What a whole workload would get; complete once the search is over, since workloads of one shape may share it."""

    pod_sets: list[PodSetAssignment] = field(default_factory=list)
    usage: Usage = field(default_factory=dict)
    borrowing: int = 0
    mode: Mode = FIT
    _scan: tuple[dict[str, int], ...] | None = field(default=None, init=False, repr=False, compare=False)
    _granted: tuple[PodSetAdmission, ...] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def needs_preemption(self) -> frozenset[FlavorResource]:
        """The flavors and resources that only preemption can free."""
        return frozenset(
            flavor_resource(choice.flavor, resource)
            for pod_set in self.pod_sets
            for resource, choice in pod_set.choices.items()
            if NO_FIT < choice.mode < FIT
        )

    @property
    def message(self) -> str:
        """Why it does not fit now, as Kueue's message; empty when it does."""
        return "; ".join(
            f"couldn't assign flavors to pod set {p.name}: {', '.join(sorted(str(reason) for reason in p.reasons))}"
            for p in self.pod_sets
            if p.reasons
        )

    @property
    def blocker(self) -> Blocker:
        """The most severe, over pod sets and groups, of the least severe reason over flavors that do not fit.

        Kueue: `resolveNoFitReason`. Only pod sets that do not fit count; for one of which no flavor was considered,
        none matches.
        """
        if self.mode != NO_FIT:
            return Blocker.NONE
        return max((p.blocker for p in self.pod_sets if p.mode == NO_FIT), default=Blocker.NONE)

    @property
    def scan(self) -> tuple[dict[str, int], ...]:
        """Where each search stopped: flavor index by resource for each pod set."""
        if self._scan is None:
            self._scan = tuple([{r: choice.tried for r, choice in p.choices.items()} for p in self.pod_sets])
        return self._scan

    @property
    def nomination(self) -> tuple[dict[str, str], ...]:
        """The chosen flavor of each resource for each pod set."""
        return tuple({r: choice.flavor for r, choice in p.choices.items()} for p in self.pod_sets)

    @property
    def granted(self) -> tuple[PodSetAdmission, ...]:
        """What each pod set holds once the workload is admitted."""
        if self._granted is None:
            self._granted = tuple(
                [
                    PodSetAdmission(p.name, p.count, flavors, {r: p.requests[r] for r in p.choices})
                    for p, flavors in zip(self.pod_sets, self.nomination, strict=True)
                ]
            )
        return self._granted

    @property
    def considered(self) -> str:
        """The flavors that were considered and do not fit, as the QuotaReserved event lists them; empty for none."""
        parts = []
        for pod_set in self.pod_sets:
            tried = [
                f"{a.flavor}(preemptionMode={PUBLIC_MODES[a.mode]};{','.join(map(str, a.reasons))})"
                for group in pod_set.attempts
                for a in group
                if a.mode != FIT
            ]
            if tried:
                parts.append(f"{pod_set.name}: {', '.join(tried)}")
        return "; ".join(parts)


def append(assignment: Assignment, pod_set: PodSetAssignment) -> None:
    """Count what a pod set would use."""
    assignment.pod_sets.append(pod_set)
    assignment.mode = min(assignment.mode, pod_set.mode)
    for resource, choice in pod_set.choices.items():
        assignment.borrowing = max(assignment.borrowing, choice.borrow)
        fr = flavor_resource(choice.flavor, resource)
        amount = pod_set.requests[resource]
        if pod_set.held:
            amount -= pod_set.held.get(resource, 0)
        assignment.usage[fr] = assignment.usage.get(fr, 0) + amount
