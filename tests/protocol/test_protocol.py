"""The protocol of lock, generation and hints, explored within small bounds; `make test-protocol` explores the rest."""

import pytest

from tests.protocol import mutants
from tests.protocol.explore import Exploration
from tests.protocol.hunt import hunted_by_name
from tests.protocol.listed import LISTED
from tests.protocol.mutants import every_mutant
from tests.protocol.scenarios import FULL, LONG, SMALL, explored
from tests.protocol.state import Scenario
from tests.protocol.world import World
from tests.statemachines.interpreter import definition

MISSED = {
    "Take the lock: 1. attribute_not_exists(lockOwner) is always met": "takes the lock of",
    "Take the lock: 3. lockExpires < :now is always met": "takes the lock of",
    "Take the lock: 3. lockExpires < :now is never met": "the lock is left with",
    "Set the lock aside: 3. generation = :generation is always met": "a lost hint",
    "Take the lock: 4. attribute_not_exists(lockExpires) is never met": "the lock is left with",
    "Table.hold_lock extends a lease that was ended": "the lock is left with",
    "EndedOwner.of_execution leaves the lock of a run that is over": "the lock is left with",
    "EndedOwner.of_hint takes a run that lives for one that is over": "the lease of",
    "Lock.is_held takes an expired lock for a lock": "the lock is left with",
    "ApplyChange.one does not ask for the lock": "two writers",
    "ReadSnapshot._read reads the generation last": "should hold",
    "manual_lock.locked asks for no run": "a lost hint",
    "manual_lock: taking, lockOwner = :me is never met": "the lock is",
    "SageMaker: takes a write at any version": "overwrites version",
}
"""Conditions that are taken away, and what is wrong then; `make test-protocol` takes each one away."""


@pytest.mark.parametrize("scenario", SMALL, ids=lambda scenario: scenario.name)
def test_the_protocol_holds_in_every_state(scenario: Scenario) -> None:
    found = explored(scenario)
    assert found.complete
    assert found.wrong is None, str(found)


@pytest.mark.parametrize(("name", "wrong"), MISSED.items(), ids=MISSED)
def test_a_condition_that_is_taken_away_is_missed(name: str, wrong: str) -> None:
    found = hunted_by_name(name)
    assert found is not None
    assert wrong in str(found.wrong)


def test_what_is_wrong_is_told_step_by_step() -> None:
    found = hunted_by_name("Take the lock: 1. attribute_not_exists(lockOwner) is always met")
    lines = str(found).splitlines()
    assert lines[1].startswith("WRONG: ")
    assert lines[2] == "  1 fact 1 comes about, with its event"
    assert lines[-1].endswith("Take the lock")


def test_a_bound_ends_an_exploration_and_is_said() -> None:
    found = Exploration(World(definition("reconcile"), SMALL[0]), most=20).run()
    assert (found.complete, "up to its bound" in str(found)) == (False, True)


def test_every_condition_that_is_listed_exists_and_has_its_reason() -> None:
    names = [one.name for one in every_mutant()]
    assert len(set(names)) == len(names)
    assert set(LISTED) <= set(names)
    assert all(LISTED.values())
    assert not set(LISTED) & set(MISSED)


def test_scenarios_are_told_apart() -> None:
    names = [one.name for one in (*SMALL, *FULL, *LONG)]
    assert len(set(names)) == len(names)


def test_every_choice_that_is_passed_over_exists() -> None:
    assert definition("reconcile")["States"].keys() >= mutants.PASSED_OVER
