"""How is the page of a team shown? As the audit report is: one HTML file that needs nothing else."""

from functools import cache
from typing import Final

from jinja2 import Template

from taskgov.audit.report_html import absent, environment, on_page
from taskgov.audit.report_table import Sheet, Table, name, text, when
from taskgov.audit.report_tables import LEASES, LOANS, PREEMPTIONS, tasks_table, usage_tables
from taskgov.audit.team_page import TeamPage, WaitLine
from taskgov.number_text import counted
from taskgov.printable import printable
from taskgov.usage.tasks import TaskState

_WAITS: Final[Sheet[WaitLine]] = Sheet(
    "waits",
    "Why tasks wait",
    "Kueue's message about its last scheduling attempt. For more: taskgov explain TEAM/TASK.",
    (
        name("Task", lambda line: line.task),
        when("Since", lambda line: line.since),
        text("Kueue says", lambda line: line.kueue_says or "nothing yet", "long"),
    ),
)


def team_page_html(page: TeamPage) -> bytes:
    """Return the page. The same values give the same bytes."""
    tables = _tables(page)
    drawn = _template().render(page=page, headline=headline(page), tables=on_page(tables), absent=absent(tables))
    return printable(drawn, keep="\n\t").encode()


def headline(page: TeamPage) -> str:
    """Return how many tasks do what, in one sentence."""
    counts = [
        (counted(sum(task.state is state for task in page.tasks), "task"), state.value.replace("-", " "))
        for state in TaskState
        if any(task.state is state for task in page.tasks)
    ]
    return ", ".join(f"{number} {state}" for number, state in counts) + "." if counts else "No tasks."


def _tables(page: TeamPage) -> tuple[Table, ...]:
    return (
        *usage_tables(page.usage),
        tasks_table(page.tasks, page.tasks_left_out, page.taken_at),
        _WAITS.of(page.waits),
        PREEMPTIONS.of(page.preemptions),
        LOANS.of(page.loans),
        LEASES.of(page.leases),
    )


@cache
def _template() -> Template:
    return environment().get_template("team_page.html.j2")
