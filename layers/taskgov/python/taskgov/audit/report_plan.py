"""The tables of the report that belong to its plan: what it changes, what follows from it, and why."""

from dataclasses import replace
from typing import Final

from taskgov.allocation.guardrails import FOR_A_PERSON
from taskgov.allocation.plan import TeamAllocation, WorkloadEffect
from taskgov.audit.remedy_commands import plan_commands
from taskgov.audit.report import ChangeLine, Report
from taskgov.audit.report_loops import loops_table
from taskgov.audit.report_table import Cell, Column, Field, Sheet, Table, amount, name, text
from taskgov.audit.report_words import UNITS, preemption, sentence, words
from taskgov.number_text import NOTHING, number


def plan_tables(report: Report) -> tuple[Table, ...]:
    """Return what belongs to the plan, which comes right after the findings."""
    stopped_by = {told.partition(":")[0] for change in report.changes for told in change.stopped_by}
    is_stopped = not FOR_A_PERSON.issuperset(stopped_by)
    commands = plan_commands(
        report.header.cluster_name,
        report.header.plan_outcome,
        is_stopped=is_stopped,
        document=report.header.document,
    )
    return (
        replace(CHANGES.of(enumerate(report.changes, 1)), commands=commands),
        EFFECTS.of(report.effects),
        loops_table(report.loops),
    )


def _moved(before: float, after: float) -> Cell:
    """Return what a number was and what it would be; nothing where there is none, as in the cluster policy."""
    return f"{number(before)} \N{RIGHTWARDS ARROW} {number(after)}" if before or after else NOTHING, after - before


def _verdict(told: str) -> str:
    """Return what a guardrail says, with the guardrail in words."""
    guardrail, colon, because = told.partition(": ")
    return f"{sentence(words(guardrail))}: {because}" if colon else told


CHANGES: Final[Sheet[tuple[int, ChangeLine]]] = Sheet(
    "changes",
    "What the plan would change",
    "In the order of writing: decreases come before increases.",
    (
        amount("No.", lambda row: row[0]),
        name("Team", lambda row: row[1].team),
        name("Action", lambda row: sentence(words(row[1].kind))),
        text("Quota", lambda row: row[1].name),
        Field(Column("GPUs", "number"), lambda row: _moved(row[1].gpus_before, row[1].gpus_after)),
        text("Reason", lambda row: sentence(words(row[1].reason))),
        text("Why", lambda row: sentence(row[1].because, row[1].team), "long"),
        text("Stopped by", lambda row: "; ".join(map(_verdict, row[1].stopped_by)) or NOTHING, "long"),
    ),
)
EFFECTS: Final[Sheet[WorkloadEffect]] = Sheet(
    "effects",
    "What the plan would do to running work",
    "Found by simulating Kueue's decisions on the workloads of this moment.",
    (
        text("Workload", lambda line: line.task or line.name),
        name("Team", lambda line: line.team),
        name("Effect", lambda line: sentence(words(line.effect))),
        amount("GPUs", lambda line: line.gpus),
        text("Why", lambda line: sentence(preemption(line.because)), "long"),
    ),
)
ALLOCATIONS: Final[Sheet[TeamAllocation]] = Sheet(
    "allocations",
    "Reason for each quota",
    "",
    (
        name("Team", lambda line: line.team),
        name("Instance type", lambda line: line.instance_type),
        name("Unit", lambda line: UNITS.get(line.unit, line.unit)),
        amount("Now", lambda line: line.before),
        amount("Planned", lambda line: line.after),
        name("Reason", lambda line: sentence(words(line.reason))),
        text("Why", lambda line: sentence(line.because, line.team), "long"),
    ),
)
