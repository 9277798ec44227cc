"""An emulation of the SageMaker API, as strict as its documentation: what it accepts, and what it holds afterwards.

Sources: the API reference (limits, `TargetVersion`), the developer guide (statuses, recovery). A quota whose write has
not settled refuses the next one; a name is free again once the deletion has settled.
"""

import hashlib
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from taskgov.allocation.plan import POLICY_KINDS, Change, ChangeKind
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaResource,
    ComputeQuotaTarget,
    ResourceSharingConfig,
    SchedulerConfig,
)
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota, PastQuota

IN_FLIGHT = frozenset({"Creating", "Updating", "Deleting"})
NEEDS_RECREATION = frozenset({"CreateFailed", "CreateRollbackFailed", "UpdateRollbackFailed"})
SETTLES_TO = {"Creating": "Created", "Updating": "Updated"}
MOST_ROWS = 15
MOST = 10_000_000
KEPT_FOR = timedelta(days=31)


class RefusedError(Exception):
    """The API would not accept a write; the message says why."""


def through_float(number: float) -> float:
    """Return a number as a 32-bit float prints it: the shortest decimal that gives the same float again."""
    (single,) = struct.unpack("f", struct.pack("f", number))
    for digits in range(1, 10):
        text = float(f"{single:.{digits}g}")
        if struct.pack("f", text) == struct.pack("f", single):
            return text
    return float(single)


