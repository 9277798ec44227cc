"""Are there machines for what was admitted? Quotas may guarantee more than the healthy nodes offer.

A snapshot has no pods. Where Kueue watches them, its condition `PodsReady` shows it; elsewhere the admitted workloads
of an instance type are counted against its healthy nodes in the order of their admission, which is how pods usually
come to nodes: what is beyond them has to wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from taskgov.kueue.named import named
from taskgov.quantities import is_accelerator
from taskgov.scheduling import instant
from taskgov.scheduling.objects import Admission, Condition
from taskgov.scheduling.status_reading import read_admission, read_conditions
from taskgov.snapshot.health import node_fault
from taskgov.snapshot.model import KubernetesObject, Snapshot
from taskgov.usage.capacity import Offers


@dataclass(frozen=True, slots=True)
class Shortage:
    """What the healthy nodes offer, what workloads admitted before hold of it, and what this one requests."""

    instance_type: str
    resource: str
    offered: int
    taken: int
    asked: int


def short_of_nodes(snapshot: Snapshot) -> dict[str, Shortage]:
    """Return for which admitted workloads there are no nodes, by Kueue's key; empty without any node.

    Each has the first instance type and resource that it lacks, by name.
    """
    if not snapshot.nodes:
        return {}
    offered: dict[tuple[str, str], int] = {}
    taken: dict[tuple[str, str], int] = {}
    short: dict[str, Shortage] = {}
    for item in sorted(snapshot.kueue.workloads, key=_order):
        status = item.get("status") or {}
        admission, conditions = read_admission(status), read_conditions(status)
        if admission is None or _holds(conditions, "Finished"):
            continue
        is_ready = _holds(conditions, "PodsReady")
        key = named(item).key
        for place in sorted(_places(admission)):
            if place not in offered:
                offered[place] = offered_by_nodes(snapshot, *place)
            held, asked = taken.get(place, 0), _held(admission, *place)
            if held + asked > offered[place] and not is_ready and key not in short:
                short[key] = Shortage(*place, offered[place], held, asked)
        for place in _everywhere(admission):
            taken[place] = taken.get(place, 0) + _held(admission, *place)
    return short


def offered_by_nodes(snapshot: Snapshot, instance_type: str, resource: str) -> int:
    """Return what the healthy nodes of a type offer of a resource."""
    offers = Offers(snapshot)
    healthy = (node for node in offers.nodes.get(instance_type, ()) if node_fault(node) is None)
    return sum(offers.of_node(node, resource) for node in healthy)


def _places(admission: Admission) -> set[tuple[str, str]]:
    """Return the instance types and accelerators that an admission holds; cpu where it holds no accelerator."""
    held = _everywhere(admission)
    return {place for place in held if is_accelerator(place[1])} or {place for place in held if place[1] == "cpu"}


def _held(admission: Admission, instance_type: str, resource: str) -> int:
    return sum(
        pods.usage.get(resource, 0) for pods in admission.pod_sets if pods.flavors.get(resource) == instance_type
    )


def _everywhere(admission: Admission) -> set[tuple[str, str]]:
    return {(flavor, resource) for pods in admission.pod_sets for resource, flavor in pods.flavors.items()}


def _holds(conditions: Mapping[str, Condition], kind: str) -> bool:
    return kind in conditions and conditions[kind].status


def _order(item: KubernetesObject) -> tuple[int, str, str]:
    """Return when it was admitted; ties by name."""
    admitted = read_conditions(item.get("status") or {}).get("Admitted")
    metadata = item["metadata"]
    return (admitted.since if admitted else instant(None), metadata.get("namespace") or "", metadata["name"])
