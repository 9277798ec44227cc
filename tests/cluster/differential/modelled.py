"""A sequence's side in `taskgov.scheduling`: the same objects, and cycles until nothing changes any more.

Time is an argument of the model: a cycle that admits somebody happens in the second in which Kueue wrote the
reservation, and each admitted workload has the moment that Kueue wrote for it: what was reserved in one second is a
tie on both sides, and what one cycle reserved in two seconds is none on either.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

from taskgov.scheduling import KueueModel, ManagerConfig
from tests.cluster.kube import conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taskgov.scheduling.results import CycleResult
    from tests.cluster.kube import Object

_MAX_CYCLES: Final = 500
_MAX_INTERRUPTED: Final = 12
_LATEST_ENDS: Final = 3
_LATEST_RETURN: Final = 2
_FIRST_TURNS: Final = 3
"""For so many cycles, equals may come in another order than in those that follow."""


class ModelSide:
    """One sequence's world, or several where Kueue itself goes round and nobody can say where it is just now."""

    def __init__(self, objects: list[Object], *, fair_sharing: bool) -> None:
        world = KueueModel(ManagerConfig(fair_sharing=fair_sharing))
        world.load(objects)
        self._rounds = [[world]]
        self._shown = world
        self.cycles: list[CycleResult] = []
        self._said: dict[str, frozenset[str]] = {}
        self._kept_words: dict[str, frozenset[str]] = {}

    def submit(self, stored: Object) -> None:
        """Take a workload as the API server stored it."""
        self.apply({**stored, "status": {}})

    def apply(self, stored: Object) -> None:
        """Take a changed object."""
        for world in self._worlds:
            world.apply(stored)

    def finish(self, key: str) -> None:
        """Let a workload be done."""
        for world in self._worlds:
            world.finish(key, _now())

    def release(self, key: str) -> None:
        """Free the quota of a workload that was told to leave."""
        for world in self._worlds:
            world.finish_eviction(key, _now())

    def reclaim(self, told: Object) -> None:
        """Take a workload with the pods that are done and not needed again."""
        self.apply(told)

    def delete(self, key: str) -> None:
        """Delete a workload."""
        namespace, _, name = key.partition("/")
        for world in self._worlds:
            world.delete("Workload", name, namespace)

    def workload(self, key: str) -> Object:
        """Return a workload as the model would write it."""
        return self._shown.workload(key)

    def holds_quota(self, key: str) -> bool:
        """Say whether a workload holds quota and is not done."""
        done = any(one["type"] == "Finished" for one in self.workload(key)["status"]["conditions"])
        return self._shown.admission(key) is not None and not done

    def is_over_quota(self) -> bool:
        """Say whether some queue holds more than it may."""
        quotas = (self._shown.quota(name) for name in self._shown.cluster_queues())
        return any(amount < 0 for quota in quotas for amount in quota.available.values())

    @property
    def possible(self) -> int:
        """In how many ways it may stand now: more than one where Kueue goes round without an end."""
        return len(self._worlds)

    @property
    def _worlds(self) -> list[KueueModel]:
        return [world for round_trip in self._rounds for world in round_trip]

    def kept(self) -> tuple[list[list[KueueModel]], KueueModel]:
        """Return how it stands, for `restore`."""
        return self._rounds, self._shown

    def restore(self, kept: tuple[list[list[KueueModel]], KueueModel]) -> None:
        """Stand as before."""
        self._rounds, self._shown = kept

    def keep(self, agrees: Callable[[KueueModel], bool]) -> bool:
        """Go on with what agrees with what was seen; say whether anything does.

        Of a round trip all is kept when one of its stations agrees: Kueue will be at another one when it matters.
        """
        found = [(one, world) for one in self._rounds for world in one if agrees(world)]
        if found:
            self._shown = found[0][1]
            self._rounds = [one for one in self._rounds if any(one is kept for kept, _ in found)]
        return bool(found)

    def settle(self, reserved_at: Callable[[str], str | None]) -> None:
        """Run cycles until nothing changes: those in line first, then, as Kueue after a second, the inadmissible."""
        self.cycles = []
        self._kept_words = {key: self._said[key] for key in self._in_line() if key in self._said}
        for world in self._worlds:
            world.evict_stopped(_now())
        self._before = [world.copy() for world in self._worlds]
        cycles = _Cycles(reserved_at, self.cycles)
        self._take(self._ends(world, cycles) for world in self._worlds)
        self._note_what_was_said(self.cycles)

    def settle_in_any_turn(self, reserved_at: Callable[[str], str | None]) -> None:
        """Settle anew, with equals of different queues in every order: Kueue takes any (`in_order`).

        It takes another one in the next cycle, so the first cycles may have another order than the rest.
        """
        done: list[CycleResult] = []
        self._take(
            self._ends(world.copy(), _Cycles(reserved_at, done, turn, first_turns=(first,) * times))
            for world in self._before
            for turn in permutations(world.cluster_queues())
            for first in permutations(world.cluster_queues())
            for times in range(_FIRST_TURNS + 1 if first != turn else 1)
        )
        self._note_what_was_said(done)

    def settle_with_late_ends(self, reserved_at: Callable[[str], str | None]) -> bool:
        """Settle anew, with slices that are replaced in use for one more cycle or two; say whether that may differ.

        Kueue counts the new slice at once, and the one before it until its end has been written and seen
        (`admit` in `pkg/scheduler/scheduler.go`).
        """
        if not any(admitted.replaces for result in self.cycles for admitted in result.admitted):
            return False
        done: list[CycleResult] = []
        self._take(
            self._ends(world.copy(), _Cycles(reserved_at, done, late=late))
            for world in self._before
            for late in range(1, _LATEST_ENDS + 1)
        )
        self._note_what_was_said(done)
        return True

    def settle_with_late_return(self, key: str, reserved_at: Callable[[str], str | None]) -> None:
        """Settle anew, with a few cycles before a workload that gave its quota back is in line again.

        Kueue's scheduler takes the heads first and the snapshot of the quotas after them (`schedule` in
        `pkg/scheduler/scheduler.go`); what is given back between the two is seen by those heads alone. Among many
        sequences at once, Kueue's log shows one more cycle without the workload; the cause of that one is not known.
        """
        done: list[CycleResult] = []
        cycles = _Cycles(reserved_at, done)
        namespace, _, name = key.partition("/")

        def late(world: KueueModel, times: int) -> list[KueueModel]:
            returned = world.workload(key)
            world.delete("Workload", name, namespace)
            for _ in range(times):
                if world.has_heads():
                    cycles.once(world)
            world.apply(returned)
            return self._ends(world, cycles)

        self._take(late(world.copy(), times) for world in self._before for times in range(1, _LATEST_RETURN + 1))
        self._note_what_was_said(done)

    def settle_with_another_look(self, reserved_at: Callable[[str], str | None]) -> None:
        """Settle anew, with one more look at everybody at the end: a door that is started, and its controller's words.

        Kueue's controller writes on workloads behind it; where the scheduler has one in hand just then, the event puts
        it in line once more (`PushOrUpdate` in `pkg/cache/queue/cluster_queue.go`).
        """
        done = [*self.cycles]
        cycles = _Cycles(reserved_at, done)

        def again(world: KueueModel) -> list[KueueModel]:
            self._ends(world, cycles)
            world.requeue_inadmissible(world._trees())
            return self._ends(world, cycles)

        self._take(again(world.copy()) for world in self._before)
        self._note_what_was_said(done)

    def settle_hurriedly(self, reserved_at: Callable[[str], str | None]) -> bool:
        """Settle anew, with the inadmissible back in line after any number of cycles; say whether that may differ.

        Kueue counts the second from the change; where cycles take longer than that, it is over before they end.
        """
        done: list[CycleResult] = []
        branches = [
            (branch, cycles)
            for world in self._before
            for turn in permutations(world.cluster_queues())
            for cycles in [_Cycles(reserved_at, done, turn)]
            for branch in cycles.interrupted(world.copy())
        ]
        if branches:
            self._take(self._ends(branch, cycles) for branch, cycles in branches)
            self._note_what_was_said(done)
        return bool(branches)

    def _take(self, rounds: Iterable[list[KueueModel]]) -> None:
        """Stand where these round trips lead, each once."""
        distinct = {frozenset(_stand(world) for world in one): one for one in rounds}
        self._rounds = list(distinct.values())
        self._shown = self._worlds[0]

    def said(self, key: str) -> frozenset[str]:
        """Return why a workload waits, in the words of each look at it in the last step in which it was looked at.

        Where it was in line when that step began, looks followed one another before, and their words count too. Looks
        that follow one another within the delay of a watch compare with a copy of the workload from before them, and do
        not write what that copy says already; then what an earlier look wrote stays. So Kueue's status may have the
        words of any of these looks, though the last ones are meant (`test_races`).
        """
        return self._said.get(key, frozenset())

    def _note_what_was_said(self, cycles: list[CycleResult]) -> None:
        now: dict[str, set[str]] = {}
        for result in cycles:
            for waiting in result.waiting:
                now.setdefault(waiting.workload, set()).add(waiting.message)
        self._said |= {key: self._kept_words.get(key, frozenset()) | messages for key, messages in now.items()}

    def _in_line(self) -> set[str]:
        return {key for world in self._worlds for name in world.cluster_queues() for key in world.pending(name)[0]}

    def _ends(self, world: KueueModel, cycles: _Cycles) -> list[KueueModel]:
        """Return the world at rest, or all it goes through forever without admitting or preempting anybody.

        What was reconsidered at one station is over at all of them: a station that kept it would reconsider its
        workloads once more in a later step, which Kueue does not.
        """
        while True:
            round_trip = cycles.run(world)
            let_cycles_pass(world)
            if not (world.has_notified and world.requeue_inadmissible()):
                for station in round_trip:
                    station._store.notified.clear()
                return round_trip


