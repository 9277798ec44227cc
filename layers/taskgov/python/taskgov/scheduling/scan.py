"""How far the search for flavors of a workload came: kept from one cycle to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from taskgov.scheduling.demand import Demand


class Scan(NamedTuple):
    """How far the last flavor search of a workload came, and under which circumstances that holds."""

    tried: tuple[dict[str, int], ...]
    demand: Demand
    cycle: int
    generation: int

    @property
    def unfinished(self) -> bool:
        """Whether some search stopped before the last flavor."""
        return any(index != -1 for pod_set in self.tried for index in pod_set.values())
