"""May these pods use this flavor at all? Taints and labels of flavors against pod sets, cached per shape.

Called by the flavor search through `store.Store`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.scheduling.assignment import NO_FIT, Attempt
from taskgov.scheduling.matching import fits_affinity, untolerated_taint
from taskgov.scheduling.reasons import AffinityMismatch, FlavorNotFound, Reason, UntoleratedTaint

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from taskgov.scheduling.assignment import Assignment
    from taskgov.scheduling.objects import PodSet, ResourceFlavor


_MOST_SHAPES: Final = 65_536
"""So many pod sets are cached at once."""
_MOST_FITS: Final = 1024
"""So many assignments are."""


class FlavorBook:
    """All resource flavors, and what was found out about pod sets and them."""

    def __init__(self) -> None:
        self._flavors: dict[str, ResourceFlavor] = {}
        self._names: set[str] = set()
        self._found: dict[int, tuple[PodSet, dict[tuple[str, ...], list[Attempt | None]]]] = {}
        """By the identity of a pod set, since equal ones are one object (`demand_of`); held, so that it stays one."""
        self._fits: dict[Hashable, Assignment] = {}

    @property
    def flavors(self) -> tuple[ResourceFlavor, ...]:
        """All flavors."""
        return tuple(self._flavors.values())

    def has_all(self, names: Iterable[str]) -> bool:
        """Return whether there are all of these flavors."""
        return self._names.issuperset(names)

    def copy(self) -> FlavorBook:
        """Return a book of its own with the same flavors."""
        twin = FlavorBook()
        twin._flavors, twin._names = dict(self._flavors), set(self._names)
        twin._found, twin._fits = self._found, self._fits
        return twin

    def put(self, flavor: ResourceFlavor) -> bool:
        """Add or change a flavor; say whether anything changed."""
        if self._flavors.get(flavor.name) == flavor:
            return False
        self._flavors[flavor.name] = flavor
        self._names.add(flavor.name)
        self._found, self._fits = {}, {}
        return True

    def drop(self, name: str) -> None:
        """Delete a flavor. Raises `KeyError` when there is none."""
        del self._flavors[name]
        self._names.remove(name)
        self._found, self._fits = {}, {}

    def rejected(self, flavors: tuple[str, ...], pod_sets: Sequence[PodSet]) -> Sequence[Attempt | None]:
        """Return for each flavor of a group the attempt that ends at once, `None` where all of the pods may use it.

        Answered once for each shape of pods and group: a queue may have many flavors of which a job can use one.
        """
        if len(pod_sets) == 1:
            return self._of_shape(flavors, pod_sets[0])
        of_each = (self._of_shape(flavors, pod_set) for pod_set in pod_sets)
        return [next(filter(None, of_flavor), None) for of_flavor in zip(*of_each, strict=True)]

    def fit(self, decided_by: Hashable) -> Assignment | None:
        """Return the assignment that was kept for what decides about it, if any was since the flavors changed."""
        return self._fits.get(decided_by)

    def keep_fit(self, decided_by: Hashable, assignment: Assignment) -> Assignment:
        """Keep an assignment for others of the same shape, and return it."""
        if len(self._fits) >= _MOST_FITS:
            self._fits.clear()
        self._fits[decided_by] = assignment
        return assignment

    def _of_shape(self, flavors: tuple[str, ...], pod_set: PodSet) -> list[Attempt | None]:
        known = self._found.get(id(pod_set))
        if known is None:
            if len(self._found) >= _MOST_SHAPES:
                self._found = {}
            known = self._found[id(pod_set)] = (pod_set, {})
        found = known[1].get(flavors)
        if found is None:
            reasons = [self._judge(flavor, pod_set) for flavor in flavors]
            found = known[1][flavors] = [
                None if reason is None else Attempt(flavor, NO_FIT, 0, (reason,))
                for flavor, reason in zip(flavors, reasons, strict=True)
            ]
        return found

    def _judge(self, name: str, pod_set: PodSet) -> Reason | None:
        flavor = self._flavors.get(name)
        if flavor is None:
            return FlavorNotFound(name)
        taint = untolerated_taint(flavor, pod_set.tolerations)
        if taint is not None:
            return UntoleratedTaint(taint, name)
        return None if fits_affinity(flavor, pod_set) else AffinityMismatch(name)
