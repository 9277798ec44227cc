"""Make the mutants with Cosmic Ray, in the tool's own environment: `python -m tests.mutants.tool FILE...`.

Prints JSON: how many mutations the tool can make of how many functions, and the sample with its source texts. Nothing
here, or in what it imports, needs the product's packages; and as pytest looks for examples here, nothing needs the tool
before a function is called.
"""

import json
import sys
import warnings
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.mutants.mutation import Mutant
from tests.mutants.sample import Spot, drawn
from tests.mutants.source import Source


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the sample of the files."""
    parser = ArgumentParser(prog="python -m tests.mutants.tool")
    parser.add_argument("files", type=Path, nargs="+", help="their names without folders are unique")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args(arguments)
    texts = {path.name: path.read_text(encoding="utf-8") for path in given.files}
    spots = [spot for name, text in texts.items() for spot in _spots(name, text)]
    mutants = list(_mutants(texts, drawn(spots, given.seed), given.count))
    found = {
        "mutations": len(spots),
        "functions": len({(spot.file, spot.function) for spot in spots}),
        "mutants": [asdict(mutant) for mutant in mutants],
    }
    json.dump(found, sys.stdout)
    return 0


def _spots(file: str, text: str) -> Iterator[Spot]:
    from cosmic_ray.ast import ast_nodes, get_ast

    source = Source(text)
    nodes = list(ast_nodes(get_ast(text)))
    places: dict[str, dict[Any, int]] = defaultdict(dict)
    for name, operator in _operators():
        occurrence = -1
        again: dict[Any, int] = defaultdict(int)
        for node in nodes:
            for start, end in operator.mutation_positions(node):
                occurrence += 1
                if source.is_only_for_types(*start) or _is_in_signature(node):
                    continue
                function = source.holder(start[0]).name
                place = places[function].setdefault((start, end), len(places[function]))
                again[start, end] += 1
                yield Spot(file, function, place, f"{name}:{again[start, end]}", occurrence, start[0])


def _mutants(texts: dict[str, str], spots: Iterator[Spot], count: int) -> Iterator[Mutant]:
    """Return the first mutants that are Python and differ."""
    from cosmic_ray.mutating import mutate_code

    operators = dict(_operators())
    seen: set[tuple[str, str]] = set()
    for spot in spots:
        if len(seen) == count:
            return
        text = texts[spot.file]
        mutated = mutate_code(text, operators[spot.change.rpartition(":")[0]], spot.occurrence)
        if mutated is None or (spot.file, mutated) in seen or not _is_python(mutated):
            continue
        seen.add((spot.file, mutated))
        source = Source(text)
        is_imported = not source.holder(spot.line).is_function
        yield Mutant(source.mutation(spot.file, mutated), mutated, is_imported)


def _operators() -> Iterator[tuple[str, Any]]:
    import cosmic_ray.plugins

    for name in sorted(cosmic_ray.plugins.operator_names()):
        operator = cosmic_ray.plugins.get_operator(name)
        if not operator.arguments():  # two want the names of variables
            yield name, operator()


def _is_in_signature(node: Any) -> bool:
    """Whether it is the `*` before keyword arguments, which the tool takes for a product."""
    return node.parent is not None and node.parent.type == "parameters"


def _is_python(text: str) -> bool:
    """Whether it compiles without a warning (such as about `is` with a literal): pytest makes errors of warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            compile(text, "mutant", "exec")
        except (SyntaxError, ValueError):
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
