"""In-memory twins of the ports: small, honest, and held to the same contract tests as the adapters."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from taskgov.contracts.steps import Cause, Pointer
from taskgov.errors import ConflictError, GovernanceError, LockLostError, NotFoundError, UpstreamError
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.policy.text import MAX_BYTES
from taskgov.ports import (
    LOCK_SECONDS,
    TURN_SECONDS,
    ClusterAccess,
    Dirty,
    Execution,
    Lock,
    Measurement,
    OnUnreadable,
    OnUnreadableObject,
    PolicyText,
    RunRecord,
    StoredVersion,
    Written,
)
from taskgov.snapshot.identity import StateStamp
from taskgov.snapshot.leaving import Reserved
from taskgov.snapshot.model import KubernetesObject, KueueObjects, ManagerSettings
from taskgov.snapshot.records import AppliedPolicy, AppliedQuota, Authorship, QuotaEdit, RefusedWrite
from taskgov.snapshot.unreadable import (
    COMPUTE_QUOTA,
    SCHEDULER_CONFIG,
    UnreadableItem,
    UnreadableObject,
    UnreadableObjectError,
)

CLUSTER_ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
EKS_ARN = "arn:aws:eks:us-east-1:111122223333:cluster/ml-eks"
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@dataclass
class FixedClock:
    """A clock that stands until it is moved."""

    at: datetime = NOON

    def now(self) -> datetime:
        return self.at

    def advance(self, **delta: float) -> None:
        self.at += timedelta(**delta)


def cluster_description(name: str = "ml-cluster", arn: str = CLUSTER_ARN, **more: Any) -> dict[str, Any]:
    """Return DescribeCluster's answer for an EKS cluster in service."""
    return {
        "ClusterName": name,
        "ClusterArn": arn,
        "ClusterStatus": "InService",
        "NodeRecovery": "Automatic",
        "Orchestrator": {"Eks": {"ClusterArn": EKS_ARN}},
        "InstanceGroups": [],
        **more,
    }


SETTLED = {"Creating": "Created", "Updating": "Updated"}


def _refuse_in_flight(found: ComputeQuota | ClusterSchedulerConfig) -> None:
    if found.status in {"Creating", "Updating", "Deleting"}:
        raise ConflictError(f"{found.name} is in status {found.status}")


