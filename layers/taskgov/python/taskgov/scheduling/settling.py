"""What will it come to, if time stands still? Cycles at one moment until nothing changes any more.

Called through `World.settle`: the quickest prediction, without run times.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from taskgov.scheduling.instants import Now
    from taskgov.scheduling.results import Admitted, CycleResult, Preempted
    from taskgov.scheduling.world import World

_SUSPICIOUS: Final = 5
"""So many preemptions of one workload make it worth comparing whole states."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """The cycles it took, and how they ended.

    `loop` names the workloads that preempt one another for ever: then the cycles are those until this was certain.
    Neither `settled` nor a `loop` means that `max_cycles` were not enough.
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


def settle(world: World, now: Now, max_cycles: int) -> Settlement:
    """Run cycles, finishing evictions at once, until nothing is left to look at or a state comes back.

    Inadmissible workloads get another look once all else is done: Kueue gives it to them once a second (its requeue
    batch), a cycle takes milliseconds, and where two want the same quota, who is looked at first decides. Seen on a
    real Kueue 0.19.2 by playing the same sequences on both.
    """
    results: list[CycleResult] = []
    preemptions: Counter[str] = Counter()
    seen: set[Any] = set()
    idle_state: Any = None
    while len(results) < max_cycles:
        if not world.has_heads() and not (world.requeue_inadmissible() and world.has_heads()):
            return Settlement(tuple(results), settled=True)
        result = world.cycle(now)
        results.append(result)
        for victim in result.preempted:
            preemptions[victim.workload] += 1
            world.finish_eviction(victim.workload, now)
        state = world.signature() if result.idle else None
        if state is not None and state == idle_state and not world.requeue_inadmissible():
            return Settlement(tuple(results), settled=True)
        idle_state = state
        if any(preemptions[p.workload] >= _SUSPICIOUS for p in result.preempted):
            state = world.signature()
            if state in seen:
                often = sorted(key for key, count in preemptions.items() if count >= _SUSPICIOUS)
                return Settlement(tuple(results), settled=False, loop=tuple(often))
            seen.add(state)
    return Settlement(tuple(results), settled=False)
