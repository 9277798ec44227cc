"""The layer holds what runs: each of its modules is imported by a handler, sooner or later."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.imports import LAYER, ROOT, Module, closure, modules_in


def handlers() -> list[Module]:
    found = list(modules_in(ROOT / "functions").values())
    assert len(found) == len(list((ROOT / "functions").iterdir()))
    return found


def test_a_handler_imports_each_module_of_the_layer() -> None:
    layer = modules_in(LAYER)
    unreached = layer.keys() - closure(handlers(), layer)
    assert sorted(unreached) == [], (
        "what only a person's machine runs belongs in workstation/, what only tests need in tests/"
    )


def test_what_a_function_imports_late_is_reached(tmp_path: Path) -> None:
    sources = {
        "app.py": "import house.hall\n",
        "house/__init__.py": "",
        "house/hall.py": "def open_door():\n    from house import rooms\n    return rooms.Bed()\n",
        "house/rooms/__init__.py": (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
            "    from house.rooms.bed import Bed\n    from house.rooms.shed import Tool\n"
        ),
        "house/rooms/bed.py": "from ..linen import SHEET\n",
        "house/rooms/shed.py": "",
        "house/linen.py": "",
    }
    for name, source in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    house = modules_in(tmp_path)
    handler = house.pop("app")
    assert house.keys() - closure([handler], house) == {"house.rooms.shed"}


USED_ELSEWHERE: Mapping[str, str] = {
    "taskgov.allocation.codec.plan_to_json": "what a later release stores; read already, made by tests",
    "taskgov.snapshot.codec.snapshot_to_json": "the same of snapshots, and what `taskgov snapshot` writes",
    "taskgov.allocation.planner.row_sources": "the sources of a plan's numbers; `taskgov explain` shows them",
    "taskgov.allocation.projection.model_of": "the model as a plan's path begins with it; explanations ask it",
    "taskgov.estimates.drawing.waits_of": "the waits of one job alone, by which the method is measured",
    "taskgov.usage.cluster_usage.leading_usage": "the usage that tables of `taskgov status` show",
    "taskgov.work.standing.whole_ones": "plays back what is kept as changes, for readers of the record of work",
    "taskgov.hyperpod.names.namespace_of_local_queue": "the inverse of `local_queue_of`, beside it",
}
"""Functions and classes that nothing in the layer names, each with why they stand there."""


def test_the_layer_uses_each_function_and_class_of_its_own() -> None:
    modules = [*modules_in(LAYER).values(), *handlers()]
    named = {name for module in modules for name in _named(module)}
    defined = {
        f"{module.name}.{node.name}": node.name
        for module in modules_in(LAYER).values()
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__")
    }
    unused = {place for place, name in defined.items() if name not in named}
    assert sorted(unused ^ USED_ELSEWHERE.keys()) == []


def _named(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # a type that is named before it is defined
