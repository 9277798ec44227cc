"""In which unit do people read a resource? Base units (cpu in milli, memory in bytes) stay inside."""

from taskgov.quantities import CPU, EPHEMERAL_STORAGE, GIBIBYTE, MEMORY, ResourceName


def unit_of(resource: ResourceName) -> str:
    """Return the unit of `readable`: `cores`, `GiB`, or nothing for what is counted.

    >>> [unit_of(name) for name in ("cpu", "memory", "nvidia.com/gpu")]
    ['cores', 'GiB', '']
    """
    return {CPU: "cores", MEMORY: "GiB", EPHEMERAL_STORAGE: "GiB"}.get(resource, "")


def readable(resource: ResourceName, amount: int) -> float:
    """Return an amount in the unit that people read.

    >>> readable("cpu", 1500), readable("memory", 2**31), readable("nvidia.com/gpu", 8)
    (1.5, 2.0, 8.0)
    """
    return amount / {CPU: 1000, MEMORY: GIBIBYTE, EPHEMERAL_STORAGE: GIBIBYTE}.get(resource, 1)
