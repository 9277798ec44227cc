"""How much more quota lets a waiting workload run? The least, in accelerators, whole vCPUs and whole GiB.

The quota is raised as it is written, and its queue is rendered from it as HyperPod would (`Trial.with_quota`): vCPU and
memory follow by ratio, and a borrow limit in percent rises with the quota. First an amount is looked for that suffices,
then each of its parts is halved back to the least that does.

| said | holds |
| --- | --- |
| the amounts suffice | always: that world was tried |
| none of them can be one unit smaller | always: that world was tried too |
| no amount that is much smaller suffices | unless more quota makes the model lose a preemption that less quota had |
"""

from collections.abc import Callable, Mapping
from typing import Final

from taskgov.quantities import CPU, EFA, GIBIBYTE, GPU, MEMORY, is_accelerator, is_mig
from taskgov.scheduling.objects import FlavorResource, flavor_resource, split
from taskgov_explain.trial import Trial, accelerators_in, fewest_accelerators

Amounts = dict[FlavorResource, int]
"""Base units by `instance type/resource`."""

_ROUNDS: Final = 8
"""How often an amount is enlarged: one resource may hide the lack of another."""
_UNITS: Final = {CPU: 1000, MEMORY: GIBIBYTE}
"""The units in which a quota rises; accelerators rise one by one."""


def least_more_quota(trial: Trial) -> Amounts | None:
    """Return the least that the team's quota has to rise by, with the fewest accelerators.

    None where no quota helps, and where it would run with today's if others did not come first.
    """
    found = []
    today = trial.with_quota({})
    if trial.runs(today)[0]:
        return None
    for instance_type in sorted(trial.missing_by_flavor(today)):
        enough = _enough(trial, instance_type)
        if enough is not None:
            found.append(least(enough, lambda added: trial.runs(trial.with_quota(added))[0]))
    return min(found, key=lambda added: (accelerators_in(added), len(added), sorted(added.items())), default=None)


def least(enough: Mapping[FlavorResource, int], suffices: Callable[[Amounts], bool]) -> Amounts:
    """Return the least of amounts that suffice, accelerators first: each fails when it is one unit smaller.

    Example:
        >>> least({"t/nvidia.com/gpu": 9, "t/cpu": 4000}, lambda added: added.get("t/nvidia.com/gpu", 0) > 2)
        {'t/nvidia.com/gpu': 3}

    """
    added = _lowered(enough, suffices)
    # Several amounts: each was tried beside the others as they were then, so all are tried again beside the last.
    while len(added) > 1 and (lower := _lowered(added, suffices)) != added:
        added = lower
    return added


def _lowered(enough: Mapping[FlavorResource, int], suffices: Callable[[Amounts], bool]) -> Amounts:
    """Halve each amount in turn back to the least that suffices beside the others; 0 is left out."""
    added = dict(enough)
    for key in sorted(added, key=lambda key: (not is_accelerator(split(key)[1]), key)):
        unit = unit_of(key)
        short, long = -1, -(-added[key] // unit)
        while long - short > 1:
            middle = (short + long) // 2
            if suffices({**added, key: middle * unit}):
                long = middle
            else:
                short = middle
        added[key] = long * unit
    return {key: amount for key, amount in added.items() if amount}


def unit_of(key: FlavorResource) -> int:
    """Return the base units in one unit of what is said: an accelerator, a vCPU, a GiB."""
    return _UNITS.get(split(key)[1], 1)


def _enough(trial: Trial, instance_type: str) -> Amounts | None:
    """Return an amount that suffices, on one instance type as far as possible."""
    added: Amounts = {}
    for _ in range(_ROUNDS):
        world = trial.with_quota(added)
        if added and trial.runs(world)[0]:
            return added
        by_flavor = trial.missing_by_flavor(world)
        chosen = instance_type if instance_type in by_flavor else fewest_accelerators(by_flavor)
        more = None if chosen is None else _more(trial, added, chosen, by_flavor[chosen])
        if more is None:
            return None
        added |= more
    return None


def _more(trial: Trial, added: Amounts, instance_type: str, lacks: Mapping[FlavorResource, int]) -> Amounts | None:
    """Return the parts to raise next: accelerators, which bring the rest by ratio, else one of the rest."""
    if trial.quota is None:
        return {key: added.get(key, 0) + _in_units(key, amount) for key, amount in lacks.items()}
    instance = trial.table.require(instance_type)
    offers, missing = instance.amounts(), {split(key)[1]: amount for key, amount in lacks.items()}
    if any(not offers.get(GPU if is_mig(resource) else resource) for resource in missing):
        return None  # whatever the quota is, no such machine has it
    if any(map(is_accelerator, missing)):
        raising = {resource: amount for resource, amount in missing.items() if is_accelerator(resource)}
        return {key: added.get(key, 0) + raising[split(key)[1]] for key in lacks if split(key)[1] in raising}
    resource = CPU if CPU in missing else MEMORY
    if resource not in missing:  # only interfaces, which nobody promises: they follow by ratio
        resource = instance.accelerator_resource if instance.accelerators else CPU
        missing[resource] = -(-missing[EFA] * offers[resource] // offers[EFA])
    key = flavor_resource(instance_type, resource)
    risen = trial.risen(added, key) if resource in _UNITS else added.get(key, 0)
    return {key: _in_units(key, risen + missing[resource])}


def _in_units(key: FlavorResource, amount: int) -> int:
    """Round up to whole units."""
    return -(-amount // unit_of(key)) * unit_of(key)
