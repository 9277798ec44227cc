"""Leases for people: one table, wherever quota is shown."""

from collections.abc import Iterable

from rich.text import Text

from taskgov.allocation.lease_book import LeaseEntry
from taskgov.allocation.leases import LeaseState
from taskgov_cli.grid import Grid, table

STYLES = {
    LeaseState.ACTIVE: "green",
    LeaseState.PLANNED: "yellow",
    LeaseState.DUE: "cyan",
    LeaseState.REFUSED: "red",
    LeaseState.ENDED: "dim",
}
COLUMNS = ("state", "to", "from", "count #", "instance type", "start (UTC)", "end (UTC)", "reason", "refused")


def leases_table(leases: Iterable[LeaseEntry]) -> Grid:
    """Return the leases in their order, with why one is refused where one is."""
    return table("Leases", COLUMNS, map(_row, leases))


def _row(lease: LeaseEntry) -> tuple[str | Text, ...]:
    start, end = (f"{moment:%Y-%m-%d %H:%M}" for moment in (lease.start, lease.end))
    state, refused = Text(lease.state, style=STYLES[lease.state]), Text(lease.because, style="red")
    return (
        state,
        lease.borrower,
        lease.donor,
        lease.count_words,
        lease.instance_type,
        start,
        end,
        lease.reason,
        refused,
    )
