"""Whatever stands and is wanted: within the limits, consistent, and step by step to the goal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgov.allocation.partial import NEXT_STEP, HeldBack
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaTarget
from taskgov.policy.measured import Lease
from taskgov.snapshot.records import AppliedQuota, PastQuota
from tests.allocation.steps import POOL, Rows, World, as_config, rows_of
from tests.allocation.world import G5, G6, NOW, P5, row

A100: Final = "ml.p4d.24xlarge"

MACHINES: Final = {G5: 12, P5: 3, G6: 4, A100: 2}


@st.composite
def quota_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for name in draw(st.lists(st.sampled_from(sorted(MACHINES)), unique=True, max_size=3)):
        whole: dict[str, Any] = {"Count": draw(st.integers(0, 9))}
        parts: dict[str, Any] = {
            "Accelerators": draw(st.integers(0, 16)),
            "VCpu": draw(st.sampled_from([0.5, 1, 7.25, 48, 95.5, 192])),
            "MemoryInGiB": draw(st.sampled_from([1, 5.25, 128, 500])),
        }
        given_parts = draw(st.lists(st.sampled_from(sorted(parts)), unique=True, min_size=1))
        amounts = draw(st.sampled_from([whole, {part: parts[part] for part in given_parts}]))
        rows.append(row(name, **amounts))
        if name == A100 and draw(st.booleans()):
            profile = draw(st.sampled_from(["mig-1g.5gb", "mig-2g.10gb"]))
            rows.append(row(A100, AcceleratorPartition={"Type": profile, "Count": draw(st.integers(0, 14))}))
    return rows


PERCENT: Final = st.sampled_from([0, 10, 25, 33.33, 50, 100])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    teams = [*"abc", POOL]
    limits: dict[str, Any] = {"onLimit": "partial"}
    if draw(st.booleans()):
        limits["maxDecreasePercent"] = draw(PERCENT)
        if draw(st.booleans()):
            limits["maxDecreaseInstances"] = draw(st.integers(0, 2))
    if draw(st.booleans()):
        limits["maxIncreasePercent"] = draw(PERCENT)
    if draw(st.booleans()):
        limits["maxDecreasePerPeriod"] = {"percent": draw(PERCENT), "hours": 24}
    if draw(st.booleans()):
        limits["maxIncreasePerPeriod"] = {"percent": draw(PERCENT), "hours": 24}
    stands = {team: draw(quota_rows()) for team in teams}
    wanted = {team: draw(quota_rows()) for team in teams}
    return World(MACHINES, stands, wanted, limits, {"z": draw(quota_rows())})


TABLE: Final = InstanceTypeTable()
Amounts = Mapping[tuple[str, str], Fraction]


def whole_instance(name: str) -> dict[str, Fraction]:
    numbers = TABLE.require(name)
    return {"gpu": Fraction(numbers.gpu), "cpu": Fraction(numbers.vcpu), "memory": Fraction(numbers.memory_gib)}


def amounts_of(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Fraction]:
    """What rows come to, worked out apart from the product: given numbers win, the largest share brings the rest."""
    total: dict[tuple[str, str], Fraction] = {}
    for each in rows:
        name, whole = each["InstanceType"], whole_instance(each["InstanceType"])
        keys = {"gpu": "Accelerators", "cpu": "VCpu", "memory": "MemoryInGiB"}
        partition = each.get("AcceleratorPartition")
        shares = [Fraction(each.get("Count", 0))]
        shares += [Fraction(str(each[key])) / whole[kind] for kind, key in keys.items() if key in each]
        if partition:
            slices = int(partition["Type"].removeprefix("mig-")[0])
            shares.append(partition["Count"] * slices / (7 * whole["gpu"]))
            total[name, partition["Type"]] = total.get((name, partition["Type"]), Fraction(0)) + partition["Count"]
        for kind, key in keys.items():
            ratio = max(shares) if kind != "gpu" else Fraction(each.get("Count", 0))
            amount = Fraction(str(each[key])) if key in each else ratio * whole[kind]
            if kind == "cpu":
                amount = Fraction(int(amount * 1000), 1000)
            if kind == "memory":
                amount = Fraction(int(amount * 2**30), 2**30)
            total[name, kind] = total.get((name, kind), Fraction(0)) + amount
    return {place: amount for place, amount in total.items() if amount}


def beyond(
    was: Amounts,
    becomes: Amounts,
    history: Sequence[Amounts],
    limits: Mapping[str, Any],
) -> list[str]:
    """What breaks a limit, by a judge of its own; `history` is what stood in the period."""
    found = []
    for place in {*was, *becomes}:
        before, after = was.get(place, Fraction(0)), becomes.get(place, Fraction(0))
        past = [each.get(place, Fraction(0)) for each in history]
        if after < before:
            of_one = whole_instance(place[0])
            slices = 0 if place[1] in of_one else int(place[1].removeprefix("mig-")[0])
            one = of_one.get(place[1], of_one["gpu"] * (7 // slices if slices else 0))
            if "maxDecreasePercent" in limits:
                allowed = max(
                    before * Fraction(str(limits["maxDecreasePercent"])) / 100,
                    one * limits.get("maxDecreaseInstances", 0),
                )
                found += [f"{place} step"] if before - after > allowed else []
            if "maxDecreasePerPeriod" in limits:
                most = max([before, *past])
                allowed = most * Fraction(str(limits["maxDecreasePerPeriod"]["percent"])) / 100
                found += [f"{place} period"] if most - after > allowed else []
        if after > before:
            if "maxIncreasePercent" in limits and before:
                allowed = before * Fraction(str(limits["maxIncreasePercent"])) / 100
                found += [f"{place} growth"] if after - before > allowed else []
            least = min((value for value in [before, *past] if value), default=Fraction(0))
            if "maxIncreasePerPeriod" in limits and least:
                allowed = least * Fraction(str(limits["maxIncreasePerPeriod"]["percent"])) / 100
                found += [f"{place} growth in a period"] if after - least > allowed else []
    return found


def sums(world: World, held: Mapping[str, Rows]) -> dict[tuple[str, str], Fraction]:
    """All quotas together, GPUs and slices of them as one."""
    total: dict[tuple[str, str], Fraction] = {}
    for rows in (*held.values(), *world.left_alone.values()):
        for (name, kind), amount in amounts_of(rows).items():
            slices = int(kind.removeprefix("mig-")[0]) if kind.startswith("mig-") else 7
            place, part = (name, "gpu" if kind.startswith("mig-") else kind), Fraction(slices, 7)
            total[place] = total.get(place, Fraction(0)) + (amount * part if place[1] == "gpu" else amount)
    return total


def capacity() -> dict[tuple[str, str], Fraction]:
    return {
        (name, kind): amount
        for name, count in MACHINES.items()
        for (_, kind), amount in amounts_of([row(name, Count=count)]).items()
    }


def check(world: World, held: HeldBack, history: Mapping[str, Sequence[Amounts]]) -> None:
    """Limits hold, numbers stay between what stands and what is wanted, and what is not given is not taken."""
    result = rows_of(held)
    for team, rows in result.items():
        was, becomes, goal = (amounts_of(each) for each in (world.stands[team], rows, world.wanted[team]))
        if team != POOL:
            assert beyond(was, becomes, history.get(team, []), world.guardrails) == []
        for place in {*was, *becomes, *goal}:
            ends = [each.get(place, Fraction(0)) for each in (was, goal)]
            assert min(ends) <= becomes.get(place, Fraction(0)) <= max(ends), (team, place)
        for each in rows:
            assert all(isinstance(each.get(key, 0), int) for key in ("Count", "Accelerators"))
    top, today, wanted = capacity(), sums(world, world.stands), sums(world, world.wanted)
    for place, amount in sums(world, result).items():
        bound = max(top.get(place, Fraction(0)), today.get(place, Fraction(0)))
        is_cut = any(place[0] in note for note in held.notes.values())
        assert amount <= (bound if is_cut else max(bound, wanted.get(place, Fraction(0)))), place


@settings(max_examples=60)
@given(worlds())
def test_limits_and_sums_hold_and_nobody_goes_astray(world: World) -> None:
    held = world.held_back()
    check(world, held, {})
    assert world.held_back() == held
    if not held.notes:
        assert list(held.goals) == world.goals()
    else:
        assert (held.recheck_at is not None) == held.moves


@settings(max_examples=30)
@given(worlds())
def test_step_by_step_the_goal_is_reached_or_a_reason_is_given(world: World) -> None:
    applied: dict[str, AppliedQuota] = {}
    for _ in range(200):
        each = replace(world, applied=applied)
        held = each.held_back()
        past = {
            team: [
                amounts_of(row.to_api() for row in entry.config.compute_quota_resources)
                for entry in record.history or ()
                if entry.until > each.now - timedelta(hours=24)
            ]
            for team, record in applied.items()
        }
        check(each, held, past)
        rows = rows_of(held)
        if not held.notes:
            return
        if not held.moves:
            assert held.recheck_at is None
            assert all(amounts_of(rows[team]) == amounts_of(world.stands[team]) for team in rows)
            return
        assert held.recheck_at is not None
        assert held.recheck_at >= each.now + NEXT_STEP
        for goal in held.goals:
            before = applied.get(goal.team)
            entry = PastQuota(each.now, goal.stands)
            applied[goal.team] = AppliedQuota(
                f"id-{goal.team}",
                1,
                goal.after,
                ComputeQuotaTarget(team_name=goal.team),
                "plan-1",
                each.now,
                (*((before.history or ()) if before else ()), entry),
            )
        world = replace(each, stands=rows, now=held.recheck_at)
    pytest.fail("still on its way after 200 steps")


@st.composite
def lending(draw: st.DrawFn) -> World:
    """Whole instances of one type; b lends some to a, which is in the quotas that stand, or is not yet."""
    own = {team: (draw(st.integers(0, 12)), draw(st.integers(0, 12))) for team in "abc"}
    count = draw(st.integers(1, 4))
    had = {"a": count, "b": -count} if draw(st.booleans()) else {}
    net = {"a": count, "b": -count}
    stands = {team: [row(Count=max(was + had.get(team, 0), 0))] for team, (was, _) in own.items()}
    wanted = {team: [row(Count=max(goal + net.get(team, 0), 0))] for team, (_, goal) in own.items()}
    left = max(20 - sum(rows[0]["Count"] for rows in wanted.values()), 0)
    stands[POOL], wanted[POOL] = [row(Count=draw(st.integers(0, 9)))], [row(Count=left)]
    when = {"start": NOW - timedelta(hours=1), "end": NOW + timedelta(days=9)}
    lease = {"to": "a", "from": "b", "instanceType": G5, "count": count, "reason": "deadline", **when}
    target = ComputeQuotaTarget(team_name="a")
    applied = {
        team: AppliedQuota(
            f"id-{team}",
            1,
            as_config(stands[team]),
            target.model_copy(update={"team_name": team}),
            "plan-1",
            NOW - timedelta(hours=1),
            leased={G5: had[team]} if team in had else {},
        )
        for team in "abc"
    }
    limits = {"onLimit": "partial", "maxDecreasePercent": draw(PERCENT), "maxIncreasePercent": draw(PERCENT)}
    return World({G5: 20}, stands, wanted, limits, {}, leases=[Lease.model_validate(lease)], applied=applied)


@given(lending())
def test_beside_a_lease_only_what_is_not_the_lease_is_limited(world: World) -> None:
    held = world.held_back()
    [lease] = world.leases
    counts = {team: sum(each["Count"] for each in rows) for team, rows in rows_of(held).items()}
    for team in "abc":
        net = lease.count * ((team == "a") - (team == "b"))
        [stands], [wanted] = world.stands[team], world.wanted[team]
        leased = (world.applied or {})[team].leased or {}
        was, becomes = stands["Count"] - leased.get(G5, 0), counts[team] - net
        if counts[team] != stands["Count"]:
            limits = beyond(amounts_of([row(Count=was)]), amounts_of([row(Count=becomes)]), [], world.guardrails)
            assert limits == []
            ends = (was, wanted["Count"] - net)
            assert min(ends) <= becomes <= max(ends)
    bound = max(20, sum(each["Count"] for rows in world.stands.values() for each in rows))
    if held.notes:
        assert sum(counts.values()) <= bound
    assert world.held_back() == held
