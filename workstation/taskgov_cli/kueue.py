"""`taskgov adopt` and `taskgov kueue-config`: an administrator's part on clusters without HyperPod.

Queues that somebody else made are left alone until they are adopted: from then on they carry taskgov's record, and
plans may write them. The cluster's administrator configures Kueue's manager; taskgov only says how.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import boto3
import typer
import yaml
from rich.text import Text

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.errors import translated
from taskgov.adapters.kubernetes import EksConnections
from taskgov.allocation.wording import said_config
from taskgov.backends.plain_eks.quotas import KueueQuotas
from taskgov.bootstrap.aws import CONFIG
from taskgov.errors import GovernanceError
from taskgov.kueue.record import FOREIGN, Reading
from taskgov.kueue.render import manager_configuration
from taskgov.policy.parse import parse_policy
from taskgov.ports import ClusterAccess
from taskgov_cli import documents
from taskgov_cli.failures import sentence_of
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer, print_parts, unfolded
from taskgov_cli.grid import table
from taskgov_cli.kubeconfig import KubeconfigContext
from taskgov_cli.kueue_objects import KueueObjectWriter
from taskgov_cli.manual_lock import noting_signals
from taskgov_cli.output import NO, OK, UNREACHABLE, AsJson, console, print_error, print_json
from taskgov_cli.snapshots import TypedContext, reported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from taskgov.hyperpod.model import ComputeQuota
    from taskgov.policy.document import ClusterRef, PolicyDocument
    from taskgov.snapshot.unreadable import UnreadableObject
    from taskgov_cli.kueue_objects import FieldChange, Inspected

PolicyDocumentFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="Policy document, YAML or JSON.", metavar="POLICY")
]
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
SHOWN = 60
"""Characters of a field's value in a table."""


