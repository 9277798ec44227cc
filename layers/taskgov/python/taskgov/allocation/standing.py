"""Which quotas the plan may touch, and by which promise; which it leaves alone, and why.

The first step of a plan. What is left alone counts as taken, so that others are never promised the same machines.

| a quota | is |
| --- | --- |
| of a team in the document | governed by the document's promise |
| of a team that is not in the document, or any quota when there is no document | left alone |
| of a frozen team | left alone |
| whose record in the table cannot be read | left alone |
| changed by hand since the last write of ours | by `handEdits`: left alone, taken as the promise, or put right |
| switched off, or being deleted | left alone |
| being created or updated by HyperPod | left alone until it has settled: it refuses a write |
| stuck in a status that no update fixes | deleted, as documented, and created again in a later wave |
| a second one of the same team (by name) | left alone |

A quota is *changed by hand* when its version is newer than the one we wrote and its meaning is another. What we never
wrote is not: a document written for an existing cluster says what is wanted from now on.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.families import with_families
from taskgov.allocation.parts import RowKey, row_key, together
from taskgov.allocation.sharing import NOTHING_SAID, SharingBefore, sharing_before
from taskgov.allocation.transfer import without_leases
from taskgov.allocation.written import NEVER_IN_FORCE, writes_whole_objects
from taskgov.findings import Finding, Severity
from taskgov.hyperpod.equality import is_same_config, is_same_target
from taskgov.hyperpod.model import (
    ActivationState,
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaResource,
    PreemptTeamTasks,
    ResourceSharingConfig,
    SharingStrategy,
)
from taskgov.kueue.record import FOREIGN
from taskgov.kueue.usage import team_of
from taskgov.policy.document import EditPolicy, PolicyDocument, TeamPolicy
from taskgov.policy.families import FamilyPromise
from taskgov.policy.measured import Share
from taskgov.snapshot.model import AnnouncedWrite, AppliedQuota, QuotaEdit, Snapshot, began_from

NO_UPDATE_MENDS: Final = {
    "Deleting": "wait until it is gone",
    "CreateFailed": "delete the quota and create it again",
    "CreateRollbackFailed": "delete the quota and create it again",
    "UpdateRollbackFailed": "delete the quota and create it again",
    "DeleteFailed": "delete the quota again",
    "DeleteRollbackFailed": "delete the quota again",
    FOREIGN: "adopt it: taskgov adopt",
}
"""Status -> documented recovery (HyperPod developer guide, "Troubleshoot"); `UpdateFailed` is mended by an update."""
TO_DELETE: Final = NO_UPDATE_MENDS.keys() - {"Deleting", FOREIGN}
"""What a plan deletes and creates again. What somebody else made is left to him."""
EDITED: Final = "it was changed by hand"
SETTLING: Final = frozenset({"Creating", "Updating", "Pending"})
"""Statuses of a write that HyperPod is carrying out; the quota refuses the next one."""

IN_FLIGHT: Final = "quota-in-flight"
"""The finding on such a quota."""


@dataclass(frozen=True, slots=True)
class TeamPromise:
    """What one team is to have, and the quota that holds it now, if there is one."""

    team: str
    quota: ComputeQuota | None
    rows: tuple[ComputeQuotaResource, ...]
    shares: tuple[Share, ...]
    tier: int
    sharing: ResourceSharingConfig | None
    preempt: PreemptTeamTasks | None
    weight: int | None
    applied: AppliedQuota | None = None
    digest: str = ""
    """Digest of the document's words, kept with what is applied to see when they change."""
    adopted: ComputeQuotaConfig | None = None
    put_right: bool = False
    """The quota was changed by hand, and the policy is to undo that."""
    failed: ComputeQuota | None = None
    """The quota that failed, is deleted, and is created again; `quota` is None then."""
    families: tuple[FamilyPromise, ...] = ()
    """Promises on hardware families, until they are expanded to rows and shares."""
    of_families: Mapping[str, str] = field(default_factory=dict)
    """Instance type -> of which family promise its row or share is a part."""
    sharing_before: SharingBefore = NOTHING_SAID
    """How the team shares today, or returns to where a budget stopped its borrowing."""

    @property
    def holds(self) -> ComputeQuota | None:
        """The quota that is in force for the team now: a failed one may still be, unless its creation failed."""
        if self.failed is not None and self.failed.status not in NEVER_IN_FORCE:
            return self.failed
        return self.quota


