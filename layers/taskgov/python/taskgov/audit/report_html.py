"""How is a report shown to people? As one HTML file that needs nothing else: no request leaves it.

`audit_cluster` stores it, the command line writes it to a file. Everything from the cluster is escaped. Charts are
drawn by charts.css (chartscss.org), a style sheet that makes charts of tables: no script, and they print. It lies in
`charts_css/` as published (dist/charts.min.css of 1.2.0), with its licence.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from operator import attrgetter

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from taskgov import number_text
from taskgov.allocation.plan import Outcome
from taskgov.audit import report_findings, report_words
from taskgov.audit.not_checked import QUOTAS
from taskgov.audit.report import Report
from taskgov.audit.report_bars import bar_groups
from taskgov.audit.report_plan import plan_tables
from taskgov.audit.report_table import Table
from taskgov.audit.report_tables import tables
from taskgov.audit.totals import Totals
from taskgov.findings import Finding, Severity
from taskgov.printable import printable
from taskgov.usage.units import short_resource

TEMPLATE = "report.html.j2"


def report_html(report: Report) -> bytes:
    """Return the page. The same report gives the same bytes."""
    of_plan, others = plan_tables(report), tables(report)
    page = _template().render(
        report=report,
        headline=headline(report),
        worst=worst_severity(report.findings),
        tiles=_tiles(report.totals),
        finding_groups=report_findings.finding_groups(report.findings),
        groups=bar_groups(report.usage),
        kinds=_KINDS,
        plan_tables=on_page(of_plan),
        tables=on_page(others),
        absent=absent((*of_plan, *others)),
    )
    return printable(page, keep="\n\t").encode()


def worst_severity(findings: Iterable[Finding]) -> Severity | None:
    """Return the highest severity among findings, or None when there are none."""
    return max((finding.severity for finding in findings), key=attrgetter("gravity"), default=None)


def headline(report: Report) -> str:
    """Return the report in one or two sentences: what needs a person, and what the plan changes."""
    least = report.header.attention_from.gravity
    grave = [finding for finding in report.findings if finding.severity.gravity >= least]
    attention = "Nothing needs attention."
    if grave:
        attention = f"{number_text.counted(len(grave), 'finding needs', 'findings need')} attention."
    return " ".join(filter(None, (attention, _quotas(report), _left_out(report))))


def _quotas(report: Report) -> str:
    """Return what the plan changes; nothing where quotas were compared with no document."""
    if report.changes:
        changes = number_text.counted(len(report.changes), "change is", "changes are")
        return f"{changes} {_FATE[report.header.plan_outcome]}."
    if report.header.plan_outcome is Outcome.BLOCKED:
        return "No quota was checked."
    return "" if any(left.part == QUOTAS for left in report.not_checked) else "The quotas are as they should be."


def _left_out(report: Report) -> str:
    parts = "; ".join(part.words for part in report.not_checked)
    return f"Not checked: {parts}." if parts else ""


_KINDS = {
    "own": "own quota in use",
    "borrowed": "borrowed",
    "lent": "lent to others",
    "idle": "idle",
    "over-quota": "over quota",
}
"""What the parts of a bar are called; see `report_bars.Segment`."""

_FATE = {
    Outcome.NOTHING_TO_DO: "not needed",
    Outcome.PLANNED: "planned",
    Outcome.APPLY: "ready to be applied",
    Outcome.NEEDS_APPROVAL: "planned and would need approval",
    Outcome.BLOCKED: "planned and blocked",
}


def _tiles(totals: Totals) -> tuple[tuple[str, str, str], ...]:
    """Return label, figure and a note of each key figure: none of a cluster without nodes, quotas and work.

    What happens now and then is left out while it is nothing.
    """
    unit = totals.unit
    usual = (
        ("Used", totals.used, f"of {number_text.number(totals.guaranteed)} guaranteed"),
        ("Idle", totals.idle, "guaranteed, unused"),
        ("Healthy", totals.healthy, "on usable nodes"),
    )
    waiting = f"{_figure(totals.pending_gpus, 'GPUs')} requested" if totals.pending_gpus else "for quota"
    rare = (
        ("Borrowed", totals.borrowed, unit, "from idle quota"),
        ("Over quota", totals.over_quota, unit, "above a lowered quota"),
        ("Waiting", totals.pending_workloads, "jobs", waiting),
        ("Preemptions", totals.preemptions, "", "recorded by Kueue"),
    )
    held = any((totals.guaranteed, totals.used))
    shown = [(label, _figure(figure, unit), note) for label, figure, note in usual if held or figure]
    shown += [(label, _figure(figure, of), note) for label, figure, of, note in rare if figure]
    return tuple(shown)


def _figure(amount: float, unit: str) -> str:
    return number_text.number(amount, unit.removesuffix("s") if amount == 1 else unit)


def absent(shown: Iterable[Table]) -> str:
    """Return which sections are not on a page because there is nothing to show, in one line."""
    return ", ".join(table.title for table in shown if not table.lines)


def on_page(shown: Iterable[Table]) -> tuple[Table, ...]:
    """Return the tables that have something to show, as they are shown."""
    return tuple(table.on_page() for table in shown if table.lines)


def drawn_rows(table: Table) -> Markup:
    """Return the rows of a table, escaped. A loop of the template takes several times as long for as many cells."""
    begins = [f'<td class="k-{escape(column.kind)}' for column in table.columns]
    labels = [f'" data-label="{escape(column.label)}" data-sort="' for column in table.columns]
    rows = (
        "".join(
            f'{begin}{" zero" if key == 0 else ""}{label}{_escaped(key)}">{_escaped(words)}</td>'
            for begin, label, (words, key) in zip(begins, labels, row, strict=True)
        )
        for row in table.rows
    )
    # Each part is escaped.
    return Markup("\n          ".join(f"<tr>{cells}</tr>" for cells in rows))  # noqa: S704  # nosec B704


@lru_cache(maxsize=16_384)
def _escaped_text(words: str) -> str:
    return str(escape(words))


def _escaped(value: str | float) -> str:
    """Return a text as HTML; the same types, resources and numbers come again and again."""
    return _escaped_text(value) if isinstance(value, str) else str(value)


@cache
def _template() -> Template:
    return environment().get_template(TEMPLATE)


@cache
def environment() -> Environment:
    """Return what every page is drawn with."""
    found = Environment(
        loader=PackageLoader("taskgov.audit", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "number": number_text.number,
        "signed": number_text.signed,
        "history": report_findings.history,
        "remedied": report_findings.plan_words,
        "further": report_words.further,
        "full_sentence": report_words.full_sentence,
        "words": report_words.words,
        "drawn_rows": drawn_rows,
        "moment": number_text.moment,
        "resource": short_resource,
    }
    return found
