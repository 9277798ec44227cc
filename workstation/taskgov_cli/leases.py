"""`taskgov lease list` and `taskgov lease check`: the leases of a policy document, offline.

`check` plans each lease at the moment at which it starts (or now, when it has), with the nodes and quotas of a
snapshot: whether the donor could give, and why not.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from taskgov.adapters.clock import SystemClock
from taskgov.allocation.lease_book import LeaseEntry, entry_of, lease_book
from taskgov.allocation.leases import LeaseState
from taskgov.findings.of_document import LEASE_BEYOND_DONOR
from taskgov.number_text import counted
from taskgov.policy.parse import parse_policy
from taskgov_cli import documents, lease_edit, moments, settings
from taskgov_cli.files import put
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.lease_table import leases_table
from taskgov_cli.output import NO, OK, AsJson, console
from taskgov_cli.snapshots import read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from taskgov.policy.document import PolicyDocument
    from taskgov.policy.measured import Lease
    from taskgov.snapshot.model import Snapshot

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Lend quota for a time: list, check, add and end the leases of a document.",
)

PolicyFile = Annotated[
    Path,
    typer.Option("--policy", "-p", exists=True, dir_okay=False, help="Policy document.", envvar=settings.POLICY),
]
Until = Annotated[str, typer.Option("--until", help=f"When it ends, in UTC: {moments.FORMS}.", metavar="WHEN")]
_WHAT: Final = re.compile(r"([1-9]\d{0,6})x(\S+)")
_MINUTE: Final = "%Y-%m-%dT%H:%MZ"
At = Annotated[datetime | None, typer.Option("--at", help="As of this time (UTC by default); default: now.")]


@app.command("list")
def list_(policy: PolicyFile, at: At = None, *, form: Format = Form.TABLE, as_json: AsJson = False) -> None:
    """List the leases of a policy document: who has how many from whom, until when, and which are active.

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
    """Check, on a snapshot, whether the donor of each lease has the nodes and quota for it when it starts.

    Example: taskgov lease check --policy ml-cluster.yaml --snapshot ml-cluster.json
    """
    document, known = _document(policy), documents.in_force(read(snapshot), policy)
    now = known.taken_at if at is None else _moment(at)
    checked = [checked_in(known, lease, now) for lease in document.leases]
    _tell(checked, form, as_json=as_json)
    raise typer.Exit(NO if any(entry.because for entry in checked) else OK)


