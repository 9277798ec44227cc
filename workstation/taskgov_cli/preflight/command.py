"""`taskgov preflight`: whether an account and Region take the stack, before the first deployment."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import boto3
import typer
from rich.text import Text

from taskgov.errors import InvalidRequestError
from taskgov.policy.backends import Backend
from taskgov_cli.deployed import StackName  # noqa: TC001 -- typer reads the annotations
from taskgov_cli.doctor.command import STYLE, exit_code
from taskgov_cli.doctor.diagnosis import Status
from taskgov_cli.doctor.facts import Unknown
from taskgov_cli.doctor.reading_aws import read
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer, unfolded
from taskgov_cli.grid import table
from taskgov_cli.output import AsJson, working
from taskgov_cli.preflight import regions
from taskgov_cli.preflight.built import read_built
from taskgov_cli.preflight.checks import Asked, Row, rows
from taskgov_cli.preflight.needs import needs_of
from taskgov_cli.preflight.reading import account_number, read_account
from taskgov_cli.preflight.template import Place, Template, read_template
from taskgov_cli.stack_outputs import DEFAULT_STACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import RenderableType

_NEXT = re.compile(r"\s+(?=[A-Za-z0-9]+=)")
"""Where another parameter begins; a value may have spaces, as `rate(1 hour)` has."""
NO_ACCOUNT = "000000000000"
"""Stands in where the caller's account is not known."""
Overrides = Annotated[
    list[str] | None,
    typer.Option("--parameter-overrides", "-p", metavar="name=value", help="As for `sam deploy`. Repeat."),
]


def preflight(  # noqa: PLR0913 - the options of a command
    backend: Annotated[
        Backend, typer.Option(help="How quotas are written: by the SageMaker API, or to Kueue.")
    ] = Backend.SAGEMAKER,
    overrides: Overrides = None,
    clusters: Annotated[int, typer.Option(min=1, help="How many clusters the stack will govern.")] = 1,
    stack: StackName = DEFAULT_STACK,
    template: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Default: the template of this package.")
    ] = None,
    built: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Output of `sam build`; default: .aws-sam/build beside the template."),
    ] = None,
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Check, before a deployment, whether this account and Region can run the stack. Nothing is written.

    Example: taskgov preflight --backend kueue -p WatchPlainEks=yes -p Architecture=arm64
    """
    with working("examining") as say:
        found = examine(_template(template, overrides or []), backend, clusters, stack, built, say)
    data = {"stack": stack, "backend": backend, "rows": found}
    answer(lambda: data, _shown(found), form, as_json=as_json)
    raise typer.Exit(exit_code(found))


def examine(
    template: Template, backend: Backend, clusters: int, stack: str, built: Path | None, say: Callable[[str], None]
) -> list[Row]:
    """Return every row."""
    needs, services = needs_of(template, clusters), regions.services(template, backend)
    asked = Asked(
        template=template,
        needs=needs,
        stack=stack,
        services=services,
        without_endpoint=regions.without_endpoint(services, template.place.partition, template.place.region),
        built=read_built(built or template.folder / ".aws-sam" / "build"),
    )
    return rows(asked, read_account(template, needs, backend, stack, say))


def _template(path: Path | None, overrides: Iterable[str]) -> Template:
    from taskgov_embedded.deployable import TEMPLATE  # noqa: PLC0415 - beside the package, and imports nothing else

    region = boto3.Session().region_name
    if region is None:
        raise typer.BadParameter("no Region is set; give it with AWS_DEFAULT_REGION or `aws configure`")
    account = read(account_number)
    number = NO_ACCOUNT if isinstance(account, Unknown) else account
    given = dict(_pair(pair) for text in overrides for pair in _NEXT.split(text.strip()) if pair)
    try:
        return read_template(path or TEMPLATE, given, Place(regions.partition_of(region), region, number))
    except InvalidRequestError as error:
        raise typer.BadParameter(str(error)) from error


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text} must be NAME=VALUE", param_hint="--parameter-overrides")
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return name, value[1:-1] if quoted else value


def _shown(found: list[Row]) -> Iterator[RenderableType]:
    shown = [(Text(row.status, style=STYLE[row.status]), row.what, row.needed, row.found) for row in found]
    yield table("Before the deployment", ("", "what", "needed", "found"), shown)
    for row in found:
        if row.remedy:
            yield Text(f"\n{row.what}:", style="bold")
            yield from (unfolded(f"  {line}") for line in row.remedy.splitlines())
    counted = Counter(row.status for row in found)
    said = ", ".join(f"{counted[status]} {status}" for status in Status if counted[status])
    yield Text(f"\npreflight: {said}", style="bold")
