"""What holds for every plan beside refused writes, whichever were refused and whenever the run was broken off."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.parts import need
from taskgov.allocation.plan import Change, Plan
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import RefusalError
from tests.allocation.refusal_world import plan_of, played, written
from tests.allocation.test_plan_properties import TABLE, limits_of, sums_of, worlds

pytestmark = pytest.mark.long

ROUNDS = 9


@st.composite
def broken_off(draw: st.DrawFn) -> tuple[Snapshot, list[str]]:
    """A world at rest whose document changes, and whose writes are refused from then on."""
    world = draw(worlds())
    for _ in range(2):
        world = written(world, plan := plan_of(world), plan.changes)
    world = replace(world, policy=draw(worlds()).policy)
    subjects = sorted({change.subject for change in plan_of(world).changes})
    return world, draw(st.lists(st.sampled_from(subjects), unique=True, max_size=3)) if subjects else []


def every_state(world: Snapshot, plan: Plan, refused: Iterable[str]) -> Iterable[Snapshot]:
    """The world after each wave, and after each single write of a wave: others of it may not have been sent."""
    for number in range(1, len({change.wave for change in plan.changes}) + 1):
        yield played(world, plan, frozenset(refused), up_to=number)
    sent: list[Change] = [change for change in plan.changes if change.subject not in set(refused)]
    first = [change for change in sent if change.wave == min(each.wave for each in plan.changes)]
    yield from (written(world, plan, [change]) for change in first)


@given(broken_off(), st.sampled_from(RefusalError))
def test_beside_refusals_every_state_is_safe_and_the_end_is_reached_once(
    drawn: tuple[Snapshot, list[str]], error: RefusalError
) -> None:
    world, refused = drawn
    for _ in range(ROUNDS):
        plan = plan_of(world)
        if not plan.changes:
            break
        before, limits = sums_of(world), limits_of(plan)
        for state in every_state(world, plan, refused):
            assert all(amount <= max(limits[key], before[key]) for key, amount in sums_of(state).items())
        assert not {change.subject for change in plan.changes} & {
            each.subject for each in world.refusals if each.plan_id == plan.plan_id
        }
        world = played(world, plan, refused, error=error)
    assert plan_of(world).changes == ()


@given(broken_off())
def test_beside_refusals_nobody_falls_below_what_stands_and_what_is_wanted(drawn: tuple[Snapshot, list[str]]) -> None:
    world, refused = drawn
    plan = plan_of(world)
    world = played(world, plan, refused)
    wanted, planned = (_ends(plan_of(each)) for each in (replace(world, refusals=()), world))
    for subject, change in planned.items():
        for key, amount in _amounts(change.after).items():
            stood, goal = _amounts(change.before)[key], _amounts(wanted.get(subject, change).after)[key]
            assert amount >= min(stood, goal)


def _ends(plan: Plan) -> dict[str, Change]:
    """The whole change of each quota, from what stands to what its last write makes of it."""
    ends: dict[str, Change] = {}
    for change in plan.changes:
        ends[change.subject] = replace(change, before=ends.get(change.subject, change).before, wave=0)
    return ends


def _amounts(config: object) -> Counter[tuple[str, str]]:
    total: Counter[tuple[str, str]] = Counter()
    rows = config.compute_quota_resources if isinstance(config, ComputeQuotaConfig) else ()
    for row in rows:
        for resource, amount in (need(row, TABLE.require(row.instance_type)) or {}).items():
            total[row.instance_type, resource] += amount
    return total
