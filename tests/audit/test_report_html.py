"""The report page: everything on it, nothing from outside, nothing unescaped."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from taskgov.allocation.plan import Outcome
from taskgov.audit.report import Report, ReportedFinding
from taskgov.audit.report_html import headline, report_html, worst_severity
from taskgov.audit.report_tables import tables
from taskgov.findings import Finding, Severity
from tests.support.reports import a_report, an_empty_report

VOID = {"meta", "link", "rect", "line", "br"}


class Page(HTMLParser):
    """The page's elements, its text, and the addresses it names; complains of tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.rows: list[list[str]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href", "action", "srcset", "data"}]
        if tag == "tr":
            self.rows.append([])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self.open and self.open[-1] in {"td", "button"}:
            self.rows[-1].append(data)


def page_of(report: Report) -> Page:
    return Page(report_html(report).decode())


@pytest.mark.parametrize("report", [a_report(), an_empty_report()], ids=["a full report", "an empty report"])
def test_the_page_is_well_formed_and_asks_nobody_for_anything(report: Report) -> None:
    page = page_of(report)
    assert page.open == []
    assert {each for each in page.addresses if not each.startswith("#")} == {"data:,"}
    html = report_html(report).decode()
    assert "default-src 'none'" in html
    assert not re.search(r"https?://|@import|url\(|fetch\(", html)


def test_the_library_that_draws_the_charts_is_in_the_page_as_published() -> None:
    library = files("taskgov.audit").joinpath("charts_css/charts-1.2.0.min.css").read_text().strip()
    assert f"<style>{library}</style>" in report_html(a_report()).decode()


def test_the_same_report_gives_the_same_bytes() -> None:
    assert report_html(a_report()) == report_html(a_report())


def test_every_cell_of_every_table_is_on_the_page() -> None:
    shown = page_of(a_report()).rows
    for table in tables(a_report()):
        assert [column.label for column in table.columns] in shown
        assert table.rows, f"the full report leaves {table.anchor} empty"
        for row in table.rows:
            assert [text for text, _ in row] in shown


def test_a_table_without_rows_says_what_that_means() -> None:
    words = " ".join(page_of(an_empty_report()).words)
    for table in tables(an_empty_report()):
        assert table.when_empty in words


def test_findings_are_shown_with_evidence_and_remedy() -> None:
    words = "".join(page_of(a_report()).words)
    for part in ("Warning · team-c", "over-quota", "Team-c holds 2 GPUs too many.", "Wait.", "used", "10"):
        assert part in words


def test_a_finding_that_the_plan_remedies_leads_to_the_plan_s_changes() -> None:
    html = report_html(a_report()).decode()
    assert '<a href="#changes">Change 1 of the plan 0123456789abcdef would remedy it.</a>' in html
    assert html.count("would remedy it") == 1


def test_a_whole_number_in_the_evidence_has_no_decimals() -> None:
    finding = ReportedFinding("over-commitment", Severity.WARNING, "s", "b", evidence={"promised": 12.0, "share": 0.5})
    html = report_html(replace(a_report(), findings=(finding,))).decode()
    assert "<dt>promised</dt><dd>12</dd>" in html
    assert "<dt>share</dt><dd>0.5</dd>" in html


def test_what_comes_from_the_cluster_is_escaped() -> None:
    evil = '"><script>alert(1)</script>'
    finding = ReportedFinding(evil, Severity.INFO, evil, evil, evil, {evil: evil})
    line = replace(a_report().usage[0], team=evil)
    report = replace(
        a_report(), findings=(finding,), usage=(line,), header=replace(a_report().header, cluster_name=evil)
    )
    html = report_html(report).decode()
    assert html.count("<script>") == 1
    assert "&#34;&gt;&lt;script&gt;alert(1)" in html


def test_a_team_that_holds_more_than_a_lowered_quota_is_not_drawn_as_borrowing() -> None:
    html = report_html(replace(a_report(), usage=(a_report().usage[3],))).decode()
    drawing = html[html.index('<table class="charts-css') : html.index('<section id="usage">')]
    assert 'td class="over-quota"' in drawing
    assert 'td class="borrowed"' not in drawing


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (Outcome.PLANNED, "1 change is planned."),
        (Outcome.APPLY, "1 change is ready to be applied."),
        (Outcome.NEEDS_APPROVAL, "1 change is planned and would need approval."),
        (Outcome.BLOCKED, "1 change is planned and blocked."),
    ],
)
def test_the_headline_says_what_becomes_of_the_plan(outcome: Outcome, says: str) -> None:
    report = replace(a_report(), header=replace(a_report().header, plan_outcome=outcome))
    assert headline(report) == f"1 finding needs attention. {says}"


def test_the_headline_of_a_quiet_cluster_is_quiet() -> None:
    assert headline(an_empty_report()) == "Nothing needs attention. The quotas are as they should be."


def test_the_worst_severity_is_the_gravest_whatever_the_order() -> None:
    some = [Finding("x", severity, "s", "b") for severity in (Severity.WARNING, Severity.INCIDENT, Severity.ERROR)]
    assert worst_severity(tuple(some)) is Severity.INCIDENT
    assert worst_severity(()) is None


def test_a_finding_says_whose_it_is_since_when_and_which_plan_remedies_it() -> None:
    page = report_html(a_report()).decode()
    assert (
        "Of team-c. Since 2026-11-18 02:00, in 3 audits. Rated warning by the policy document, found as info." in page
    )
    assert "New since the last audit." in page


def test_muted_findings_are_shown_apart_with_the_reason_and_the_end() -> None:
    rows = page_of(a_report()).rows
    assert ["team-b", "idle-quota", "info", "3 were never used.", "moving in", "2026-11-29 02:00"] in rows


def test_the_trend_compares_with_the_audit_before_and_never_gpus_with_cores() -> None:
    rows = page_of(a_report()).rows
    assert ["Healthy (GPUs)", "24", "23", "+1", "\N{EN DASH}", "\N{EN DASH}"] in rows
    assert ["Findings: warning", "1", "2", "\N{MINUS SIGN}1", "2", "\N{MINUS SIGN}1"] in rows
    assert ["team-a", "hoarding", "warning", "2 idle.", "2026-11-12 02:00"] in rows
