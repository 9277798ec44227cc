"""Numbers worked out by hand, each for a rule that rounder numbers do not tell from another rule."""

import pytest

from taskgov.allocation.parts import ACCELERATOR, accelerators_of
from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.snapshot.model import ObservedUse, Snapshot
from tests.allocation.world import G5, counts, document, fixed, nodes, row, share, snapshot


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
