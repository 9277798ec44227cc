"""The path of a plan, chosen and predicted; and how it was played, for what-if, which plays the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from taskgov.allocation.path import changes_of, choose_path
from taskgov.allocation.plan import Change, Prediction
from taskgov.allocation.predict import LoopError, Player, Stage, not_read, prediction_of
from taskgov.allocation.uncertain import not_followed
from taskgov.allocation.written import UNREADABLE
from taskgov.collector import collector_paused
from taskgov.snapshot.unreadable import MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskgov.allocation.waves import Wave, Writes
    from taskgov.hyperpod.instance_types import InstanceTypeTable
    from taskgov.snapshot.model import Snapshot

Waves = tuple[tuple[Change, ...], ...]


@dataclass(frozen=True, slots=True)
class PlayedPath:
    """A path that was played first, with all steps of its player, and what it came to."""

    waves: Waves
    """As `_as_written` returns them."""
    steps: int
    """The model steps of its player."""
    end: Stage | LoopError

    def is_of(self, changes: Iterable[Change]) -> bool:
        """Return whether these changes of a plan are written in the same waves, in the same order."""
        return self.waves == _as_written(writes for _, writes in groupby(changes, attrgetter("wave")))


@collector_paused()
def predicted_path(
    snapshot: Snapshot, writes: Writes, table: InstanceTypeTable, played: list[PlayedPath] | None = None
) -> tuple[tuple[Wave, ...], Prediction]:
    """Return the waves of a plan and what they do to the snapshot's workloads.

    `played` is given the path if it was played first. `simulated` is False, with the reason, when the scheduler's
    objects cannot be understood; guardrails that need the prediction then say no.
    """
    shortest = writes.in_waves()
    if not shortest or not (
        snapshot.kueue.workloads or any(item.kind not in MACHINES for item in snapshot.unreadable_objects)
    ):
        return shortest, Prediction(simulated=True)
    played = [] if played is None else played
    try:
        player = Player(snapshot, (write.change for wave in shortest for write in wave), table)
        if player.is_idle:
            gaps = not_followed(player.calm.model.not_modelled)
            return shortest, Prediction(simulated=True, not_modelled=gaps, not_predicted=not_read(player))
        path = choose_path(writes, player)
        if path.is_first:
            played.append(PlayedPath(_as_written(map(changes_of, path.waves)), player.steps, path.end))
    except LoopError as loop:
        played.append(PlayedPath(_as_written(map(changes_of, shortest)), 0, LoopError(str(loop))))  # without frames
        return shortest, Prediction(simulated=False, not_modelled=(str(loop),))
    except UNREADABLE as error:
        return shortest, Prediction(simulated=False, not_modelled=(f"the scheduler's objects cannot be read: {error}",))
    return path.waves, prediction_of(player, path.end, map(changes_of, path.waves))


def _as_written(waves: Iterable[Iterable[Change]]) -> Waves:
    """Return the changes of each wave without their place in the plan and what is said of them."""
    return tuple(
        tuple(replace(change, index=0, wave=0, because="", guardrails=(), preempts=()) for change in wave)
        for wave in waves
    )
