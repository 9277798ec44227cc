"""What does a Workload say of its attempts? When it was admitted, evicted, finished, and what it holds.

The record of work (`taskgov.work`) follows these facts from one measurement to the next. Nothing of the job is in them
but what it is called, what it requests and, if that is wanted, who owns it.
"""

from collections.abc import Callable, Mapping

from taskgov.quantities import CPU, ResourceName, is_accelerator
from taskgov.scheduling.instants import instant
from taskgov.scheduling.status_reading import read_admission, read_conditions
from taskgov.snapshot.model import KubernetesObject
from taskgov.usage.workload_facts import AttemptFacts, WorkloadFacts, facts_of, past_seconds

OwnerOf = Callable[[KubernetesObject], str | None]
"""Returns whose a Workload is, as it should be kept."""


def nobody(_: KubernetesObject) -> None:
    """Return the owner of a Workload where none should be kept."""


def facts_with_attempt(item: KubernetesObject, owner_of: OwnerOf) -> WorkloadFacts:
    """Return what is known of a Workload that has the form of its kind, with its attempt."""
    facts = facts_of(item)
    status, spec = item.get("status") or {}, item.get("spec") or {}
    conditions = read_conditions(status)
    true = {kind: condition for kind, condition in conditions.items() if condition.status}
    admitted, evicted, finished = (true.get(kind) for kind in ("Admitted", "Evicted", "Finished"))
    created = instant(item["metadata"].get("creationTimestamp"))
    released = conditions.get("Admitted")
    evictions: dict[str, int] = {}
    for eviction in (status.get("schedulingStats") or {}).get("evictions") or ():
        reason = str(eviction.get("reason", ""))
        evictions[reason] = evictions.get(reason, 0) + int(eviction.get("count", 0))
    most = spec.get("maximumExecutionTimeSeconds")
    return facts._replace(
        attempt=AttemptFacts(
            owner=owner_of(item),
            max_seconds=most if isinstance(most, int) else None,
            created=created,
            latest=max([created, *(condition.since for condition in conditions.values())]),
            held=_held(status, facts),
            admitted=admitted.since if admitted else None,
            released=released.since if released and not released.status else None,
            evicted=evicted.since if evicted else None,
            evicted_why=_why(true) if evicted else "",
            finished=finished.since if finished else None,
            finished_why=finished.reason if finished else "",
            evictions=tuple(sorted(evictions.items())),
            past_seconds=past_seconds(status),
        ),
    )


def _why(true: Mapping[str, object]) -> str:
    """Return the reason of an eviction, with the reason of the preemption where it was one."""
    reasons = (getattr(true.get(kind), "reason", "") for kind in ("Evicted", "Preempted"))
    return "/".join(reason for reason in reasons if reason)


def _held(status: KubernetesObject, facts: WorkloadFacts) -> tuple[tuple[str, ResourceName, int], ...]:
    """Return what it is admitted with, else what it requests: accelerators, else cpu; by type and resource."""
    admission = read_admission(status)
    rows: list[tuple[str, ResourceName, int]] = []
    if admission is not None:
        rows = [
            (flavor, resource, pods.usage.get(resource, 0))
            for pods in admission.pod_sets
            for resource, flavor in pods.flavors.items()
        ]
    else:
        rows = [
            (pods.instance_type or "", resource, pods.number * n)
            for pods in facts.asks
            for resource, n in pods.requests
        ]
    leading = [row for row in rows if is_accelerator(row[1]) and row[2]] or [row for row in rows if row[1] == CPU]
    sums: dict[tuple[str, ResourceName], int] = {}
    for instance_type, resource, amount in leading:
        sums[instance_type, resource] = sums.get((instance_type, resource), 0) + amount
    return tuple((*kind, amount) for kind, amount in sorted(sums.items()))
