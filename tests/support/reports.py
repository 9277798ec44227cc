"""Audit reports to draw: one that shows every kind of line, and one of a cluster where there is nothing to say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from taskgov.allocation.lease_book import LeaseEntry
from taskgov.allocation.leases import LeaseState
from taskgov.allocation.loops import Loop, LoopRemedy
from taskgov.allocation.plan import CapacityLine, Outcome, Reason, TeamAllocation, WorkloadEffect
from taskgov.audit.quota_advice import AdviceProof, QuotaAdvice, TeamAdvice
from taskgov.audit.report import (
    MOST_TASKS,
    REPORT_VERSION,
    ChangeLine,
    Command,
    EditLine,
    Header,
    LoanLine,
    MutedBy,
    PendingLine,
    PlanRemedy,
    PreemptionLine,
    Report,
    ReportedFinding,
    TaskLine,
    UsageLine,
)
from taskgov.audit.totals import Totals
from taskgov.audit.trend import AuditPoint, KnownFinding, Trend
from taskgov.findings import Severity
from taskgov.json_form import JsonForm
from taskgov.scheduling.loops import QueueSetting, Setting
from taskgov.usage.tasks import TaskState

P5 = "ml.p5.48xlarge"
GPU_TYPE = "ml.g5.8xlarge"
GPU = "nvidia.com/gpu"
TWO_IN_THE_MORNING = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)


def a_usage_line(team: str = "team-a", **more: object) -> UsageLine:
    """Return a team's line on GPUs of a p5 with a quota of 8, half of it used; `more` replaces members."""
    members: dict[str, object] = {
        "team": team,
        "instance_type": P5,
        "resource": GPU,
        "unit": "",
        "leading": True,
        "guaranteed": 8.0,
        "used": 4.0,
        "borrowed": 0.0,
        "lent": 0.0,
        "idle": 4.0,
        "over_quota": 0.0,
        "borrow_limit": 4.0,
        "borrow_limit_utilization": 0.0,
        "entitlement": 4.0,
        "deviation": 0.0,
        "infinite_share": False,
        **more,
    }
    return UsageLine(**members)  # type: ignore[arg-type]  # a builder of named members


def a_report() -> Report:
    """Return a report in which each table has a line."""
    return Report(
        version=REPORT_VERSION,
        header=_header(),
        totals=Totals("GPUs", 24.0, 24.0, 22.0, 4.0, 2.0, 2.0, 3, 12, 1),
        findings=(
            ReportedFinding(
                "over-quota",
                Severity.WARNING,
                "team-c",
                "Team-c holds 2 GPUs too many.",
                "Wait.",
                {"used": 10},
                teams=("team-c",),
                first_seen=TWO_IN_THE_MORNING - timedelta(days=2),
                audits=3,
                rated_from=Severity.INFO,
                plan=PlanRemedy("0123456789abcdef", (1,)),
                commands=(Command("List the tasks:", "taskgov jobs --cluster ml-cluster --team team-c"),),
            ),
            ReportedFinding(
                "team-not-in-policy",
                Severity.INFO,
                "team-d",
                "Team-d is not in the policy document.",
                first_seen=TWO_IN_THE_MORNING,
                is_new=True,
            ),
        ),
        capacity=(CapacityLine(P5, 4, 3, (), 0, 3, ("hyperpod-i-0abc: Unschedulable since 23:41",)),),
        usage=(
            a_usage_line(
                "team-a", used=12.0, borrowed=4.0, idle=0.0, borrow_limit_utilization=100.0, infinite_share=True
            ),
            a_usage_line("team-a", resource="cpu", unit="cores", leading=False, guaranteed=192.0, used=288.0),
            a_usage_line("team-b", used=2.0, lent=4.0, idle=2.0, leased=-1),
            a_usage_line("team-c", used=10.0, idle=0.0, over_quota=2.0, borrow_limit=None),
        ),
        loans=(LoanLine("team-a", "team-b", P5, GPU, "", 4.0),),
        tasks=(_task(),),
        pending=(PendingLine("team-b", 3, 12, 15_400.0),),
        preemptions=(_preemption(),),
        allocations=(
            TeamAllocation("team-a", P5, "Count", 2, 1, 16, 8, Reason.CAPACITY_SHRANK, "One instance is unhealthy."),
        ),
        changes=(
            ChangeLine(
                "update-quota",
                "quota-a",
                "team-a",
                16,
                8,
                "capacity-shrank",
                "One instance is unhealthy.",
                ("approveAbove: 8 GPUs change, and more than 4 need approval.",),
            ),
        ),
        effects=(WorkloadEffect("hyperpod-ns-team-a", "sweep-17", "team-a", "preempted", 8, "Team-b reclaims."),),
        edits=(EditLine("quota-a", "team-a", "jane", TWO_IN_THE_MORNING - timedelta(hours=9), "UpdateComputeQuota"),),
        muted=(
            ReportedFinding(
                "idle-quota",
                Severity.INFO,
                "team-b",
                "3 were never used.",
                "Lower the promise.",
                {"idle": 3},
                first_seen=TWO_IN_THE_MORNING,
                muted=MutedBy("idle-*", "team-b", "moving in", TWO_IN_THE_MORNING + timedelta(days=9)),
            ),
        ),
        trend=_trend(),
        loops=(_loop(),),
        advice=(_advice(), QuotaAdvice(GPU_TYPE, TWO_IN_THE_MORNING, "", "the history is too short", 3, 900.0)),
        leases=(_lease(LeaseState.ACTIVE), _lease(LeaseState.REFUSED, "the donor team-b has 1, and cannot give 1")),
    )


