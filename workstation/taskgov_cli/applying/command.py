"""`taskgov apply`: the options, the plan that is shown first, and the result of applying it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final

import typer

from taskgov.allocation.plan import Outcome
from taskgov.allocation.planner import plan_quotas
from taskgov.errors import NotFoundError
from taskgov.policy.parse import parse_policy
from taskgov_cli import documents, live_reading, plans, snapshots
from taskgov_cli.applying import document, plan
from taskgov_cli.applying.document import Review
from taskgov_cli.deployed import OfCluster, RefusedError, StackName, deployed, told
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer, markdown_of, print_parts, unfolded
from taskgov_cli.orders import by_hand
from taskgov_cli.output import NO, OK, AsJson, console, print_error, working
from taskgov_cli.plan_markdown import plan_markdown
from taskgov_cli.review.forge import forge_of
from taskgov_cli.stack_outputs import DEFAULT_STACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.text import Text

    from taskgov.allocation.plan import Plan
    from taskgov.policy.document import ClusterRef
    from taskgov.snapshot.model import Snapshot
    from taskgov_cli.applying.document import Ended
    from taskgov_cli.deployed import Deployed

FORGE: Final = "forge"
"""For --reviewed: ask the forge whose pipeline this is."""
WELL: Final = frozenset({"applied", "nothing-to-do"})
NOT_LET_THROUGH: Final = frozenset({Outcome.BLOCKED, Outcome.NO_PROGRESS})
NOT_OF_A_PLAN: Final = NOT_LET_THROUGH | {Outcome.NEEDS_APPROVAL}
"""Only a run can request approval, and a plan that is written by hand has none."""
WHAT_NEXT: Final = {
    "applied": "It is on record: taskgov history {cluster}. To undo it: taskgov rollback {plan}",
    "needs-approval": "It waits for a person: taskgov approve {plan}, or taskgov reject {plan}",
    "planned": "The stack is in plan mode and wrote nothing. This plan alone: taskgov apply {plan} --yes; "
    "from now on: sam deploy --parameter-overrides ApplyMode=apply",
    "blocked": "A guardrail or the document blocked it; the plan names it, and what would unblock it",
    "stopped": "It was stopped early; its writes are safe, and the next run does the rest: taskgov history {cluster}",
}


def apply(  # noqa: PLR0913 - the options of a command
    plan_id: Annotated[
        str | None, typer.Argument(help="A plan that the stack made but did not write.", metavar="PLAN_ID")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", "-p", exists=True, dir_okay=False, help="Policy document to put into force."),
    ] = None,
    snapshot: snapshots.SnapshotFile = None,
    stack: StackName = DEFAULT_STACK,
    cluster: OfCluster = None,
    context: snapshots.TypedContext = None,
    wait: Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for the run of the document.")] = 600,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Apply it; without --yes, the plan is only shown.")] = False,
    reviewed: Annotated[
        str | None,
        typer.Option(
            help="With --policy: the reviewed plan, as its comment names it; another one waits for approval. "
            "`forge`: the plan of the pull or merge request of this pipeline's commit.",
            metavar="PLAN_ID:DIGEST",
        ),
    ] = None,
    claim: Annotated[
        str,
        typer.Option(help="With --policy: the author according to a forge; recorded as a claim, not as an identity."),
    ] = "",
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Put a policy document into force (--policy), or write a plan that a stack in plan mode made.

    The plan is shown first. A run of the stack applies a document; a plan is written under the cluster's lock.

    Example: taskgov apply --policy ml-cluster.yaml
    """
    if (plan_id is None) == (policy is None):
        raise typer.BadParameter("give either a PLAN_ID, or --policy FILE")
    if policy is None and (reviewed is not None or claim):
        raise typer.BadParameter("--reviewed and --claim are about a document: give --policy FILE")
    review = _review(policy, reviewed, claim)
    with told():
        if policy is not None:
            shown, doing = _document(policy, snapshot, stack, context, wait, review)
            review.require(shown)
        else:
            shown, doing = _plan(str(plan_id), snapshot, stack, cluster, context)
        is_table = form is Form.TABLE and not as_json
        if is_table:
            print_parts(plans.shown(shown))  # before anything is written
        can_be_applied = shown.outcome not in (NOT_LET_THROUGH if policy is not None else NOT_OF_A_PLAN)
        ended = doing() if yes and can_be_applied else None
    closing = [_unwritten(shown, policy, snapshot)] if ended is None else [*_ended(shown, ended)]
    is_refused = yes and ended is None
    if not is_table:
        parts, data = [*plans.shown(shown), *closing], {"plan": shown, "done": ended is not None, "ended": ended}
        answer(lambda: data, parts, form, as_json=as_json, markdown=lambda: plan_markdown(shown) + markdown_of(closing))
    elif not is_refused:
        print_parts(closing)
    if is_refused:
        print_error("Refused", closing[0])
    is_well = can_be_applied if ended is None else ended.outcome in WELL
    raise typer.Exit(OK if is_well else NO)


