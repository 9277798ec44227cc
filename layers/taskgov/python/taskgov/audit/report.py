"""What does an audit report say? The report as a value, its JSON form and that form's schema.

`report_build` makes it from a snapshot, a plan, usage and findings; `report_html` draws it, `audit_cluster` stores it.

Amounts are in the unit that people read: cores for cpu, GiB for memory, the count for everything else.
"""

from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Final

from taskgov.allocation.lease_book import LeaseEntry
from taskgov.allocation.loops import Loop
from taskgov.allocation.plan import CapacityLine, Outcome, TeamAllocation, WorkloadEffect
from taskgov.audit.money import Money
from taskgov.audit.not_checked import NotChecked
from taskgov.audit.quota_advice import QuotaAdvice
from taskgov.audit.totals import Totals
from taskgov.audit.trend import Trend
from taskgov.estimates.given import GivenStart
from taskgov.findings import Finding, Severity
from taskgov.json_form import JsonForm
from taskgov.usage.tasks import TaskState

MOST_TASKS: Final = 1_000
"""A page with ten times as many rows is slow to open; `taskgov jobs` lists all of them."""
REPORT_VERSION: Final = 2
"""Raised when a member changes its meaning or goes away; new members leave it."""


@dataclass(frozen=True, slots=True)
class Header:
    """Which cluster, when, and under which rules."""

    cluster_name: str
    cluster_arn: str
    cluster_status: str
    taken_at: datetime
    policy_version: str | None
    """Version of the policy document; None when the cluster has none, or one that could not be used."""
    fair_share: str
    """`Enabled`, `Disabled`, or `no cluster policy`."""
    stopped: bool | None
    """The stop switch; None when it could not be read."""
    plan_id: str
    plan_outcome: Outcome
    snapshot_sha256: str
    attention_from: Severity = Severity.WARNING
    """From which severity a finding needs somebody."""
    document: str = ""
    """The file that was used instead of the document in force; empty where none was."""


@dataclass(frozen=True, slots=True)
class PlanRemedy:
    """The plan that remedies a finding: applied, the finding would be gone."""

    plan_id: str
    changes: tuple[int, ...]
    """Its changes to what the finding is about, by their place in the plan (from 1); all, where none is about it."""
    stopped_by: tuple[str, ...] = ()
    """Guardrails that do not let the plan through."""


@dataclass(frozen=True, slots=True)
class Command:
    """What a person may type: what it does, and a line for a POSIX shell."""

    does: str
    line: str


@dataclass(frozen=True, slots=True)
class MutedBy:
    """The mute of the policy document that suppresses a finding."""

    finding: str
    about: str
    reason: str
    until: datetime


@dataclass(frozen=True, slots=True)
class ReportedFinding(Finding):
    """A finding as the audit reports it: whose it is, since when, what remedies it, whether it is muted."""

    teams: tuple[str, ...] = ()
    """Its owners; empty for what is the administrator's."""
    first_seen: datetime | None = None
    audits: int = 1
    """In how many audits in a row it was found, this one included."""
    is_new: bool = False
    """The audit before did not have it; False when there was none."""
    rated_from: Severity | None = None
    """The severity that was found, where the policy document says otherwise."""
    plan: PlanRemedy | None = None
    muted: MutedBy | None = None
    commands: tuple[Command, ...] = ()
    """With which its remedy begins."""


@dataclass(frozen=True, slots=True)
class UsageLine:
    """What one team holds of one resource of one instance type. `used` = own + `borrowed` + `over_quota`."""

    team: str
    instance_type: str
    resource: str
    unit: str
    """`cores`, `GiB`, or empty for things that are counted."""
    leading: bool
    """The resource that the metrics show for this instance type: accelerators, or cpu where there are none."""
    guaranteed: float
    used: float
    borrowed: float
    lent: float
    """Idle quota that others hold, attributed in proportion: a cohort has no counterparties."""
    idle: float
    over_quota: float
    """Held above a quota that was lowered under running work: not borrowing."""
    borrow_limit: float | None
    """None: no limit was set."""
    borrow_limit_utilization: float | None
    """Percent of the borrow limit; None when there is no limit or a limit of nothing."""
    entitlement: float | None
    """What fair sharing would give the team now; None when it was not computed."""
    deviation: float | None
    """`used` less `entitlement`."""
    infinite_share: bool
    """The team has weight zero and borrows: teams with a weight come before it."""
    leased: int = 0
    """Whole instances of the quota that are leased from others now; below zero: that are leased to others."""
    leased_words: str = ""
    """All that is leased, parts of instances too: `+2, -3 accelerators`."""


