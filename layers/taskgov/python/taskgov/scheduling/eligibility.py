"""May these pods use this flavor at all? Taints and labels of flavors against pod sets, remembered per shape.

Called by the flavor search through `store.Store`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling.matching import fits_affinity, untolerated_taint
from taskgov.scheduling.reasons import AffinityMismatch, FlavorNotFound, Reason, UntoleratedTaint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.scheduling.objects import PodSet, ResourceFlavor


class FlavorBook:
    """All resource flavors, and what was found out about pod sets and them."""

    def __init__(self) -> None:
        self._flavors: dict[str, ResourceFlavor] = {}
        self._found: dict[tuple[str, PodSet], Reason | None] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._flavors

    def copy(self) -> FlavorBook:
        """Return a book of its own with the same flavors."""
        twin = FlavorBook()
        twin._flavors = dict(self._flavors)
        return twin

    def put(self, flavor: ResourceFlavor) -> bool:
        """Add or change a flavor; say whether anything changed."""
        if self._flavors.get(flavor.name) == flavor:
            return False
        self._flavors[flavor.name] = flavor
        self._found.clear()
        return True

    def drop(self, name: str) -> None:
        """Delete a flavor. Raises `KeyError` when there is none."""
        del self._flavors[name]
        self._found.clear()

    def obstacle(self, flavor: str, pod_sets: Sequence[PodSet]) -> Reason | None:
        """Say why pods may not use a flavor, `None` when all of them may."""
        for pod_set in pod_sets:
            key = (flavor, pod_set)
            if key not in self._found:
                self._found[key] = self._judge(flavor, pod_set)
            if (reason := self._found[key]) is not None:
                return reason
        return None

    def _judge(self, name: str, pod_set: PodSet) -> Reason | None:
        flavor = self._flavors.get(name)
        if flavor is None:
            return FlavorNotFound(name)
        taint = untolerated_taint(flavor, pod_set.tolerations)
        if taint is not None:
            return UntoleratedTaint(taint, name)
        return None if fits_affinity(flavor, pod_set) else AffinityMismatch(name)
