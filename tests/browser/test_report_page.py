"""The audit report in a real browser: layout, sorting, no request, no complaint, nothing unescaped."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from taskgov.audit.report import Command, ReportedFinding
from taskgov.audit.report_html import report_html
from taskgov.findings import Severity
from tests.browser.opening import CONTRAST
from tests.support.reports import a_report, a_thousand_teams, a_usage_line, an_empty_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov.audit.report import Report
    from tests.browser.opening import Opened

    Show = Callable[..., Opened]

pytestmark = pytest.mark.browser

EVIL = "</script><script>alert(1)</script>\"><img src=x onerror=alert(2)><b onclick='alert(3)'>team</b>"


def a_crowd() -> Report:
    """Return a report of many teams with long names and numbers, some of which hold ten times what others hold."""
    names = [f"team-{number:02}-of-the-department-of-very-long-names" for number in range(40)]
    lines = tuple(
        a_usage_line(
            name,
            guaranteed=float(8 * (number + 1)),
            used=float(8 * (number + 1) + 4),
            borrowed=4.0,
            idle=0.0,
            lent=0.0,
        )
        for number, name in enumerate(names)
    )
    words = "Its reason is a sentence of the usual length, with numbers such as 1,234,567 in it. " * 4
    findings = tuple(
        ReportedFinding("quota-drift", Severity.ERROR, name, words, words, {"value": "x" * 90}) for name in names[:5]
    )
    return replace(a_report(), usage=lines, findings=findings)


def a_hostile_report() -> Report:
    full = a_report()
    return replace(
        full,
        header=replace(full.header, cluster_name=EVIL),
        findings=(ReportedFinding(EVIL, Severity.ERROR, EVIL, EVIL, EVIL, {EVIL: EVIL}),),
        usage=(a_usage_line(EVIL, instance_type=EVIL, resource=EVIL), a_usage_line("team-b")),
        preemptions=(replace(full.preemptions[0], team=EVIL, workload=EVIL, reason=EVIL, preempting_team=EVIL),),
    )


REPORTS = {"full": a_report, "empty": an_empty_report, "crowd": a_crowd, "hostile": a_hostile_report}


@pytest.fixture(params=list(REPORTS))
def report(request: pytest.FixtureRequest) -> Report:
    return REPORTS[request.param]()


@pytest.mark.parametrize("width", [320, 360, 390, 768, 1024, 1440])
def test_nothing_runs_over_the_side_of_a_phone_or_a_desk(show: Show, report: Report, width: int) -> None:
    opened = show(report, viewport={"width": width, "height": 800})
    assert opened.widths() == (width, width)


def test_the_page_asks_for_nothing_but_itself_and_complains_of_nothing(show: Show, report: Report) -> None:
    opened = show(report)
    opened.page.wait_for_load_state("networkidle")
    assert [url for url in opened.requests if not url.startswith("data:")] == [opened.url]
    assert opened.complaints == []


def test_the_page_may_not_ask_even_if_a_script_of_it_wanted_to(show: Show) -> None:
    opened = show(a_report())
    refused = opened.page.evaluate("fetch('https://example.com/').then(() => 'answered', (error) => error.name)")
    assert refused == "TypeError"
    assert any("Content Security Policy" in complaint for complaint in opened.complaints)


def test_a_click_on_a_heading_sorts_by_it_and_another_turns_it_round(show: Show) -> None:
    opened = show(a_crowd())
    # 12 before 100: as numbers, not as text.
    in_order = sorted(opened.column("usage", "Used"), key=float)
    opened.heading("usage", "Team").click()
    opened.heading("usage", "Used").click()
    assert opened.column("usage", "Used") == in_order
    opened.heading("usage", "Used").click()
    assert opened.column("usage", "Used") == in_order[::-1]
    states = opened.page.locator("#usage th").evaluate_all("all => all.map(each => each.getAttribute('aria-sort'))")
    assert [state for state in states if state] == ["descending"]


class Worked:
    """How long the page's thread has worked, as Chromium counts it: processor time, whatever else the machine does."""

    def __init__(self, opened: Opened) -> None:
        self._session = opened.page.context.new_cdp_session(opened.page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._before = 0.0

    def seconds(self) -> float:
        """Return what was worked since it was asked last."""
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        now = float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))
        spent, self._before = now - self._before, now
        return spent


@pytest.mark.parametrize("width", [390, 1280])
def test_a_thousand_teams_with_fifteen_rows_each_are_a_page_that_opens_and_sorts_at_once(
    show: Show, width: int
) -> None:
    report = a_thousand_teams(rows=15)
    assert len(report.usage) == 60_000
    assert len(report_html(report)) <= 3_000_000
    opened = show(report, viewport={"width": width, "height": 800})
    worked = Worked(opened)
    opened.page.reload()
    assert opened.widths() == (width, width)
    assert opened.page.locator("*").count() <= 30_000
    assert opened.complaints == []
    assert 0.01 < worked.seconds() <= 5
    before = set(opened.column("usage", "Team"))
    worked.seconds()
    opened.heading("usage", "Used").click()
    assert worked.seconds() <= 2
    assert opened.column("usage", "Used") == sorted(opened.column("usage", "Used"), key=float)
    assert set(opened.column("usage", "Team")) == before