@dataclass(frozen=True, slots=True)
class Kept:
    """A quota that is left alone, and why in a few words."""

    quota: ComputeQuota
    because: str

    @property
    def is_edited(self) -> bool:
        """Whether it is left alone because a person changed it."""
        return self.because == EDITED

    @property
    def team(self) -> str:
        """The team whose quota it is."""
        return self.quota.compute_quota_target.team_name


@dataclass(frozen=True, slots=True)
class Standings:
    """All quotas of a cluster, sorted into those a plan may touch and those it may not."""

    promises: tuple[TeamPromise, ...]
    pool: TeamPromise | None
    kept: tuple[Kept, ...]
    findings: tuple[Finding, ...]
    stuck: tuple[ComputeQuota, ...] = ()
    """Governed quotas that have failed, and are deleted before they can be created again."""


def sort_out(snapshot: Snapshot, capacities: Mapping[str, TypeCapacity]) -> Standings:
    """Sort the quotas of a cluster. Without a policy document everything is left alone."""
    quotas = sorted(snapshot.quotas, key=lambda quota: (quota.compute_quota_target.team_name, quota.name))
    if snapshot.policy is None:
        return Standings((), None, tuple(Kept(quota, "there is no policy document") for quota in quotas), ())
    return _Sorting(snapshot, snapshot.policy, capacities).of(quotas)


def hand_edit(quota: ComputeQuota, applied: AppliedQuota | None) -> bool:
    """Say whether a person (or another program) changed the quota since the automation last wrote it."""
    if applied is None or quota.compute_quota_version <= applied.version:
        return False
    announced = applied.announced
    if announced and announced.version == quota.compute_quota_version and _holds(quota, announced):
        return False  # its own write, whose record was lost
    return not _holds(quota, applied)


def _holds(quota: ComputeQuota, written: AppliedQuota | AnnouncedWrite) -> bool:
    same_config = is_same_config(quota.compute_quota_config, written.config)
    return same_config and is_same_target(quota.compute_quota_target, written.target)


def today_rows(quota: ComputeQuota | None) -> dict[RowKey, ComputeQuotaResource]:
    """Return what a quota holds now, row by row; rows that list a type and profile again are added up."""
    rows: dict[RowKey, ComputeQuotaResource] = {}
    for row in () if quota is None else quota.compute_quota_config.compute_quota_resources:
        held = rows.get(row_key(row))
        rows[row_key(row)] = row if held is None else together(held, row)
    return rows


