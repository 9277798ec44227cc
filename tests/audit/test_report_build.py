"""From what is known of a cluster to a report."""

import json
from dataclasses import replace
from datetime import timedelta

from taskgov.allocation.leases import LeaseState
from taskgov.allocation.plan import Change, GuardrailVerdict, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.audit.finding_report import report_findings
from taskgov.audit.report import Report, UsageLine, report_json
from taskgov.audit.report_build import build_report
from taskgov.audit.report_html import report_html
from taskgov.audit.trend import Earlier
from taskgov.findings import Finding, Severity
from taskgov.hyperpod.model import Switch
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import QuotaEdit
from taskgov.usage.cluster_usage import cluster_usage
from tests.allocation.world import applied, document, fixed, row
from tests.support.clusters import G5, GPU, GovernedCluster
from tests.support.memory import NOON
from tests.support.plans import plan_of, update
from tests.support.reports import report_from_json


def a_cluster() -> GovernedCluster:
    """Two instances, one each; team-a runs two pods of 44 cpu, 164Gi and 4 GPUs."""
    held = {"cpu": "88", "memory": "328Gi", GPU: "8"}
    return GovernedCluster().with_fair_share().with_nodes(2).with_team("team-a", used=held).with_team("team-b")


def report_of(snapshot: Snapshot, plan: Plan | None = None, findings: tuple[Finding, ...] = ()) -> Report:
    made = plan or plan_quotas(snapshot, mode="plan")
    return build_report(snapshot, made, cluster_usage(snapshot), report_findings(snapshot, made, findings, Earlier()))


def line(report: Report, team: str, resource: str = GPU) -> UsageLine:
    [found] = [each for each in report.usage if (each.team, each.resource) == (team, resource)]
    return found


def test_amounts_are_in_the_unit_that_people_read() -> None:
    report = report_of(a_cluster().snapshot())
    cpu, memory, gpus = (line(report, "team-a", resource) for resource in ("cpu", "memory", GPU))
    assert (cpu.borrowed, cpu.used, cpu.unit) == (40.0, 88.0, "cores")
    assert (memory.borrowed, memory.used, memory.unit) == (136.0, 328.0, "GiB")
    assert (gpus.borrowed, gpus.used, gpus.unit) == (4.0, 8.0, "")
    assert gpus.borrow_limit_utilization == 100.0
    assert line(report, "team-b").lent == 4.0


def test_resources_that_nobody_has_or_uses_are_left_out() -> None:
    resources = {each.resource for each in report_of(a_cluster().snapshot()).usage}
    assert resources == {GPU, "cpu", "memory", "vpc.amazonaws.com/efa"}


def test_the_totals_add_up_accelerators_of_all_types() -> None:
    cluster = a_cluster().with_waiting("w", "team-b", gpus=4).with_preempted("p", "team-b", by="team-a", gpus=2)
    totals = report_of(cluster.snapshot()).totals
    assert (totals.unit, totals.healthy, totals.guaranteed, totals.used) == ("GPUs", 8.0, 8.0, 8.0)
    assert (totals.borrowed, totals.idle, totals.over_quota) == (4.0, 0.0, 0.0)
    assert (totals.pending_workloads, totals.pending_gpus, totals.preemptions) == (1, 4, 1)


def test_a_cluster_without_accelerators_adds_up_cores() -> None:
    cluster = GovernedCluster().with_nodes(2, instance_type="ml.c5.2xlarge")
    totals = report_of(cluster.with_team("a", 1, instance_type="ml.c5.2xlarge").snapshot()).totals
    assert (totals.unit, totals.healthy, totals.guaranteed) == ("cores", 16.0, 8.0)


def test_findings_come_worst_first_and_then_by_subject() -> None:
    severities = (Severity.INFO, Severity.INCIDENT, Severity.WARNING, Severity.WARNING)
    some = tuple(Finding(f"code-{n}", severity, f"s{9 - n}", "b") for n, severity in enumerate(severities))
    report = report_of(a_cluster().snapshot(), findings=some)
    assert [finding.code for finding in report.findings] == ["code-1", "code-3", "code-2", "code-0"]


def test_preemptions_come_newest_first_with_both_teams() -> None:
    cluster = a_cluster().with_preempted("old", "team-a", by="team-b", gpus=4, minutes=90, ran_minutes=30)
    cluster.with_preempted("new", "team-b", by="team-b", gpus=1, minutes=5, reason="InClusterQueue", ran_minutes=None)
    new, old = report_of(cluster.snapshot()).preemptions
    assert (new.workload, new.reason, new.team, new.preempting_team, new.gpu_seconds) == (
        "team-b/new",
        "InClusterQueue",
        "team-b",
        "team-b",
        None,
    )
    assert (old.team, old.preempting_team, old.gpus, old.gpu_seconds) == ("team-a", "team-b", 4, 4 * 30 * 60.0)


