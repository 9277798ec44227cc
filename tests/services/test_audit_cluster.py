"""Auditing one cluster: the report, the metrics, the notice, and that nothing is written to the cluster."""

import json
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from taskgov.audit.report import report_from_json
from taskgov.contracts.steps import AuditClusterRequest, AuditClusterResult
from taskgov.errors import InvalidRequestError, NotFoundError
from taskgov.services.audit_cluster import TOLD, AuditCluster
from tests.support.clusters import GPU, GovernedCluster
from tests.support.memory import CLUSTER_ARN, RecordingMeter, RecordingNotices, cluster_description


@dataclass
class Audited:
    """A use case over a world, and what came out of it."""

    cluster: GovernedCluster
    meter: RecordingMeter = field(default_factory=RecordingMeter)
    notices: RecordingNotices = field(default_factory=RecordingNotices)

    def audit(self, cluster_arn: str = CLUSTER_ARN) -> AuditClusterResult:
        use_case = AuditCluster(self.cluster.take_snapshot(), self.cluster.documents, self.notices, self.meter)
        return use_case(AuditClusterRequest(cluster_arn=cluster_arn, run_id="audit-1"))

    def counts(self) -> dict[str, float]:
        return {each.dimensions["Severity"]: each.value for _, each in self.meter.recorded if each.name == "Findings"}


def a_calm_world() -> Audited:
    cluster = GovernedCluster().with_fair_share().with_nodes(2)
    return Audited(cluster.with_team("team-a", used={GPU: "4"}).with_team("team-b"))


def a_broken_policy(world: Audited, problems: int = 1) -> Audited:
    """Store a policy document with as many rules broken."""
    teams = [{"name": f"Team {number}"} for number in range(problems)]
    text = json.dumps(
        {"apiVersion": "taskgov/v1", "cluster": {"name": "ml-cluster", "arn": CLUSTER_ARN}, "teams": teams}
    )
    world.cluster.documents.stored["policies/ml-cluster.yaml"] = text.encode()
    return world


def test_the_report_lies_in_the_bucket_as_data_and_as_a_page() -> None:
    world = a_calm_world()
    result = world.audit()
    assert result.report.json_.key == "reports/ml-cluster/2026-11-20T120000Z.json"
    assert result.report.html.key == "reports/ml-cluster/2026-11-20T120000Z.html"
    report = report_from_json(world.cluster.documents.get(result.report.json_))
    assert report.header.cluster_name == result.cluster_name == "ml-cluster"
    assert len(report.findings) == result.findings
    assert b"<h1>ml-cluster</h1>" in world.cluster.documents.get(result.report.html)


def test_the_next_audit_leaves_another_report() -> None:
    world = a_calm_world()
    first = world.audit()
    world.cluster.clock.advance(days=1)
    second = world.audit()
    assert world.cluster.documents.get(first.report.json_) != world.cluster.documents.get(second.report.json_)


def test_an_audit_writes_nothing_but_its_report() -> None:
    world = a_broken_policy(a_calm_world())
    before = dict(world.cluster.documents.stored)
    world.audit()
    written = world.cluster.documents.stored.keys() - before.keys()
    assert {key.split("/")[0] for key in written} == {"reports"}
    assert world.cluster.hyperpod.writes == []
    assert world.cluster.state.runs == []


def test_findings_are_counted_by_severity_with_zeros() -> None:
    world = a_broken_policy(a_calm_world())
    result = world.audit()
    assert result.worst == "error"
    counts = world.counts()
    assert counts.keys() == {"info", "warning", "error", "incident"}
    assert counts["error"] >= 1
    assert counts["incident"] == 0
    assert sum(counts.values()) == result.findings


def test_a_warning_or_worse_is_told_with_its_remedy_and_where_the_report_is() -> None:
    world = a_broken_policy(a_calm_world())
    result = world.audit()
    [(subject, text)] = world.notices.sent
    assert subject.startswith("taskgov: audit of ml-cluster: ")
    assert "ERROR teams[0].name:" in text
    assert "correct the document" in text
    assert f"Report: s3://bucket/{result.report.html.key}" in text


def test_a_notice_stays_short_however_many_findings_there_are() -> None:
    world = a_broken_policy(a_calm_world(), problems=TOLD + 5)
    world.audit()
    [(_, text)] = world.notices.sent
    assert text.count("ERROR") == TOLD
    assert f"and {sum(world.counts()[each] for each in ('warning', 'error', 'incident')) - TOLD:.0f} more" in text


def test_the_report_shows_the_same_standing_as_the_metrics() -> None:
    world = a_calm_world()
    world.cluster.with_waiting("w", "team-b", gpus=4).with_preempted("p", "team-b", by="team-a", gpus=2)
    report = report_from_json(world.cluster.documents.get(world.audit().report.json_))
    assert (report.totals.used, report.totals.pending_workloads, report.totals.preemptions) == (4.0, 1, 1)
    assert report.pending[0].oldest_seconds == timedelta(minutes=10).total_seconds()


def test_a_cluster_that_is_gone_or_not_on_eks_is_an_error() -> None:
    world = a_calm_world()
    with pytest.raises(NotFoundError):
        world.audit("arn:aws:sagemaker:us-east-1:111122223333:cluster/gone00000000")
    world.cluster.hyperpod.descriptions = [cluster_description(Orchestrator={"Slurm": {}})]
    with pytest.raises(InvalidRequestError, match="not orchestrated by EKS"):
        world.audit()
