"""`taskgov plan`: the plan of a cluster, from a snapshot file or a live cluster."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from taskgov.allocation.planner import plan_quotas
from taskgov_cli import plans, snapshots
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.output import CHANGES, OK, AsJson, console, working
from taskgov_cli.plan_markdown import plan_markdown


def plan(  # noqa: PLR0913 - the options of a command
    snapshot: snapshots.SnapshotFile = None,
    policy: snapshots.PolicyFile = None,
    mode: Annotated[Literal["plan", "apply"], typer.Option(help="As the deployed stack would run.")] = "plan",
    cluster: snapshots.LiveCluster = None,
    stack: snapshots.Stack = None,
    context: snapshots.Context = None,
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
    exit_code: Annotated[
        bool,
        typer.Option("--exit-code", help="End with exit code 4 if there are changes, also ones that need approval."),
    ] = False,
) -> None:
    """Plan the quotas of a cluster, with --policy under that document. Nothing is written.

    A blocked plan ends with exit code 1.

    Example: taskgov plan --snapshot ml-cluster.json --policy new.yaml
    """
    stack = snapshots.stack_of(stack, cluster, snapshot)
    known = snapshots.known(snapshot, cluster, policy, stack, context)
    if cluster is not None and policy is None and stack is None:
        note = "No policy document was read: no stack `taskgov` was found. Give --stack NAME, or --policy FILE."
        console(stderr=True).print(note, style="dim", soft_wrap=True, highlight=False)
    with working("planning"):
        result = plan_quotas(known, mode=mode)
    answer(lambda: result, plans.shown(result), form, as_json=as_json, markdown=lambda: plan_markdown(result))
    raise typer.Exit(plans.exit_code_of(result, changes=CHANGES if exit_code else OK))
