"""What did the sequences reach? Counted in sequences, so that a generator which no longer contends is noticed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tests.cluster.differential.sequence import Apply, Delete, Finish, Reclaim, Release, Scale, Submit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov.scheduling.results import CycleResult
    from tests.cluster.differential.outcome import Played
    from tests.cluster.differential.sequence import Step

LEAST: Final[Mapping[str, float]] = {
    "preempted: InClusterQueue": 0.4,
    "preempted: InCohortReclamation": 0.3,
    "preempted: InCohortFairSharing": 0.06,
    "preempted: InCohortReclaimWhileBorrowing": 0.03,
    "admitted: in the first flavor": 0.8,
    "admitted: in a later flavor": 0.2,
    "admitted: in several flavors": 0.1,
    "admitted: borrowing": 0.6,
    "waits: for victims": 0.5,
    "waits: for unused quota": 0.7,
    "waits: beyond maximum capacity": 0.4,
    "waits: nobody to preempt": 0.5,
    "waits: no longer fits": 0.2,
    "waits: overlapping victims": 0.04,
    "waits: taints": 0.08,
    "waits: affinity": 0.06,
    "quota: changed": 0.5,
    "quota: below what is used": 0.1,
    "pods: gone one by one": 0.5,
    "done: while others wait for victims": 0.1,
    "deleted": 0.3,
    "reserved in the same second": 0.1,
    "with a second resource group": 0.15,
    "with taints": 0.15,
    "with affinity": 0.15,
    "with lending limits": 0.1,
    "with other policies": 0.1,
    "with pods as a resource": 0.1,
    "with stopped queues": 0.15,
    "with partial admission": 0.15,
    "with elastic slices": 0.15,
    "with bounds and limits": 0.05,
    "waits: for a number of pods": 0.03,
    "waits: bounds or limits": 0.02,
    "admitted: with fewer pods": 0.08,
    "pods: not needed again": 0.08,
    "slice: took the place of another": 0.03,
    "stopped: ClusterQueue Hold": 0.03,
    "stopped: ClusterQueue HoldAndDrain": 0.03,
    "stopped: ClusterQueue flavor missing": 0.03,
    "stopped: LocalQueue Hold": 0.01,
    "stopped: LocalQueue HoldAndDrain": 0.01,
    "drained": 0.05,
    "done: in a stopped queue": 0.02,
}
"""Of all sequences, the share that has to reach it; half of what is measured or less."""
ENOUGH: Final = 100
"""Fewer sequences say little about shares."""
_TRAITS: Final[Mapping[str, str]] = {
    "groups": "with a second resource group",
    "taints": "with taints",
    "affinity": "with affinity",
    "lending": "with lending limits",
    "policies": "with other policies",
    "pods": "with pods as a resource",
    "stops": "with stopped queues",
    "partial": "with partial admission",
    "slices": "with elastic slices",
    "bounds": "with bounds and limits",
}
_WORDS: Final[Mapping[str, str]] = {
    "Pending the preemption of": "waits: for victims",
    "insufficient unused quota": "waits: for unused quota",
    "maximum capacity": "waits: beyond maximum capacity",
    "no longer fits": "waits: no longer fits",
    "overlapping preemption targets": "waits: overlapping victims",
    "untolerated taint": "waits: taints",
    "doesn't match node affinity": "waits: affinity",
    "for pods in flavor": "waits: for a number of pods",
    "resources validation failed": "waits: bounds or limits",
}


def reached(played: Played) -> set[str]:
    """Return what a sequence reached."""
    found = {_TRAITS[trait] for trait in played.sequence.traits}
    for step, cycles in played.steps:
        found.update(_of_step(step, cycles, found))
        for cycle in cycles:
            found.update(_of_cycle(cycle))
    found.update(_of_states(played))
    return found


def count(all_played: Iterable[Played]) -> Counter[str]:
    """Count, for everything that is to be reached, the sequences that reached it."""
    counted: Counter[str] = Counter(dict.fromkeys(LEAST, 0))
    for played in all_played:
        counted.update(reached(played))
    return counted


def missed(counted: Mapping[str, int], sequences: int) -> list[str]:
    """Return what too few sequences reached; nothing when there are too few to tell."""
    if sequences < ENOUGH:
        return []
    return [
        f"{name}: {counted[name]} of {sequences} sequences, at least {share:.0%} wanted"
        for name, share in LEAST.items()
        if counted[name] < share * sequences
    ]


def _of_step(step: Step, cycles: Iterable[CycleResult], before: set[str]) -> Iterator[str]:
    match step:
        case Apply(manifest):
            yield "quota: changed" if manifest["kind"] == "ClusterQueue" else "flavor: changed"
        case Release():
            yield "pods: gone one by one"
        case Delete():
            yield "deleted"
        case Finish():
            if any("Pending the preemption" in waiting.message for cycle in cycles for waiting in cycle.waiting):
                yield "done: while others wait for victims"
        case Submit() | Reclaim() | Scale():
            pass


def _of_cycle(cycle: CycleResult) -> Iterator[str]:
    for victim in cycle.preempted:
        yield f"preempted: {victim.reason}"
    for admitted in cycle.admitted:
        yield "admitted: in a later flavor" if admitted.considered else "admitted: in the first flavor"
        if admitted.borrowing:
            yield "admitted: borrowing"
        if len({flavor for pod_set in admitted.admission.pod_sets for flavor in pod_set.flavors.values()}) > 1:
            yield "admitted: in several flavors"
    for waiting in cycle.waiting:
        yield from (name for words, name in _WORDS.items() if words in waiting.message)
        if waiting.requeue.value == "PreemptionNoCandidates":
            yield "waits: nobody to preempt"


def _of_states(played: Played) -> Iterator[str]:
    if played.over_quota:
        yield "quota: below what is used"
    yield from played.reached
    if played.ties:
        yield "reserved in the same second"
