"""Amounts as people read them, in words; `units` has the unit in which a number is shown."""

from collections.abc import Mapping
from typing import Final

from taskgov.quantities import GPU, NEURON_DEVICE, ResourceName, format_quantity, is_accelerator, is_mig

_NOUNS: Final = {GPU: "GPU", NEURON_DEVICE: "Neuron device"}


def words(resource: ResourceName, amount: int) -> str:
    """Return an amount as people say it.

    Example:
        >>> words("nvidia.com/gpu", 1), words("nvidia.com/gpu", 8), words("cpu", 4000), words("memory", 32 * 2**30)
        ('1 GPU', '8 GPUs', '4 cpu', '32Gi memory')
        >>> words("nvidia.com/mig-1g.5gb", 2)
        '2 x mig-1g.5gb'

    """
    if is_mig(resource):
        return f"{amount} x {resource.removeprefix('nvidia.com/')}"
    noun = _NOUNS.get(resource)
    if noun is None:
        return f"{format_quantity(resource, amount)} {resource}"
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def all_words(amounts: Mapping[ResourceName, int]) -> str:
    """Return amounts in words, accelerators first; nothing is said of what is zero."""
    some = sorted(
        (name for name, amount in amounts.items() if amount), key=lambda name: (not is_accelerator(name), name)
    )
    return ", ".join(words(name, amounts[name]) for name in some) or "nothing"


def accelerators(amounts: Mapping[ResourceName, int]) -> int:
    """Return how many accelerators these are; a partition of one counts as one."""
    return sum(amount for name, amount in amounts.items() if is_accelerator(name))
