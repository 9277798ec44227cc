"""What the product's modules import, read from their source: inside functions and for types too."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYER = ROOT / "layers/taskgov/python"
WORKSTATION = ROOT / "workstation"


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the product and its syntax tree."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package that its relative imports start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]


def modules_in(*folders: Path) -> dict[str, Module]:
    """Return the modules of the packages in these folders, by their dotted names."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
    assert found, f"no modules in {', '.join(map(str, folders))}"
    return found


def imported(module: Module, known: Mapping[str, Module], *, types_too: bool) -> frozenset[str]:
    """Return the known modules that a module imports by name.

    A name that a package imports for types only, and gives when it is asked for (PEP 562), counts as the module that
    it comes from.
    """
    skipped = frozenset() if types_too else frozenset(_for_types_only(module.tree))
    found: set[str] = set()
    packages: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = _source_of(node, module)
            for alias in node.names:
                found.add(_home(source, alias.name, known))
                packages[alias.asname or alias.name] = f"{source}.{alias.name}"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node not in skipped:
            package = packages.get(node.value.id, "")
            if package in known:
                found.add(_home(package, node.attr, known))
    return frozenset(found & known.keys()) - {module.name}


def _source_of(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    parts = module.package.split(".")
    return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])


def _home(source: str, name: str, known: Mapping[str, Module]) -> str:
    """Return the module that `from source import name` loads."""
    if f"{source}.{name}" in known:
        return f"{source}.{name}"
    package = known.get(source)
    if package is not None and package.path.name == "__init__.py":
        for node in _for_types_only(package.tree):
            if isinstance(node, ast.ImportFrom) and name in {alias.asname or alias.name for alias in node.names}:
                return _source_of(node, package)
    return source


def _for_types_only(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for statement in node.body:
                yield from ast.walk(statement)


def closure(start: Iterable[Module], known: Mapping[str, Module]) -> frozenset[str]:
    """Return the known modules that Python loads for these modules, sooner or later: packages and lazy imports too."""
    reached: set[str] = set()
    to_read = list(start)
    while to_read:
        for name in imported(to_read.pop(), known, types_too=False):
            loaded = {name, *_packages_of(name)} & known.keys()
            to_read += [known[one] for one in loaded - reached]
            reached |= loaded
    return frozenset(reached)


def _packages_of(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name
