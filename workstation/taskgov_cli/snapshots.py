"""Where a command's snapshot comes from, a file or a live cluster; and `taskgov snapshot`, which writes such a file."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer
from pydantic import ValidationError
from rich.text import Text

from taskgov.errors import GovernanceError
from taskgov.json_form import member_of
from taskgov.snapshot.codec import snapshot_form, snapshot_to_json
from taskgov.snapshot.model import KueueObjects, Snapshot
from taskgov.snapshot.readable import readable_kueue
from taskgov.violations import value_of, violations_from
from taskgov_cli import settings
from taskgov_cli.failures import sentence_of
from taskgov_cli.files import put
from taskgov_cli.keeping import keep, kept_to_the_end
from taskgov_cli.output import UNREACHABLE, console, print_error, working

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov_cli.own_rights import OwnRights

_SHOWN: Final = 5
"""So many mistakes of a file are named."""

SnapshotFile = Annotated[
    Path | None,
    typer.Option("--snapshot", "-s", exists=True, dir_okay=False, help="Snapshot file (see `taskgov snapshot`)."),
]
LiveCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        "-c",
        help="HyperPod or EKS cluster to read, by name or ARN.",
        metavar="NAME",
        envvar=settings.CLUSTER,
        callback=settings.unless_typed("snapshot"),
    ),
]
Stack = Annotated[
    str | None,
    typer.Option(
        "--stack",
        help="CloudFormation stack of taskgov, for its policy document and memory; default: taskgov, if there is one.",
        envvar=settings.STACK,
    ),
]
TypedContext = Annotated[
    str | None, typer.Option("--context", help="Context of the kubeconfig, instead of a token for the EKS cluster.")
]
"""For commands whose document names the cluster: a context that is set may be another cluster's."""
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        help="Context of the kubeconfig, instead of a token for the EKS cluster.",
        envvar=settings.CONTEXT,
        callback=settings.of_the_cluster,
    ),
]
Teams = Annotated[
    list[str] | None,
    typer.Option(
        "--team",
        "-t",
        help="Only this team; may be repeated. Members without wider rights name their own.",
        metavar="TEAM",
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy", "-p", exists=True, dir_okay=False, help="Policy document to use instead of the one in force."
    ),
]


def snapshot(
    cluster: Annotated[
        str, typer.Argument(help="HyperPod or EKS cluster, by name or ARN.", metavar="CLUSTER", envvar=settings.CLUSTER)
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", dir_okay=False, help="File to write; default: standard output.")
    ] = None,
    stack: Stack = None,
    context: Context = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="The snapshot is JSON anyway.")] = False,  # noqa: ARG001
) -> None:
    """Save the state of a live cluster in a file, for offline commands. The cluster is only read.

    Example: taskgov snapshot ml-cluster --stack taskgov -o ml-cluster.json
    """
    from taskgov_cli.live_reading import read_live  # noqa: PLC0415 - see `known`

    with reported(), working(f"reading {cluster}"):
        text = snapshot_to_json(read_live(cluster, stack_of(stack, cluster), context))
    if output is None:
        typer.echo(text.decode())
    else:
        put(output, text)
        console(stderr=True).print(f"{output}: {len(text):,} bytes")


def known(
    file: Path | None,
    cluster: str | None = None,
    policy: Path | None = None,
    stack: str | None = None,
    context: str | None = None,
    rights: OwnRights | None = None,
) -> Snapshot:
    """Return the snapshot that a command's options name, with the policy document that they name.

    With `rights` a live cluster is read as far as they go (`taskgov_cli.own_rights`). Raises `typer.BadParameter`
    unless it is either a file or a cluster, and for a file that is not a snapshot.
    """
    if (file is None) == (cluster is None):
        raise typer.BadParameter("give either --snapshot FILE, or --cluster NAME to read a live cluster")
    if file is not None:
        found = read(file)
    else:
        # Only a live cluster takes the AWS SDK and the Kubernetes client, which are a second of imports.
        from taskgov_cli.live_reading import read_live  # noqa: PLC0415

        with reported(), working(f"reading {cluster}"):
            found = read_live(cast("str", cluster), stack, context, rights)
    for unreadable in found.unreadable_objects:
        console(stderr=True).print(f"left out: {unreadable.kind} {unreadable}", markup=False)
    if policy is None:
        return found
    from taskgov_cli import documents  # noqa: PLC0415 - the rules of documents, for those who give one

    return documents.in_force(found, policy)


