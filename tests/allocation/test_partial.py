"""A plan beyond a limit is cut back to it, stays consistent, and reaches its goal step by step."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from taskgov.allocation.goals import wanted_goals
from taskgov.allocation.governed import select_governed
from taskgov.allocation.leases import Given
from taskgov.allocation.partial import hold_back
from taskgov.hyperpod.model import ComputeQuotaTarget
from taskgov.policy.measured import Lease
from taskgov.snapshot.records import AppliedQuota, PastQuota
from tests.allocation.steps import DECREASES, POOL, STEP, Rows, a_world, as_config, counts_of, rows_of
from tests.allocation.world import G5, NOW, P5, document, fixed, nodes, quota, row, snapshot

A100 = "ml.p4d.24xlarge"


def test_what_is_within_the_limits_is_left_as_it_is() -> None:
    world = a_world({"a": [row(Count=8)]}, {"a": [row(Count=6)]}, {G5: 8})
    held = world.held_back()
    assert (list(held.goals), held.notes, held.recheck_at, held.moves) == (world.goals(), {}, None, True)


def test_a_decrease_is_cut_back_in_whole_instances() -> None:
    held = a_world({"a": [row(Count=12)]}, {"a": [row(Count=6)]}, {G5: 6}).held_back()
    assert counts_of(held) == {"a": 9}
    assert held.notes == {
        "a/a-quota": "held back by guardrails.maxDecreasePercent: ml.g5.8xlarge 12 -> 9 of 6 wanted; the rest follows"
    }
    assert held.recheck_at == NOW + timedelta(minutes=5)


def test_what_is_not_given_is_not_taken() -> None:
    stands = {"a": [row(Count=12)], "b": [row(Count=12)]}
    held = a_world(stands, {"a": [row(Count=6)], "b": [row(Count=18)]}, {G5: 24}).held_back()
    assert counts_of(held) == {"a": 9, "b": 15}
    assert held.notes["b/b-quota"] == (
        "held back by what others do not give up yet: ml.g5.8xlarge 12 -> 15 of 18 wanted; the rest follows"
    )


TAKERS: Mapping[str, tuple[dict[str, int], dict[str, int]]] = {
    "the last by name takes less": ({}, {"a": 6, "b": 6, "c": 4}),
    "the highest tier takes less, whatever its name": ({"b": 2}, {"a": 6, "b": 4, "c": 6}),
}


@pytest.mark.parametrize(("tiers", "want"), TAKERS.values(), ids=TAKERS.keys())
def test_who_takes_less(tiers: dict[str, int], want: dict[str, int]) -> None:
    stands = {"z": [row(Count=16)], **{team: [row(Count=4)] for team in "abc"}}
    wanted = {"z": [row(Count=10)], **{team: [row(Count=6)] for team in "abc"}}
    held = a_world(stands, wanted, {G5: 28}, tiers=tiers).held_back()
    assert counts_of(held) == {"z": 12, **want}


def test_the_shared_pool_takes_less_than_any_team() -> None:
    stands = {"a": [row(Count=4)], "b": [row(Count=12)], POOL: [row(Count=0)]}
    wanted = {"a": [row(Count=6)], "b": [row(Count=6)], POOL: [row(Count=4)]}
    assert counts_of(a_world(stands, wanted, {G5: 16}).held_back()) == {"a": 6, "b": 9, POOL: 1}


def test_the_shared_pool_keeps_what_nobody_can_take_yet() -> None:
    stands = {"a": [row(Count=4)], POOL: [row(Count=12)]}
    held = a_world(stands, {"a": [row(Count=12)], POOL: [row(Count=4)]}, {G5: 16}).held_back()
    assert counts_of(held) == {"a": 6, POOL: 10}
    assert held.notes["shared-pool/shared-pool-quota"] == (
        "held back by what nobody can take yet: ml.g5.8xlarge 12 -> 10 of 4 wanted; the rest follows"
    )


def test_the_pool_keeps_nothing_that_nodes_do_not_have() -> None:
    """Six of 16 nodes are gone: what a keeps for now is over-commitment, and no reason for the pool to keep more."""
    stands = {"a": [row(Count=12)], POOL: [row(Count=4)]}
    held = a_world(stands, {"a": [row(Count=8)], POOL: [row(Count=2)]}, {G5: 10}).held_back()
    assert counts_of(held) == {"a": 9, POOL: 2}


def test_each_part_goes_as_far_as_its_limit() -> None:
    stands = row(P5, Accelerators=8, VCpu=192, MemoryInGiB=2048)
    wanted = row(P5, Accelerators=7, VCpu=10, MemoryInGiB=1000)
    held = a_world({"a": [stands]}, {"a": [wanted]}, {P5: 1}).held_back()
    assert rows_of(held) == {"a": [row(P5, Accelerators=7, VCpu=144.0, MemoryInGiB=1536.0)]}


def test_parts_that_are_promised_by_one_number_stay_so() -> None:
    held = a_world({"a": [row(P5, Accelerators=8)]}, {"a": [row(P5, Accelerators=2)]}, {P5: 1}).held_back()
    assert rows_of(held) == {"a": [row(P5, Accelerators=6)]}
    filled_in = row(P5, Accelerators=8, VCpu=192, MemoryInGiB=2048)
    held = a_world({"a": [filled_in]}, {"a": [row(P5, Accelerators=2)]}, {P5: 1}).held_back()
    assert rows_of(held) == {"a": [row(P5, Accelerators=6)]}


def test_a_type_that_the_quota_is_to_lose_goes_step_by_step() -> None:
    held = a_world({"a": [row(Count=8), row(P5, Count=1)]}, {"a": [row(P5, Count=1)]}, {G5: 8, P5: 1}).held_back()
    assert rows_of(held) == {"a": [row(Count=6), row(P5, Count=1)]}


def test_slices_of_a_profile_are_limited_by_themselves() -> None:
    def slices(profile: str, count: int) -> dict[str, Any]:
        return row(A100, AcceleratorPartition={"Type": profile, "Count": count})

    stands, wanted = [slices("mig-1g.5gb", 14)], [slices("mig-1g.5gb", 0), slices("mig-7g.40gb", 2)]
    held = a_world(
        {"a": stands}, {"a": wanted}, {A100: 1}, guardrails={**DECREASES, "maxIncreasePercent": 0}
    ).held_back()
    [first, second] = rows_of(held)["a"]
    assert first["AcceleratorPartition"]["Count"] == 11
    assert second["AcceleratorPartition"]["Count"] == 2


def test_no_step_is_small_enough() -> None:
    held = a_world({"a": [row(Count=3)]}, {"a": [row(Count=1)]}, {G5: 3}).held_back()
    assert (held.moves, held.recheck_at, counts_of(held)) == (False, None, {"a": 3})
    one = {**STEP, "maxDecreaseInstances": 1}
    assert counts_of(a_world({"a": [row(Count=3)]}, {"a": [row(Count=1)]}, {G5: 3}, guardrails=one).held_back()) == {
        "a": 2
    }


def test_a_new_quota_takes_only_what_is_given() -> None:
    held = a_world({"a": [row(Count=8)]}, {"a": [row(Count=2)], "b": [row(Count=6)]}, {G5: 8}).held_back()
    assert counts_of(held) == {"a": 6, "b": 2}


def test_what_is_left_alone_counts_as_it_stands() -> None:
    stands, wanted = {"a": [row(Count=8)]}, {"a": [row(Count=2)], "b": [row(Count=6)]}
    held = a_world(stands, wanted, {G5: 12}, left_alone={"c": [row(Count=3)]}).held_back()
    assert counts_of(held) == {"a": 6, "b": 3}


def test_a_new_type_waits_for_a_row_of_its_own() -> None:
    """Fifteen types are to become fifteen others: a quota has fifteen rows at most."""
    known = sorted(name for name in ("ml.g5", "ml.g6", "ml.m5", "ml.c5", "ml.r5"))
    sizes = ("xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge")
    types = [f"{family}.{size}" for family in known for size in sizes][:30]
    stands, wanted = ([row(name, Count=8) for name in half] for half in (types[:15], types[15:]))
    held = a_world({"a": stands}, {"a": wanted}, dict.fromkeys(types, 8)).held_back()
    assert rows_of(held)["a"] == sorted((row(name, Count=6) for name in types[:15]), key=str)
    assert "the 15 rows that a quota can have" in held.notes["a/a-quota"]


def a_lease(count: int, *, to: str = "a", source: str = "b") -> Lease:
    when = {"start": NOW - timedelta(hours=1), "end": NOW + timedelta(hours=9)}
    fields = {"to": to, "from": source, "instanceType": G5, "count": count, "reason": "deadline", **when}
    return Lease.model_validate(fields)


def record(team: str, rows: Rows, **fields: Any) -> AppliedQuota:
    target = ComputeQuotaTarget(team_name=team)
    at = fields.pop("at", NOW - timedelta(days=2))
    return AppliedQuota(f"id-{team}", 1, as_config(rows), target, "plan-1", at, **fields)


def test_a_lease_moves_in_full_beside_what_is_cut() -> None:
    """b lends 4 to a, and is to fall from 12 to 6 besides: 9 are its own for now, and 4 of these are lent."""
    stands = {"a": [row(Count=4)], "b": [row(Count=12)]}
    wanted = {"a": [row(Count=8)], "b": [row(Count=2)]}
    applied = {team: record(team, rows, leased={}) for team, rows in stands.items()}
    held = a_world(stands, wanted, {G5: 16}, leases=[a_lease(4)], applied=applied).held_back()
    assert counts_of(held) == {"a": 8, "b": 5}


@pytest.mark.parametrize("began", ["before", "now"])
def test_half_way_a_quota_with_a_lease_is_written_as_a_whole_or_not_at_all(began: str) -> None:
    """A path from 12 to 2 was broken off at 10; a lease of 4 to b was there before it, or begins with it."""
    lends = began == "before"
    stands = {"a": [row(Count=10)], "b": [row(Count=4)]}
    wanted = {"a": [row(Count=2)], "b": [row(Count=4 if lends else 8)]}
    applied = {
        team: record(team, rows, leased={G5: -4} if lends and team == "a" else {}) for team, rows in stands.items()
    }
    world = a_world(stands, wanted, {G5: 20}, leases=[] if lends else [a_lease(4, to="b", source="a")], applied=applied)
    goals = [replace(each, before=as_config([row(Count=12)])) if each.team == "a" else each for each in world.goals()]
    given = [Given(each, each.count) for each in world.leases]
    there = world.snapshot
    assert there.policy is not None
    held = hold_back(there, there.policy, goals, given, world.capacities)
    assert counts_of(held)["a"] == 10


def test_a_lease_alone_is_not_limited() -> None:
    stands, wanted = {"a": [row(Count=4)], "b": [row(Count=4)]}, {"a": [row(Count=8)], "b": [row(Count=0)]}
    applied = {team: record(team, rows, leased={}) for team, rows in stands.items()}
    held = a_world(stands, wanted, {G5: 8}, leases=[a_lease(4)], applied=applied).held_back()
    assert (counts_of(held), held.notes) == ({"a": 8, "b": 0}, {})


def in_a_day(percent: int) -> dict[str, Any]:
    return {"maxDecreasePerPeriod": {"percent": percent, "hours": 24}, "onLimit": "partial"}


def test_a_period_continues_when_what_blocks_has_left_it() -> None:
    past = (PastQuota(NOW - timedelta(hours=20), as_config([row(Count=12)])),)
    applied = {"a": record("a", [row(Count=9)], at=NOW - timedelta(hours=20), history=past)}
    held = a_world(
        {"a": [row(Count=9)]}, {"a": [row(Count=2)]}, {G5: 12}, guardrails=in_a_day(50), applied=applied
    ).held_back()
    assert counts_of(held) == {"a": 6}
    assert held.recheck_at == NOW + timedelta(hours=4)
    assert "guardrails.maxDecreasePerPeriod" in held.notes["a/a-quota"]


def test_a_step_that_is_a_period_long_continues_a_period_later() -> None:
    held = a_world({"a": [row(Count=12)]}, {"a": [row(Count=2)]}, {G5: 12}, guardrails=in_a_day(50)).held_back()
    assert (counts_of(held), held.recheck_at) == ({"a": 6}, NOW + timedelta(hours=24))


def test_a_past_that_cannot_be_read_holds_everything() -> None:
    applied = {"a": record("a", [row(Count=9)], history=None)}
    held = a_world(
        {"a": [row(Count=9)]}, {"a": [row(Count=2)]}, {G5: 12}, guardrails=in_a_day(50), applied=applied
    ).held_back()
    assert (counts_of(held), held.moves) == ({"a": 9}, False)


def test_a_failed_quota_is_deleted_as_a_whole_or_not_at_all() -> None:
    world = a_world({"a": [row(Count=8)], "b": [row(Count=8)]}, {"a": [row(Count=2)], "b": [row(Count=14)]}, {G5: 16})
    goals = [replace(goal, is_deleted=goal.team == "a") for goal in world.goals()]
    policy = world.snapshot.policy
    assert policy is not None
    held = hold_back(world.snapshot, policy, goals, [], world.capacities)
    assert (counts_of(held), [goal.is_deleted for goal in held.goals]) == ({"a": 8, "b": 8}, [False, False])
    assert held.notes["a/a-quota"] == (
        "held back by guardrails.maxDecreasePercent: it failed, and is not deleted with what it holds"
    )


def test_goals_are_made_of_promises_and_what_they_come_to() -> None:
    policy = document(
        *(fixed(team, row(Count=2), tier=tier) for tier, team in enumerate("abcd", 1)),
        guardrails={"maxDecreasePercent": 25, "onLimit": "partial"},
    )
    quotas = (
        quota("a", row(Count=8)),
        quota("b", row(Count=8), status="UpdateRollbackFailed"),
        quota("c", row(Count=8), status="CreateFailed"),
        quota(POOL, row(Count=1)),
    )
    began = as_config([row(Count=9)])
    applied = AppliedQuota(
        "id-a", 1, quotas[0].compute_quota_config, quotas[0].compute_quota_target, "plan-1", NOW, began_from=began
    )
    world = snapshot(policy, nodes(20), quotas, applied=(applied,))
    governed = select_governed(world, {})
    assert governed.pool is not None
    wanted = as_config([row(Count=2)])
    goals = wanted_goals(world, [(promise, wanted) for promise in (*governed.promises, governed.pool)])
    eight, nothing = as_config([row(Count=8)]), as_config([])
    assert [(goal.name, goal.before, goal.stands, goal.is_deleted, goal.is_pool) for goal in goals] == [
        ("a-quota", began, eight, False, False),
        ("b-quota", eight, eight, True, False),
        ("c-quota", nothing, nothing, False, False),
        ("new quota of d", nothing, nothing, False, False),
        ("shared-pool-quota", as_config([row(Count=1)]), as_config([row(Count=1)]), False, True),
    ]
    assert [goal.tier for goal in goals[:4]] == [1, 2, 3, 4]
