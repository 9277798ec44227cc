"""Why does a workload wait, or leave? Kueue's reasons and texts, in one place.

A reason is kept as its numbers and becomes text only when somebody reads it. Texts: `flavorassigner.go`,
`preemption.go` and `scheduler.go` of Kueue 0.19.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from taskgov.quantities import format_quantity

if TYPE_CHECKING:
    from taskgov.scheduling.objects import Taint


class Blocker(IntEnum):
    """Why nothing fits, from the least to the most severe; the names are the condition reasons of newer Kueue."""

    NONE = 0
    WAITING_FOR_QUOTA = 1
    EXCEEDS_MAX_QUOTA = 2
    NO_MATCHING_FLAVOR = 3

    @property
    def token(self) -> str:
        """The reason as conditions spell it, e.g. `ExceedsMaxQuota`; empty for none."""
        return "" if self is Blocker.NONE else "".join(word.capitalize() for word in self.name.split("_"))


class InsufficientQuota(NamedTuple):
    """More than the queue could ever get of this flavor."""

    resource: str
    flavor: str
    before: int
    request: int
    capacity: int

    @property
    def blocker(self) -> Blocker:
        """How severe this is."""
        return Blocker.EXCEEDS_MAX_QUOTA

    def __str__(self) -> str:
        before, request, capacity = (
            format_quantity(self.resource, amount) for amount in (self.before, self.request, self.capacity)
        )
        return (
            f"insufficient quota for {self.resource} in flavor {self.flavor}, previously considered podsets requests "
            f"({before}) + current podset request ({request}) > maximum capacity ({capacity})"
        )


class InsufficientUnusedQuota(NamedTuple):
    """More than is free at the moment."""

    resource: str
    flavor: str
    missing: int

    @property
    def blocker(self) -> Blocker:
        """How severe this is."""
        return Blocker.WAITING_FOR_QUOTA

    def __str__(self) -> str:
        missing = format_quantity(self.resource, self.missing)
        return f"insufficient unused quota for {self.resource} in flavor {self.flavor}, {missing} more needed"


class ResourceUnavailable(NamedTuple):
    """The queue has no quota for the resource at all."""

    resource: str

    @property
    def blocker(self) -> Blocker:
        """How severe this is."""
        return Blocker.NO_MATCHING_FLAVOR

    def __str__(self) -> str:
        return f"resource {self.resource} unavailable in ClusterQueue"


class FlavorNotFound(NamedTuple):
    """The queue names a flavor that does not exist."""

    flavor: str

    @property
    def blocker(self) -> Blocker:
        """How severe this is."""
        return Blocker.NO_MATCHING_FLAVOR

    def __str__(self) -> str:
        return f"flavor {self.flavor} not found"


class UntoleratedTaint(NamedTuple):
    """The pods do not tolerate the flavor's nodes."""

    taint: Taint
    flavor: str

    @property
    def blocker(self) -> Blocker:
        """How severe this is."""
        return Blocker.NO_MATCHING_FLAVOR

    def __str__(self) -> str:
        taint = self.taint
        return f"untolerated taint {{{taint.key} {taint.value} {taint.effect} <nil>}} in flavor {self.flavor}"


class AffinityMismatch(NamedTuple):
    """The pods ask for other nodes."""

    flavor: str

    @property
    def blocker(self) -> Blocker:
        """How severe this is."""
        return Blocker.NO_MATCHING_FLAVOR

    def __str__(self) -> str:
        return f"flavor {self.flavor} doesn't match node affinity"


class SliceElsewhere(NamedTuple):
    """A slice keeps the flavor of the slice that it replaces; an empty `before` is a resource that one does not use."""

    flavor: str
    before: str

    @property
    def blocker(self) -> Blocker:
        """How severe this is."""
        return Blocker.NO_MATCHING_FLAVOR

    def __str__(self) -> str:
        return f"could not assign {self.flavor} flavor since the original workload is assigned: {self.before}"


