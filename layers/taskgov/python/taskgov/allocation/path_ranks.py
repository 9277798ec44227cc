"""Rank writes for a path: borrowers with running work first, queues with waiting work last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.hyperpod.names import team_of_cluster_queue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskgov.allocation.predict import Player
    from taskgov.allocation.waves import Write

BORROWS: Final = 0
OTHER: Final = 1
WAITS: Final = 2


class Ranks:
    """The rank of each team, as the cluster is before the plan: `BORROWS`, `WAITS`, or `OTHER`."""

    def __init__(self, player: Player) -> None:
        """Rank each queue in the cluster without the plan."""
        model = player.calm.model
        self._ranks: dict[str, int] = {}
        for name in model.cluster_queues():
            team = team_of_cluster_queue(name) or name
            view = model.quota(name)
            if any(used > view.nominal.get(place, 0) for place, used in view.usage.items()):
                self._ranks[team] = BORROWS
            elif any(model.pending(name)):
                self._ranks[team] = WAITS

    def of(self, write: Write) -> int:
        """Return the rank of a write: that of its team."""
        return self._ranks.get(write.change.team, OTHER)

    def in_order(self, writes: Iterable[Write]) -> list[Write]:
        """Return writes by rank, then by name. Low writes and pure decreases come first."""
        return sorted(writes, key=lambda write: (not write.change.is_low and write.takes, self.of(write), write.name))
