"""What is where in a source file: functions, annotations, and which lines differ between two versions."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.mutants.mutation import Mutation

MODULE = "(module)"
REMOVED = "(removed)"
TOUCHED = "__touched__"
"""The set in `builtins` that collects the functions which a test calls."""


@dataclass(frozen=True, slots=True)
class Span:
    """The lines of a function or class, decorators included, first and last counted from 1."""

    name: str
    first: int
    last: int
    is_function: bool


class Source:
    """A parsed source file."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self._tree = ast.parse(text)
        self.spans = tuple(_spans(self._tree, ""))
        self._types = tuple(_types(self._tree))

    def holder(self, line: int) -> Span:
        """Return the innermost function or class around a line, or the whole module."""
        around = [span for span in self.spans if span.first <= line <= span.last]
        return max(around, key=lambda span: span.first, default=Span(MODULE, 1, len(self.lines), is_function=False))

    def is_only_for_types(self, line: int, column: int) -> bool:
        """Whether a place is in an annotation, or is a condition on `TYPE_CHECKING`: no test can tell."""
        return any(first <= (line, column) < last for first, last in self._types)

    def mutation(self, file: str, mutated: str) -> Mutation:
        """Name the change from this text to `mutated`."""
        before, after, first = _difference(self.lines, mutated.splitlines())
        span = self.holder(first + 1)
        like = [number for number in range(span.first, span.last + 1) if self.lines[number - 1] == self.lines[first]]
        nth = like.index(first + 1) + 1
        return Mutation(file, span.name, before, after, nth)


def instrumented(text: str, file: str) -> str:
    """Return the source with a first statement in each function that notes `file::function` in `__touched__`."""
    tree = ast.parse(text)
    for name, node in _definitions(tree, ""):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            has_docstring = ast.get_docstring(node, clean=False) is not None
            note = ast.parse(f"{TOUCHED}.add({f'{file}::{name}'!r})").body[0]
            node.body.insert(1 if has_docstring else 0, note)
    return ast.unparse(ast.fix_missing_locations(tree))


def _definitions(
    node: ast.AST, prefix: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield f"{prefix}{child.name}", child
            yield from _definitions(child, f"{prefix}{child.name}.")
        else:
            yield from _definitions(child, prefix)


def _spans(tree: ast.Module, prefix: str) -> Iterator[Span]:
    for name, node in _definitions(tree, prefix):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        yield Span(name, first, node.end_lineno or first, is_function=not isinstance(node, ast.ClassDef))


def _types(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for node in ast.walk(tree):
        found: ast.expr | None = None
        match node:
            case ast.arg(annotation=found) | ast.AnnAssign(annotation=found):
                pass
            case ast.FunctionDef(returns=found) | ast.AsyncFunctionDef(returns=found):
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING") as found):
                pass
            case _:
                pass
        if found is not None and found.end_lineno is not None and found.end_col_offset is not None:
            yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)


def _difference(before: list[str], after: list[str]) -> tuple[str, str, int]:
    """Return the lines that differ, joined, and the index of the first."""
    same = next((index for index, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), None)
    start = min(len(before), len(after)) if same is None else same
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    while not before[start].strip() and start < len(before) - end - 1:
        start += 1
    return _joined(before[start : len(before) - end]), _joined(after[start : len(after) - end]) or REMOVED, start


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(line.split()) for line in lines)
