"""What does a whole cluster come to, in one line? Part of each report, and of the record of earlier audits."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Totals:
    """The cluster in one line: accelerators of all instance types together, or cores when there are none."""

    unit: str
    """`GPUs` (accelerators of every kind) or `cores`."""
    healthy: float
    guaranteed: float
    used: float
    borrowed: float
    idle: float
    over_quota: float
    pending_workloads: int
    pending_gpus: int
    preemptions: int
