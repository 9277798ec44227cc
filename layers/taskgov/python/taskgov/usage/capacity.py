"""What the healthy nodes of each instance type offer, and which of its resources leads.

One resource **leads** for each instance type: its accelerators (of every kind that somebody has), or cpu where there
are none. Capacity, entitlement and metrics are about the leading resource.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from taskgov.quantities import CPU, ResourceName, is_accelerator
from taskgov.snapshot.health import node_fault
from taskgov.snapshot.model import KueueObjects, Node, Snapshot
from taskgov.snapshot.threads import Threads
from taskgov.usage.quota_usage import Place, Usage, places_in


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the nodes of one instance type offer of its leading resource, and what quotas guarantee of it."""

    instance_type: str
    resource: ResourceName
    healthy: int
    unhealthy: int
    healthy_nodes: int
    unhealthy_nodes: int
    guaranteed: int

    @property
    def overcommit(self) -> int:
        """What quotas guarantee above the healthy capacity."""
        return max(0, self.guaranteed - self.healthy)


class Offers:
    """What the nodes of each instance type offer, one by one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.table = snapshot.instance_types
        self.threads = Threads(snapshot.cluster.instance_groups)
        self.nodes: dict[str, list[Node]] = {}
        for node in snapshot.nodes:
            self.nodes.setdefault(node.instance_type, []).append(node)

    def of_node(self, node: Node, resource: ResourceName) -> int:
        """Return what the node offers: really, for the accelerators of a healthy node, else by its type.

        A faulty node may have stopped offering its accelerators, and what a node offers of its cpu is always a little
        less than the type's number, which is what quotas are written in.
        """
        offered = node.allocatable.get(resource, 0)
        if resource in node.allocatable and is_accelerator(resource) and node_fault(node) is None:
            return offered
        numbers = self.table.resources_of(node.instance_type)
        return self.threads.numbers_of(node, numbers).real_amounts().get(resource, offered) if numbers else offered

    def accelerators(self, instance_type: str) -> set[ResourceName]:
        """Return the accelerators that the type has."""
        numbers = self.table.resources_of(instance_type)
        known = {
            *(numbers.amounts() if numbers else ()),
            *(r for n in self.nodes[instance_type] for r in n.allocatable),
        }
        some = self.nodes[instance_type]
        return {name for name in known if is_accelerator(name) and any(self.of_node(node, name) for node in some)}


def leading_resources(usage: Usage, offers: Offers) -> set[Place]:
    """Return the leading resources of every instance type that somebody has quota of or that has nodes."""
    return _leading(((line.instance_type, line.resource, line.guaranteed or line.used) for line in usage.lines), offers)


def leading_in(kueue: KueueObjects, offers: Offers) -> set[Place]:
    """Return the same, without the usage of other resources."""
    return _leading(((*place, has_amount) for place, has_amount in places_in(kueue).items()), offers)


def _leading(amounts: Iterable[tuple[str, ResourceName, int]], offers: Offers) -> set[Place]:
    had: dict[str, set[ResourceName]] = {}
    for instance_type, resource, amount in amounts:
        resources = had.setdefault(instance_type, set())
        if amount and is_accelerator(resource):
            resources.add(resource)
    for instance_type in offers.nodes:
        if not had.get(instance_type):
            had[instance_type] = offers.accelerators(instance_type)
    return {(name, resource) for name, resources in had.items() for resource in resources or {CPU}}


def capacities_of(usage: Usage, offers: Offers, leading: set[Place]) -> Iterator[Capacity]:
    """Yield the capacity of each instance type, in its leading resources, by name."""
    guaranteed = dict.fromkeys(leading, 0)
    for line in usage.lines:
        place = line.instance_type, line.resource
        if place in guaranteed:
            guaranteed[place] += line.guaranteed
    for place in sorted(leading):
        yield _capacity(place, guaranteed[place], offers)


def _capacity(place: Place, guaranteed: int, offers: Offers) -> Capacity:
    instance_type, resource = place
    healthy: list[Node] = []
    unhealthy: list[Node] = []
    for node in offers.nodes.get(instance_type, []):
        (healthy if node_fault(node) is None else unhealthy).append(node)
    return Capacity(
        instance_type=instance_type,
        resource=resource,
        healthy=sum(offers.of_node(node, resource) for node in healthy),
        unhealthy=sum(offers.of_node(node, resource) for node in unhealthy),
        healthy_nodes=len(healthy),
        unhealthy_nodes=len(unhealthy),
        guaranteed=guaranteed,
    )