def stack_of(
    stack: str | None, cluster: str | None, snapshot: Path | None = None, *, needs_records: bool = True
) -> str | None:
    """Return the stack whose document and memory a command uses: none for a snapshot, which holds them.

    For a live cluster it is the one that is named, else `taskgov` where the account has it and the person may read it.
    A note says when not. A command that leaves out what may not be read does not need all records. `--stack ""` names
    none.
    """
    if cluster is None or snapshot is not None:
        return None
    if stack is not None:
        return stack or None
    from taskgov_cli.live_reading import default_stack  # noqa: PLC0415 - see `known`
    from taskgov_cli.own_rights import is_denied  # noqa: PLC0415

    with reported():
        try:
            return default_stack(cluster, needs_records=needs_records)
        except GovernanceError as error:
            if not is_denied(error):
                raise
            note = "No document and no memory are read: you may not read those of the stack `taskgov` (--stack)."
            console(stderr=True).print(note, style="dim", soft_wrap=True, highlight=False)
            return None


def hidden_words(sentences: Iterable[str]) -> Iterator[Text]:
    """Return what the person's rights do not show, for people."""
    for number, sentence in enumerate(sentences):
        if number == 0:
            yield Text("Not visible with your rights:", style="dim")
        yield Text(f"  {sentence}", style="dim")


def read(file: Path) -> Snapshot:
    """Return the snapshot in a file, without the objects that cannot be read; these are `unreadable_objects`.

    Raises `typer.BadParameter` for anything else.
    """
    try:
        with kept_to_the_end():
            found, members = parsed(file)
        notes = list(_notes(found, members))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    for note in notes:
        console(stderr=True).print(f"{file}: {note}", style="dim", soft_wrap=True)
    kueue, odd = readable_kueue(found.kueue)
    whole = replace(found, kueue=kueue, unreadable_objects=(*found.unreadable_objects, *odd))
    keep(whole)
    return whole


def parsed(file: Path) -> tuple[Snapshot, Mapping[str, Any]]:
    """Return the snapshot that a file holds, and all members of the file.

    Raises `ValueError` that names the file, and each wrong member.
    """
    try:
        return snapshot_form().read_with_members(file.read_bytes())
    except ValueError as error:
        wrong = "; ".join(_wrong(error))
        raise ValueError(f"{file} is not a snapshot ({wrong}); write one with: taskgov snapshot NAME") from error


def _wrong(error: ValueError) -> Iterator[str]:
    """Say what is wrong with a file that is not a snapshot: member, rule and value of the first few."""
    found = violations_from(error) if isinstance(error, ValidationError) else ()
    for location, mistake in found[:_SHOWN]:
        yield f"{mistake.path}: {mistake.value} {mistake.rule}" if location else mistake.rule
    if len(found) > _SHOWN:
        yield f"and {len(found) - _SHOWN} more"
    if not found:
        yield str(error).splitlines()[0]


def _notes(found: Snapshot, given: Mapping[str, Any]) -> Iterator[str]:
    """Say what a snapshot lacks, and what of it is passed over. Raises `ValueError` for an object of an API."""
    names = {field.name for field in fields(Snapshot)}
    if version := given.get("apiVersion"):
        raise ValueError(
            f"apiVersion is {value_of(version)}: a snapshot has none; write one with: taskgov snapshot NAME"
        )
    unknown = given.keys() - names - set(map(member_of, names))
    if unknown:
        yield f"ignored, because this release does not have these members: {', '.join(sorted(unknown))}"
    if not found.nodes and not found.gone:
        yield "it has no nodes, so there is no capacity"
    if found.kueue == KueueObjects():
        yield "it has no Kueue objects, so tasks are unknown, and nothing is predicted"


@contextmanager
def reported() -> Iterator[None]:
    """End the command with a sentence when a cluster or AWS could not be read."""
    try:
        yield
    except GovernanceError as error:
        print_error(type(error).__name__, sentence_of(error))
        raise typer.Exit(UNREACHABLE) from error
