"""The layer holds what runs: each of its modules is imported by a handler, sooner or later."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.imports import LAYER, ROOT, Module, closure, modules_in

NOT_REACHED: Mapping[str, str] = {}
"""Modules of the layer that no handler imports, each with its reason."""


def handlers() -> list[Module]:
    found = list(modules_in(ROOT / "functions").values())
    assert len(found) == len(list((ROOT / "functions").iterdir()))
    return found


def test_a_handler_imports_each_module_of_the_layer() -> None:
    layer = modules_in(LAYER)
    unreached = layer.keys() - closure(handlers(), layer)
    assert sorted(unreached - NOT_REACHED.keys()) == [], (
        "what only a person's machine runs belongs in workstation/, what only tests need in tests/"
    )
    assert sorted(NOT_REACHED.keys() - unreached) == [], "a handler imports it now: take it off the list"


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