@dataclass(slots=True)
class _Cycles:
    """Runs cycles in the seconds in which Kueue reserved, with equals in one order, and keeps what came of them."""

    reserved_at: Callable[[str], str | None]
    done: list[CycleResult]
    turn: tuple[str, ...] = ()
    late: int = 0
    """For how many cycles a slice that is replaced is still in use."""
    first_turns: tuple[tuple[str, ...], ...] = ()
    """The orders of equals in the first cycles."""

    def run(self, world: KueueModel) -> list[KueueModel]:
        """Run cycles until one leaves the world as an earlier one did; return it as it stood since then."""
        idle: dict[Any, KueueModel] = {}
        for _ in range(_MAX_CYCLES):
            if not world.has_heads():
                return [world]
            self.once(world)
            if not self.done[-1].idle:
                idle.clear()
                continue
            state = _signature(world)
            if state in idle and not self.first_turns:
                return list(idle.values())[list(idle).index(state) :]
            idle[state] = world.copy()
        raise AssertionError("the model neither comes to rest nor goes round")

    def interrupted(self, world: KueueModel) -> list[KueueModel]:
        """Return the world with its inadmissible workloads back in line after no cycle, after one, and so on."""
        found = []
        for _ in range(_MAX_INTERRUPTED):
            branch = world.copy()
            if branch.has_notified and branch.requeue_inadmissible():
                found.append(branch)
            if not world.has_heads():
                break
            self.once(world)
        return found

    def once(self, world: KueueModel) -> None:
        """Run one cycle."""
        self.done.append(self._cycle(world))

    def _cycle(self, world: KueueModel) -> CycleResult:
        """Run a cycle in the second in which Kueue admitted whom it admits, each at the moment that it wrote."""
        turn, self.first_turns = (*self.first_turns, self.turn)[0], self.first_turns[1:]
        foreseen = world.copy().cycle(_now(), turn)
        moments = [moment for one in foreseen.admitted if (moment := self.reserved_at(one.workload))]
        before = {one.replaces: world.workload(one.replaces) for one in foreseen.admitted if one.replaces and self.late}
        result = world.cycle(max(moments, default=None) or _now(), turn, self.reserved_at)
        if before:
            self._use_longer(world, before)
        return result

    def _use_longer(self, world: KueueModel, replaced: dict[str, Object]) -> None:
        """Run cycles in which slices that have been replaced still hold their quota."""
        ends = {key: conditions(world.workload(key))["Finished"] for key in replaced}
        for running in replaced.values():
            world.delete("Workload", running["metadata"]["name"], running["metadata"]["namespace"])
            world.apply(running)
        for _ in range(self.late):
            if world.has_heads():
                self.done.append(world.cycle(_now(), self.turn, self.reserved_at))
        for key, end in ends.items():
            world.finish(key, _now(), reason=end["reason"], message=end["message"])


def _stand(world: KueueModel) -> tuple[Any, ...]:
    """Return how a world stands and what it says; equal for worlds that need not be told apart."""
    return _signature(world), _words(world)


def _signature(world: KueueModel) -> tuple[Any, ...]:
    """Return what the next decisions depend on, whatever changes before them.

    How far a search for flavors came is kept when quota is freed only if the search was made in the last cycle
    (`lastAssignmentOutdated` in `pkg/scheduler/scheduler.go`). The model's own signature leaves that out, because it
    matters only if something changes.
    """
    scans = ((record.key, record.scan) for record in world._store.records.values())
    fresh = frozenset(key for key, scan in scans if scan is not None and scan.cycle == world._cycle_number)
    return world.signature(), fresh


def _words(world: KueueModel) -> tuple[str, ...]:
    told = (one for key in world.workloads() for one in world.workload(key)["status"]["conditions"])
    return tuple(f"{one['type']} {one['status']} {one['message']}" for one in told)


def let_cycles_pass(world: KueueModel) -> None:
    """Let cycles pass in which nobody of this world is in line: others are around all the time (`metronome`)."""
    for _ in range(2):
        if not world.has_heads():
            world.cycle(_now())


def _now() -> datetime:
    return datetime.now(UTC)