@dataclass(frozen=True, slots=True)
class LoanLine:
    """Who borrows from whom: an attribution, in proportion to the lenders' idle quota."""

    borrower: str
    lender: str
    instance_type: str
    resource: str
    unit: str
    amount: float


@dataclass(frozen=True, slots=True)
class PendingLine:
    """What one team is waiting for."""

    team: str
    workloads: int
    gpus: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task that has not finished, as `taskgov jobs` lists it."""

    team: str
    task: str
    """The name that `taskgov explain` takes, with the team or without."""
    kind: str
    priority_class: str
    """Empty without one."""
    priority: int
    state: TaskState
    since: datetime
    """Since when it has been in this state."""
    created: datetime
    instance_types: tuple[str, ...]
    asks: str
    """What it requests: accelerators, or cpu and memory where it requests none."""
    beyond_quota: str
    """What it holds beyond its team's quota, borrowed or over quota; empty for nothing. Attributed: Kueue counts it by
    queue."""
    start: GivenStart | None = None
    """When it starts, as it was last estimated; None where no estimate of it is kept."""


@dataclass(frozen=True, slots=True)
class PreemptionLine:
    """One preemption that the cluster still records."""

    at: datetime
    team: str
    workload: str
    """`team/job`, the name that `taskgov explain` takes."""
    reason: str
    """Kueue's reason: `InClusterQueue`, `InCohortReclamation`, ..."""
    preempting_team: str
    """Empty when Kueue did not say."""
    gpus: int
    gpu_seconds: float | None
    """What the workload had run since it was admitted, times its accelerators: work to do again, at most.

    None when it is not known any more."""


@dataclass(frozen=True, slots=True)
class EditLine:
    """A quota that a person changed by hand."""

    quota: str
    team: str
    by: str
    at: datetime
    event_name: str


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A planned change, and what blocks it."""

    kind: str
    name: str
    team: str
    gpus_before: float
    gpus_after: float
    reason: str
    because: str
    stopped_by: tuple[str, ...]
    """`guardrail: because` for each guardrail that does not let it through."""


@dataclass(frozen=True, slots=True)
class Report:
    """One audit of one cluster. Findings are ordered worst first, everything else by name or time.

    Muted findings are apart: they are listed, and counted nowhere else.
    """

    version: int
    header: Header
    totals: Totals
    findings: tuple[ReportedFinding, ...]
    capacity: tuple[CapacityLine, ...]
    usage: tuple[UsageLine, ...]
    loans: tuple[LoanLine, ...]
    pending: tuple[PendingLine, ...]
    preemptions: tuple[PreemptionLine, ...]
    allocations: tuple[TeamAllocation, ...]
    changes: tuple[ChangeLine, ...]
    effects: tuple[WorkloadEffect, ...]
    edits: tuple[EditLine, ...]
    leases: tuple[LeaseEntry, ...] = ()
    """Leases of the policy document that have not ended, in the order of their starts."""
    muted: tuple[ReportedFinding, ...] = ()
    trend: Trend = field(default_factory=Trend)
    tasks: tuple[TaskLine, ...] = ()
    """The newest first; at most `MOST_TASKS`, those that do not run before those that do."""
    tasks_left_out: int = 0
    money: Money | None = None
    """What idle quota, waiting and preempted work come to; None without prices."""
    loops: tuple[Loop, ...] = ()
    """Work that would preempt itself forever, with what ends it in the model: at most one loop."""
    advice: tuple[QuotaAdvice, ...] = ()
    """Whether other quotas would serve the work better, by instance type; found out once a week."""
    not_checked: tuple[NotChecked, ...] = ()
    """What the audit left out, because the snapshot lacks it."""


def report_json(report: Report) -> bytes:
    """Return the report as JSON for programs: two spaces of indent, members in the order of the schema."""
    return _form().indented(report)


@cache
def _form() -> JsonForm[Report]:
    return JsonForm(Report)
