"""`taskgov`: the commands and their options. Each command is a few lines over the module that does the work."""

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import typer

from taskgov.allocation.planner import plan_quotas
from taskgov.policy.parse import parse_policy
from taskgov.scheduling.kueue_version import FOLLOWED
from taskgov_cli import (
    approvals,
    audit,
    documents,
    explain,
    govern,
    history,
    jobs,
    kueue,
    leases,
    local,
    operate,
    plans,
    replay,
    report,
    rollback,
    snapshots,
    status,
    unlock,
    what_if,
)
from taskgov_cli.applying import command as applying
from taskgov_cli.doctor import command as doctor
from taskgov_cli.failures import SafeGroup
from taskgov_cli.formats import AsJson, Form, Format, answer
from taskgov_cli.onboarding import init
from taskgov_cli.output import CHANGES, NO, NOT_UNDERSTOOD, OK, console
from taskgov_cli.plan_markdown import plan_markdown
from taskgov_cli.preflight import command as preflight
from taskgov_cli.review import command as review

app = typer.Typer(
    name="taskgov",
    cls=SafeGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXTRAS = {
    "matplotlib": "plots",
    **dict.fromkeys(("cryptography", "jsonata", "moto", "samtranslator", "time_machine", "werkzeug"), "embedded"),
}
"""Module -> the extra that brings it."""


def _print_version(*, wanted: bool) -> None:
    if wanted:
        console().print(f"taskgov {metadata.version('taskgov')} (Python {platform.python_version()})", highlight=False)
        console().print(f"Decisions of the scheduler are predicted as Kueue {FOLLOWED} makes them.", highlight=False)
        raise typer.Exit


@app.callback()
def taskgov(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keep GPU quotas true on shared clusters."""


@app.command()
def validate(
    policies: Annotated[
        list[Path],
        typer.Argument(
            exists=True,
            dir_okay=False,
            allow_dash=True,
            metavar="POLICY...",
            help="Policy documents, YAML or JSON; - is standard input.",
        ),
    ],
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Check policy documents: every broken rule at once, with its path, value and rule.

    As JSON, one document is an object, and several are a list of objects with their file.

    Example: taskgov validate ml-cluster.yaml
    """
    read = [(file, parse_policy(documents.body_of(file))) for file in policies]
    parts = [part for file, parsed in read for part in documents.shown(file, parsed)]
    answer(lambda: documents.as_data(read), parts, form, as_json=as_json)
    raise typer.Exit(NO if any(parsed.violations for _, parsed in read) else OK)


@app.command()
def plan(  # noqa: PLR0913 -- options are named by whoever types them
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
        bool, typer.Option("--exit-code", help="End with exit code 4 when there are changes, also ones to approve.")
    ] = False,
) -> None:
    """Plan the quotas of a cluster; with --policy as if that document were in force. Nothing is written.

    A plan that is blocked ends with exit code 1.

    Example: taskgov plan --snapshot ml-cluster.json --policy new.yaml
    """
    result = plan_quotas(snapshots.known(snapshot, cluster, policy, stack, context), mode=mode)
    answer(lambda: result, plans.shown(result), form, as_json=as_json, markdown=lambda: plan_markdown(result))
    raise typer.Exit(plans.exit_code(result, changes=CHANGES if exit_code else OK))


@app.command()
def demo(
    only: Annotated[
        list[str] | None, typer.Argument(help="Walkthroughs to play instead, by a part of their names.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Play all walkthroughs, one line each.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show everything that happens in every step.")] = False,
    reports: Annotated[Path | None, typer.Option(file_okay=False, exists=True, help="Where audit reports go.")] = None,
    opens: Annotated[bool, typer.Option("--open", help="Open the audit report at the end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Govern a cluster on the embedded stack: a story of some seconds, or walkthroughs, with every expectation checked.

    Example: taskgov demo 08-lend 14-quotas
    """
    # The embedded stack is a second of imports that no other command needs, and an extra of the package.
    from taskgov_cli import demo as demonstration  # noqa: PLC0415

    if only and every:
        raise typer.BadParameter("give names, or --all")
    try:
        order = demonstration.Order(tuple(only or ()), every, verbose, reports, opens, as_json)
        code = demonstration.run(app, order)
    except demonstration.UnknownWalkthroughError as error:
        raise typer.BadParameter(str(error)) from error
    raise typer.Exit(code)


@app.command()
def smoke(
    cluster: Annotated[
        str | None, typer.Argument(help="A HyperPod cluster that nobody needs, by name or ARN.", metavar="CLUSTER")
    ] = None,
    account: Annotated[
        str | None, typer.Option("--account", help="The account that your credentials are of.", metavar="ID")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter of the template that the account asks for. Repeat."),
    ] = None,
    report_file: Annotated[
        Path | None,
        typer.Option("--report", dir_okay=False, help="Where the report goes; else taskgov-smoke-RUN.json."),
    ] = None,
    embedded: Annotated[bool, typer.Option("--embedded", help="On the embedded account, without one of AWS.")] = False,
    as_json: AsJson = False,
) -> None:
    """Try everything once in a sandbox account, remove it again, and report what AWS does that is inferred today.

    Example: taskgov smoke ml-sandbox --account 111122223333
    """
    from taskgov_cli.smoke import command as smoking  # noqa: PLC0415 - nobody else needs the test

    order = smoking.Order(cluster, account, parameter or [], report_file, embedded, as_json)
    raise typer.Exit(smoking.run(app, order, Path.cwd()))


app.command()(explain.explain)
app.command()(snapshots.snapshot)
app.command()(approvals.approve)
app.command()(approvals.reject)
app.command()(rollback.rollback)
app.command()(operate.reconcile)
app.command()(operate.stop)
app.command()(unlock.unlock)
app.command()(history.history)
app.command()(govern.govern)
app.add_typer(leases.app, name="lease")
app.command()(local.local)
app.command()(init.init)
app.command()(applying.apply)
app.command()(preflight.preflight)
app.command()(doctor.doctor)
app.command()(status.status)
app.command()(jobs.jobs)
app.command()(kueue.adopt)
app.command("kueue-config")(kueue.kueue_config)
app.command()(audit.audit)
app.command()(report.report)
app.command()(replay.replay)
app.command()(review.review)
app.command("what-if")(what_if.what_if_command)


@app.command()
def conformance(
    cases: Annotated[Path, typer.Argument(file_okay=False, exists=True, help="A folder of recorded Kueue decisions.")],
    as_json: AsJson = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show each difference as a diff.")] = False,
) -> None:
    """Run recorded Kueue decisions through the scheduling model and name every difference.

    Example: taskgov conformance kueue-cases
    """
    from taskgov_cli import conformance as runner  # noqa: PLC0415 - nobody else needs the runner

    raise typer.Exit(runner.run(cases, as_json=as_json, verbose=verbose))


def main() -> None:
    """Run the command line. A command that needs an extra says what to install when that is not there."""
    if os.environ.get("AWS_DEFAULT_REGION") == "":
        del os.environ["AWS_DEFAULT_REGION"]  # botocore would take it for a Region without a name
    try:
        app()
    except ModuleNotFoundError as error:
        module = (error.name or "").split(".")[0]
        if module not in EXTRAS:
            raise
        needs = f"This command needs {error.name}; in a checkout of taskgov: pip install '.[{EXTRAS[module]}]'"
        console(stderr=True).print(needs, markup=False)
        raise SystemExit(NOT_UNDERSTOOD) from None


if __name__ == "__main__":
    main()
