"""Which tables does the report page show? Each as headings and cells, with what to sort by.

`report_html` draws all of them the same way; a table without rows says what its absence means.
"""

from taskgov.allocation.plan import CapacityLine
from taskgov.audit.report import Report, UsageLine
from taskgov.audit.report_findings import muted_table, resolved_table, trend_table
from taskgov.audit.report_table import Cell, Column, Table, number_cell, text_cell
from taskgov.audit.report_text import NOTHING, duration, moment, number, percent, signed
from taskgov.quantities import ResourceName


def tables(report: Report) -> tuple[Table, ...]:
    """Return every table of the page, in order of interest."""
    return (
        muted_table(report),
        trend_table(report),
        resolved_table(report),
        _usage(report),
        _leases(report),
        _loans(report),
        _pending(report),
        _preemptions(report),
        _changes(report),
        _effects(report),
        _allocations(report),
        _capacity(report),
        _edits(report),
    )


def short_resource(resource: ResourceName) -> str:
    """Return a resource's name as people say it.

    >>> [short_resource(name) for name in ("nvidia.com/gpu", "vpc.amazonaws.com/efa", "nvidia.com/mig-1g.5gb", "cpu")]
    ['GPU', 'EFA', 'MIG 1g.5gb', 'CPU']
    """
    last = resource.rsplit("/", 1)[-1]
    spoken = {"gpu": "GPU", "efa": "EFA", "cpu": "CPU", "neurondevice": "Neuron device"}
    if last.startswith("mig-"):
        return f"MIG {last.removeprefix('mig-')}"
    return spoken.get(last, last)


def _usage(report: Report) -> Table:
    return Table(
        "usage",
        "Quota and use",
        "Lent quota is attributed to lenders in proportion to their idle quota: a cohort keeps no book of who lent to "
        "whom. Over quota is what a team still holds of a quota that was lowered; it is not borrowing.",
        (
            Column("Team", "name"),
            Column("Instance type", "name"),
            Column("Resource", "name"),
            Column("Guaranteed", "number", "Nominal quota"),
            Column("Leased", "number", "Whole instances of it that are leased from others (+) or to others (-) now"),
            Column("Used", "number", "Reserved by admitted workloads"),
            Column("Borrowed", "number", "Used above the guarantee, from what others leave idle"),
            Column("Lent", "number", "Idle quota that others hold (attributed)"),
            Column("Idle", "number", "Quota that neither the team nor anybody else uses"),
            Column("Over quota", "number", "Held above a quota that was lowered under running work"),
            Column("Borrow limit", "number", "How much the team may borrow, and how much of that it does"),
            Column("Fair share", "number", "What fair sharing would give the team now, and its use against that"),
        ),
        tuple(_usage_row(line) for line in report.usage),
        "No team has a quota, and nobody uses anything.",
    )


def _usage_row(line: UsageLine) -> tuple[Cell, ...]:
    amounts = (line.used, line.borrowed, line.lent, line.idle, line.over_quota)
    return (
        text_cell(line.team),
        text_cell(line.instance_type),
        text_cell(f"{short_resource(line.resource)}, {line.unit}" if line.unit else short_resource(line.resource)),
        number_cell(line.guaranteed),
        (signed(line.leased) if line.leased else NOTHING, line.leased),
        *(number_cell(amount) for amount in amounts),
        _borrow_limit(line),
        _fair_share(line),
    )


def _borrow_limit(line: UsageLine) -> Cell:
    if line.borrow_limit is None:
        return "no limit", -1.0
    used = "" if line.borrow_limit_utilization is None else f" ({percent(line.borrow_limit_utilization)})"
    return number(line.borrow_limit) + used, line.borrow_limit


def _fair_share(line: UsageLine) -> Cell:
    if line.infinite_share:
        return "after all others", -1.0
    if line.entitlement is None:
        return NOTHING, -1.0
    return f"{number(line.entitlement)} ({signed(line.deviation)})", line.entitlement


def _leases(report: Report) -> Table:
    return Table(
        "leases",
        "Leases",
        "Quota for a time, by the policy document: whole instances of the donor's guarantee. Planned: it is to hold, "
        "and the quotas are not yet as planned.",
        (
            Column("Borrower", "name"),
            Column("Donor", "name"),
            Column("Instance type", "name"),
            Column("Instances", "number"),
            Column("From", "name"),
            Column("Until", "name"),
            Column("State", "name"),
            Column("Reason", "long"),
        ),
        tuple(
            (
                text_cell(line.borrower),
                text_cell(line.donor),
                text_cell(line.instance_type),
                number_cell(line.count),
                (moment(line.start), line.start.timestamp()),
                (moment(line.end), line.end.timestamp()),
                text_cell(line.state),
                text_cell(f"{line.reason} ({line.because})" if line.because else line.reason),
            )
            for line in report.leases
        ),
        "The policy document has no lease that holds or is due.",
    )


def _loans(report: Report) -> Table:
    return Table(
        "loans",
        "Who borrows from whom",
        "An attribution, in proportion to the lenders' idle quota.",
        (
            Column("Borrower", "name"),
            Column("Lender", "name"),
            Column("Instance type", "name"),
            Column("Resource", "name"),
            Column("Amount", "number"),
        ),
        tuple(
            (
                text_cell(loan.borrower),
                text_cell(loan.lender),
                text_cell(loan.instance_type),
                text_cell(short_resource(loan.resource)),
                number_cell(loan.amount, loan.unit),
            )
            for loan in report.loans
        ),
        "Nobody borrows.",
    )


