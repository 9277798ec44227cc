"""Simulate scheduling cycles at a fixed time until nothing changes.

The quickest prediction; `taskgov_explain.simulation` has run times.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from taskgov.scheduling.instants import Now
    from taskgov.scheduling.kueue_model import KueueModel
    from taskgov.scheduling.results import Admitted, CycleResult, Preempted

_SUSPICIOUS: Final = 5
"""So many preemptions of one workload make it worth comparing whole states."""


@dataclass(slots=True)
class Budget:
    """How much work predictions may take: model steps, so that the same question gives the same answer anywhere.

    One step is one head of a queue that a cycle considers. Several settlements may share a budget. The last cycle may
    consider more heads than there are steps left; it is not cut short.

    Example:
        >>> budget = Budget(3)
        >>> budget.take(2)
        >>> budget.left, budget.is_spent
        (1, False)
        >>> budget.take(2)
        >>> budget.left, budget.is_spent
        (0, True)

    """

    steps: int
    left: int = field(init=False)

    def __post_init__(self) -> None:
        """Begin with all steps left."""
        self.left = self.steps

    @property
    def is_spent(self) -> bool:
        """Whether no step is left."""
        return self.left <= 0

    def take(self, steps: int) -> None:
        """Count steps that were made."""
        self.left = max(0, self.left - steps)


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """The cycles it took, and how they ended.

    `loop` names the workloads that preempt one another forever: then the cycles are those until this was certain.
    Neither `settled` nor a `loop` means that the budget, or `max_cycles`, were not enough.
    """

    cycles: tuple[CycleResult, ...]
    settled: bool
    loop: tuple[str, ...] = ()

    def __getitem__(self, index: int) -> CycleResult:
        """Return one of the cycles."""
        return self.cycles[index]

    @property
    def admitted(self) -> tuple[Admitted, ...]:
        """Everyone admitted on the way, in order."""
        return tuple(a for cycle in self.cycles for a in cycle.admitted)

    @property
    def preempted(self) -> tuple[Preempted, ...]:
        """Everyone preempted on the way, in order."""
        return tuple(p for cycle in self.cycles for p in cycle.preempted)


def settle(model: KueueModel, now: Now, max_cycles: int = 1000, *, budget: Budget | None = None) -> FixedPoint:
    """Run cycles, finishing evictions at once, until nothing is left to consider or a state comes back.

    It ends early when the budget is spent, or without a budget after `max_cycles`.

    Inadmissible workloads are reconsidered once all else is done. Kueue does this once a second (its requeue batch),
    while a cycle takes milliseconds. If two workloads need the same quota, the first to be considered gets it. Seen on
    a real Kueue 0.19.2 by playing the same sequences on both.

    Pods are ready at once, where admission waits for them (`wait_for_pods_ready_block_admission`).
    Workloads that may not run any more (deactivated, or in a queue that is stopped with `HoldAndDrain`) leave first.
    """
    for stopped in model.evict_stopped(now):
        model.finish_eviction(stopped, now)
    results: list[CycleResult] = []
    preemptions: Counter[str] = Counter()
    seen: set[Any] = set()
    idle_states: set[Any] = set()
    while True:
        model.all_pods_ready(now)
        if not model.has_heads() and not (model.requeue_inadmissible() and model.has_heads()):
            return FixedPoint(tuple(results), settled=True)
        if len(results) >= max_cycles if budget is None else budget.is_spent:
            return FixedPoint(tuple(results), settled=False)
        result = model.cycle(now)
        results.append(result)
        if budget is not None:
            # Every head that a cycle considers is either admitted or gets a reason why it waits; no cycle is idle.
            budget.take(max(1, len(result.admitted) + len(result.waiting)))
        for victim in result.preempted:
            preemptions[victim.workload] += 1
            model.finish_eviction(victim.workload, now)
        # A head that left the line makes the state another one: to compare costs as much as there are workloads.
        stays = result.idle and all(head.in_line for head in result.waiting)
        state = model.signature() if stays else None
        # A flavor search that continues where it stopped may come round to a state after several idle cycles.
        if state in idle_states and not model.requeue_inadmissible():
            return FixedPoint(tuple(results), settled=True)
        idle_states = {*idle_states, state} if stays else set()
        if any(preemptions[p.workload] >= _SUSPICIOUS for p in result.preempted):
            state = model.signature()
            if state in seen:
                often = sorted(key for key, count in preemptions.items() if count >= _SUSPICIOUS)
                return FixedPoint(tuple(results), settled=False, loop=tuple(often))
            seen.add(state)
