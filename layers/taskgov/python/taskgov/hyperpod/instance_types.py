"""What one instance of a type offers: vCPU, memory, accelerators, EFA, GPU partitions.

Ratio completion, capacity and rendering ask here. The numbers are public EC2 facts, stated by family in
`taskgov.hyperpod.families`; a policy document adds or overrides types in its `instanceTypes` section. The API's list of
types grows quickly, so an unknown `ml.*` type is a finding with a remedy, never an error of the document.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from taskgov.findings import Finding
from taskgov.findings.of_document import UNKNOWN_INSTANCE_TYPE
from taskgov.hyperpod.families import FAMILIES, Family
from taskgov.quantities import CPU, EFA, GIBIBYTE, GPU, MEMORY, NEURON_DEVICE, ResourceName

PREFIX: Final = "ml."
MIG_SLICES_PER_GPU: Final = 7
"""Compute slices of one GPU that can be partitioned (NVIDIA MIG user guide)."""


class UnknownInstanceTypeError(ValueError):
    """The numbers of an instance type are needed and not known; the message says how to supply them."""


@dataclass(frozen=True, slots=True)
class InstanceResources:
    """What one instance offers, nominally. `memory_gib` is exact in binary for every known type (5.25, 21, ...)."""

    vcpu: int
    memory_gib: float
    gpu: int = 0
    neuron_device: int = 0
    efa: int = 0
    mig_profiles: tuple[str, ...] = ()
    """MIG profiles as the API spells them (`mig-1g.5gb`); empty when the GPUs cannot be partitioned."""
    threads_per_core: int = 2
    """Threads that a core of the type runs by default (EC2 DefaultThreadsPerCore); `vcpu` counts all of them."""
    running_vcpu: int | None = None
    """The vCPUs of an instance whose multithreading is switched off; None for one that runs all of them."""

    def at_threads(self, threads_per_core: int | None) -> "InstanceResources":
        """Return the numbers of an instance that runs so many threads per core; None is the type's default.

        Example:
            >>> numbers = InstanceResources(vcpu=192, memory_gib=2048, gpu=8)
            >>> numbers.at_threads(1).running_vcpu, numbers.at_threads(2).running_vcpu
            (96, None)

        """
        if threads_per_core is None or threads_per_core >= self.threads_per_core:
            return self
        return replace(self, running_vcpu=self.vcpu * threads_per_core // self.threads_per_core)

    @property
    def real_vcpu(self) -> int:
        """The vCPUs that the instance really has."""
        return self.vcpu if self.running_vcpu is None else self.running_vcpu

    @property
    def accelerators(self) -> int:
        """GPUs or Neuron devices: no type has both."""
        return self.gpu or self.neuron_device

    @property
    def accelerator_resource(self) -> ResourceName:
        """Return the resource that `Accelerators` counts; GPUs where the type has no accelerator."""
        return NEURON_DEVICE if self.neuron_device else GPU

    def real_amounts(self) -> dict[ResourceName, int]:
        """Return one instance in base units, with the vCPUs that it really has."""
        return self.amounts() | {CPU: self.real_vcpu * 1000}

    def amounts(self) -> dict[ResourceName, int]:
        """Return one instance in base units (cpu in milli, memory in bytes), in the order of HyperPod's ClusterQueues.

        Example:
            >>> InstanceResources(vcpu=48, memory_gib=192, gpu=4, efa=1).amounts()["memory"] == 192 * 2**30
            True

        """
        return {
            GPU: self.gpu,
            NEURON_DEVICE: self.neuron_device,
            CPU: self.vcpu * 1000,
            MEMORY: int(self.memory_gib * GIBIBYTE),
            EFA: self.efa,
        }


@dataclass(frozen=True)
class InstanceTypeTable:
    """The known types, and what the reader of a policy document says of others (or better)."""

    overrides: Mapping[str, InstanceResources] = field(default_factory=dict)

    @cached_property
    def _all(self) -> Mapping[str, InstanceResources]:
        return {**KNOWN_TYPES, **self.overrides}

    def resources_of(self, instance_type: str) -> InstanceResources | None:
        """Return what one instance offers, or None when nobody said. EC2's own names are known too.

        Example:
            >>> table = InstanceTypeTable()
            >>> table.resources_of("ml.p5.48xlarge").gpu, table.resources_of("p5.48xlarge").gpu
            (8, 8)

        """
        return self._all.get(instance_type) or self._all.get(f"{PREFIX}{instance_type}")

    def require(self, instance_type: str) -> InstanceResources:
        """Return what one instance offers; raise `UnknownInstanceTypeError` when nobody said."""
        found = self.resources_of(instance_type)
        if found is None:
            remedy = unknown_type_finding(instance_type).remedy
            raise UnknownInstanceTypeError(f"{instance_type}: its resources are not known; {remedy}")
        return found

    def __contains__(self, instance_type: str) -> bool:
        return self.resources_of(instance_type) is not None


def is_instance_type_name(name: str) -> bool:
    """Return whether `name` has the form of a SageMaker instance type: `ml.<family>.<size>`.

    Example:
        >>> [is_instance_type_name(name) for name in ("ml.g99.huge", "g5.8xlarge", "ml.g5")]
        [True, False, False]

    """
    parts = name.split(".")
    return len(parts) == 3 and parts[0] == "ml" and all(part.replace("-", "").isalnum() for part in parts)


def unknown_type_finding(instance_type: str, path: str = "") -> Finding:
    """Return the warning that the numbers of `instance_type` are missing, with the way to supply them."""
    return UNKNOWN_INSTANCE_TYPE.about(
        path or instance_type,
        {"instanceType": instance_type},
        instance_type=instance_type,
        ec2_name=instance_type.removeprefix(PREFIX),
    )


def mig_slices(profile: str) -> int:
    """Return how many of a GPU's seven compute slices one partition of `profile` takes.

    Raises `ValueError` if it is not a MIG profile.

    Example:
        >>> mig_slices("mig-3g.20gb")
        3

    """
    slices, separator, _ = profile.removeprefix("mig-").partition("g.")
    if not profile.startswith("mig-") or not separator or not slices.isdigit():
        raise ValueError(f"{profile!r} is not a MIG profile such as mig-1g.5gb")
    return int(slices)


def _resources(family: Family, size: str) -> InstanceResources:
    vcpu = family.vcpu.get(size, _standard_vcpu(size))
    return InstanceResources(
        vcpu=vcpu,
        memory_gib=float(family.memory_gib.get(size, family.gib_per_vcpu * vcpu)),
        gpu=family.gpu_by_size.get(size, family.gpu),
        neuron_device=family.neuron_by_size.get(size, family.neuron),
        efa=family.efa.get(size, 0),
        mig_profiles=_mig_profiles(family.mig_memory.get(size, ())),
        threads_per_core=family.threads,
    )


def _standard_vcpu(size: str) -> int:
    """Return the vCPUs that a size means in almost every family: xlarge is 4, and `n`xlarge n times that."""
    small = {"medium": 1, "large": 2, "xlarge": 4}
    return small.get(size) or 4 * int(size.removesuffix("xlarge"))


def _mig_profiles(memory: tuple[int, ...]) -> tuple[str, ...]:
    """Spell the six profiles of a GPU from the memory (GB) of an eighth, a quarter, a half and the whole."""
    if not memory:
        return ()
    eighth, quarter, half, whole = memory
    sizes = ((1, eighth), (1, quarter), (2, quarter), (3, half), (4, half), (7, whole))
    return tuple(f"mig-{slices}g.{gigabytes}gb" for slices, gigabytes in sizes)


KNOWN_TYPES: Final[Mapping[str, InstanceResources]] = {
    f"{PREFIX}{family.name}.{size}": _resources(family, size) for family in FAMILIES for size in family.sizes.split()
}
"""Every type whose numbers are certain, by its SageMaker name."""
