"""The protocol of lock, generation and hints, explored within small bounds; `make test-protocol` explores the rest."""

from random import Random

import pytest

from tests.protocol import hunt, mutants
from tests.protocol.explore import Exploration
from tests.protocol.listed import LISTED, OtherProof, SecondLine
from tests.protocol.mutants import every_mutant
from tests.protocol.scenarios import EVERY, FULL, LONG, SMALL, explored
from tests.protocol.state import Scenario
from tests.protocol.world import World
from tests.statemachines.machines import definition

pytestmark = pytest.mark.long

MISSED = {
    "Take the lock: 1. attribute_not_exists(lockOwner) is always met": "takes the lock of",
    "Take the lock: 3. lockExpires < :now is never met": "the lock is left with",
    "Set the lock aside: 3. generation = :generation is always met": "a lost hint",
    "Choose by outcome 1. to 'Is it still so?' always": "nobody has approved it",
    "Release the lock: 2. lockOwner = :me is never met": "has to keep its lock",
    "EndedOwner.of_hint takes a run that lives for one that is over": "the lease of",
    "Table.hold_lock does not compare the owner": "passes the check",
    "ApplyChange.write does not ask for the lock": "two writers",
    "ApplyChange.restore does not ask for the lock": "two writers",
    "ReadSnapshot._read reads the generation last": "should hold",
    "manual_lock.locked asks for no run": "a lost hint",
    "SageMaker: takes a write at any version": "overwrites version",
}
"""Some conditions that are taken away, and what is wrong then; `make test-protocol ARGS=--conditions` takes each."""

SAMPLE = sorted(Random(20261123).sample(sorted(hunt.missed()), 8))  # noqa: S311 - a sample that is always the same
STALE = next(name for name, proof in LISTED.items() if isinstance(proof, SecondLine))


@pytest.mark.parametrize("scenario", SMALL, ids=lambda scenario: scenario.name)
def test_the_protocol_holds_in_every_state(scenario: Scenario) -> None:
    found = explored(scenario)
    assert found.complete
    assert found.wrong is None, str(found)


@pytest.mark.parametrize(("name", "wrong"), MISSED.items(), ids=MISSED)
def test_a_condition_that_is_taken_away_is_missed(name: str, wrong: str) -> None:
    assert wrong in str(hunt.hunted(name).wrong)


@pytest.mark.parametrize("name", SAMPLE)
def test_each_of_a_sample_of_conditions_is_missed(name: str) -> None:
    assert hunt.trouble_with(name) is None


def test_every_condition_is_missed_or_listed_with_what_shows_its_reason() -> None:
    assert hunt.unaccounted() == []
    assert set(hunt.missed().values()) <= set(EVERY)
    assert all(proof.because for proof in LISTED.values())


def test_a_condition_that_stands_behind_another_is_missed_when_both_are_taken_away() -> None:
    assert hunt.trouble_with(STALE) is None


def test_a_condition_that_is_no_longer_missed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(iter(MISSED))
    monkeypatch.setattr(hunt, "missed", lambda: {name: "an execution that is started by hand"})
    assert "it is not missed any more" in str(hunt.trouble_with(name))


def test_a_listed_condition_that_is_missed_after_all_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(iter(MISSED))
    monkeypatch.setitem(LISTED, name, OtherProof("as the test says", "tests/protocol"))
    assert f"{name}: is listed, and is missed" in str(hunt.trouble_with(name))


def test_a_condition_that_is_unknown_and_one_that_is_gone_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    known = hunt.missed()
    new, _ = known.popitem()
    monkeypatch.setattr(hunt, "missed", lambda: known | {"of yesterday": "two hints"})
    assert hunt.unaccounted() == sorted([new, "of yesterday"])


def test_a_proof_that_does_not_fail_without_the_condition_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = OtherProof(
        "as the test says", "tests/protocol/test_protocol.py::test_scenarios_and_conditions_are_distinguished"
    )
    monkeypatch.setitem(LISTED, STALE, nothing)
    assert "does not fail without it" in str(hunt.trouble_with(STALE))


def test_what_is_wrong_is_reported_step_by_step() -> None:
    found = hunt.hunted("Take the lock: 3. lockExpires < :now is never met")
    lines = str(found).splitlines()
    assert lines[1].startswith("WRONG: ")
    assert lines[2] == "  1 fact 1 comes about, with its event"
    assert lines[-1].endswith("all is quiet")


def test_a_bound_ends_an_exploration_and_is_said() -> None:
    found = Exploration(World(definition("reconcile"), SMALL[0]), most=20).run()
    assert (found.complete, "up to its bound" in str(found)) == (False, True)


def test_scenarios_and_conditions_are_distinguished() -> None:
    assert len(EVERY) == len((*SMALL, *FULL, *LONG))
    names = [one.name for one in every_mutant()]
    assert len(set(names)) == len(names)


def test_every_choice_that_is_passed_over_exists() -> None:
    assert definition("reconcile")["States"].keys() >= mutants.PASSED_OVER
