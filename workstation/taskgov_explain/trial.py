"""Would a waiting workload run if this were otherwise? The scheduling model answers.

Others finish on a copy. Another queue is only supposed, as a search for victims takes them out, and put back after it:
a copy has all workloads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from taskgov.allocation.written import NEVER_IN_FORCE
from taskgov.hyperpod.borrowing import flavor_quotas
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuota
from taskgov.hyperpod.names import cluster_queue_of
from taskgov.kueue.render import render
from taskgov.quantities import format_quantity, is_accelerator
from taskgov.scheduling import KueueModel
from taskgov.scheduling.assignment import FIT
from taskgov.scheduling.objects import ClusterQueue, FlavorResource, split
from taskgov.scheduling.reading import effective_groups, read_cluster_queue
from taskgov.scheduling.reasons import InsufficientQuota, InsufficientUnusedQuota
from taskgov_explain.raised import raised

if TYPE_CHECKING:
    from taskgov.snapshot.model import KubernetesObject
    from taskgov_explain.case import Case

Entry = Mapping[str, Any]
"""One resource of one flavor in a ClusterQueue: name, nominalQuota, borrowingLimit."""


@dataclass(frozen=True)
class Trial:
    """A waiting workload, its queue, and the scheduler that answers.

    The worlds with another queue are the case's own: ask one before the next is made, inside `with_queue_put_back`.
    """

    case: "Case"
    queue: ClusterQueue
    queue_object: "KubernetesObject"

    @cached_property
    def table(self) -> InstanceTypeTable:
        """The instance types as the policy document names them."""
        return self.case.snapshot.instance_types

    @cached_property
    def quota(self) -> ComputeQuota | None:
        """The compute quota that the queue is rendered from; None for a queue that has none, or an unknown type."""
        for quota in self.case.snapshot.quotas:
            team = quota.compute_quota_target.team_name
            if cluster_queue_of(team) == self.queue.name and quota.status not in NEVER_IN_FORCE:
                rows = quota.compute_quota_config.compute_quota_resources
                return quota if all(row.instance_type in self.table for row in rows) else None
        return None

    @contextmanager
    def with_queue_put_back(self) -> Iterator[None]:
        """Give the queue at the end what it has now."""
        own = self.case.world.queue_spec(self.queue.name)
        try:
            yield
        finally:
            self.case.world.suppose(own)

    def runs(self, world: KueueModel) -> tuple[bool, tuple[str, ...]]:
        """Return whether the workload, were it the next, would run in a world, and whom it would preempt for that."""
        if world.assign(self.case.item, self.queue.name).mode == FIT:
            return True, ()
        victims = tuple(victim.workload for victim in world.victims(self.case.item, self.queue.name))
        return bool(victims), victims

    def runs_without(self, gone: Iterable[str]) -> bool:
        """Return whether the workload would run once these have finished."""
        world = self.case.world.copy()
        for key in gone:
            world.finish(key, self.case.snapshot.taken_at)
        return self.runs(world)[0]

    def missing(self, world: KueueModel) -> dict[FlavorResource, int]:
        """Return what it lacks in a world, on the instance type that lacks the fewest accelerators."""
        by_flavor = self.missing_by_flavor(world)
        return by_flavor.get(fewest_accelerators(by_flavor) or "", {})

    def missing_by_flavor(self, world: KueueModel) -> dict[str, dict[FlavorResource, int]]:
        """Return what it lacks in a world, by instance type."""
        by_flavor: dict[str, dict[FlavorResource, int]] = {}
        assignment = world.assign(self.case.item, self.queue.name)
        for attempt in (attempt for pods in assignment.pod_sets for group in pods.attempts for attempt in group):
            for reason in attempt.reasons:
                if isinstance(reason, InsufficientQuota | InsufficientUnusedQuota):
                    lacks, key = by_flavor.setdefault(attempt.flavor, {}), f"{attempt.flavor}/{reason.resource}"
                    lacks[key] = max(lacks.get(key, 0), _missing(reason))
        return by_flavor

    def with_quota(self, added: Mapping[FlavorResource, int]) -> KueueModel:
        """Return the world in which the team has so much more quota, in base units.

        The queue is rendered from the raised quota as HyperPod would: what is not promised follows by ratio, a borrow
        limit in percent rises with the quota. A queue without a compute quota gets the amounts and keeps its limits.
        """
        if self.quota is not None:
            config = raised(self.quota.compute_quota_config, added, self.table)
            [queue] = render(
                (self.quota.model_copy(update={"compute_quota_config": config}),), None, self.table
            ).cluster_queues
            return self._supposing(queue)

        def more(key: FlavorResource, resource: str, entry: Entry) -> Entry:
            nominal = self.queue.quotas[key].nominal + added.get(key, 0)
            return {**entry, "nominalQuota": format_quantity(resource, nominal)}

        return self._with(more)

    def risen(self, added: Mapping[FlavorResource, int], key: FlavorResource) -> int:
        """Return how much more of one resource the raised quota has, with what follows by ratio; in base units."""
        return self._nominal(added, key) - self._nominal({}, key)

    def _nominal(self, added: Mapping[FlavorResource, int], key: FlavorResource) -> int:
        if self.quota is None:
            return added.get(key, 0)
        instance_type, resource = split(key)
        config = raised(self.quota.compute_quota_config, added, self.table)
        flavors = flavor_quotas(config, self.table)
        return sum(flavor.nominal.get(resource, 0) for flavor in flavors if flavor.instance_type == instance_type)

    def with_borrow_limit(self, added: Mapping[FlavorResource, int]) -> KueueModel:
        """Return the world in which the team may borrow so much more, where its borrowing is limited."""

        def higher(key: FlavorResource, resource: str, entry: Entry) -> Entry:
            limit = self.queue.quotas[key].borrowing_limit
            if limit is None or key not in added:
                return entry
            return {**entry, "borrowingLimit": format_quantity(resource, limit + added[key])}

        return self._with(higher)

    def _with(self, change: Callable[[FlavorResource, str, Entry], Entry]) -> KueueModel:
        def changed(flavor: Mapping[str, Any]) -> dict[str, Any]:
            name = flavor["name"]
            entries = [change(f"{name}/{entry['name']}", entry["name"], entry) for entry in flavor["resources"]]
            return {**flavor, "resources": entries}

        spec = self.queue_object["spec"]
        groups = [
            {**group, "flavors": [changed(flavor) for flavor in group["flavors"]]}
            for group in effective_groups(self.queue_object)
        ]
        # Without its status: effective quotas would take the place of the spec.
        return self._supposing({**self.queue_object, "spec": {**spec, "resourceGroups": groups}, "status": {}})

    def _supposing(self, queue: "KubernetesObject") -> KueueModel:
        self.case.world.suppose(read_cluster_queue(queue))
        return self.case.world


def _missing(reason: InsufficientQuota | InsufficientUnusedQuota) -> int:
    if isinstance(reason, InsufficientUnusedQuota):
        return reason.missing
    return reason.before + reason.request - reason.capacity


def fewest_accelerators(by_flavor: Mapping[str, Mapping[FlavorResource, int]]) -> str | None:
    """Return the instance type on which the fewest accelerators are meant; None where there is none."""
    return min(by_flavor, key=lambda name: (accelerators_in(by_flavor[name]), sorted(by_flavor[name])), default=None)


def accelerators_in(amounts: Mapping[FlavorResource, int]) -> int:
    """Return how many accelerators these are; a partition of one counts as one."""
    return sum(amount for key, amount in amounts.items() if is_accelerator(split(key)[1]))
