"""The report page: everything on it, nothing from outside, nothing unescaped."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgov.allocation.plan import Outcome
from taskgov.audit.report import Report, ReportedFinding, report_json
from taskgov.audit.report_bars import bar_groups
from taskgov.audit.report_html import headline, on_page, report_html, worst_severity
from taskgov.audit.report_plan import plan_tables
from taskgov.audit.report_tables import tables
from taskgov.findings import Evidence, Finding, Severity
from taskgov.number_text import NOTHING
from tests.support.reports import a_report, a_thousand_teams, a_usage_line, an_empty_report

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
    every = (*plan_tables(a_report()), *tables(a_report()))
    assert [table.anchor for table in every if not table.rows] == [], "the full report leaves one empty"
    for table in on_page(every):
        assert [column.label for column in table.columns] in shown
        for row in table.rows:
            assert [text for text, _ in row] in shown


def test_findings_are_shown_with_evidence_and_remedy() -> None:
    words = "".join(page_of(a_report()).words)
    for part in ("Warning", "Over quota", "team-c", "Team-c holds 2 GPUs too many.", "Wait.", "Used", "10"):
        assert part in words


def test_a_finding_that_the_plan_fixes_leads_to_the_plan_s_changes() -> None:
    html = report_html(a_report()).decode()
    assert '<a href="#changes">The plan fixes this with change 1.</a>' in html
    assert html.count("The plan fixes this") == 1


def test_the_evidence_says_in_words_what_the_sentence_does_not() -> None:
    evidence: Evidence = {
        "promisedGpus": 12.0,
        "percent": 0.5,
        "idle": 8,
        "since": "2026-11-19T22:10:00+00:00",
        "isLate": True,
    }
    finding = ReportedFinding("over-commitment", Severity.WARNING, "s", "8 are idle.", evidence=evidence)
    html = report_html(replace(a_report(), findings=(finding,))).decode()
    shown = re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", html.partition('id="findings"')[2].partition("</section>")[0])
    assert shown == [
        ("Is late", "yes"),
        ("Percent", "0.5 %"),
        ("Guaranteed GPUs", "12"),
        ("Since", "2026-11-19 22:10 UTC"),
    ]


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
    drawing = html[html.index('<table class="charts-css') : html.index('<section id="usage"')]
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


def test_cpu_and_memory_are_a_folded_section_beside_the_accelerators() -> None:
    html = report_html(a_report()).decode()
    section = html[html.index('<section id="usage-others"') :]
    folded = section[section.index("<details") : section.index("</details>")]
    assert ("CPU and memory" in folded, "<span>1 row</span>" in folded) == (True, True)
    assert re.findall(r'data-label="Resource"[^>]*>([^<]*)', folded) == ["CPU, cores"]
    usage = html[html.index('<section id="usage"') : html.index('<section id="usage-others"')]
    assert "CPU, cores" not in usage


def test_the_headline_of_a_quiet_cluster_is_quiet() -> None:
    assert headline(an_empty_report()) == "Nothing needs attention. The quotas are as they should be."


def test_the_headline_of_a_plan_that_was_blocked_before_it_compared_quotas_says_nothing_of_them() -> None:
    report = an_empty_report()
    blocked = replace(report, header=replace(report.header, plan_outcome=Outcome.BLOCKED))
    assert headline(blocked) == "Nothing needs attention. No quota was checked."


def test_the_worst_severity_is_the_gravest_whatever_the_order() -> None:
    some = [Finding("x", severity, "s", "b") for severity in (Severity.WARNING, Severity.INCIDENT, Severity.ERROR)]
    assert worst_severity(tuple(some)) is Severity.INCIDENT
    assert worst_severity(()) is None


def test_a_finding_says_whose_it_is_since_when_and_which_plan_remedies_it() -> None:
    page = report_html(a_report()).decode()
    assert (
        "Owner: team-c. Since 2026-11-18 02:00 UTC, in 3 audits. Rated warning by the policy document, found as info."
        in page
    )
    assert "New since the last audit." in page


def test_muted_findings_are_shown_apart_with_the_reason_and_the_end() -> None:
    rows = page_of(a_report()).rows
    assert ["team-b", "Idle quota", "info", "3 were never used.", "moving in", "2026-11-29 02:00"] in rows


def test_the_trend_compares_with_the_audit_before_and_never_gpus_with_cores() -> None:
    rows = page_of(a_report()).rows
    assert ["Healthy (GPUs)", "24", "23", "+1", "\N{EN DASH}", "\N{EN DASH}"] in rows
    assert ["Findings: warning", "1", "2", "\N{MINUS SIGN}1", "2", "\N{MINUS SIGN}1"] in rows
    assert ["team-a", "Hoarding", "warning", "2 idle.", "2026-11-12 02:00"] in rows


HOSTILE = st.text(min_size=1, max_size=8).filter(str.strip) | st.sampled_from(
    ["<b>x", "&amp;", '"><script>alert(1)</script>', "a/b", "\x1b[31m"]
)
AMOUNTS = st.integers(0, 20).map(float)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """Give reports in which any part may be missing, and any name hostile."""
    full = a_report()

    def some(part: str) -> tuple[Any, ...]:
        return tuple(draw(st.lists(st.sampled_from(getattr(full, part)), max_size=3)))

    parts: dict[str, Any] = {
        name: some(name) for name in ("capacity", "loans", "pending", "preemptions", "allocations", "changes")
    }
    parts |= {name: some(name) for name in ("effects", "edits", "leases", "tasks", "muted", "loops")}
    usage = draw(st.lists(st.builds(a_usage_line, HOSTILE, used=AMOUNTS, lent=AMOUNTS, over_quota=AMOUNTS), max_size=5))
    severities = st.sampled_from(Severity)
    findings = draw(st.lists(st.builds(ReportedFinding, HOSTILE, severities, HOSTILE, HOSTILE, HOSTILE), max_size=5))
    empty = an_empty_report()
    return replace(
        full,
        **parts,
        usage=tuple(usage),
        findings=tuple(findings),
        totals=draw(st.sampled_from([full.totals, empty.totals])),
        trend=draw(st.sampled_from([full.trend, empty.trend])),
    )


@given(reports())
@settings(deadline=None, max_examples=40)
def test_nothing_on_a_page_is_empty(report: Report) -> None:
    page = body_of(report_html(report).decode())
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(set(ids)) == len(ids)
    assert {link.get("href") for link in page.iter("a")} <= {f"#{name}" for name in ids}
    for section in page.iter("section"):
        assert [element for tag in ("td", "dd", "li") for element in section.iter(tag)], section.attrib
        assert section.get("aria-labelledby", "") in {*ids, ""}
    for table in page.iter("table"):
        rows = [row.findall("td") for body in table.iter("tbody") for row in body.iter("tr")]
        assert rows
        if table.get("class") is None:  # a chart has parts of a bar, which are as many as there are
            assert {len(row) for row in rows} == {len(list(table.iter("th")))}
            for column in zip(*rows, strict=True):
                assert {"".join(cell.itertext()) for cell in column} - {"", NOTHING}
    for tag in ("h1", "h2", "h3", "p", "li", "dt", "code", "summary"):
        for element in page.iter(tag):
            assert "".join(element.itertext()).strip() or tag == "h1", tag


@given(reports())
@settings(deadline=None, max_examples=40)
def test_headings_follow_one_another_and_headers_say_of_what_they_are(report: Report) -> None:
    page = body_of(report_html(report).decode())
    levels = [int(element.tag[1]) for element in page.iter() if element.tag in {"h1", "h2", "h3"}]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert {header.get("scope") for header in page.iter("th")} <= {"col", "row"}


def body_of(html: str) -> ET.Element:
    """Return the body as XML: what has no end tag is in the head."""
    body = html[html.index("<body>") : html.index("<script>")] + "</body>"
    return ET.fromstring(body.replace("&middot;", "&#183;").replace("&rsquo;", "&#8217;"))  # noqa: S314 -- our own page


def test_a_thousand_teams_fit_a_page_that_says_what_it_leaves_out() -> None:
    report = a_thousand_teams()
    html = report_html(report).decode()
    assert len(html) < 3_000_000
    assert "997 more findings: hoarding" in html
    assert "950 more are in the JSON file beside this page." in html
    assert "970 more use" in html
    assert "The first 200 of 1,000; the JSON file next to this page has all rows." in html
    assert len(json.loads(report_json(report))["usage"]) == 4000


def test_the_bars_of_many_teams_and_the_rest_come_to_all_of_them() -> None:
    (group,) = bar_groups(a_thousand_teams().usage)
    assert group.rest is not None
    assert group.rest.teams + len(group.bars) == 1000
    assert group.rest.used + sum(each.line.used for each in group.bars) == group.used
    assert min(each.line.used for each in group.bars) == 12


def test_ten_teams_are_all_drawn() -> None:
    usage = tuple(a_usage_line(f"team-{number}") for number in range(10))
    (group,) = bar_groups(usage)
    assert (len(group.bars), group.rest) == (10, None)


def test_what_the_plan_would_change_comes_right_after_the_findings_with_its_command() -> None:
    html = report_html(a_report()).decode()
    assert re.findall('<section id="([a-z]+)"', html)[:4] == ["findings", "changes", "effects", "loops"]
    assert _command_of_changes(html) == "taskgov plan --cluster ml-cluster"  # a guardrail stops it
    report = a_report()
    free = replace(report, changes=tuple(replace(change, stopped_by=()) for change in report.changes))
    assert _command_of_changes(report_html(free).decode()) == "taskgov reconcile ml-cluster"


def _command_of_changes(html: str) -> str:
    (code,) = re.findall("<code>(.*?)</code>", html.partition('id="changes"')[2].partition("</section>")[0])
    return re.sub("<.*?>", "", code)


def test_no_token_of_the_data_is_on_the_page() -> None:
    words = " ".join(body_of(report_html(a_report()).decode()).itertext())
    tokens = (
        "over-quota",
        "capacity-shrank",
        "update-quota",
        "InCohortReclamation",
        "approveAbove",
        "waiting-for-nodes",
    )
    assert [token for token in (*tokens, "needs-approval", " Count ") if token in words] == []
    assert "Capacity shrank" in words
