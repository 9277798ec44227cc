"""Auditing one cluster: the report, the metrics, the notice, and that nothing is written to the cluster."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from taskgov.audit.notices import TOLD
from taskgov.audit.report import Report
from taskgov.contracts.steps import AuditClusterRequest, AuditClusterResult, ClusterUnreadable, NothingToAudit, Pointer
from taskgov.errors import (
    GovernanceError,
    InvalidRequestError,
    NotFoundError,
    ThrottledError,
    UpstreamError,
)
from taskgov.ports import Lock
from taskgov.services.advise_quotas import AdviseQuotas
from taskgov.services.audit_cluster import AuditCluster
from taskgov.services.team_pages import MOST_FAILED
from taskgov.snapshot.unreadable import UnreadableItem, UnreadableItemError
from taskgov.usage import cluster_usage
from tests.support.clusters import G5, GPU, GovernedCluster
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    RecordingFailures,
    RecordingMeter,
    RecordingNotices,
    RecordingTopics,
    cluster_description,
)
from tests.support.reports import report_from_json


@dataclass
class Audited:
    """A use case over a world, and what came out of it."""

    cluster: GovernedCluster
    meter: RecordingMeter = field(default_factory=RecordingMeter)
    notices: RecordingNotices = field(default_factory=RecordingNotices)
    topics: RecordingTopics = field(default_factory=RecordingTopics)
    failures: RecordingFailures = field(default_factory=RecordingFailures)

    def audit(self, cluster_arn: str = CLUSTER_ARN, run_id: str = "audit-1") -> AuditClusterResult:
        result = self.ask(cluster_arn, run_id)
        assert isinstance(result, AuditClusterResult)
        return result

    def ask(
        self, cluster_arn: str = CLUSTER_ARN, run_id: str = "audit-1"
    ) -> AuditClusterResult | ClusterUnreadable | NothingToAudit:
        use_case = AuditCluster(
            take_snapshot=self.cluster.take_snapshot(),
            documents=self.cluster.documents,
            state=self.cluster.state,
            notices=self.notices,
            team_topics=self.topics,
            meter=self.meter,
            advise=AdviseQuotas(self.cluster.documents, self.failures, lambda: 0.0),
            failures=self.failures,
        )
        return use_case(AuditClusterRequest(cluster_arn=cluster_arn, run_id=run_id))

    def report(self, result: AuditClusterResult) -> Report:
        return report_from_json(self.cluster.documents.get(result.report.json_))

    def measured(self, name: str) -> list[float]:
        return [each.value for _, each in self.meter.recorded if each.name == name]

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


def test_an_audit_writes_nothing_but_its_report_and_what_the_next_one_compares_with() -> None:
    world = a_broken_policy(a_calm_world())
    before = dict(world.cluster.documents.stored)
    world.audit()
    written = world.cluster.documents.stored.keys() - before.keys()
    assert {key.split("/")[0] for key in written} == {"reports", "memory"}
    assert [key for key in written if key.startswith("memory")] == ["memory/ml-cluster/audits.json"]
    assert world.cluster.hyperpod.writes == []
    assert world.cluster.state.runs == []


def test_a_page_of_a_team_that_cannot_be_stored_is_reported_and_ends_neither_the_others_nor_the_audit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_broken_policy(a_calm_world())
    monkeypatch.setattr(world.cluster.documents, "put", refusing(world, "teams/team-a"))
    world.audit()
    assert world.failures.reported == [("ml-cluster", "write the page of team-a", "UpstreamError")]
    stored = world.cluster.documents.stored
    assert [key for key in stored if "/teams/" in key] == ["reports/ml-cluster/teams/team-b.html"]
    assert "memory/ml-cluster/audits.json" in stored
    assert (world.measured("AuditsMissed"), len(world.notices.sent)) == ([0], 1)


def test_a_bucket_that_takes_no_page_is_not_asked_for_each_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_calm_world()
    for number in range(20):
        world.cluster.with_team(f"team-{number}")
    monkeypatch.setattr(world.cluster.documents, "put", refusing(world, "/teams/"))
    world.audit()
    assert len(world.failures.reported) == MOST_FAILED


def test_loans_are_attributed_once_for_the_report_and_the_pages_of_teams(monkeypatch: pytest.MonkeyPatch) -> None:
    world, made = a_calm_world(), []

    def counted(*given: Any, **options: Any) -> Any:
        made.append(given)
        return attributed(*given, **options)

    attributed = cluster_usage._cluster_usage
    monkeypatch.setattr(cluster_usage, "_cluster_usage", counted)
    world.audit()
    assert len(made) == 1
    assert "reports/ml-cluster/teams/team-a.html" in world.cluster.documents.stored


def test_pages_that_cannot_be_made_end_no_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_calm_world()

    def broken(*_: Any) -> Any:
        raise KeyError("queue")

    monkeypatch.setattr("taskgov.services.team_pages.team_pages", broken)
    world.audit()
    assert world.failures.reported == [("ml-cluster", "write the pages of the teams", "KeyError")]
    assert world.measured("AuditsMissed") == [0]


def refusing(world: Audited, part: str) -> Callable[[str, bytes, str], Pointer]:
    """Return how documents are stored of which those with this part in their key are refused."""
    put = world.cluster.documents.put

    def store(key: str, body: bytes, content_type: str) -> Pointer:
        if part in key:
            raise UpstreamError(f"store {key}: InternalError")
        return put(key, body, content_type)

    return store


def test_findings_are_counted_by_severity_with_zeros() -> None:
    world = a_broken_policy(a_calm_world())
    result = world.audit()
    assert result.worst == "error"
    counts = world.counts()
    assert counts.keys() == {"info", "warning", "error", "incident"}
    assert counts["error"] >= 1
    assert counts["incident"] == 0
    assert sum(counts.values()) == result.findings


def test_a_warning_or_worse_is_reported_with_its_remedy_and_where_the_report_is() -> None:
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


def test_of_a_cluster_that_is_gone_and_of_one_that_cannot_be_read_the_answer_says_why() -> None:
    world = a_calm_world()
    gone = "arn:aws:sagemaker:us-east-1:111122223333:cluster/gone00000000"
    assert world.ask(gone) == NothingToAudit(nothing_to_read=f"cluster {gone}")
    world.cluster.hyperpod.descriptions = [cluster_description(Orchestrator={"Slurm": {}})]
    answer = world.ask()
    assert isinstance(answer, ClusterUnreadable)
    assert re.search("InvalidRequestError: .*not orchestrated by EKS", answer.unreadable)
    assert world.cluster.documents.stored == {}


def test_a_lock_that_cannot_be_read_is_a_finding_because_no_run_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_calm_world()
    item = UnreadableItem(f"CLUSTER#{CLUSTER_ARN}", "STATE", "its lockExpires is soon, which is not a number")

    def lock_of(_: str) -> Lock:
        raise UnreadableItemError(item)

    monkeypatch.setattr(world.cluster.state, "lock_of", lock_of)
    report = report_from_json(world.cluster.documents.get(world.audit().report.json_))
    (found,) = (finding for finding in report.findings if finding.code == "unreadable-lock")
    assert "the item STATE of CLUSTER#" in found.because
    assert found.because.endswith("so that no run starts")


TEAM_A = "arn:aws:sns:us-east-1:111122223333:taskgov-team-a"


def governed(world: Audited, **audit: Any) -> Audited:
    """Store a document that promises team-a more than it has, with an `audit` section."""
    teams = [
        {"name": "team-a", "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 2}]}},
        {"name": "team-b", "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 0}]}},
    ]
    cluster = {"name": "ml-cluster", "arn": CLUSTER_ARN}
    document = {"apiVersion": "taskgov/v1", "cluster": cluster, "teams": teams, "audit": audit}
    world.cluster.documents.stored["policies/ml-cluster.yaml"] = json.dumps(document).encode()
    return world


def told_teams(**more: Any) -> dict[str, Any]:
    return {"notices": {"everyTeam": TEAM_A.replace("team-a", "{team}"), **more}}


def test_the_second_audit_says_what_is_new_what_stays_and_what_is_gone() -> None:
    world = governed(a_calm_world())
    first = world.report(world.audit())
    assert first.trend.previous is None
    assert {finding.is_new for finding in first.findings} == {False}
    world.cluster.clock.advance(days=1)
    a_broken_policy(world)
    second = world.report(world.audit(run_id="audit-2"))
    assert second.trend.previous is not None
    assert second.trend.previous.taken_at == NOON
    assert second.trend.previous.guaranteed == first.totals.guaranteed
    [broken] = [finding for finding in second.findings if finding.code == "policy-violation"]
    assert (broken.is_new, broken.first_seen, broken.audits) == (True, NOON + timedelta(days=1), 1)
    assert {known.code for known in second.trend.resolved} >= {"quota-drift"}
    assert all(known.first_seen == NOON for known in second.trend.resolved)
    world.cluster.clock.advance(days=1)
    third = world.report(world.audit(run_id="audit-3"))
    [stays] = [finding for finding in third.findings if finding.code == "policy-violation"]
    assert (stays.is_new, stays.first_seen, stays.audits) == (False, NOON + timedelta(days=1), 2)
    assert [point.taken_at for point in third.trend.points] == [NOON, NOON + timedelta(days=1)]


def test_a_second_try_of_an_audit_compares_itself_with_the_audit_before() -> None:
    world = governed(a_calm_world())
    world.audit(run_id="night-1")
    world.cluster.clock.advance(days=1)
    a_broken_policy(world)
    for _ in range(2):
        report = world.report(world.audit(run_id="night-2"))
        world.cluster.clock.advance(minutes=1)
        [broken] = [finding for finding in report.findings if finding.code == "policy-violation"]
        assert (broken.is_new, broken.audits) == (True, 1)
        assert [point.taken_at for point in report.trend.points] == [NOON]


def test_a_damaged_history_is_named_with_what_to_do() -> None:
    world = a_calm_world()
    world.cluster.documents.stored["memory/ml-cluster/audits.json"] = b"{"
    with pytest.raises(InvalidRequestError, match=r"(?s)memory/ml-cluster/audits.json cannot be read .* delete it"):
        world.audit()


def test_muted_findings_are_listed_and_counted_apart() -> None:
    mute = {"finding": "quota-*", "about": "team-a", "reason": "moving", "until": "2026-11-21T00:00Z"}
    world = governed(a_calm_world(), mute=[mute])
    result = world.audit()
    report = world.report(result)
    assert [(each.code, each.subject) for each in report.muted] == [("quota-drift", "team-a")]
    assert (result.muted, len(report.findings)) == (1, result.findings)
    assert "team-a" not in {each.subject for each in report.findings if each.code == "quota-drift"}
    assert sum(world.counts().values()) == result.findings
    assert world.measured("FindingsMuted") == [1]
    [(_, text)] = world.notices.sent
    assert "Muted: 1 finding" in text
    assert "WARNING team-a:" not in text
    assert b"moving" in world.cluster.documents.get(result.report.html)


def test_the_owners_are_notified_on_their_topic_of_what_is_theirs() -> None:
    world = governed(a_calm_world(), **told_teams())
    world.audit()
    told = {topic: text for topic, _, text in world.topics.sent}
    assert told.keys() == {TEAM_A, TEAM_A.replace("team-a", "team-b")}
    assert "WARNING team-a: The quota of team-a differs from the policy" in told[TEAM_A]
    assert "team-b:" not in told[TEAM_A]
    assert "(plan plan-" in told[TEAM_A]


def test_teams_of_one_topic_are_notified_together_and_each_finding_once() -> None:
    world = governed(a_calm_world(), **told_teams(teams={"team-b": TEAM_A}))
    world.audit()
    [(topic, subject, text)] = world.topics.sent
    assert topic == TEAM_A
    assert subject.endswith("about team-a, team-b")
    assert text.count("The quota of team-a differs from the policy") == 1


def test_nobody_is_notified_twice_by_a_second_try_and_everybody_by_the_next_audit() -> None:
    world = governed(a_calm_world(), **told_teams())
    world.audit(run_id="night-1")
    first = list(world.topics.sent)
    world.audit(run_id="night-1")
    assert world.topics.sent == first
    assert len(world.notices.sent) == 1
    world.audit(run_id="night-2")
    assert len(world.topics.sent) == 2 * len(first)
    assert len(world.notices.sent) == 2


def test_a_second_try_reports_only_what_the_first_did_not_find() -> None:
    world = governed(a_calm_world(), **told_teams(), severities=[{"finding": "quota-drift", "severity": "info"}])
    world.audit(run_id="night-1")
    assert world.topics.sent == []
    governed(world, **told_teams())
    world.audit(run_id="night-1")
    assert {topic for topic, _, _ in world.topics.sent} == {TEAM_A, TEAM_A.replace("team-a", "team-b")}


def test_a_topic_that_cannot_be_reached_does_not_fail_the_audit_and_is_named() -> None:
    world = governed(a_calm_world(), **told_teams())
    world.topics.fails[TEAM_A] = NotFoundError("Topic does not exist")
    world.audit()
    assert [topic for topic, _, _ in world.topics.sent] == [TEAM_A.replace("team-a", "team-b")]
    [(_, text)] = world.notices.sent
    assert f"Not sent: {TEAM_A}, of team-a: Topic does not exist" in text
    assert world.measured("NoticesFailed") == [1]


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "EndpointDisabled", "Message": "m"}}, "Publish"),
        EndpointConnectionError(endpoint_url="https://sns"),
        ValueError("invalid region in the ARN"),
        KeyError("MessageId"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_one_topic_does_the_others_and_the_cluster_are_notified(error: Exception) -> None:
    world = governed(a_calm_world(), **told_teams())
    world.topics.fails[TEAM_A] = error
    world.audit()
    assert [topic for topic, _, _ in world.topics.sent] == [TEAM_A.replace("team-a", "team-b")]
    [(_, text)] = world.notices.sent
    assert f"Not sent: {TEAM_A}, of team-a: {type(error).__name__} at memory.py:" in text
    assert world.measured("NoticesFailed") == [1]


def test_a_topic_whose_findings_cannot_be_claimed_does_not_keep_the_others_from_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = governed(a_calm_world(), **told_teams())
    real, asked = world.cluster.state.count_once, []

    def first_fails(*args: Any, **more: Any) -> bool:
        asked.append(args)
        if len(asked) == 1:
            raise ThrottledError("write ONCE#")
        return real(*args, **more)

    monkeypatch.setattr(world.cluster.state, "count_once", first_fails)
    world.audit()
    assert [topic for topic, _, _ in world.topics.sent] == [TEAM_A.replace("team-a", "team-b")]
    assert "Not sent: " in world.notices.sent[0][1]


def test_a_topic_outside_the_prefix_is_a_finding_and_gets_no_message() -> None:
    elsewhere = "arn:aws:sns:us-east-1:999988887777:taskgov-team-a"
    world = governed(a_calm_world(), **told_teams(teams={"team-a": elsewhere}))
    report = world.report(world.audit())
    assert [each.subject for each in report.findings if each.code == "notice-topic-refused"] == ["team-a"]
    assert elsewhere not in {topic for topic, _, _ in world.topics.sent}


@pytest.mark.parametrize(
    "error",
    [UpstreamError("SNS is down"), NotFoundError("SNS: Topic does not exist"), ValueError("SNS: odd ARN")],
    ids=str,
)
def test_the_clusters_notice_that_failed_is_sent_by_the_next_try_and_the_teams_are_not_notified_again(
    error: Exception,
) -> None:
    world = governed(a_calm_world(), **told_teams())
    world.notices.fails = error
    with pytest.raises(UpstreamError if isinstance(error, GovernanceError) else type(error), match="SNS"):
        world.audit()
    told = len(world.topics.sent)
    world.notices.fails = None
    world.audit()
    assert (len(world.notices.sent), len(world.topics.sent)) == (1, told)


def test_who_needs_somebody_is_the_documents_to_say() -> None:
    world = governed(a_calm_world(), attentionFrom="incident")
    world.audit()
    assert world.notices.sent == []


def test_the_audit_leaves_a_page_for_each_team() -> None:
    world = a_calm_world()
    world.audit()
    pages = {key for key in world.cluster.documents.stored if "/teams/" in key}
    assert pages == {"reports/ml-cluster/teams/team-a.html", "reports/ml-cluster/teams/team-b.html"}