def test_waiting_says_how_long_the_oldest_has_waited() -> None:
    cluster = a_cluster().with_waiting("a", "team-b", gpus=4, minutes=30).with_waiting("b", "team-b", gpus=1, minutes=5)
    [pending] = report_of(cluster.snapshot()).pending
    assert (pending.team, pending.workloads, pending.gpus, pending.oldest_seconds) == ("team-b", 2, 5, 1800.0)


def test_a_change_names_every_guardrail_that_stops_it_once() -> None:
    freeze = GuardrailVerdict("freeze", False, "team-a is frozen.")
    window = GuardrailVerdict("changeWindows", False, "No window is open.")
    passed = GuardrailVerdict("maxPreemptedGpus", True, "0 is not above 8.")
    change: Change = replace(update(0, "team-a", "quota0000000", 2, 1), guardrails=(freeze, passed))
    plan = replace(plan_of(change), guardrails=(freeze, window))
    [shown] = report_of(a_cluster().snapshot(), plan).changes
    assert shown.stopped_by == ("freeze: team-a is frozen.", "changeWindows: No window is open.")


def test_edits_by_hand_come_newest_first_and_a_quota_that_is_gone_keeps_its_id() -> None:
    edits = (
        QuotaEdit("quota0000000", "jane", NOON - timedelta(hours=2), "UpdateComputeQuota"),
        QuotaEdit("quota9999999", "joe", NOON - timedelta(hours=1), "DeleteComputeQuota"),
    )
    gone, there = report_of(replace(a_cluster().snapshot(), edits=edits)).edits
    assert (there.quota, there.team, there.by) == ("quota-team-a", "team-a", "jane")
    assert (gone.quota, gone.team, gone.by) == ("quota9999999", "", "joe")


def test_the_header_says_under_which_rules_the_cluster_stands() -> None:
    assert report_of(a_cluster().snapshot()).header.fair_share == "Enabled"
    off = GovernedCluster().with_fair_share(Switch.DISABLED)
    assert report_of(off.snapshot()).header.fair_share == "Disabled"
    assert report_of(GovernedCluster().snapshot()).header.fair_share == "no cluster policy"


def test_a_team_without_weight_that_borrows_is_flagged_and_gets_no_number() -> None:
    cluster = GovernedCluster().with_fair_share().with_team("idle", 2).with_team("zero", weight=0, used={GPU: "6"})
    report = report_of(cluster.snapshot())
    assert line(report, "zero").infinite_share
    assert "Infinity" not in report_json(report).decode()
    assert "after all others" in report_html(report).decode()


def test_the_report_of_a_real_snapshot_can_be_written_read_and_drawn() -> None:
    report = report_of(a_cluster().snapshot())
    assert report_from_json(report_json(report)) == report
    assert G5 in report_html(report).decode()


def test_leases_that_hold_are_reported_beside_the_quotas_that_they_are_part_of() -> None:
    named = {"to": "team-a", "from": "team-b", "instanceType": G5, "count": 1, "reason": "deadline"}
    lease = named | {"start": NOON - timedelta(hours=1), "end": NOON + timedelta(hours=1)}
    teams = (fixed("team-a", row(G5, Count=1)), fixed("team-b", row(G5, Count=1)))
    policy = document(*teams, pool=False, leases=[lease, lease | {"start": NOON + timedelta(minutes=5)}])
    written = GovernedCluster().with_nodes(2).with_team("team-a", 2).with_team("team-b", 0)
    report = report_of(replace(written.snapshot(), policy=policy))
    assert [(each.borrower, each.count, each.state) for each in report.leases] == [
        ("team-a", 1, LeaseState.ACTIVE),
        ("team-a", 1, LeaseState.DUE),
    ]
    assert line(report, "team-a").leased == 1
    assert report_from_json(report_json(report)) == report
    assert "+1 leased" in report_html(report).decode()


def test_a_lease_of_a_part_is_reported_in_its_unit_beside_the_bar_too() -> None:
    named = {"to": "team-a", "from": "team-b", "instanceType": G5, "count": 1, "unit": "accelerators"}
    lease = named | {"reason": "deadline", "start": NOON - timedelta(hours=1), "end": NOON + timedelta(hours=1)}
    teams = (fixed("team-a", row(G5, Accelerators=1)), fixed("team-b", row(G5, Accelerators=1)))
    policy = document(*teams, pool=False, leases=[lease])
    written = GovernedCluster().with_nodes(2).with_team("team-a", 2).with_team("team-b", 0)
    snapshot = replace(written.snapshot(), policy=policy)
    report = report_of(applied(snapshot, plan_quotas(snapshot, mode="apply")))
    assert line(report, "team-a").leased_words == "+1 accelerators"
    assert "+1 accelerators leased</span>" in report_html(report).decode()


def test_a_report_of_before_leases_were_reported_can_still_be_read() -> None:
    data = json.loads(report_json(report_of(a_cluster().snapshot())))
    del data["leases"]
    for each in data["usage"]:
        del each["leased"]
    assert report_from_json(json.dumps(data).encode()).leases == ()
