"""What a walkthrough file may expect of a step. `checks` compares each member with what holds."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from taskgov_embedded.walkthrough.part import Amounts, Part


class UsageCheck(Part):
    """What one team uses of one flavor (ClusterQueue status, flavorsUsage), resource by resource."""

    team: str
    flavor: str
    total: Amounts = Field(default_factory=dict)
    borrowed: Amounts = Field(default_factory=dict)


class WorkloadRow(Part):
    """A line of `kubectl get workloads`, without the random part of its name and its age."""

    name: str
    reserved_in: str = ""
    admitted: str = ""
    finished: str = ""


class WorkloadsTable(Part):
    team: str
    rows: tuple[WorkloadRow, ...]


class Condition(Part):
    """A condition of a job's Workload. `message` may contain `*` for what differs from run to run (UIDs)."""

    type: str
    status: str
    reason: str
    message: str


class ConditionsCheck(Part):
    team: str
    job: str
    conditions: tuple[Condition, ...]


class QueueCheck(Part):
    """A part of a team's ClusterQueue object, by dotted path."""

    team: str
    holds: dict[str, Any]


class PreemptionCheck(Part):
    """A preemption that happened in this step: who lost, to whose queue, and Kueue's reason."""

    victim: str
    by: str
    reason: str


class ChangeCheck(Part):
    """A change of the plan. `because` must be part of the plan's sentence."""

    team: str
    gpus: tuple[float, float] | None = None
    reason: str | None = None
    because: str | None = None


class PlanCheck(Part):
    """The last plan that was made in this step."""

    outcome: str
    changes: tuple[ChangeCheck, ...] | None = None
    findings: tuple[str, ...] | None = None
    """Codes that the plan must have, no more asked."""
    not_findings: tuple[str, ...] = ()
    preempts: tuple[str, ...] | None = None
    """Jobs that the plan predicts to be preempted, as `team/job`."""
    violations: int | None = None
    """How many rules the policy document breaks."""
    stopped_by: tuple[str, ...] | None = None
    """Guardrails that stopped it."""


class RunCheck(Part):
    """How many executions of a state machine ended how, in this step."""

    machine: Literal["reconcile", "audit"] = "reconcile"
    status: str = "SUCCEEDED"
    count: int | Literal["some"] = "some"


class MetricCheck(Part):
    """The last value of a metric in CloudWatch (or the sum over the walkthrough), for these dimensions."""

    name: str
    team: str | None = None
    instance_type: str | None = None
    resource: str | None = None
    reason: str | None = None
    preempting_team: str | None = None
    quantile: str | None = None
    value: float | None = None
    at_least: float | None = None
    """Instead of an exact value."""
    statistic: Literal["last", "sum"] = "last"

    @model_validator(mode="after")
    def _says_one(self) -> MetricCheck:
        if (self.value is None) == (self.at_least is None):
            raise ValueError("give either value or atLeast")
        return self


class QuotaCheck(Part):
    """What the service holds for a team now: the resources of its quota, in the API's form."""

    team: str
    resources: tuple[dict[str, Any], ...]


class ReportCheck(Part):
    """The audit report of this step: codes of findings that it must have, and text that the page must show."""

    findings: tuple[str, ...] = ()
    muted: tuple[str, ...] | None = None
    """Codes of all findings that are muted; an empty list says that none is."""
    new: tuple[str, ...] | None = None
    """Codes of all findings that the audit before did not have."""
    gone: tuple[str, ...] | None = None
    """Codes of all findings of the audit before that are gone."""
    remedied: tuple[str, ...] = ()
    """Codes of findings that must name the plan that remedies them."""
    shows: tuple[str, ...] = ()


class TeamNoticeCheck(Part):
    """What was said on a team's topic in this step: texts that its messages must contain; none: no message came."""

    topic: str
    says: tuple[str, ...] = ()


class LeaseCheck(Part):
    """A lease that has not ended, and how it stands."""

    to: str
    donor: str = Field(alias="from")
    count: int
    state: str


class Expectations(Part):
    jobs: dict[str, str] = Field(default_factory=dict)
    """`team/job` to what a person sees of it: Running, Suspended, Pending, Waiting for nodes, Gone."""
    pods: dict[str, dict[str, int]] = Field(default_factory=dict)
    """`team/job` to pod phases with their numbers."""
    usage: tuple[UsageCheck, ...] = ()
    workloads: tuple[WorkloadsTable, ...] = ()
    conditions: tuple[ConditionsCheck, ...] = ()
    queues: tuple[QueueCheck, ...] = ()
    preemptions: tuple[PreemptionCheck, ...] | None = None
    """All preemptions of this step, in order; an empty list says that there is none."""
    priorities: dict[str, int] = Field(default_factory=dict)
    """`team/job` to the priority of its Workload."""
    admitted_in_order: tuple[str, ...] | None = None
    """Jobs admitted in this step, in order."""
    quotas: tuple[QuotaCheck, ...] = ()
    leases: tuple[LeaseCheck, ...] | None = None
    """All leases that have not ended, by their start; an empty list says that there is none."""
    plan: PlanCheck | None = None
    runs: tuple[RunCheck, ...] = ()
    metrics: tuple[MetricCheck, ...] = ()
    published: tuple[str, ...] = ()
    """Detail types of events that the project published on its bus in this step, at least these."""
    notices: tuple[str, ...] = ()
    """Text that a notice of this step must contain."""
    team_notices: tuple[TeamNoticeCheck, ...] = ()
    dead_letters: int | None = None
    ignored: int | None = None
    """Events that were received in this step and ignored."""
    writes: int | None = None
    """Writes of quotas and cluster policies by the automation in this step."""
    report: ReportCheck | None = None
