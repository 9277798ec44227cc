"""The governance policy document: the administrator's settings for one cluster.

The grammar is in `docs/policy.md`. `parse_policy` (in `taskgov.policy.parse`) makes it from YAML or JSON and returns
all violations at once.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from taskgov.findings import Severity
from taskgov.hyperpod.instance_types import InstanceResources, InstanceTypeTable
from taskgov.hyperpod.limits import WEIGHT, Length
from taskgov.hyperpod.model import ComputeQuotaConfig, SchedulerConfig
from taskgov.policy.backends import Backend
from taskgov.policy.base import (
    Gibibytes,
    Growth,
    Hours,
    InstanceType,
    LossPercent,
    Minutes,
    Moment,
    Pattern,
    Percent,
    PolicyModel,
    TeamName,
    Text,
    Whole,
)
from taskgov.policy.families import FamilyPromise
from taskgov.policy.measured import Lease, Share
from taskgov.policy.notices import NoticeRules, TeamNotices


class ClusterRef(PolicyModel):
    """Which cluster, and who keeps its quotas."""

    name: Annotated[str, Length(1, 100)]
    arn: Annotated[str, Field(max_length=256)]
    backend: Backend = Backend.SAGEMAKER


class TeamPolicy(PolicyModel):
    """A team's guarantee: a fixed `quota`, or `share`s of the healthy capacity, or both on different instance types.

    `families` guarantee either on all instance types that a selector stands for; the plan expands them.
    `fairShareWeight` may also be written into `quota`, beside what it belongs to; it is the same.
    """

    name: TeamName
    quota: ComputeQuotaConfig | None = None
    share: tuple[Share, ...] = ()
    families: tuple[FamilyPromise, ...] = ()
    fair_share_weight: Annotated[int, WEIGHT] | None = None
    tier: Annotated[int, Field(ge=1, le=100)] = 1
    """Who gives first when capacity is short: the highest number."""

    @model_serializer(mode="wrap")
    def _without_families_where_there_are_none(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave the later field out where it says nothing: digests of documents without it stay as they were."""
        written: dict[str, Any] = handler(self)
        return written if self.families else {key: value for key, value in written.items() if key != "families"}


class SharedPool(PolicyModel):
    """Who keeps what no team was given: a team of our own, or HyperPod's IdleResourceSharing (`native`)."""

    team: TeamName = "shared-pool"
    takes: Literal["remainder"] = "remainder"
    native: bool = False


class CapacityBasis(StrEnum):
    INSTANCES = "instances"
    ALLOCATABLE = "allocatable"


class CapacityRules(PolicyModel):
    """What counts as capacity: which nodes, at which numbers, and how long after a change."""

    basis: CapacityBasis = CapacityBasis.INSTANCES
    headroom_percent: Percent = 0
    hold_unhealthy_minutes: Minutes = 10
    grow_after_minutes: Minutes = 5
    overcommit_percent: Annotated[float, Field(ge=0, le=1000)] = 0
    notice_before_end_hours: Annotated[int, Field(ge=0, le=24 * 92)] = 48
    """How long before a training plan or Capacity Block takes machines back it is a finding; 0 for never."""


class ChangeWindow(PolicyModel):
    """When changes may be applied: opens at each match of the cron expression, stays open for `minutes`."""

    cron: str
    minutes: Annotated[int, Field(ge=1, le=7 * 24 * 60)]
    time_zone: str = "UTC"


class ApprovalThreshold(PolicyModel):
    """A plan that changes or preempts more GPUs than this waits for a person."""

    changed_gpus: Whole | None = None
    preempted_gpus: Whole | None = None


class PeriodLimit(PolicyModel):
    """At most `percent` of a team's quota may be taken within `hours`."""

    percent: Percent
    hours: Hours


class GrowthLimit(PolicyModel):
    """A team's quota may grow by at most `percent` within `hours`; 100 is twice as much."""

    percent: Growth
    hours: Hours


class OnLimit(StrEnum):
    """How to treat a plan beyond a limit of decreases or increases: stop it, or cut it back to the limit."""

    BLOCK = "block"
    PARTIAL = "partial"


class Guardrails(PolicyModel):
    """What no plan may do by itself."""

    max_decrease_percent: Percent | None = None
    max_decrease_instances: Whole | None = None
    """Whole instances of a type that a plan may take from a team in any case: the greater of these and the percent."""
    max_decrease_per_period: PeriodLimit | None = None
    max_increase_percent: Growth | None = None
    max_increase_per_period: GrowthLimit | None = None
    on_limit: OnLimit = OnLimit.BLOCK
    max_preempted_gpus: Whole | None = None
    minimum_quota: dict[str, Whole] = {}  # noqa: RUF012 -- pydantic copies defaults
    """Team -> accelerators that no change goes below."""
    approve_above: ApprovalThreshold | None = None
    freeze: tuple[str, ...] = ()
    """Teams whose quotas no plan changes."""
    change_windows: tuple[ChangeWindow, ...] = ()
    """When changes may be applied; none means always."""
    mass_loss_percent: LossPercent = 30
    """A sudden loss of more of a type's nodes that their provider does not confirm: a person approves decreases."""


