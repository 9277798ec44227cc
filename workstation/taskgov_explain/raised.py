"""What does a compute quota say once a team has so much more of an instance type? Parts rise as they are written.

| the row of the type says | after | what follows by ratio |
| --- | --- | --- |
| nothing | the parts that rise | all else |
| `Count`, and whole instances are added | a higher `Count` | everything |
| `Count` | `Accelerators`, or `VCpu` on a type without accelerators, and the parts that rise | all else |
| parts | the same parts, higher | what the row does not give |
| `AcceleratorPartition` | more of the profile; other parts rise in a row of their own | what the row does not give |

`BorrowLimit` is a percentage of this quota: it allows more when the quota rises. Absolute limits stay.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from taskgov.hyperpod.instance_types import InstanceResources, InstanceTypeTable
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaConfig, ComputeQuotaResource
from taskgov.hyperpod.ratio import complete
from taskgov.quantities import CPU, GIBIBYTE, MEMORY, is_accelerator, is_mig
from taskgov.scheduling.objects import FlavorResource, split

_MEBIBYTE: Final = 2**20


def raised(
    config: ComputeQuotaConfig, added: Mapping[FlavorResource, int], table: InstanceTypeTable
) -> ComputeQuotaConfig:
    """Return the quota with so much more, in base units by `instance type/resource`.

    cpu and memory rise to what was there and `added`, or to what the accelerators bring by ratio, if that is more.
    Raises `UnknownInstanceTypeError`.

    Example: 2 GPUs more than one instance of 8.
        >>> one = ComputeQuotaConfig.model_validate(
        ...     {"ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": 1}]})
        >>> raised(one, {"ml.p5.48xlarge/nvidia.com/gpu": 2}, InstanceTypeTable()).to_api()["ComputeQuotaResources"]
        [{'InstanceType': 'ml.p5.48xlarge', 'Accelerators': 10}]

    """
    rows = list(config.compute_quota_resources)
    by_type: dict[str, dict[str, int]] = {}
    for key, amount in added.items():
        instance_type, resource = split(key)
        by_type.setdefault(instance_type, {})[resource] = amount
    for instance_type, more in by_type.items():
        rows = _with_more(rows, instance_type, {name: n for name, n in more.items() if n}, table.require(instance_type))
    return config.model_copy(update={"compute_quota_resources": tuple(rows)})


def _with_more(
    rows: Iterable[ComputeQuotaResource], instance_type: str, more: Mapping[str, int], instance: InstanceResources
) -> list[ComputeQuotaResource]:
    """Raise the type's row, and its rows of MIG profiles; what has no row gets one at the end."""
    profiles = {resource.removeprefix("nvidia.com/"): amount for resource, amount in more.items() if is_mig(resource)}
    parts = {resource: amount for resource, amount in more.items() if not is_mig(resource)}
    result = []
    for row in rows:
        renewed, partition = row, row.accelerator_partition
        if row.instance_type == instance_type and partition is not None:
            renewed = _with_partitions(row, partition, profiles.pop(partition.type, 0))
        elif row.instance_type == instance_type and parts:
            renewed, parts = _with_parts(row, parts, instance), {}
        result.append(renewed)
    if parts:
        result.append(_with_parts(ComputeQuotaResource(instance_type=instance_type), parts, instance))
    for profile, amount in sorted(profiles.items()):
        partition = AcceleratorPartition(type=profile, count=amount)
        result.append(ComputeQuotaResource(instance_type=instance_type, accelerator_partition=partition))
    return result


def _with_partitions(row: ComputeQuotaResource, partition: AcceleratorPartition, more: int) -> ComputeQuotaResource:
    count = partition.count + more
    return row.model_copy(update={"accelerator_partition": AcceleratorPartition(type=partition.type, count=count)})


def _with_parts(
    row: ComputeQuotaResource, more: Mapping[str, int], instance: InstanceResources
) -> ComputeQuotaResource:
    was = complete(row, instance)
    accelerators = sum(amount for resource, amount in more.items() if is_accelerator(resource))
    is_whole = row.accelerators is None and row.vcpu is None and row.memory_in_gib is None
    if is_whole and set(more) <= {instance.accelerator_resource}:
        count, rest = divmod((row.count or 0) * instance.accelerators + accelerators, instance.accelerators or 1)
        if not rest and instance.accelerators:
            return row.model_copy(update={"count": count})
    if row.count is not None:
        row = _in_parts(row, was, instance)
    if accelerators:
        row = row.model_copy(update={"accelerators": was[instance.accelerator_resource] + accelerators})
    if (cpu := was[CPU] + more.get(CPU, 0)) > complete(row, instance)[CPU]:
        row = row.model_copy(update={"vcpu": cpu / 1000})
    if (memory := was[MEMORY] + more.get(MEMORY, 0)) > complete(row, instance)[MEMORY]:
        # A number of mebibytes is exact as a decimal of gibibytes, and what is given never is less than wanted.
        row = row.model_copy(update={"memory_in_gib": -(-memory // _MEBIBYTE) * _MEBIBYTE / GIBIBYTE})
    return row


def _in_parts(row: ComputeQuotaResource, was: Mapping[str, int], instance: InstanceResources) -> ComputeQuotaResource:
    """Write whole instances as the part that brings all the others by ratio."""
    if instance.accelerators:
        accelerators = was[instance.accelerator_resource]
        return row.model_copy(update={"count": None, "accelerators": accelerators})
    return row.model_copy(update={"count": None, "vcpu": was[CPU] / 1000})
