"""Plans of random worlds, and of the worlds that once failed, are proven; worlds are the same from the same seed."""

from pathlib import Path

import pytest

from benchmarks.worlds import world, write_worlds
from benchmarks.worlds_draw import FAMILIES
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from tests.prove.proof import prove, prove_file

SEED = 2026
SAMPLE = 135
"""Fifteen worlds of each family."""
STORED = Path(__file__).parents[3] / "shared" / "plan-worlds"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_plans_of_random_worlds_are_proven(family: str) -> None:
    failures = {}
    for number in range(SAMPLE // len(FAMILIES)):
        found = prove(world(family, SEED, number))
        if found:
            failures[f"{family}-{SEED}-{number}"] = found
    assert failures == {}


@pytest.mark.skipif(not STORED.is_dir(), reason="the stored worlds are not beside this checkout")
def test_the_plans_of_the_stored_worlds_are_proven() -> None:
    files = sorted(STORED.glob("*.json"))
    assert len(files) > 0
    assert {path.name: found for path in files if (found := prove_file(path))} == {}


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (write_worlds(tmp_path / name, seed=5, count=len(FAMILIES) * 2) for name in ("one", "two"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert {path.name.split("-")[0] for path in first} == set(FAMILIES)


def test_a_world_survives_its_bytes() -> None:
    for family in FAMILIES:
        drawn = world(family, 7, 1)
        assert snapshot_from_json(snapshot_to_json(drawn)) == drawn


def test_worlds_have_running_waiting_and_leaving_work() -> None:
    states = set()
    for number in range(60):
        for item in world("path", 11, number).kueue.workloads:
            conditions = {each["type"]: each["status"] for each in (item.get("status") or {}).get("conditions", ())}
            held = bool((item.get("status") or {}).get("admission"))
            states.add((held, conditions.get("Evicted") == "True"))
    assert {(True, False), (False, False), (True, True)} <= states
