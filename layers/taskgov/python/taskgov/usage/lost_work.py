"""How much work did each preemption throw away, at most? Accelerators times seconds since admission.

A checkpoint makes the loss smaller. While the workload still holds its quota, its condition `Admitted` says since when
it ran. After that Kueue keeps only the sum over all its admissions (`SyncAdmittedCondition` in `pkg/workload`), which
is the time of this one as long as it was evicted once. Otherwise nobody can tell, and nothing is guessed.
"""

from collections.abc import Iterable, Mapping

from taskgov.snapshot.model import KubernetesObject
from taskgov.usage.workloads import Preemption

LostWork = Mapping[str, float]
"""Identity of a preemption -> GPU-seconds, where they are known."""

_PAST_SECONDS = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
"""The field as v1beta2 spells it, and as v1beta1 does."""


def lost_work(preemptions: Iterable[Preemption], workloads: Iterable[KubernetesObject]) -> LostWork:
    """Return the GPU-seconds of each preemption of which they are known."""
    statuses = {str(workload["metadata"].get("uid")): workload.get("status") or {} for workload in workloads}
    ran = {
        preemption.identity: (preemption, _seconds(preemption, statuses.get(preemption.uid, {})))
        for preemption in preemptions
    }
    return {key: preemption.accelerators * seconds for key, (preemption, seconds) in ran.items() if seconds is not None}


def _seconds(preemption: Preemption, status: KubernetesObject) -> float | None:
    if preemption.ran_since is not None:
        return max(0.0, (preemption.at - preemption.ran_since).total_seconds())
    evictions = (status.get("schedulingStats") or {}).get("evictions") or ()
    if sum(int(eviction.get("count", 0)) for eviction in evictions) != 1:
        return None
    return next((float(status[name]) for name in _PAST_SECONDS if name in status), None)