class EditPolicy(StrEnum):
    """How to treat a quota that a person changed: leave it, take it as the new guarantee, or correct it."""

    KEEP = "keep"
    ADOPT = "adopt"
    PUT_RIGHT = "putRight"


class CoOwnedPolicy(StrEnum):
    """How to treat a quota that infrastructure as code changed last: leave it to its tool, or govern it anyway."""

    KEEP = "keep"
    GOVERN = "govern"


class Budget(PolicyModel):
    """GPU-hours that a team may use per period; measured and warned about, never taken from the guarantee."""

    team: str
    gpu_hours: Annotated[float, Field(gt=0, le=1_000_000_000_000)]
    period: Literal["day", "week", "month"] = "month"
    warn_percent: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = (80, 100)
    lower_borrow_limit: bool = False


class DemandRules(PolicyModel):
    """Demand-aware rebalancing, off by default."""

    enabled: bool = False
    window_hours: Annotated[int, Field(ge=1, le=24 * 92)] = 168
    max_move_percent: Percent = 10


class SeverityRule(PolicyModel):
    """How severe findings of one kind are: always, or where a number of their evidence is at least `at_least`."""

    finding: Pattern
    severity: Severity
    evidence: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    at_least: Annotated[float, Field(ge=-1e15, le=1e15)] | None = None


class Mute(PolicyModel):
    """Findings that are not sent until a moment: by code and by what they are about, with the reason."""

    finding: Pattern
    about: Pattern = "*"
    reason: Text
    until: Moment


Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class AuditRules(PolicyModel):
    """How the audit handles its findings: how severe they are, which are muted, and who is notified."""

    attention_from: Severity = Severity.WARNING
    """The lowest severity that needs attention: the headline counts it, and the cluster's topic gets it."""
    severities: tuple[SeverityRule, ...] = ()
    """Where several rules match a finding, the last one applies."""
    mute: tuple[Mute, ...] = ()
    notices: TeamNotices | None = None
    """Where teams' topics stood before there was `notices`; still read (`PolicyDocument.notice_rules`)."""
    prices: dict[InstanceType, Price] = {}  # noqa: RUF012 -- pydantic copies defaults
    """What an instance costs an hour, in any one currency: the audit says what idle quota and lost work come to."""


class InstanceTypeNumbers(PolicyModel):
    """What one instance offers, for a type that is not known or known differently."""

    vcpu: Annotated[int, Field(ge=1, le=100_000)]
    memory_gib: Annotated[Gibibytes, Field(alias="memoryGiB")]
    gpu: Whole = 0
    neuron_device: Whole = 0
    efa: Whole = 0
    threads_per_core: Annotated[int, Field(ge=1, le=2)] | None = None


class PolicyDocument(PolicyModel):
    """The whole document; the rules that hold between its parts are in `taskgov.policy.rules`."""

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
    co_owned: CoOwnedPolicy = CoOwnedPolicy.KEEP
    audit: AuditRules = AuditRules()
    notices: NoticeRules | None = None
    instance_types: dict[InstanceType, InstanceTypeNumbers] = {}  # noqa: RUF012 -- pydantic copies defaults
    """Numbers of instance types that are not known, or known differently."""

    @model_serializer(mode="wrap")
    def _without_co_owned_where_it_says_nothing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave the later field out at its default: digests stay as they were, and the release before reads it."""
        written: dict[str, Any] = handler(self)
        if self.co_owned is CoOwnedPolicy.KEEP:
            written = {key: value for key, value in written.items() if key not in {"co_owned", "coOwned"}}
        return written

    @property
    def notice_rules(self) -> NoticeRules:
        """Who is notified of what: `notices`, else the topics in `audit.notices`, which get their findings only."""
        if self.notices is not None:
            return self.notices
        old = self.audit.notices
        return NoticeRules() if old is None else NoticeRules(**dict(old), about=())

    def instance_type_table(self) -> InstanceTypeTable:
        """Return the known instance types, with this document's own on top."""
        known = InstanceTypeTable()
        return InstanceTypeTable(
            {name: _resources(numbers, known.resources_of(name)) for name, numbers in self.instance_types.items()}
        )


def _resources(numbers: InstanceTypeNumbers, known: InstanceResources | None) -> InstanceResources:
    """GPU partitions stay as known: the document does not state them. Threads per core are 2 where nobody says."""
    stated = numbers.model_dump()
    stated["threads_per_core"] = numbers.threads_per_core or (known.threads_per_core if known else 2)
    return InstanceResources(**stated, mig_profiles=known.mig_profiles if known else ())