def adopt(
    policy: PolicyDocumentFile,
    teams: Annotated[
        list[str] | None, typer.Option("--team", "-t", help="Only this team's queue; may be repeated.")
    ] = None,
    context: TypedContext = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Adopt them; without --yes, only the changes are shown.")] = False,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Take over existing Kueue queues with their quotas; without --yes, show what would change.

    Without --yes, it ends with exit code 1 if there are queues to adopt.

    Example: taskgov adopt plain-eks.yaml --context plain-eks
    """
    document = _of_kueue(policy)
    named = {team.name for team in document.teams}
    if unknown := sorted({*(teams or ())} - named):
        raise typer.BadParameter(
            f"{policy} has no team {' or '.join(unknown)}; its teams are {', '.join(sorted(named))}",
            param_hint="--team",
        )
    session = boto3.Session()
    eks = EksConnections(session.client("eks", config=CONFIG), session, SystemClock().now)
    connections = KubeconfigContext(context) if context else eks
    types = document.instance_type_table()
    store, writer = KueueQuotas(connections, lambda _arn: types), KueueObjectWriter(connections)
    arn = document.cluster.arn
    with reported():
        if context and yes:
            _require_same_cluster(context, document.cluster)
        odd: list[UnreadableObject] = []
        foreign = [
            quota
            for quota in store.quotas(arn, odd.append)
            if quota.status == FOREIGN and quota.compute_quota_target.team_name in named.intersection(teams or named)
        ]
        changes = {quota.name: writer.inspect(ClusterAccess(arn), _objects(arn, quota, document)) for quota in foreign}
        refused = _adopted(store, foreign) if yes else {}
    answer(
        lambda: {
            "adopted": yes and not refused,
            "quotas": [_as_data(quota, changes[quota.name], refused) for quota in foreign],
            "unreadable": [str(queue) for queue in odd],
        },
        _shown(policy, foreign, changes, refused, adopted=yes),
        form,
        as_json=as_json,
    )
    for queue in odd:
        console(stderr=True).print(f"Left out: {queue}", style="dim", soft_wrap=True, markup=False)
    for team, why in refused.items():
        print_error("NotAdopted", f"{team}: {why}")
    raise typer.Exit(UNREACHABLE if refused else OK if yes or not foreign else NO)


def _adopted(store: KueueQuotas, quotas: Iterable[ComputeQuota]) -> dict[str, str]:
    """Adopt the quotas one by one; return by team why one was not. After Ctrl-C, no other is begun.

    A queue gets its record last, so that one that was cut off is still foreign, and is adopted by the next command.
    """
    refused = {}
    with noting_signals() as interruption:
        for quota in quotas:
            try:
                interruption.check()
                store.adopt(quota)
            except GovernanceError as error:
                refused[quota.compute_quota_target.team_name] = sentence_of(error)
    return refused


def kueue_config(
    policy: PolicyDocumentFile,
    *,
    wait_for_pods_ready: Annotated[
        bool, typer.Option("--wait-for-pods-ready", help="Gang scheduling: stop jobs whose pods do not become ready.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the settings of Kueue's manager that a policy needs.

    Merge it into the ConfigMap kueue-manager-config of kueue-system.

    Example: taskgov kueue-config plain-eks.yaml
    """
    document = _of_kueue(policy)
    configuration = manager_configuration(document.scheduler_config, wait_for_pods_ready=wait_for_pods_ready)
    manifest = configuration.to_manifest()
    if as_json:
        print_json(manifest)
    else:
        typer.echo(yaml.safe_dump(manifest, sort_keys=False), nl=False)


def _require_same_cluster(context: str, cluster: ClusterRef) -> None:
    """Raise `typer.BadParameter` if the context reaches another cluster than the document names.

    A tunnel ends on this machine, and whoever may not describe the cluster cannot compare: both get a note.
    """
    server = urlsplit(KubeconfigContext(context).server()).hostname
    try:
        endpoint = _endpoint_of(cluster.name)
    except GovernanceError as error:
        why = str(error)
    else:
        if server == endpoint:
            return
        if server not in LOOPBACK:
            raise typer.BadParameter(f"--context {context} reaches {server}, and {cluster.arn} is at {endpoint}")
        why = f"the context reaches {server}"
    note = f"It was not checked that context {context} is {cluster.arn}: {why}"
    console(stderr=True).print(note, style="dim", soft_wrap=True, markup=False)


def _endpoint_of(name: str) -> str | None:
    with translated(f"describe EKS cluster {name}"):
        described = boto3.client("eks", config=CONFIG).describe_cluster(name=name)["cluster"]
        return urlsplit(described["endpoint"]).hostname


def _of_kueue(policy: Path) -> PolicyDocument:
    parsed = parse_policy(policy.read_bytes())
    if parsed.document is None:
        print_parts(documents.shown(policy, parsed), console(stderr=True))
        raise typer.Exit(NO)
    if not parsed.document.cluster.backend.writes_kueue_objects:
        raise typer.BadParameter(
            f"{policy}: cluster.backend is not kueue; HyperPod's add-on governs this cluster's Kueue"
        )
    return parsed.document


def _objects(arn: str, quota: ComputeQuota, document: PolicyDocument) -> tuple[dict[str, object], ...]:
    target = quota.compute_quota_target
    reading = Reading(arn, document.instance_type_table(), "v1beta2")
    rendered = reading.rendered(
        target.team_name, quota.compute_quota_config, target.fair_share_weight or 0, quota.activation_state
    )
    return rendered.in_order()


def _as_data(quota: ComputeQuota, objects: Sequence[Inspected], refused: Mapping[str, str]) -> dict[str, object]:
    team = quota.compute_quota_target.team_name
    return {
        "team": team,
        "refused": refused.get(team),
        "quota": quota.compute_quota_config.to_api(),
        "objects": [
            {
                "kind": inspected.kind,
                "name": inspected.name,
                "standing": inspected.ownership,
                "changes": [
                    {"field": change.path, "present": change.present, "wanted": change.wanted}
                    for change in inspected.changes
                ],
            }
            for inspected in objects
        ],
    }


def _shown(
    policy: Path,
    quotas: Sequence[ComputeQuota],
    changes: Mapping[str, Sequence[Inspected]],
    refused: Mapping[str, str],
    *,
    adopted: bool,
) -> Iterator[RenderableType]:
    rows = [
        (
            quota.compute_quota_target.team_name,
            f"{inspected.kind} {inspected.name}",
            inspected.ownership,
            *_field(change),
        )
        for quota in quotas
        for inspected in changes[quota.name]
        for change in inspected.changes or (None,)
    ]
    quota_rows = [(quota.compute_quota_target.team_name, said_config(quota.compute_quota_config)) for quota in quotas]
    yield table("Quotas", ("team", "quota"), quota_rows)
    yield table("Objects", ("team", "object", "is", "field", "today", "then"), rows, main=True)
    if not quotas:
        yield Text("There is nothing to adopt: these teams have no queue that somebody else made.")
    elif adopted:
        done = [name for name in (quota.compute_quota_target.team_name for quota in quotas) if name not in refused]
        yield Text(f"Adopted: {', '.join(done) or 'none'}.")
        if done:
            yield unfolded(f"To put the document into force: taskgov apply --policy {policy}")
    else:
        yield Text("Nothing was written. Adopt them with --yes; the quotas stay as they are.")


def _field(change: FieldChange | None) -> tuple[str, str, str]:
    """Return field, value and new value for the table; an object that stays as it is has none."""
    return ("", "", "") if change is None else (change.path, _short(change.present), _short(change.wanted))


def _short(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
