"""A team's quota of one instance type as somebody supposes it: whole instances, or parts of them.

All settings of one team and type together replace its rows of that type, whatever unit these were in. What is not set
follows by ratio, as HyperPod completes it (`taskgov.hyperpod.ratio`).

| set | becomes |
| --- | --- |
| `Count` | whole instances; nothing else can be set beside it |
| `Accelerators`, `VCpu`, `MemoryInGiB` | one row in parts |
| a MIG profile | a row of its own; alone, it takes `VCpu` and `MemoryInGiB` with it |
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from taskgov.hyperpod.instance_types import KNOWN_TYPES, InstanceResources, InstanceTypeTable
from taskgov.hyperpod.limits import AMOUNT, MIG_PROFILES
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaResource
from taskgov_explain.find import nearest

COUNT: Final = "Count"
PARTS: Final = (COUNT, "Accelerators", "VCpu", "MemoryInGiB")
_TYPED: Final = {"Accelerators": "accelerators", "VCpu": "vcpu", "MemoryInGiB": "memoryInGiB"}
_FRACTIONAL: Final = frozenset({"VCpu", "MemoryInGiB"})


@dataclass(frozen=True, slots=True)
class QuotaSetting:
    """How much of one instance type a team is promised: of whole instances (`Count`), or of a part."""

    team: str
    instance_type: str
    amount: float
    part: str = COUNT
    """One of `PARTS`, or a MIG profile such as `mig-1g.10gb`."""

    def __str__(self) -> str:
        """Return the setting as it is given on the command line."""
        part = "" if self.part == COUNT else f":{_TYPED.get(self.part, self.part)}"
        return f"{self.team}.{self.instance_type}{part}={self.amount:g}"

    @property
    def is_partition(self) -> bool:
        """Whether it counts partitions of GPUs."""
        return self.part not in PARTS


def part_named(text: str) -> str | None:
    """Return the part that is meant, in any case; None for what is not a part.

    Example:
        >>> part_named("vcpu"), part_named("memoryInGiB"), part_named("mig-1g.10gb"), part_named("gpus")
        ('VCpu', 'MemoryInGiB', 'mig-1g.10gb', None)

    """
    known = {part.lower(): part for part in (*PARTS, *MIG_PROFILES.choices)}
    return known.get(text.lower())


def rows_of(settings: Iterable[QuotaSetting]) -> tuple[ComputeQuotaResource, ...]:
    """Return the rows that these settings of one team and type make."""
    some = tuple(settings)
    instance_type = some[0].instance_type
    given = {setting.part: setting.amount for setting in some if not setting.is_partition}
    partitions = [
        AcceleratorPartition(type=setting.part, count=int(setting.amount)) for setting in some if setting.is_partition
    ]
    if len(partitions) == 1 and "Accelerators" not in given:
        return (_row(instance_type, given, partitions[0]),)
    rows = (_row(instance_type, given),) if given else ()
    return (
        *rows,
        *(_row(instance_type, {}, partition) for partition in sorted(partitions, key=lambda partition: partition.type)),
    )


def broken_rules(
    settings: Iterable[QuotaSetting], teams: Iterable[str], table: InstanceTypeTable
) -> Iterator[tuple[QuotaSetting, str]]:
    """Give every setting that breaks a rule, with the rule, in the order given."""
    names, seen = set(teams), dict[tuple[str, str], list[str]]()
    for setting in settings:
        if setting.team not in names:
            yield setting, f"there is no team named {setting.team}; {nearest(setting.team, names)}"
        if (instance := table.resources_of(setting.instance_type)) is None:
            known = nearest(setting.instance_type, {*KNOWN_TYPES, *table.overrides})
            yield setting, f"there is no instance type named {setting.instance_type}; {known}"
        else:
            yield from ((setting, rule) for rule in _not_offered(setting, instance))
        if not float(setting.amount).is_integer() and setting.part not in _FRACTIONAL:
            yield setting, "must be a whole number"
        if (rule := AMOUNT.broken_rule(setting.amount)) is not None:
            yield setting, rule
        beside = seen.setdefault((setting.team, setting.instance_type), [])
        if setting.part in beside:
            yield setting, "is set twice"
        elif beside and COUNT in {setting.part, *beside}:
            yield setting, "whole instances and parts of one type cannot be set together"
        beside.append(setting.part)


def _not_offered(setting: QuotaSetting, instance: InstanceResources) -> Iterator[str]:
    if setting.part == "Accelerators" and not instance.accelerators:
        yield f"{setting.instance_type} has no accelerators"
    if setting.is_partition and setting.part not in instance.mig_profiles:
        profiles = ", ".join(instance.mig_profiles) or "none"
        yield f"{setting.instance_type} has no MIG profile {profiles}"


def _row(
    instance_type: str, given: dict[str, float], partition: AcceleratorPartition | None = None
) -> ComputeQuotaResource:
    count, accelerators = (int(given[part]) if part in given else None for part in (COUNT, "Accelerators"))
    return ComputeQuotaResource(
        instance_type=instance_type,
        count=count,
        accelerators=accelerators,
        vcpu=given.get("VCpu"),
        memory_in_gib=given.get("MemoryInGiB"),
        accelerator_partition=partition,
    )
