"""Audit one cluster: look, plan without writing, judge, and leave a report.

`audit` calls it for each cluster every night. Calling it twice leaves two reports and changes nothing else.
"""

from dataclasses import dataclass
from typing import Final

from taskgov.audit.report import Report, report_json
from taskgov.audit.report_build import audit_report
from taskgov.audit.report_html import headline, report_html, worst_severity
from taskgov.contracts.steps import AuditClusterRequest, AuditClusterResult, Pointer, ReportPointers
from taskgov.findings import Finding, Severity
from taskgov.ports import DocumentStore, Meter, Notices
from taskgov.services import metric_catalogue as metric
from taskgov.services.take_snapshot import TakeSnapshot

KEY = "reports/{cluster}/{moment:%Y-%m-%dT%H%M%SZ}.{form}"
TOLD: Final = 20
"""Findings in a notice; the report has them all."""


@dataclass(frozen=True, slots=True)
class AuditCluster:
    """The use case with what it needs from the world."""

    take_snapshot: TakeSnapshot
    documents: DocumentStore
    notices: Notices
    meter: Meter

    def __call__(self, request: AuditClusterRequest) -> AuditClusterResult:
        """Return how many findings there are, the worst of them, and where the report is."""
        report = audit_report(self.take_snapshot(request.cluster_arn))
        pointers = self._store(report)
        name = report.header.cluster_name
        self.meter.record(name, [metric.FINDINGS.of(count, severity) for severity, count in _count(report.findings)])
        if _needs_somebody(report):
            self.notices.send(f"taskgov: audit of {name}: {headline(report)}", _text(report, pointers.html))
        return AuditClusterResult(
            cluster_name=name,
            findings=len(report.findings),
            worst=worst_severity(report.findings),
            report=pointers,
        )

    def _store(self, report: Report) -> ReportPointers:
        def put(form: str, body: bytes, content_type: str) -> Pointer:
            header = report.header
            key = KEY.format(cluster=header.cluster_name, moment=header.taken_at, form=form)
            return self.documents.put(key, body, content_type)

        return ReportPointers(
            json_=put("json", report_json(report), "application/json"),
            html=put("html", report_html(report), "text/html; charset=utf-8"),
        )


def _count(findings: tuple[Finding, ...]) -> list[tuple[Severity, int]]:
    """Count by severity; zeros are published too, so that an alarm sees a clean audit."""
    return [(severity, sum(finding.severity is severity for finding in findings)) for severity in Severity]


def _needs_somebody(report: Report) -> bool:
    return any(finding.severity is not Severity.INFO for finding in report.findings)


def _text(report: Report, page: Pointer) -> str:
    grave = [finding for finding in report.findings if finding.severity is not Severity.INFO]
    lines = [f"{each.severity.upper()} {each.subject}: {each.because} {each.remedy}".rstrip() for each in grave[:TOLD]]
    if len(grave) > TOLD:
        lines.append(f"and {len(grave) - TOLD} more")
    return "\n".join([headline(report), "", *lines, "", f"Report: s3://{page.bucket}/{page.key}"])