@dataclass
class InMemoryHyperPod:
    """Clusters, quotas and one cluster policy, with versions as the API keeps them.

    Writes settle at once, unless `settles` is off: then `settle` lets them. What is settling takes no other write.
    """

    descriptions: list[dict[str, Any]] = field(default_factory=lambda: [cluster_description()])
    nodes: list[Mapping[str, Any]] = field(default_factory=list)
    stored: dict[str, ComputeQuota] = field(default_factory=dict)
    config: ClusterSchedulerConfig | None = None
    writes: list[str] = field(default_factory=list)
    settles: bool = True
    made: int = 0
    """How many quotas were ever created: an id is never given twice."""
    policies_made: int = 0
    odd: list[UnreadableObject] = field(default_factory=list)
    """What is there and cannot be read."""
    tagged: "InMemoryTags" = field(default_factory=lambda: InMemoryTags({}))
    machines: "InMemoryMachines" = field(default_factory=lambda: InMemoryMachines({}))

    def keeps_quotas_in_cluster(self, cluster_arn: str) -> bool:
        return ":eks:" in cluster_arn

    def asks_about_machines(self, cluster_arn: str) -> bool:
        return self.machines.asks_about_machines(cluster_arn)

    def machine_states(self, cluster_arn: str, instance_ids: Sequence[str]) -> Mapping[str, str]:
        return self.machines.machine_states(cluster_arn, instance_ids)

    def machines_being_removed(self, cluster_arn: str, instance_ids: Sequence[str]) -> frozenset[str]:
        return self.machines.machines_being_removed(cluster_arn, instance_ids)

    def reserved(self, cluster_arn: str, training_plans: Sequence[str]) -> Reserved:
        return self.machines.reserved(cluster_arn, training_plans)

    def tags(self, cluster_arn: str) -> Mapping[str, str]:
        return self.tagged.tags(cluster_arn)

    def put_tag(self, cluster_arn: str, key: str, value: str) -> None:
        self.tagged.put_tag(cluster_arn, key, value)

    def remove_tag(self, cluster_arn: str, key: str) -> None:
        self.tagged.remove_tag(cluster_arn, key)

    def _report(self, kind: str, on_unreadable: OnUnreadableObject | None) -> None:
        for each in self.odd:
            if each.kind == kind and on_unreadable is None:
                raise UnreadableObjectError(each)
            if each.kind == kind and on_unreadable is not None:
                on_unreadable(each)

    def settle(self) -> None:
        """Let all writes settle: what is being deleted is gone."""
        for quota_id, quota in list(self.stored.items()):
            if quota.status == "Deleting":
                del self.stored[quota_id]
            else:
                self.stored[quota_id] = quota.model_copy(update={"status": SETTLED.get(quota.status, quota.status)})
        if self.config is not None and self.config.status == "Deleting":
            self.config = None
        elif self.config is not None:
            status = SETTLED.get(self.config.status, self.config.status)
            self.config = self.config.model_copy(update={"status": status})

    def clusters(self, on_unreadable: OnUnreadableObject | None = None) -> list[str]:
        return [each["ClusterArn"] for each in self.descriptions]

    def knows(self, cluster_arn: str) -> bool:
        return cluster_arn in self.clusters()

    def describe_cluster(self, cluster: str) -> Mapping[str, Any]:
        for each in self.descriptions:
            if cluster in {each["ClusterName"], each["ClusterArn"]}:
                return each
        raise NotFoundError(f"cluster {cluster}")

    def cluster_nodes(self, cluster: str) -> list[Mapping[str, Any]]:
        self.describe_cluster(cluster)
        return list(self.nodes)

    def quotas(self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None) -> tuple[ComputeQuota, ...]:
        self._report(COMPUTE_QUOTA, on_unreadable)
        mine = (quota for quota in self.stored.values() if quota.cluster_arn == cluster_arn)
        return tuple(sorted(mine, key=lambda quota: quota.name))

    def quota(self, compute_quota_id: str) -> ComputeQuota:
        try:
            return self.stored[compute_quota_id]
        except KeyError:
            raise NotFoundError(f"compute quota {compute_quota_id}") from None

    def scheduler_config(
        self, cluster_arn: str, on_unreadable: OnUnreadableObject | None = None
    ) -> ClusterSchedulerConfig | None:
        self._report(SCHEDULER_CONFIG, on_unreadable)
        return self.config if self.config and self.config.cluster_arn == cluster_arn else None

    def scheduler_config_by_id(self, scheduler_config_id: str) -> ClusterSchedulerConfig:
        if self.config is None or self.config.cluster_scheduler_config_id != scheduler_config_id:
            raise NotFoundError(f"cluster scheduler config {scheduler_config_id}")
        return self.config

    def create_quota(
        self, cluster_arn: str, name: str, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        if any(quota.name == name for quota in self.quotas(cluster_arn)):
            raise ConflictError(f"quota {name} exists")
        self.made += 1
        quota_id = f"quota{self.made:07d}"
        self.stored[quota_id] = ComputeQuota(
            compute_quota_id=quota_id,
            name=name,
            compute_quota_version=1,
            status="Created" if self.settles else "Creating",
            cluster_arn=cluster_arn,
            compute_quota_config=config,
            compute_quota_target=target,
        )
        self.writes.append(f"create {name}")
        return Written(quota_id, 1)

    def update_quota(
        self, quota_id: str, target_version: int, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Written:
        quota = self.quota(quota_id)
        if quota.compute_quota_version != target_version:
            raise ConflictError(f"quota {quota.name} is at version {quota.compute_quota_version}, not {target_version}")
        _refuse_in_flight(quota)
        self.stored[quota_id] = quota.model_copy(
            update={
                "compute_quota_version": target_version + 1,
                "status": "Updated" if self.settles else "Updating",
                "compute_quota_config": config,
                "compute_quota_target": target,
            }
        )
        self.writes.append(f"update {quota.name}")
        return Written(quota_id, target_version + 1)

    def delete_quota(self, quota_id: str) -> None:
        quota = self.quota(quota_id)
        _refuse_in_flight(quota)
        self.writes.append(f"delete {quota.name}")
        if self.settles:
            del self.stored[quota_id]
        else:
            self.stored[quota_id] = quota.model_copy(update={"status": "Deleting"})

    def create_scheduler_config(self, cluster_arn: str, name: str, config: SchedulerConfig) -> Written:
        if self.config is not None:
            raise ConflictError("the cluster has a scheduler config")
        self.policies_made += 1
        config_id = f"schedconf{self.policies_made:03d}"
        self.config = ClusterSchedulerConfig(
            cluster_scheduler_config_id=config_id,
            name=name,
            cluster_scheduler_config_version=1,
            status="Created" if self.settles else "Creating",
            cluster_arn=cluster_arn,
            scheduler_config=config,
        )
        self.writes.append(f"create {name}")
        return Written(config_id, 1)

    def update_scheduler_config(self, config_id: str, target_version: int, config: SchedulerConfig) -> Written:
        found = self.scheduler_config_by_id(config_id)
        if found.cluster_scheduler_config_version != target_version:
            raise ConflictError(f"scheduler config {config_id} is not at version {target_version}")
        _refuse_in_flight(found)
        self.config = found.model_copy(
            update={
                "cluster_scheduler_config_version": target_version + 1,
                "status": "Updated" if self.settles else "Updating",
                "scheduler_config": config,
            }
        )
        self.writes.append(f"update {found.name}")
        return Written(config_id, target_version + 1)

    def delete_scheduler_config(self, config_id: str) -> None:
        found = self.scheduler_config_by_id(config_id)
        _refuse_in_flight(found)
        self.writes.append(f"delete {found.name}")
        self.config = None if self.settles else found.model_copy(update={"status": "Deleting"})


@dataclass
class InMemoryDocuments:
    """A bucket in a dictionary."""

    stored: dict[str, bytes] = field(default_factory=dict)

    def policy(self, cluster_name: str) -> PolicyText | None:
        text = self.find(f"policies/{cluster_name}.yaml")
        return None if text is None else PolicyText(text[: MAX_BYTES + 1], sha256(text).hexdigest()[:8])

    def put(self, key: str, body: bytes, content_type: str) -> Pointer:
        self.stored[key] = body
        return Pointer(bucket="bucket", key=key, sha256=sha256(body).hexdigest())

    def get(self, pointer: Pointer) -> bytes:
        body = self.find(pointer.key)
        if body is None:
            raise NotFoundError(pointer.key)
        if sha256(body).hexdigest() != pointer.sha256:
            raise UpstreamError(f"{pointer.key} has changed")
        return body

    def find(self, key: str) -> bytes | None:
        return self.stored.get(key)

    def find_version(self, key: str) -> StoredVersion | None:
        return self._version(key)

    def put_version(self, key: str, body: bytes, content_type: str, instead_of: StoredVersion | None) -> StoredVersion:
        if self._version(key) != instead_of:
            raise ConflictError(f"another version of {key} is there")
        self.put(key, body, content_type)
        return StoredVersion(body, sha256(body).hexdigest())

    def _version(self, key: str) -> StoredVersion | None:
        body = self.stored.get(key)
        return None if body is None else StoredVersion(body, sha256(body).hexdigest())

    def policy_names(self) -> tuple[str, ...]:
        keys = (key.removeprefix("policies/") for key in self.stored if key.startswith("policies/"))
        return tuple(sorted(key.removesuffix(".yaml") for key in keys if key.endswith(".yaml") and "/" not in key))


UNREADABLE = tuple(
    UnreadableItem("CLUSTER#arn", sk, "its schema is 9")
    for sk in ("QUOTA#quota0000009", "REFUSED#team-z", "RUN#9", "POLICY")
)
"""An item of each kind that cannot be read."""


@dataclass
class InMemoryState:
    """The table in dictionaries. `lock` is set by tests: the state machine takes it in the real stack."""

    generations: dict[str, int] = field(default_factory=dict)
    lock: dict[str, tuple[str, int, float | None]] = field(default_factory=dict)
    begun: dict[str, tuple[int, Pointer]] = field(default_factory=dict)
    """Cluster ARN -> owner, fencing token, expiry in epoch seconds."""
    asked: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Cluster ARN -> execution that waits for approval, until when in epoch seconds."""
    owners: dict[str, str] = field(default_factory=dict)
    applied: dict[tuple[str, str], AppliedQuota] = field(default_factory=dict)
    policies: dict[str, AppliedPolicy] = field(default_factory=dict)
    edited: dict[tuple[str, str], QuotaEdit] = field(default_factory=dict)
    refused: dict[tuple[str, str], RefusedWrite] = field(default_factory=dict)
    runs: list[RunRecord] = field(default_factory=list)
    counted: dict[tuple[str, str], str | None] = field(default_factory=dict)
    stopped: bool | None = False
    stamps: dict[str, StateStamp] = field(default_factory=dict)
    lineages: int = 0
    unreadable: tuple[UnreadableItem, ...] = ()

    def stamp(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> StateStamp | None:
        return self.stamps.get(cluster_arn)

    def record_stamp(self, cluster_arn: str, stamp: StateStamp) -> None:
        known = self.stamps.get(cluster_arn)
        if known is None or known.lineage != stamp.lineage or known.serial <= stamp.serial:
            self.stamps[cluster_arn] = stamp

    def new_lineage(self) -> str:
        self.lineages += 1
        return f"lineage-{id(self):x}-{self.lineages}"

    looks: dict[str, datetime] = field(default_factory=dict)
    authors: dict[tuple[str, str], Authorship] = field(default_factory=dict)

    def mark_dirty(self, cluster_arn: str, cluster_name: str, cause: Cause, now: datetime) -> Dirty:
        generation = self.generations[cluster_arn] = self.generation(cluster_arn) + 1
        lock = self.lock_of(cluster_arn)
        return Dirty(generation, locked=lock.is_held(now), lock=lock)

    def lock_of(self, cluster_arn: str) -> Lock:
        owner, token, expires = self.lock.get(cluster_arn, (None, 0, None))
        asked_by, asked_until = self.asked.get(cluster_arn, (None, None))
        until = None if expires is None else int(min(expires, 10**12))
        of, plan = self.begun.get(cluster_arn, (None, None))
        return Lock(owner, token, until, asked_by, asked_until, plan if of == token else None)

    def end_lease(self, cluster_arn: str, lock: Lock) -> bool:
        if self.lock.get(cluster_arn, ())[:2] != (lock.owner, lock.fencing_token):
            return False
        self.lock[cluster_arn] = (*self.lock[cluster_arn][:2], 0)
        return True

    def withdraw_request(self, cluster_arn: str, asked_by: str) -> bool:
        if self.asked.get(cluster_arn, ("", 0))[0] != asked_by:
            return False
        self.asked[cluster_arn] = (asked_by, 0)
        return True

    def last_run(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[str, datetime] | None:
        self._report("RUN#", on_unreadable)
        mine = [run for run in self.runs if run.cluster_arn == cluster_arn]
        last = max(mine, key=lambda run: (run.started_at, run.run_id), default=None)
        return None if last is None else (last.run_id, last.ended_at)

    def generation(self, cluster_arn: str) -> int:
        return self.generations.get(cluster_arn, 0)

    def hold_lock(
        self, cluster_arn: str, owner: str, fencing_token: int, now: datetime, plan: Pointer | None = None
    ) -> None:
        holder, token, expires = self.lock.get(cluster_arn, ("", 0, 0))
        if (holder, token) != (owner, fencing_token) or expires == 0:
            raise LockLostError(f"{owner} lost the lock to {holder!r} with token {token}")
        self.lock[cluster_arn] = (owner, fencing_token, int(now.timestamp()) + LOCK_SECONDS)
        if plan is not None:
            self.begun[cluster_arn] = (fencing_token, plan)

    def stop_switch(self) -> bool | None:
        return self.stopped

    def authorship(self, cluster_name: str, version: str) -> Authorship | None:
        return self.authors.get((cluster_name, version))

    def last_look(self, cluster: str) -> datetime | None:
        return self.looks.get(cluster)

    def record_look(self, cluster: str, at: datetime) -> None:
        self.looks[cluster] = at

    def cluster_of(self, resource_id: str) -> str | None:
        return self.owners.get(resource_id)

    def remember_resources(self, cluster_arn: str, resource_ids: Iterable[str]) -> None:
        self.owners.update(dict.fromkeys(resource_ids, cluster_arn))

    def applied_quotas(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[AppliedQuota, ...]:
        self._report("QUOTA#", on_unreadable)
        return tuple(self.applied[key] for key in sorted(self.applied) if key[0] == cluster_arn)

    def applied_quota(self, cluster_arn: str, quota_id: str) -> AppliedQuota | None:
        return self.applied.get((cluster_arn, quota_id))

    def record_applied(self, cluster_arn: str, applied: AppliedQuota) -> None:
        self.applied[cluster_arn, applied.compute_quota_id] = applied

    def applied_policy(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> AppliedPolicy | None:
        self._report("POLICY", on_unreadable)
        return self.policies.get(cluster_arn)

    def record_policy(self, cluster_arn: str, applied: AppliedPolicy) -> None:
        self.policies[cluster_arn] = applied

    def edits(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[QuotaEdit, ...]:
        return tuple(self.edited[key] for key in sorted(self.edited) if key[0] == cluster_arn)

    def record_edit(self, cluster_arn: str, edit: QuotaEdit) -> None:
        known = self.edited.get((cluster_arn, edit.compute_quota_id))
        if known is None or known.at <= edit.at:
            self.edited[cluster_arn, edit.compute_quota_id] = edit

    def refusals(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[RefusedWrite, ...]:
        self._report("REFUSED#", on_unreadable)
        return tuple(self.refused[key] for key in sorted(self.refused) if key[0] == cluster_arn)

    def _report(self, prefix: str, on_unreadable: OnUnreadable | None) -> None:
        for item in self.unreadable:
            if item.sk.startswith(prefix) and on_unreadable is None:
                raise UpstreamError(str(item))
            if item.sk.startswith(prefix) and on_unreadable is not None:
                on_unreadable(item)

    def record_refusal(self, cluster_arn: str, refused: RefusedWrite) -> None:
        self.refused[cluster_arn, refused.subject] = refused

    def forget_refusal(self, cluster_arn: str, subject: str) -> None:
        self.refused.pop((cluster_arn, subject), None)

    def record_run(self, record: RunRecord) -> None:
        self.runs.append(record)

    def count_once(self, cluster_arn: str, identity: str, now: datetime, *, by: str | None = None) -> bool:
        key = (cluster_arn, identity)
        if key in self.counted and self.counted[key] != "open":
            return by is not None and self.counted[key] == by
        self.counted[key] = by
        return True

    def confirm_once(self, cluster_arn: str, identity: str, now: datetime) -> None:
        self.counted[cluster_arn, identity] = None

    def reopen_once(self, cluster_arn: str, identity: str, now: datetime) -> None:
        self.counted[cluster_arn, identity] = "open"

    def was_counted(self, cluster_arn: str, identity: str) -> bool:
        return (cluster_arn, identity) in self.counted

    def all_counted(self, cluster_arn: str, beginning: str) -> frozenset[str]:
        return frozenset(one for arn, one in self.counted if arn == cluster_arn and one.startswith(beginning))

    def forget_once(self, cluster_arn: str, identity: str) -> None:
        self.counted.pop((cluster_arn, identity), None)

    turns: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Cluster ARN -> token and end in epoch seconds of the last turn to tell teams."""

    def take_turn(self, cluster_arn: str, now: datetime) -> str | None:
        token, until = self.turns.get(cluster_arn, ("", 0))
        if until > now.timestamp():
            return None
        token = f"turn-{len(token)}-{now.timestamp()}"
        self.turns[cluster_arn] = (token, int(now.timestamp()) + TURN_SECONDS)
        return token

    def end_turn(self, cluster_arn: str, turn: str) -> None:
        if self.turns.get(cluster_arn, ("", 0))[0] == turn:
            self.turns[cluster_arn] = (turn, 0)


@dataclass
class InMemoryMachines:
    """EC2 with these instances, or one that does not answer; `asked` are the ids of each call."""

    known: dict[str, str] = field(default_factory=dict)
    error: GovernanceError | None = None
    asked: list[tuple[str, ...]] = field(default_factory=list)
    removed: frozenset[str] = frozenset()
    auto_scaling_error: GovernanceError | None = None
    asked_auto_scaling: list[tuple[str, ...]] = field(default_factory=list)
    bought: Reserved = field(default_factory=Reserved)

    def reserved(self, cluster_arn: str, training_plans: Sequence[str]) -> Reserved:
        return self.bought

    def asks_about_machines(self, cluster_arn: str) -> bool:
        return ":eks:" in cluster_arn

    def machine_states(self, cluster_arn: str, instance_ids: Sequence[str]) -> Mapping[str, str]:
        self.asked.append(tuple(instance_ids))
        if self.error is not None:
            raise self.error
        return {each: self.known[each] for each in instance_ids if each in self.known}

    def machines_being_removed(self, cluster_arn: str, instance_ids: Sequence[str]) -> frozenset[str]:
        self.asked_auto_scaling.append(tuple(instance_ids))
        if self.auto_scaling_error is not None:
            raise self.auto_scaling_error
        return self.removed & frozenset(instance_ids)


@dataclass
class InMemoryTags:
    """Tags of clusters; `beside` is what another stack does right after each tag that is put."""

    stored: dict[str, dict[str, str]] = field(default_factory=dict)
    beside: Callable[[], None] = lambda: None
    calls: list[str] = field(default_factory=list)

    def tags(self, cluster_arn: str) -> Mapping[str, str]:
        self.calls.append("tags")
        return dict(self.stored.get(cluster_arn, {}))

    def put_tag(self, cluster_arn: str, key: str, value: str) -> None:
        self.calls.append("put_tag")
        self.stored.setdefault(cluster_arn, {})[key] = value
        self.beside()

    def remove_tag(self, cluster_arn: str, key: str) -> None:
        self.calls.append("remove_tag")
        self.stored.get(cluster_arn, {}).pop(key, None)


@dataclass
class InMemoryWorkflow:
    """Runs that were started, by name."""

    started: dict[str, tuple[str, Cause]] = field(default_factory=dict)
    executions: dict[str, Execution] = field(default_factory=dict)

    def start(self, cluster_arn: str, cause: Cause, name: str) -> bool:
        if name in self.started:
            return False
        self.started[name] = (cluster_arn, cause)
        return True

    def execution(self, arn: str) -> Execution | None:
        return self.executions.get(arn)


@dataclass
class FixedKubernetes:
    """One cluster whose objects a test sets; the twin that trims like the reader is with the adapter."""

    node_objects: list[KubernetesObject] = field(default_factory=list)
    kueue: KueueObjects = field(default_factory=KueueObjects)
    manager: ManagerSettings = field(default_factory=ManagerSettings)

    def manager_settings(self, cluster: ClusterAccess) -> ManagerSettings:
        return self.manager

    def nodes(self, cluster: ClusterAccess) -> list[KubernetesObject]:
        return list(self.node_objects)

    def kueue_objects(self, cluster: ClusterAccess) -> KueueObjects:
        return self.kueue


@dataclass
class RecordingBus:
    """Events that were published."""

    published: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    refuses: int = 0
    """How many of the next events of `publish_all` are not taken: the last ones of the call."""

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        self.published.append((detail_type, detail))

    def publish_all(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> Mapping[int, str]:
        taken = max(0, len(events) - self.refuses)
        self.refuses = 0
        self.published += events[:taken]
        return dict.fromkeys(range(taken, len(events)), "ThrottlingException: slow down")


@dataclass
class RecordingNotices:
    """Notices that were sent."""

    sent: list[tuple[str, str]] = field(default_factory=list)

    fails: Exception | None = None

    def send(self, subject: str, text: str) -> None:
        if self.fails is not None:
            raise self.fails
        self.sent.append((subject, text))


@dataclass
class RecordingTopics:
    """Messages to teams' topics: ARN, subject, text; some topics fail."""

    sent: list[tuple[str, str, str]] = field(default_factory=list)
    fails: dict[str, Exception] = field(default_factory=dict)
    begin_with: str = "arn:aws:sns:us-east-1:111122223333:taskgov-team-"

    def send(self, topic_arn: str, subject: str, text: str) -> None:
        if topic_arn in self.fails:
            raise self.fails[topic_arn]
        self.sent.append((topic_arn, subject, text))

    chats: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def send_chat(self, topic_arn: str, message: Mapping[str, Any]) -> None:
        if topic_arn in self.fails:
            raise self.fails[topic_arn]
        self.chats.append((topic_arn, message))


@dataclass
class RecordingMeter:
    """Measurements that were recorded."""

    recorded: list[tuple[str, Measurement]] = field(default_factory=list)

    def record(self, cluster_name: str, measurements: Iterable[Measurement]) -> None:
        self.recorded += [(cluster_name, measurement) for measurement in measurements]


@dataclass
class RecordingFailures:
    """Keeps what was reported: cluster, what was being done, the error's class."""

    reported: list[tuple[str, str, str]] = field(default_factory=list)

    def report(self, cluster_name: str, doing: str, error: Exception) -> None:
        self.reported.append((cluster_name, doing, type(error).__name__))

    not_told: list[tuple[str, str]] = field(default_factory=list)

    def untold(self, cluster_name: str, topics: Sequence[str]) -> None:
        self.not_told += [(cluster_name, topic) for topic in topics]
