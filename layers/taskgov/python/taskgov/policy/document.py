"""The governance policy document: what the administrator wants of one cluster.

The grammar is in `docs/policy.md`. `parse_policy` (in `taskgov.policy.parse`) makes it from YAML or JSON and returns
all violations at once.
"""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from taskgov.hyperpod.model import ComputeQuotaConfig, SchedulerConfig


class PolicyModel(BaseModel):
    """A part of the document: immutable, camelCase outside, unknown keys refused."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="forbid")


class Backend(StrEnum):
    SAGEMAKER = "sagemaker"
    KUEUE = "kueue"


class ClusterRef(PolicyModel):
    name: str
    arn: str
    backend: Backend = Backend.SAGEMAKER


class Share(PolicyModel):
    """A share of the healthy capacity of one instance type, in percent, within floor and ceiling (whole instances)."""

    instance_type: str
    percent: float
    floor: int = 0
    ceiling: int | None = None


class TeamPolicy(PolicyModel):
    """A team's promise: a fixed `quota`, or `share`s of the healthy capacity, or both on different instance types."""

    name: str
    quota: ComputeQuotaConfig | None = None
    share: tuple[Share, ...] = ()
    fair_share_weight: int | None = None
    tier: int = 1


class SharedPool(PolicyModel):
    team: str = "shared-pool"
    takes: Literal["remainder"] = "remainder"
    native: bool = False


class CapacityBasis(StrEnum):
    INSTANCES = "instances"
    ALLOCATABLE = "allocatable"


class CapacityRules(PolicyModel):
    basis: CapacityBasis = CapacityBasis.INSTANCES
    headroom_percent: float = 0
    hold_unhealthy_minutes: int = 10
    grow_after_minutes: int = 5
    overcommit_percent: float = 0


class ChangeWindow(PolicyModel):
    """When changes may be applied: opens at each match of the cron expression, stays open for `minutes`."""

    cron: str
    minutes: int
    time_zone: str = "UTC"


class ApprovalThreshold(PolicyModel):
    changed_gpus: int | None = None
    preempted_gpus: int | None = None


class PeriodLimit(PolicyModel):
    """At most `percent` of a team's quota may be taken within `hours`."""

    percent: float
    hours: int


class Guardrails(PolicyModel):
    max_decrease_percent: float | None = None
    max_decrease_per_period: PeriodLimit | None = None
    max_preempted_gpus: int | None = None
    minimum_quota: dict[str, int] = {}
    """Team -> accelerators that no change goes below."""
    approve_above: ApprovalThreshold | None = None
    freeze: tuple[str, ...] = ()
    change_windows: tuple[ChangeWindow, ...] = ()


class Lease(PolicyModel):
    to: str
    from_: str = Field(alias="from")
    instance_type: str
    count: int
    start: datetime
    end: datetime
    reason: str


class EditPolicy(StrEnum):
    """What becomes of a quota that a person changed: left alone, taken as the new promise, or put right."""

    KEEP = "keep"
    ADOPT = "adopt"
    PUT_RIGHT = "putRight"


class Budget(PolicyModel):
    """GPU-hours that a team may use per period; measured and warned about, never taken from the guarantee."""

    team: str
    gpu_hours: float
    period: Literal["day", "week", "month"] = "month"
    warn_percent: tuple[int, ...] = (80, 100)
    lower_borrow_limit: bool = False


class DemandRules(PolicyModel):
    """Demand-aware rebalancing, off by default."""

    enabled: bool = False
    window_hours: int = 168
    max_move_percent: float = 10


class PolicyDocument(PolicyModel):
    api_version: Literal["taskgov/v1"]
    cluster: ClusterRef
    scheduler_config: SchedulerConfig | None = None
    teams: tuple[TeamPolicy, ...] = ()
    shared_pool: SharedPool | None = None
    capacity: CapacityRules = CapacityRules()
    guardrails: Guardrails = Guardrails()
    leases: tuple[Lease, ...] = ()
    budgets: tuple[Budget, ...] = ()
    demand: DemandRules = DemandRules()
    hand_edits: EditPolicy = EditPolicy.KEEP
