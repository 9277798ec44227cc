"""Count the capacity of the cluster, instance type by instance type.

A node counts while it is healthy (`taskgov.snapshot.health`). After it becomes unhealthy, it still counts until its
hold time ends. After it becomes healthy, it counts once it has been so for `growAfterMinutes`. A node that is gone does
not count. A node of a training plan or Capacity Block does not count from the time AWS reclaims it, whatever its
health. Called by the planner and by the audit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from operator import attrgetter

from taskgov.allocation.parts import Vector, add, offered, whole_instance
from taskgov.allocation.plan import CapacityLine
from taskgov.hyperpod.instance_types import InstanceResources, InstanceTypeTable
from taskgov.policy.document import CapacityBasis, CapacityRules
from taskgov.quantities import CPU, GIBIBYTE, GPU, MEMORY, NEURON_DEVICE
from taskgov.snapshot.health import node_fault
from taskgov.snapshot.leaving import has_left
from taskgov.snapshot.model import InstanceGroup, Node
from taskgov.snapshot.reservations import name_of
from taskgov.snapshot.threads import Threads


@dataclass(frozen=True, slots=True)
class TypeCapacity:
    """The capacity of one instance type."""

    line: CapacityLine
    resources: InstanceResources | None
    """The nominal numbers of the type, from the table, otherwise from its nodes."""
    per_instance: Vector
    """The amounts of one instance, at the basis of the policy."""
    usable: Vector
    """The sum of all usable instances."""
    total: Vector
    """The limit for the sum of promises: the usable amounts, with declared over-commitment."""
    recheck_at: datetime | None
    """When time alone changes the count."""
    basis: CapacityBasis = CapacityBasis.INSTANCES

    @property
    def has_nodes(self) -> bool:
        """Whether any node of the type is there, counted or not."""
        return self.line.nodes > 0


def count_capacity(
    nodes: Iterable[Node],
    rules: CapacityRules,
    now: datetime,
    table: InstanceTypeTable,
    *,
    instance_types: Iterable[str] = (),
    memory_reserved_percent: int = 0,
    instance_groups: Iterable[InstanceGroup] = (),
) -> dict[str, TypeCapacity]:
    """Return the capacity of every type that has nodes or is in `instance_types`, by name.

    `memory_reserved_percent` is what tiered storage takes of each node's memory; it lessens the basis `allocatable`.
    `instance_groups` say where multithreading is switched off: those nodes have half of their type's vCPUs. What they
    offer to pods shows it by itself.
    """
    by_type: dict[str, list[Node]] = {instance_type: [] for instance_type in instance_types}
    for node in nodes:
        by_type.setdefault(node.instance_type, []).append(node)
    count = _Count(rules, now, table, memory_reserved_percent, Threads(instance_groups))
    return {instance_type: count.of_type(instance_type, by_type[instance_type]) for instance_type in sorted(by_type)}


def is_counted(node: Node, rules: CapacityRules, now: datetime, *, healthy: bool) -> bool:
    """Return whether a node counts now, by replaying its turns: a state counts once it has lasted for its time.

    A node that recovers within its hold time therefore never stopped counting, and one that keeps turning counts as it
    did when it last was steady.
    """
    if not node.turns:
        return _counted_without_memory(node, rules, now, healthy=healthy)
    counted = state = node.found_healthy
    grow, hold = _delays(rules)
    for since, until in pairwise((*node.turns, now)):
        state = not state
        if until - since >= (grow if state else hold):
            counted = state
    return counted


def _counted_without_memory(node: Node, rules: CapacityRules, now: datetime, *, healthy: bool) -> bool:
    """Nodes of a hand-made snapshot: given times are used; a node without times counts by its present state."""
    grow, hold = _delays(rules)
    if healthy:
        return node.healthy_since is None or now - node.healthy_since >= grow
    return node.unhealthy_since is not None and now - node.unhealthy_since < hold


def _delays(rules: CapacityRules) -> tuple[timedelta, timedelta]:
    return timedelta(minutes=rules.grow_after_minutes), timedelta(minutes=rules.hold_unhealthy_minutes)


@dataclass(frozen=True, slots=True)
class _Count:
    """Counts one cluster. Has what is common to all its types."""

    rules: CapacityRules
    now: datetime
    table: InstanceTypeTable
    memory_reserved_percent: int
    threads: Threads

    def of_type(self, instance_type: str, nodes: Sequence[Node]) -> TypeCapacity:
        counted: list[Node] = []
        left_out: list[str] = []
        held: list[str] = []
        moments: list[datetime] = []
        for node in sorted(nodes, key=attrgetter("name")):
            if has_left(node, self.now):
                left_out.append(f"{node.name}: {_taken_back(node)}")
                continue
            fault = node_fault(node)
            counts = is_counted(node, self.rules, self.now, healthy=fault is None)
            moments.extend(self._before_end(node))
            if counts:
                counted.append(node)
                if fault is not None:
                    held.append(self._held(node, fault))
            else:
                left_out.append(_because(node, fault))
            if counts != (fault is None):
                moments.extend(self._ends(node, fault))
        headroom = int(len(counted) * Fraction(str(self.rules.headroom_percent)) / 100)
        nominal = self.table.resources_of(instance_type)
        of_nodes = [self.threads.numbers_of(node, nominal) for node in counted] if nominal else []
        resources = min(of_nodes, key=attrgetter("real_vcpu"), default=nominal or _from_nodes(counted))
        per_instance = self._per_instance(counted, resources)
        usable = self._usable(counted, of_nodes, headroom, per_instance)
        total = self._with_overcommit(usable, len(counted) - headroom, per_instance)
        line = CapacityLine(
            instance_type=instance_type,
            nodes=len(nodes),
            counted=len(counted),
            held=tuple(held),
            headroom=headroom,
            usable=len(counted) - headroom,
            left_out=tuple(left_out),
            resources=total,
            one_thread=sum(numbers.running_vcpu is not None for numbers in of_nodes),
        )
        recheck_at = min(moments, default=None)
        return TypeCapacity(line, resources, per_instance, usable, total, recheck_at, self.rules.basis)

    def _before_end(self, node: Node) -> list[datetime]:
        """Return from when the end of the node's reservation is reported, and when it comes."""
        if node.leaves_at is None:
            return []
        notice = node.leaves_at - timedelta(hours=self.rules.notice_before_end_hours)
        return [moment for moment in (notice, node.leaves_at) if moment > self.now]

    def _held(self, node: Node, fault: str) -> str:
        until = "".join(f"; counts until {_clock(moment)}" for moment in self._ends(node, fault))
        return _because(node, fault) + until

    def _ends(self, node: Node, fault: str | None) -> list[datetime]:
        grow, hold = _delays(self.rules)
        since = node.healthy_since if fault is None else node.unhealthy_since
        return [] if since is None else [since + (grow if fault is None else hold)]

    def _per_instance(self, counted: Sequence[Node], resources: InstanceResources | None) -> Vector:
        """Return what one instance gives: its nominal numbers, or the least that a counted node offers.

        A node that offers nothing of a resource (its device plugin is not up yet) says nothing of an instance: it is
        missing in what all of them offer together. One whose object cannot be read is taken to offer the least.
        """
        if self.rules.basis is CapacityBasis.INSTANCES or all(node.unreadable for node in counted):
            return whole_instance(resources)
        least: dict[str, int] = {}
        for resource, amount in ((r, n) for node in counted for r, n in self._offer(node).items() if n):
            least[resource] = min(amount, least.get(resource, amount))
        return dict(sorted(least.items()))

    def _usable(
        self, counted: Sequence[Node], of_nodes: Sequence[InstanceResources], headroom: int, per_instance: Vector
    ) -> Vector:
        instances = len(counted) - headroom
        nominal = self.rules.basis is CapacityBasis.INSTANCES
        if not counted or (nominal and not any(numbers.running_vcpu is not None for numbers in of_nodes)):
            return {resource: amount * instances for resource, amount in per_instance.items()}
        offers = (dict(per_instance) if node.unreadable else self._offer(node) for node in counted)
        real = add(map(whole_instance, of_nodes) if nominal else offers)
        return {resource: amount * instances // len(counted) for resource, amount in sorted(real.items())}

    def _with_overcommit(self, usable: Vector, instances: int, per_instance: Vector) -> Vector:
        """Add declared over-commitment. Whole instances stay whole."""
        more = Fraction(str(self.rules.overcommit_percent)) / 100
        if self.rules.basis is CapacityBasis.INSTANCES:
            added = int(instances * (1 + more)) - instances
            return {resource: amount + added * per_instance[resource] for resource, amount in usable.items()}
        return {resource: int(amount * (1 + more)) for resource, amount in usable.items()}

    def _offer(self, node: Node) -> Vector:
        offer = offered(node.allocatable)
        if MEMORY in offer:
            offer[MEMORY] = offer[MEMORY] * (100 - self.memory_reserved_percent) // 100
        return offer


def _because(node: Node, fault: str | None) -> str:
    if fault is None:
        return f"{node.name}: healthy since {_clock(node.healthy_since)}, not yet long enough to count"
    return f"{node.name}: {fault}" + (f" since {_clock(node.unhealthy_since)}" if node.unhealthy_since else "")


def _taken_back(node: Node) -> str:
    return f"taken back at {_clock(node.leaves_at)} by {name_of(node.reservation or 'its reservation')}"


def _clock(moment: datetime | None) -> str:
    return "an unknown time" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _from_nodes(counted: Sequence[Node]) -> InstanceResources | None:
    """Guess the numbers of a type that is in no table from what its nodes offer, rounded up to whole units."""
    offers: list[Mapping[str, int]] = [node.allocatable for node in counted if node.allocatable]
    if not offers:
        return None
    most = {name: max(offer.get(name, 0) for offer in offers) for name in (CPU, MEMORY, GPU, NEURON_DEVICE)}
    return InstanceResources(
        vcpu=-(-most[CPU] // 1000),
        memory_gib=float(-(-most[MEMORY] // GIBIBYTE)),
        gpu=most[GPU],
        neuron_device=most[NEURON_DEVICE],
    )
