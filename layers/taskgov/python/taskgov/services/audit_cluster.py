"""Audit one cluster: read it, plan without writing, judge, write a report, and notify those whom it concerns.

`audit` calls it for each cluster every night. A second try of the same audit leaves a report of its own moment,
notifies nobody anything twice, and compares itself with the audit before, not with its first try.
"""

from dataclasses import dataclass, field
from hashlib import sha256

from taskgov.audit.notices import by_topic, cluster_notice, team_notice
from taskgov.audit.report import Report, ReportedFinding, report_json
from taskgov.audit.report_build import audit_report, count_findings, history_after
from taskgov.audit.report_html import report_html, worst_severity
from taskgov.audit.trend import Earlier, history_from_json, history_to_json
from taskgov.collector import collector_paused
from taskgov.contracts.steps import (
    AuditClusterRequest,
    AuditClusterResult,
    ClusterUnreadable,
    NothingToAudit,
    Pointer,
    ReportPointers,
)
from taskgov.errors import GovernanceError, InvalidRequestError, NotFoundError, NothingToReadError, UpstreamError
from taskgov.findings import Finding
from taskgov.findings.of_audit import UNREADABLE_LOCK
from taskgov.ports import DocumentStore, Meter, Notices, StateStore, TeamTopics
from taskgov.services import metric_catalogue as metric
from taskgov.services.advise_quotas import AdviseQuotas
from taskgov.services.failures import Failures, Raised, said_of
from taskgov.services.kept_starts import task_starts
from taskgov.services.reading import unreadable
from taskgov.services.series_cap import series_findings
from taskgov.services.take_snapshot import TakeSnapshot
from taskgov.services.team_pages import TeamPages
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.unreadable import UnreadableItemError
from taskgov.usage.cluster_usage import cluster_usage

KEY = "reports/{cluster}/{moment:%Y-%m-%dT%H%M%SZ}.{form}"
HISTORY_KEY = "memory/{}/audits.json"


