"""A plan: the changes, their order and reasons, the verdicts of guardrails, and the effects on running work.

`plan_quotas` (in `taskgov.allocation.planner`) builds a plan from a snapshot. Services store it, apply it change by
change, and verify it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from taskgov.findings import Finding
from taskgov.hyperpod.equality import is_same_config, is_same_scheduler_config, is_same_target
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaTarget, ResourceSharingConfig, SchedulerConfig


class Outcome(StrEnum):
    """The outcome of a plan."""

    NOTHING_TO_DO = "nothing-to-do"
    PLANNED = "planned"
    """There are changes, and the mode is `plan`: changes are shown and not written."""
    APPLY = "apply"
    NEEDS_APPROVAL = "needs-approval"
    BLOCKED = "blocked"
    NO_PROGRESS = "no-progress"
    """The previous plan wrote the same values, they have settled and are still in place, and the plan is not empty."""


class ChangeKind(StrEnum):
    CREATE_QUOTA = "create-quota"
    UPDATE_QUOTA = "update-quota"
    CREATE_SCHEDULER_CONFIG = "create-scheduler-config"
    UPDATE_SCHEDULER_CONFIG = "update-scheduler-config"
    DELETE_QUOTA = "delete-quota"
    """Only for a quota that failed: the documented recovery deletes it, and creates it again in a later wave."""
    DELETE_SCHEDULER_CONFIG = "delete-scheduler-config"


POLICY_KINDS: Final = frozenset(
    {ChangeKind.CREATE_SCHEDULER_CONFIG, ChangeKind.UPDATE_SCHEDULER_CONFIG, ChangeKind.DELETE_SCHEDULER_CONFIG}
)
DELETIONS: Final = frozenset({ChangeKind.DELETE_QUOTA, ChangeKind.DELETE_SCHEDULER_CONFIG})


class Reason(StrEnum):
    """Why a number changes (or stays): stable tokens, at most one dominant reason per change."""

    PROMISE = "promise"
    SHARE = "share"
    CAPACITY_SHRANK = "capacity-shrank"
    CAPACITY_GREW = "capacity-grew"
    SHORTAGE = "shortage"
    INCIDENT = "incident"
    LEASE_STARTED = "lease-started"
    LEASE_ENDED = "lease-ended"
    SHARED_POOL = "shared-pool"
    HAND_EDIT_PUT_RIGHT = "hand-edit-put-right"
    HAND_EDIT_ADOPTED = "hand-edit-adopted"
    POLICY_CHANGED = "policy-changed"
    DEMAND = "demand"
    BUDGET = "budget"
    RECOVERY = "recovery"
    REFUSAL = "refusal"
    """The write of another quota was refused: what it would have taken stays with those who have it, or had it."""
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class GuardrailVerdict:
    """The verdict of one guardrail on a change or the whole plan, and what would unblock it."""

    guardrail: str
    passed: bool
    because: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class CapacityLine:
    """Capacity of one instance type in whole instances, whatever the basis; `resources` has it in amounts.

    `nodes` are all that are there, `counted` those that count, `usable` is `counted` less `headroom`.
    """

    instance_type: str
    nodes: int
    counted: int
    held: tuple[str, ...]
    """One sentence for each node that is unhealthy and counts on until its hold time ends."""
    headroom: int
    usable: int
    left_out: tuple[str, ...]
    """One sentence for each node that was not counted: `hyperpod-i-0abc: cordoned since 2026-11-20 09:12 UTC`."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """What promises may add up to, over-commitment included: base units by resource, at the basis of the policy."""
    one_thread: int = 0
    """How many of the counted have multithreading switched off (ThreadsPerCore 1): half of the type's vCPUs."""


@dataclass(frozen=True, slots=True)
class MassLoss:
    """A sudden loss of nodes of one instance type that nobody has confirmed (`taskgov.allocation.mass_loss`)."""

    instance_type: str
    nodes: tuple[str, ...]
    """The lost nodes, by name."""
    of: int
    """How many nodes of the type were healthy before."""
    since: datetime
    """When the first of them was seen to be lost."""
    until: datetime
    """When the last of them was seen to be lost."""
    lists: str = ""
    """A sentence on what Kubernetes lists of the type, and what the provider does."""


@dataclass(frozen=True, slots=True)
class TeamAllocation:
    """What one team gets of one instance type, before and after, in the unit of its promise."""

    team: str
    instance_type: str
    unit: str
    """`Count`, `Accelerators`, `VCpu`, `MemoryInGiB`, or the MIG profile."""
    before: float
    after: float
    gpus_before: float
    gpus_after: float
    reason: Reason
    because: str


def quota_key(team: str, name: str) -> str:
    """Return the identity of a quota: quotas of two teams may have one name.

    Example:
        >>> quota_key("team-a", "gpus")
        'team-a/gpus'

    """
    return f"{team}/{name}"


