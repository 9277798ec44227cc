"""What would happen over time? Arrivals, run times, completions, evictions and changes of quota, in virtual time over a `World`.

Plans replay workloads through it, the benchmark replays Kueue's own performance scenario. A cycle takes no virtual time; the same input gives the
same timeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Final

from taskgov.scheduling.instants import SECOND, Instant, instant
from taskgov.scheduling.objects import Workload
from taskgov.scheduling.results import CycleResult
from taskgov.scheduling.world import World

_SUSPICIOUS: Final = 50


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a workload: `admitted`, `preempted` or `finished`."""

    at: Instant
    cycle: int
    kind: str
    workload: str
    uid: str


@dataclass(frozen=True, slots=True)
class PreemptionLoop:
    """Proof that the rules as configured move these workloads in and out for ever: a state came back with nothing new."""

    at: Instant
    workloads: tuple[str, ...]


@dataclass(slots=True)
class Timeline:
    """What a simulation brought about.

    `loop` is set when it was stopped because nothing new could ever happen again; `unfinished` are workloads that never
    finished.
    """

    happenings: list[Happening] = field(default_factory=list)
    cycles: int = 0
    instants: int = 0
    end: Instant = 0
    loop: PreemptionLoop | None = None
    unfinished: tuple[str, ...] = ()


class Simulation:
    """A world with a clock.

    Parameters
    ----------
    world
        Is changed by the simulation; give it a copy to keep the original.
    requeue_batch
        How long capacity changes of a tree are gathered before its inadmissible workloads get another look, in microseconds; 0 is at once. Kueue
        gathers for one second.
    keep_finished
        Whether finished workloads stay readable in the world.

    """

    def __init__(self, world: World, *, requeue_batch: int = SECOND, keep_finished: bool = True) -> None:
        self.world = world
        self.timeline = Timeline()
        self._batch = requeue_batch
        self._keep_finished = keep_finished
        self._agenda: list[tuple[Instant, int, int, Callable[[Instant], None]]] = []
        self._number = 0
        self._run_times: dict[str, int] = {}
        self._started: dict[str, int] = {}
        self._due: dict[str, Instant] = {}
        self._preemptions: dict[str, int] = defaultdict(int)
        self._seen: set[Any] = set()

    def arrive(self, workload: Workload, at: Instant | str, run_time: int) -> None:
        """Have a workload arrive; admitted, it runs for `run_time` microseconds, from the start again after an eviction."""

        def submit(_: Instant) -> None:
            self._run_times[workload.key] = run_time
            self._seen.clear()
            self.world.submit(workload)

        self._schedule(_moment(at), 1, submit)

    def running(self, workload: str, run_time: int, at: Instant | str) -> None:
        """Tell how much longer a workload that is running already will run."""
        self._run_times[workload] = run_time
        self._start(workload, _moment(at))

    def change(self, obj: Mapping[str, Any], at: Instant | str) -> None:
        """Apply an object, such as a ClusterQueue with another quota, at a moment."""

        def apply(_: Instant) -> None:
            self._seen.clear()
            self.world.apply(obj)

        self._schedule(_moment(at), 1, apply)

    def run(self, until: Instant | str | None = None) -> Timeline:
        """Let time pass until nothing more is to happen, or `until`; gives the timeline so far."""
        limit = None if until is None else _moment(until)
        while self._agenda and self.timeline.loop is None:
            now = self._agenda[0][0]
            if limit is not None and now > limit:
                break
            self._instant(now)
        self.timeline.unfinished = tuple(sorted(self._run_times))
        return self.timeline

    def _instant(self, now: Instant) -> None:
        """Everything at one moment: completions, then arrivals and changes, then requeues, then cycles."""
        while self._agenda and self._agenda[0][0] == now:
            heappop(self._agenda)[3](now)
        self._notice(now)
        while self.world.has_heads() and self.timeline.loop is None:
            self._cycle(now)
        self.timeline.instants += 1
        self.timeline.end = now

    def _cycle(self, now: Instant) -> None:
        result = self.world.cycle(now)
        self.timeline.cycles += 1
        for admitted in sorted(result.admitted, key=lambda a: a.uid):
            self._note(now, result, "admitted", admitted.workload, admitted.uid)
            self._start(admitted.workload, now)
        for preempted in sorted(result.preempted, key=lambda p: p.uid):
            self._note(now, result, "preempted", preempted.workload, preempted.uid)
            self._preemptions[preempted.workload] += 1
            self._stop(preempted.workload)
            self.world.finish_eviction(preempted.workload, now)
        self._notice(now)
        if result.preempted:
            self._look_for_loop(result, now)

    def _notice(self, now: Instant) -> None:
        """See which trees have new capacity: another look at once, or when the batch is due."""
        if not self.world.has_notified:
            return
        if self._batch == 0:
            self.world.requeue_inadmissible()
            return
        for tree in sorted(self.world.notified):
            if tree not in self._due:
                self._due[tree] = now + self._batch
                self._schedule(now + self._batch, 2, lambda at, tree=tree: self._requeue(tree))

    def _requeue(self, tree: str) -> None:
        del self._due[tree]
        self.world.requeue_inadmissible([tree])

    def _start(self, workload: str, now: Instant) -> None:
        """Plan the completion of a workload that runs from now on."""
        self._number += 1
        started = self._started[workload] = self._number
        self._schedule(now + self._run_times[workload], 0, lambda at: self._finish(workload, started, at))

    def _stop(self, workload: str) -> None:
        self._started.pop(workload, None)

    def _finish(self, workload: str, started: int, now: Instant) -> None:
        """Complete a workload, unless it was evicted since it started."""
        if self._started.get(workload) != started:
            return
        self._stop(workload)
        self._seen.clear()
        del self._run_times[workload]
        if self._keep_finished:
            self.world.finish(workload, now)
        else:
            namespace, _, name = workload.rpartition("/")
            self.world.delete("Workload", name, namespace)

    def _note(self, now: Instant, result: CycleResult, kind: str, workload: str, uid: str) -> None:
        self.timeline.happenings.append(Happening(now, result.number, kind, workload, uid))

    def _schedule(self, at: Instant, order: int, action: Callable[[Instant], None]) -> None:
        self._number += 1
        heappush(self._agenda, (at, order, self._number, action))

    def _look_for_loop(self, result: CycleResult, now: Instant) -> None:
        """Compare states once somebody was preempted suspiciously often; the same state twice will come for ever."""
        victims = [p.workload for p in result.preempted]
        if max(self._preemptions[v] for v in victims) < _SUSPICIOUS:
            return
        state = self._state(now)
        if state in self._seen:
            often = (w for w, count in self._preemptions.items() if count >= _SUSPICIOUS)
            self.timeline.loop = PreemptionLoop(now, tuple(sorted(often)))
        self._seen.add(state)

    def _state(self, now: Instant) -> Any:
        """Everything the future depends on, relative to now."""
        plans = tuple(sorted((at - now, order) for at, order, _, _ in self._agenda))
        return self.world.signature(), plans


def _moment(at: Instant | str) -> Instant:
    return at if isinstance(at, int) else instant(at)
