"""`taskgov demo` and `taskgov smoke`: the commands that need the embedded stack, an extra of the package."""

from pathlib import Path
from typing import Annotated

import typer

from taskgov_cli.output import AsJson


def demo(
    only: Annotated[list[str] | None, typer.Argument(help="Walkthroughs to play, by part of their names.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Play all walkthroughs, one line each.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show everything that happens in every step.")] = False,
    reports: Annotated[
        Path | None, typer.Option(file_okay=False, exists=True, help="Folder for audit reports.")
    ] = None,
    opens: Annotated[bool, typer.Option("--open", help="Open the audit report at the end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Play a short story, or walkthroughs, on the embedded stack; each expectation is checked.

    Example: taskgov demo 08-lend 14-quotas
    """
    from taskgov_cli import demo as demonstration  # noqa: PLC0415 - loaded by those who may not have the extra, too
    from taskgov_cli.main import app  # noqa: PLC0415 - which loads this module

    if only and every:
        raise typer.BadParameter("give names, or --all")
    try:
        order = demonstration.Order(tuple(only or ()), every, verbose, reports, opens, as_json)
        code = demonstration.run(app, order)
    except demonstration.UnknownWalkthroughError as error:
        raise typer.BadParameter(str(error)) from error
    raise typer.Exit(code)


def smoke(
    cluster: Annotated[
        str | None, typer.Argument(help="A HyperPod cluster for tests, by name or ARN.", metavar="CLUSTER")
    ] = None,
    account: Annotated[
        str | None, typer.Option("--account", help="The account of your credentials.", metavar="ID")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter of the template that the account requires. Repeat."),
    ] = None,
    report_file: Annotated[
        Path | None,
        typer.Option("--report", dir_okay=False, help="File for the report; default: taskgov-smoke-RUN.json."),
    ] = None,
    embedded: Annotated[bool, typer.Option("--embedded", help="Use the embedded account instead of AWS.")] = False,
    as_json: AsJson = False,
) -> None:
    """Test taskgov in a sandbox account, clean up, and report how AWS behaves where that is only inferred.

    Example: taskgov smoke ml-sandbox --account 111122223333
    """
    from taskgov_cli.main import app  # noqa: PLC0415 - which loads this module
    from taskgov_cli.smoke import command as smoking  # noqa: PLC0415 - loaded by `demo` too

    order = smoking.Order(cluster, account, parameter or [], report_file, embedded, as_json)
    raise typer.Exit(smoking.run(app, order, Path.cwd()))
