"""Which notices does the audit send? One for the cluster, and one for each topic of the teams that own findings.

`audit_cluster` sends them. Muted findings are in none.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from taskgov.audit.report import Report, ReportedFinding
from taskgov.audit.report_html import headline
from taskgov.number_text import counted
from taskgov.policy.notices import TeamNotices
from taskgov.printable import printable

TOLD: Final = 20
"""Findings, topics and teams in a notice; the report has them all."""
MOST_BYTES: Final = 1000
"""Bytes of a sentence in a notice: it may name every team."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Notice:
    """A subject line and a text."""

    subject: str
    text: str


def cluster_notice(report: Report, page: str, untold: Iterable[str]) -> Notice | None:
    """Return the notice of the cluster's topic, or None when nothing needs attention.

    `page` is where the report is; `untold` names the topics that could not be reached, with the reason.
    """
    grave = attention(report)
    lost = _some(list(untold), lambda message: _cut(f"Not sent: {message}"))
    if not grave and not lost:
        return None
    muted = [f"Muted: {counted(len(report.muted), 'finding')}"] if report.muted else []
    trend = [_trend(report)] if report.trend.previous else []
    lines = [headline(report), *trend, "", *_lines(grave), *lost, *muted, "", f"Report: {page}"]
    return Notice(f"taskgov: audit of {report.header.cluster_name}: {headline(report)}", "\n".join(lines))


def attention(report: Report) -> list[ReportedFinding]:
    """Return the findings that need somebody: those from the document's `attentionFrom` on."""
    least = report.header.attention_from.gravity
    return [finding for finding in report.findings if finding.severity.gravity >= least]


def by_topic(report: Report, rules: TeamNotices, topics: str) -> dict[str, list[ReportedFinding]]:
    """Return topic -> the findings of the teams that it belongs to, each once, by topic.

    Topics that do not begin with `topics` are left out: the stack may not write to them, which is a finding.
    """
    told: dict[str, list[ReportedFinding]] = {}
    for finding in report.findings:
        if finding.severity.gravity < rules.from_.gravity:
            continue
        named = {rules.topic_of(team) for team in finding.teams}
        for topic in sorted(topic for topic in named if topic is not None and topic.startswith(topics)):
            told.setdefault(topic, []).append(finding)
    return dict(sorted(told.items()))


def team_notice(report: Report, findings: list[ReportedFinding], page: str) -> Notice:
    """Return one topic's notice of its teams' findings."""
    name = report.header.cluster_name
    teams = _named(sorted({team for finding in findings for team in finding.teams}))
    head = f"{counted(len(findings), 'finding')} about {teams}"
    lines = [f"The audit of {name} has {head}.", "", *_lines(findings), "", f"Report: {page}"]
    return Notice(f"taskgov: audit of {name}: {head}", "\n".join(lines))


def _lines(findings: list[ReportedFinding]) -> list[str]:
    return _some(findings, _line)


def _some(told: list[_T], line: Callable[[_T], str]) -> list[str]:
    more = [f"and {len(told) - TOLD:,} more"] if len(told) > TOLD else []
    return [*map(line, told[:TOLD]), *more]


def _named(teams: list[str]) -> str:
    return ", ".join(teams[:TOLD]) + (f" and {len(teams) - TOLD:,} more" if len(teams) > TOLD else "")


def _line(finding: ReportedFinding) -> str:
    plan = f" (plan {finding.plan.plan_id} does it)" if finding.plan else ""
    sentence = f"{_cut(finding.because)} {_cut(finding.remedy)}"
    return printable(f"{finding.severity.upper()} {finding.subject}: {sentence}{plan}{_since(finding)}")


def _cut(sentence: str) -> str:
    return printable(sentence[:MOST_BYTES]).encode()[:MOST_BYTES].decode(errors="ignore")


def _since(finding: ReportedFinding) -> str:
    if finding.is_new:
        return " [new]"
    if finding.audits == 1 or finding.first_seen is None:
        return ""
    return f" [since {finding.first_seen:%Y-%m-%d}, {finding.audits} audits]"


def _trend(report: Report) -> str:
    return f"Since the last audit: {report.trend.new} new, {len(report.trend.resolved)} gone."