@dataclass(slots=True)
class Account:
    """The quotas and the cluster policy of one cluster, and what the automation keeps about its writes."""

    quotas: dict[str, ComputeQuota]
    scheduler: ClusterSchedulerConfig | None
    applied: dict[str, AppliedQuota]
    now: datetime
    plan_id: str = ""
    began: dict[str, ComputeQuotaConfig] = field(default_factory=dict)
    """Quota id -> what stood before the low write of this plan."""
    doubled: frozenset[str] = frozenset()
    """Names that quotas of two teams have in the snapshot: only these may be given again."""
    touched: set[str] = field(default_factory=set)
    """Ids of quotas whose writes are in flight; a deletion that somebody began takes its own time."""

    @classmethod
    def of(cls, snapshot: Snapshot, plan_id: str) -> "Account":
        """Return the account of a snapshot."""
        quotas = {quota.compute_quota_id: quota for quota in snapshot.quotas}
        applied = {item.compute_quota_id: item for item in snapshot.applied}
        names = Counter(quota.name for quota in snapshot.quotas)
        doubled = frozenset(name for name, count in names.items() if count > 1)
        return cls(quotas, snapshot.scheduler_config, applied, snapshot.taken_at, plan_id, doubled=doubled)

    def copy(self) -> "Account":
        """Return an account of its own in the same state."""
        return replace(
            self,
            quotas=dict(self.quotas),
            applied=dict(self.applied),
            began=dict(self.began),
            touched=set(self.touched),
        )

    def snapshot(self, before: Snapshot) -> Snapshot:
        """Return `before` with the quotas, the policy and the records as they are now."""
        quotas = sorted(self.quotas.values(), key=lambda quota: (quota.name, quota.compute_quota_id))
        applied = tuple(self.applied[key] for key in sorted(self.applied))
        return replace(before, quotas=tuple(quotas), scheduler_config=self.scheduler, applied=applied)

    def find(self, change: Change) -> ComputeQuota | None:
        """Return the quota that a change is about: by its id, or by its name where the plan creates it."""
        if change.resource_id is not None:
            return self.quotas.get(change.resource_id)
        found = (quota for quota in self.quotas.values() if quota.name == change.name)
        return next((quota for quota in found if quota.compute_quota_target.team_name == change.team), None)

    def write(self, change: Change) -> None:
        """Accept a change, which settles later. Raises `RefusedError`."""
        match change.kind:
            case ChangeKind.CREATE_QUOTA:
                self._create(change)
            case ChangeKind.UPDATE_QUOTA:
                self._update(change)
            case ChangeKind.DELETE_QUOTA:
                self.delete(change)
            case _:
                self._write_policy(change)

    def settle(self) -> None:
        """Let every write in flight come to its end."""
        for key in self.touched:
            quota = self.quotas[key]
            if quota.status == "Deleting":
                del self.quotas[key]
                self.applied.pop(key, None)
            elif quota.status in SETTLES_TO:
                self.quotas[key] = quota.model_copy(update={"status": SETTLES_TO[quota.status]})
        self.touched = set()
        if self.scheduler is not None and self.scheduler.status == "Deleting":
            self.scheduler = None
        elif self.scheduler is not None and self.scheduler.status in SETTLES_TO:
            status = SETTLES_TO[self.scheduler.status]
            self.scheduler = self.scheduler.model_copy(update={"status": status})

    def put(self, quota: ComputeQuota, config: ComputeQuotaConfig, target: ComputeQuotaTarget, version: int) -> None:
        """Update a quota at `version`. Raises `RefusedError`."""
        if quota.status in IN_FLIGHT:
            raise RefusedError(f"{quota.name} is {quota.status} and refuses a write")
        if quota.status in NEEDS_RECREATION:
            raise RefusedError(f"{quota.name} is {quota.status}: only deletion helps")
        if version != quota.compute_quota_version:
            raise RefusedError(f"{quota.name}: TargetVersion {version} is not {quota.compute_quota_version}")
        self.touched.add(quota.compute_quota_id)
        self.quotas[quota.compute_quota_id] = quota.model_copy(
            update={
                "compute_quota_config": stored(config),
                "compute_quota_target": target,
                "compute_quota_version": version + 1,
                "status": "Updating",
            }
        )

    def make(self, name: str, config: ComputeQuotaConfig, target: ComputeQuotaTarget) -> ComputeQuota:
        """Create a quota. Raises `RefusedError`."""
        same = [quota for quota in self.quotas.values() if quota.name == name]
        if any(name not in self.doubled or quota.compute_quota_target.team_name == target.team_name for quota in same):
            raise RefusedError(f"{name} exists")
        if not 0 < len(name) <= 63:
            raise RefusedError(f"the name {name!r} has {len(name)} characters")
        number = sum(quota.name == name for quota in self.quotas.values())
        key = hashlib.sha256(f"{name} {len(self.quotas)} {number}".encode()).hexdigest()[:12]
        made = ComputeQuota(
            compute_quota_id=key,
            name=name,
            compute_quota_version=1,
            status="Creating",
            compute_quota_config=stored(config),
            compute_quota_target=target,
        )
        self.quotas[key] = made
        self.touched.add(key)
        return made

    def delete(self, change: Change) -> None:
        """Delete the quota of a change. Raises `RefusedError`."""
        quota = self.find(change)
        if quota is None:
            raise RefusedError(f"{change.name} does not exist")
        if quota.status in IN_FLIGHT:
            raise RefusedError(f"{quota.name} is {quota.status} and refuses to be deleted")
        self.touched.add(quota.compute_quota_id)
        self.quotas[quota.compute_quota_id] = quota.model_copy(update={"status": "Deleting"})

    def _create(self, change: Change) -> None:
        config, target = _written(change)
        made = self.make(change.name, config, target)
        self._remember(change, made, None)

    def _update(self, change: Change) -> None:
        config, target = _written(change)
        quota = self.find(change)
        if quota is None:
            raise RefusedError(f"{change.name} does not exist")
        record = self.applied.get(quota.compute_quota_id)
        version = change.target_version
        if version is None:
            if record is None or record.plan_id != self.plan_id:
                raise RefusedError(f"the second write of {quota.name} has no first one whose version is known")
            version = record.version
        before = quota.compute_quota_config
        self.put(quota, config, target, version)
        self._remember(change, self.quotas[quota.compute_quota_id], before)

    def _remember(self, change: Change, quota: ComputeQuota, before: ComputeQuotaConfig | None) -> None:
        """Keep what `apply_change` keeps: one entry of the past for each quota, however often the plan writes it."""
        key = quota.compute_quota_id
        previous = self.applied.get(key)
        history: tuple[PastQuota, ...] | None = () if previous is None else previous.history
        second = key in self.began
        if history is not None and before is not None and not second:
            recent = (item for item in history if item.until > self.now - KEPT_FOR)
            rows = before.compute_quota_resources
            held = {row.instance_type: row.count for row in rows if row.count is not None}
            same = previous is not None and previous.config == before
            leased = previous.leased if previous and same else None
            recorded = previous.demand if previous and same else None
            demand = None if previous is None else held if recorded is None else recorded
            history = (*recent, PastQuota(until=self.now, config=before, leased=leased, demand=demand))
        if change.is_low and before is not None:
            self.began[key] = before
        shares = _written(change)[0].resource_sharing_config or ResourceSharingConfig()
        self.applied[key] = AppliedQuota(
            compute_quota_id=key,
            version=quota.compute_quota_version,
            config=_written(change)[0],
            target=quota.compute_quota_target,
            plan_id=self.plan_id,
            at=self.now,
            history=history,
            adopted=change.adopted,
            promise=change.promise,
            began_from=self.began.get(key) if change.is_low else None,
            leased=change.leased,
            demand=change.demand,
            sharing_within_budget=change.sharing_within_budget if _borrows_nothing(_written(change)[0]) else shares,
        )

    def _write_policy(self, change: Change) -> None:
        held = self.scheduler
        if change.kind is ChangeKind.CREATE_SCHEDULER_CONFIG:
            if held is not None:
                raise RefusedError("the cluster has a cluster policy already")
            self.scheduler = ClusterSchedulerConfig(
                cluster_scheduler_config_id="schedulernew",
                name=change.name,
                cluster_scheduler_config_version=1,
                status="Creating",
                scheduler_config=_policy(change.after),
            )
            return
        if held is None or held.cluster_scheduler_config_id != change.resource_id:
            raise RefusedError(f"there is no cluster policy {change.resource_id}")
        if held.status in IN_FLIGHT:
            raise RefusedError(f"the cluster policy is {held.status} and refuses a write")
        if change.kind is ChangeKind.DELETE_SCHEDULER_CONFIG:
            self.scheduler = held.model_copy(update={"status": "Deleting"})
            return
        if held.status in NEEDS_RECREATION:
            raise RefusedError(f"the cluster policy is {held.status}: only deletion helps")
        if change.target_version != held.cluster_scheduler_config_version:
            raise RefusedError(f"cluster policy: TargetVersion {change.target_version} is not the current one")
        self.scheduler = held.model_copy(
            update={
                "scheduler_config": _policy(change.after),
                "cluster_scheduler_config_version": held.cluster_scheduler_config_version + 1,
                "status": "Updating",
            }
        )


