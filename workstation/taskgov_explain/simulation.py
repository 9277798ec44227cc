"""What would happen over time? Arrivals, run times, ends of work and changes of quota, in virtual time on the model.

Plans replay workloads through it, the benchmark replays Kueue's own performance scenario. A cycle takes no virtual
time; the same input gives the same timeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

from taskgov.scheduling.instants import SECOND, Instant, instant
from taskgov.scheduling.objects import ClusterQueue, Workload
from taskgov.scheduling.reading import name_of, namespace_of
from taskgov_explain.timeline import Happening, PreemptionLoop, Timeline

if TYPE_CHECKING:
    from taskgov.scheduling.kueue_model import KueueModel
    from taskgov.scheduling.results import CycleResult

_SUSPICIOUS: Final = 5
"""So many preemptions of one workload, with nothing new in between, make it worth comparing whole states."""

_COMPLETION, _CHANGE, _REQUEUE = range(3)
"""What comes first among things due at one moment."""

Action = Callable[[Instant], object]
"""What is done at a moment; true if anything happened."""
_Given = Workload | Mapping[str, Any]


class Simulation:
    """A world with a clock.

    Parameters
    ----------
    world
        Is changed by the simulation; give it a copy to keep the original.
    requeue_batch
        How long capacity changes of a tree are gathered before its inadmissible workloads are reconsidered, in
        microseconds; 0 is at once. Kueue gathers for one second.
    keep_finished
        Whether finished workloads stay readable in the world.

    Example:
        >>> from taskgov.scheduling import PodSet, Workload, KueueModel
        >>> simulation = Simulation(KueueModel())
        >>> job = Workload("a", "job", queue="main", pod_sets=(PodSet("main", 1, (("cpu", 1000),)),))
        >>> simulation.arrive(job, at=0, run_time=60_000_000)
        >>> simulation.run().unfinished  # there is no queue to admit it
        ('a/job',)

    """

    def __init__(self, world: KueueModel, *, requeue_batch: int = SECOND, keep_finished: bool = True) -> None:
        self.world = world
        self.timeline = Timeline()
        self._batch = requeue_batch
        self._keep_finished = keep_finished
        self._agenda: list[tuple[Instant, int, int, Action]] = []
        self._number = 0
        self._outstanding = 0
        self._run_times: dict[str, int] = {}
        self._started: dict[str, int] = {}
        self._due: set[str] = set()
        self._preemptions: dict[str, int] = defaultdict(int)
        self._seen: set[Any] = set()
        self._changed = True

    # What will happen

    def arrive(self, workload: _Given, at: Instant | str, run_time: int, remaining: int | None = None) -> None:
        """Have a workload arrive; it runs for `run_time` microseconds, from the start again after an eviction.

        One that holds quota already ends `remaining` microseconds after `at`, if nobody evicts it.
        """
        self._plan(at, partial(self._submit, workload, run_time, remaining))

    def running(self, workload: str, run_time: int, at: Instant | str) -> None:
        """Return how much longer a workload that is running at a moment will run."""
        self._run_times[workload] = run_time
        self._start(workload, _moment(at))

    def change(self, obj: Mapping[str, Any] | ClusterQueue, at: Instant | str) -> None:
        """Apply an object, such as a ClusterQueue with another quota, at a moment."""
        self._plan(at, lambda _: self._apply(obj))

    def remove(self, kind: str, name: str, at: Instant | str, namespace: str = "") -> None:
        """Delete an object at a moment."""
        self._plan(at, lambda _: self.world.delete(kind, name, namespace))

    def evict(self, workload: str, at: Instant | str, *, reason: str, message: str) -> None:
        """Evict a workload, if it is running then, for a reason of its own, such as `PodsReadyTimeout`."""
        self._plan(at, partial(self._evict, workload, reason, message))

    def answer(self, workload: str, check: str, state: str, at: Instant | str) -> None:
        """Have an admission check answer at a moment; the workload runs once the last of its checks is `Ready`."""
        self._plan(at, partial(self._answer, workload, check, state))

    def run(self, until: Instant | str | None = None) -> Timeline:
        """Let time pass until nothing more can happen, or `until`; gives the timeline so far."""
        limit = None if until is None else _moment(until)
        while self._agenda and self.timeline.loop is None and (self._run_times or self._outstanding):
            now = self._agenda[0][0]
            if limit is not None and now > limit:
                break
            self._moment(now)
        self.timeline.unfinished = tuple(sorted(self._run_times))
        self.timeline.not_modelled = self.world.not_modelled
        return self.timeline

    # One moment

    def _moment(self, now: Instant) -> None:
        """Do everything due: completions, then arrivals and changes, then requeues, then cycles."""
        happened = False
        while self._agenda and self._agenda[0][0] == now:
            _, order, _, action = heappop(self._agenda)
            if order == _CHANGE:  # it comes from outside: all earlier states are new
                self._outstanding -= 1
                self._news()
            happened |= bool(action(now)) or order == _CHANGE
        if not happened:
            return
        self.timeline.instants += 1
        self.timeline.end = now
        self.world.release_backoffs(now)
        if self._changed:
            self._drain(now)
        self._notice(now)
        self.world.all_pods_ready(now)
        idle_states: set[Any] = set()
        while self.world.has_heads() and self.timeline.loop is None:
            result = self._cycle(now)
            stays = result.idle and all(head.in_line for head in result.waiting)
            state = self.world.signature() if stays else None
            if state in idle_states:  # flavor searches go round; so they do in Kueue until something changes
                return
            idle_states = {*idle_states, state} if stays else set()

    def _cycle(self, now: Instant) -> CycleResult:
        result = self.world.cycle(now)
        self.timeline.cycles += 1
        self.timeline.idle_cycles += result.idle
        for admitted in sorted(result.admitted, key=lambda a: a.uid):
            if admitted.replaces:
                self._replace(admitted.replaces)
            if not admitted.waits_for:
                self._note(now, result.number, "admitted", admitted.workload, admitted.uid)
                self._start(admitted.workload, now)
        for preempted in sorted(result.preempted, key=lambda p: p.uid):
            self._note(now, result.number, "preempted", preempted.workload, preempted.uid)
            self._preemptions[preempted.workload] += 1
            self._started.pop(preempted.workload, None)
            self.world.finish_eviction(preempted.workload, now)
        self.world.all_pods_ready(now)
        self._notice(now)
        if result.preempted:
            self._look_for_loop(result, now)
        return result

    def _notice(self, now: Instant) -> None:
        """See which trees have new capacity: reconsider them at once, or when the batch is due."""
        if not self.world.has_notified:
            return
        if self._batch == 0:
            self.world.requeue_inadmissible()
            return
        for tree in sorted(self.world.notified - self._due):
            self._due.add(tree)
            self._schedule(now + self._batch, _REQUEUE, partial(self._requeue, tree))

    def _drain(self, now: Instant) -> None:
        """Let those leave that may not run any more since an object changed."""
        self._changed = False
        for stopped in self.world.evict_stopped(now):
            self._note(now, self.timeline.cycles, "evicted", stopped, "")
            self._started.pop(stopped, None)
            self.world.finish_eviction(stopped, now)
            self._plan_return()

    # Actions

    def _submit(self, workload: _Given, run_time: int, remaining: int | None, now: Instant) -> None:
        if isinstance(workload, Workload):
            key = workload.key
            self.world.submit(workload)
        else:
            key = f"{namespace_of(workload)}/{name_of(workload)}"
            self.world.apply(workload)
        self._run_times[key] = run_time if remaining is None else remaining
        if self.world.runs(key):
            self._start(key, now)
        self._run_times[key] = run_time

    def _apply(self, obj: Mapping[str, Any] | ClusterQueue) -> None:
        self._changed = True
        self.world.put(obj) if isinstance(obj, ClusterQueue) else self.world.apply(obj)

    def _evict(self, workload: str, reason: str, message: str, now: Instant) -> None:
        if workload not in self._started:
            return
        del self._started[workload]
        self._note(now, self.timeline.cycles, "evicted", workload, "")
        self.world.evict(workload, now, reason=reason, message=message)
        self.world.finish_eviction(workload, now)
        self._plan_return()

    def _plan_return(self) -> None:
        """Look again when the next workload may come back."""
        back = self.world.next_backoff
        if back is not None:
            self._plan(back, lambda _: None)

    def _answer(self, workload: str, check: str, state: str, now: Instant) -> None:
        self.world.answer(workload, check, state, now)
        self._changed = True
        if workload not in self._started and self.world.runs(workload):
            self._note(now, self.timeline.cycles, "admitted", workload, "")
            self._start(workload, now)

    def _replace(self, before: str) -> None:
        """Forget a slice whose place another one has taken: it will not end by itself any more."""
        self._started.pop(before, None)
        self._run_times.pop(before, None)

    def _finish(self, workload: str, started: int, now: Instant) -> bool:
        """Complete a workload, unless it was evicted since it started."""
        if self._started.get(workload) != started:
            return False
        del self._started[workload], self._run_times[workload]
        self._news()
        if self._keep_finished:
            self.world.finish(workload, now)
        else:
            namespace, _, name = workload.rpartition("/")
            self.world.delete("Workload", name, namespace)
        return True

    def _requeue(self, tree: str, _: Instant) -> bool:
        self._due.discard(tree)
        self.world.requeue_inadmissible([tree])
        return True

    # The agenda

    def _start(self, workload: str, now: Instant) -> None:
        """Plan the completion of a workload that runs from now on; one with an unknown run time runs forever."""
        started = self._started[workload] = self._number + 1
        if workload in self._run_times:
            self._schedule(now + self._run_times[workload], _COMPLETION, partial(self._finish, workload, started))

    def _plan(self, at: Instant | str, change: Action) -> None:
        """Plan something from outside."""
        self._outstanding += 1
        self._schedule(_moment(at), _CHANGE, change)

    def _schedule(self, at: Instant, order: int, action: Action) -> None:
        self._number += 1
        heappush(self._agenda, (at, order, self._number, action))

    def _note(self, now: Instant, cycle: int, kind: str, workload: str, uid: str) -> None:
        self.timeline.happenings.append(Happening(now, cycle, kind, workload, uid))

    # Loops

    def _news(self) -> None:
        """Forget earlier states: something happened that they could not know."""
        self._seen.clear()
        self._preemptions.clear()

    def _look_for_loop(self, result: CycleResult, now: Instant) -> None:
        """Compare states once somebody is preempted again and again; the same state twice will come forever."""
        if max(self._preemptions[p.workload] for p in result.preempted) < _SUSPICIOUS:
            return
        state = self._state(now)
        if state in self._seen:
            often = (w for w, count in self._preemptions.items() if count >= _SUSPICIOUS)
            self.timeline.loop = PreemptionLoop(now, tuple(sorted(often)))
        self._seen.add(state)

    def _state(self, now: Instant) -> Any:
        """Give everything the future depends on, relative to now."""
        current = set(self._started.values())
        due = sorted(
            (at - now, order) for at, order, number, _ in self._agenda if order != _COMPLETION or number in current
        )
        return self.world.signature(), tuple(due)


def _moment(at: Instant | str) -> Instant:
    return at if isinstance(at, int) else instant(at)
