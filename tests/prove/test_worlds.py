"""Plans of random worlds, and of the worlds that once failed, are proven; worlds are the same from the same seed."""

from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from benchmarks.worlds import world, write_worlds
from benchmarks.worlds_draw import FAMILIES
from taskgov.policy.measured import Unit
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from tests.prove.proof import prove, prove_file

SEED = 2026
SAMPLE = 165
"""Fifteen worlds of each family."""
STORED = Path(__file__).parents[3] / "shared" / "plan-worlds"


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_the_plans_of_random_worlds_are_proven(family: str) -> None:
    failures = {}
    for number in range(SAMPLE // len(FAMILIES)):
        found = prove(world(family, SEED, number))
        if found:
            failures[f"{family}-{SEED}-{number}"] = found
    assert failures == {}


@pytest.mark.long
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


def test_worlds_have_shares_and_leases_in_every_unit() -> None:
    """The rims, too: percentages that are nearly 100, leases to the pool, in part, and of a type without nodes."""
    shares, leases, sums, without_nodes = set(), set(), set(), 0
    for number in range(150):
        drawn = world("portions", 3, number)
        assert drawn.policy is not None
        by_type: dict[str, Fraction] = {}
        for share in (share for team in drawn.policy.teams for share in team.share):
            shares.add((share.unit, share.weight is None))
            percent = Fraction(str(share.percent or 0))
            by_type[share.instance_type] = by_type.get(share.instance_type, Fraction(0)) + percent
        sums |= set(by_type.values())
        types = {node.instance_type for node in drawn.nodes}
        for lease in drawn.policy.leases:
            leases.add((lease.unit, lease.partial, lease.to == "shared-pool"))
            without_nodes += lease.instance_type not in types
    assert shares == set(product(Unit, (True, False)))
    assert {partial for _, partial, _ in leases} == {True, False}
    assert {unit for unit, _, _ in leases} == set(Unit)
    assert any(to_pool for _, _, to_pool in leases)
    assert without_nodes
    assert {Fraction("99.99"), Fraction("100.05")} <= sums


def test_past_leases_are_recorded_in_their_units() -> None:
    records = [each.leased for number in range(120) for each in world("portions", 3, number).applied if each.leased]
    places = {place for leased in records for place in leased}
    assert any(" " in place for place in places)
    assert any(" " not in place for place in places)
