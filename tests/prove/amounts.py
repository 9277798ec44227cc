"""How much a row of a quota promises: written anew from the developer guide, to check the product's own completion.

Sources: the developer guide ("Create compute allocations"), and the ClusterQueue that the add-on's guide prints.
GPUs of a sum are counted in sevenths, so that a partition (MIG) of a GPU is a whole number.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from taskgov.hyperpod.instance_types import KNOWN_TYPES
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.model import Node

GPU, NEURON, CPU, MEMORY, EFA = (
    "nvidia.com/gpu",
    "aws.amazon.com/neurondevice",
    "cpu",
    "memory",
    "vpc.amazonaws.com/efa",
)
MIG = "nvidia.com/mig-"
GIB = 2**30
ACCELERATOR, INSTANCE = "accelerator", "instance"
"""Keys of sums: accelerators of every kind in sevenths, and whole instances of a type whose numbers nobody knows."""

Amounts = dict[str, int]
Key = tuple[str, str]
"""Instance type and resource."""
Vector = dict[Key, int]


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one instance of a type offers, in whole units; `memory` in bytes, `running` are the vCPUs that it runs."""

    vcpu: int
    memory: int
    gpu: int = 0
    neuron: int = 0
    efa: int = 0
    threads: int = 2
    running: int = 0

    def whole(self) -> Amounts:
        """Return one instance in base units."""
        return {
            GPU: self.gpu,
            NEURON: self.neuron,
            CPU: self.vcpu * 1000,
            MEMORY: self.memory,
            EFA: self.efa,
        }


Book = Mapping[str, Numbers]
"""Instance type -> numbers, as far as they are known."""


def exact(number: float) -> Fraction:
    """Read a number as the decimal that a person wrote."""
    return Fraction(str(number))


def numbers_of(instance_type: str, policy: PolicyDocument | None) -> Numbers | None:
    """Return the numbers of a type: those of the document before those of the table; None where neither has any."""
    for name in (instance_type, f"ml.{instance_type}"):
        known = KNOWN_TYPES.get(name)
        stated = None if policy is None else policy.instance_types.get(name)
        if stated is not None:
            threads = stated.threads_per_core or (known.threads_per_core if known else 2)
            memory = int(exact(stated.memory_gib) * GIB)
            return Numbers(
                stated.vcpu, memory, stated.gpu, stated.neuron_device, stated.efa, threads, running=stated.vcpu
            )
        if known is not None:
            memory = int(exact(known.memory_gib) * GIB)
            return Numbers(
                known.vcpu,
                memory,
                known.gpu,
                known.neuron_device,
                known.efa,
                known.threads_per_core,
                running=known.vcpu,
            )
    return None


