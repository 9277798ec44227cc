"""Visit every state that a scenario allows, shortest ways first, and give the way to the first that is wrong."""

import time
from array import array
from dataclasses import dataclass

from tests.protocol.state import State
from tests.protocol.world import World


@dataclass(frozen=True, slots=True)
class Explored:
    """What came of an exploration."""

    scenario: str
    states: int
    steps: int
    seconds: float
    """Of processor time, which other programs do not lengthen."""
    wrong: str | None = None
    way: tuple[str, ...] = ()
    """What happened, from the start to what is wrong."""
    complete: bool = True

    def __str__(self) -> str:
        bound = "" if self.complete else " (up to its bound)"
        text = f"{self.scenario}: {self.states} states, {self.steps} steps{bound}, {self.seconds:.1f} s"
        if self.wrong is None:
            return text
        lines = (f"{number:3} {label}" for number, label in enumerate(self.way, 1))
        return "\n".join((text, f"WRONG: {self.wrong}", *lines))


class Exploration:
    """A breadth-first search: the first wrong state that it meets is one of those nearest to the start."""

    def __init__(self, world: World, most: int = 10_000_000) -> None:
        self._world, self._most = world, most
        self._known: dict[State, int] = {}
        self._states: list[State] = []
        self._from: list[tuple[int, str]] = []
        self._certain = (array("I"), array("I"))
        self._quiet: list[int] = []

    def run(self) -> Explored:
        """Explore until something is wrong, everything is known, or there are too many states."""
        started, steps = time.process_time(), 0
        self._add(self._world.start(), -1, "")
        number = 0
        while number < len(self._states) and len(self._states) <= self._most:
            quiet = True
            for step in self._world.steps(self._states[number]):
                steps += 1
                if step.wrong is not None:
                    return self._explored(steps, started, step.wrong, (*self._way(number), step.label))
                following = self._add(step.after, number, step.label)
                if step.certain and following != number:
                    quiet = False
                    self._certain[0].append(number)
                    self._certain[1].append(following)
            if quiet:
                self._quiet.append(number)
            number += 1
        complete = number == len(self._states)
        stuck = self._first_that_never_rests() if complete else None
        if stuck is not None:
            wrong = "this never comes to an end, whatever happens"
            return self._explored(steps, started, wrong, self._way(stuck))
        return self._explored(steps, started, None, (), complete=complete)

    def _explored(
        self, steps: int, started: float, wrong: str | None, way: tuple[str, ...], *, complete: bool = True
    ) -> Explored:
        seconds = time.process_time() - started
        return Explored(self._world.scenario.name, len(self._states), steps, seconds, wrong, way, complete)

    def _add(self, state: State, before: int, label: str) -> int:
        number = self._known.setdefault(state, len(self._states))
        if number == len(self._states):
            self._states.append(state)
            self._from.append((before, label))
        return number

    def _way(self, number: int) -> tuple[str, ...]:
        labels: list[str] = []
        while number > 0:
            number, label = self._from[number]
            labels.append(label)
        return tuple(reversed(labels))

    def _first_that_never_rests(self) -> int | None:
        """Return a state from which no way of what is certain leads to rest; None when there is none."""
        before: list[list[int]] = [[] for _ in self._states]
        for origin, following in zip(*self._certain, strict=True):
            before[following].append(origin)
        rests = bytearray(len(self._states))
        waiting = list(self._quiet)
        while waiting:
            number = waiting.pop()
            if not rests[number]:
                rests[number] = 1
                waiting += before[number]
        stuck = rests.find(0)
        return None if stuck < 0 else stuck
