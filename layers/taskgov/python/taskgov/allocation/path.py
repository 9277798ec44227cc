"""Choose the path of a plan: which writes go into which wave, to avoid needless preemptions on the way.

The shortest path makes all decreases in one wave, and all increases in as few waves as there is room for. It is used
unless it preempts a workload. Otherwise other paths are simulated with the scheduling model, within a budget of steps,
and the one with the fewest preemptions wins. Preemptions of workloads that are safe when everything is written at once
count first, then all.

| writes | paths that are tried |
| --- | --- |
| any number | increases by rank, one by one or in three waves: borrowers with running work first, waiting teams last |
| any number | decreases and increases in groups, so that the cohort shrinks less on the way |
| up to 6 increases | every order of them, each in a wave of its own, after all decreases |
| up to 6 in total | every order, each write in a wave of its own, if there is room for it |

Neighbouring writes whose order makes no difference share a wave. Among equal paths the shorter one wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.allocation.effects import gpus_of
from taskgov.allocation.path_ranks import WAITS, Ranks
from taskgov.allocation.predict import LoopError, Player, Stage
from taskgov.allocation.waves import Wave

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskgov.allocation.plan import Change
    from taskgov.allocation.waves import Room, Write, Writes

MOST_ORDERED: Final = 6
"""Writes whose every order is tried: 720 of them."""

MOST_WAVES: Final = 12
"""Waves of a path at most: each has to settle before the next begins, and the run's time and history are bounded."""

SEARCH_STEPS: Final = 20_000
"""Model steps that the search for a better path may take, beside those that play the shortest one."""

_Harm = tuple[bool, int, int, int, int]
_Cost = tuple[_Harm, int]


@dataclass(frozen=True, slots=True)
class Path:
    """The waves of a plan, in order, and the simulated cluster at their end."""

    waves: tuple[Wave, ...]
    end: Stage
    is_first: bool = False
    """Whether it was played before any other path."""


def choose_path(writes: Writes, player: Player) -> Path:
    """Return the tried path with the fewest preemptions.

    Raises `LoopError` if workloads would preempt one another forever even without the plan.
    """
    return _Choice(writes, player).made()


