"""Which quotas the plan may touch, and by which promise; which it leaves alone, and why.

The first step of a plan. What is left alone counts as taken, so that others are never promised the same machines.

| a quota | is |
| --- | --- |
| of a team in the document | governed by the document's promise |
| of a team that is not in the document, or any quota when there is no document | left alone |
| of a frozen team | left alone |
| whose numbers Kueue itself sets (`taskgov.allocation.orchestrated`) | left alone |
| whose record in the table cannot be read | left alone |
| that infrastructure as code changed last, with `coOwned: keep` | left alone |
| changed by hand since taskgov's last write | by `handEdits`: left alone, taken as the promise, or put right |
| switched off, or being deleted | left alone |
| being created or updated by HyperPod | left alone until it has settled: it refuses a write |
| stuck in a status that no update fixes | deleted, as documented, and created again in a later wave |
| a second one of the same team (by name) | left alone |

A quota counts as *changed by hand* when its version is newer than our last write and its configuration differs in
effect. A quota that we never wrote does not: a document for an existing cluster says what should hold from now on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from taskgov.allocation import orchestrated
from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.families import with_families
from taskgov.allocation.promises import Promise, Promises, hand_edit
from taskgov.allocation.written import writes_whole_objects
from taskgov.findings import Evidence, Finding
from taskgov.findings.kind import FindingKind
from taskgov.findings.of_plan import (
    BETWEEN_WRITES,
    CO_OWNED_GOVERNED,
    CO_OWNED_LEFT,
    EDIT_ADOPTED,
    EDIT_LEFT,
    EDIT_PUT_RIGHT,
    QUOTA_DISABLED,
    QUOTA_IN_FLIGHT,
    QUOTA_STATUS_STUCK,
    SECOND_QUOTA,
    TEAM_FROZEN,
    TEAM_NOT_IN_POLICY,
    UNKNOWN_SETTINGS,
)
from taskgov.hyperpod.model import ActivationState, ComputeQuota
from taskgov.kueue.record import FOREIGN
from taskgov.policy.document import CoOwnedPolicy, EditPolicy, PolicyDocument, TeamPolicy
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota, QuotaEdit, began_from
from taskgov.usage.quota_usage import team_of

NO_UPDATE_MENDS: Final = {
    "Deleting": "wait until it is gone",
    "CreateFailed": "delete the quota and create it again",
    "CreateRollbackFailed": "delete the quota and create it again",
    "UpdateRollbackFailed": "delete the quota and create it again",
    "DeleteFailed": "delete the quota again",
    "DeleteRollbackFailed": "delete the quota again",
    FOREIGN: "adopt it: taskgov adopt",
}
"""Status -> documented recovery (HyperPod developer guide, "Troubleshoot"); `UpdateFailed` is fixed by an update."""
TO_DELETE: Final = NO_UPDATE_MENDS.keys() - {"Deleting", FOREIGN}
"""Statuses of quotas that a plan deletes and creates again, if taskgov made them."""
EDITED: Final = "it was changed by hand"
SETTLING: Final = frozenset({"Creating", "Updating", "Pending"})
"""Statuses of a write that HyperPod is carrying out; the quota refuses the next one."""
_EDITS: Final = {
    EditPolicy.KEEP: EDIT_LEFT,
    EditPolicy.ADOPT: EDIT_ADOPTED,
    EditPolicy.PUT_RIGHT: EDIT_PUT_RIGHT,
}
"""The sentence about an edit by hand, by how it is treated."""


@dataclass(frozen=True, slots=True)
class LeftAlone:
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
class GovernedQuotas:
    """All quotas of a cluster, sorted into those a plan may touch and those it may not."""

    promises: tuple[Promise, ...]
    pool: Promise | None
    left_alone: tuple[LeftAlone, ...]
    findings: tuple[Finding, ...]
    stuck: tuple[ComputeQuota, ...] = ()
    """Governed quotas that have failed, and are deleted before they can be created again."""


def select_governed(snapshot: Snapshot, capacities: Mapping[str, TypeCapacity]) -> GovernedQuotas:
    """Sort the quotas of a cluster. Without a policy document that can be used everything is left alone."""
    quotas = sorted(snapshot.quotas, key=lambda quota: (quota.compute_quota_target.team_name, quota.name))
    if snapshot.policy is None:
        because = "the policy document breaks rules" if snapshot.policy_violations else "there is no policy document"
        return GovernedQuotas((), None, tuple(LeftAlone(quota, because) for quota in quotas), ())
    return _Selection(snapshot, snapshot.policy, capacities).of(quotas)


class _Selection:
    def __init__(self, snapshot: Snapshot, policy: PolicyDocument, capacities: Mapping[str, TypeCapacity]) -> None:
        self._policy, self._capacities = policy, capacities
        self._applied: Mapping[str, AppliedQuota] = {record.compute_quota_id: record for record in snapshot.applied}
        self._unreadable = {item.quota_id: item for item in snapshot.unreadable}
        unread = [item for item in snapshot.unreadable_objects if item.kind == "ClusterQueue"]
        self._unread_queues = {queue.team for queue in unread}
        self._unnamed_queues = any(not queue.name for queue in unread)
        self._queues = {team_of(queue) for queue in snapshot.kueue.cluster_queues} if unread else set()
        self._edits: Mapping[str, QuotaEdit] = {edit.compute_quota_id: edit for edit in snapshot.edits}
        self._teams: Mapping[str, TeamPolicy] = {team.name: team for team in policy.teams}
        self._orchestrated = orchestrated.orchestrators(snapshot)
        self._promises = Promises(snapshot, policy, capacities)
        # Kueue's objects take a write at any time; a queue that Kueue does not take in is "Updating" for long.
        self._is_kueue = writes_whole_objects(snapshot)
        pool = policy.shared_pool
        self._pool_team = None if pool is None or _keeps_native_pool(snapshot, policy) else pool.team
        self._findings: list[Finding] = []
        self._stuck: list[ComputeQuota] = []
        self._failed: dict[str, ComputeQuota] = {}

    def of(self, quotas: Iterable[ComputeQuota]) -> GovernedQuotas:
        left_alone: list[LeftAlone] = []
        mine: dict[str, ComputeQuota] = {}
        for quota in quotas:
            because = self._left_alone_because(quota, mine)
            if because is None:
                mine[quota.compute_quota_target.team_name] = quota
            elif quota not in self._stuck:
                left_alone.append(LeftAlone(quota, because))
        closed = {left.team for left in left_alone} - mine.keys()
        # A team whose only quota is left alone gets no second one, and a frozen team no first one.
        untouched = {*closed, *self._policy.guardrails.freeze, self._pool_team}
        open_teams = [team for name, team in sorted(self._teams.items()) if name not in untouched]
        rows_kept = (row for left in left_alone for row in left.quota.compute_quota_config.compute_quota_resources)
        promises = (self._promises.of(team, mine.get(team.name), self._failed.get(team.name)) for team in open_teams)
        expanded, without_nodes = with_families(promises, self._capacities, rows_kept)
        self._findings += without_nodes
        return GovernedQuotas(
            promises=expanded,
            pool=self._pool(mine, closed),
            left_alone=tuple(left_alone),
            findings=tuple(self._findings),
            stuck=tuple(self._stuck),
        )

    def _left_alone_because(self, quota: ComputeQuota, mine: Mapping[str, ComputeQuota]) -> str | None:
        team = quota.compute_quota_target.team_name
        if team not in self._teams and team != self._pool_team:
            self._note(TEAM_NOT_IN_POLICY, quota)
            return "it is not in the policy document"
        if team in mine:
            self._note(SECOND_QUOTA, quota, governed=mine[team].name)
            return "it is a second quota of the team"
        if team in self._policy.guardrails.freeze:
            self._note(TEAM_FROZEN, quota)
            return "the team is frozen"
        unread = self._not_known_in_full(quota)
        if unread is not None:
            return unread
        self._note_between_writes(quota)
        return self._co_owned(quota) or self._unmendable(quota) or self._hand_edited(quota)

    def _not_known_in_full(self, quota: ComputeQuota) -> str | None:
        team = quota.compute_quota_target.team_name
        if quota.unknown_members:
            self._note(UNKNOWN_SETTINGS, quota, settings=", ".join(quota.unknown_members))
            return "it has settings that this release does not support"
        if quota.compute_quota_id in self._unreadable:
            return "its record cannot be read"
        if team in self._unread_queues or (self._unnamed_queues and team not in self._queues):
            return "its ClusterQueue cannot be read"
        return None

    def _note_between_writes(self, quota: ComputeQuota) -> None:
        """Report a quota at its low write, whatever this plan does with it."""
        if began_from(self._applied.get(quota.compute_quota_id), quota.compute_quota_version) is not None:
            self._note(BETWEEN_WRITES, quota)

    def _co_owned(self, quota: ComputeQuota) -> str | None:
        """Classify a quota that a tool of infrastructure as code changed last."""
        edit = self._edits.get(quota.compute_quota_id)
        if edit is None or edit.tool is None:
            return None
        is_kept = self._policy.co_owned is CoOwnedPolicy.KEEP
        kind = CO_OWNED_LEFT if is_kept else CO_OWNED_GOVERNED
        self._note(kind, quota, {"coOwner": edit.tool}, tool=edit.tool, who=self._who(quota))
        return f"{edit.tool} changed it last" if is_kept else None

    def _unmendable(self, quota: ComputeQuota) -> str | None:
        if quota.compute_quota_target.team_name in self._orchestrated:
            return orchestrated.BECAUSE
        if quota.activation_state is ActivationState.DISABLED:
            self._note(QUOTA_DISABLED, quota)
            return "the quota is switched off"
        if quota.status in TO_DELETE:
            self._stuck.append(quota)
            self._failed.setdefault(quota.compute_quota_target.team_name, quota)
        if quota.status in NO_UPDATE_MENDS:
            reason, recovery = quota.failure_reason or "no reason given", NO_UPDATE_MENDS[quota.status]
            self._note(QUOTA_STATUS_STUCK, quota, reason=reason, recovery=recovery)
            return f"its status is {quota.status}"
        if quota.status in SETTLING and not self._is_kueue:
            self._note(QUOTA_IN_FLIGHT, quota)
            return f"its status is {quota.status}"
        return None

    def _hand_edited(self, quota: ComputeQuota) -> str | None:
        applied = self._applied.get(quota.compute_quota_id)
        if applied is None or not hand_edit(quota, applied):
            return None
        rule = self._policy.hand_edits
        before, after = applied.version, quota.compute_quota_version
        self._note(_EDITS[rule], quota, who=self._who(quota), before=before, after=after)
        return EDITED if rule is EditPolicy.KEEP else None

    def _who(self, quota: ComputeQuota) -> str:
        edit = self._edits.get(quota.compute_quota_id)
        return "somebody" if edit is None else f"{edit.by} ({edit.event_name}, {edit.at:%Y-%m-%d %H:%M} UTC)"

    def _pool(self, mine: Mapping[str, ComputeQuota], closed: set[str]) -> Promise | None:
        name = self._pool_team
        if name is None or name in closed or name in self._policy.guardrails.freeze:
            return None
        team = self._teams.get(name) or TeamPolicy(name=name)
        return self._promises.of_pool(team, mine.get(name), self._failed.get(name))

    def _note(
        self, kind: FindingKind, quota: ComputeQuota, more: Evidence = MappingProxyType({}), **fields: object
    ) -> None:
        """Report a quota; the sentence gets its team, name and status by itself."""
        team, name, status = quota.compute_quota_target.team_name, quota.name, quota.status
        evidence: Evidence = {"quota": name, "version": quota.compute_quota_version, "status": status, **more}
        self._findings.append(kind.about(team, evidence, team=team, quota=name, status=status, **fields))


def _keeps_native_pool(snapshot: Snapshot, policy: PolicyDocument) -> bool:
    """Return whether HyperPod has a pool of its own (IdleResourceSharing), so that taskgov creates none."""
    if policy.shared_pool is not None and policy.shared_pool.native:
        return True
    wanted = policy.scheduler_config and policy.scheduler_config.idle_resource_sharing
    actual = snapshot.scheduler_config and snapshot.scheduler_config.scheduler_config.idle_resource_sharing
    return (wanted or actual) == "Enabled"
