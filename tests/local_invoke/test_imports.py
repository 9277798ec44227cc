"""Imports inside of functions are found when they run: in a layer that lacks the package, at the worst moment."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "layers" / "taskgov" / "python" / "taskgov"
OF_SOME_FUNCTIONS = {"kubernetes": PACKAGE / "adapters", "jinja2": PACKAGE / "audit"}
"""Packages that only some functions' layers bring, and the one room that may import them."""


def imported(path: Path) -> set[str]:
    """Return the packages that a module imports anywhere, in functions too, but not for type checkers only."""
    tree = ast.parse(path.read_text())
    for_types = {
        one
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for one in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_packages_that_not_every_function_has_are_imported_in_one_room_only() -> None:
    strays = [
        f"{path.relative_to(PACKAGE)} imports {package}"
        for path in PACKAGE.rglob("*.py")
        for package in imported(path) & OF_SOME_FUNCTIONS.keys()
        if not path.is_relative_to(OF_SOME_FUNCTIONS[package])
    ]
    assert strays == []


def test_an_import_inside_of_a_function_is_seen(tmp_path: Path) -> None:
    module = tmp_path / "one.py"
    module.write_text("def f():\n    from kubernetes.utils import quantity\n    import yaml.nodes\n")
    assert imported(module) == {"kubernetes", "yaml"}