class _Sorting:
    def __init__(self, snapshot: Snapshot, policy: PolicyDocument, capacities: Mapping[str, TypeCapacity]) -> None:
        self._policy, self._capacities = policy, capacities
        self._applied: Mapping[str, AppliedQuota] = {each.compute_quota_id: each for each in snapshot.applied}
        self._unreadable = {each.quota_id: each for each in snapshot.unreadable}
        odd = [each for each in snapshot.unreadable_objects if each.kind == "ClusterQueue"]
        self._unread_queues = {each.team for each in odd}
        self._unnamed_queues = any(not each.name for each in odd)
        self._queues = {team_of(queue) for queue in snapshot.kueue.cluster_queues} if odd else set()
        self._edits: Mapping[str, QuotaEdit] = {each.compute_quota_id: each for each in snapshot.edits}
        self._teams: Mapping[str, TeamPolicy] = {team.name: team for team in policy.teams}
        # Kueue's objects take a write at any time; a queue that Kueue does not take in is "Updating" for long.
        self._is_kueue = writes_whole_objects(snapshot)
        pool = policy.shared_pool
        self._pool_team = None if pool is None or _keeps_native_pool(snapshot, policy) else pool.team
        self._findings: list[Finding] = []
        self._stuck: list[ComputeQuota] = []
        self._failed: dict[str, ComputeQuota] = {}

    def of(self, quotas: Iterable[ComputeQuota]) -> Standings:
        kept: list[Kept] = []
        mine: dict[str, ComputeQuota] = {}
        for quota in quotas:
            because = self._left_alone_because(quota, mine)
            if because is None:
                mine[quota.compute_quota_target.team_name] = quota
            elif quota not in self._stuck:
                kept.append(Kept(quota, because))
        closed = {each.team for each in kept} - mine.keys()
        # A team whose only quota is left alone gets no second one, and a frozen team no first one.
        untouched = {*closed, *self._policy.guardrails.freeze, self._pool_team}
        open_teams = [team for name, team in sorted(self._teams.items()) if name not in untouched]
        rows_kept = (row for each in kept for row in each.quota.compute_quota_config.compute_quota_resources)
        promises = (self._promise(team, mine.get(team.name)) for team in open_teams)
        expanded, without_nodes = with_families(promises, self._capacities, rows_kept)
        self._findings += without_nodes
        return Standings(
            promises=expanded,
            pool=self._pool(mine, closed),
            kept=tuple(kept),
            findings=tuple(self._findings),
            stuck=tuple(self._stuck),
        )

    def _left_alone_because(self, quota: ComputeQuota, mine: Mapping[str, ComputeQuota]) -> str | None:
        team = quota.compute_quota_target.team_name
        if team not in self._teams and team != self._pool_team:
            because = f"{team} is not in the policy document; left as it is"
            remedy = "add the team to the policy document, or delete its quota"
            self._note("team-not-in-policy", Severity.INFO, quota, because, remedy)
            return "it is not in the policy document"
        if team in mine:
            because = f"{team} has a second quota {quota.name}; only {mine[team].name} is governed"
            self._note("second-quota", Severity.WARNING, quota, because, "delete one of the two quotas")
            return "it is a second quota of the team"
        if team in self._policy.guardrails.freeze:
            because = f"{team} is frozen by guardrails.freeze; left as it is"
            self._note(
                "team-frozen", Severity.INFO, quota, because, "take it out of guardrails.freeze when it may change"
            )
            return "the team is frozen"
        if quota.compute_quota_id in self._unreadable:
            return "its record cannot be read"
        if team in self._unread_queues or (self._unnamed_queues and team not in self._queues):
            return "its ClusterQueue cannot be read"
        self._note_between_writes(quota)
        return self._unmendable(quota) or self._hand_edited(quota)

    def _note_between_writes(self, quota: ComputeQuota) -> None:
        """Report a quota at its low write, whatever becomes of it in this plan."""
        if began_from(self._applied.get(quota.compute_quota_id), quota.compute_quota_version) is not None:
            because = f"a run was broken off after the first of the two writes of {quota.name}; it has less than before"
            remedy = "let the plan be applied: it goes on from there"
            self._note("between-writes", Severity.WARNING, quota, because, remedy)

    def _unmendable(self, quota: ComputeQuota) -> str | None:
        if quota.activation_state is ActivationState.DISABLED:
            because = f"the quota {quota.name} is switched off; left as it is"
            self._note("quota-disabled", Severity.WARNING, quota, because, "enable the quota, or delete it")
            return "the quota is switched off"
        if quota.status in TO_DELETE:
            self._stuck.append(quota)
            self._failed.setdefault(quota.compute_quota_target.team_name, quota)
        if quota.status in NO_UPDATE_MENDS:
            because = f"the quota {quota.name} has status {quota.status}: {quota.failure_reason or 'no reason given'}"
            self._note("quota-status-stuck", Severity.ERROR, quota, because, NO_UPDATE_MENDS[quota.status])
            return f"its status is {quota.status}"
        if quota.status in SETTLING and not self._is_kueue:
            because = f"the quota {quota.name} has status {quota.status}; left as it is until it has settled"
            self._note(IN_FLIGHT, Severity.INFO, quota, because, "wait until it has settled; the next run plans it")
            return f"its status is {quota.status}"
        return None

    def _hand_edited(self, quota: ComputeQuota) -> str | None:
        applied = self._applied.get(quota.compute_quota_id)
        if applied is None or not hand_edit(quota, applied):
            return None
        rule = self._policy.hand_edits
        done = {
            EditPolicy.KEEP: "left as it is",
            EditPolicy.ADOPT: "taken as the new promise",
            EditPolicy.PUT_RIGHT: "put right",
        }[rule]
        because = (
            f"{self._who(quota)} changed the quota {quota.name} by hand "
            f"(version {applied.version} -> {quota.compute_quota_version}); {done}"
        )
        remedy = {
            EditPolicy.KEEP: "write it into the policy document, or set handEdits: putRight",
            EditPolicy.ADOPT: "write it into the policy document, so that the two say the same",
            EditPolicy.PUT_RIGHT: "change the policy document instead of the quota",
        }[rule]
        self._note("edited-by-hand", Severity.WARNING, quota, because, remedy)
        return EDITED if rule is EditPolicy.KEEP else None

    def _who(self, quota: ComputeQuota) -> str:
        edit = self._edits.get(quota.compute_quota_id)
        return "somebody" if edit is None else f"{edit.by} ({edit.event_name}, {edit.at:%Y-%m-%d %H:%M} UTC)"

    def _promise(self, team: TeamPolicy, quota: ComputeQuota | None) -> TeamPromise:
        applied = None if quota is None else self._applied.get(quota.compute_quota_id)
        failed = None if quota is not None else self._failed.get(team.name)
        digest = hashlib.sha256(team.model_dump_json().encode()).hexdigest()[:16]
        edited = quota is not None and hand_edit(quota, applied)
        put_right = edited and self._policy.hand_edits is EditPolicy.PUT_RIGHT
        adopted = self._adopted(quota, applied, digest, edited=edited)
        config = adopted or team.quota or ComputeQuotaConfig()
        return TeamPromise(
            team=team.name,
            quota=quota,
            rows=config.compute_quota_resources,
            shares=() if adopted else team.share,
            families=() if adopted else team.families,
            tier=team.tier,
            sharing=config.resource_sharing_config,
            preempt=config.preempt_team_tasks,
            weight=self._weight(team, quota or failed, adopted=adopted is not None),
            applied=applied,
            digest=digest,
            adopted=adopted,
            put_right=put_right,
            failed=failed,
            sharing_before=self._sharing_before(quota or failed, put_right=put_right),
        )

    def _adopted(
        self, quota: ComputeQuota | None, applied: AppliedQuota | None, digest: str, *, edited: bool
    ) -> ComputeQuotaConfig | None:
        """Return the edit that holds as the promise: this one, or an earlier one, until the document says otherwise."""
        if quota is None or applied is None or self._policy.hand_edits is not EditPolicy.ADOPT:
            return None
        if applied.promise not in {"", digest}:
            return None
        if not edited:
            return applied.adopted
        # What leases moved when the quota was last written is still in the numbers that the person found.
        config = without_leases(quota.compute_quota_config, applied.leased or {}, self._capacities)
        # The limit that a budget set is nobody's edit: how the team shares is left unsaid.
        stopped = self._sharing_before(quota).is_stopped
        return config.model_copy(update={"resource_sharing_config": None}) if stopped else config

    def _sharing_before(self, quota: ComputeQuota | None, *, put_right: bool = False) -> SharingBefore:
        applied = None if quota is None else self._applied.get(quota.compute_quota_id)
        return sharing_before(quota, applied, put_right=put_right)

    @staticmethod
    def _weight(team: TeamPolicy, quota: ComputeQuota | None, *, adopted: bool) -> int | None:
        if quota is not None and (adopted or team.fair_share_weight is None):
            return quota.compute_quota_target.fair_share_weight
        return team.fair_share_weight

    def _pool(self, mine: Mapping[str, ComputeQuota], closed: set[str]) -> TeamPromise | None:
        """Return the shared pool's promise; a team that only lends, unless the document names it among the teams."""
        name = self._pool_team
        if name is None or name in closed or name in self._policy.guardrails.freeze:
            return None
        told = self._teams.get(name) or TeamPolicy(name=name)
        config = told.quota or ComputeQuotaConfig()
        quota = mine.get(name)
        failed = None if quota is not None else self._failed.get(name)
        new = ResourceSharingConfig(strategy=SharingStrategy.LEND) if quota is None and failed is None else None
        return TeamPromise(
            team=name,
            quota=quota,
            rows=(),
            shares=(),
            tier=0,
            sharing=config.resource_sharing_config or new,
            preempt=config.preempt_team_tasks,
            weight=self._weight(told, quota or failed, adopted=False),
            applied=None if quota is None else self._applied.get(quota.compute_quota_id),
            failed=failed,
            sharing_before=self._sharing_before(quota or failed),
        )

    def _note(self, code: str, severity: Severity, quota: ComputeQuota, because: str, remedy: str) -> None:
        team, version = quota.compute_quota_target.team_name, quota.compute_quota_version
        evidence: dict[str, str | int] = {"quota": quota.name, "version": version, "status": quota.status}
        self._findings.append(Finding(code, severity, team, because, remedy, evidence))


def _keeps_native_pool(snapshot: Snapshot, policy: PolicyDocument) -> bool:
    """Say whether HyperPod keeps the pool itself (IdleResourceSharing), so that ours stays out of its way."""
    if policy.shared_pool is not None and policy.shared_pool.native:
        return True
    wanted = policy.scheduler_config and policy.scheduler_config.idle_resource_sharing
    actual = snapshot.scheduler_config and snapshot.scheduler_config.scheduler_config.idle_resource_sharing
    return (wanted or actual) == "Enabled"