def test_rows_stay_together_when_they_are_sorted(show: Show) -> None:
    opened = show(a_crowd())
    before = set(opened.page.locator("#usage tbody tr").all_inner_texts())
    opened.heading("usage", "Used").click()
    assert set(opened.page.locator("#usage tbody tr").all_inner_texts()) == before


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_the_keyboard_sorts_too(show: Show, key: str) -> None:
    opened = show(a_crowd())
    opened.heading("usage", "Team").focus()
    for _ in range(2):
        opened.page.keyboard.press(key)
    assert opened.column("usage", "Team") == sorted(opened.column("usage", "Team"), reverse=True)


def test_a_phone_sorts_by_the_headings_above_the_rows(show: Show) -> None:
    opened = show(a_crowd(), viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    opened.heading("usage", "Used").tap()
    opened.heading("usage", "Used").tap()
    used = [float(text) for text in opened.column("usage", "Used")]
    assert used == sorted(used, reverse=True)


def test_a_phone_names_every_number_beside_it(show: Show) -> None:
    opened = show(a_report(), viewport={"width": 390, "height": 844})
    label = "cell => getComputedStyle(cell, '::before').content"
    used = opened.headings("usage").index("Used")
    assert opened.page.locator(f"#usage tbody td >> nth={used}").evaluate(label) == '"Used"'


@pytest.mark.parametrize("scripts", [True, False])
def test_cpu_and_memory_are_folded_on_a_phone_and_the_keyboard_opens_them(show: Show, *, scripts: bool) -> None:
    others = tuple(
        a_usage_line(f"team-{number}", resource=resource, leading=False, guaranteed=192.0, used=288.0)
        for number in range(8)
        for resource in ("cpu", "memory")
    )
    report = replace(a_report(), usage=(a_usage_line(), *others))
    opened = show(report, viewport={"width": 390, "height": 844}, java_script_enabled=scripts)
    assert opened.page.locator("#usage tbody tr").count() == 1
    folded = opened.page.locator("#usage-others")
    rows = folded.locator("tbody tr")
    assert (rows.count(), rows.first.is_visible()) == (16, False)
    low = folded.bounding_box()
    assert low
    assert low["height"] < 100
    folded.locator("summary").focus()
    opened.page.keyboard.press("Enter")
    rows.first.wait_for(state="visible")
    assert "288" in rows.first.inner_text()
    box = opened.page.locator("body").bounding_box()
    assert box
    assert box["width"] == 390
    if scripts:
        assert opened.widths() == (390, 390)


def test_markup_in_a_team_s_name_is_text(show: Show) -> None:
    opened = show(a_hostile_report())
    assert opened.page.locator("img, b[onclick]").count() == 0
    assert opened.page.locator("h1").inner_text() == EVIL
    assert EVIL in opened.column("usage", "Team")
    assert opened.page.locator("#teams th >> nth=0").inner_text().startswith(EVIL)
    opened.heading("usage", "Team").click()
    assert opened.complaints == []


def test_parts_of_a_bar_are_as_long_as_what_they_stand_for(show: Show) -> None:
    opened = show(a_report())
    widths = (
        opened.page.locator("#teams tbody tr >> nth=0")
        .locator("td")
        .evaluate_all("all => all.map(each => each.getBoundingClientRect().width)")
    )
    own, borrowed = widths  # 8 of its own, 4 borrowed
    assert own / borrowed == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("width", [390, 1280])
def test_bars_and_names_do_not_lie_on_one_another(show: Show, width: int) -> None:
    opened = show(a_crowd(), viewport={"width": width, "height": 800})
    boxes = opened.page.locator("#teams tbody tr").evaluate_all(
        "all => all.map(each => [...each.querySelectorAll('th')].concat([...each.querySelectorAll('td')])"
        ".map(part => part.getBoundingClientRect()).map(box => [box.left, box.right, box.top, box.bottom]))"
    )
    for name, *parts in boxes:
        for part in parts:
            apart = name[1] <= part[0] + 1 or name[3] <= part[2] + 1
            assert apart, (name, part)
    tops = [max(box[3] for box in row) for row in boxes]
    assert all(min(box[2] for box in row) >= above - 1 for above, row in zip(tops, boxes[1:], strict=False))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_word_stands_out_from_what_is_behind_it(show: Show, report: Report, scheme: str, width: int) -> None:
    opened = show(report, color_scheme=scheme, viewport={"width": width, "height": 800})
    contrast, text = opened.page.evaluate(CONTRAST)
    assert contrast >= 4.5, text


def test_light_and_dark_are_the_reader_s_choice(show: Show) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light, dark = (show(a_report(), color_scheme=scheme).page.evaluate(colour) for scheme in ("light", "dark"))
    assert (light, dark) == ("rgb(247, 246, 243)", "rgb(18, 21, 24)")


def test_paper_is_white_whatever_the_screen_is_and_nothing_runs_over_its_side(show: Show, report: Report) -> None:
    a4_less_margins = 688  # 210 mm less twice 14 mm, at 96 dots an inch
    opened = show(report, color_scheme="dark", viewport={"width": a4_less_margins, "height": 1000})
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.widths() == (a4_less_margins, a4_less_margins)
    contrast, text = opened.page.evaluate(CONTRAST)
    assert contrast >= 4.5, text


def test_it_prints(show: Show) -> None:
    opened = show(a_crowd())
    paper = opened.page.pdf(format="A4", prefer_css_page_size=True)
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") > 2


def test_without_scripts_everything_is_there_but_the_buttons_that_copy(show: Show) -> None:
    with_scripts, without = (show(a_report(), java_script_enabled=allowed) for allowed in (True, False))
    with_scripts.page.locator(".command button").evaluate_all("all => all.forEach(each => each.remove())")
    assert without.page.locator("main").inner_text() == with_scripts.page.locator("main").inner_text()
    assert without.page.locator(".command code >> nth=0").is_visible()


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_the_keyboard_copies_a_command_and_it_is_said(show: Show, key: str) -> None:
    opened = show(a_report(), permissions=["clipboard-read", "clipboard-write"])
    button = opened.page.get_by_role("button", name="Copy taskgov jobs")
    button.focus()
    opened.page.keyboard.press(key)
    opened.page.get_by_role("status").get_by_text("Copied").wait_for(state="attached")
    assert opened.page.evaluate("navigator.clipboard.readText()") == "taskgov jobs --cluster ml-cluster --team team-c"
    assert opened.complaints == []


def test_a_command_is_copied_where_the_clipboard_is_not_given(show: Show) -> None:
    opened = show(a_report())
    opened.page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    opened.page.get_by_role("button", name="Copy taskgov jobs").click()
    opened.page.get_by_role("status").get_by_text("Copied").wait_for(state="attached")
    selected = opened.page.evaluate("getSelection().toString()")
    assert selected == "taskgov jobs --cluster ml-cluster --team team-c"


def test_a_command_with_a_hostile_name_is_copied_as_it_is_and_runs_nothing(show: Show) -> None:
    command = Command("List the tasks:", f"taskgov jobs --cluster ml-cluster --team '{EVIL}'")
    finding = ReportedFinding("over-quota", Severity.ERROR, EVIL, EVIL, EVIL, commands=(command,))
    opened = show(replace(a_report(), findings=(finding,)), permissions=["clipboard-read", "clipboard-write"])
    opened.page.locator("#findings .command button").click()
    opened.page.get_by_role("status").get_by_text("Copied").wait_for(state="attached")
    assert opened.page.evaluate("navigator.clipboard.readText()") == command.line
    assert opened.complaints == []


def test_the_key_figures_leave_no_blank_tile(show: Show) -> None:
    for width in (360, 800, 1000, 1180):
        opened = show(a_report(), viewport={"width": width, "height": 800})
        right = opened.page.locator(".tiles").evaluate("all => all.getBoundingClientRect().right")
        boxes = opened.page.locator(".tile").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect()).map(box => [box.top, box.right])"
        )
        rows = [[end for top, end in boxes if top == row] for row in sorted({top for top, _ in boxes})]
        assert [max(row) for row in rows] == pytest.approx([right] * len(rows), abs=2)
        if width > 640:
            assert min(map(len, rows)) >= 3  # no figure alone in a row that is wide


def test_the_focus_goes_down_the_page_and_is_seen(show: Show) -> None:
    opened = show(a_report(), viewport={"width": 1180, "height": 5000})
    tops, seen = [], []
    for _ in range(40):
        opened.page.keyboard.press("Tab")
        top, outline = opened.page.evaluate(
            "(at => [at.getBoundingClientRect().top, getComputedStyle(at).outlineStyle])(document.activeElement)"
        )
        tops.append(top)
        seen.append(outline)
    assert all(later >= earlier - 30 for earlier, later in pairwise(tops))
    assert set(seen) == {"solid"}


def test_folded_findings_are_printed(show: Show) -> None:
    opened = show(a_crowd())
    folded = opened.page.locator("details")
    assert folded.count() == 1
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert folded.get_attribute("open") is not None