@dataclass(frozen=True, slots=True)
class Change:
    """One write, with all that is needed to make it, to undo it and to explain it.

    Adds to an allocation that differs from what stands: the version that it is made from, what stands before it, the
    verdicts of the guardrails, and its wave. It is the last of the four forms that a quota passes
    (`taskgov.allocation.claims` lists them), and the only one that is stored.

    A quota that gives one resource and takes another may be written twice: a low write (`is_low`), then `after` in a
    later wave. The second write has no `target_version`: it is made at the version that the first returned.
    Raises `ValueError` for a write of what stands already, unless it is the documented retry of a failed update.
    """

    index: int
    kind: ChangeKind
    team: str
    resource_id: str | None
    """ComputeQuotaId or ClusterSchedulerConfigId; None for a creation."""
    name: str
    target_version: int | None
    before: ComputeQuotaConfig | SchedulerConfig | None
    after: ComputeQuotaConfig | SchedulerConfig
    target_before: ComputeQuotaTarget | None
    target_after: ComputeQuotaTarget | None
    gpus_before: float
    gpus_after: float
    reason: Reason
    because: str
    guardrails: tuple[GuardrailVerdict, ...] = ()
    promise: str = ""
    """Digest of the document's promise, to be kept with what is applied (`AppliedQuota.promise`)."""
    adopted: ComputeQuotaConfig | None = None
    """The edit by hand that this change takes as the promise, to be kept with what is applied."""
    wave: int = 0
    """Writes of one wave are sent together, and have settled before the next wave begins. From 1; 0 in old plans."""
    is_low: bool = False
    """Whether this is the low write: the first of two writes of the quota, which only lowers."""
    began_from: ComputeQuotaConfig | None = None
    """If `before` is the low write of an interrupted path: the value before that path."""
    leased: Mapping[str, int] | None = None
    """Whole instances by type that leases bring (below zero: take) in `after`; None in old plans."""
    demand: Mapping[str, int] | None = None
    """Whole instances by type that demand leaves of the promise, to be kept with what is applied."""
    sharing_within_budget: ResourceSharingConfig | None = None
    """How the team shares within its budget, to be kept with what is applied; None in old plans, and if not known."""
    preempts: tuple[str, ...] = ()
    """Workloads (`namespace/name`) that the wave of this change is predicted to preempt."""
    wanted: str = ""
    """Digest of what is wanted of the quota, where limits or refused writes let the plan go another way.

    Empty where that is `after` of its last write; see `taskgov.allocation.refusals.wanted_of`.
    """

    @property
    def subject(self) -> str:
        """What it writes: the policy, or a quota by team and name; a deleted one keeps both when created again."""
        return "cluster policy" if self.kind in POLICY_KINDS else quota_key(self.team, self.name)

    def __post_init__(self) -> None:
        """Raise `ValueError` for a write that changes nothing."""
        if self.wave and self.reason is not Reason.RECOVERY and self._is_written_already():
            raise ValueError(f"change of {self.name}: it stands as it would be written")

    def _is_written_already(self) -> bool:
        match self.before, self.after:
            case ComputeQuotaConfig() as before, ComputeQuotaConfig() as after if self.target_before is not None:
                same = self.target_after is not None and is_same_target(self.target_before, self.target_after)
                return same and is_same_config(before, after)
            case SchedulerConfig() as before, SchedulerConfig() as after:
                return is_same_scheduler_config(before, after)
            case _:
                return False


AT_RISK: Final = "may be preempted"


@dataclass(frozen=True, slots=True)
class WorkloadEffect:
    """A workload that the simulation shows in another state after the plan than before it."""

    namespace: str
    name: str
    team: str
    effect: str
    """`starts`, `preempted`, `waits`, `may be preempted`."""
    gpus: int
    because: str
    wave: int = 0  # of the writes that preempt it; 0 for what is so at the end of the path
    uncertain: tuple[str, ...] = ()
    """The features that the scheduling model does not follow and that may change this; none where it is certain."""
    task: str = ""  # `team/job`, as `explain` takes it; plans stored before have none


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the scheduler would do because of the plan, by simulation on the snapshot's workloads.

    | `simulated` | `not_predicted` | means |
    | --- | --- | --- |
    | False | any | nothing is known; `not_modelled` says why |
    | True | empty | all waves were played, in every order that counts |
    | True | sentences | at least these effects; the sentences say what was not played |
    """

    simulated: bool
    effects: tuple[WorkloadEffect, ...] = ()
    preempted_gpus: int = 0
    not_modelled: tuple[str, ...] = ()
    """Where it was simulated: what the cluster uses and the scheduling model does not follow."""
    not_predicted: tuple[str, ...] = ()
    may_be_preempted_gpus: int = 0
    """What may be preempted besides `preempted_gpus`, and is not certain (`taskgov.allocation.uncertain`)."""

    @property
    def most_preempted_gpus(self) -> int:
        """What is preempted, with what may be: guardrails count both."""
        return self.preempted_gpus + self.may_be_preempted_gpus

    @property
    def doubts(self) -> tuple[str, ...]:
        """The features that make it uncertain who is preempted, by name."""
        return tuple(sorted({f for effect in self.effects if effect.effect == AT_RISK for f in effect.uncertain}))

    @property
    def is_complete(self) -> bool:
        """Whether the effects are all, and not just at least these."""
        return self.simulated and not self.not_predicted


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer of one planning run. The byte form depends on the snapshot, the mode and the approval only.

    `plan_id` depends on the cluster and on the change of each quota, and on nothing else: the plan that was shown,
    the one that was approved and the one that was written are one plan as long as they change the same.
    """

    plan_id: str
    cluster_name: str
    cluster_arn: str
    snapshot_sha256: str
    policy_version: str | None
    mode: str
    outcome: Outcome
    taken_at: datetime
    capacity: tuple[CapacityLine, ...]
    allocations: tuple[TeamAllocation, ...]
    changes: tuple[Change, ...]
    guardrails: tuple[GuardrailVerdict, ...]
    findings: tuple[Finding, ...]
    prediction: Prediction
    recheck_at: datetime | None
    losses: tuple[MassLoss, ...] = ()
    """What the plan may not follow before a person approves it; empty when it does not depend on what was lost."""
