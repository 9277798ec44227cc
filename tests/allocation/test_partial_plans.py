"""Plans that limits cut back: they keep within every limit, say so, and reach the goal step by step."""

from dataclasses import replace
from datetime import timedelta

from taskgov.allocation.applied_record import remember
from taskgov.allocation.plan import Outcome, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.snapshot.model import Snapshot
from tests.allocation.limits_world import UNKNOWN
from tests.allocation.world import NOW, P5, applied, counts, document, fixed, nodes, quota, row, snapshot

PARTIAL = {"onLimit": "partial", "maxDecreasePercent": 25}
STEPS = {**PARTIAL, "maxDecreaseInstances": 1}


def written(world: Snapshot, plan: Plan) -> Snapshot:
    """The world after a plan, five minutes later, with what apply_change keeps of it."""
    after = applied(world, plan)
    records = {each.compute_quota_id: each for each in world.applied}
    for change in plan.changes:
        [standing] = [each for each in after.quotas if each.name == change.name]
        known = records.get(standing.compute_quota_id)
        version, now = standing.compute_quota_version, world.taken_at
        records[standing.compute_quota_id] = remember(
            change, known, quota_id=standing.compute_quota_id, version=version, plan_id=plan.plan_id, now=now
        )
    return replace(after, applied=tuple(records.values()), taken_at=world.taken_at + timedelta(minutes=5))


def test_over_commitment_goes_down_step_by_step_where_one_team_is_beyond_its_limit() -> None:
    teams = fixed("a", row(P5, Count=6), tier=2), fixed("b", row(P5, Count=12))
    policy = document(*teams, pool=False, guardrails=STEPS)
    world = snapshot(policy, nodes(12, P5), [quota("a", row(P5, Count=12)), quota("b", row(P5, Count=6))])
    seen: list[dict[str, float]] = []
    while (plan := plan_quotas(world, mode="apply")).changes and len(seen) < 12:
        assert plan.outcome is Outcome.APPLY
        seen.append(counts(plan))
        if plan.recheck_at is not None:
            assert plan.recheck_at == world.taken_at + timedelta(minutes=5)
            assert any("maxDecreasePercent" in change.because for change in plan.changes)
        world = written(world, plan)
    assert [each["a"] for each in seen] == [9, 7, 6, 5, 4, 3, 2, 1, 0]
    assert [each["b"] for each in seen] == [6, 6, 6, 7, 8, 9, 10, 11, 12]
    assert not plan.changes
    assert plan.recheck_at is None
    goal = plan_quotas(replace(world, policy=document(*teams, pool=False)), mode="apply")
    assert goal.changes == ()


def test_where_no_step_is_small_enough_the_plan_is_blocked() -> None:
    policy = document(fixed("a", row(P5, Count=1)), pool=False, guardrails=PARTIAL)
    plan = plan_quotas(snapshot(policy, nodes(3, P5), [quota("a", row(P5, Count=3))]), mode="apply")
    assert plan.outcome is Outcome.BLOCKED
    assert {verdict.guardrail for verdict in plan.guardrails if not verdict.passed} == {"max-decrease"}


def test_where_limits_leave_only_what_no_wave_can_write_the_plan_is_blocked() -> None:
    """`cat` has no room until `dog`, of a type whose numbers nobody knows, can be written; `ant` may never fall."""
    teams = (
        fixed("ant", row(P5, Count=1)),
        fixed("dog", row(UNKNOWN, Accelerators=1)),
        fixed("cat", row(UNKNOWN, Count=1)),
    )
    policy = document(*teams, pool=False, guardrails=PARTIAL)
    stands = [quota("ant", row(P5, Count=3)), quota("dog", row(UNKNOWN, Count=3))]
    plan = plan_quotas(snapshot(policy, [*nodes(3, P5), *nodes(3, UNKNOWN)], stands), mode="apply")
    assert plan.outcome is Outcome.BLOCKED
    assert {verdict.guardrail for verdict in plan.guardrails if not verdict.passed} == {"max-decrease"}
    assert [change.team for change in plan.changes] == ["ant"]


def test_by_default_a_limit_blocks_the_whole_plan() -> None:
    policy = document(fixed("a", row(P5, Count=6)), pool=False, guardrails={"maxDecreasePercent": 25})
    plan = plan_quotas(snapshot(policy, nodes(12, P5), [quota("a", row(P5, Count=12))]), mode="apply")
    assert plan.outcome is Outcome.BLOCKED


def test_what_is_not_given_is_not_taken() -> None:
    policy = document(fixed("a", row(P5, Count=2)), fixed("b", row(P5, Count=10)), pool=False, guardrails=PARTIAL)
    world = snapshot(policy, nodes(12, P5), [quota("a", row(P5, Count=8)), quota("b", row(P5, Count=4))], now=NOW)
    plan = plan_quotas(world, mode="apply")
    assert counts(plan) == {"a": 6, "b": 6}
    assert all("rest" in change.because for change in plan.changes)
