"""Which predictions rest on something that this model does not follow? Of each workload the features, if there are any.

A prediction about a workload is certain, or carries the features why it is not. The rule: a feature makes those
uncertain who compete, directly or through others, with somebody who uses it.

| who uses a feature | whose predictions are uncertain |
| --- | --- |
| a workload, its LocalQueue, its ClusterQueue, or a flavor that it holds or may get | everybody in its competition |
| the manager: a gate or a setting | everybody |
| the configuration is assumed, because it cannot be read | nobody: it is named, and what it would say is not known |

Workloads of one queue compete, because they stand in one line and a cycle considers one of them; those of two queues of
a cohort tree do when they may use one flavor, directly or through others. Under fair sharing the whole tree competes,
because a queue's share counts all its flavors. What is done for good competes for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from taskgov.scheduling import unmodelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from taskgov.scheduling.objects import PodSetAdmission
    from taskgov.scheduling.state import Record
    from taskgov.scheduling.store import Store

Found = Mapping[tuple[str, str, str], frozenset[str]]
"""Kind, namespace and name of an object -> the features that it uses."""
Doubts = Mapping[str, tuple[str, ...]]
"""Workload -> the features that make predictions about it uncertain, by name; those that are certain are missing."""

_ALL: Final = "*"
_Place = tuple[str, str]


class _Competitions:
    """Places that were joined, and the features that are in use among them (union-find)."""

    def __init__(self) -> None:
        self._above: dict[_Place, _Place] = {}
        self._features: dict[_Place, frozenset[str]] = {}

    def top(self, place: _Place) -> _Place:
        """Return the place that stands for a competition."""
        above = self._above.setdefault(place, place)
        while above != (higher := self._above[above]):
            self._above[place] = place = higher
            above = self._above[place]
        return above

    def join(self, places: Iterable[_Place], features: frozenset[str]) -> None:
        """Make one competition of these places, in which these features are in use."""
        tops = list({self.top(place) for place in places})
        for other in tops[1:]:
            self._above[other] = tops[0]
        self._features[tops[0]] = features.union(*(self._features.pop(top, frozenset()) for top in tops))

    def features(self, place: _Place) -> frozenset[str]:
        """Return what is in use in the competition of a place."""
        return self._features.get(self.top(place), frozenset())


def doubts_of(store: Store, found: Found) -> Doubts:
    """Return who is uncertain, and why; `found` is what the objects use."""
    of_manager = frozenset(gap.feature for gap in unmodelled.of_config(store.config))
    everywhere = of_manager - {unmodelled.ASSUMED_CONFIGURATION}
    if not found and not everywhere:
        return {}
    store.settle_tree()
    competitions, places = _Competitions(), dict[str, tuple[_Place, ...]]()
    for record in store.records.values():
        if not record.finished and record.queue is not None:
            flavors = flavors_of(store, record)
            places[record.key] = tuple(_places(store, record, flavors))
            competitions.join(places[record.key], _own(record, flavors, found))
    doubts: dict[str, tuple[str, ...]] = {}
    for record in store.records.values():
        if record.finished:
            continue
        own = _of("Workload", record.key, found) if record.key not in places else frozenset[str]()
        shared = (competitions.features(place) for place in places.get(record.key, ())[:1])
        if features := everywhere.union(own, *shared):
            doubts[record.key] = tuple(sorted(features))
    return doubts


def flavors_of(store: Store, record: Record) -> frozenset[str]:
    """Return the flavors that a workload holds, or may get in its queue, whether or not there is quota."""
    if record.queue is None:
        return frozenset()
    held = {pod_set.flavors[resource] for pod_set in _held(record) for resource in pod_set.flavors}
    may_get = {
        flavor
        for demand in record.demand.pod_sets
        for group in record.queue.spec.groups
        if not demand.with_pods.keys().isdisjoint(group.resources)
        for flavor, rejected in zip(
            group.flavors, store.flavors.rejected(group.flavors, (demand.pod_set,)), strict=True
        )
        if rejected is None
    }
    return frozenset(held | may_get)


def _held(record: Record) -> tuple[PodSetAdmission, ...]:
    return record.admission.pod_sets if record.admission is not None else ()


def _places(store: Store, record: Record, flavors: Iterable[str]) -> Iterator[_Place]:
    queue = record.queue
    if queue is None:
        return
    tree = queue.node.root.tree
    yield f"ClusterQueue/{queue.spec.name}", _ALL
    if store.config.fair_sharing:
        yield tree, _ALL
    yield from ((tree, flavor) for flavor in flavors)


def _own(record: Record, flavors: Iterable[str], found: Found) -> frozenset[str]:
    """Return what a workload uses: by itself, by its queues, and by its flavors."""
    queue = "" if record.queue is None else record.queue.spec.name
    return _of("Workload", record.key, found).union(
        _of("LocalQueue", f"{record.workload.namespace}/{record.workload.queue}", found),
        _of("ClusterQueue", queue, found),
        *(_of("ResourceFlavor", flavor, found) for flavor in flavors),
    )


def _of(kind: str, key: str, found: Found) -> frozenset[str]:
    namespace, _, name = key.rpartition("/")
    return found.get((kind, namespace, name), frozenset())
