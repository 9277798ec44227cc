"""Present use of teams, in whole instances and in accelerators, and where their work waits.

`publish_usage` records it (`taskgov.snapshot.use_memory`), and snapshots add the present use to the record.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from taskgov.allocation.parts import ACCELERATOR, Vector, offered, whole_instance
from taskgov.snapshot.derived import once
from taskgov.snapshot.model import KueueObjects, Node, Snapshot
from taskgov.snapshot.threads import Threads
from taskgov.snapshot.use_memory import Place, UseNow
from taskgov.usage.quota_usage import usage_in
from taskgov.usage.workload_facts import waiting_for


def use_now(snapshot: Snapshot) -> UseNow:
    """Return what every team uses of every instance type that it has quota of, or still uses."""
    vectors = _used(snapshot.kueue)
    whole = _whole_instances(snapshot, {instance_type for _, instance_type in vectors})
    accelerators: dict[str, int] = {}
    for (team, _), vector in vectors.items():
        accelerators[team] = accelerators.get(team, 0) + vector.get(ACCELERATOR, 0)
    known: dict[tuple[str, tuple[tuple[str, int], ...]], Fraction] = {}
    instances: dict[Place, Fraction] = {}
    for place, vector in vectors.items():
        key = place[1], tuple(vector.items())  # many teams use the same of one type
        if key not in known:
            known[key] = _instances(vector, whole[place[1]])
        instances[place] = known[key]
    return UseNow(
        instances=instances,
        accelerators={team: amount for team, amount in accelerators.items() if amount},
    )


@once
def _used(kueue: KueueObjects) -> Mapping[Place, Vector]:
    """Return what every team uses of every instance type."""
    amounts: dict[Place, dict[str, int]] = {}
    for line in usage_in(kueue).lines:
        place = amounts.setdefault((line.team, line.instance_type), {})
        place[line.resource] = place.get(line.resource, 0) + line.used
    return {place: offered(used) for place, used in amounts.items()}


def waiting_places(snapshot: Snapshot, use: UseNow) -> frozenset[Place]:
    """Return the places for which work waits; work that names no instance type waits for all of its team's."""
    waiting = waiting_for(snapshot.kueue)
    return frozenset(place for place in use.instances if place in waiting or (place[0], "") in waiting)


def _instances(used: Vector, instance: Vector) -> Fraction:
    """Return the use in instances, by the resource of which most is used."""
    some = ((amount, instance.get(resource)) for resource, amount in used.items() if amount > 0)
    parts = (Fraction(amount, whole) for amount, whole in some if whole)
    return max(parts, default=Fraction(0))


def _whole_instances(snapshot: Snapshot, instance_types: set[str]) -> Mapping[str, Vector]:
    """Return what one instance of each type has: by its numbers, or for an unknown type what a node offers."""
    table = snapshot.instance_types
    nodes: dict[str, list[Node]] = {}
    for node in snapshot.nodes:
        nodes.setdefault(node.instance_type, []).append(node)
    threads = Threads(snapshot.cluster.instance_groups)
    return {
        name: whole_instance(threads.least(nodes.get(name, ()), numbers))
        if (numbers := table.resources_of(name))
        else _offered_by_one(nodes.get(name, ()))
        for name in instance_types
    }


def _offered_by_one(nodes: Iterable[Node]) -> Vector:
    return next((offered(node.allocatable) for node in reversed([*nodes]) if node.allocatable), {})