class _Choice:
    def __init__(self, writes: Writes, player: Player) -> None:
        self._writes, self._player = writes, player
        self._begin = player.start
        for number, wave in enumerate(writes.first, 1):
            self._begin = player.after(self._begin, changes_of(wave), number)
        self._number = len(writes.first)
        self._ranks = Ranks(player)
        self._unavoidable = frozenset[str]()
        self._stop_at = 0

    def made(self) -> Path:
        shortest, best, first, endless = self._writes.in_waves()[self._number :], None, None, None
        try:
            best = first = self._played(shortest)
        except LoopError as loop:
            endless = loop
        if best is None or not _is_best(best):
            best = self._better(best)
        if best is None:
            raise endless or LoopError
        path = best if best.waves == shortest else self._merged(best)
        return Path((*self._writes.first, *path.waves), path.end, is_first=path is first)

    def _better(self, best: Path | None) -> Path | None:
        """Return the best of the tried paths; None if none can be simulated to its end."""
        self._unavoidable = self._preempted_at_once()
        self._stop_at = max(self._player.budget.left - SEARCH_STEPS, 0)
        for waves in self._others():
            if self._is_tired():
                break
            path = self._tried(waves, best)
            if path is not None and (best is None or self._cost(path) < self._cost(best)):
                best = path
            if best and _is_best(best):
                break
        return best

    def _preempted_at_once(self) -> frozenset[str]:
        """Return the workloads that are preempted if everything is written at once. No path avoids these."""
        last = {write.key: write for write in (*self._writes.gives, *self._writes.takes)}
        try:
            at_once = self._player.after(self._begin, changes_of(last.values()), self._number, every_order=False)
        except LoopError:
            return frozenset()
        return frozenset(at_once.losses)

    def _is_tired(self) -> bool:
        return self._player.budget.left <= self._stop_at

    def _others(self) -> Iterator[tuple[Wave, ...]]:
        """Yield other paths, those that take few steps to play first."""
        gives, takes = self._writes.gives, self._ranks.in_order(self._writes.takes)
        yield (gives, *((write,) for write in takes))
        yield from self._in_thirds()
        for count in range(2, 1 + (MOST_WAVES - self._number) // 2):
            yield self._grouped(count)
        if len(takes) <= MOST_ORDERED:
            yield from self._ordered_takes((gives,))
            if 1 < len(gives) <= MOST_ORDERED:
                yield from self._ordered_takes(tuple((write,) for write in self._ranks.in_order(gives)))
        if len(gives) + len(takes) <= MOST_ORDERED:
            found = self._best_order(self._begin, (*gives, *takes), self._writes.room.copy())
            if found:
                yield found

    def _ordered_takes(self, given: tuple[Wave, ...]) -> Iterator[tuple[Wave, ...]]:
        room = self._writes.room.copy()
        for wave in given:
            room.after(wave)
        try:
            stage = self._played(given).end
        except LoopError:
            return
        found = self._best_order(stage, self._writes.takes, room)
        if found:
            yield (*given, *found)

    def _in_thirds(self) -> Iterator[tuple[Wave, ...]]:
        """Order writes by rank: borrowers with running work first, queues with waiting work last."""
        thirds: dict[int, list[Write]] = {}
        for write in self._ranks.in_order(self._writes.takes):
            thirds.setdefault(self._ranks.of(write), []).append(write)
        yield (self._writes.gives, *(tuple(wave) for _, wave in sorted(thirds.items())))
        # What has waiting work is lowered first: it then has less to reclaim from those that are lowered after it.
        lowered: dict[bool, list[Write]] = {}
        for write in self._writes.gives:
            lowered.setdefault(self._ranks.of(write) != WAITS, []).append(write)
        yield (*(tuple(wave) for _, wave in sorted(lowered.items())), *(tuple(w) for _, w in sorted(thirds.items())))

    def _grouped(self, count: int) -> tuple[Wave, ...]:
        """Return the path that takes in `count` groups, each after just what has to be given for it."""
        takes, gives = list(self._ranks.in_order(self._writes.takes)), list(self._writes.gives)
        size = -(-len(takes) // count) or 1
        room, waves = self._writes.room.copy(), list[Wave]()
        for begin in range(0, len(takes), size):
            group = tuple(takes[begin : begin + size])
            needed: list[Write] = [write for write in gives if write.key in {taken.key for taken in group}]
            trial = room.copy()
            trial.after(needed)
            for write in gives:
                lacking = trial.lacks(group)
                if not lacking:
                    break
                if write not in needed and any(write.delta.get(place, 0) < 0 for place in lacking):
                    needed.append(write)
                    trial.after([write])
            gives = [write for write in gives if write not in needed]
            room = trial
            room.after(group)
            waves += [tuple(needed), group]
        return (*waves, tuple(gives))

    def _best_order(self, stage: Stage, writes: Sequence[Write], room: Room) -> tuple[Wave, ...] | None:
        """Return the order of single writes that preempts least, None where no order has room."""
        best: tuple[_Cost, tuple[Wave, ...]] | None = None
        steps: list[tuple[Stage, tuple[Wave, ...], Room]] = [(stage, (), room)]
        while steps and not self._is_tired():
            reached, waves, left = steps.pop()
            cost = self._cost(Path(waves, reached))
            if best is not None and cost[0] >= best[0][0]:
                continue
            done = {id(wave[0]) for wave in waves}
            keys = {write.key for write in writes if id(write) not in done and write.change.is_low}
            ready = [
                write for write in writes if id(write) not in done and (write.change.is_low or write.key not in keys)
            ]
            if not ready:
                best = cost, waves
                if not reached.losses:
                    break
                continue
            # The last is considered first: in the order of ranks.
            for write in reversed(list(self._ranks.in_order(ready))):
                if left.fits([write]):
                    try:
                        after = self._player.after(reached, changes_of([write]), self._number + len(waves) + 1)
                    except LoopError:
                        continue
                    room_after = left.copy()
                    room_after.after([write])
                    steps.append((after, (*waves, (write,)), room_after))
        return None if best is None else best[1]

    def _merged(self, path: Path) -> Path:
        """Merge neighbouring waves if the result is the same, so that the path is short enough."""
        waves = list(path.waves)
        at = 0
        while at + 1 < len(waves):
            merged = (*waves[:at], (*waves[at], *waves[at + 1]), *waves[at + 2 :])
            trial = None if self._is_tired() else self._tried(merged, path)
            if trial is not None and self._cost(trial)[0] <= self._cost(path)[0]:
                path, waves = trial, list(merged)
            else:
                at += 1
        return path

    def _tried(self, waves: Iterable[Wave], best: Path | None) -> Path | None:
        """Play a path, if there is room for it, it is short enough, and each low write comes before the rest.

        Every order of its waves is played only if, all at once, it would do no more harm than the best so far.
        """
        path = tuple(wave for wave in waves if wave)
        if len(path) + self._number > MOST_WAVES or not self._writes.room.allows(path):
            return None
        seen: set[str] = set()
        for wave in path:
            keys = [write.key for write in wave]
            if len(set(keys)) < len(keys) or any(
                write.change.target_version is None and write.change.resource_id and write.key not in seen
                for write in wave
            ):
                return None
            seen.update(keys)
        try:
            at_once = self._played(path, every_order=False)
            if best is not None and self._cost(at_once)[0] > self._cost(best)[0]:
                return None
            played = self._played(path)
        except LoopError:
            return None
        return None if played.end.not_played else played

    def _played(self, waves: Sequence[Wave], *, every_order: bool = True) -> Path:
        stage = self._begin
        for number, wave in enumerate(waves, self._number + 1):
            stage = self._player.after(stage, changes_of(wave), number, every_order=every_order)
        return Path(tuple(waves), stage)

    def _cost(self, path: Path) -> _Cost:
        """Return the harm that a path does, the most severe first, and its waves.

        Harm is that not all of it could be played; the GPUs and workloads that it preempts and its end does not; and
        all that it preempts.
        """
        losses = path.end.losses
        beyond = sum(gpus_of(loss.held) for key, loss in losses.items() if key not in self._unavoidable)
        more = sum(key not in self._unavoidable for key in losses)
        harm = bool(path.end.not_played), beyond, more, path.end.gpus, len(losses)
        return harm, len(path.waves)


def changes_of(wave: Iterable[Write]) -> list[Change]:
    """Return what is written in a wave."""
    return [write.change for write in wave]


def _is_best(path: Path) -> bool:
    return not path.end.losses and not path.end.not_played
