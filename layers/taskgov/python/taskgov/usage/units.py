"""The name and unit in which people and metrics see a resource. Internally, cpu is in milli and memory in bytes."""

from collections.abc import Sequence

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


def short_resource(resource: ResourceName) -> str:
    """Return a resource's name as people say it.

    >>> [short_resource(name) for name in ("nvidia.com/gpu", "vpc.amazonaws.com/efa", "nvidia.com/mig-1g.5gb", "cpu")]
    ['GPU', 'EFA', 'MIG 1g.5gb', 'CPU']
    """
    last = _last(resource)
    spoken = {"gpu": "GPU", "efa": "EFA", "cpu": "CPU", "neurondevice": "Neuron device"}
    if last.startswith("mig-"):
        return f"MIG {last.removeprefix('mig-')}"
    return spoken.get(last, last)


def in_metrics(resource: ResourceName, amount: int) -> float | int:
    """Return cores for cpu, and base units (bytes, devices) for everything else."""
    return amount / 1000 if resource == CPU else amount


def all_in_metrics(resource: ResourceName, amounts: Sequence[int]) -> Sequence[float]:
    """Return the same for several amounts."""
    return [amount / 1000 for amount in amounts] if resource == CPU else amounts


def metric_name(resource: ResourceName) -> str:
    """Return a name that CloudWatch Logs Insights can query without quoting.

    >>> metric_name("vpc.amazonaws.com/efa"), metric_name("ephemeral-storage"), metric_name("nvidia.com/mig-1g.5gb")
    ('efa', 'ephemeral_storage', 'mig_1g_5gb')
    """
    return _last(resource).replace("-", "_").replace(".", "_")


def _last(resource: ResourceName) -> str:
    return resource.rsplit("/", 1)[-1]