def numbers_from(nodes: Iterable[Node]) -> Numbers | None:
    """Guess the numbers of an unknown type from what its nodes offer to pods, rounded up to whole units."""
    offers = [node.allocatable for node in nodes if node.allocatable]
    if not offers:
        return None
    most = {name: max(offer.get(name, 0) for offer in offers) for name in (CPU, MEMORY, GPU, NEURON)}
    vcpu = -(-most[CPU] // 1000)
    return Numbers(vcpu, -(-most[MEMORY] // GIB) * GIB, most[GPU], most[NEURON], running=vcpu)


def slices_of(resource: str) -> int:
    """Return the sevenths of a GPU that one device takes: `nvidia.com/mig-3g.20gb` takes 3."""
    name = resource.removeprefix("nvidia.com/")
    return int(name.removeprefix("mig-").split("g.")[0]) if name.startswith("mig-") else 7


def completed(row: ComputeQuotaResource, numbers: Numbers) -> Amounts:
    """Return what the row promises of each Kueue resource: given values win, the largest share brings the rest."""
    share = _share(row, numbers)
    amounts = {
        GPU: (row.count or 0) * numbers.gpu,
        NEURON: (row.count or 0) * numbers.neuron,
        CPU: int(share * numbers.vcpu * 1000),
        MEMORY: int(share * numbers.memory),
        EFA: -int(-share * numbers.efa // 1),
    }
    if row.accelerators is not None:
        amounts[NEURON if numbers.neuron else GPU] = row.accelerators
    if row.vcpu is not None:
        amounts[CPU] = int(exact(row.vcpu) * 1000)
    if row.memory_in_gib is not None:
        amounts[MEMORY] = int(exact(row.memory_in_gib) * GIB)
    if row.accelerator_partition is not None:
        amounts[f"nvidia.com/{row.accelerator_partition.type}"] = row.accelerator_partition.count
    return amounts


def _share(row: ComputeQuotaResource, numbers: Numbers) -> Fraction:
    shares = [Fraction(row.count or 0)]
    if row.accelerators and (numbers.gpu or numbers.neuron):
        shares.append(Fraction(row.accelerators, numbers.gpu or numbers.neuron))
    if row.vcpu:
        shares.append(exact(row.vcpu) / numbers.vcpu)
    if row.memory_in_gib:
        shares.append(exact(row.memory_in_gib) * GIB / numbers.memory)
    if row.accelerator_partition is not None and numbers.gpu:
        partition = row.accelerator_partition
        shares.append(Fraction(partition.count * slices_of(partition.type), 7 * numbers.gpu))
    return max(shares)


def in_parts(row: ComputeQuotaResource) -> bool:
    """Say whether a row promises parts of instances."""
    parts = (row.accelerators, row.vcpu, row.memory_in_gib, row.accelerator_partition)
    return any(part is not None for part in parts)


def resources_of(config: ComputeQuotaConfig | None, book: Book, *, running: bool = False) -> Vector:
    """Return what a config promises of each Kueue resource of each type; EFA, which nobody can write, aside.

    `running` takes vCPUs that were not written from those that the machines run (half of them at one thread per core).
    Of an unknown type the numbers that were written stand for themselves, by the names of their fields.
    """
    vector: Vector = {}
    for row in () if config is None else config.compute_quota_resources:
        numbers = book.get(row.instance_type)
        amounts = _as_written(row) if numbers is None else completed(row, numbers)
        if numbers is not None and running and row.vcpu is None:
            amounts[CPU] = amounts[CPU] * numbers.running // numbers.vcpu
        for resource, amount in amounts.items():
            if resource != EFA:
                key = row.instance_type, resource
                vector[key] = vector.get(key, 0) + amount
    return vector


def _as_written(row: ComputeQuotaResource) -> Amounts:
    amounts = {
        "Count": row.count or 0,
        "Accelerators": row.accelerators or 0,
        "VCpu": int(exact(row.vcpu or 0) * 1000),
        "MemoryInGiB": int(exact(row.memory_in_gib or 0) * GIB),
    }
    if row.accelerator_partition is not None:
        amounts[row.accelerator_partition.type] = row.accelerator_partition.count
    return amounts


def sum_of(config: ComputeQuotaConfig | None, book: Book) -> Vector:
    """Return what a config takes of the capacity of each type; parts of an unknown type cannot be compared."""
    vector: Vector = {}
    for row in () if config is None else config.compute_quota_resources:
        numbers = book.get(row.instance_type)
        for resource, amount in _taken(row, numbers).items():
            key = row.instance_type, resource
            vector[key] = vector.get(key, 0) + amount
    return vector


def _taken(row: ComputeQuotaResource, numbers: Numbers | None) -> Amounts:
    if numbers is None:
        return {} if in_parts(row) else {INSTANCE: row.count or 0}
    amounts = completed(row, numbers)
    if row.vcpu is None:
        amounts[CPU] = amounts[CPU] * numbers.running // numbers.vcpu
    sevenths = sum(amount * slices_of(name) for name, amount in amounts.items() if is_accelerator(name))
    return {ACCELERATOR: sevenths, CPU: amounts[CPU], MEMORY: amounts[MEMORY]}


def is_accelerator(resource: str) -> bool:
    """Say whether a Kueue resource is a GPU, a partition of one, or a Neuron device."""
    return resource in {GPU, NEURON} or resource.startswith(MIG)


def sevenths_by_type(config: ComputeQuotaConfig | None, book: Book) -> dict[str, int]:
    """Return the accelerators of a config, of every kind, in sevenths by instance type.

    Of an unknown type those that were written count, by the names of their fields.
    """
    found: dict[str, int] = {}
    for (instance_type, resource), amount in resources_of(config, book).items():
        if is_accelerator(resource) or resource == "Accelerators" or resource.startswith("mig-"):
            found[instance_type] = found.get(instance_type, 0) + amount * slices_of(resource)
    return found


def unnamed_by_type(config: ComputeQuotaConfig | None, book: Book) -> dict[str, list[tuple[float, ...]]]:
    """Return what rows of unknown types promise without a word on accelerators: nobody can say how many those are."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for row in () if config is None else config.compute_quota_resources:
        whole, vcpu, memory = row.count or 0, row.vcpu or 0.0, row.memory_in_gib or 0.0
        only_partitions = row.accelerator_partition is not None and not whole
        if row.instance_type in book or row.accelerators is not None or only_partitions:
            continue
        if whole or vcpu or memory:
            found.setdefault(row.instance_type, []).append((whole, vcpu, memory))
    return {name: sorted(rows) for name, rows in found.items()}
