"""`taskgov lease list` and `taskgov lease check`: the leases of a policy document, offline.

`check` plans each lease at the moment at which it starts (or now, when it has), with the nodes and quotas of a
snapshot: whether the donor could give, and why not.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from taskgov.adapters.clock import SystemClock
from taskgov.allocation.lease_book import LeaseEntry, entry_of, lease_book
from taskgov.allocation.leases import LeaseState
from taskgov.number_text import counted
from taskgov.policy.parse import parse_policy
from taskgov_cli import documents
from taskgov_cli.formats import AsJson, Form, Format, answer
from taskgov_cli.lease_table import leases_table
from taskgov_cli.output import NO, OK
from taskgov_cli.snapshots import read

if TYPE_CHECKING:
    from taskgov.policy.document import PolicyDocument
    from taskgov.policy.measured import Lease
    from taskgov.snapshot.model import Snapshot

app = typer.Typer(no_args_is_help=True, help="Temporary quota: which leases a policy document has, and if they hold.")

PolicyFile = Annotated[Path, typer.Option("--policy", "-p", exists=True, dir_okay=False, help="Policy document.")]
At = Annotated[datetime | None, typer.Option("--at", help="As of this moment (UTC unless it says so); else now.")]


@app.command("list")
def list_(policy: PolicyFile, at: At = None, *, form: Format = Form.TABLE, as_json: AsJson = False) -> None:
    """Show the leases of a policy document: who has how many from whom, until when, and which hold now.

    Example: taskgov lease list --policy ml-cluster.yaml
    """
    now = _moment(at)
    _tell([entry_of(lease, now) for lease in _document(policy).leases], form, as_json=as_json)


@app.command()
def check(
    policy: PolicyFile,
    snapshot: Annotated[
        Path, typer.Option("--snapshot", "-s", exists=True, dir_okay=False, help="See `taskgov snapshot`.")
    ],
    at: At = None,
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Say for each lease whether its donor could give it when it starts, by the nodes and quotas of a snapshot.

    Example: taskgov lease check --policy ml-cluster.yaml --snapshot ml-cluster.json
    """
    document, known = _document(policy), documents.in_force(read(snapshot), policy)
    now = known.taken_at if at is None else _moment(at)
    checked = [checked_in(known, lease, now) for lease in document.leases]
    _tell(checked, form, as_json=as_json)
    raise typer.Exit(NO if any(entry.because for entry in checked) else OK)


def checked_in(snapshot: Snapshot, lease: Lease, now: datetime) -> LeaseEntry:
    """Return a lease as it stands now, refused if the donor could not give it when it starts (or now, if it has)."""
    entry = entry_of(lease, now)
    if entry.state is LeaseState.ENDED:
        return entry
    then = replace(snapshot, taken_at=max(now, lease.start))
    planned = next((candidate for candidate in lease_book(then) if _same(candidate, entry)), entry)
    is_refused = entry.state is LeaseState.ACTIVE and planned.state is LeaseState.REFUSED
    state = LeaseState.REFUSED if is_refused else entry.state
    return replace(entry, state=state, because=planned.because, given=planned.given)


def _same(entry: LeaseEntry, other: LeaseEntry) -> bool:
    return replace(entry, state=other.state, because=other.because, given=other.given) == other


def _document(file: Path) -> PolicyDocument:
    parsed = parse_policy(file.read_bytes())
    if parsed.document is None:
        raise typer.BadParameter(
            f"{file} breaks {counted(len(parsed.violations), 'rule')}; see: taskgov validate {file}"
        )
    return parsed.document


def _moment(at: datetime | None) -> datetime:
    if at is None:
        return SystemClock().now()
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _tell(leases: list[LeaseEntry], form: Form, *, as_json: bool) -> None:
    nothing = [] if leases else [Text("The document has no leases.")]
    answer(lambda: [_as_data(entry) for entry in leases], [leases_table(leases), *nothing], form, as_json=as_json)


def _as_data(entry: LeaseEntry) -> dict[str, Any]:
    """Return a lease in the words of the policy document, with how it stands."""
    return {
        "to": entry.borrower,
        "from": entry.donor,
        "instanceType": entry.instance_type,
        "count": entry.count,
        "unit": entry.unit,
        "given": entry.amount if entry.state in {LeaseState.ACTIVE, LeaseState.PLANNED} else None,
        "start": f"{entry.start:%Y-%m-%dT%H:%M:%SZ}",
        "end": f"{entry.end:%Y-%m-%dT%H:%M:%SZ}",
        "reason": entry.reason,
        "state": entry.state.value,
        "refused": entry.because or None,
    }
