"""`taskgov smoke`: the options, who may run it where, and what is shown."""

from __future__ import annotations

import gc
import json
import os
import re
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import boto3
import typer
from rich.text import Text

from taskgov.backends.hyperpod_eks.sagemaker import HyperPodEks
from taskgov.bootstrap.aws import CONFIG
from taskgov.errors import NotFoundError
from taskgov_cli.deployed import RefusedError, caller, told
from taskgov_cli.in_process import typed
from taskgov_cli.output import NO, OK, console, print_json
from taskgov_cli.smoke import report, runner
from taskgov_cli.smoke.model import PREFIX, Result, Sandbox, Typed
from taskgov_cli.smoke.sam import SamDeployer
from taskgov_cli.smoke.steps import STEPS
from taskgov_cli.smoke.steps_stack import CANARY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typer import Typer

    from taskgov_cli.smoke.model import Came, Deployer, Step
    from taskgov_cli.smoke.runner import Played

STYLE: Final = {Result.PASSED: "green", Result.FAILED: "bold red", Result.NOT_REACHED: "dim"}
WORDS: Final = {
    Result.PASSED: "ok",
    Result.FAILED: "FAILED",
    Result.NOT_REACHED: "not reached",
}
EMBEDDED_CLUSTER: Final = "ml-cluster"


@dataclass(frozen=True, slots=True)
class Order:
    """What was typed."""

    cluster: str | None
    account: str | None
    parameters: list[str]
    file: Path | None
    embedded: bool
    as_json: bool


def run(app: Typer, order: Order, checkout: Path) -> int:
    """Play the test; return the exit code: 1 when a step failed or something was left. `app` is the command line.

    Raises `typer.BadParameter`, and `typer.Exit` where the test is refused or AWS cannot be reached.
    """
    gc.freeze()  # the collector need not traverse what was imported again and again
    parameters = _parameters(order.parameters)
    run_id = uuid.uuid4().hex[:8]
    file = order.file or Path(f"{PREFIX}{run_id}.json")
    if not os.access(file.parent, os.W_OK):
        raise typer.BadParameter(f"nothing can be written to {file.parent}: the report would be lost")
    with ExitStack() as undo:
        folder = undo.enter_context(TemporaryDirectory())
        deployer: Deployer
        if order.embedded:
            from taskgov_cli.smoke.embedded import opened  # noqa: PLC0415 - an extra of the package, and slow to import

            deployer = undo.enter_context(opened(Path(folder)))
            account, cluster = None, EMBEDDED_CLUSTER
        else:
            account, cluster = _named(order)
            if not (checkout / "template.yaml").exists():
                raise typer.BadParameter(f"there is no template.yaml in {checkout}: run it in a checkout of taskgov")
            deployer = SamDeployer(f"{PREFIX}{run_id}", run_id, checkout)
        with told():
            by = caller()
            sandbox = _sandbox(app, run_id, deployer, folder, cluster, _allowed(by, account))
            sandbox.parameters = parameters
        telling = _Telling(quiet=order.as_json)
        played = runner.play(STEPS, sandbox, runner.Telling(telling.begins, telling.ended, telling.cleans))
        found = report.report_of(sandbox, played, by, embedded=order.embedded)
    report.write(file, found)
    _close(played, found, file, as_json=order.as_json)
    return OK if played.passed else NO


def _parameters(given: list[str]) -> dict[str, str]:
    """Return parameters of the template. Raises `typer.BadParameter` for one that has another form, or is ours."""
    read = dict(text.partition("=")[::2] for text in given)
    if wrong := [text for text in given if not re.fullmatch(r"[A-Za-z0-9]+=.*", text)]:
        raise typer.BadParameter(f"{', '.join(wrong)}: must be NAME=VALUE")
    if ours := sorted(read.keys() & CANARY.keys()):
        raise typer.BadParameter(f"{', '.join(ours)}: set by the test itself")
    return read


def _named(order: Order) -> tuple[str, str]:
    if order.account is None or order.cluster is None:
        raise typer.BadParameter(
            "name a cluster that nobody uses and its account: taskgov smoke CLUSTER --account ID; "
            "without an account of AWS: taskgov smoke --embedded"
        )
    return order.account, order.cluster


def _allowed(by: str, account: str | None) -> str:
    """Return the caller's account. Raises RefusedError where another one was named."""
    own = by.split(":")[4]
    if account not in {None, own}:
        raise RefusedError(f"these are credentials of account {own}, not of {account} (--account): nothing was done")
    return own


def _sandbox(app: Typer, run_id: str, deployer: Deployer, folder: str, cluster: str, account: str) -> Sandbox:
    try:
        described = HyperPodEks(boto3.client("sagemaker", config=CONFIG)).describe_cluster(cluster)
    except NotFoundError as error:
        raise RefusedError(f"account {account} has no HyperPod cluster {cluster} in this Region") from error
    eks = described.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn")
    if eks is None:
        raise RefusedError(f"cluster {cluster} does not use EKS")
    return Sandbox(
        run_id=run_id,
        account=account,
        cluster=described["ClusterName"],
        cluster_arn=described["ClusterArn"],
        eks=eks.rpartition("/")[2],
        instance_type="",
        deployer=deployer,
        type_=lambda words: _type(app, words),
        folder=folder,
    )


def _type(app: Typer, words: Sequence[str]) -> Typed:
    """Run a command in this process, as a person types it. Raises what no command should raise."""
    result = typed(app, words)
    try:
        data = json.loads(result.stdout)
    except ValueError:
        data = None
    return Typed(result.exit_code, result.output, data)


class _Telling:
    """Shows progress to a person; a program gets everything at the end."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = console()
        self._console.quiet = quiet

    def begins(self, number: int, of: int, step: Step) -> None:
        self._console.print(Text.assemble((f"{number}/{of} {step.name}", "bold"), f": expects that {step.expects}"))

    def ended(self, came: Came) -> None:
        words = (WORDS[came.result], STYLE[came.result])
        name = f"{came.name}: " if came.result is Result.NOT_REACHED else ""
        line = Text.assemble("    ", words, f" {name}{came.came} ({came.seconds:g} s)")
        self._console.print(line, soft_wrap=True)

    def cleans(self, what: str, why: str | None) -> None:
        line = f"removed: {what}" if why is None else f"LEFT: {what}: {why}"
        self._console.print(Text(line, style="dim" if why is None else "bold red"), soft_wrap=True)


def _close(played: Played, found: dict[str, Any], file: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({**found, "report": str(file)})
        return
    out = console()
    for inferred in found["inferred"]:
        mark = ("as assumed", "green") if inferred["agrees"] else ("OTHERWISE", "bold red")
        out.print(Text.assemble(mark, f": {inferred['about']}: {inferred['came']}"), soft_wrap=True)
    if played.left:
        out.print(Text("Remove by hand what is named above; it could not be removed.", style="bold red"))
    out.print(f"report, without private words: {file}", soft_wrap=True)
    counts = {result: sum(came.result is result for came in played.steps) for result in Result}
    said = ", ".join(f"{count} {WORDS[result].lower()}" for result, count in counts.items() if count)
    out.print(Text(f"smoke: {said}", style="bold"))
