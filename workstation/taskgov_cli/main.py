"""`taskgov`: where each command is, and what is said of it in the list. A command is imported when it runs."""

import os
from typing import Annotated, Final

import typer

from taskgov_cli.lazy import Lazy, LazyGroup

ASK: Final = {
    "status": Lazy(
        "taskgov_cli.status:status",
        "Show how everybody stands: capacity, quota, used, borrowed, lent and waiting, by team and instance type.",
    ),
    "jobs": Lazy(
        "taskgov_cli.jobs:jobs",
        "List tasks: team, kind, priority, state, what each requests and borrows. `explain` takes a name from it.",
    ),
    "explain": Lazy(
        "taskgov_cli.explain:explain",
        "Say why a workload waits, was preempted or runs where it runs; or why a team has its quota and share.",
    ),
    "when": Lazy(
        "taskgov_cli.when:when",
        "Estimate when a waiting job starts, and say what it waits for.",
    ),
    "plan": Lazy(
        "taskgov_cli.plan_command:plan",
        "Plan the quotas of a cluster; with --policy as if that document were in force. Nothing is written.",
    ),
    "what-if": Lazy(
        "taskgov_cli.what_if:what_if_command",
        "Suppose that nodes, quotas, weights, work or the policy were otherwise: the plan, and what becomes of work.",
    ),
    "audit": Lazy(
        "taskgov_cli.audit:audit",
        "Judge a cluster now: every finding with its evidence and its remedy, and the report of the nightly audit.",
    ),
    "report": Lazy(
        "taskgov_cli.report:report",
        "Say where the page of a team is: its quota, tasks, what waits and why. Each audit and each run writes it.",
    ),
    "history": Lazy(
        "taskgov_cli.history:history",
        "Show the last runs of a cluster: when, why, with which plan, and how they ended.",
    ),
    "usage": Lazy(
        "taskgov_cli.usage.command:usage",
        "Sum up the GPU-hours of a month: guaranteed, used, borrowed, lent, idle, waiting, preempted, and their price.",
    ),
    "snapshot": Lazy(
        "taskgov_cli.snapshots:snapshot",
        "Read a live cluster once, for offline questions. Nothing is written to it.",
    ),
    "replay": Lazy(
        "taskgov_cli.replay:replay",
        "Replay a trace of GPU jobs under a policy and under static partitions: use, waiting, loans, preemptions.",
    ),
    "advise": Lazy(
        "taskgov_cli.advise:advise",
        "Advise on quotas, borrow limits and preemption from past work, with the proof. Nothing is applied.",
    ),
}
CHANGE: Final = {
    "validate": Lazy(
        "taskgov_cli.documents:validate",
        "Check policy documents: every broken rule at once, with its path, value and rule.",
    ),
    "apply": Lazy(
        "taskgov_cli.applying.command:apply",
        "Put a policy document into force (--policy), or write one plan that a stack in plan mode left unwritten.",
    ),
    "lease": Lazy("taskgov_cli.leases:app", "Temporary quota: the leases of a document."),
    "review": Lazy(
        "taskgov_cli.review.command:review",
        "Plan a policy document on the newest snapshot of the stack, as one comment on the pull or merge request.",
    ),
    "approve": Lazy(
        "taskgov_cli.approvals:approve",
        "Let a plan that waits for approval be applied: exactly its changes, or none when the world moved meanwhile.",
    ),
    "reject": Lazy(
        "taskgov_cli.approvals:reject",
        "Refuse a plan that waits for approval: nothing is applied, and the same changes are not tried again soon.",
    ),
    "rollback": Lazy(
        "taskgov_cli.rollback:rollback",
        "Take back what a plan changed: restore each quota to what it was, last wave first.",
    ),
}
OPERATE: Final = {
    "doctor": Lazy(
        "taskgov_cli.doctor.command:doctor",
        "Check everything that governing a cluster takes; name what is broken, and the command that fixes it.",
    ),
    "reconcile": Lazy(
        "taskgov_cli.operate:reconcile",
        "Ask for a run on a cluster now; a run that is under way looks once more instead.",
    ),
    "stop": Lazy(
        "taskgov_cli.operate:stop",
        "Turn the stop switch on or off: while it is on, every run plans and reports, and none writes.",
    ),
    "unlock": Lazy(
        "taskgov_cli.unlock:unlock",
        "Show who holds a cluster's lock; free it with --yes. A run that still works stops before its next write.",
    ),
    "govern": Lazy(
        "taskgov_cli.govern:govern",
        "Show which stacks have tagged a cluster as theirs; with --yes, hand it over to this one.",
    ),
}
SET_UP: Final = {
    "preflight": Lazy(
        "taskgov_cli.preflight.command:preflight",
        "Check whether this account and Region take the stack, before it is deployed. Nothing is written.",
    ),
    "init": Lazy(
        "taskgov_cli.onboarding.init:init",
        "Write the first policy document of a cluster from what is found there; nothing in AWS is changed.",
    ),
    "adopt": Lazy(
        "taskgov_cli.kueue:adopt",
        "Take over queues that somebody else made, as they stand; without --yes, show what that would change.",
    ),
    "kueue-config": Lazy(
        "taskgov_cli.kueue:kueue_config",
        "Print how Kueue's manager has to be configured for a policy: the parts that governance decides.",
    ),
    "schema": Lazy(
        "taskgov_cli.schema:schema",
        "Print the JSON Schema of policy documents, with which editors complete and check them.",
    ),
    "config": Lazy(
        "taskgov_cli.configuration:config",
        "Show which cluster, stack, context and format hold when none is given, and where each comes from.",
    ),
    "smoke": Lazy(
        "taskgov_cli.embedded:smoke",
        "Try everything once in a sandbox account, remove it again, and report what AWS does that is inferred today.",
    ),
}
DEVELOP: Final = {
    "demo": Lazy(
        "taskgov_cli.embedded:demo",
        "Govern a cluster on the embedded stack: a short story, or walkthroughs, each expectation checked.",
    ),
    "local": Lazy(
        "taskgov_cli.local:local",
        "Serve an emulated account with one cluster to `sam local invoke`, the AWS CLI and kubectl, until Ctrl-C.",
    ),
    "conformance": Lazy(
        "taskgov_cli.conformance:conformance",
        "Run recorded Kueue decisions through the scheduling model and name every difference.",
    ),
}
GROUPS: Final = {"Ask": ASK, "Change": CHANGE, "Operate": OPERATE, "Set up": SET_UP, "Develop": DEVELOP}
"""What people do -> the commands for it -> where each is, and its summary, the first sentence of its docstring."""