@app.command()
def add(  # noqa: PLR0913 - the options of a command
    what: Annotated[str, typer.Argument(help="Count and instance type: 2xml.g5.8xlarge.", metavar="NxTYPE")],
    policy: PolicyFile,
    to: Annotated[str, typer.Option("--to", help="The team that gets it.", metavar="TEAM")],
    from_: Annotated[str, typer.Option("--from", help="The team that gives it, or the shared pool.", metavar="TEAM")],
    until: Until,
    start: Annotated[
        str | None,
        typer.Option("--start", help="When it starts, as in --until, but a day means its beginning; default: now."),
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", help="The reason, for readers of the document.")
    ] = "temporary need",
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Add a lease to a policy document; comments and everything else are kept. Nothing is put into force.

    A lease of more than the document gives the donor is added with a warning: plans refuse it.

    Example: taskgov lease add 2xml.g5.8xlarge --to team-a --from team-b --until friday -p ml-cluster.yaml
    """
    now, wrong = SystemClock().now(), []
    lease: dict[str, Any] = {"to": to, "from": from_}
    if found := _WHAT.fullmatch(what):
        lease |= {"instanceType": found[2], "count": int(found[1])}
    else:
        wrong.append(f"NxTYPE: {what!r} is not of the form 2xml.g5.8xlarge")
    for name, typed in (("start", start), ("end", until)):
        try:
            read = moments.start if name == "start" else moments.until
            lease[name] = f"{read(typed, now) if typed else now:{_MINUTE}}"
        except ValueError as error:
            wrong.append(f"--{'until' if name == 'end' else name}: {error}")
    lease["reason"] = reason
    if wrong:
        raise typer.BadParameter("\n".join([*wrong, *_also_broken(_text(policy), lease, now)]))
    text = lease_edit.with_lease(_text(policy), lease)
    _write(policy, text, _document(policy).leases)
    _written(policy, now, form, as_json=as_json)


@app.command()
def end(
    policy: PolicyFile,
    to: Annotated[str, typer.Option("--to", help="The team that has it.", metavar="TEAM")],
    from_: Annotated[str, typer.Option("--from", help="The team that gave it.", metavar="TEAM")],
    instance_type: Annotated[str | None, typer.Option("--type", help="Only of this instance type.")] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="Only the one that ends then, in UTC: 2026-11-27.", metavar="WHEN")
    ] = None,
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """End a lease of a policy document now; remove one that has not started. Nothing is put into force.

    Example: taskgov lease end --to team-a --from team-b -p ml-cluster.yaml
    """
    now = SystemClock().now()
    matching = [
        (place, lease)
        for place, lease in enumerate(_document(policy).leases)
        if (lease.to, lease.from_) == (to, from_) and instance_type in {None, lease.instance_type} and lease.end > now
    ]
    if until is not None:
        ends = _moment_of("--until", until, now)
        matching = [(place, lease) for place, lease in matching if lease.end == ends]
    if len(matching) != 1:
        which = f"there are {len(matching)}: {_told_apart([lease for _, lease in matching])}"
        which = which if matching else f"there is none; the leases are in: taskgov lease list --policy {policy}"
        raise typer.BadParameter(f"one lease from {from_} to {to} that has not ended is needed, and {which}")
    [(place, lease)] = matching
    has_begun, at = lease.start < now.replace(second=0, microsecond=0), f"{now:{_MINUTE}}"
    text = _text(policy)
    try:
        changed = lease_edit.with_end(text, place, at) if has_begun else lease_edit.without_lease(text, place)
    except ValueError as error:
        raise typer.BadParameter(f"{policy} is unchanged: {error}; edit it by hand") from error
    _write(policy, changed, [kept for number, kept in enumerate(_document(policy).leases) if number != place])
    _written(policy, now, form, as_json=as_json)


def _told_apart(leases: Sequence[Lease]) -> str:
    """Return the options that choose each of several leases, where there are such."""
    shown = [f"--type {lease.instance_type} --until {lease.end:{_MINUTE}}" for lease in leases]
    alike = len(shown) - len(set(shown))
    return "they are alike: edit the document by hand" if alike else f"choose one, with {' or '.join(shown)}"


def _moment_of(option: str, text: str, now: datetime) -> datetime:
    try:
        return moments.until(text, now)
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}") from error


def _written(policy: Path, now: datetime, form: Form, *, as_json: bool) -> None:
    """Show the leases of a document that was changed, and how it is put into force."""
    _tell([entry_of(lease, now) for lease in _document(policy).leases], form, as_json=as_json)
    for warning in parse_policy(policy.read_bytes()).warnings:
        if LEASE_BEYOND_DONOR.is_of(warning):
            text = f"{warning.severity}: {warning.subject}: {warning.because} To correct it: {warning.remedy}"
            console(stderr=True).print(text, soft_wrap=True, markup=False, style="yellow")
    if not as_json and form in {Form.TABLE, Form.WIDE}:
        next_steps = (
            f"To see whether the donors can give them: taskgov lease check --policy {policy} --snapshot FILE",
            f"To put it into force: taskgov apply --policy {policy}",
        )
        console().print("\n".join(next_steps), soft_wrap=True, markup=False)


def _also_broken(text: str, lease: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """Yield the rules that the known members of a lease break, so that a person reads all mistakes at once."""
    later = f"{now + timedelta(days=1):{_MINUTE}}"
    stand_ins = {"instanceType": "ml.g5.8xlarge", "count": 1, "start": f"{now:{_MINUTE}}", "end": later}
    for violation in parse_policy(lease_edit.with_lease(text, {**stand_ins, **lease}).encode()).violations:
        if violation.path.rpartition(".")[2] in lease:
            yield f"{violation.path} = {violation.value}: {violation.rule}"


def _text(file: Path) -> str:
    _document(file)  # refuses what cannot be understood before anything is changed
    return file.read_bytes().decode()


def _write(file: Path, text: str, kept: Sequence[Lease]) -> None:
    """Write a document that keeps all rules, whole or not at all. Raises `typer.BadParameter` for any other.

    It may differ in one lease, beside those that are `kept`, and in nothing else: a value may be an anchor of others.
    """
    parsed, before = parse_policy(text.encode()), _document(file)
    if parsed.document is None:
        broken = "; ".join(f"{violation.path} = {violation.value}: {violation.rule}" for violation in parsed.violations)
        raise typer.BadParameter(f"{file} is unchanged; the change would break rules: {broken}")
    now = list(parsed.document.leases)
    others = [now, *(now[:place] + now[place + 1 :] for place in range(len(now)))]
    is_rest_kept = parsed.document.model_copy(update={"leases": ()}) == before.model_copy(update={"leases": ()})
    if not is_rest_kept or list(kept) not in others:
        raise typer.BadParameter(f"{file} is unchanged: the lease shares a YAML anchor with another; edit it by hand")
    put(file, text.encode())


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
