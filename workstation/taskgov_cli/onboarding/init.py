"""`taskgov init`: write the first policy document of a cluster from what is found there. Nothing in AWS is changed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import boto3
import typer
from rich.text import Text

from taskgov.allocation.wording import said
from taskgov.backends.hyperpod_eks.sagemaker import HyperPodEks
from taskgov.bootstrap.aws import CONFIG
from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.number_text import counted
from taskgov.policy.document import CoOwnedPolicy  # noqa: TC001 -- typer reads the annotations
from taskgov.policy.parse import parse_policy
from taskgov_cli import settings, snapshots
from taskgov_cli.deployed import RefusedError, told
from taskgov_cli.doctor import reading_aws
from taskgov_cli.grid import table
from taskgov_cli.onboarding.asking import Typed, co_owned_rule, first_teams
from taskgov_cli.onboarding.draft import draft_policy
from taskgov_cli.onboarding.first_teams import Style  # noqa: TC001 -- typer reads the annotations
from taskgov_cli.onboarding.text import co_owners, document_text, undecided
from taskgov_cli.output import AsJson, console, print_json
from taskgov_cli.schema import FILE, put_beside

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.snapshot.model import Snapshot
    from taskgov_cli.onboarding.draft import Draft
    from taskgov_cli.onboarding.first_teams import FirstTeams


def init(  # noqa: PLR0913, PLR0917 - the options of a command
    cluster: Annotated[
        str | None,
        typer.Argument(
            help="Cluster, by name or ARN; without it, the only HyperPod cluster.",
            metavar="CLUSTER",
            envvar=settings.CLUSTER,
            callback=settings.unless_typed("snapshot"),
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", dir_okay=False, help="File to write; default: CLUSTER.yaml.")
    ] = None,
    team: Annotated[
        list[str] | None,
        typer.Option("--team", "-t", metavar="NAME[:PARTS]", help="A first team, if there are no quotas yet. Repeat."),
    ] = None,
    instance_type: Annotated[
        list[str] | None,
        typer.Option("--instance-type", help="Instance type that the teams share; default: all. Repeat."),
    ] = None,
    style: Annotated[Style | None, typer.Option("--style", help="How the teams share; default: flexible.")] = None,
    co_owned: Annotated[
        CoOwnedPolicy | None,
        typer.Option("--co-owned", help="How to treat quotas that Terraform, CloudFormation or the CDK manages too."),
    ] = None,
    snapshot: snapshots.SnapshotFile = None,
    stack: snapshots.Stack = None,
    context: snapshots.Context = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a first policy document from the current quotas of a cluster. AWS is only read.

    If the cluster has no quotas, the document starts with the teams of --team, or a terminal prompts for them.

    Example: taskgov init ml-cluster --team research:2 --team serving --style flexible
    """
    with told():
        known = _known(cluster, snapshot, snapshots.stack_of(stack, cluster, snapshot), context)
        file = output or Path(f"{known.cluster.name}.yaml")
        if file.exists() and not force:
            raise _is_there(file)
        typed = Typed(team or [], instance_type or [], style)
        may_ask = not as_json and at_a_terminal()
        rule = co_owned_rule(co_owners(known), co_owned, may_ask=may_ask)
        draft = _draft(known, first_teams(known, typed, may_ask=may_ask), rule)
        text = document_text(draft, known)
        _require_true(text, draft)
        _write(file, text, force=force)
        beside = _schema_beside(file)
    if as_json:
        print_json(_as_data(draft, known, file) | {"schema": None if beside is None else str(beside)})
    else:
        _show(draft, known, file, beside)


def at_a_terminal() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty()


def detected() -> str:
    """Return the ARN of the account's only EKS-orchestrated cluster in the Region. Raises RefusedError."""
    hyperpod = HyperPodEks(boto3.client("sagemaker", config=CONFIG))
    found = [hyperpod.describe_cluster(arn) for arn in hyperpod.clusters()]
    names = {
        cluster["ClusterArn"]: cluster["ClusterName"] for cluster in found if "Eks" in cluster.get("Orchestrator", {})
    }
    if not names:
        others = ", ".join(cluster["ClusterName"] for cluster in found) or "none"
        raise RefusedError(
            f"this account and Region have no HyperPod cluster on EKS (clusters: {others}); "
            "an EKS cluster without HyperPod has to be named: taskgov init CLUSTER"
        )
    if len(names) > 1:
        raise RefusedError(f"there are several clusters; choose one: taskgov init {' | '.join(sorted(names.values()))}")
    return str(next(iter(names)))


def _known(cluster: str | None, file: Path | None, stack: str | None, context: str | None) -> Snapshot:
    if file is None:
        with snapshots.reported():
            cluster = detected() if cluster is None else known_arn(cluster)
    return snapshots.known(file, cluster, None, stack, context)


