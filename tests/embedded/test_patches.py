"""What the stack replaces in other packages: each name with its reason, put back when it closes, and few of them."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import time
from importlib.metadata import version
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from moto.backends import get_backend

from taskgov_embedded.aws_api import moto_routes
from taskgov_embedded.aws_api.patches import Patches
from taskgov_embedded.cloudwatch import emf
from taskgov_embedded.functions import process
from taskgov_embedded.stack import Stack
from taskgov_embedded.stepfunctions import machine_roles

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "embedded-stack.md"
MOST = 21
OF_OTHERS = ("moto.", "botocore.", "boto3.")
ROW = re.compile(r"^\| `([\w.]+)` \| (.+) \| (.+) \|$", re.MULTILINE)


def _replaced(app: Path) -> dict[str, str]:
    with Stack(app) as stack:
        return dict(stack.patches.reasons)


def test_names_of_moto_and_botocore_that_are_replaced_are_few_and_on_the_page_with_their_reasons(app: Path) -> None:
    replaced = {name: why for name, why in _replaced(app).items() if name.startswith(OF_OTHERS)}
    assert len(replaced) <= MOST
    assert {name: why for name, why, _ in ROW.findall(PAGE.read_text())} == replaced


def test_they_are_made_for_these_versions() -> None:
    assert version("moto") == "5.2.5"
    assert version("aws-sam-translator") == "1.115.0"
    assert version("jsonata-python") == "0.7.1"


def test_all_of_them_are_put_back(app: Path) -> None:
    with Stack(app) as stack:
        names = list(stack.patches.reasons)
    before = [_found(name) for name in names]
    with Stack(app):
        during = [_found(name) for name in names if not name.startswith("moto.cloudformation")]
    assert len(during) == len(names) - 3
    assert not set(map(id, during)) & set(map(id, before))
    assert [_found(name) for name in names] == before


@pytest.mark.parametrize(("owner", "name"), [(process, "install"), (emf, "install"), (machine_roles, "check")], ids=str)
def test_a_stack_that_cannot_open_puts_all_of_them_back(
    app: Path, monkeypatch: pytest.MonkeyPatch, owner: ModuleType, name: str
) -> None:
    with Stack(app) as stack:
        names = list(stack.patches.reasons)
    own = getattr(owner, name)

    def fail(*about: Any) -> None:
        own(*about)
        raise ZeroDivisionError

    monkeypatch.setattr(owner, name, fail)
    before, variables, began = [_found(name) for name in names], dict(os.environ), time.time()
    with pytest.raises(ZeroDivisionError):
        Stack(app).open()
    assert [_found(name) for name in names] == before
    assert dict(os.environ) == variables
    assert abs(time.time() - began) < 600, "the clock is the process's own"
    monkeypatch.undo()
    with Stack(app):
        pass


def test_a_second_stack_in_one_process_does_what_the_first_did(app: Path) -> None:
    def played() -> tuple[list[str], list[str], list[str]]:
        with Stack(app) as stack:
            stack.start_execution("Machine", {"name": "x", "parts": ["a", "b"]})
            stack.run_until_quiet()
            stack.advance(120)
            return (
                [str(moment) for moment in stack.timeline],
                list(map(repr, stack.calls)),
                list(map(repr, stack.results)),
            )

    first = played()
    assert all(first)
    assert '"cold_start":true' in first[2][0]
    assert played() == first


def test_nothing_else_in_the_embedded_stack_sets_an_attribute_of_moto_or_botocore() -> None:
    """Neither by an assignment nor by setattr; `Patches` alone does it."""
    found = []
    for file in sorted((ROOT / "workstation" / "taskgov_embedded").rglob("*.py")):
        tree = ast.parse(file.read_text())
        theirs = {name for node in ast.walk(tree) for name in _imported_of_others(node)}
        found += [f"{file.name}: {name}" for node in ast.walk(tree) for name in _set(node) if name in theirs]
    assert found == []


def test_the_check_above_finds_both_ways() -> None:
    tree = ast.parse("import boto3\nfrom moto.sqs.models import Queue\nQueue.a = 1\nsetattr(boto3, 'b', 2)")
    assert {name for node in ast.walk(tree) for name in _imported_of_others(node)} == {"boto3", "Queue"}
    assert {name for node in ast.walk(tree) for name in _set(node)} == {"boto3", "Queue"}


def _imported_of_others(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from ((one.asname or one.name).split(".")[0] for one in names if f"{one.name}.".startswith(OF_OTHERS))
        case ast.ImportFrom(module=str(module), names=names) if f"{module}.".startswith(OF_OTHERS):
            yield from (one.asname or one.name for one in names)
        case _:
            return


def _set(node: ast.AST) -> Iterator[str]:
    """Yield the name whose attribute a statement sets."""
    match node:
        case ast.Assign(targets=targets):
            owners = [target.value for target in targets if isinstance(target, ast.Attribute)]
        case ast.Call(func=ast.Name(id="setattr"), args=[owner, *_]):
            owners = [owner]
        case _:
            return
    for owner in owners:
        yield ast.unparse(owner).split(".")[0]


def _found(name: str) -> Any:
    """Return what a name with its module stands for."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            owner: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:-1]:
            owner = getattr(owner, part)
        return inspect.getattr_static(owner, parts[-1])
    raise AssertionError(f"no module has {name}")


def test_what_is_replaced_within_a_body_is_put_back_at_its_end() -> None:
    owner, patches = ModuleType("owner"), Patches()
    owner.a, owner.b = 1, 2  # type: ignore[attr-defined]
    patches.replace(owner, "a", 10, "for the test")
    with patches.within():
        patches.replace(owner, "a", 11, "again")
        patches.replace(owner, "b", 12, "for the test")
    assert vars(owner) | {"a": 10, "b": 2} == vars(owner)
    patches.undo()
    assert vars(owner) | {"a": 1, "b": 2} == vars(owner)
    assert patches.reasons == {"owner.a": "again", "owner.b": "for the test"}


def test_a_name_that_is_not_there_is_not_replaced() -> None:
    with pytest.raises(AttributeError):
        Patches().replace(SimpleNamespace(__name__="owner"), "gone", 1, "for the test")


@pytest.mark.parametrize(
    ("service", "url"),
    [
        ("s3", "https://bucket.s3.amazonaws.com/a/key?versioning"),
        ("dynamodb", "https://dynamodb.us-east-1.amazonaws.com/"),
        ("scheduler", "https://scheduler.us-east-1.amazonaws.com/schedules/one?groupName=a"),
        ("events", "https://events.us-east-1.amazonaws.com/"),
    ],
)
def test_a_url_is_answered_by_the_function_that_moto_itself_would_choose(service: str, url: str) -> None:
    backend = get_backend(service)["123456789012"]["aws" if service == "s3" else "us-east-1"]
    own = next(handler for pattern, handler in backend.urls.items() if re.match(pattern, url.partition("?")[0]))
    assert moto_routes.handler_of(url.partition("?")[0]) == own


def test_a_url_that_is_nothing_of_moto_s_is_not_answered() -> None:
    assert moto_routes.answer_of_moto("https://nothing.example.org/", SimpleNamespace()) is None
