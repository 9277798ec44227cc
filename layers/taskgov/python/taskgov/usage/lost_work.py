"""How much work did each preemption throw away, at most? Accelerators times seconds since admission.

A checkpoint makes the loss smaller. While the workload still holds its quota, its condition `Admitted` says since when
it ran. After that Kueue keeps only the sum over all its admissions (`SyncAdmittedCondition` in `pkg/workload`), which
is the time of this one as long as it was evicted once. Otherwise it is unknown, and nothing is guessed.
"""

from collections.abc import Iterable, Mapping

from taskgov.usage.workload_facts import WorkloadFacts
from taskgov.usage.workloads import Preemption

LostWork = Mapping[str, float]
"""Identity of a preemption -> GPU-seconds, where they are known."""


def lost_work(preemptions: Iterable[Preemption], workloads: Iterable[WorkloadFacts]) -> LostWork:
    """Return the GPU-seconds of each preemption of which they are known."""
    past = {workload.uid: workload.past_seconds for workload in workloads}
    ran = {
        preemption.identity: (preemption, _seconds(preemption, past.get(preemption.uid))) for preemption in preemptions
    }
    return {key: preemption.accelerators * seconds for key, (preemption, seconds) in ran.items() if seconds is not None}


def _seconds(preemption: Preemption, past: float | None) -> float | None:
    if preemption.ran_since is None:
        return past
    return max(0.0, (preemption.at - preemption.ran_since).total_seconds())