PLACES: Final = {name: lazy for group in GROUPS.values() for name, lazy in group.items()}
"""Command -> where it is."""


class Commands(LazyGroup):
    """The commands of `taskgov`."""

    groups = GROUPS


app = typer.Typer(
    name="taskgov",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(*, wanted: bool) -> None:
    if wanted:
        import platform  # noqa: PLC0415 - nobody else needs these here
        from importlib import metadata  # noqa: PLC0415

        from taskgov.scheduling.kueue_version import FOLLOWED  # noqa: PLC0415

        typer.echo(f"taskgov {metadata.version('taskgov')} (Python {platform.python_version()})")
        typer.echo(f"Decisions of the scheduler are predicted as Kueue {FOLLOWED} makes them.")
        raise typer.Exit


@app.callback()
def taskgov(
    ctx: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keep GPU quotas true on shared clusters."""
    if name := ctx.invoked_subcommand:
        from taskgov_cli.settings import defaults  # noqa: PLC0415 - the list of commands takes none

        ctx.default_map = {name: defaults(ctx.command.commands[name])}  # type: ignore[attr-defined]


def main() -> None:
    """Run the command line."""
    if os.environ.get("AWS_DEFAULT_REGION") == "":
        del os.environ["AWS_DEFAULT_REGION"]  # botocore would take it for a Region without a name
    app()


if __name__ == "__main__":
    main()