class NotNominated(NamedTuple):
    """A second attempt within a cycle uses only the flavors of the first."""

    flavor: str
    resource: str

    @property
    def blocker(self) -> Blocker:
        """How severe this is."""
        return Blocker.WAITING_FOR_QUOTA

    def __str__(self) -> str:
        return (
            f"skipping flavor {self.flavor} as it is not found in the nomination mapping for resource {self.resource}"
        )


Reason = (
    InsufficientQuota
    | InsufficientUnusedQuota
    | ResourceUnavailable
    | FlavorNotFound
    | UntoleratedTaint
    | AffinityMismatch
    | SliceElsewhere
    | NotNominated
)

IN_CLUSTER_QUEUE: Final = "InClusterQueue"
IN_COHORT_RECLAMATION: Final = "InCohortReclamation"
IN_COHORT_FAIR_SHARING: Final = "InCohortFairSharing"
IN_COHORT_RECLAIM_WHILE_BORROWING: Final = "InCohortReclaimWhileBorrowing"

SLICE_REPLACED: Final = "WorkloadSliceReplaced"
SLICE_GIVEN_UP: Final = "Replaced to accommodate a new workload slice"

_DUE_TO: Final = {
    IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    IN_COHORT_RECLAMATION: "reclamation within the cohort",
    IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}

OVERLAPPING: Final = "Workload has overlapping preemption targets with another workload"
DEFERRED: Final = f"{OVERLAPPING}, but will fit after these preemptions complete"
NO_LONGER_FITS: Final = "Workload no longer fits after processing another workload"
NAMESPACE_MISMATCH: Final = "workload namespace doesn't match ClusterQueue selector"
PODS_NOT_READY: Final = "waiting for all admitted workloads to be in PodsReady condition"
NO_RESERVATION: Final = "The workload has no reservation"

UNSATISFIED_CHECKS: Final = "The workload has not all checks ready"
FAILED_CHECKS: Final = "The workload has failed admission checks"
GATE_CLEARED: Final = "AdmissionGatedBy cleared, waiting for quota reservation"
HOLD_CLEARED: Final = "Workload no longer on hold; waiting for quota reservation"

PENDING: Final = "Pending"
ON_HOLD: Final = "OnHold"
ADMISSION_GATED: Final = "AdmissionGated"
WAITING_FOR_QUOTA: Final = "WaitingForQuota"
WAITING_FOR_PREEMPTED: Final = "WaitingForPreemptedWorkloads"
MISCONFIGURED: Final = "Misconfigured"
WAITING: Final = "Waiting"
WAITING_FOR_PODS_READY: Final = "WaitingForPodsReady"
PENDING_EVALUATION: Final = "PendingEvaluation"


def preempted_message(reason: str, uid: str, job_uid: str, preemptor_path: str, preemptee_path: str) -> str:
    """Say for whom and why a workload was preempted; an empty uid reads UNKNOWN.

    Example:
        >>> preempted_message(IN_CLUSTER_QUEUE, "u1", "", "/pool/a", "/pool/a")[:63]
        'Preempted to accommodate a workload (UID: u1, JobUID: UNKNOWN) '

    """
    return (
        f"Preempted to accommodate a workload (UID: {uid or 'UNKNOWN'}, JobUID: {job_uid or 'UNKNOWN'}) "
        f"due to {_DUE_TO[reason]}; preemptor path: {preemptor_path}; preemptee path: {preemptee_path}"
    )


def replaced_message(uid: str, job_uid: str) -> str:
    """Say for which slice of its job a slice was finished (`replaceWorkloadSlice` in `pkg/scheduler/scheduler.go`).

    Example:
        >>> replaced_message("u2", "j")
        'Replaced to accommodate a workload (UID: u2, JobUID: j) due to workload slice aggregation'

    """
    return f"Replaced to accommodate a workload (UID: {uid}, JobUID: {job_uid}) due to workload slice aggregation"
