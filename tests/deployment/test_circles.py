"""No module imports another that imports it: not inside functions, and not for types only."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from tests.support.imports import LAYER, WORKSTATION, imported, modules_in


def circles(imports: Mapping[str, AbstractSet[str]]) -> list[tuple[str, ...]]:
    """Return the groups of modules that reach one another, by name."""
    reached = {name: _reached(name, imports) for name in imports}
    groups = {tuple(sorted(other for other in found if name in reached[other])) for name, found in reached.items()}
    return sorted(group for group in groups if group)


def _reached(name: str, imports: Mapping[str, AbstractSet[str]]) -> AbstractSet[str]:
    found: set[str] = set()
    to_read = [name]
    while to_read:
        new = imports[to_read.pop()] - found
        found |= new
        to_read += new
    return found


def test_no_modules_import_one_another() -> None:
    product = modules_in(LAYER, WORKSTATION)
    found = circles({name: imported(module, product, types_too=True) for name, module in product.items()})
    assert found == []


def test_a_circle_is_found_and_a_way_that_ends_is_none() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str](), "e": {"a"}}
    assert circles(imports) == [("b", "c")]
