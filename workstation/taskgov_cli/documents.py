"""Policy documents on the command line: what is wrong with one, and a snapshot as if one were in force."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import RenderableType
from rich.text import Text

from taskgov.number_text import counted
from taskgov.policy.parse import ParsedPolicy, parse_policy
from taskgov.snapshot.model import Snapshot
from taskgov.violations import Violation
from taskgov_cli.form import Form
from taskgov_cli.formats import Format, answer
from taskgov_cli.grid import table
from taskgov_cli.output import NO, OK, AsJson, console, findings_table

STDIN: Final = "-"


def there(files: list[Path]) -> list[Path]:
    """Return the documents of a command line: files that exist, and `-` for standard input, once.

    Raises `typer.BadParameter`. Typer's own `exists` refuses `-` for paths.
    """
    if missing := [str(file) for file in files if str(file) != STDIN and not file.exists()]:
        raise typer.BadParameter(f"file {missing[0]!r} does not exist")
    if sum(str(file) == STDIN for file in files) > 1:
        raise typer.BadParameter(f"{STDIN!r}: standard input can be read once")
    return files


def body_of(file: Path) -> bytes:
    """Return what a file holds; `-` is standard input."""
    return sys.stdin.buffer.read() if str(file) == STDIN else file.read_bytes()


def as_data(read: Sequence[tuple[Path, ParsedPolicy]]) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the answer for programs: an object for one document, a list of objects with their files for several."""
    answers = [_as_data(parsed) for _, parsed in read]
    return (
        answers[0]
        if len(read) == 1
        else [{"file": str(file)} | data for (file, _), data in zip(read, answers, strict=True)]
    )


def _as_data(parsed: ParsedPolicy) -> dict[str, Any]:
    return {
        "valid": not parsed.violations,
        "violations": parsed.violations,
        "warnings": parsed.warnings,
    }


def shown(file: Path, parsed: ParsedPolicy) -> Iterator[RenderableType]:
    """Return the answer for people."""
    name = "standard input" if str(file) == STDIN else str(file)
    yield from _broken(name, parsed.violations)
    if not parsed.violations:
        yield Text.assemble((name, "bold"), " is a valid policy document", style="green")
    yield findings_table(parsed.warnings)


def _broken(name: Path | str, violations: Sequence[Violation]) -> Iterator[RenderableType]:
    rows = [(violation.path, violation.value, violation.rule) for violation in violations]
    yield table(f"{name} breaks {counted(len(rows), 'rule')}", ("where", "value", "rule"), rows)


def in_force(snapshot: Snapshot, file: Path) -> Snapshot:
    """Return the snapshot as if this document were the cluster's. Raises `typer.BadParameter` for another cluster's."""
    body = file.read_bytes()
    parsed = parse_policy(body)
    named = None if parsed.document is None else parsed.document.cluster
    if named is not None and named.arn != snapshot.cluster.arn:
        raise typer.BadParameter(f"{file}: cluster.arn is {named.arn}, but the cluster is {snapshot.cluster.arn}")
    if named is not None and named.name != snapshot.cluster.name:
        raise typer.BadParameter(f"{file}: cluster.name is {named.name}, but {named.arn} is {snapshot.cluster.name}")
    return replace(
        snapshot,
        policy=parsed.document,
        policy_version=sha256(body).hexdigest()[:12],
        policy_violations=parsed.violations,
        policy_findings=parsed.warnings,
    )


def valid_in_force(snapshot: Snapshot, file: Path) -> Snapshot:
    """Do as `in_force`. End the command with exit code 1 and the violations for a document that breaks rules."""
    found = in_force(snapshot, file)
    if found.policy_violations:
        for part in _broken(file, found.policy_violations):
            console(stderr=True).print(part)
        raise typer.Exit(NO)
    return found


def validate(
    policies: Annotated[
        list[Path],
        typer.Argument(
            dir_okay=False,
            callback=there,
            metavar="POLICY...",
            help="Policy documents, YAML or JSON; - is standard input.",
        ),
    ],
    *,
    form: Format = Form.TABLE,
    as_json: AsJson = False,
) -> None:
    """Check policy documents; report every violation at once, with path, value and rule.

    As JSON, one document is an object, and several are a list of objects with their file.

    Example: taskgov validate ml-cluster.yaml
    """
    read = [(file, parse_policy(body_of(file))) for file in policies]
    parts = [part for file, parsed in read for part in shown(file, parsed)]
    answer(lambda: as_data(read), parts, form, as_json=as_json)
    raise typer.Exit(NO if any(parsed.violations for _, parsed in read) else OK)
