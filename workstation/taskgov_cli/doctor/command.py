"""`taskgov doctor`: what is missing for a cluster to be governed, each with the command that fixes it."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final, Protocol

import typer
from rich.text import Text

from taskgov_cli import settings
from taskgov_cli.deployed import StackName, told
from taskgov_cli.doctor.diagnosis import Status
from taskgov_cli.doctor.examination import Request, examine
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer, unfolded
from taskgov_cli.grid import table
from taskgov_cli.onboarding.init import detected
from taskgov_cli.output import NO, OK, UNREACHABLE, AsJson, working
from taskgov_cli.snapshots import Context  # noqa: TC001 -- typer reads the annotations
from taskgov_cli.stack_outputs import DEFAULT_STACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from taskgov_cli.doctor.diagnosis import Diagnosis

STYLE: Final = {
    Status.OK: "green",
    Status.WARNING: "yellow",
    Status.FAILED: "red",
    Status.UNKNOWN: "magenta",
}


class HasStatus(Protocol):
    """One answer of an examination."""

    @property
    def status(self) -> Status:
        """How it came out."""


def doctor(
    cluster: Annotated[
        str | None,
        typer.Argument(
            help="Cluster, by name or ARN; without it, the only HyperPod cluster.",
            metavar="CLUSTER",
            envvar=settings.CLUSTER,
        ),
    ] = None,
    stack: StackName = DEFAULT_STACK,
    context: Context = None,
    wait: Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for the test event.")] = 180,
    *,
    event: Annotated[bool, typer.Option("--event/--no-event", help="Send a test event; it starts no change.")] = True,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Check everything that taskgov needs on a cluster; show what is broken, and the command that fixes it.

    Example: taskgov doctor ml-cluster --stack taskgov
    """
    with told():
        name = cluster or detected()
    token = f"taskgov-doctor-{uuid.uuid4().hex[:12]}"
    request = Request(name, stack, context, wait if event else None, token)
    with working("examining") as say:
        _, found = examine(request, say)
    data = {"cluster": name, "stack": stack, "checks": found}
    answer(lambda: data, _shown(name, found), form, as_json=as_json)
    raise typer.Exit(exit_code(found))


def exit_code(found: Iterable[HasStatus]) -> int:
    """Return 1 when something is broken, 3 when something could not be read, else 0."""
    statuses = {answer.status for answer in found}
    if Status.FAILED in statuses:
        return NO
    return UNREACHABLE if Status.UNKNOWN in statuses else OK


def _because(diagnosis: Diagnosis, said_by: str) -> str:
    """Return what a check found; where an earlier check found the same, that check's name."""
    return diagnosis.because if said_by == diagnosis.check else f"see {said_by}"


def _shown(name: str, found: list[Diagnosis]) -> Iterator[RenderableType]:
    first: dict[str, str] = {}
    rows = [
        (
            Text(diagnosis.status, style=STYLE[diagnosis.status]),
            diagnosis.check,
            _because(diagnosis, first.setdefault(diagnosis.because, diagnosis.check)),
        )
        for diagnosis in found
    ]
    yield table(f"Examined {name}", ("", "check", "found"), rows)
    for diagnosis in found:
        if diagnosis.fix:
            yield Text(f"\nTo fix {diagnosis.check}:", style="bold")
            if diagnosis.note:
                yield unfolded(f"  # {diagnosis.note}", style="dim")
            yield from (unfolded(f"  {command}") for command in diagnosis.fix)
        elif diagnosis.note:
            yield unfolded(f"\n{diagnosis.check}: {diagnosis.note}", style="dim")
    counted = Counter(diagnosis.status for diagnosis in found)
    said = ", ".join(f"{counted[status]} {status}" for status in Status if counted[status])
    yield Text(f"\ndoctor: {said}", style="bold")
