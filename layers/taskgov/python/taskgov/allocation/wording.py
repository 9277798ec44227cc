"""Format amounts and capacities in sentences, the same way in plans, findings and guardrails."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from taskgov.allocation.plan import CapacityLine
from taskgov.hyperpod.model import ApiModel, ComputeQuotaConfig, ComputeQuotaResource, SchedulerConfig

_MOST_DECIMALS: Final = 6
_FEWER_DECIMALS: Final = 3


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in the unit of a promise: `Count`, `Accelerators`, `VCpu`, `MemoryInGiB` or a MIG profile."""

    unit: str
    value: float


def given_amounts(row: ComputeQuotaResource) -> tuple[Amount, ...]:
    """Return all amounts that a row gives, the most important first."""
    given = [
        Amount(unit, value)
        for unit, value in (
            ("Count", row.count),
            ("Accelerators", row.accelerators),
            ("VCpu", row.vcpu),
            ("MemoryInGiB", row.memory_in_gib),
        )
        if value is not None
    ]
    if row.accelerator_partition is not None:
        given.append(Amount(row.accelerator_partition.type, row.accelerator_partition.count))
    return tuple(given)


def amounts_of(row: ComputeQuotaResource) -> tuple[Amount, ...]:
    """Return all amounts that a row gives; a row that gives nothing is not an instance."""
    return given_amounts(row) or (Amount("Count", 0),)


def value_in(row: ComputeQuotaResource, unit: str) -> float:
    """Return what a row gives in `unit`, 0 when it gives nothing of it."""
    return next((amount.value for amount in amounts_of(row) if amount.unit == unit), 0)


@lru_cache(maxsize=4096, typed=True)  # a plan says the same few numbers of each team
def said_number(number: Fraction | float) -> str:
    """Return a number in full where it has up to six decimals, else with three; never with an exponent.

    Example:
        >>> said_number(1234567.0), said_number(0.0625), said_number(Fraction(1, 3)), said_number(Fraction(5, 2))
        ('1234567', '0.0625', '0.333', '2.5')

    """
    exact = number if isinstance(number, Fraction) else Fraction(str(number))
    if exact.denominator == 1:
        return str(exact.numerator)
    decimals = _MOST_DECIMALS if 10**_MOST_DECIMALS % exact.denominator == 0 else _FEWER_DECIMALS
    return f"{float(exact):.{decimals}f}".rstrip("0").rstrip(".")


def said_gpus(number: Fraction | float) -> str:
    """Return a number of GPUs.

    Example:
        >>> said_gpus(1), said_gpus(1500), said_gpus(0.5)
        ('1 GPU', '1500 GPUs', '0.5 GPUs')

    """
    return f"{said_number(number)} GPU{'' if number == 1 else 's'}"


def need_approval(limit: int) -> str:
    """Return the sentence that says from how many GPUs on a plan needs approval.

    Example:
        >>> need_approval(1), need_approval(8)
        ('More than 1 needs approval.', 'More than 8 need approval.')

    """
    return f"More than {limit} {'needs' if limit == 1 else 'need'} approval."


def said(row: ComputeQuotaResource) -> str:
    """Return a row's amounts as words.

    Example:
        >>> said(ComputeQuotaResource(instance_type="ml.p5.48xlarge", count=3))
        '3'
        >>> said(ComputeQuotaResource(instance_type="ml.p5.48xlarge", accelerators=2, vcpu=48))
        '2 Accelerators, 48 VCpu'

    """
    return ", ".join(
        said_number(amount.value) if amount.unit == "Count" else f"{said_number(amount.value)} {amount.unit}"
        for amount in amounts_of(row)
    )


def capacity_words(line: CapacityLine) -> str:
    """Return a type's capacity as words: all nodes, those usable, and what makes the difference.

    Example:
        >>> capacity_words(CapacityLine("ml.p5.48xlarge", 12, 10, (), 0, 10, ()))
        'capacity 12 -> 10 healthy ml.p5.48xlarge'

    """
    apart = _thread_words(line) + (f" less {line.headroom} headroom" if line.headroom else "")
    if line.nodes == line.counted:
        return f"capacity {line.counted} {line.instance_type}{apart}"
    return f"capacity {line.nodes} -> {line.counted} healthy {line.instance_type}{apart}"


def _thread_words(line: CapacityLine) -> str:
    if not line.one_thread:
        return ""
    return (
        " at one thread per core" if line.one_thread == line.counted else f" ({line.one_thread} at one thread per core)"
    )


def said_setting(setting: object) -> str:
    """Return a setting of a quota or of the cluster policy as words, in the API's names.

    Example:
        >>> from taskgov.hyperpod.model import ResourceSharingConfig
        >>> said_setting(ResourceSharingConfig(borrow_limit=50)), said_setting(None)
        ('Strategy LendAndBorrow, BorrowLimit 50', 'default')

    """
    if isinstance(setting, ApiModel):
        return ", ".join(f"{name} {_said_value(value)}" for name, value in setting.to_api().items())
    return "default" if setting is None else str(setting)


def _said_value(value: object) -> str:
    """Return a list of structures, such as priority classes, by their values."""
    if isinstance(value, list):
        return "(" + ", ".join(" ".join(map(str, item.values())) for item in value) + ")"
    return str(value)


def said_config(config: ComputeQuotaConfig | SchedulerConfig) -> str:
    """Return what a quota or the cluster policy holds, as records of runs say it.

    Example:
        >>> row = ComputeQuotaResource(instance_type="ml.p5.48xlarge", count=3)
        >>> said_config(ComputeQuotaConfig(compute_quota_resources=(row,)))
        '3 x ml.p5.48xlarge'

    """
    if isinstance(config, SchedulerConfig):
        classes = config.priority_classes or ()
        return ", ".join(f"{priority.name} {priority.weight}" for priority in classes) or "no priority classes"
    return ", ".join(_said_row(row) for row in config.compute_quota_resources) or "nothing"


def _said_row(row: ComputeQuotaResource) -> str:
    """Write one row: whole instances as `3 x ml.g5.8xlarge`, parts of instances by their fields."""
    if row.count is not None:
        return f"{row.count} x {row.instance_type}"
    parts = row.to_api()
    return " ".join([parts.pop("InstanceType"), *(f"{name} {value}" for name, value in sorted(parts.items()))])
