"""How much work did each preemption throw away, at most? Accelerators times seconds since admission.

A checkpoint makes the loss smaller. While the workload still holds its quota, its condition `Admitted` says since when
it ran. After that Kueue keeps only the sum over all its admissions (`SyncAdmittedCondition` in `pkg/workload`), which
is the time of this one as long as it was evicted once. Otherwise nobody can tell, and nothing is guessed.
"""

from collections.abc import Iterable, Mapping

from taskgov.kueue.workloads import Preemption
from taskgov.snapshot.model import KubernetesObject

LostWork = Mapping[str, float]
"""Identity of a preemption -> GPU-seconds, where they are known."""

_PAST_SECONDS = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
"""The field as v1beta2 spells it, and as v1beta1 does."""


def lost_work(preemptions: Iterable[Preemption], workloads: Iterable[KubernetesObject]) -> LostWork:
    """Return the GPU-seconds of each preemption of which they are known."""
    statuses = {str(each["metadata"].get("uid")): each.get("status") or {} for each in workloads}
    ran = {each.identity: (each, _seconds(each, statuses.get(each.uid, {}))) for each in preemptions}
    return {key: each.accelerators * seconds for key, (each, seconds) in ran.items() if seconds is not None}


def _seconds(preemption: Preemption, status: KubernetesObject) -> float | None:
    if preemption.ran_since is not None:
        return max(0.0, (preemption.at - preemption.ran_since).total_seconds())
    evictions = (status.get("schedulingStats") or {}).get("evictions") or ()
    if sum(int(each.get("count", 0)) for each in evictions) != 1:
        return None
    return next((float(status[name]) for name in _PAST_SECONDS if name in status), None)
