"""The one dominant reason for where a workload stands: an ordered vocabulary.

The order is that of Kueue's KEP-10852 (granular reasons of `QuotaReserved=False`), with what a governed cluster shows
beyond Kueue: `NotGoverned`, `RequestNeverFits`, and the reasons of workloads that hold quota. The first that holds is
the one that is given: whatever comes later does not matter as long as it lasts.
"""

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why a workload stands where it stands, the dominant one first."""

    FINISHED = "Finished"
    NOT_GOVERNED = "NotGoverned"
    """It names no queue: it uses no quota, and none is reserved for it."""
    DEACTIVATED = "Deactivated"
    """Somebody (or a limit of retries) set `spec.active` to false."""
    ON_HOLD = "OnHold"
    """Its LocalQueue or ClusterQueue is stopped, or its job needs no quota now."""
    MISCONFIGURED = "Misconfigured"
    """The way to its quota is broken: no LocalQueue, no ClusterQueue, a missing flavor, a namespace not selected."""
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    """No instance type of its queue suits its pods."""
    REQUEST_NEVER_FITS = "RequestNeverFits"
    """One of its pods requests more than any node of the cluster offers."""
    SUSPENDED = "Suspended"
    """It was evicted and has to stay out of the queue for a while, or Kueue says so."""
    ADMISSION_GATED = "AdmissionGated"
    """Somebody else has to agree first: an admission gate, or an admission check."""
    WAITING_FOR_PODS_READY = "WaitingForPodsReady"
    """Its pods, or those of a workload before it, did not become ready in time."""
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    """It requests more than its queue could ever have, with all that it may borrow."""
    WAITING_FOR_QUOTA = "WaitingForQuota"
    """It requests more than is free for its queue now."""
    WAITING_FOR_PREEMPTED_WORKLOADS = "WaitingForPreemptedWorkloads"
    """Others were preempted for it and have not stopped yet."""
    PENDING_EVALUATION = "PendingEvaluation"
    """Nothing stands in its way: the scheduler has not considered it yet."""
    BEING_PREEMPTED = "BeingPreempted"
    """It was evicted and still holds its quota."""
    ADMITTED_WAITING_FOR_NODES = "AdmittedWaitingForNodes"
    """It has its quota, and there are too few healthy nodes for its pods."""
    ADMITTED = "Admitted"


ESTIMATED: Final = frozenset(
    {Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_PREEMPTED_WORKLOADS, Reason.PENDING_EVALUATION}
)
"""Those who wait for nothing but their turn. The others start once somebody changes something, or run."""
