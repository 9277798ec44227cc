"""What a plan is called: the same as long as it changes the same, whenever and in whatever mode it is made."""

from dataclasses import replace

from taskgov.allocation.planner import Mode, plan_quotas
from taskgov.snapshot.model import Snapshot
from tests.allocation.world import document, fixed, minutes, nodes, quota, row, snapshot


def world(count: int, *, version: int = 3) -> Snapshot:
    """Return a cluster whose document promises team A so many instances, and where it has two."""
    has_two = quota("team-a", row(Count=2), version=version)
    return snapshot(document(fixed("team-a", row(Count=count))), nodes(6), [has_two])


def name(of: Snapshot, mode: Mode = "apply") -> str:
    return plan_quotas(of, mode=mode).plan_id


def test_the_mode_makes_no_other_plan() -> None:
    assert name(world(3), "plan") == name(world(3), "apply")


def test_a_newer_snapshot_makes_no_other_plan_as_long_as_the_same_is_changed() -> None:
    now = world(3)
    later = replace(now, taken_at=now.taken_at + minutes(5), policy_version="v2")
    assert name(later) == name(now)


def test_other_amounts_and_other_versions_are_other_plans() -> None:
    assert len({name(world(3)), name(world(4)), name(world(3, version=4))}) == 3


def test_the_same_changes_on_another_cluster_are_another_plan() -> None:
    here = world(3)
    there = replace(here, cluster=replace(here.cluster, arn=here.cluster.arn[:-1] + "z"))
    assert name(here) != name(there)


def test_plans_that_change_nothing_are_called_by_their_snapshot() -> None:
    calm = snapshot(None, nodes(6), [quota("team-a", row(Count=2))])
    later = replace(calm, taken_at=calm.taken_at + minutes(5))
    assert name(calm, "plan") == name(calm, "apply") != name(later)
