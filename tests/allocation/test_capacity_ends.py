"""Training plans and Capacity Blocks that end: told before, planned as lost nodes at the end, and no lease beyond."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.allocate import allocate
from taskgov.allocation.lease_book import lease_book
from taskgov.allocation.leases import LeaseState
from taskgov.allocation.plan import Outcome, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.findings import Finding
from taskgov.snapshot.model import Node, Snapshot
from taskgov.snapshot.reservations import CAPACITY_BLOCK, TRAINING_PLAN, Period, Reservation
from tests.allocation.world import G5, NOW, P5, applied, document, fixed, nodes, quota, row, share, snapshot

SPRING = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
BLOCK = "cr-0123456789abcdef0"


def hours(number: float) -> datetime:
    return NOW + timedelta(hours=number)


def leaving(
    count: int, at: float, instance_type: str = P5, by: str = SPRING, zone: timezone | None = None
) -> tuple[Node, ...]:
    """Nodes that a reservation takes back `at` hours from now."""
    moment = hours(at) if zone is None else hours(at).astimezone(zone)
    found = nodes(count, instance_type, f"{by[-6:]}-{instance_type[3:5]}-{at:g}")
    return tuple(replace(node, reservation=by, leaves_at=moment) for node in found)


def reservation(its_id: str = SPRING, ends: float = 24.5, **fields: Any) -> Reservation:
    kind = CAPACITY_BLOCK if its_id.startswith("cr-") else TRAINING_PLAN
    return Reservation(its_id, kind, "Active", (Period(hours(-24), hours(ends)),), **fields)


def plan_of(world: Snapshot) -> Plan:
    return plan_quotas(world, mode="apply")


def found(plan: Plan, code: str) -> list[Finding]:
    return [finding for finding in plan.findings if finding.code == code]


def without(world: Snapshot, names: Iterable[str]) -> Snapshot:
    gone = set(names)
    return replace(world, nodes=tuple(node for node in world.nodes if node.name not in gone))


def endless(world: Snapshot) -> Snapshot:
    return replace(world, nodes=tuple(replace(node, reservation=None, leaves_at=None) for node in world.nodes))


def decided(plan: Plan) -> object:
    """What a plan does, without the words of it."""
    return [(change.kind, change.team, change.after, change.wave) for change in plan.changes]


def standing(world: Snapshot) -> Snapshot:
    """The world after its plans were applied."""
    for _ in range(3):
        world = applied(world, plan_of(world))
    return world


HALVES = document(share("team-a", 50, P5), share("team-b", 50, P5))
TEAMS = ("ant", "bee", "cat")


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """Worlds with nodes that stay and nodes that leave, at several moments and of two types."""
    machines: list[Node] = [*nodes(draw(st.integers(0, 4)), P5), *nodes(draw(st.integers(0, 4)), G5)]
    for at in draw(st.lists(st.sampled_from([1, 12, 47.5, 100]), unique=True, max_size=3)):
        kind, by = draw(st.sampled_from([P5, G5])), draw(st.sampled_from([SPRING, BLOCK]))
        machines += leaving(draw(st.integers(1, 4)), at, kind, by)
    teams = [
        draw(
            st.sampled_from(
                [
                    share(team, 33, P5, tier=tier),
                    fixed(team, row(P5, Count=2), tier=tier),
                    fixed(team, row(G5, Count=3), row(P5, Accelerators=4), tier=tier),
                ]
            )
        )
        for tier, team in enumerate(TEAMS, start=1)
    ]
    held = [quota(team, row(P5, Count=draw(st.integers(0, 3)))) for team in TEAMS if draw(st.booleans())]
    return snapshot(document(*teams, pool=draw(st.booleans())), machines, held)


@given(worlds())
def test_before_the_end_nothing_changes_but_the_finding(world: Snapshot) -> None:
    plan, other = plan_of(world), plan_of(endless(world))
    assert decided(plan) == decided(other)
    assert (plan.outcome, plan.allocations, plan.capacity) == (other.outcome, other.allocations, other.capacity)
    assert [finding for finding in plan.findings if finding.code != "capacity-ends"] == list(other.findings)


@given(worlds(), st.sampled_from([1, 12, 47.5, 100, 200]))
def test_at_the_end_the_plan_is_that_of_the_world_with_those_nodes_lost(world: Snapshot, at: float) -> None:
    then = replace(world, taken_at=hours(at))
    left = [node.name for node in world.nodes if node.leaves_at and node.leaves_at <= hours(at)]
    lost = replace(
        then,
        nodes=tuple(
            replace(node, health="Unschedulable", instance_status="Failure", unhealthy_since=NOW, leaves_at=None)
            if node.name in left
            else node
            for node in then.nodes
        ),
    )
    plan, other = plan_of(then), plan_of(lost)
    assert decided(plan) == decided(other)
    assert plan.outcome is other.outcome
    assert plan.losses == ()


@given(worlds())
def test_a_run_is_due_at_each_end_and_when_notice_is_due(world: Snapshot) -> None:
    ends = [node.leaves_at for node in world.nodes if node.leaves_at]
    moments = [*ends, *(end - timedelta(hours=48) for end in ends)]
    plan = plan_of(world)
    assert plan.recheck_at == min((moment for moment in moments if moment > NOW), default=None)


@given(worlds())
def test_the_costs_of_all_ends_within_notice_add_up(world: Snapshot) -> None:
    last = max((node.leaves_at for node in world.nodes if node.leaves_at and node.leaves_at <= hours(48)), default=NOW)
    names = [node.name for node in world.nodes if node.leaves_at and node.leaves_at <= last]
    before = {(line.team, line.instance_type, line.unit): line.gpus_after for line in plan_of(world).allocations}
    marked_lost = replace(
        world, nodes=tuple(replace(node, leaves_at=NOW) if node.name in names else node for node in world.nodes)
    )
    after = {(line.team, line.instance_type, line.unit): line.gpus_after for line in plan_of(marked_lost).allocations}
    told = {team for finding in found(plan_of(world), "capacity-ends") for team in _teams(finding)}
    assert {key[0] for key, gpus in before.items() if after.get(key, 0) < gpus} <= told


def _teams(finding: Finding) -> list[str]:
    return [team for team in str(finding.evidence["teams"]).split(", ") if team]


def test_the_finding_names_each_team_type_and_amount() -> None:
    world = snapshot(HALVES, [*nodes(2, P5), *leaving(2, 24)], reservations=(reservation(),))
    [finding] = found(plan_of(world), "capacity-ends")
    assert finding.because == (
        "The training plan spring ends at 2026-11-21 12:30 UTC, and its nodes (2 ml.p5.48xlarge) are taken back from "
        "12:00 UTC on. It costs team-a 2 -> 1 ml.p5.48xlarge; team-b 2 -> 1 ml.p5.48xlarge."
    )
    assert (finding.subject, finding.evidence["teams"], finding.evidence["gpus"]) == ("spring", "team-a, team-b", 16)
    assert finding.evidence["leavesAt"] == "2026-11-21T12:00:00+00:00"


@pytest.mark.parametrize(("at", "is_told"), [(48, True), (48.01, False), (0.1, True)])
def test_it_is_announced_within_the_notice(at: float, is_told: bool) -> None:
    world = snapshot(HALVES, [*nodes(2, P5), *leaving(2, at)])
    assert bool(found(plan_of(world), "capacity-ends")) is is_told


def test_the_notice_is_the_documents() -> None:
    machines = [*nodes(2, P5), *leaving(2, 100)]
    for notice, is_told in ((100, True), (99, False), (0, False)):
        policy = document(share("team-a", 100, P5), capacity={"noticeBeforeEndHours": notice})
        assert bool(found(plan_of(snapshot(policy, machines)), "capacity-ends")) is is_told


def test_two_plans_cost_one_after_the_other() -> None:
    world = snapshot(HALVES, [*nodes(2, P5), *leaving(4, 10), *leaving(2, 20, by=BLOCK)])
    first, second = found(plan_of(world), "capacity-ends")
    assert first.evidence["costs"] == "team-a 4 -> 2 ml.p5.48xlarge; team-b 4 -> 2 ml.p5.48xlarge"
    assert second.evidence["costs"] == "team-a 2 -> 1 ml.p5.48xlarge; team-b 2 -> 1 ml.p5.48xlarge"
    assert [first.subject, second.subject] == ["spring", BLOCK]


def test_a_renewed_plan_is_reported_no_more() -> None:
    soon, renewed = (snapshot(HALVES, [*nodes(2, P5), *leaving(2, at)]) for at in (24, 24 * 15))
    assert found(plan_of(soon), "capacity-ends")
    assert not found(plan_of(renewed), "capacity-ends")


def test_a_plan_that_is_renewed_after_its_nodes_left_counts_again_at_once() -> None:
    left, renewed = (snapshot(HALVES, [*nodes(2, P5), *leaving(2, at)]) for at in (-0.1, 24))
    assert [line.counted for line in plan_of(left).capacity] == [2]
    assert [line.counted for line in plan_of(renewed).capacity] == [4]


def test_a_moment_of_another_time_zone_is_the_same_moment() -> None:
    seoul = timezone(timedelta(hours=9))
    here, there = (snapshot(HALVES, [*nodes(2, P5), *leaving(2, 24, zone=zone)]) for zone in (None, seoul))
    [first], [second] = (found(plan_of(world), "capacity-ends") for world in (here, there))
    assert first.because == second.because


def test_an_end_that_costs_nobody_anything_says_so() -> None:
    world = snapshot(document(fixed("team-a", row(P5, Count=1)), pool=False), [*nodes(2, P5), *leaving(2, 24)])
    [finding] = found(plan_of(world), "capacity-ends")
    assert finding.because.endswith("No team loses quota.")


def test_the_finding_names_the_end_of_ultraservers_an_hour_after_they_leave() -> None:
    world = snapshot(HALVES, [*nodes(2, P5), *leaving(2, 24, instance_type="ml.p6e-gb200.36xlarge")])
    [finding] = found(plan_of(world), "capacity-ends")
    assert finding.evidence["endsAt"] == "2026-11-21T13:00:00+00:00"


def test_a_second_quota_of_a_team_is_no_cost_of_its_first() -> None:
    second = quota("team-a", row(P5, Count=1)).model_copy(update={"name": "z", "compute_quota_id": "second000000"})
    policy = document(fixed("team-a", row(P5, Count=3)), pool=False)
    world = snapshot(policy, [*nodes(3, P5), *leaving(2, 24)], [quota("team-a", row(P5, Count=3)), second])
    [finding] = found(plan_of(world), "capacity-ends")
    assert (finding.evidence["costs"], finding.evidence["gpus"]) == ("team-a 4 -> 3 ml.p5.48xlarge", 8)


def test_an_announced_end_is_no_mass_loss() -> None:
    world = standing(snapshot(HALVES, [*nodes(2, P5), *leaving(6, 1)]))
    gone = tuple(
        replace(node, in_kubernetes=False, ready=False, found_healthy=True, turns=(hours(0.9),), looked_before=(NOW,))
        for node in world.nodes
        if node.leaves_at
    )
    then = replace(without(world, [node.name for node in gone]), gone=gone)
    early, due = (plan_of(replace(then, taken_at=hours(at))) for at in (0.95, 1))
    assert [loss.instance_type for loss in early.losses] == [P5]
    assert early.recheck_at == hours(1), "the end confirms it"
    assert due.losses == ()
    assert due.outcome is Outcome.APPLY
    assert {line.team: line.after for line in due.allocations if line.team != "shared-pool"} == {
        "team-a": 1,
        "team-b": 1,
    }


def test_an_unreadable_plan_is_a_finding_and_freezes_nothing() -> None:
    machines = [*nodes(2, P5), *nodes(2, P5, "bought")]
    silent = Reservation(SPRING, TRAINING_PLAN, silence="describe training plan: AccessDeniedException")
    plan, other = (plan_of(snapshot(HALVES, machines, reservations=each)) for each in ((silent,), ()))
    assert decided(plan) == decided(other)
    assert plan.outcome is other.outcome is Outcome.APPLY
    [finding] = found(plan, "capacity-end-unknown")
    assert (finding.subject, "AccessDeniedException" in finding.because) == ("spring", True)
    assert finding.because.endswith("Its nodes count until they are lost.")


@pytest.mark.parametrize(("its_id", "kind"), [(SPRING, TRAINING_PLAN), ("", CAPACITY_BLOCK)])
def test_an_end_that_was_read_before_holds_and_the_finding_says_so(its_id: str, kind: str) -> None:
    silent = Reservation.silent(its_id, kind, "throttled")
    plan = plan_of(snapshot(HALVES, [*nodes(2, P5), *leaving(2, 24)], reservations=(silent,)))
    [finding] = found(plan, "capacity-end-unknown")
    assert finding.because.endswith(
        "throttled. The end that was read earlier applies: nodes leave at 2026-11-21 12:00 UTC."
    )


def lease(count: int, until: float, *, start: float = -1, **fields: Any) -> dict[str, Any]:
    return {
        "to": "team-b",
        "from": "team-a",
        "instanceType": P5,
        "count": count,
        "start": hours(start).isoformat(),
        "end": hours(until).isoformat(),
        "reason": "deadline",
        **fields,
    }


def leasing(*leases: dict[str, Any], stay: int = 2, leave: int = 2) -> Snapshot:
    policy = document(share("team-a", 50, P5), share("team-b", 50, P5), leases=list(leases))
    return snapshot(policy, [*nodes(stay, P5), *leaving(leave, 24)])


@pytest.mark.parametrize("start", [-1, 5, 30], ids=["active", "due before the end", "due after the end"])
def test_a_lease_that_reaches_beyond_the_end_is_refused(start: float) -> None:
    world = leasing(lease(2, 40, start=start))
    plan = plan_of(world)
    [finding] = found(plan, "lease-refused")
    assert finding.evidence["path"] == "leases[0].end"
    assert finding.evidence["value"] == hours(40).isoformat()
    assert finding.evidence["rule"] == "must be at or before 2026-11-21 12:00 UTC"
    assert {line.team: line.after for line in plan.allocations if line.team != "shared-pool"} == {
        "team-a": 2,
        "team-b": 2,
    }
    assert found(plan_of(replace(world, taken_at=hours(4))), "lease-refused")


@pytest.mark.parametrize(
    "given",
    [lease(2, 24), lease(1, 40), lease(2, 40, partial=True)],
    ids=["ends at the end", "the donor can still give it", "partial"],
)
def test_a_lease_that_can_be_kept_is_given(given: dict[str, Any]) -> None:
    plan = plan_of(leasing(given))
    assert not found(plan, "lease-refused")
    after = {line.team: line.after for line in plan.allocations}
    assert after["team-b"] == 2 + given["count"]


def test_a_lease_of_machines_that_all_leave_is_refused_even_in_part() -> None:
    plan = plan_of(leasing(lease(2, 40, partial=True), stay=0, leave=4))
    assert [finding.evidence["path"] for finding in found(plan, "lease-refused")] == ["leases[0].end"]


def test_only_the_lease_that_reaches_beyond_is_refused() -> None:
    plan = plan_of(leasing(lease(1, 10), lease(1, 40), stay=0, leave=4))
    [finding] = found(plan, "lease-refused")
    assert finding.evidence["path"] == "leases[1].end"
    assert {line.team: line.after for line in plan.allocations}["team-b"] == 3


def test_leases_are_tried_once_for_each_end_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def counted(*given: Any) -> Any:
        tried.append(given)
        return allocate(*given)

    monkeypatch.setattr("taskgov.allocation.lease_ends.allocate", counted)
    leases = [lease(1, 40, reason=f"reason {number}") for number in range(8)]
    policy = document(fixed("team-a", row(P5, Count=9)), fixed("team-b", row(P5, Count=1)), leases=leases)
    ends = [node for at in range(1, 6) for node in leaving(1, at)]
    plan = plan_of(snapshot(policy, [*nodes(12, P5), *ends]))
    assert len(found(plan, "capacity-ends")) == 5
    worlds_of_the_plan, of_each_end = 1 + 5, (1 + 4, 1 + 3, 1 + 2, 1 + 1)
    assert len(tried) == worlds_of_the_plan + sum(of_each_end)


def test_a_lease_of_another_type_is_not_asked() -> None:
    policy = document(
        fixed("team-a", row(G5, Count=2)),
        fixed("team-b", row(G5, Count=1)),
        leases=[lease(1, 40, instanceType=G5)],
    )
    assert not found(plan_of(snapshot(policy, [*nodes(3, G5), *leaving(2, 24)])), "lease-refused")


@pytest.mark.parametrize("start", [-1, 5])
def test_the_lease_book_shows_it_as_refused(start: float) -> None:
    [entry] = lease_book(leasing(lease(2, 40, start=start)))
    assert (entry.state, "leases[0].end" in entry.because) == (LeaseState.REFUSED, True)