def stored(config: ComputeQuotaConfig) -> ComputeQuotaConfig:
    """Return a config as the API holds it. Raises `RefusedError` for one beyond its limits."""
    sharing = config.resource_sharing_config
    absolute = None if sharing is None else sharing.absolute_borrow_limits
    held = sharing
    if sharing is not None and absolute is not None:
        held = sharing.model_copy(update={"absolute_borrow_limits": _rows(absolute, "AbsoluteBorrowLimits")})
    if sharing is not None and sharing.borrow_limit is not None and not 0 <= sharing.borrow_limit <= 10_000:
        raise RefusedError(f"BorrowLimit {sharing.borrow_limit} is not from 0 to 10,000")
    rows = _rows(config.compute_quota_resources, "ComputeQuotaResources")
    return config.model_copy(update={"compute_quota_resources": rows, "resource_sharing_config": held})


def _rows(rows: Iterable[ComputeQuotaResource], name: str) -> tuple[ComputeQuotaResource, ...]:
    held = tuple(map(_row, rows))
    if len(held) > MOST_ROWS:
        raise RefusedError(f"{name} has {len(held)} rows, {MOST_ROWS} is the most")
    keys = [(row.instance_type, row.accelerator_partition and row.accelerator_partition.type) for row in held]
    if len(set(keys)) < len(keys):
        raise RefusedError(f"{name} names an instance type and profile twice")
    return held


def _row(row: ComputeQuotaResource) -> ComputeQuotaResource:
    partition = row.accelerator_partition
    amounts = {
        "Count": row.count,
        "Accelerators": row.accelerators,
        "VCpu": row.vcpu,
        "MemoryInGiB": row.memory_in_gib,
        "AcceleratorPartition": None if partition is None else partition.count,
    }
    for name, amount in amounts.items():
        if amount is not None and not 0 <= amount <= MOST:
            raise RefusedError(f"{row.instance_type}: {name} {amount} is not from 0 to {MOST:,}")
    for name, amount in (("VCpu", row.vcpu), ("MemoryInGiB", row.memory_in_gib)):
        if amount is not None and through_float(amount) != amount:
            raise RefusedError(f"{row.instance_type}: {name} {amount} comes back as {through_float(amount)}")
    return row


def _written(change: Change) -> tuple[ComputeQuotaConfig, ComputeQuotaTarget]:
    if not isinstance(change.after, ComputeQuotaConfig) or change.target_after is None:
        raise RefusedError(f"{change.kind} of {change.name} has no configuration or no team to write")
    return change.after, change.target_after


def _borrows_nothing(config: ComputeQuotaConfig) -> bool:
    sharing = config.resource_sharing_config
    if sharing is None or sharing.strategy != "LendAndBorrow":
        return False
    return sharing.borrow_limit == 0 and not sharing.absolute_borrow_limits


def _policy(after: object) -> SchedulerConfig:
    if not isinstance(after, SchedulerConfig):
        raise RefusedError("the cluster policy is written without one")
    return after


def is_policy(change: Change) -> bool:
    """Say whether a change is about the cluster policy."""
    return change.kind in POLICY_KINDS
