"""The low write: the first of two writes of a quota that lowers one resource and raises another. It only lowers.

`taskgov.allocation.waves` uses it if a quota cannot be written once without exceeding capacity on the way.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from taskgov.allocation.parts import RowKey, need, row_key
from taskgov.hyperpod.instance_types import InstanceResources
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaConfig, ComputeQuotaResource
from taskgov.hyperpod.ratio import complete
from taskgov.quantities import CPU, EFA, GIBIBYTE, MEMORY

ResourcesOf = Callable[[str], InstanceResources | None]
"""Instance type -> the numbers of one instance, None when they are unknown."""

Rows = Sequence[ComputeQuotaResource]
_MILLI: Final = 1000
_FINE: Final = 8
"""Fractions are written in eighths: a 32-bit float holds them, and prints them, exactly up to `_FINE_UP_TO`."""
_FINE_UP_TO: Final = 100_000


def low_config(
    before: ComputeQuotaConfig, after: ComputeQuotaConfig, resources_of: ResourcesOf
) -> ComputeQuotaConfig | None:
    """Return the quota with the lesser of both in each Kueue resource; None where parts of an unknown type change.

    It keeps the rows and settings of `before`. `Count` stays where both have only `Count`; otherwise every part is
    written out, rounded down to what the API returns unchanged. Amounts of a type add up over its rows, as in its
    ClusterQueue: the first row has the vCPUs and the memory of all. EFA interfaces cannot be written: they follow the
    largest share, and may be fewer than in both.

    Example: what gains vCPUs and loses a GPU first loses the GPU.
        >>> from taskgov.hyperpod.instance_types import KNOWN_TYPES
        >>> was = {"InstanceType": "ml.g6.12xlarge", "Accelerators": 2, "VCpu": 12, "MemoryInGiB": 96}
        >>> becomes = {"InstanceType": "ml.g6.12xlarge", "Accelerators": 1, "VCpu": 24, "MemoryInGiB": 96}
        >>> one, other = (ComputeQuotaConfig.model_validate({"ComputeQuotaResources": [row]}) for row in (was, becomes))
        >>> low_config(one, other, KNOWN_TYPES.get).to_api()["ComputeQuotaResources"]
        [{'InstanceType': 'ml.g6.12xlarge', 'Accelerators': 1, 'VCpu': 12.0, 'MemoryInGiB': 96.0}]

    """
    wanted = _by_type(after.compute_quota_resources)
    lower: dict[str, list[ComputeQuotaResource]] = {}
    for name, rows in _by_type(before.compute_quota_resources).items():
        low = _low_rows(rows, wanted.get(name, ()), resources_of(name))
        if low is None:
            return None
        lower[name] = low
    in_order = tuple(lower[name].pop(0) for name, _ in _keys(before.compute_quota_resources))
    return before.model_copy(update={"compute_quota_resources": in_order})


def _by_type(rows: Iterable[ComputeQuotaResource]) -> dict[str, list[ComputeQuotaResource]]:
    by_type: dict[str, list[ComputeQuotaResource]] = {}
    for row in rows:
        by_type.setdefault(row.instance_type, []).append(row)
    return by_type


def _keys(rows: Rows) -> list[RowKey]:
    """Return type and profile of the rows, each once: the API takes no row twice."""
    return list(dict.fromkeys(map(row_key, rows)))


def _low_rows(before: Rows, after: Rows, resources: InstanceResources | None) -> list[ComputeQuotaResource] | None:
    if sorted(before, key=repr) == sorted(after, key=repr):
        return list(before)
    if len(_keys(before)) == 1 and all(_is_count_only(row) for row in (*before, *after)):
        counts = [sum(row.count or 0 for row in rows) for rows in (before, after)]
        return [before[0].model_copy(update={"count": min(counts)})]
    return None if resources is None else _written_out(before, after, resources)


def _is_count_only(row: ComputeQuotaResource) -> bool:
    parts = (row.accelerators, row.vcpu, row.memory_in_gib, row.accelerator_partition)
    return row.count is not None and all(part is None for part in parts)


def _written_out(before: Rows, after: Rows, resources: InstanceResources) -> list[ComputeQuotaResource]:
    had, has = (_amounts(rows, resources) for rows in (before, after))
    left = {resource: min(amount, has.get(resource, 0)) for resource, amount in had.items()}
    # Capacity may count fewer vCPUs than the ratio brings (one thread per core): no more of these either.
    counted = [sum((need(row, resources) or {}).get(CPU, 0) for row in rows) for rows in (before, after)]
    left[CPU] = min(left.get(CPU, 0), *counted)
    given = (*before, *after)
    written = []
    for name, profile in _keys(before):
        has_devices = resources.accelerators and not profile
        written.append(
            ComputeQuotaResource(
                instance_type=name,
                accelerators=left.pop(resources.accelerator_resource, 0) if has_devices else None,
                vcpu=_returned_unchanged(left.pop(CPU, 0), _MILLI, (row.vcpu for row in given)),
                memory_in_gib=_returned_unchanged(left.pop(MEMORY, 0), GIBIBYTE, (row.memory_in_gib for row in given)),
                accelerator_partition=AcceleratorPartition(type=profile, count=left.pop(f"nvidia.com/{profile}", 0))
                if profile
                else None,
            )
        )
    return written


def _amounts(rows: Rows, resources: InstanceResources) -> dict[str, int]:
    """Return the sum of a type's rows in its flavor, without EFA."""
    total: dict[str, int] = {}
    for row in rows:
        for resource, amount in complete(row, resources).items():
            if resource != EFA:
                total[resource] = total.get(resource, 0) + amount
    return total


def _returned_unchanged(amount: int, unit: int, given: Iterable[float | None]) -> float:
    """Return `amount` base units in the API's unit, rounded down to what a 32-bit float holds exactly.

    A number that one of the two quotas gives is taken as it is written there, where it survives.
    """
    exact = Fraction(amount, unit)
    for number in given:
        if number is not None and Fraction(str(number)) * unit // 1 == amount and _survives(number):
            return float(number)
    grain = _FINE if exact < _FINE_UP_TO else 1
    return float(Fraction(exact * grain // 1, grain))


def _survives(number: float) -> bool:
    # The API's numbers are of the type Float, 32 bits; whether it prints them in full or in short is not known.
    return number * _FINE % 1 == 0 and (number < _FINE_UP_TO or number % 1 == 0)


def queue_amounts(config: ComputeQuotaConfig, resources_of: ResourcesOf) -> Mapping[tuple[str, str], int]:
    """Return what a quota comes to in its ClusterQueue: (instance type, resource) -> base units, EFA aside.

    Of a type with unknown numbers, the numbers that are given stand for themselves, in thousandths.
    """
    amounts: dict[tuple[str, str], int] = {}
    for name, rows in _by_type(config.compute_quota_resources).items():
        resources = resources_of(name)
        known = _given(rows) if resources is None else _amounts(rows, resources)
        amounts |= {(name, resource): amount for resource, amount in known.items() if amount}
    return amounts


def _given(rows: Rows) -> dict[str, int]:
    total: dict[str, int] = {}
    for row in rows:
        partition = row.accelerator_partition
        numbers = {
            "Count": row.count,
            "Accelerators": row.accelerators,
            "VCpu": row.vcpu,
            "MemoryInGiB": row.memory_in_gib,
            **({partition.type: partition.count} if partition else {}),
        }
        for unit, number in numbers.items():
            total[unit] = total.get(unit, 0) + int(Fraction(str(number or 0)) * 1000)
    return total
