"""What does Kueue govern? Its API objects as plain frozen values, free of API versions and of quantity texts.

`reading` makes them from Kubernetes objects; every other module of this room works on them. Amounts are base units of
`taskgov.quantities`, moments are `instants.Instant`. A flavor and resource together are one text, `flavor/resource`:
one dictionary key for the pair, hashed once (flavor names have no slash).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from taskgov.scheduling.instants import ZERO, Instant

if TYPE_CHECKING:
    from collections.abc import Mapping

FlavorResource = str
Usage = dict[FlavorResource, int]

NEVER: Final = "Never"
ANY: Final = "Any"
LOWER_PRIORITY: Final = "LowerPriority"
LOWER_OR_NEWER_EQUAL: Final = "LowerOrNewerEqualPriority"
STRICT_FIFO: Final = "StrictFIFO"
BEST_EFFORT_FIFO: Final = "BestEffortFIFO"
TRY_NEXT_FLAVOR: Final = "TryNextFlavor"
MAY_STOP_SEARCH: Final = "MayStopSearch"
PREEMPTION_OVER_BORROWING: Final = "PreemptionOverBorrowing"
BORROWING_OVER_PREEMPTION: Final = "BorrowingOverPreemption"
CHECK_PENDING: Final = "Pending"
RESTARTS: Final[Mapping[str, tuple[str, str]]] = {
    "ClusterQueueStopped": ("ClusterQueueRestarted", "The ClusterQueue was restarted after being stopped"),
    "LocalQueueStopped": ("LocalQueueRestarted", "The LocalQueue was restarted after being stopped"),
    "Deactivated": ("Reactivated", "The workload was reactivated"),
}
"""What keeps a workload out until it is over, and what is said of it then (`pkg/controller/core` of Kueue)."""
CHECK_READY: Final = "Ready"
CHECK_RETRY: Final = "Retry"
CHECK_REJECTED: Final = "Rejected"


@lru_cache(maxsize=65_536)
def flavor_resource(flavor: str, resource: str) -> FlavorResource:
    """Join a flavor and a resource into one key.

    Example:
        >>> flavor_resource("ml.p5.48xlarge", "nvidia.com/gpu")
        'ml.p5.48xlarge/nvidia.com/gpu'

    """
    return f"{flavor}/{resource}"


def split(key: FlavorResource) -> tuple[str, str]:
    """Give back the flavor and the resource of a key."""
    flavor, _, resource = key.partition("/")
    return flavor, resource


@lru_cache(maxsize=65_536)
def resource_of(key: FlavorResource) -> str:
    """Give back the resource of a key.

    Example:
        >>> resource_of("ml.p5.48xlarge/nvidia.com/gpu")
        'nvidia.com/gpu'

    """
    return key.partition("/")[2]


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a flavor's nodes."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """What a pod puts up with; an empty key with `Exists` tolerates everything, an empty effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a label selector or of a node affinity term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector; without requirements it matches everything."""

    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceFlavor:
    """A kind of nodes: the labels that select them, their taints, and tolerations added to pods that use them."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class Quota:
    """What a queue or cohort has of one flavor and resource; a limit of `None` means no limit."""

    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Resources that are always given from the same flavor, and the flavors to try, in order."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BorrowWithinCohort:
    """Whom a borrowing workload may preempt in other queues (classical preemption only)."""

    policy: str = NEVER
    max_priority_threshold: int | None = None


@dataclass(frozen=True, slots=True)
class Preemption:
    """Which workloads the queue may preempt. An empty policy is an unset one and acts as `Never`."""

    within_cluster_queue: str = NEVER
    reclaim_within_cohort: str = NEVER
    borrow_within_cohort: BorrowWithinCohort | None = None


@dataclass(frozen=True, slots=True)
class Fungibility:
    """When to try the next flavor instead of borrowing or preempting in this one."""

    when_can_borrow: str = MAY_STOP_SEARCH
    when_can_preempt: str = TRY_NEXT_FLAVOR
    preference: str = BORROWING_OVER_PREEMPTION


@dataclass(frozen=True, slots=True)
class Cohort:
    """A group of queues and cohorts that lend to one another."""

    name: str
    parent: str | None = None
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """A team's quota and the rules of its queue; a selector of `None` admits no namespace.

    `fair_admission` is `admissionScope` with `UsageBasedAdmissionFairSharing`.
    """

    name: str
    cohort: str | None = None
    groups: tuple[ResourceGroup, ...] = ()
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    strategy: str = BEST_EFFORT_FIFO
    namespace_selector: Selector | None = None
    preemption: Preemption = Preemption()
    fungibility: Fungibility = Fungibility()
    weight: float = 1.0
    stop_policy: str = "None"
    fair_admission: bool = False
    checks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Admission checks by name, with the flavors that each applies to; none means all flavors of the queue."""


@dataclass(frozen=True, slots=True)
class CheckState:
    """What an admission check says of a workload: `Pending`, `Ready`, `Retry` or `Rejected`, and since when.

    `requeue_after` is how many seconds after a `Retry` the workload may come back; `retries` counts them.
    """

    state: str
    message: str = ""
    since: Instant = ZERO
    requeue_after: int | None = None
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """A namespace's entry to a cluster queue. Its weight counts where LocalQueues take turns (`fair_admission`)."""

    namespace: str
    name: str
    cluster_queue: str
    stop_policy: str = "None"
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of one shape: per-pod requests and what they ask of nodes.

    `min_count` allows fewer pods; pod sets of one `group` get the same flavors. `layout` distinguishes pods that
    request the same by other means: Kueue takes only workloads of one shape for equals (`computeSchedulingHash` in
    `pkg/workload/workload.go`).
    """

    name: str
    count: int
    requests: tuple[tuple[str, int], ...]
    min_count: int | None = None
    node_selector: tuple[tuple[str, str], ...] = ()
    affinity: tuple[tuple[Requirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    group: str | None = None
    layout: str = ""


@dataclass(frozen=True, slots=True)
class PodSetAdmission:
    """The flavors and the quota that pods of one pod set hold."""

    name: str
    count: int
    flavors: Mapping[str, str]
    usage: Mapping[str, int]


class Admission(NamedTuple):
    """Where a workload runs: its queue, and what each pod set holds there."""

    cluster_queue: str
    pod_sets: tuple[PodSetAdmission, ...]


class Condition(NamedTuple):
    """One entry of `status.conditions`; `since` is `lastTransitionTime`. The message becomes text when it is read."""

    status: bool
    reason: str
    message: object
    since: Instant


@dataclass(slots=True)
class Workload:
    """A job as Kueue sees it: what it requests, where, and since when. Nobody changes one.

    Python does not enforce that here, unlike for the others: tens of thousands are made, in half the time without it.

    `gates` is the annotation `admission-gated-by`; `replaces` is the key of the slice that this one takes the place of
    (annotation `workload-slice-replacement-for`). `source` is the Kubernetes object it was read from, given back (with
    a new status) when the workload is written.
    `refusal` is why Kueue refuses it, whatever quota there is; `completion` distinguishes what was added to its pods.
    """

    namespace: str
    name: str
    queue: str
    pod_sets: tuple[PodSet, ...]
    priority: int = 0
    created: Instant = ZERO
    uid: str = ""
    job_uid: str = ""
    priority_class: str | None = None
    active: bool = True
    reclaimable: tuple[tuple[str, int], ...] = ()
    completion: str = ""
    refusal: str = field(default="", compare=False)
    gates: str = ""
    replaces: str = ""
    source: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> str:
        """`namespace/name`, as Kueue keys workloads; the name alone where there is no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
