"""Numbers worked out by hand, each for a rule that rounder numbers do not tell from another rule."""

from datetime import timedelta

import pytest

from taskgov.allocation.parts import ACCELERATOR, accelerators_of
from taskgov.allocation.plan import Outcome, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.snapshot.model import ObservedUse, Snapshot
from tests.allocation.world import G5, NOW, P5, counts, document, fixed, nodes, quota, row, share, snapshot


def plan_of(world: Snapshot) -> Plan:
    return plan_quotas(world, mode="apply")


def test_shares_follow_the_percentages() -> None:
    policy = document(share("a", 60), share("b", 20), share("c", 20), pool=False)
    assert counts(plan_of(snapshot(policy, nodes(10)))) == {"a": 6, "b": 2, "c": 2}


@pytest.mark.parametrize(("peak", "left"), [(0, 1), (1, 2), (2, 3), (3, 5), (4, 6), (5, 8)])
def test_demand_leaves_the_peak_and_half_as_much_again_but_at_least_one_more(peak: int, left: int) -> None:
    policy = document(fixed("team-a", row(Count=20)), demand={"enabled": True, "maxMovePercent": 100})
    observed = (ObservedUse("team-a", G5, hours=168, peak_instances=peak, pending=False),)
    assert counts(plan_of(snapshot(policy, nodes(24), observed_use=observed))) == {
        "team-a": left,
        "shared-pool": 24 - left,
    }


@pytest.mark.parametrize(("sevenths", "said"), [(0, "0"), (14, "2"), (56, "8"), (3, "0.428571"), (15, "2.14286")])
def test_accelerators_are_whole_where_they_are_and_partitions_are_sevenths(sevenths: int, said: str) -> None:
    number = accelerators_of({ACCELERATOR: sevenths})
    assert f"{number:g}" == said
    assert isinstance(number, int) is (sevenths % 7 == 0)


def test_a_lease_to_a_team_that_has_parts_is_no_increase_of_its_own() -> None:
    day = timedelta(days=1)
    lease = {"to": "team-a", "from": "shared-pool", "instanceType": P5, "count": 1, "reason": "deadline"}
    policy = document(
        fixed("team-a", row(P5, Accelerators=8)),
        leases=[{**lease, "start": NOW - day, "end": NOW + day}],
        guardrails={"maxIncreasePercent": 10},
    )
    held = [quota("team-a", row(P5, Accelerators=8)), quota("shared-pool", row(P5, Count=2))]
    plan = plan_of(snapshot(policy, nodes(3, P5), held))
    assert plan.outcome is Outcome.APPLY
    assert {line.team: line.after for line in plan.allocations if line.unit == "Accelerators"}["team-a"] == 16


def test_halves_of_instances_add_up_where_a_floor_asks_for_more_than_its_part() -> None:
    """45 % and 25 % of 10 are 4.5 and 2.5; the floor of 3 is more than 10 %: together they come to 10."""
    policy = document(share("a", 45), share("b", 10, floor=3), share("c", 25), pool=False)
    given = counts(plan_of(snapshot(policy, nodes(10))))
    assert (given["b"], given["a"] + given["c"]) == (3, 7)


def test_shares_are_read_with_their_decimals() -> None:
    policy = document(share("a", 1.5), share("b", 0.5), pool=False)
    assert counts(plan_of(snapshot(policy, nodes(200)))) == {"a": 3, "b": 1}
