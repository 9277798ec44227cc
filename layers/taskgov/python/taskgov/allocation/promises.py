"""The promises of a snapshot: what each team is promised, and which quota holds it today.

A promise is the first of the four forms that a quota has during planning (`taskgov.allocation.claims` lists them). Its
input is the document (`TeamPolicy`), or an adopted edit by hand instead.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.parts import RowKey, row_key, together
from taskgov.allocation.sharing import NOTHING_SAID, SharingBefore, sharing_before
from taskgov.allocation.transfer import without_leases
from taskgov.allocation.written import NEVER_IN_FORCE
from taskgov.hyperpod.equality import is_same_config, is_same_target
from taskgov.hyperpod.model import (
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaResource,
    PreemptTeamTasks,
    ResourceSharingConfig,
    SharingStrategy,
)
from taskgov.policy.document import EditPolicy, PolicyDocument, TeamPolicy
from taskgov.policy.families import FamilyPromise
from taskgov.policy.measured import Share
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AnnouncedWrite, AppliedQuota


@dataclass(frozen=True, slots=True)
class Promise:
    """What one team is to have by the document, and the quota that holds it now, if there is one.

    Adds to the document's words the quota of today, and what is on record of it.
    """

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
    """Whether the quota was changed by hand, and the policy undoes it."""
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


def hand_edit(quota: ComputeQuota, applied: AppliedQuota | None) -> bool:
    """Return whether a person (or another program) changed the quota since taskgov last wrote it."""
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
    """Return the present rows of a quota. Rows of the same type and profile are summed."""
    rows: dict[RowKey, ComputeQuotaResource] = {}
    for row in () if quota is None else quota.compute_quota_config.compute_quota_resources:
        held = rows.get(row_key(row))
        rows[row_key(row)] = row if held is None else together(held, row)
    return rows


class Promises:
    """Makes the promises of one snapshot: of the document's words, the quotas, and what is on record of them."""

    def __init__(self, snapshot: Snapshot, policy: PolicyDocument, capacities: Mapping[str, TypeCapacity]) -> None:
        """Take the snapshot and its document, and what there is of each type."""
        self._policy, self._capacities = policy, capacities
        self._applied: Mapping[str, AppliedQuota] = {applied.compute_quota_id: applied for applied in snapshot.applied}

    def of(self, team: TeamPolicy, quota: ComputeQuota | None, failed: ComputeQuota | None) -> Promise:
        """Return the promise of a team of the document; `failed` counts where no other quota holds it."""
        applied = None if quota is None else self._applied.get(quota.compute_quota_id)
        failed = failed if quota is None else None
        digest = hashlib.sha256(team.model_dump_json().encode()).hexdigest()[:16]
        edited = quota is not None and hand_edit(quota, applied)
        put_right = edited and self._policy.hand_edits is EditPolicy.PUT_RIGHT
        adopted = self._adopted(quota, applied, digest, edited=edited)
        config = adopted or team.quota or ComputeQuotaConfig()
        return Promise(
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

    def of_pool(self, team: TeamPolicy, quota: ComputeQuota | None, failed: ComputeQuota | None) -> Promise:
        """Return the shared pool's promise; a team that only lends, unless the document says how it shares."""
        config = team.quota or ComputeQuotaConfig()
        failed = failed if quota is None else None
        new = ResourceSharingConfig(strategy=SharingStrategy.LEND) if quota is None and failed is None else None
        return Promise(
            team=team.name,
            quota=quota,
            rows=(),
            shares=(),
            tier=0,
            sharing=config.resource_sharing_config or new,
            preempt=config.preempt_team_tasks,
            weight=self._weight(team, quota or failed, adopted=False),
            applied=None if quota is None else self._applied.get(quota.compute_quota_id),
            failed=failed,
            sharing_before=self._sharing_before(quota or failed),
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
