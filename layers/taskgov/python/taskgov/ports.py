"""What the use cases need from the world. Adapters implement it; each has an in-memory twin for tests."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from taskgov.contracts.steps import Cause, Pointer
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.snapshot.identity import StateStamp
from taskgov.snapshot.model import (
    AppliedPolicy,
    AppliedQuota,
    Authorship,
    KubernetesObject,
    KueueObjects,
    QuotaEdit,
    RefusedWrite,
)
from taskgov.snapshot.unreadable import UnreadableItem, UnreadableObject

OnUnreadable = Callable[[UnreadableItem], None]
"""Takes note of an item that cannot be read."""
OnUnreadableObject = Callable[[UnreadableObject], None]
"""Takes note of what SageMaker says in a form that cannot be read; without it that is an UnreadableObjectError."""


class Clock(Protocol):
    """The time of day."""

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How to reach a cluster's Kubernetes API: the ARN of the EKS cluster that orchestrates it."""

    eks_cluster_arn: str


class KubernetesApi(Protocol):
    """Reads of one cluster's Kubernetes API, as raw objects trimmed to what decisions use."""

    def nodes(self, cluster: ClusterAccess) -> list[KubernetesObject]:
        """Return the Node objects. Raises ThrottledError, UpstreamError, NotFoundError."""
        ...

    def kueue_objects(self, cluster: ClusterAccess) -> KueueObjects:
        """Return Kueue's objects. Raises ThrottledError, UpstreamError, NotFoundError."""
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """What a write of a quota or scheduler config gave: its id and the version that holds now."""

    resource_id: str
    version: int


