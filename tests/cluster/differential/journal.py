"""When has Kueue nothing more to do for a sequence? Read from its own log, instead of sleeping and hoping.

At its level of 2 Kueue logs every event it takes, every move of inadmissible workloads back in line, and who was looked
at in which scheduling cycle. A sequence rests when nothing has stirred in it since a moment, and the scheduler has
looked around twice more after that moment without finding anything new in it: it never waits (`metronome`).
Twice: Kueue logs an event before it puts the workload in line, and on a loaded machine a cycle may begin in between.
A workload that waits for its victims is looked at in cycle after cycle: that the same ones are looked at again, with
nothing else in between, is no news. One that comes back in line for another reason goes on with its next flavor, and
comes to an end; if it does not after some looks, it goes round, and is no news either.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.cluster.differential.api import LANE
from tests.cluster.differential.rest import RestlessError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.kube import Object

_CYCLE: Final = re.compile(r'"msg":"(Scheduling cycle|Obtained heads)')
_MESSAGE: Final = re.compile(r'"msg":"([^"]*)"')
_BATCH_SECONDS: Final = 1.1
"""A queue without cohort logs no reconsideration if it has no inadmissible workloads: Kueue does it after a second."""
_SILENT_SECONDS: Final = 0.5
"""So long after a change that the log does not show as news Kueue has seen it."""
_POLL_SECONDS: Final = 0.01
_PATIENCE_SECONDS: Final = 60
_STARTS: Final = "Scheduling cycle starts"
_LOOKED: Final = "Attempting to schedule workload"
_COMPLETE: Final = "Scheduling cycle complete"
_REQUEUED: Final = "Workload re-queued"
_FINISHED: Final = "finished"
_WAITS_FOR_VICTIMS: Final = "PendingPreemption"
_MOST_DOORS: Final = 64
_MOST_LOOKS: Final = 8
"""More than a search over the flavors of a sequence takes."""
_DOOR: Final = "Queue update event"
"""Of a LocalQueue. Most are of its status, which counts those in line, and does not concern the scheduler."""
_MOVED: Final = "Attempting to move workloads"
_UPDATED: Final = "Workload update event"
"""Stirs when the workload goes from one status to another; that words change does not bring it back in line."""
_STIRS: Final = {
    _MOVED,
    _UPDATED,
    "Workload create event",
    "Workload delete event",
    "ClusterQueue create event",
    "ClusterQueue update event",
    "ResourceFlavor update event",
    "Workload assumed in the cache",
    "Workload couldn't be admitted.",
    "Workload couldn't be admitted. Moving the head of this ClusterQueue to the consecutive Workload.",
    "Workload successfully admitted and assigned flavors",
}
_NEWS: Final = {*_STIRS, _DOOR, _STARTS, _LOOKED, _COMPLETE, _REQUEUED}


@dataclass(slots=True)
class Lane:
    """What the log last said of one sequence; moments are seconds since 1970.

    `hurried` is when inadmissible workloads last came back in line before all in line had been looked at.
    """

    stirred: float = 0.0
    moved: float = 0.0
    finished: float = 0.0
    hurried: float = 0.0
    doors: deque[float] = field(default_factory=partial(deque, maxlen=_MOST_DOORS))
    rows: set[frozenset[str]] = field(default_factory=set)
    current: set[str] = field(default_factory=set)
    looks: Counter[str] = field(default_factory=Counter)


class Journal:
    """Follows the log of Kueue's manager."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._lines = log.open()
        self._lines.seek(0, os.SEEK_END)
        self._lanes: dict[str, Lane] = {}
        self._lock = threading.Lock()
        self._started = 0.0
        self._looked_around = 0.0
        self._looked_around_before = 0.0
        self._stopped = False
        threading.Thread(target=self._follow, daemon=True, name="journal").start()

    def stop(self) -> None:
        """Follow no longer."""
        self._stopped = True

    def wait_for_rest(
        self, lane: str, since: float, *, batch: bool, cohort: bool, silent: bool = False, door: bool = False
    ) -> None:
        """Wait until what was done at `since` has come to its end.

        With `batch`, Kueue reconsiders inadmissible workloads because of it, once a second has passed. What is
        `silent` is not seen in the log as news by itself. With `door` a LocalQueue was changed.
        """
        deadline = time.time() + _PATIENCE_SECONDS
        while not self.rests(lane, since, batch=batch, cohort=cohort, silent=silent, door=door):
            if time.time() > deadline:
                raise RestlessError(f"after {_PATIENCE_SECONDS} seconds {lane} still does not rest")
            time.sleep(_POLL_SECONDS)

    def wait_for_finish(self, lane: str, since: float) -> float:
        """Wait until Kueue has seen that a workload is finished; return when it saw the last one."""
        deadline = time.time() + _PATIENCE_SECONDS
        while (seen := self._finished(lane)) <= since:
            if time.time() > deadline:
                raise RestlessError(f"after {_PATIENCE_SECONDS} seconds Kueue has not seen who is finished in {lane}")
            time.sleep(_POLL_SECONDS)
        return seen

    def _finished(self, lane: str) -> float:
        with self._lock:
            known = self._lanes.get(lane)
            return known.finished if known else 0.0

    def was_hurried(self, lane: str, since: float) -> bool:
        """Say whether the second between a change and reconsideration was over before cycles had ended."""
        with self._lock:
            known = self._lanes[lane]
            return known.hurried > since

    def place(self) -> int:
        """Return how long the log is now, in bytes."""
        return self._log.stat().st_size

    def excerpt(self, lane: str, place: int) -> list[str]:
        """Return what the log says of a sequence, and of cycles, from a place on."""
        with self._log.open("rb") as log:
            log.seek(place)
            lines = log.read().decode(errors="replace").splitlines()
        return [line for line in lines if lane in line or _CYCLE.search(line)]

    def rests(
        self, lane: str, since: float, *, batch: bool, cohort: bool, silent: bool = False, door: bool = False
    ) -> bool:
        """Say whether what was done at `since` has come to its end."""
        with self._lock:
            known = self._lanes.get(lane)
            looked = self._looked_around_before
            if known is None:
                return False
            if door:
                done = next((moment for moment in known.doors if moment > since), None)
                if done is None or looked < done + _SILENT_SECONDS:
                    return False
            elif known.stirred <= since and not (silent and looked > since + _SILENT_SECONDS):
                return False
            if batch and (known.moved <= since if cohort else looked < since + _BATCH_SECONDS):
                return False
            return looked > known.stirred

    def _follow(self) -> None:
        with self._lines as lines:
            rest = ""
            while not self._stopped:
                *whole, rest = (rest + lines.read()).split("\n")
                with self._lock:
                    for line in whole:
                        self.take(line)
                time.sleep(_POLL_SECONDS)

    def take(self, line: str) -> None:
        """Take a line of the log."""
        found = _MESSAGE.search(line)
        if found is None or found[1] not in _NEWS:
            return
        said = json.loads(line)
        moment = _moment(said)
        match found[1]:
            case text if text == _STARTS:
                self._started = moment
            case text if text == _COMPLETE:
                self._looked_around_before, self._looked_around = self._looked_around, self._started
                self._end_cycle(moment)
            case text:
                self._take_of_lane(line, text, said, moment)

    def _take_of_lane(self, line: str, text: str, said: Object, moment: float) -> None:
        name = LANE.search(line)
        if name is None:
            return
        if text == _UPDATED and "prevStatus" not in said:
            return
        known = self._lanes.setdefault(name[0], Lane())
        if text == _DOOR:
            known.doors.append(moment)
            return
        if text == _LOOKED:
            known.current.add(said["workload"]["name"])
            return
        if text == _REQUEUED:
            self._take_requeued(known, said, moment)
            return
        if text == _UPDATED and said.get("status") == _FINISHED:
            known.finished = moment
        if text == _MOVED:
            known.moved = moment
            if self._looked_around <= known.stirred:
                known.hurried = moment
        known.stirred = moment
        known.rows.clear()
        known.looks.clear()

    @staticmethod
    def _take_requeued(known: Lane, said: Object, moment: float) -> None:
        name = said["workload"]["name"]
        known.looks[name] += 1
        if said.get("requeueReason") != _WAITS_FOR_VICTIMS and known.looks[name] <= _MOST_LOOKS:
            known.stirred = moment

    def _end_cycle(self, now: float) -> None:
        for known in self._lanes.values():
            if known.current:
                row = frozenset(known.current)
                if row not in known.rows:
                    known.stirred = now
                    known.rows.add(row)
                known.current.clear()


def _moment(said: Object) -> float:
    """Read the moment; Python reads microseconds, Go writes nanoseconds and leaves zeros out."""
    whole, _, fraction = said["ts"].rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{fraction or 0}")
