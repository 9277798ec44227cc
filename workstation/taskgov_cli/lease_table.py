"""Leases for people: one table, wherever quota is shown."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from taskgov.allocation.lease_book import LeaseEntry
from taskgov.allocation.leases import LeaseState
from taskgov_cli.output import table

STYLES = {
    LeaseState.ACTIVE: "green",
    LeaseState.PLANNED: "yellow",
    LeaseState.DUE: "cyan",
    LeaseState.REFUSED: "red",
    LeaseState.ENDED: "dim",
}
COLUMNS = ("state", "to", "from", "count #", "instance type", "start (UTC)", "end (UTC)", "reason", "refused")


def leases_table(leases: Iterable[LeaseEntry]) -> Table:
    """Return the leases in their order, with why one is refused where one is."""
    return table("Leases", COLUMNS, map(_row, leases))


def _row(each: LeaseEntry) -> tuple[str | Text, ...]:
    start, end = (f"{moment:%Y-%m-%d %H:%M}" for moment in (each.start, each.end))
    state, refused = Text(each.state, style=STYLES[each.state]), Text(each.because, style="red")
    return (state, each.borrower, each.donor, each.count_words, each.instance_type, start, end, each.reason, refused)
