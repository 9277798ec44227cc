"""How much of each resource a compute quota promises, once what was left out is filled in.

HyperPod completes a promise in parts of an instance by ratio (developer guide, "Create compute allocations"):
accelerators bring vCPU and memory, vCPU brings memory, memory brings vCPU; accelerators nobody asked for stay 0.

| given | rule | source |
| --- | --- | --- |
| `Count` | that many whole instances | documented |
| one of `Accelerators`, `VCpu`, `MemoryInGiB` | its share of one instance completes the others | documented |
| several of them | given values win; the **largest** share completes the rest | inferred (1) |
| `AcceleratorPartition` | that many MIG slices; slices / (7 x GPUs) is its share | inferred (2) |
| EFA (never given) | the share of one instance's interfaces, rounded **up** | inferred (3) |
| fractions | cpu rounds down to milli, memory to bytes | inferred |

(1) 2 of 4 GPUs with 48 of 48 vCPUs gave 192Gi and 1 EFA in the ClusterQueue that the documentation prints.
(2) The API says that a partition count brings vCPU and memory "by ratio"; the ratio itself is not written down.
(3) HyperPod's own command line gives a pod all interfaces of the instance; a promise in parts gets at least its share.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from taskgov.hyperpod.instance_types import MIG_SLICES_PER_GPU, InstanceResources, InstanceTypeTable, mig_slices
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaResource
from taskgov.quantities import CPU, EFA, GIBIBYTE, GPU, MEMORY, NEURON_DEVICE, ResourceName

Amounts = dict[ResourceName, int]
"""Resource -> base units (cpu in milli, memory in bytes), in the order of HyperPod's ClusterQueues, MIG last."""


def complete(promise: ComputeQuotaResource, instance: InstanceResources) -> Amounts:
    """Return the exact amounts of `promise` on a type that offers `instance`.

    Example: 2 of the 8 GPUs of a p5.48xlarge are a quarter of its 192 vCPUs and 2 TiB.
        >>> from taskgov.hyperpod.instance_types import KNOWN_TYPES
        >>> quarter = ComputeQuotaResource(instance_type="ml.p5.48xlarge", accelerators=2)
        >>> amounts = complete(quarter, KNOWN_TYPES["ml.p5.48xlarge"])
        >>> amounts["nvidia.com/gpu"], amounts["cpu"], amounts["memory"] // 2**30, amounts["vpc.amazonaws.com/efa"]
        (2, 48000, 512, 8)

    """
    return dict(_completed(promise, instance))


@lru_cache(maxsize=4096)
def _completed(promise: ComputeQuotaResource, instance: InstanceResources) -> Amounts:
    """Many teams have equal quotas, and each is computed again and again: fractions take their time."""
    share = largest_share(promise, instance)
    amounts = {resource: int(share * amount) for resource, amount in instance.amounts().items()}
    amounts[EFA] = -int(-share * instance.efa // 1)
    amounts |= _accelerators(promise, instance)
    if promise.vcpu is not None:
        amounts[CPU] = int(_exact(promise.vcpu) * 1000)
    if promise.memory_in_gib is not None:
        amounts[MEMORY] = int(_exact(promise.memory_in_gib) * GIBIBYTE)
    return amounts | _partitions(promise.accelerator_partition)


def complete_all(promises: Iterable[ComputeQuotaResource], table: InstanceTypeTable) -> dict[str, Amounts]:
    """Return instance type -> amounts, in the order given; promises on the same type add up.

    Raises `UnknownInstanceTypeError` when the numbers of a type are not known.
    """
    totals: dict[str, Amounts] = {}
    for promise in promises:
        total = totals.setdefault(promise.instance_type, {})
        for resource, amount in complete(promise, table.require(promise.instance_type)).items():
            total[resource] = total.get(resource, 0) + amount
    return totals


def largest_share(promise: ComputeQuotaResource, instance: InstanceResources) -> Fraction:
    """Return the largest part of one instance (1 = whole, more = several) that any given value requests.

    Example:
        >>> both = ComputeQuotaResource(instance_type="ml.g6.12xlarge", accelerators=2, vcpu=48)
        >>> largest_share(both, InstanceResources(vcpu=48, memory_gib=192, gpu=4, efa=1))
        Fraction(1, 1)

    """
    shares = [
        Fraction(promise.count or 0),
        _share(promise.accelerators, instance.accelerators),
        _share(promise.vcpu, instance.vcpu),
        _share(promise.memory_in_gib, instance.memory_gib),
    ]
    if promise.accelerator_partition is not None:
        partition = promise.accelerator_partition
        shares.append(_share(partition.count * mig_slices(partition.type), instance.gpu * MIG_SLICES_PER_GPU))
    return max(shares)


def _accelerators(promise: ComputeQuotaResource, instance: InstanceResources) -> Amounts:
    """Given accelerators win, whole instances bring theirs, and otherwise there are none."""
    amounts = {
        GPU: (promise.count or 0) * instance.gpu,
        NEURON_DEVICE: (promise.count or 0) * instance.neuron_device,
    }
    if promise.accelerators is not None:
        amounts[instance.accelerator_resource] = promise.accelerators
    return amounts


def _partitions(partition: AcceleratorPartition | None) -> Amounts:
    return {} if partition is None else {f"nvidia.com/{partition.type}": partition.count}


def _share(given: float | None, total: float) -> Fraction:
    return _exact(given) / _exact(total) if given and total else Fraction(0)


def _exact(number: float) -> Fraction:
    """Read a float as the decimal a person wrote: 0.1 is a tenth."""
    return Fraction(str(number))
