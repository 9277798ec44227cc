"""A plan: what would be changed, in which order, why, what stops it, and what it would do to running work.

`plan_quotas` (in `taskgov.allocation.planner`) makes it from a snapshot; services store it, apply it change by change,
and verify it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from taskgov.findings import Finding
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig


class Outcome(StrEnum):
    """What becomes of a plan."""

    NOTHING_TO_DO = "nothing-to-do"
    PLANNED = "planned"
    """There are changes, and the mode is `plan`: they are shown and not written."""
    APPLY = "apply"
    NEEDS_APPROVAL = "needs-approval"
    BLOCKED = "blocked"


class ChangeKind(StrEnum):
    CREATE_QUOTA = "create-quota"
    UPDATE_QUOTA = "update-quota"
    CREATE_SCHEDULER_CONFIG = "create-scheduler-config"
    UPDATE_SCHEDULER_CONFIG = "update-scheduler-config"
    DELETE_QUOTA = "delete-quota"
    """Of a quota that failed: the documented way is to delete it and to create it again, which the next plan does."""
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
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class GuardrailVerdict:
    """What one guardrail said of a change or of the whole plan, and what would let it through."""

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


@dataclass(frozen=True, slots=True)
class Change:
    """One write, with all that is needed to make it, to undo it and to explain it."""

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


@dataclass(frozen=True, slots=True)
class WorkloadEffect:
    """A workload that the simulation shows in another state after the plan than before it."""

    namespace: str
    name: str
    team: str
    effect: str
    """`starts`, `preempted`, `waits`."""
    gpus: int
    because: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the scheduler would do because of the plan, by simulation on the snapshot's workloads."""

    simulated: bool
    effects: tuple[WorkloadEffect, ...] = ()
    preempted_gpus: int = 0
    not_modelled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer of one planning run. `plan_id` and the byte form depend on the snapshot and the mode only."""

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
