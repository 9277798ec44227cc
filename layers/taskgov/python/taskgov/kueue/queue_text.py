"""Normalise a ClusterQueue for comparison: quantities have several spellings, and some lists have an order.

Also the way back: the compute quota whose rendering a queue is, as far as there is one.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any, Final

from taskgov.hyperpod.borrowing import percent_of, sharing_of
from taskgov.hyperpod.instance_types import InstanceResources, InstanceTypeTable
from taskgov.hyperpod.model import (
    AcceleratorPartition,
    ComputeQuotaConfig,
    ComputeQuotaResource,
    PreemptTeamTasks,
    ResourceSharingConfig,
    SharingStrategy,
)
from taskgov.hyperpod.ratio import Amounts, complete_all
from taskgov.quantities import CPU, GIBIBYTE, MEMORY, MIG_PREFIX, is_mig, parse

Flavors = dict[str, tuple[Amounts, Amounts]]
"""Flavor -> nominal quota and borrowing limits in base units, in the queue's order."""

MOST: Final = 10_000
"""The highest BorrowLimit, in percent: stands for a queue that may borrow without limit."""
_COHORT_KEYS: Final = ("cohort", "cohortName")


def comparable(spec: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a queue says of the fields that `like` has, spelled so that equal meanings are equal values."""
    said = {key: spec.get(key) for key in like if key not in {"resourceGroups", *_COHORT_KEYS}}
    said["cohort"] = _cohort(spec)
    said["fairSharing"] = weight_of(spec)
    said["stopPolicy"] = spec.get("stopPolicy") or "None"
    said["resourceGroups"] = [
        (frozenset(group["coveredResources"]), [_flavor(flavor) for flavor in group["flavors"]])
        for group in spec.get("resourceGroups") or ()
    ]
    return said


def weight_of(spec: Mapping[str, Any]) -> int:
    """Return a queue's fair-share weight as HyperPod has them: whole, 0 to 100; without one Kueue takes 1."""
    weight = (spec.get("fairSharing") or {}).get("weight")
    return 1 if weight is None else min(100, parse("weight", str(weight)))


def config_of(spec: Mapping[str, Any], table: InstanceTypeTable, known: ComputeQuotaConfig) -> ComputeQuotaConfig:
    """Return the compute quota that a queue stands for; `known` is kept wherever it means the same.

    A flavor that may only be borrowed has no row. What a quota cannot say (EFA apart from the rest, another cohort, no
        borrowing limit) is left out: rendering the answer and comparing shows whether there was such a thing.
    """
    flavors = _flavors(spec)
    rows = tuple(
        row
        for name, (nominal, limit) in flavors.items()
        if _present(nominal)
        or not _present(limit)
        or name in {promised.instance_type for promised in known.compute_quota_resources}
        for row in _rows(name, nominal, table, known)
    )
    sharing = _sharing(spec, flavors, table, known)
    never = (spec.get("preemption") or {}).get("withinClusterQueue", "Never") == "Never"
    preempt = PreemptTeamTasks.NEVER if never else known.preempt_team_tasks
    if not never and preempt is PreemptTeamTasks.NEVER:
        preempt = PreemptTeamTasks.LOWER_PRIORITY
    return ComputeQuotaConfig(compute_quota_resources=rows, resource_sharing_config=sharing, preempt_team_tasks=preempt)


def _cohort(spec: Mapping[str, Any]) -> str | None:
    return next((str(spec[key]) for key in _COHORT_KEYS if spec.get(key)), None)


def _flavor(flavor: Mapping[str, Any]) -> tuple[str, dict[str, tuple[int | None, ...]]]:
    limits = ("nominalQuota", "borrowingLimit", "lendingLimit")
    return flavor["name"], {
        resource["name"]: tuple(
            parse(resource["name"], str(resource[key])) if key in resource else None for key in limits
        )
        for resource in flavor["resources"]
    }


def _flavors(spec: Mapping[str, Any]) -> Flavors:
    """Return what each flavor holds; a flavor that several groups name is added up."""
    found: Flavors = {}
    for group in spec.get("resourceGroups") or ():
        for flavor in group["flavors"]:
            nominal, borrowing = found.setdefault(flavor["name"], ({}, {}))
            for resource in flavor["resources"]:
                nominal[resource["name"]] = parse(resource["name"], str(resource["nominalQuota"]))
                if "borrowingLimit" in resource:
                    borrowing[resource["name"]] = parse(resource["name"], str(resource["borrowingLimit"]))
    return found


def _rows(
    name: str, nominal: Amounts, table: InstanceTypeTable, known: ComputeQuotaConfig
) -> tuple[ComputeQuotaResource, ...]:
    own = tuple(row for row in known.compute_quota_resources if row.instance_type == name)
    instance = table.resources_of(name)
    if instance is None:
        return ()
    if own and _means(own, table, name) == _present(nominal):
        return own
    return _spelled(name, nominal, instance, table)


def _spelled(
    name: str, nominal: Amounts, instance: InstanceResources, table: InstanceTypeTable
) -> tuple[ComputeQuotaResource, ...]:
    """Write amounts as whole instances where they are some, and else as parts."""
    count = nominal.get(CPU, 0) // (instance.vcpu * 1000)
    whole = ComputeQuotaResource(instance_type=name, count=count)
    if _means((whole,), table, name) == _present(nominal):
        return (whole,)
    parts = ComputeQuotaResource(
        instance_type=name,
        accelerators=nominal.get(instance.accelerator_resource, 0),
        vcpu=nominal.get(CPU, 0) / 1000,
        memory_in_gib=nominal.get(MEMORY, 0) / GIBIBYTE,
    )
    slices = (
        ComputeQuotaResource(
            instance_type=name,
            vcpu=0,
            memory_in_gib=0,
            accelerator_partition=AcceleratorPartition(type=f"mig-{resource.removeprefix(MIG_PREFIX)}", count=amount),
        )
        for resource, amount in nominal.items()
        if is_mig(resource) and amount
    )
    return (parts, *slices)


def _sharing(
    spec: Mapping[str, Any], flavors: Flavors, table: InstanceTypeTable, known: ComputeQuotaConfig
) -> ResourceSharingConfig | None:
    if _cohort(spec) is None:
        return ResourceSharingConfig(strategy=SharingStrategy.DONT_LEND)
    before = sharing_of(known)
    if before.strategy is SharingStrategy.LEND and not any(any(limit.values()) for _, limit in flavors.values()):
        return known.resource_sharing_config
    if before.strategy is SharingStrategy.LEND_AND_BORROW and _borrows(flavors, before, table):
        return known.resource_sharing_config
    if any(set(nominal) - set(limit) for nominal, limit in flavors.values()):
        return ResourceSharingConfig(borrow_limit=MOST)
    percent = _percent(flavors)
    if percent is not None:
        return ResourceSharingConfig(borrow_limit=percent)
    limits = [
        row
        for name, (_, limit) in flavors.items()
        for instance in [table.resources_of(name)]
        if instance is not None
        for row in _spelled(name, limit, instance, table)
    ]
    return ResourceSharingConfig(borrow_limit=0, absolute_borrow_limits=tuple(limits))


def _borrows(flavors: Flavors, sharing: ResourceSharingConfig, table: InstanceTypeTable) -> bool:
    """Return whether the limits are those that this sharing gives."""
    percent = 50 if sharing.borrow_limit is None else sharing.borrow_limit
    absolute = complete_all(sharing.absolute_borrow_limits or (), table)
    return all(
        _present(limit) == _present(percent_of(nominal, percent) | absolute.get(name, {}))
        for name, (nominal, limit) in flavors.items()
    )


def _percent(flavors: Flavors) -> int | None:
    """Return the percentage that gives all limits, rounded down, or None when there is none."""
    pairs = [
        (nominal[resource], limit.get(resource, 0))
        for nominal, limit in flavors.values()
        for resource in nominal
        if nominal[resource]
    ]
    if any(
        limit.get(resource) for nominal, limit in flavors.values() for resource in limit if not nominal.get(resource)
    ):
        return None
    percent = max((ceil(limit * 100 / nominal) for nominal, limit in pairs), default=0)
    return percent if all(nominal * percent // 100 == limit for nominal, limit in pairs) else None


def _means(rows: tuple[ComputeQuotaResource, ...], table: InstanceTypeTable, name: str) -> Amounts:
    return _present(complete_all(rows, table).get(name, {}))


def _present(amounts: Amounts) -> Amounts:
    return {resource: amount for resource, amount in amounts.items() if amount}
