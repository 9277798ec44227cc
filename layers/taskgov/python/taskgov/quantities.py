"""How much of which resource: exact integers in, canonical Kubernetes text out.

Every room counts in the same units: cpu in **milli**, everything else (bytes, devices, pods) in whole units, always a
Python `int`. Code that reads or writes Kubernetes objects (scheduling, allocation, hyperpod, kueue) converts here.

| value | means |
| --- | --- |
| `0` | nothing |
| `UNLIMITED` | no bound; what a quota of MaxInt64 or more says in Kueue |
| `None` (for a limit) | no limit was set |
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Final

ResourceName = str

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
GPU: Final = "nvidia.com/gpu"
NEURON_DEVICE: Final = "aws.amazon.com/neurondevice"
EFA: Final = "vpc.amazonaws.com/efa"
MIG_PREFIX: Final = "nvidia.com/mig-"
HUGEPAGES_PREFIX: Final = "hugepages-"
_WHOLE_ACCELERATORS: Final = frozenset({GPU, NEURON_DEVICE})

GIBIBYTE: Final = 2**30
UNLIMITED: Final = 2**63 - 1
"""No bound (Kueue `pkg/resources/amount.go`: MaxInt64). Sums saturate here: see `add`."""

_DECIMAL_SUFFIXES: Final = ("", "k", "M", "G", "T", "P", "E")
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_FACTORS: Final = (
    {suffix: Decimal(1000) ** power for power, suffix in enumerate(_DECIMAL_SUFFIXES)}
    | {suffix: Decimal(1024) ** power for power, suffix in enumerate(_BINARY_SUFFIXES)}
    | {suffix: Decimal(1000) ** -power for power, suffix in enumerate(("", "m", "u", "n"))}
)
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?([0-9]+\.?[0-9]*|\.[0-9]+))((?P<exponent>[eE][+-]?[0-9]{1,4})|(?P<suffix>[numkMGTPE]|[KMGTPE]i))?"
)
"""The grammar of `apimachinery/pkg/api/resource/quantity.go`: after the number an exponent or a suffix, not both."""


def parse(resource: ResourceName, quantity: str | float | Decimal) -> int:
    """Read a Kubernetes quantity of `resource` into base units, rounding up as `Quantity.Value` and `MilliValue` do.

    Raises `ValueError` when the text is not a quantity; what is too large becomes `UNLIMITED`.

    Example:
        >>> parse("cpu", "1500m"), parse("memory", "192Gi"), parse("nvidia.com/gpu", 8), parse("cpu", "0.0001")
        (1500, 206158430208, 8, 1)

    """
    if isinstance(quantity, str):
        return _parse_text(quantity, milli=resource == CPU)
    return _base_units(Decimal(str(quantity)), milli=resource == CPU)


def exact(quantity: str | float | Decimal) -> Decimal:
    """Read a Kubernetes quantity as the number it is, in cores, bytes or devices; nothing is rounded.

    Raises `ValueError` when the text is not a quantity.

    Example:
        >>> exact("1500m"), exact("-3"), exact("1Ki")
        (Decimal('1.500'), Decimal('-3'), Decimal('1024'))

    """
    return _number(quantity) if isinstance(quantity, str) else Decimal(str(quantity))


@lru_cache(maxsize=4096)
def format_quantity(resource: ResourceName, amount: int) -> str:
    """Write base units of `resource` as the API server prints them (canonical form).

    cpu prints in cores or milli, memory and storage in powers of 1024, the rest in powers of 1000.

    Example:
        >>> [format_quantity("cpu", n) for n in (1500, 2000, 2_000_000)]
        ['1500m', '2', '2k']
        >>> format_quantity("memory", 3 * 2**30), format_quantity("memory", 1000), format_quantity("nvidia.com/gpu", 8)
        ('3Gi', '1k', '8')

    """
    if resource == CPU:
        cores, milli = divmod(amount, 1000)
        return f"{amount}m" if milli else _scaled(cores, 1000, _DECIMAL_SUFFIXES)
    if is_binary(resource) and abs(amount) >= 1024 and amount % 1024 == 0:
        return _scaled(amount, 1024, _BINARY_SUFFIXES)
    return _scaled(amount, 1000, _DECIMAL_SUFFIXES)


def add(left: int, right: int) -> int:
    """Add two amounts; nothing is more than `UNLIMITED`, and `UNLIMITED` stays so whatever is taken from it.

    Example:
        >>> add(UNLIMITED, -5) == UNLIMITED == add(UNLIMITED - 1, 2)
        True

    """
    return UNLIMITED if left >= UNLIMITED or right >= UNLIMITED else min(left + right, UNLIMITED)


def times(amount: int, count: int) -> int:
    """Multiply a per-pod request by its pods; what is too large becomes `UNLIMITED`."""
    return min(amount * count, UNLIMITED)


def is_binary(resource: ResourceName) -> bool:
    """Return whether Kubernetes prints `resource` in powers of 1024 (Kueue `pkg/resources`: ResourceQuantity)."""
    return resource in {MEMORY, EPHEMERAL_STORAGE} or resource.startswith(HUGEPAGES_PREFIX)


def is_mig(resource: ResourceName) -> bool:
    """Return whether `resource` is a slice of a GPU, such as `nvidia.com/mig-1g.5gb`."""
    return resource.startswith(MIG_PREFIX)


def is_accelerator(resource: ResourceName) -> bool:
    """Return whether `resource` is a GPU, a slice of one, or a Neuron device."""
    return resource in _WHOLE_ACCELERATORS or resource.startswith(MIG_PREFIX)


@lru_cache(maxsize=4096)
def _parse_text(text: str, *, milli: bool) -> int:
    return _base_units(_number(text), milli=milli)


def _number(text: str) -> Decimal:
    # Not the client library's reader: the function that plans has no use for the rest of it, and it is 100 MiB.
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a Kubernetes quantity")
    number = Decimal(found["number"] + (found["exponent"] or ""))
    return number * _FACTORS[found["suffix"] or ""]


def _base_units(number: Decimal, *, milli: bool) -> int:
    scaled = number * 1000 if milli else number
    return UNLIMITED if scaled >= UNLIMITED else int(scaled.to_integral_value(rounding=ROUND_CEILING))


def _scaled(amount: int, base: int, suffixes: tuple[str, ...]) -> str:
    """Divide by `base` as long as nothing is lost: the largest suffix that keeps the number whole."""
    power = 0
    while amount and power + 1 < len(suffixes) and amount % base == 0:
        amount //= base
        power += 1
    return f"{amount}{suffixes[power]}"