def _review(policy: Path | None, reviewed: str | None, claim: str) -> Review:
    if reviewed == FORGE:
        with told():
            return Review.on(forge_of(os.environ), str(policy), claim)
    try:
        return Review.of(reviewed, claim)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--reviewed") from error


def _document(
    file: Path, snapshot: Path | None, stack: str, context: str | None, wait: float, review: Review
) -> tuple[Plan, Callable[[], Ended]]:
    """Return the plan of a document on what there is now, and how to put the document into force."""
    body = file.read_bytes()
    parsed = parse_policy(body)
    if parsed.document is None:
        print_parts(documents.shown(file, parsed), console(stderr=True))
        raise RefusedError(f"{file} is not valid, so nothing was written")
    if snapshot is not None:
        return _planned(documents.in_force(snapshots.read(snapshot), file)), _never
    place, cluster = deployed(stack), parsed.document.cluster
    arn = _arn_of(place, cluster)
    if arn != cluster.arn:
        raise RefusedError(f"{file}: cluster.arn is {cluster.arn}, but the ARN of cluster {cluster.name} is {arn}")
    seen = document.tag_of(place, cluster.name)
    with working(f"reading {cluster.name}"):
        known = documents.in_force(live_reading.read_live(arn, stack, context), file)

    def put() -> Ended:
        written = document.store(place, cluster, body.decode(), replaces=seen, review=review)
        with working("waiting for the run") as say:
            ended = document.wait_for_run(place, written, wait, say)
        if ended is None:
            raise RefusedError(
                f"{file} is in force (version {written.version}), and no run of it had ended after {wait:.0f} s; "
                f"for the outcome: taskgov history {cluster.name}"
            )
        return ended

    return _planned(known), put


def _arn_of(place: Deployed, cluster: ClusterRef) -> str:
    """Return the ARN of the cluster of this name; an EKS cluster is known by its document, which may be this one."""
    try:
        return place.arn_of(cluster.name)
    except NotFoundError:
        if cluster.backend.is_of_hyperpod:
            raise
        return cluster.arn


def _plan(
    plan_id: str, snapshot: Path | None, stack: str, cluster: str | None, context: str | None
) -> tuple[Plan, Callable[[], Ended]]:
    """Return a plan of the stack made again, and how to write it."""
    if snapshot is not None:
        raise RefusedError("a plan is applied to a cluster, not to a snapshot file: leave --snapshot out")
    place = deployed(stack)
    job = plan.OnePlan(place, plan.find(place, plan_id, cluster), stack, context)

    def run() -> Ended:
        mine = replace(job, by=by_hand(place, "apply", job.plan.cluster_arn, plan_id))
        with working("writing the plan; each wave settles before the next"):
            return mine.run()

    with working(f"reading {job.plan.cluster_name}"):
        return job.again(), run


def _planned(known: Snapshot) -> Plan:
    return plan_quotas(known, mode="apply")


def _never() -> Ended:
    raise RefusedError("nothing can be applied to a snapshot file; without --snapshot, the cluster is read live")


def _unwritten(shown: Plan, policy: Path | None, snapshot: Path | None) -> Text:
    """Return that nothing was written, and what the reader can do."""
    how = "repeat the command with --yes" if snapshot is None else "give --yes, and leave out --snapshot"
    match shown.outcome:
        case Outcome.BLOCKED | Outcome.NO_PROGRESS:
            next_words = "It would be blocked; the plan names what would unblock it"
        case Outcome.NEEDS_APPROVAL if policy is None:
            next_words = f"It needs approval, {plan.HOW_APPROVED}"
        case Outcome.NEEDS_APPROVAL:
            next_words = f"To put the document into force and request the approval, {how}"
        case Outcome.NOTHING_TO_DO if policy is None:
            next_words = "All of the plan is in force already"
        case Outcome.NOTHING_TO_DO:
            next_words = f"No quota would change. To put the document into force, {how}"
        case _:
            next_words = f"To apply it, {how}"
    return unfolded(f"Nothing was written. {next_words}")


def _ended(shown: Plan, ended: Ended) -> Iterator[Text]:
    error = f": {ended.error}" if ended.error else ""
    yield unfolded(f"{ended.outcome}{error}", "green" if ended.outcome in WELL else "red")
    next_words = WHAT_NEXT.get(ended.outcome, "See what happened: taskgov history {cluster}")
    if ended.outcome != "nothing-to-do":
        yield unfolded(next_words.format(cluster=shown.cluster_name, plan=ended.plan_id))