def _advice() -> QuotaAdvice:
    proof = AdviceProof(
        splits=4,
        won=3,
        gain_percent=40.0,
        noise_percent=9.5,
        mean_wait=7200.0,
        advised_mean_wait=4320.0,
        p95_wait=36_000.0,
        advised_p95_wait=18_000.0,
        lost_percent=0.5,
        advised_lost_percent=1.25,
        worse_than_today=("team-b",),
        worse_than_alone=(),
    )
    teams = (TeamAdvice("team-a", 8, 16, 4, 8), TeamAdvice("team-b", 16, 8, None, None))
    why = "the mean wait is 40 % shorter"
    return QuotaAdvice(P5, TWO_IN_THE_MORNING, "equal quotas, limit 100 %", why, 5_250, 12.0, proof, teams)


def _loop() -> Loop:
    setting = QueueSetting("hyperpod-ns-team-a-clusterqueue", Setting.WEIGHT, "10")
    remedy = LoopRemedy("FairShareWeight of team-a: 10", (setting,), ("team-b/big",))
    return Loop(("team-a/home", "team-a/late"), ("team-b/big",), ("team-a", "team-b"), (remedy,), 3, searched=True)


def an_empty_report() -> Report:
    """Return the report of a cluster without quotas, nodes and work."""
    nothing = Totals("GPUs", 0, 0, 0, 0, 0, 0, 0, 0, 0)
    return Report(REPORT_VERSION, _header(Outcome.NOTHING_TO_DO), nothing, (), (), (), (), (), (), (), (), (), ())