def _pending(report: Report) -> Table:
    return Table(
        "pending",
        "Waiting",
        "",
        (
            Column("Team", "name"),
            Column("Workloads", "number"),
            Column("GPUs asked for", "number", "Accelerators of all kinds"),
            Column("Oldest waits for", "number"),
        ),
        tuple(
            (text_cell(line.team), number_cell(line.workloads), number_cell(line.gpus), _duration(line.oldest_seconds))
            for line in report.pending
        ),
        "Nothing is waiting.",
    )


def _preemptions(report: Report) -> Table:
    return Table(
        "preemptions",
        "Preemptions",
        "As far back as Kueue remembers. Lost is at most what ran since admission: a checkpoint makes it less.",
        (
            Column("When", "name"),
            Column("Team", "name"),
            Column("Workload"),
            Column("Reason", "name"),
            Column("Preempted for", "name"),
            Column("GPUs", "number"),
            Column("Lost GPU-hours", "number"),
        ),
        tuple(
            (
                (moment(line.at), line.at.timestamp()),
                text_cell(line.team),
                text_cell(line.workload),
                text_cell(line.reason),
                text_cell(line.preempting_team or NOTHING),
                number_cell(line.gpus),
                _gpu_hours(line.gpu_seconds),
            )
            for line in report.preemptions
        ),
        "Nothing was preempted.",
    )


def _changes(report: Report) -> Table:
    return Table(
        "changes",
        "What the plan would change",
        "In the order in which it would be written: decreases before increases.",
        (
            Column("Change", "number"),
            Column("Team", "name"),
            Column("Quota", "name"),
            Column("GPUs before", "number"),
            Column("GPUs after", "number"),
            Column("Reason", "name"),
            Column("Because", "long"),
            Column("Stopped by", "long"),
        ),
        tuple(
            (
                number_cell(number),
                text_cell(line.team),
                text_cell(line.name),
                number_cell(line.gpus_before),
                number_cell(line.gpus_after),
                text_cell(line.reason),
                text_cell(line.because),
                text_cell("; ".join(line.stopped_by) or NOTHING),
            )
            for number, line in enumerate(report.changes, 1)
        ),
        "Nothing: the quotas are as they should be.",
    )


def _effects(report: Report) -> Table:
    return Table(
        "effects",
        "What that would do to running work",
        "By simulation of Kueue's decisions on the workloads of this moment.",
        (
            Column("Workload"),
            Column("Team", "name"),
            Column("Effect", "name"),
            Column("GPUs", "number"),
            Column("Because", "long"),
        ),
        tuple(
            (
                text_cell(f"{effect.namespace}/{effect.name}"),
                text_cell(effect.team),
                text_cell(effect.effect),
                number_cell(effect.gpus),
                text_cell(effect.because),
            )
            for effect in report.effects
        ),
        "No workload would start, wait or be preempted because of the plan.",
    )


def _allocations(report: Report) -> Table:
    return Table(
        "allocations",
        "Why each quota is what it is",
        "",
        (
            Column("Team", "name"),
            Column("Instance type", "name"),
            Column("Unit", "name"),
            Column("Now", "number"),
            Column("Planned", "number"),
            Column("Reason", "name"),
            Column("Because", "long"),
        ),
        tuple(
            (
                text_cell(line.team),
                text_cell(line.instance_type),
                text_cell(line.unit),
                number_cell(line.before),
                number_cell(line.after),
                text_cell(line.reason),
                text_cell(line.because),
            )
            for line in report.allocations
        ),
        "No team has a quota.",
    )


def _capacity(report: Report) -> Table:
    return Table(
        "capacity",
        "Capacity",
        "In whole instances. Held: unhealthy, but counted until the hold time ends.",
        (
            Column("Instance type", "name"),
            Column("Nodes", "number"),
            Column("Counted", "number"),
            Column("Held", "number"),
            Column("Headroom", "number"),
            Column("Usable", "number"),
            Column("Left out, held, or other than usual", "long"),
        ),
        tuple(
            (
                text_cell(line.instance_type),
                *(number_cell(count) for count in _numbers(line)),
                text_cell("; ".join([*_threads(line), *line.left_out, *line.held]) or NOTHING),
            )
            for line in report.capacity
        ),
        "The cluster has no nodes.",
    )


def _numbers(line: CapacityLine) -> tuple[int, ...]:
    return line.nodes, line.counted, len(line.held), line.headroom, line.usable


def _threads(line: CapacityLine) -> list[str]:
    return [f"{line.one_thread} at one thread per core: half of the type's vCPUs"] if line.one_thread else []


def _edits(report: Report) -> Table:
    return Table(
        "edits",
        "Quotas changed by hand",
        "The last change of each quota that did not come from this automation.",
        (Column("When", "name"), Column("Quota", "name"), Column("Team", "name"), Column("By"), Column("Call", "name")),
        tuple(
            (
                (moment(line.at), line.at.timestamp()),
                text_cell(line.quota),
                text_cell(line.team or NOTHING),
                text_cell(line.by),
                text_cell(line.event_name),
            )
            for line in report.edits
        ),
        "None.",
    )


def _gpu_hours(gpu_seconds: float | None) -> Cell:
    return (NOTHING, -1.0) if gpu_seconds is None else (number(round(gpu_seconds / 3600, 1)), gpu_seconds)


def _duration(seconds: float) -> Cell:
    return duration(seconds), seconds
