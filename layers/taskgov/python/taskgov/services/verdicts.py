"""Has what was written settled? A pure decision on what was read: versions decide, then status and content.

Used by `verify_plan`.

| the service shows | is |
| --- | --- |
| an older version than the write returned, or a status in flight | pending: a list may be behind, a write may be slow |
| the version of the write, settled, with its content | fine |
| the version of the write, failed | refused: recorded, so that the next plan does without it |
| a newer version with another content, or nothing any more | edited: somebody changed it since, and that stands |
| the version of the write, settled, with another content | a problem |
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from taskgov.allocation.plan import DELETIONS, POLICY_KINDS, Change, ChangeKind
from taskgov.allocation.wording import said_config
from taskgov.hyperpod.equality import is_same_target
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
)
from taskgov.services.plan_path import QuotaPath
from taskgov.services.written_already import IN_FLIGHT, is_same
from taskgov.snapshot.records import AppliedPolicy, AppliedQuota
from taskgov.snapshot.unreadable import COMPUTE_QUOTA, SCHEDULER_CONFIG, UnreadableObject

SETTLED = frozenset({"Created", "Updated"})

Actual = ComputeQuota | ClusterSchedulerConfig
Config = ComputeQuotaConfig | SchedulerConfig


class Verdict(StrEnum):
    """The state of a write (see the table above)."""

    FINE = "fine"
    PENDING = "pending"
    REFUSED = "refused"
    EDITED = "edited"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict on one quota or the cluster policy, in a sentence that names it."""

    path: QuotaPath
    verdict: Verdict
    text: str = ""


@dataclass(frozen=True)
class Listed:
    """What stands now, and what is on record of our writes."""

    plan_id: str
    quotas: tuple[ComputeQuota, ...]
    unasked: frozenset[str]
    """Ids of quotas that are behind their record and were not queried for this snapshot."""
    policy: ClusterSchedulerConfig | None
    records: dict[str, AppliedQuota]
    applied_policy: AppliedPolicy | None
    odd: tuple[UnreadableObject, ...] = ()
    """What cannot be read, and is in neither `quotas` nor `policy`."""

    def named(self, path: QuotaPath) -> Actual | None:
        """Return what a path is about: the quota of its id, or of its name where it is created (again)."""
        if path.is_policy:
            policy_id = self.policy.cluster_scheduler_config_id if self.policy else None
            return None if policy_id in path.deleted_ids else self.policy
        quota_id = path.first.resource_id
        if quota_id and not path.deleted_ids:
            return self._by_id.get(quota_id)
        same = self._by_team_and_name.get((path.first.team, path.first.name), ())
        return next((quota for quota in same if quota.compute_quota_id not in path.deleted_ids), None)

    def deleted(self, change: Change) -> Actual | None:
        """Return what a change deletes, if it is still there."""
        if change.kind in POLICY_KINDS:
            is_there = self.policy and self.policy.cluster_scheduler_config_id == change.resource_id
            return self.policy if is_there else None
        return self._by_id.get(change.resource_id or "")

    def left_out(self, path: QuotaPath) -> tuple[UnreadableObject, ...]:
        """Return what cannot be read and may be what a path is about; nothing where that was read."""
        if self.named(path) or self.deleted(path.first) or self.deleted(path.last):
            return ()
        kind = SCHEDULER_CONFIG if path.is_policy else COMPUTE_QUOTA
        return tuple(odd for odd in self.odd if odd.kind == kind)

    def id_of(self, path: QuotaPath) -> str | None:
        """Return the id of the quota that a path is about: of one that it creates, by the record of the write."""
        if path.last.kind in DELETIONS:
            return path.last.resource_id
        record = self.record_of(path)
        return record.compute_quota_id if record is not None else path.first.resource_id

    def written_version(self, path: QuotaPath) -> int | None:
        """Return the version that our write of a path returned; None when none is on record."""
        if path.is_policy:
            mine = self.applied_policy if self.applied_policy and self.applied_policy.plan_id == self.plan_id else None
            return None if mine is None else mine.version
        record = self.record_of(path)
        return None if record is None else record.version

    def record_of(self, path: QuotaPath) -> AppliedQuota | None:
        """Return the record of this plan's last write of a quota; of one that is created, by its team."""
        ids = {path.first.resource_id or ""}
        if path.first.kind is ChangeKind.CREATE_QUOTA or path.deleted_ids:
            ids |= self._recorded_of_team.get(path.first.team, set()) - path.deleted_ids
        known = (self.records[quota_id] for quota_id in sorted(ids) if quota_id in self.records)
        return next((record for record in known if record.plan_id == self.plan_id), None)

    @cached_property
    def _by_id(self) -> dict[str, ComputeQuota]:
        return {quota.compute_quota_id: quota for quota in self.quotas}

    @cached_property
    def _by_team_and_name(self) -> dict[tuple[str, str], list[ComputeQuota]]:
        found: dict[tuple[str, str], list[ComputeQuota]] = {}
        for quota in self.quotas:
            found.setdefault((quota.compute_quota_target.team_name, quota.name), []).append(quota)
        return found

    @cached_property
    def _recorded_of_team(self) -> dict[str, set[str]]:
        """The ids of the quotas on record, by team."""
        found: dict[str, set[str]] = {}
        for quota_id, record in self.records.items():
            found.setdefault(record.target.team_name, set()).add(quota_id)
        return found

    def is_unlisted(self, path: QuotaPath) -> bool:
        """Return whether a list may yet show what a path wrote: it is behind, and no describe call was made."""
        if path.is_policy:
            return True
        record = self.record_of(path)
        return record is not None and record.compute_quota_id in self.unasked