def known_arn(cluster: str) -> str:
    """Return the ARN of a cluster by name or ARN: a plain EKS cluster has no document yet, so EKS is queried for it.

    Raises GovernanceError.
    """
    return reading_aws.cluster(cluster).arn


def _draft(known: Snapshot, wanted: FirstTeams | None, co_owned: CoOwnedPolicy | None) -> Draft:
    try:
        return draft_policy(known, wanted, co_owned)
    except InvalidRequestError as error:
        raise RefusedError(str(error)) from error


def _require_true(text: str, draft: Draft) -> None:
    """Make sure that the text, read back, is the document that was proved."""
    read = parse_policy(text)
    if read.document != draft.parsed.document:
        raise AssertionError(f"the text is another document than the draft: {read.violations}")


def _write(file: Path, text: str, *, force: bool) -> None:
    """Write the file, never over another one. Raises RefusedError."""
    try:
        with file.open("w" if force else "x") as out:
            out.write(text)
    except FileExistsError as error:
        raise _is_there(file) from error
    except OSError as error:
        raise RefusedError(f"{file} cannot be written: {error.strerror}") from error


def _schema_beside(file: Path) -> Path | None:
    """Write the schema that the document names, for editors. Raises RefusedError."""
    try:
        return put_beside(file)
    except OSError as error:
        raise RefusedError(f"the schema cannot be written beside {file}: {error.strerror}") from error


def _is_there(file: Path) -> RefusedError:
    return RefusedError(f"{file} exists; choose another file with --output, or overwrite it with --force")


def _as_data(draft: Draft, known: Snapshot, file: Path) -> dict[str, Any]:
    return {
        "file": str(file),
        "cluster": {"name": known.cluster.name, "arn": known.cluster.arn, "eksArn": known.cluster.eks_arn},
        "instanceTypes": [
            {
                "instanceType": supply.instance_type,
                "groups": list(supply.groups),
                "nodes": supply.nodes,
                "usable": supply.usable,
                "promised": supply.promised,
            }
            for supply in draft.supply
        ],
        "document": draft.document,
        "leftOut": [{"quota": omitted.quota.name, "because": omitted.because} for omitted in draft.left_out],
        "frozen": dict(draft.frozen),
        "decide": undecided(draft, known),
        "warnings": [warning.because for warning in draft.parsed.warnings],
        "changes": len(draft.plan.changes),
    }


def _show(draft: Draft, known: Snapshot, file: Path, beside: Path | None) -> None:
    out = console()
    rows = [
        (supply.instance_type, ", ".join(supply.groups), supply.nodes, supply.usable, f"{supply.promised:g}")
        for supply in draft.supply
    ]
    columns = ("instance type", "groups", "nodes #", "count now #", "guaranteed #")
    out.print(table(f"Found in {known.cluster.name}", columns, rows))
    if draft.quotas:
        teams = [_team_row(team) for team in draft.document["teams"]]
        out.print(table("Teams and their present quotas", ("team", "quota", "sharing", "weight #"), teams))
    elif draft.wanted is not None:
        teams = [_team_row(team) for team in draft.document["teams"]]
        out.print(table(f"First teams, style {draft.wanted.style}", ("team", "quota", "sharing", "weight #"), teams))
    for sentence in undecided(draft, known):
        out.print(Text.assemble(("Decide: ", "yellow"), sentence), soft_wrap=True)
    does = f"makes {counted(len(draft.plan.changes), 'change')}" if draft.plan.changes else "changes nothing"
    if beside is None:
        said = f"{file.parent / FILE} was not written by taskgov and is kept; for editors, run: taskgov schema -o PLACE"
        out.print(Text(f"{said}, and its address in the first line of {file}"), soft_wrap=True)
    else:
        out.print(Text(f"Wrote {beside}: editors check the document with it"), soft_wrap=True)
    out.print(Text(f"Wrote {file}; a plan with it {does}. Next:", style="bold"), soft_wrap=True)
    name = shlex.quote(str(file))
    for command in (f"validate {name}", f"doctor {known.cluster.name}", f"apply --policy {name}"):
        out.print(f"  taskgov {command}", markup=False, soft_wrap=True)


def _team_row(team: Mapping[str, Any]) -> tuple[str, str, str, str]:
    config = ComputeQuotaConfig.model_validate(team["quota"])
    rows = ", ".join(f"{said(row)} {row.instance_type}" for row in config.compute_quota_resources)
    sharing = config.resource_sharing_config
    limit = "" if sharing is None or sharing.borrow_limit is None else f", {sharing.borrow_limit} %"
    words = "" if sharing is None else f"{sharing.strategy}{limit}"
    return team["name"], rows, words, str(team.get("fairShareWeight", 0))
