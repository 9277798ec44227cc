"""`taskgov`: where each command is, and what is said of it in the list. A command is imported when it runs."""

import os
from typing import Annotated, Final

import typer

from taskgov_cli.lazy import Lazy, LazyGroup

ASK: Final = {
    "status": Lazy(
        "taskgov_cli.status:status",
        "Show capacity, quota, use, loans and waiting work by team and instance type.",
    ),
    "jobs": Lazy(
        "taskgov_cli.jobs:jobs",
        "List tasks with team, kind, priority, state, request and use beyond quota. `explain` takes their names.",
    ),
    "explain": Lazy(
        "taskgov_cli.explain:explain",
        "Explain why a job waits, was preempted or runs where it does, or why a team has its quota.",
    ),
    "when": Lazy(
        "taskgov_cli.when:when",
        "Estimate when a waiting job starts, and show what it waits for.",
    ),
    "plan": Lazy(
        "taskgov_cli.plan_command:plan",
        "Plan the quotas of a cluster, with --policy under that document. Nothing is written.",
    ),
    "what-if": Lazy(
        "taskgov_cli.what_if:what_if_command",
        "Predict the plan and the jobs after a change of nodes, quotas, weights, jobs or policy.",
    ),
    "audit": Lazy(
        "taskgov_cli.audit:audit",
        "Audit a cluster now: each finding with evidence and remedy, and the report of the nightly audit.",
    ),
    "report": Lazy(
        "taskgov_cli.report:report",
        "Find the page of a team: quota, tasks, what waits and why. Each audit and each run writes it.",
    ),
    "history": Lazy(
        "taskgov_cli.history:history",
        "Show the last runs of a cluster: time, cause, plan and outcome.",
    ),
    "usage": Lazy(
        "taskgov_cli.usage.command:usage",
        "Sum the GPU-hours of a month and their price: guaranteed, used, borrowed, lent, idle, waiting, preempted.",
    ),
    "snapshot": Lazy(
        "taskgov_cli.snapshots:snapshot",
        "Save the state of a live cluster in a file, for offline commands. The cluster is only read.",
    ),
    "replay": Lazy(
        "taskgov_cli.replay:replay",
        "Replay a trace of GPU jobs under a policy and under static partitions: use, waiting, loans, preemptions.",
    ),
    "advise": Lazy(
        "taskgov_cli.advise:advise",
        "Recommend quotas, borrow limits and preemption rules from past work, with proof. Nothing is applied.",
    ),
}
CHANGE: Final = {
    "validate": Lazy(
        "taskgov_cli.documents:validate",
        "Check policy documents; report every violation at once, with path, value and rule.",
    ),
    "apply": Lazy(
        "taskgov_cli.applying.command:apply",
        "Put a policy document into force (--policy), or write a plan that a stack in plan mode made.",
    ),
    "lease": Lazy(
        "taskgov_cli.leases:app", "Lend quota for a time: list, check, add and end the leases of a document."
    ),
    "review": Lazy(
        "taskgov_cli.review.command:review",
        "Comment on a pull or merge request with the plan of its policy document, on the stack's newest snapshot.",
    ),
    "approve": Lazy(
        "taskgov_cli.approvals:approve",
        "Approve a waiting plan: exactly its changes are applied, or none if the cluster has changed since.",
    ),
    "reject": Lazy(
        "taskgov_cli.approvals:reject",
        "Reject a waiting plan: nothing is applied, and the same changes are not proposed again for some time.",
    ),
    "rollback": Lazy(
        "taskgov_cli.rollback:rollback",
        "Undo a plan: restore each quota to its value before, last wave first.",
    ),
}
OPERATE: Final = {
    "doctor": Lazy(
        "taskgov_cli.doctor.command:doctor",
        "Check everything that taskgov needs on a cluster; show what is broken, and the command that fixes it.",
    ),
    "reconcile": Lazy(
        "taskgov_cli.operate:reconcile",
        "Start a run on a cluster now; a run in progress reads the cluster once more instead.",
    ),
    "stop": Lazy(
        "taskgov_cli.operate:stop",
        "Turn the stop switch on or off: while it is on, runs plan and report, and write nothing.",
    ),
    "unlock": Lazy(
        "taskgov_cli.unlock:unlock",
        "Show who holds a cluster's lock; release it with --yes. A run that held it stops before its next write.",
    ),
    "govern": Lazy(
        "taskgov_cli.govern:govern",
        "Show which stacks have tagged a cluster; with --yes, assign it to this one.",
    ),
}
SET_UP: Final = {
    "preflight": Lazy(
        "taskgov_cli.preflight.command:preflight",
        "Check, before a deployment, whether this account and Region can run the stack. Nothing is written.",
    ),
    "init": Lazy(
        "taskgov_cli.onboarding.init:init",
        "Write a first policy document from the current quotas of a cluster. AWS is only read.",
    ),
    "adopt": Lazy(
        "taskgov_cli.kueue:adopt",
        "Take over existing Kueue queues with their quotas; without --yes, show what would change.",
    ),
    "kueue-config": Lazy(
        "taskgov_cli.kueue:kueue_config",
        "Print the settings of Kueue's manager that a policy needs.",
    ),
    "schema": Lazy(
        "taskgov_cli.schema:schema",
        "Print the JSON Schema of policy documents, for editors to complete and check them.",
    ),
    "config": Lazy(
        "taskgov_cli.configuration:config",
        "Show the default cluster, stack, context, format and policy document, and where each is set.",
    ),
    "smoke": Lazy(
        "taskgov_cli.embedded:smoke",
        "Test taskgov in a sandbox account, clean up, and report how AWS behaves where that is only inferred.",
    ),
}
DEVELOP: Final = {
    "demo": Lazy(
        "taskgov_cli.embedded:demo",
        "Play a short story, or walkthroughs, on the embedded stack; each expectation is checked.",
    ),
    "local": Lazy(
        "taskgov_cli.local:local",
        "Serve an emulated account and cluster for `sam local invoke`, the AWS CLI and kubectl, until Ctrl-C.",
    ),
    "conformance": Lazy(
        "taskgov_cli.conformance:conformance",
        "Compare the scheduling model with recorded decisions of Kueue, and show every difference.",
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
    """Keep the GPU quotas of shared clusters in line with their capacity."""
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
