"""Would a waiting workload run if this were otherwise? The scheduling model is asked, on a copy."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskgov.quantities import format_quantity, is_accelerator
from taskgov.scheduling import World
from taskgov.scheduling.assignment import FIT
from taskgov.scheduling.objects import ClusterQueue, FlavorResource, split
from taskgov.scheduling.reasons import InsufficientQuota, InsufficientUnusedQuota

if TYPE_CHECKING:
    from taskgov.explain.case import Case
    from taskgov.snapshot.model import KubernetesObject

Entry = Mapping[str, Any]
"""One resource of one flavor in a ClusterQueue: name, nominalQuota, borrowingLimit."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A waiting workload, its queue, and the scheduler that is asked."""

    case: "Case"
    queue: ClusterQueue
    queue_object: "KubernetesObject"

    def runs(self, world: World) -> tuple[bool, tuple[str, ...]]:
        """Say whether the workload, were it the next, would run in a world, and whom it would preempt for that."""
        if world.assign(self.case.item, self.queue.name).mode == FIT:
            return True, ()
        victims = tuple(each.workload for each in world.victims(self.case.item, self.queue.name))
        return bool(victims), victims

    def runs_without(self, gone: Iterable[str]) -> bool:
        """Say whether the workload would run once these have finished."""
        world = self.case.world.copy()
        for key in gone:
            world.finish(key, self.case.snapshot.taken_at)
        return self.runs(world)[0]

    def missing(self, world: World) -> dict[FlavorResource, int]:
        """Return what it lacks in a world, on the instance type that lacks the fewest accelerators."""
        by_flavor: dict[str, dict[FlavorResource, int]] = {}
        assignment = world.assign(self.case.item, self.queue.name)
        for attempt in (attempt for pods in assignment.pod_sets for group in pods.attempts for attempt in group):
            for reason in attempt.reasons:
                if isinstance(reason, InsufficientQuota | InsufficientUnusedQuota):
                    lacks, key = by_flavor.setdefault(attempt.flavor, {}), f"{attempt.flavor}/{reason.resource}"
                    lacks[key] = max(lacks.get(key, 0), _missing(reason))
        return min(by_flavor.values(), key=lambda lacks: (_accelerators(lacks), sorted(lacks)), default={})

    def with_quota(self, added: Mapping[FlavorResource, int]) -> World:
        """Return the world in which the team's queue has so much more quota."""

        def more(key: FlavorResource, resource: str, entry: Entry) -> Entry:
            nominal = self.queue.quotas[key].nominal + added.get(key, 0)
            return {**entry, "nominalQuota": format_quantity(resource, nominal)}

        return self._with(more)

    def with_borrow_limit(self, added: Mapping[FlavorResource, int]) -> World:
        """Return the world in which the team may borrow so much more, where its borrowing is limited."""

        def higher(key: FlavorResource, resource: str, entry: Entry) -> Entry:
            limit = self.queue.quotas[key].borrowing_limit
            if limit is None or key not in added:
                return entry
            return {**entry, "borrowingLimit": format_quantity(resource, limit + added[key])}

        return self._with(higher)

    def _with(self, change: Callable[[FlavorResource, str, Entry], Entry]) -> World:
        def changed(flavor: Mapping[str, Any]) -> dict[str, Any]:
            name = flavor["name"]
            entries = [change(f"{name}/{one['name']}", one["name"], one) for one in flavor["resources"]]
            return {**flavor, "resources": entries}

        spec = self.queue_object["spec"]
        groups = [{**group, "flavors": [changed(one) for one in group["flavors"]]} for group in spec["resourceGroups"]]
        world = self.case.world.copy()
        world.apply({**self.queue_object, "kind": "ClusterQueue", "spec": {**spec, "resourceGroups": groups}})
        return world


def _missing(reason: InsufficientQuota | InsufficientUnusedQuota) -> int:
    if isinstance(reason, InsufficientUnusedQuota):
        return reason.missing
    return reason.before + reason.request - reason.capacity


def _accelerators(lacks: Mapping[FlavorResource, int]) -> int:
    return sum(amount for key, amount in lacks.items() if is_accelerator(split(key)[1]))
