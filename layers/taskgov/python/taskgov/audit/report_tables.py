"""Which tables does the report page show? Each as headings and cells, with what to sort by.

`report_html` draws all of them the same way, and those without rows not at all.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from taskgov.allocation.lease_book import LeaseEntry
from taskgov.allocation.plan import CapacityLine
from taskgov.audit.report import (
    EditLine,
    LoanLine,
    PendingLine,
    PreemptionLine,
    Report,
    TaskLine,
    UsageLine,
)
from taskgov.audit.report_advice import advice_tables
from taskgov.audit.report_findings import muted_table, resolved_table, trend_table
from taskgov.audit.report_money import money_table
from taskgov.audit.report_plan import ALLOCATIONS
from taskgov.audit.report_table import (
    MOST_ROWS,
    Cell,
    Column,
    Field,
    Sheet,
    Table,
    amount,
    name,
    number_cell,
    text,
    when,
)
from taskgov.audit.report_words import sentence, words
from taskgov.number_text import NOTHING, duration, number, percent, signed
from taskgov.usage.units import short_resource
from taskgov.usage.workloads import PREEMPTION_REASONS


def tables(report: Report) -> tuple[Table, ...]:
    """Return every other table of the page, in order of interest."""
    return (
        *usage_tables(report.usage),
        LEASES.of(report.leases),
        LOANS.of(report.loans),
        tasks_table(report.tasks, report.tasks_left_out, report.header.taken_at),
        PENDING.of(report.pending),
        PREEMPTIONS.of(report.preemptions),
        *([money_table(report.money)] if report.money else []),
        *advice_tables(report.advice),
        CAPACITY.of(report.capacity),
        ALLOCATIONS.of(report.allocations),
        trend_table(report),
        resolved_table(report),
        muted_table(report),
        EDITS.of(report.edits),
    )


def usage_tables(lines: Sequence[UsageLine]) -> tuple[Table, ...]:
    """Return the tables of use: of accelerators (of cores, on types without any), and folded, of the other resources.

    Where they would be too long, the others are left out, and the teams that use most come first.
    """
    leading = [line for line in lines if line.leading]
    if len(lines) > MOST_ROWS:
        leading.sort(key=lambda line: (-line.used, line.team))
        return (USAGE.of(leading, "Accelerators alone (cores where there are none), the teams that use most first."),)
    others = USAGE_OF_OTHERS.of(line for line in lines if not line.leading)
    return USAGE.of(leading), replace(others, is_folded=True)


def tasks_table(tasks: Iterable[TaskLine], left_out: int, now: datetime) -> Table:
    """Return the tasks; how long each has been in its state is counted to the moment of the snapshot."""

    def lasted(label: str, since: Callable[[TaskLine], datetime]) -> Field[TaskLine]:
        return Field(Column(label, "number"), lambda line: _duration(max(0, (now - since(line)).total_seconds())))

    fields = (*TASKS.fields, lasted("For", lambda line: line.since), lasted("Age", lambda line: line.created))
    fields = (*fields, Field(STARTS, lambda line: _start(line, now)))
    more = f"{left_out:,} more are left out: `taskgov jobs` lists all." if left_out else ""
    return replace(TASKS, fields=fields).of(tasks, more)


def _start(line: TaskLine, now: datetime) -> Cell:
    """Return when a task starts; sorted by the first of the two moments."""
    if line.start is None:
        return NOTHING, -1.0
    return line.start.cell(now), (line.start.half_by or line.start.no_earlier_than).timestamp()


def _priority(line: TaskLine) -> str:
    return f"{line.priority_class} ({line.priority})" if line.priority_class else str(line.priority)


def _borrow_limit(line: UsageLine) -> Cell:
    if line.borrow_limit is None:
        return "no limit", -1.0
    used = "" if line.borrow_limit_utilization is None else f" ({percent(line.borrow_limit_utilization)} used)"
    return number(line.borrow_limit) + used, line.borrow_limit


def _fair_share(line: UsageLine) -> Cell:
    if line.infinite_share:
        return "after all others", -1.0
    if line.entitlement is None:
        return NOTHING, -1.0
    return f"{number(line.entitlement)} ({signed(line.deviation)})", line.entitlement


def _threads(line: CapacityLine) -> list[str]:
    return [f"{line.one_thread} at one thread per core: half of the type's vCPUs"] if line.one_thread else []


def _gpu_hours(gpu_seconds: float | None) -> Cell:
    return (NOTHING, -1.0) if gpu_seconds is None else (number(round(gpu_seconds / 3600, 1)), gpu_seconds)


def _duration(seconds: float) -> Cell:
    return duration(seconds), seconds


USAGE: Final[Sheet[UsageLine]] = Sheet(
    "usage",
    "Quota and use",
    "Lent is attributed in proportion to idle quota, because Kueue does not record who lends to whom. Over quota is "
    "what a team still holds of a quota that was lowered; it is not borrowing.",
    (
        name("Team", lambda line: line.team),
        name("Instance type", lambda line: line.instance_type),
        name("Resource", lambda line: ", ".join(filter(None, (short_resource(line.resource), line.unit)))),
        amount("Guaranteed", lambda line: line.guaranteed, "Nominal quota"),
        Field(
            Column("Leased", "number", "Instances, or parts, that are leased from others (+) or to others (-) now"),
            lambda line: (line.leased_words or (signed(line.leased) if line.leased else NOTHING), line.leased),
        ),
        amount("Used", lambda line: line.used, "Reserved by admitted workloads"),
        amount(
            "Borrowed",
            lambda line: line.borrowed,
            "Used above the guarantee, from the idle quota of others",
            is_rare=True,
        ),
        amount("Lent", lambda line: line.lent, "Idle quota that others hold (attributed)", is_rare=True),
        amount("Idle", lambda line: line.idle, "Quota that neither the team nor anybody else uses"),
        amount(
            "Over quota",
            lambda line: line.over_quota,
            "Held above a quota that was lowered under running work",
            is_rare=True,
        ),
        Field(
            Column("Borrow limit", "number", "How much the team may borrow, and how much of that it does"),
            _borrow_limit,
        ),
        Field(
            Column("Fair share", "number", "What fair sharing would give the team now, and its use against that"),
            _fair_share,
        ),
    ),
)
LEASES: Final[Sheet[LeaseEntry]] = Sheet(
    "leases",
    "Leases",
    "Temporary quota, set in the policy document: a part of the donor's guarantee. A planned lease is due, and the "
    "quotas do not show it yet.",
    (
        name("Borrower", lambda line: line.borrower),
        name("Donor", lambda line: line.donor),
        name("Instance type", lambda line: line.instance_type),
        Field(Column("Amount", "number", "Instances, or parts of them"), lambda line: (line.count_words, line.count)),
        when("From", lambda line: line.start),
        when("Until", lambda line: line.end),
        name("State", lambda line: words(line.state)),
        text("Reason", lambda line: f"{line.reason} ({line.because})" if line.because else line.reason, "long"),
    ),
)
LOANS: Final[Sheet[LoanLine]] = Sheet(
    "loans",
    "Who borrows from whom",
    "Attributed in proportion to the lenders' idle quota.",
    (
        name("Borrower", lambda line: line.borrower),
        name("Lender", lambda line: line.lender),
        name("Instance type", lambda line: line.instance_type),
        name("Resource", lambda line: short_resource(line.resource)),
        Field(Column("Amount", "number"), lambda line: number_cell(line.amount, line.unit)),
    ),
)
USAGE_OF_OTHERS: Final = replace(
    USAGE,
    anchor="usage-others",
    title="CPU and memory",
    note="What quotas hold besides accelerators, EFA interfaces too. HyperPod adds it by ratio where it is not set.",
)
STARTS: Final = Column(
    "Starts by (UTC)",
    "name",
    "The median and the 90 % estimate; `after`: hardly earlier.",
)
TASKS: Final[Sheet[TaskLine]] = Sheet(
    "tasks",
    "Tasks",
    "Every task that has not finished, newest first. To see why one waits: taskgov explain TEAM/TASK. Beyond quota is "
    "what the team borrows or holds over quota, attributed to the tasks that Kueue would reclaim first.",
    (
        name("Team", lambda line: line.team),
        text("Task", lambda line: line.task),
        name("Kind", lambda line: line.kind),
        Field(Column("Priority", "name"), lambda line: (_priority(line), line.priority)),
        name("State", lambda line: words(line.state)),
        name("Instance type", lambda line: ", ".join(line.instance_types) or NOTHING),
        text("Requests", lambda line: line.asks),
        text("Beyond quota", lambda line: line.beyond_quota or NOTHING),
    ),
)
PENDING: Final[Sheet[PendingLine]] = Sheet(
    "pending",
    "Waiting",
    "",
    (
        name("Team", lambda line: line.team),
        amount("Workloads", lambda line: line.workloads),
        amount("GPUs requested", lambda line: line.gpus, "Accelerators of all kinds"),
        Field(Column("Oldest waits for", "number"), lambda line: _duration(line.oldest_seconds)),
    ),
)
PREEMPTIONS: Final[Sheet[PreemptionLine]] = Sheet(
    "preemptions",
    "Preemptions",
    "As far back as Kueue records them.",
    (
        when("When", lambda line: line.at),
        name("Team", lambda line: line.team),
        text("Workload", lambda line: line.workload),
        text("Why", lambda line: sentence(PREEMPTION_REASONS.get(line.reason, line.reason))),
        name("Preempted for", lambda line: line.preempting_team or NOTHING),
        amount("GPUs", lambda line: line.gpus),
        Field(
            Column("Lost GPU-hours", "number", note="Lost is what ran since admission, or less with a checkpoint."),
            lambda line: _gpu_hours(line.gpu_seconds),
        ),
    ),
)
CAPACITY: Final[Sheet[CapacityLine]] = Sheet(
    "capacity",
    "Capacity",
    "In whole instances.",
    (
        name("Instance type", lambda line: line.instance_type),
        amount("Nodes", lambda line: line.nodes),
        amount("Counted", lambda line: line.counted),
        amount(
            "Held",
            lambda line: len(line.held),
            is_rare=True,
            note="Held nodes are unhealthy, and count until their hold time ends.",
        ),
        amount("Headroom", lambda line: line.headroom, is_rare=True),
        amount("Usable", lambda line: line.usable),
        text(
            "Notes",
            lambda line: "; ".join([*_threads(line), *line.left_out, *line.held]) or NOTHING,
            "long",
        ),
    ),
)
EDITS: Final[Sheet[EditLine]] = Sheet(
    "edits",
    "Quotas changed by hand",
    "The last change of each quota that did not come from this automation.",
    (
        when("When", lambda line: line.at),
        name("Quota", lambda line: line.quota),
        name("Team", lambda line: line.team or NOTHING),
        text("By", lambda line: line.by),
        name("API call", lambda line: line.event_name),
    ),
)
