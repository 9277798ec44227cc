"""`taskgov report`: the page of a team, as the nightly audit and the last run wrote it.

For members who may not list the cluster: it needs no right in Kubernetes, only to read this one page.
"""

from __future__ import annotations

import webbrowser
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated

import boto3
import typer

from taskgov.adapters.s3 import Bucket
from taskgov.audit.team_page import KEY
from taskgov.bootstrap.aws import CONFIG
from taskgov.errors import GovernanceError
from taskgov_cli import settings
from taskgov_cli.deployed import RefusedError, StackName, told
from taskgov_cli.files import put
from taskgov_cli.output import AsJson, console, print_json
from taskgov_cli.own_rights import is_denied
from taskgov_cli.stack_outputs import DEFAULT_STACK, stack_outputs


def report(
    cluster: Annotated[
        str, typer.Argument(help="HyperPod or EKS cluster, by name.", metavar="CLUSTER", envvar=settings.CLUSTER)
    ],
    team: Annotated[str, typer.Option("--team", "-t", help="The team of the page.", metavar="TEAM")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", dir_okay=False, help="Write the page to this file.")
    ] = None,
    stack: StackName = DEFAULT_STACK,
    *,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find the page of a team: quota, tasks, what waits and why. Each audit and each run writes it.

    Example: taskgov report ml-cluster --team team-a --open
    """
    if cluster.startswith("arn:") and ":eks:" not in cluster:
        raise typer.BadParameter(f"{cluster}: the ARN has the cluster's id; give its name", param_hint="CLUSTER")
    with told():
        outputs = stack_outputs(boto3.client("cloudformation", config=CONFIG), stack, "BucketName")
        bucket, key = outputs["BucketName"], KEY.format(cluster=_name(cluster), team=team)
        body = _page(bucket, key, team, _name(cluster))
    place = f"s3://{bucket}/{key}"
    if output is None and show:
        output = Path(gettempdir()) / f"taskgov-{_name(cluster)}-{team}.html"
    if output is not None:
        _write(output, body)
    if as_json:
        print_json({"page": place, "bytes": len(body), "file": None if output is None else str(output)})
    else:
        console().print(f"page: {place}", soft_wrap=True, markup=False)
        said = "To read it, add --open, or -o FILE." if output is None else f"written: {output}"
        console().print(said, soft_wrap=True, markup=False)
    if show and output is not None:
        webbrowser.open(output.resolve().as_uri())


def _write(output: Path, body: bytes) -> None:
    try:
        put(output, body)
    except OSError as error:
        raise typer.BadParameter(f"{output} cannot be written: {error.strerror}", param_hint="--output") from error


def _name(cluster: str) -> str:
    """Return the cluster's name; for an EKS cluster the ARN has it."""
    return cluster.rpartition("/")[2]


def _page(bucket: str, key: str, team: str, cluster: str) -> bytes:
    """Return the page. Raises RefusedError where there is none, or the caller may not read it; GovernanceError."""
    try:
        body = Bucket(boto3.client("s3", config=CONFIG), bucket).find(key)
    except GovernanceError as error:
        if not is_denied(error):
            raise
        raise RefusedError(
            f"you may not read the page of {team}, or there is none yet ({error}); "
            f"members read that of the team in the tag `team` of their role or session"
        ) from error
    if body is None:
        raise RefusedError(
            f"there is no page of {team} at s3://{bucket}/{key}: each run and audit of {cluster} writes one for each "
            f"team. If {team} is not new, check the names: taskgov status --cluster {cluster}"
        )
    return body
