"""`taskgov review`: in the pipeline of a request, the plan of its policy document as one comment, and a verdict."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from taskgov.allocation.plan import Outcome
from taskgov.allocation.planner import plan_quotas
from taskgov.policy.parse import parse_policy
from taskgov_cli import documents, snapshots
from taskgov_cli.deployed import StackName  # noqa: TC001 -- typer reads the annotations
from taskgov_cli.formats import markdown_of
from taskgov_cli.output import NO, OK, AsJson, console, print_json
from taskgov_cli.plan_markdown import MARK, cut, plan_markdown
from taskgov_cli.review import comment
from taskgov_cli.review.forge import forge_of
from taskgov_cli.review.newest import newest_snapshot
from taskgov_cli.stack_outputs import DEFAULT_STACK

if TYPE_CHECKING:
    from taskgov.allocation.plan import Plan

FailOn = Literal["never", "blocked", "approval", "preemption", "changes"]


def review(
    policy: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, metavar="POLICY", help="The policy document of the request.")
    ],
    stack: StackName = DEFAULT_STACK,
    snapshot: snapshots.SnapshotFile = None,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            "--fail-on",
            help="End with exit code 1 for such a plan; blocked plans count for every value except `never`.",
        ),
    ] = "blocked",
    *,
    comments: Annotated[
        bool, typer.Option("--comment/--no-comment", help="Write the comment, or only print it.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Comment on a pull or merge request with the plan of its policy document, on the stack's newest snapshot.

    For pipelines of GitHub and GitLab. It needs rights to read the stack's bucket, and none to the cluster. If nothing
    changes, no comment is written. A document that breaks rules always ends with exit code 1.

    Example: taskgov review policies/ml-cluster.yaml --stack taskgov --fail-on approval --no-comment
    """
    text, plan = _judged(policy, stack, snapshot)
    if comments:
        with snapshots.reported():
            forge = forge_of(os.environ)
            request = forge.request()
            has_news = plan is None or plan.outcome is not Outcome.NOTHING_TO_DO
            done = comment.put(forge, request, str(policy), text, has_news=has_news)
        console(stderr=True).print(f"{request.name}: {done}", soft_wrap=True)
        _summary(text)
    failed = plan is None or fails(plan, fail_on)
    if as_json:
        print_json({"valid": plan is not None, "fails": failed, "plan": plan, "comment": text})
    elif not comments:
        typer.echo(text, nl=False)
    raise typer.Exit(NO if failed else OK)


def _judged(policy: Path, stack: str, snapshot: Path | None) -> tuple[str, Plan | None]:
    """Return the text of the comment, and the plan; None for a document that breaks rules."""
    parsed = parse_policy(policy.read_bytes())
    if parsed.document is None:
        return cut(f"{MARK.format(about=policy)}\n### {markdown_of(documents.shown(policy, parsed))}"), None
    with snapshots.reported():
        known = newest_snapshot(stack, parsed.document.cluster.name) if snapshot is None else snapshots.read(snapshot)
    plan = plan_quotas(documents.in_force(known, policy), mode="apply")
    return plan_markdown(plan, about=str(policy)), plan


def fails(plan: Plan, fail_on: FailOn) -> bool:
    """Return whether a plan ends the pipeline."""
    blocked = plan.outcome in {Outcome.BLOCKED, Outcome.NO_PROGRESS}
    match fail_on:
        case "never":
            return False
        case "blocked":
            return blocked
        case "approval":
            return blocked or plan.outcome is Outcome.NEEDS_APPROVAL
        case "preemption":
            may_preempt = plan.prediction.most_preempted_gpus > 0 or not plan.prediction.is_complete
            return blocked or (bool(plan.changes) and may_preempt)
        case "changes":
            return blocked or bool(plan.changes)


def _summary(text: str) -> None:
    """Show it on the page of the run too, where GitHub has one."""
    if page := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(page).open("a") as file:
            file.write(f"{text}\n")
