"""Is each condition missed when it is taken away? What shows it is on file, so that it need not be looked for again.

`missed.json` has, for each condition, the scenario in which the explorer finds what is wrong soonest. The others are in
`listed.py`, with what shows that the protocol does not need them.
"""

import json
import os
import re
import warnings
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import pytest

from tests.protocol.explore import Explored
from tests.protocol.listed import LISTED, OtherProof, SecondLine
from tests.protocol.mutants import Mutant, every_mutant, mutant_of, together
from tests.protocol.scenarios import EVERY, SMALL
from tests.protocol.state import Scenario

ROOT: Final = Path(__file__).parents[2]
FILE: Final = Path(__file__).with_name("missed.json")
MOST: Final = 20_000
"""States to which a scenario is explored for a condition that is taken away."""


def missed() -> dict[str, str]:
    """Return the scenario that shows each condition, by the condition's name."""
    known: dict[str, str] = json.loads(FILE.read_text())
    return known


def unaccounted() -> list[str]:
    """Return the conditions that are neither on file nor listed, are both, or are there no more."""
    names, known = {one.name for one in every_mutant()}, missed()
    return sorted((names ^ (known.keys() | LISTED.keys())) | (known.keys() & LISTED.keys()))


def hunted(name: str) -> Explored:
    """Return what the explorer finds with a condition changed, in the scenario on file."""
    return mutant_of(name).explored(EVERY[missed()[name]], MOST)


def trouble_with(name: str) -> str | None:
    """Say what is not as the files have it with a condition: it is not missed, or is missed and listed."""
    proof = LISTED.get(name)
    if proof is None:
        found = hunted(name)
        return None if found.wrong else f"{name}: taken away, it is not missed any more ({found})"
    stale = first_wrong(mutant_of(name), (*SMALL, EVERY[proof.scenario]) if isinstance(proof, SecondLine) else SMALL)
    if stale is not None:
        return f"{name}: is listed, and is missed: {stale}"
    if isinstance(proof, SecondLine):
        alone = mutant_of(proof.other).explored(EVERY[proof.scenario], MOST)
        if alone.wrong:
            return f"{name}: {proof.other!r} is missed by itself there: {alone}"
        both = together(mutant_of(name), mutant_of(proof.other)).explored(EVERY[proof.scenario], MOST)
        return None if both.wrong else f"{name}: taken away together with {proof.other!r}, it is not missed ({both})"
    return _not_failed(name, proof)


def first_wrong(mutant: Mutant, scenarios: tuple[Scenario, ...], most: int = MOST) -> Explored | None:
    """Return what is wrong with a mutant in the first scenario that shows it; None: nothing."""
    for scenario in scenarios:
        found = mutant.explored(scenario, most)
        if found.wrong is not None:
            return found
    return None


def soonest(name: str) -> str | None:
    """Look for the scenario that shows a condition with the fewest states, among all; None: there is none."""
    for most in (100, 1_000, 10_000):
        found = first_wrong(mutant_of(name), tuple(EVERY.values()), most)
        if found is not None:
            return found.scenario
    return None


def _not_failed(name: str, proof: OtherProof) -> str | None:
    """Say that the test which is to fail with the condition changed does not.

    It runs in a process forked from this one, which has imported already what takes long.
    """
    with TemporaryFile("w+") as told:
        child = get_context("fork").Process(target=_test, args=(name, proof.test, told.fileno()))
        child.start()
        child.join()
        told.seek(0)
        said = told.read()[-2000:]
        # The last line as well: a process that dies of an exception ends with the same code.
        if child.exitcode == pytest.ExitCode.TESTS_FAILED and re.search(r"^\d+ failed", said, re.MULTILINE):
            return None
    return f"{name}: {proof.test} does not fail without it (exit code {child.exitcode}):\n{said}"


def _test(name: str, test: str, told: int) -> None:
    for stream in (1, 2):
        os.dup2(told, stream)
    os.chdir(ROOT)
    warnings.simplefilter("ignore")  # those of the test that this process was forked in are errors
    options = ("-q", "-x", "-p", "no:cacheprovider", "-p", "tests.protocol.mutated", "--condition", name)
    os._exit(int(pytest.main([*options, test])))