@dataclass(frozen=True, slots=True)
class AuditCluster:
    """Writes the audit report of one cluster. Its fields are the ports it uses."""

    take_snapshot: TakeSnapshot
    documents: DocumentStore
    state: StateStore
    notices: Notices
    team_topics: TeamTopics
    meter: Meter
    advise: AdviseQuotas
    failures: Failures = field(default_factory=Raised)
    """Where a page of a team that cannot be written is reported; without it, the audit fails."""

    @collector_paused()
    def __call__(self, request: AuditClusterRequest) -> AuditClusterResult | ClusterUnreadable | NothingToAudit:
        """Return how many findings there are, the worst of them, and where the report is; or why there is none.

        The cluster's own notice comes last: when it cannot be sent the audit fails, and its next try sends it. A topic
        of a team that cannot be notified does not fail the audit; the cluster's notice and a metric say so.
        """
        try:
            snapshot = self.take_snapshot(request.cluster_arn)
        except NothingToReadError as error:
            return NothingToAudit(nothing_to_read=str(error))
        except GovernanceError as error:
            return unreadable(error)
        name = snapshot.cluster.name
        earlier = earlier_audits(self.documents, name, request.run_id)
        cut = series_findings(self.documents, name, snapshot.taken_at)
        unlockable = self._unreadable_lock(snapshot.cluster.arn)
        usage, starts = cluster_usage(snapshot), task_starts(self.documents, snapshot)
        report = audit_report(
            snapshot,
            earlier,
            topics=self.team_topics.begin_with,
            beside=(*cut, *unlockable),
            starts=starts,
            advice=self.advise(snapshot),
            usage=usage,
        )
        pointers = self._store(report)
        TeamPages(self.documents, self.failures).write(snapshot, usage, starts)
        body = history_to_json(history_after(report, earlier))
        self.documents.put(HISTORY_KEY.format(name), body, "application/json")
        untold = self._tell_teams(snapshot, report, pointers.html, request.run_id)
        self._measure(name, report, len(untold))
        self._tell_cluster(snapshot, report, pointers.html, untold, request.run_id)
        return AuditClusterResult(
            cluster_name=name,
            findings=len(report.findings),
            muted=len(report.muted),
            worst=worst_severity(report.findings),
            report=pointers,
        )

    def _unreadable_lock(self, cluster_arn: str) -> tuple[Finding, ...]:
        try:
            self.state.lock_of(cluster_arn)
        except UnreadableItemError as error:
            return (UNREADABLE_LOCK.about("lock", {"pk": error.item.pk}, item=error.item),)
        return ()

    def _store(self, report: Report) -> ReportPointers:
        def put(form: str, body: bytes, content_type: str) -> Pointer:
            header = report.header
            key = KEY.format(cluster=header.cluster_name, moment=header.taken_at, form=form)
            return self.documents.put(key, body, content_type)

        return ReportPointers(
            json_=put("json", report_json(report), "application/json"),
            html=put("html", report_html(report), "text/html; charset=utf-8"),
        )

    def _measure(self, name: str, report: Report, untold: int) -> None:
        counts = count_findings(report.findings)
        values = [metric.FINDINGS.of(count, severity) for severity, count in counts.items()]
        values += [
            metric.FINDINGS_MUTED.of(len(report.muted)),
            metric.NOTICES_FAILED.of(untold),
            metric.AUDITS_MISSED.of(0),
        ]
        self.meter.record(name, values)

    def _tell_teams(self, snapshot: Snapshot, report: Report, page: Pointer, run_id: str) -> list[str]:
        """Send each topic its findings, and return the topics that could not be reached, with the reason.

        What is due is claimed first: a finding whose message got lost is in the report, and sent by
        the next audit; none is sent twice.
        """
        if snapshot.policy is None:
            return []
        untold = []
        for topic, findings in by_topic(report, snapshot.policy.notice_rules, self.team_topics.begin_with).items():
            try:
                fresh = [
                    finding for finding in findings if self._claim(snapshot, f"{run_id} {topic} {finding.identity}")
                ]
                if fresh:
                    notice = team_notice(report, fresh, _place(page))
                    self.team_topics.send(topic, notice.subject, notice.text)
            except Exception as error:  # noqa: BLE001 - an error of one topic is named, and the others are notified
                untold.append(f"{topic}, of {_names(findings)}: {said_of(error)}")
        return untold

    def _tell_cluster(self, snapshot: Snapshot, report: Report, page: Pointer, untold: list[str], run_id: str) -> None:
        notice = cluster_notice(report, _place(page), untold)
        claim = f"{run_id} cluster"
        if notice is None or not self._claim(snapshot, claim):
            return
        try:
            self.notices.send(notice.subject, notice.text)
        except Exception as error:
            self.state.forget_once(snapshot.cluster.arn, _identity(claim))
            if isinstance(error, NotFoundError):  # such as a topic that was deleted: tried again, as all else of SNS
                raise UpstreamError(str(error)) from error
            raise

    def _claim(self, snapshot: Snapshot, what: str) -> bool:
        return self.state.count_once(snapshot.cluster.arn, _identity(what), snapshot.taken_at)


def earlier_audits(documents: DocumentStore, cluster_name: str, run_id: str = "") -> Earlier:
    """Return what earlier audits left. Raises InvalidRequestError for a document that somebody damaged."""
    key = HISTORY_KEY.format(cluster_name)
    try:
        return Earlier(history_from_json(documents.find(key)), run_id)
    except ValueError as error:
        raise InvalidRequestError(f"{key} cannot be read ({error}); delete it, and trends start again") from error


def _identity(claim: str) -> str:
    return f"audit-{sha256(claim.encode()).hexdigest()[:40]}"


def _place(page: Pointer) -> str:
    return f"s3://{page.bucket}/{page.key}"


def _names(findings: list[ReportedFinding]) -> str:
    return ", ".join(sorted({team for finding in findings for team in finding.teams}))
