"""A variable is the noun that it stands for: `queue`, `team`, `finding`, never `one` or `each`."""

import ast
from collections.abc import Iterator

import pytest

from tests.support.imports import LAYER, ROOT, WORKSTATION, modules_in

NO_NOUNS = {"one", "each"}


def _without_noun(tree: ast.Module) -> Iterator[int]:
    """Yield the line of every variable and argument that is named by no noun."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in NO_NOUNS:
                yield node.lineno


@pytest.mark.parametrize(
    "text",
    [
        "for one in teams: pass",
        "names = [each.name for each in teams]",
        "key = lambda one: one.name",
        "def same(one, other): ...",
        "each = 1",
    ],
)
def test_variables_and_arguments_are_looked_at(text: str) -> None:
    assert list(_without_noun(ast.parse(text))) == [1]


def test_a_variable_is_a_noun() -> None:
    modules = modules_in(LAYER, WORKSTATION, ROOT / "functions")
    found = [
        f"{module.path.relative_to(ROOT)}:{line}" for module in modules.values() for line in _without_noun(module.tree)
    ]
    assert found == [], "name it for what it holds"