def a_thousand_teams(rows: int = 1) -> Report:
    """Return a report in which a thousand teams have everything that a team can have, on so many instance types."""
    full, names = a_report(), [f"team-{number:04}-of-some-department" for number in range(1000)]
    command = Command("Edit ml-cluster.yaml, then show what that changes:", "taskgov apply --policy ml-cluster.yaml")
    findings = tuple(
        ReportedFinding(
            "hoarding", Severity.WARNING, team, f"{team} leaves 3 of 8 unused.", "set it", commands=(command,)
        )
        for team in names
    )
    types = (P5, *(f"ml.type{number}.48xlarge" for number in range(1, 15)))[:rows]
    resources = (("nvidia.com/gpu", True), ("cpu", False), ("memory", False), ("vpc.amazonaws.com/efa", False))
    return replace(
        full,
        findings=findings,
        usage=tuple(
            a_usage_line(team, instance_type=instance_type, resource=resource, leading=leading, used=float(number % 13))
            for number, team in enumerate(names)
            for instance_type in types
            for resource, leading in resources
        ),
        loans=full.loans * 1000,
        pending=full.pending * 1000,
        tasks=full.tasks * MOST_TASKS,
        preemptions=full.preemptions * 1000,
        allocations=full.allocations * 1000,
        changes=full.changes * 1000,
        effects=full.effects * 1000,
        edits=full.edits * 1000,
        leases=full.leases * 500,
    )


def _header(outcome: Outcome = Outcome.NEEDS_APPROVAL) -> Header:
    return Header(
        cluster_name="ml-cluster",
        cluster_arn="arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl",
        cluster_status="InService",
        taken_at=TWO_IN_THE_MORNING,
        policy_version="3HL4kqtJ",
        fair_share="Enabled",
        stopped=False,
        plan_id="0123456789abcdef",
        plan_outcome=outcome,
        snapshot_sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    )


def _trend() -> Trend:
    """The audit of the night before had a GPU less, and one more finding; the one of a week ago counted cores."""
    findings = {"info": 1, "warning": 2, "error": 0, "incident": 0}
    night = TWO_IN_THE_MORNING - timedelta(days=1)
    last = AuditPoint("GPUs", 23, 24, 20, 3, 4, 0, 2, 8, 0, night, "night", findings, 0)
    old = replace(last, taken_at=TWO_IN_THE_MORNING - timedelta(days=8), unit="cores")
    known = KnownFinding("hoarding team-a", "hoarding", Severity.WARNING, "team-a", "2 idle.", old.taken_at, 8)
    return Trend(previous=last, week_ago=old, points=(old, last), new=1, resolved=(known,))


def _lease(state: LeaseState, because: str = "") -> LeaseEntry:
    start, end = TWO_IN_THE_MORNING - timedelta(hours=1), TWO_IN_THE_MORNING + timedelta(days=3)
    return LeaseEntry("team-a", "team-b", P5, 1, start, end, "paper deadline", state, because)


def _task() -> TaskLine:
    return TaskLine(
        team="team-b",
        task="finetune-7",
        kind="PyTorchJob",
        priority_class="training-priority",
        priority=50,
        state=TaskState.WAITING_FOR_NODES,
        since=TWO_IN_THE_MORNING - timedelta(minutes=5),
        created=TWO_IN_THE_MORNING - timedelta(hours=2),
        instance_types=(P5,),
        asks="8 GPUs",
        beyond_quota="2 GPUs",
    )


def _preemption() -> PreemptionLine:
    return PreemptionLine(
        at=TWO_IN_THE_MORNING - timedelta(minutes=12),
        team="team-a",
        workload="team-a/finetune",
        reason="InCohortReclamation",
        preempting_team="team-b",
        gpus=4,
        gpu_seconds=7200.0,
    )


def report_from_json(text: bytes) -> Report:
    """Return the report that `report_json` wrote. Raises `ValueError` (pydantic) for anything else."""
    return _REPORT.read(text)


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of `report_json`, as it is published in `events/schemas/audit-report.json`."""
    schema = _shape(_REPORT.schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "taskgov audit report", **schema}


def _shape(schema: Any) -> Any:
    """Leave out titles and descriptions: they are wording of the code, and not what readers rely on."""
    match schema:
        case dict():
            wording = {"title", "description"}
            return {
                name: _shape(part) for name, part in schema.items() if name not in wording or isinstance(part, dict)
            }
        case list():
            return [_shape(part) for part in schema]
        case _:
            return schema


_REPORT: JsonForm[Report] = JsonForm(Report)
