"""Are there machines for what was admitted? Quota may promise more than the healthy nodes offer.

A snapshot has no pods. Where Kueue watches them, its condition `PodsReady` tells; elsewhere the admitted workloads of
an instance type are counted against its healthy nodes in the order of their admission, which is how pods usually come
to nodes: what is beyond them has to wait.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from taskgov.audit.report_capacity import Offers
from taskgov.explain.amounts import words
from taskgov.quantities import is_accelerator
from taskgov.scheduling import instant
from taskgov.scheduling.reading import read_admission, read_conditions
from taskgov.snapshot.health import node_fault
from taskgov.snapshot.model import KubernetesObject, Snapshot

if TYPE_CHECKING:
    from taskgov.explain.case import Case
    from taskgov.scheduling.objects import Admission


def node_shortage(case: "Case") -> str | None:
    """Return why an admitted workload has to wait for nodes, or None when there are enough."""
    if case.admission is None or case.holds("PodsReady"):
        return None
    ready = case.conditions.get("PodsReady")
    for instance_type, resource in sorted(_places(case.admission)):
        offered = offered_by_nodes(case.snapshot, instance_type, resource)
        taken = sum(amount for _, amount in _admitted_before(case.snapshot, case.named.item, instance_type, resource))
        asked = _held(case.admission, instance_type, resource)
        if taken + asked > offered and case.snapshot.nodes:
            return (
                f"It has its quota, but the healthy {instance_type} nodes offer {words(resource, offered)}, "
                f"and workloads admitted before it hold {taken} of them: it needs {asked}."
            )
    if ready is not None and not ready.status:
        return f"It has its quota, but not all its pods are ready ({ready.reason})."
    return None


def offered_by_nodes(snapshot: Snapshot, instance_type: str, resource: str) -> int:
    """Return what the healthy nodes of a type offer of a resource."""
    offers = Offers(snapshot)
    healthy = (node for node in offers.nodes.get(instance_type, ()) if node_fault(node) is None)
    return sum(offers.of_node(node, resource) for node in healthy)


def _places(admission: "Admission") -> set[tuple[str, str]]:
    """Return the instance types and accelerators that an admission holds; cpu where it holds no accelerator."""
    held = {(flavor, resource) for pods in admission.pod_sets for resource, flavor in pods.flavors.items()}
    return {each for each in held if is_accelerator(each[1])} or {each for each in held if each[1] == "cpu"}


def _held(admission: "Admission", instance_type: str, resource: str) -> int:
    return sum(
        pods.usage.get(resource, 0) for pods in admission.pod_sets if pods.flavors.get(resource) == instance_type
    )


def _admitted_before(
    snapshot: Snapshot, item: KubernetesObject, instance_type: str, resource: str
) -> Iterator[tuple[str, int]]:
    own = _order(item)
    for other in snapshot.kueue.workloads:
        status = other.get("status") or {}
        admission, conditions = read_admission(status), read_conditions(status)
        finished = "Finished" in conditions and conditions["Finished"].status
        if admission is not None and not finished and _order(other) < own:
            yield str(other["metadata"]["name"]), _held(admission, instance_type, resource)


def _order(item: KubernetesObject) -> tuple[int, str, str]:
    """Return when it was admitted; ties by name."""
    admitted = read_conditions(item.get("status") or {}).get("Admitted")
    metadata = item["metadata"]
    return (admitted.since if admitted else instant(None), metadata.get("namespace") or "", metadata["name"])