def judge_path(
    world: Listed, actual: Actual | None, path: QuotaPath, wanted: Config | None, target: ComputeQuotaTarget | None
) -> Judged:
    """Compare what exists with what should exist (None: nothing)."""
    written = world.written_version(path)
    if actual is None:
        return _judged_missing(world, path, wanted)
    verdict, text = _verdict(actual, written, is_wanted=_holds(actual, wanted, target))
    return Judged(path, verdict, f"{path.first.name} {text}")


def _verdict(actual: Actual, written: int | None, *, is_wanted: bool) -> tuple[Verdict, str]:
    version = _version(actual)
    if written is not None and version < written:
        return Verdict.PENDING, f"shows version {version}, and version {written} was written"
    if is_wanted and actual.status in SETTLED:
        return Verdict.FINE, "is as written"
    if written is not None and version > written:
        return Verdict.EDITED, f"was changed by somebody since: version {version}"
    if actual.status in IN_FLIGHT:
        return Verdict.PENDING, f"has status {actual.status} at version {version}"
    if actual.status in SETTLED:
        return Verdict.PROBLEM, f"holds {_content(actual)}, and not what was written"
    reason = actual.failure_reason or "no reason given"
    return Verdict.REFUSED, f"has status {actual.status}: {reason}; it holds {_content(actual)}"


def _judged_missing(world: Listed, path: QuotaPath, wanted: Config | None) -> Judged:
    name = path.first.name
    if wanted is None:
        return Judged(path, Verdict.FINE)
    if world.written_version(path) is None:
        return Judged(path, Verdict.PROBLEM, f"{name} does not exist")
    if world.is_unlisted(path):
        return Judged(path, Verdict.PENDING, f"{name} is not listed yet")
    return Judged(path, Verdict.EDITED, f"{name} was deleted by somebody since")


def _version(actual: Actual) -> int:
    if isinstance(actual, ComputeQuota):
        return actual.compute_quota_version
    return actual.cluster_scheduler_config_version


def _content(actual: Actual) -> str:
    """Say what a quota or cluster policy holds."""
    config = actual.scheduler_config if isinstance(actual, ClusterSchedulerConfig) else actual.compute_quota_config
    return said_config(config)


def _holds(actual: Actual, wanted: Config | None, target: ComputeQuotaTarget | None) -> bool:
    if wanted is None:
        return False
    if isinstance(actual, ComputeQuota) and target and not is_same_target(actual.compute_quota_target, target):
        return False
    return is_same(actual.compute_quota_config if isinstance(actual, ComputeQuota) else actual.scheduler_config, wanted)
