"""Where a command's snapshot comes from: a file, or a live cluster; and `taskgov snapshot`, which writes such a file.

Live reading takes the AWS credentials of the environment for SageMaker and EKS; Kubernetes is read with a token for the
EKS cluster, or through a context of the kubeconfig. With `--stack`, the deployed stack's bucket and table give the
policy document and what is remembered (since when nodes are healthy, what was applied, who edited, what earlier audits
found); without, nothing is remembered. Nothing is ever written.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import boto3
import typer
from pydantic import ValidationError
from rich.text import Text

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.dynamodb import Table
from taskgov.adapters.kubernetes import EksConnections, KubernetesReader
from taskgov.adapters.s3 import Bucket
from taskgov.backends import registry
from taskgov.bootstrap.aws import CONFIG
from taskgov.errors import GovernanceError
from taskgov.json_form import member_of
from taskgov.services.take_snapshot import TakeSnapshot
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from taskgov.snapshot.model import KueueObjects, Snapshot
from taskgov.snapshot.readable import readable_kueue
from taskgov_cli import documents
from taskgov_cli.kubeconfig import KubeconfigContext
from taskgov_cli.output import UNREACHABLE, console, print_error
from taskgov_cli.own_rights import OwnBackends, OwnKubernetes
from taskgov_cli.stack_outputs import stack_outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from taskgov.adapters.kubernetes import ApiConnections
    from taskgov.backends.backends import Backends
    from taskgov.ports import DocumentStore, StateStore
    from taskgov_cli.own_rights import OwnRights

_SHOWN: Final = 5
"""So many mistakes of a file are named."""

SnapshotFile = Annotated[
    Path | None,
    typer.Option("--snapshot", "-s", exists=True, dir_okay=False, help="Snapshot file (see `taskgov snapshot`)."),
]
LiveCluster = Annotated[
    str | None, typer.Option("--cluster", "-c", help="HyperPod cluster, by name or ARN: read it live.", metavar="NAME")
]
Stack = Annotated[
    str | None,
    typer.Option(
        "--stack", help="CloudFormation stack of taskgov, for its policy document and memory.", envvar="TASKGOV_STACK"
    ),
]
Context = Annotated[
    str | None, typer.Option("--context", help="Context of the kubeconfig, instead of a token for the EKS cluster.")
]
Teams = Annotated[
    list[str] | None,
    typer.Option(
        "--team",
        "-t",
        help="Only this team's; may be repeated. Members without wider rights name theirs.",
        metavar="TEAM",
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", "-p", exists=True, dir_okay=False, help="Policy document, as if it were in force."),
]


def snapshot(
    cluster: Annotated[str, typer.Argument(help="HyperPod cluster, by name or ARN.", metavar="CLUSTER")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", dir_okay=False, help="Where to write it; else standard output.")
    ] = None,
    stack: Stack = None,
    context: Context = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="The snapshot is JSON anyway.")] = False,  # noqa: ARG001
) -> None:
    """Read a live cluster once, for questions that are asked offline. Nothing is written to it.

    Example: taskgov snapshot ml-cluster --stack taskgov -o ml-cluster.json
    """
    with reported():
        text = snapshot_to_json(live(cluster, stack, context))
    if output is None:
        typer.echo(text.decode())
    else:
        output.write_bytes(text)
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
        with reported():
            found = live(cast("str", cluster), stack, context, rights)
    for unreadable in found.unreadable_objects:
        console(stderr=True).print(f"left out: {unreadable.kind} {unreadable}", markup=False)
    return found if policy is None else documents.in_force(found, policy)


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
    body = file.read_bytes()
    try:
        found = snapshot_from_json(body)
    except ValueError as error:
        wrong = "; ".join(_wrong(error))
        said = f"{file} is not a snapshot ({wrong}); write one with: taskgov snapshot NAME"
        raise typer.BadParameter(said) from error
    for note in _notes(found, body):
        console(stderr=True).print(f"{file}: {note}", style="dim", soft_wrap=True)
    kueue, odd = readable_kueue(found.kueue)
    return replace(found, kueue=kueue, unreadable_objects=(*found.unreadable_objects, *odd))


def _wrong(error: ValueError) -> Iterator[str]:
    """Say what is wrong with a file that is not a snapshot: member, rule and value of the first few."""
    found = error.errors() if isinstance(error, ValidationError) else []
    for mistake in found[:_SHOWN]:
        place = ".".join(map(str, mistake["loc"]))
        yield f"{place}: {mistake['msg']}, not {mistake['input']!r:.40}" if place else mistake["msg"]
    if len(found) > _SHOWN:
        yield f"and {len(found) - _SHOWN} more"
    if not found:
        yield str(error).splitlines()[0]


def _notes(found: Snapshot, body: bytes) -> Iterator[str]:
    """Say what a snapshot lacks, and what of it is passed over."""
    names = {field.name for field in fields(Snapshot)}
    unknown = json.loads(body).keys() - names - set(map(member_of, names))
    if unknown:
        yield f"passed over, for this release does not know it: {', '.join(sorted(unknown))}"
    if not found.nodes and not found.gone:
        yield "it has no nodes, so there is no capacity"
    if found.kueue == KueueObjects():
        yield "it has no objects of Kueue, so nothing is known of tasks, and nothing is predicted"


def live(
    cluster: str, stack: str | None = None, context: str | None = None, rights: OwnRights | None = None
) -> Snapshot:
    """Read a cluster now. Raises `GovernanceError`; with `rights`, what they do not reach is left out instead."""
    clock, session = SystemClock(), boto3.Session()
    connections = connections_of(session, context)
    documents_of, state = _stores(session, stack)
    reached = backends_of(session, documents_of, connections)
    if rights is None:
        return TakeSnapshot(reached, KubernetesReader(connections), documents_of, state, clock)(cluster)
    if context is not None and not rights.namespaces:
        rights.namespaces = KubeconfigContext(context).namespaces()
    own = OwnBackends(reached.by_name, reached.name_of, reached.failures, rights)
    take = TakeSnapshot(own, OwnKubernetes(connections, rights), documents_of, state, clock)
    return rights.marked(take(cluster))


def backends_of(session: boto3.Session, documents_of: DocumentStore, connections: ApiConnections) -> Backends:
    """Return the port over all backends, with the credentials of a session."""

    def client_of(service: str) -> Callable[[], Any]:
        return lambda: session.client(service, config=CONFIG)  # type: ignore[call-overload]

    sagemaker, eks, ec2 = (client_of(service) for service in ("sagemaker", "eks", "ec2"))
    return registry.backends(registry.Reach(documents_of, connections, sagemaker, eks, ec2))


def connections_of(session: boto3.Session, context: str | None) -> ApiConnections:
    """Return how Kubernetes is reached: through a context of the kubeconfig, or with a token for the EKS cluster."""
    if context:
        return KubeconfigContext(context)
    return EksConnections(session.client("eks", config=CONFIG), session, SystemClock().now)


def documents_of(stack: str | None) -> DocumentStore:
    """Return the documents of a stack; without one, a bucket with nothing in it. Raises `GovernanceError`."""
    documents, _ = _stores(boto3.Session(), stack)
    return documents


@contextmanager
def reported() -> Iterator[None]:
    """End the command with a sentence when a cluster or AWS could not be read."""
    try:
        yield
    except GovernanceError as error:
        print_error(type(error).__name__, error)
        raise typer.Exit(UNREACHABLE) from error


def _stores(session: boto3.Session, stack: str | None) -> tuple[DocumentStore, StateStore]:
    if stack is None:
        return cast("DocumentStore", _NoDocuments()), cast("StateStore", _NothingRemembered())
    names = stack_outputs(session.client("cloudformation", config=CONFIG), stack, "TableName", "BucketName")
    table = session.resource("dynamodb", config=CONFIG).Table(names["TableName"])
    return Bucket(session.client("s3", config=CONFIG), names["BucketName"]), Table(table)


class _NoDocuments:
    """What TakeSnapshot reads of a bucket, where there is none."""

    @staticmethod
    def policy(_cluster_name: str) -> None:
        return None

    @staticmethod
    def find(_key: str) -> None:
        return None

    @staticmethod
    def policy_names() -> tuple[()]:
        return ()


class _NothingRemembered:
    """What TakeSnapshot reads of a table, where there is none."""

    @staticmethod
    def applied_quotas(_cluster_arn: str, _on_unreadable: object = None) -> tuple[()]:
        return ()

    @staticmethod
    def applied_policy(_cluster_arn: str, _on_unreadable: object = None) -> None:
        return None

    @staticmethod
    def refusals(_cluster_arn: str, _on_unreadable: object = None) -> tuple[()]:
        return ()

    @staticmethod
    def edits(_cluster_arn: str, _on_unreadable: object = None) -> tuple[()]:
        return ()

    @staticmethod
    def stamp(_cluster_arn: str, _on_unreadable: object = None) -> None:
        return None

    @staticmethod
    def stop_switch() -> bool:
        return False
