"""Which slice of an elastic job ends for good when it is evicted? One whose place another slice of the job takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskgov.scheduling.objects import Workload
    from taskgov.scheduling.state import Record
    from taskgov.scheduling.workload_store import WorkloadStore


def gives_way(store: WorkloadStore, record: Record) -> bool:
    """Return whether a slice that is evicted ends for good, because another slice of its job is there to run.

    Kueue: `normalizeActiveSlices` in `pkg/workloadslicing/workloadslicing.go`, which orders the slices of one owner.
    """
    if not store.slices or not store.config.gate("ElasticJobsViaWorkloadSlices"):
        return False
    owners = _owners(record.workload)
    return bool(owners) and any(
        other.workload.replaces == record.key
        and not other.finished
        and not other.evicted
        and owners & _owners(other.workload)
        for other in store.slices.values()
    )


def _owners(workload: Workload) -> set[str]:
    """Return the UIDs of the jobs that a workload belongs to."""
    metadata = (workload.source or {}).get("metadata") or {}
    return {owner["uid"] for owner in metadata.get("ownerReferences") or () if "uid" in owner}