class QuotaStore(Protocol):
    """Who keeps a cluster's quotas and its policy. Every method raises ThrottledError, UpstreamError, NotFoundError."""

    def quotas(self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None) -> tuple[ComputeQuota, ...]:
        """Return the cluster's compute quotas, by name."""
        ...

    def quota(self, compute_quota_id: str) -> ComputeQuota:
        """Return one compute quota at its current version."""
        ...

    def scheduler_config(
        self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None
    ) -> ClusterSchedulerConfig | None:
        """Return the cluster policy, or None when the cluster has none."""
        ...

    def scheduler_config_by_id(self, scheduler_config_id: str) -> ClusterSchedulerConfig:
        """Return one cluster policy at its current version."""
        ...

    def create_quota(
        self, cluster_arn: str, name: str, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        """Create a quota. Raises ConflictError when the name or the team has one, InvalidRequestError."""
        ...

    def update_quota(
        self, quota_id: str, target_version: int, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        """Replace a quota's config, only at `target_version`. Raises ConflictError when it is stale."""
        ...

    def delete_quota(self, quota_id: str) -> None:
        """Delete a quota: only to take back what a failed run created."""
        ...

    def create_scheduler_config(self, cluster_arn: str, name: str, config: SchedulerConfig) -> Written:
        """Create the cluster policy. Raises ConflictError when there is one."""
        ...

    def update_scheduler_config(self, config_id: str, target_version: int, config: SchedulerConfig) -> Written:
        """Replace the cluster policy, only at `target_version`. Raises ConflictError when it is stale."""
        ...

    def delete_scheduler_config(self, config_id: str) -> None:
        """Delete a cluster policy: only to take back what a failed run created."""
        ...


class HyperPodApi(QuotaStore, Protocol):
    """All that is asked of a governed cluster beside its Kubernetes API: which there are, their nodes, their quotas."""

    def clusters(self, on_unreadable: OnUnreadableObject | None = None) -> list[str]:
        """Return the ARNs of the clusters of this account and Region."""
        ...

    def knows(self, cluster_arn: str) -> bool:
        """Say whether there is such a cluster, and it is one that can be governed."""
        ...

    def describe_cluster(self, cluster: str) -> Mapping[str, Any]:
        """Return DescribeCluster's answer for a name or ARN."""
        ...

    def cluster_nodes(self, cluster: str) -> list[Mapping[str, Any]]:
        """Return all summaries of ListClusterNodes."""
        ...


class Machines(Protocol):
    """What EC2 says of the machines of plain EKS clusters."""

    def states(self, cluster_arn: str, instance_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the state (`running`, `terminated`, ...) of each instance that EC2 has, by id; the others are missing.

        Raises ThrottledError, UpstreamError: also when EC2 refuses, or the cluster is in another Region.
        """
        ...


class ClusterTags(Protocol):
    """The tags of a cluster, by its SageMaker or EKS ARN. Raises NotFoundError, ThrottledError, UpstreamError."""

    def of(self, cluster_arn: str) -> Mapping[str, str]:
        """Return all tags."""
        ...

    def put(self, cluster_arn: str, key: str, value: str) -> None:
        """Set one tag; the others stay."""
        ...

    def remove(self, cluster_arn: str, key: str) -> None:
        """Take one tag away; one that is not there is fine."""
        ...


@dataclass(frozen=True, slots=True)
class PolicyText:
    """A stored policy document, as far as a document may go (`MAX_BYTES` and one more), and the version of it."""

    body: bytes
    version: str


class DocumentStore(Protocol):
    """Documents in the bucket. Raises NotFoundError, ThrottledError, UpstreamError."""

    def policy(self, cluster_name: str) -> PolicyText | None:
        """Return the cluster's policy document, or None when there is none."""
        ...

    def put(self, key: str, body: bytes, content_type: str) -> Pointer:
        """Store a document and return where it is, with its digest."""
        ...

    def get(self, pointer: Pointer) -> bytes:
        """Return a document; UpstreamError when its digest is not the pointer's."""
        ...

    def find(self, key: str) -> bytes | None:
        """Return what is stored at a key, or None."""
        ...

    def policy_names(self) -> tuple[str, ...]:
        """Return the names of the clusters that have a policy document, sorted."""
        ...


ENDED: Final = frozenset({"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"})
LOOKS_OLD_SECONDS: Final = 120
"""A living run renews its lock more often than that: whoever has not is asked about."""
LOCK_SECONDS: Final = 300
"""The lease of a cluster's lock. It is renewed before each write and in each wait, so a dead run blocks no longer."""


TURN_SECONDS: Final = 180
"""Longer than the function that tells may run: a turn that is over by the clock is nobody's any more."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of a cluster and its request for approval, as the table has them; None where there is nothing."""

    owner: str | None = None
    """The execution that holds it, or who wrote by hand."""
    fencing_token: int = 0
    expires: int | None = None
    """Epoch seconds; runs may take it after that. A lock without an end counts as run out."""
    asked_by: str | None = None
    """The execution that waits for an approval; it holds no lock meanwhile."""
    asked_until: int | None = None
    plan: Pointer | None = None
    """The plan that its holder began to write last."""

    def is_held(self, now: datetime) -> bool:
        """Say whether the lease still runs."""
        return self.owner is not None and self.expires is not None and self.expires > now.timestamp()

    def looks_old(self, now: datetime) -> bool:
        """Say whether its owner has not renewed it for longer than a living one does, or never said until when."""
        if self.owner is None:
            return False
        return self.expires is None or self.expires - LOCK_SECONDS + LOOKS_OLD_SECONDS <= now.timestamp()


@dataclass(frozen=True, slots=True)
class Dirty:
    """The state of a cluster after a hint was marked."""

    generation: int
    locked: bool
    lock: Lock = Lock()


@dataclass(frozen=True, slots=True)
class Execution:
    """What Step Functions says of an execution: `status` is RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED, ..."""

    arn: str
    status: str
    started_at: datetime

    @property
    def name(self) -> str:
        """The name, which is the last part of the ARN."""
        return self.arn.rpartition(":")[2]

    @property
    def is_over(self) -> bool:
        """Whether it has ended; one that was redriven runs again."""
        return self.status in ENDED

    @property
    def was_broken_off(self) -> bool:
        """Whether it was ended from outside: stopped, or by a time limit. One that failed came to its own end."""
        return self.status in {"ABORTED", "TIMED_OUT"}


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a run leaves behind."""

    cluster_arn: str
    run_id: str
    started_at: datetime
    ended_at: datetime
    outcome: str
    cause: Cause | None
    plan: Pointer | None
    plan_id: str | None
    applied: int
    error: str | None
    snapshot: Pointer | None = None
    """What the run saw; absent when it failed before it had read the cluster, or was asked for by a person."""
    written: tuple[str, ...] = ()
    """What it wrote (`Change.subject`), by all of its plans."""


class StateStore(Protocol):
    """The table: generations, locks, what was applied, who edited, records. Raises ThrottledError, UpstreamError."""

    def mark_dirty(self, cluster_arn: str, cluster_name: str, cause: Cause, now: datetime) -> Dirty:
        """Add one to the cluster's generation and tell whether a run holds the lock."""
        ...

    def generation(self, cluster_arn: str) -> int:
        """Return the generation, 0 for a cluster that was never marked (strongly consistent)."""
        ...

    def hold_lock(
        self, cluster_arn: str, owner: str, fencing_token: int, now: datetime, plan: Pointer | None = None
    ) -> None:
        """Extend the lease to LOCK_SECONDS from `now` if `owner` still holds the lock with this token.

        `plan` is kept beside the lock: the record of a run that is broken off points to it.

        One conditional write checks and extends; a lease that was ended is not extended. Raises LockLostError.
        """
        ...

    def lock_of(self, cluster_arn: str) -> Lock:
        """Return who holds the cluster's lock, strongly consistent."""
        ...

    def end_lease(self, cluster_arn: str, lock: Lock) -> bool:
        """Let the lease of this owner and token run out now; False when the lock is another's by now.

        The owner stays on the item until a run takes the lock over, so that ending it again finds the same.
        """
        ...

    def withdraw_request(self, cluster_arn: str, asked_by: str) -> bool:
        """Let the request for approval of this execution end now; False when another one asks by now."""
        ...

    def last_run(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[str, datetime] | None:
        """Return the id and the end of the run whose record is the newest, or None."""
        ...

    def stamp(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> StateStamp | None:
        """Return the identity of the cluster's records, or None before the first look of a run."""
        ...

    def record_stamp(self, cluster_arn: str, stamp: StateStamp) -> None:
        """Keep the identity of the cluster's records; one of the same lineage that arrives late changes nothing."""
        ...

    def new_lineage(self) -> str:
        """Return a lineage that no other state has."""
        ...

    def stop_switch(self) -> bool | None:
        """Return whether the stop switch is on; None when it cannot be read."""
        ...

    def authorship(self, cluster_name: str, version: str) -> Authorship | None:
        """Return who put this version of the policy document into force, and who accepted it; None: not known."""
        ...

    def cluster_of(self, resource_id: str) -> str | None:
        """Return the ARN of the cluster that a quota or scheduler config belongs to, if it is known."""
        ...

    def remember_resources(self, cluster_arn: str, resource_ids: Iterable[str]) -> None:
        """Keep which cluster these quotas and scheduler configs belong to."""
        ...

    def applied_quotas(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[AppliedQuota, ...]:
        """Return what was last applied to each quota.

        Here and below, an item that cannot be read is handed to `on_unreadable` and left out; without that it raises
        UpstreamError, which names the item.
        """
        ...

    def applied_quota(self, cluster_arn: str, quota_id: str) -> AppliedQuota | None:
        """Return what was last applied to one quota, or None when nothing was."""
        ...

    def record_applied(self, cluster_arn: str, applied: AppliedQuota) -> None:
        """Keep what was applied to a quota."""
        ...

    def applied_policy(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> AppliedPolicy | None:
        """Return what was last written to the cluster policy, or None when nothing was."""
        ...

    def record_policy(self, cluster_arn: str, applied: AppliedPolicy) -> None:
        """Keep what was written to the cluster policy."""
        ...

    def edits(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[QuotaEdit, ...]:
        """Return who last changed each quota by hand."""
        ...

    def record_edit(self, cluster_arn: str, edit: QuotaEdit) -> None:
        """Keep who changed a quota by hand."""
        ...

    def refusals(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[RefusedWrite, ...]:
        """Return the writes that were refused, by subject."""
        ...

    def record_refusal(self, cluster_arn: str, refused: RefusedWrite) -> None:
        """Keep a write that was refused, in place of an earlier one of its subject."""
        ...

    def forget_refusal(self, cluster_arn: str, subject: str) -> None:
        """Let the writes of a subject be asked for again; nothing happens when none was refused."""
        ...

    def last_look(self, cluster_arn: str) -> datetime | None:
        """Return when the cluster was last read without an error, or first waited for that; None if never."""
        ...

    def record_look(self, cluster_arn: str, at: datetime) -> None:
        """Keep when the cluster was read without an error, or since when that is waited for."""
        ...

    def record_run(self, record: RunRecord) -> None:
        """Keep the record of a run."""
        ...

    def count_once(self, cluster_arn: str, identity: str, now: datetime, *, by: str | None = None) -> bool:
        """Return True the first time an identity is seen, False ever after (for as long as records are kept).

        Who asked first and says who it is (`by`) is told True again: an answer may be lost, or its function with it.
        """
        ...

    def confirm_once(self, cluster_arn: str, identity: str, now: datetime) -> None:
        """Keep that what was counted is done: from now on `count_once` is False to who asked first, too."""
        ...

    def was_counted(self, cluster_arn: str, identity: str) -> bool:
        """Return whether an identity was counted (strongly consistent)."""
        ...

    def take_turn(self, cluster_arn: str, now: datetime) -> str | None:
        """Return a token when nobody else tells teams of this cluster, None while somebody does.

        A turn that is not ended (its function died) ends by itself after TURN_SECONDS.
        """
        ...

    def end_turn(self, cluster_arn: str, turn: str) -> None:
        """Let the next one tell; nothing happens when the turn is another's by now."""
        ...

    def forget_once(self, cluster_arn: str, identity: str) -> None:
        """Let an identity count again: what it was counted for was not done."""
        ...


class Workflow(Protocol):
    """Starts `reconcile`."""

    def start(self, cluster_arn: str, cause: Cause, name: str) -> bool:
        """Start a run; False when one of this name exists already. Raises ThrottledError, UpstreamError."""
        ...

    def execution(self, arn: str) -> Execution | None:
        """Return what is known of an execution of `reconcile`; None when there is none of this ARN, or no more."""
        ...


class EventBus(Protocol):
    """The project's own bus."""

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Publish one event. Raises ThrottledError, UpstreamError."""
        ...

    def publish_all(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> Mapping[int, str]:
        """Publish events (detail type, detail), and return the places of those that were not taken, with the reason."""
        ...


class Notices(Protocol):
    """Messages to people."""

    def send(self, subject: str, text: str) -> None:
        """Send one notice. Raises ThrottledError, UpstreamError."""
        ...


class TeamTopics(Protocol):
    """Topics of the teams, which belong to them."""

    @property
    def begin_with(self) -> str:
        """How the ARN of a topic must begin for messages to be allowed there."""
        ...

    def send(self, topic_arn: str, subject: str, text: str) -> None:
        """Send one message. Raises NotFoundError, InvalidRequestError, ThrottledError, UpstreamError."""
        ...

    def send_chat(self, topic_arn: str, message: Mapping[str, Any]) -> None:
        """Send one message as JSON, for chat clients. Raises as `send`."""
        ...


@dataclass(frozen=True, slots=True)
class Measurement:
    """One metric value with its dimensions beyond `Cluster`, and properties that cost nothing."""

    name: str
    value: float
    unit: str
    dimensions: Mapping[str, str]
    properties: Mapping[str, str | int | float | bool]


class Meter(Protocol):
    """Where measurements go (CloudWatch, by the embedded metric format)."""

    def record(self, cluster_name: str, measurements: Iterable[Measurement]) -> None:
        """Emit the measurements of one cluster at one moment."""
        ...
