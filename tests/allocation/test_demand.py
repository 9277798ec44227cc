from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from taskgov.allocation.applied_record import MOST_WEIGHT, WEIGHT_OF_ONE, remember
from taskgov.allocation.plan import Reason
from taskgov.allocation.planner import plan_quotas
from taskgov.policy.document import Guardrails
from taskgov.policy.measured import Lease
from taskgov.snapshot.model import ObservedUse, Snapshot
from taskgov.snapshot.records import AppliedQuota, PastQuota
from tests.allocation.world import G5, NOW, P5, applied, counts, document, fixed, nodes, quota, row, snapshot


def use(peak: float, *, hours: float = 168, pending: bool = False) -> ObservedUse:
    return ObservedUse("team-a", G5, hours=hours, peak_instances=peak, pending=pending)


def world(*uses: ObservedUse, today: int = 20, history: tuple[tuple[float, int], ...] = (), **rules: Any) -> Snapshot:
    """team-a is guaranteed 20; what it had so many hours ago is its history."""
    demand = {"enabled": True, "maxMovePercent": 10, **rules}
    policy = document(fixed("team-a", row(Count=20)), demand=demand, guardrails={"minimumQuota": {"team-a": 4}})
    held = quota("team-a", row(Count=today))
    past = tuple(
        PastQuota(NOW - timedelta(hours=ago), quota("team-a", row(Count=count)).compute_quota_config)
        for ago, count in history
    )
    written = AppliedQuota("id-team-a", 1, held.compute_quota_config, held.compute_quota_target, "p", NOW, past)
    return snapshot(policy, nodes(24), [held], observed_use=uses, applied=(written,))


MINUTES = tuple((23 - number / 20, 6) for number in range(MOST_WEIGHT // (WEIGHT_OF_ONE + 1)))
"""As long a past as is kept, all of it within a day."""
CASES = {
    "off, nothing moves": (world(use(0), enabled=False), 20),
    "unobserved, nothing moves": (world(), 20),
    "observed too short, nothing moves": (world(use(0, hours=167)), 20),
    "a tenth of the promise moves a day": (world(use(0)), 18),
    "within the same day nothing more moves": (world(use(0), today=18, history=((1, 20),)), 18),
    "the next day another tenth moves": (world(use(0), today=18, history=((25, 20),)), 16),
    "use and half as much again stay": (world(use(8), today=12, history=((25, 14),)), 12),
    "what the team grows into comes back": (world(use(10), today=12, history=((25, 14),)), 15),
    "a promise that is used in full stays": (world(use(19)), 20),
    "waiting work brings the whole promise back": (world(use(8, pending=True), today=12), 20),
    "the floor stays": (world(use(0), today=4, history=((25, 5),)), 4),
    "a past of less than a day counts as the promise": (world(use(0), today=6, history=MINUTES), 18),
    "a past that cannot be read counts as the promise": (
        replace(world(use(0), today=6), applied=tuple(replace(each, history=None) for each in world(use(0)).applied)),
        18,
    ),
}


@pytest.mark.parametrize(("each", "want"), CASES.values(), ids=CASES.keys())
def test_demand(each: Snapshot, want: int) -> None:
    plan = plan_quotas(each, mode="apply")
    assert counts(plan) == {"team-a": want, "shared-pool": 24 - want}
    assert plan_quotas(applied(each, plan), mode="apply").changes == ()


@pytest.mark.parametrize(("used", "left"), [(0, 1), (0.5, 2), (1, 2), (2, 3), (3, 5), (4, 6), (12, 18), (13, 20)])
def test_a_team_keeps_half_as_much_again_as_it_used_and_one_at_least(used: float, left: int) -> None:
    each = world(use(used), maxMovePercent=100)
    assert each.policy is not None
    without_floor = each.policy.model_copy(update={"guardrails": Guardrails()})
    assert counts(plan_quotas(replace(each, policy=without_floor), mode="apply"))["team-a"] == left


def test_where_a_write_recorded_no_level_what_it_held_and_lent_is_the_level() -> None:
    """All was lent at the last write, and has come back since: ten a day are the most that move, and two per step."""
    until = NOW - timedelta(hours=1)
    given = {"to": "b", "from": "team-a", "instanceType": G5, "count": 10, "reason": "deadline"}
    each = world(use(0), today=0)
    (record,) = each.applied
    assert each.policy is not None
    leases = (Lease.model_validate({**given, "start": NOW - timedelta(days=9), "end": until}),)
    lent = replace(
        each,
        policy=each.policy.model_copy(update={"leases": leases}),
        applied=(replace(record, at=NOW - timedelta(days=2)),),
    )
    assert counts(plan_quotas(lent, mode="apply"))["team-a"] == 8


def test_a_quota_that_a_shortage_made_smaller_is_no_step_of_demand() -> None:
    short = world(use(0), today=6, history=((30, 20),))
    (record,) = short.applied
    known = replace(short, applied=(replace(record, demand={G5: 20}),))
    assert counts(plan_quotas(known, mode="apply"))["team-a"] == 18


def test_what_demand_left_is_kept_with_the_write_and_the_plan_after_it_is_empty() -> None:
    each = replace(world(use(0), today=6), applied=())
    plan = plan_quotas(each, mode="apply")
    (change,) = [change for change in plan.changes if change.team == "team-a"]
    assert change.demand == {G5: 18}
    record = remember(change, None, quota_id="id-team-a", version=2, plan_id=plan.plan_id, now=NOW)
    assert plan_quotas(replace(applied(each, plan), applied=(record,)), mode="apply").changes == ()


def test_a_quota_that_the_plan_creates_is_lowered_once_a_day() -> None:
    each = replace(world(use(0)), quotas=(), applied=())
    plan = plan_quotas(each, mode="apply")
    assert counts(plan) == {"team-a": 18, "shared-pool": 6}
    (change,) = [change for change in plan.changes if change.team == "team-a"]
    record = remember(change, None, quota_id="id-team-a", version=1, plan_id=plan.plan_id, now=NOW)
    after = replace(applied(each, plan), applied=(record,))
    assert plan_quotas(after, mode="apply").changes == ()
    later = plan_quotas(replace(after, taken_at=NOW + timedelta(hours=25)), mode="apply")
    assert counts(later)["team-a"] == 16


def test_what_is_moved_says_why() -> None:
    [line] = [line for line in plan_quotas(world(use(2)), mode="plan").allocations if line.team == "team-a"]
    assert line.because.endswith("guaranteed 20, used 2 at most in 168 h, 2 of 20 lent to the shared pool")
    assert line.reason is Reason.DEMAND


def test_promises_in_parts_are_left_alone() -> None:
    policy = document(fixed("team-a", row(P5, Accelerators=6)), demand={"enabled": True})
    idle = ObservedUse("team-a", P5, hours=500, peak_instances=0)
    assert counts(plan_quotas(snapshot(policy, nodes(1, P5), observed_use=(idle,)), mode="plan"))["team-a"] == 6
