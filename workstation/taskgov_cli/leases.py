"""`taskgov lease list` and `taskgov lease check`: the leases of a policy document, offline.

`check` plans each lease at the moment at which it starts (or now, when it has), with the nodes and quotas of a
snapshot: whether the donor could give, and why not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from taskgov.adapters.clock import SystemClock
from taskgov.allocation.planner import plan_quotas
from taskgov.policy.parse import parse_policy
from taskgov_cli import documents
from taskgov_cli.deployed import AsJson  # noqa: TC001 -- typer reads the annotations
from taskgov_cli.output import NO, OK, console, print_json, table
from taskgov_cli.snapshots import read

if TYPE_CHECKING:
    from taskgov.policy.document import Lease, PolicyDocument
    from taskgov.snapshot.model import Snapshot

app = typer.Typer(no_args_is_help=True, help="Temporary quota: which leases a policy document has, and if they hold.")

PolicyFile = Annotated[Path, typer.Option("--policy", "-p", exists=True, dir_okay=False, help="Policy document.")]
At = Annotated[datetime | None, typer.Option("--at", help="As of this moment (UTC unless it says so); else now.")]
STYLES = {"active": "green", "due": "cyan", "ended": "dim"}


@dataclass(frozen=True, slots=True)
class Checked:
    """A lease, its state, and why the donor could not give it; empty when it could, or when it has ended."""

    lease: Lease
    state: str
    refused: str = ""


@app.command("list")
def list_(policy: PolicyFile, at: At = None, *, as_json: AsJson = False) -> None:
    """Show the leases of a policy document: who has how many from whom, until when, and which hold now."""
    now = _moment(at)
    _tell([Checked(lease, state_of(lease, now)) for lease in _document(policy).leases], as_json=as_json)


@app.command()
def check(
    policy: PolicyFile,
    snapshot: Annotated[
        Path, typer.Option("--snapshot", "-s", exists=True, dir_okay=False, help="See `taskgov snapshot`.")
    ],
    at: At = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Say for each lease whether its donor could give it when it starts, by the nodes and quotas of a snapshot."""
    document, known = _document(policy), documents.in_force(read(snapshot), policy)
    now = known.taken_at if at is None else _moment(at)
    checked = [Checked(lease, state_of(lease, now), refusal(known, lease, now)) for lease in document.leases]
    _tell(checked, as_json=as_json)
    raise typer.Exit(NO if any(each.refused for each in checked) else OK)


def state_of(lease: Lease, now: datetime) -> str:
    """Return `due`, `active` or `ended`: a lease holds from its start (inclusive) to its end (exclusive)."""
    if now < lease.start:
        return "due"
    return "active" if now < lease.end else "ended"


def refusal(snapshot: Snapshot, lease: Lease, now: datetime) -> str:
    """Return why the donor could not give the lease at its start (or now, when it has started); empty when it could."""
    if now >= lease.end:
        return ""
    plan = plan_quotas(replace(snapshot, taken_at=max(now, lease.start)), mode="plan")
    subject, which = f"{lease.from_} -> {lease.to}", f"{lease.count} {lease.instance_type} ({lease.reason})"
    told = (each for each in plan.findings if each.code == "lease-refused" and each.subject == subject)
    return "; ".join(each.because for each in told if which in each.because)


def _document(file: Path) -> PolicyDocument:
    parsed = parse_policy(file.read_text())
    if parsed.document is None:
        raise typer.BadParameter(f"{file} breaks {len(parsed.violations)} rules; see: taskgov validate {file}")
    return parsed.document


def _moment(at: datetime | None) -> datetime:
    if at is None:
        return SystemClock().now()
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _tell(leases: list[Checked], *, as_json: bool) -> None:
    if as_json:
        print_json([_as_data(each) for each in leases])
    elif not leases:
        console().print("The document has no leases.")
    else:
        columns = ("state", "to", "from", "count #", "instance type", "start (UTC)", "end (UTC)", "reason", "refused")
        console().print(table("Leases", columns, map(_row, leases)))


def _as_data(each: Checked) -> dict[str, Any]:
    return each.lease.model_dump(mode="json", by_alias=True) | {"state": each.state, "refused": each.refused or None}


def _row(each: Checked) -> tuple[str | Text, ...]:
    lease = each.lease
    start, end = (f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}" for moment in (lease.start, lease.end))
    state = Text(each.state, style=STYLES[each.state])
    refused = Text(each.refused, style="red")
    return (state, lease.to, lease.from_, str(lease.count), lease.instance_type, start, end, lease.reason, refused)
