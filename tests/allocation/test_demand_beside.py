"""Demand beside leases, shortages, roll backs and small promises."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from taskgov.allocation.applied_record import remember
from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.findings import Finding, Severity
from taskgov.policy.document import EditPolicy, PolicyDocument
from taskgov.services.plan_path import path_of, undone
from taskgov.snapshot.model import Node, ObservedUse, Snapshot
from taskgov.snapshot.records import AppliedQuota, PastQuota
from tests.allocation.world import G5, NOW, P5, applied, counts, document, fixed, nodes, quota, row, snapshot

DAY = timedelta(days=1)
DEMAND = {"enabled": True, "maxMovePercent": 10}


def use(peak: float, team: str = "b", *, pending: bool = False, instance_type: str = G5) -> ObservedUse:
    return ObservedUse(team, instance_type, hours=168, peak_instances=peak, pending=pending)


def lease(count: int, **fields: Any) -> dict[str, Any]:
    moments = {"start": NOW - timedelta(hours=1), "end": NOW + 2 * DAY}
    return {"to": "a", "from": "b", "instanceType": G5, "count": count, "reason": "deadline", **moments, **fields}


def policy(*leases: dict[str, Any], **sections: Any) -> PolicyDocument:
    """Team a is guaranteed 2, team b 20."""
    sections = {"demand": DEMAND, **sections}
    return document(fixed("a", row(Count=2)), fixed("b", row(Count=20)), leases=list(leases), **sections)


def planned(world: Snapshot) -> Plan:
    return plan_quotas(world, mode="apply")


def run(world: Snapshot, at: datetime, cluster: tuple[Node, ...] | None = None, *uses: ObservedUse) -> Snapshot:
    """The world after a run at a moment, with the record of each write."""
    now = replace(world, taken_at=at, nodes=cluster or world.nodes, observed_use=uses or world.observed_use)
    plan = planned(now)
    after = applied(now, plan)
    records = {record.compute_quota_id: record for record in world.applied}
    versions = {held.compute_quota_id: held.compute_quota_version for held in after.quotas}
    for change in plan.changes:
        key = change.resource_id or f"id-{change.team}"
        record = remember(change, records.get(key), quota_id=key, version=versions[key], plan_id=plan.plan_id, now=at)
        records[key] = record
    return replace(after, applied=tuple(records.values()))


def held(world: Snapshot, team: str = "b") -> int | None:
    (mine,) = [each for each in world.quotas if each.compute_quota_target.team_name == team]
    return mine.compute_quota_config.compute_quota_resources[0].count


class TestLeases:
    """Team b lends to team a, and uses little itself."""

    def world(self, *leases: dict[str, Any], peak: float = 0, **sections: Any) -> Snapshot:
        today = [quota("a", row(Count=2)), quota("b", row(Count=20))]
        return snapshot(policy(*leases, **sections), nodes(24), today, observed_use=(use(peak),))

    def test_a_lease_stays_while_demand_lowers_what_is_left(self) -> None:
        world = run(self.world(lease(10)), NOW)
        assert (held(world, "a"), held(world)) == (12, 8)
        for day in range(1, 8):
            world = run(replace(world, policy=policy(lease(10, end=NOW + 30 * DAY))), NOW + day * DAY)
        assert (held(world, "a"), held(world)) == (12, 1), "one is what a team keeps that uses none"
        assert [finding.code for finding in planned(world).findings] == []

    def test_what_is_used_and_half_as_much_again_stays_beside_what_is_lent(self) -> None:
        world = self.world(lease(10), peak=3)
        old = replace(world, applied=(self.trimmed_to(12),))
        assert counts(planned(old)) == {"a": 12, "b": 5, "shared-pool": 7}

    def test_the_floor_stays_beside_what_is_lent(self) -> None:
        world = replace(self.world(lease(10), guardrails={"minimumQuota": {"b": 4}}), applied=(self.trimmed_to(12),))
        assert counts(planned(world)) == {"a": 12, "b": 4, "shared-pool": 8}

    def test_when_the_lease_ends_demand_continues_by_its_rate(self) -> None:
        world = run(self.world(lease(10)), NOW)
        world = run(world, NOW + 3 * DAY)
        assert (held(world, "a"), held(world)) == (2, 16)

    def test_only_leases_of_the_team_the_type_and_the_moment_count(self) -> None:
        others = [
            lease(10, to="b", **{"from": "a"}),
            lease(10, instanceType=P5),
            lease(10, start=NOW + DAY),
            lease(10, end=NOW),
        ]
        world = replace(self.world(*others), applied=(self.trimmed_to(10),))
        assert counts_of_g5(planned(world))["b"] == 8

    def test_a_record_without_demand_lent_what_the_leases_of_its_time_took(self) -> None:
        old = quota("b", row(Count=10))
        record = AppliedQuota("id-b", 1, old.compute_quota_config, old.compute_quota_target, "p", NOW)
        today = [quota("a", row(Count=12)), old]
        world = replace(self.world(lease(10)), quotas=tuple(today), applied=(record,))
        assert counts(planned(world)) == {"a": 12, "b": 8, "shared-pool": 4}

    def trimmed_to(self, level: int) -> AppliedQuota:
        """Team b as demand left it the day before yesterday."""
        was = quota("b", row(Count=level))
        at = NOW - 2 * DAY
        return AppliedQuota("id-b", 1, was.compute_quota_config, was.compute_quota_target, "p", at, demand={G5: level})


def counts_of_g5(plan: Plan) -> dict[str, float]:
    return {line.team: line.after for line in plan.allocations if line.instance_type == G5}


class TestShortages:
    """Team b is guaranteed 20, and six nodes are left for a day."""

    def world(self, *uses: ObservedUse) -> Snapshot:
        teams = document(fixed("b", row(Count=20)), demand=DEMAND)
        return snapshot(teams, nodes(24), [quota("b", row(Count=20))], observed_use=uses)

    def test_demand_continues_from_what_it_left_and_not_from_what_the_shortage_granted(self) -> None:
        short = run(self.world(use(0)), NOW, nodes(6))
        assert held(short) == 6
        assert held(run(short, NOW + timedelta(hours=2), nodes(24))) == 18
        assert held(run(short, NOW + 2 * DAY, nodes(24))) == 16

    @pytest.mark.parametrize("silent", [use(0, pending=True), use(0, "nobody")], ids=["work waits", "not observed"])
    def test_a_shortage_while_demand_has_no_say_leaves_the_whole_promise(self, silent: ObservedUse) -> None:
        short = run(self.world(silent), NOW, nodes(6))
        assert held(short) == 6
        assert held(run(short, NOW + timedelta(hours=2), nodes(24), use(0))) == 18
        later = run(short, NOW + timedelta(hours=2), nodes(5), use(0))
        assert held(run(later, NOW + timedelta(hours=3), nodes(24))) == 18
        assert held(run(short, NOW + 2 * DAY, nodes(24), use(0))) == 18

    def test_an_edit_by_hand_in_the_past_is_what_was_left(self) -> None:
        first = run(self.world(use(0)), NOW - 3 * DAY)
        (mine,) = [each for each in first.quotas if each.compute_quota_target.team_name == "b"]
        edited = quota("b", row(Count=9), version=mine.compute_quota_version + 1)
        others = [each for each in first.quotas if each is not mine]
        by_hand = replace(first, quotas=(edited, *others))
        assert by_hand.policy is not None
        rules = by_hand.policy.model_copy(update={"hand_edits": EditPolicy.PUT_RIGHT})
        back = run(replace(by_hand, policy=rules), NOW)
        (record,) = [each for each in back.applied if each.compute_quota_id == "id-b"]
        assert record.history is not None
        assert [past.demand for past in record.history] == [None, {G5: 9}]


def test_a_step_that_is_rolled_back_was_no_step() -> None:
    teams = document(fixed("b", row(Count=20)), demand=DEMAND, pool=False)
    before = snapshot(teams, nodes(24), [quota("b", row(Count=20))], observed_use=(use(0),))
    first = run(replace(before, nodes=nodes(6)), NOW)
    plan = planned(replace(first, nodes=nodes(24), taken_at=NOW + DAY))
    (change,) = plan.changes
    (record,) = first.applied
    written = remember(change, record, quota_id="id-b", version=3, plan_id="p", now=NOW + DAY)
    back = undone(change, path_of(plan.changes, change))
    restored = remember(back, written, quota_id="id-b", version=4, plan_id="p", now=NOW + DAY)
    assert (written.demand, restored.demand) == ({G5: 16}, {G5: 18})
    world = replace(first, applied=(restored,), quotas=(quota("b", row(Count=6), version=4),), nodes=nodes(24))
    assert counts(planned(replace(world, taken_at=NOW + 3 * DAY)))["b"] == 16


class TestBoundaries:
    """One team, guaranteed 20, as the rate and the use make it."""

    def left(self, peak: float, *, today: int = 20, past: tuple[tuple[timedelta, int], ...] = (), **more: Any) -> float:
        was = quota("b", row(Count=today))
        history = tuple(PastQuota(NOW - ago, was.compute_quota_config, demand={G5: level}) for ago, level in past)
        record = AppliedQuota("id-b", 1, was.compute_quota_config, was.compute_quota_target, "p", NOW, history)
        teams = document(fixed("b", row(Count=20)), demand={"enabled": True, "maxMovePercent": 100, **more})
        world = snapshot(teams, nodes(24), [was], observed_use=(use(peak),), applied=(replace(record, demand={}),))
        return counts(planned(world))["b"]

    @pytest.mark.parametrize(
        ("peak", "want"), [(0, 1), (0.1, 2), (1, 2), (2, 3), (2.001, 5), (3, 5), (8.4, 14), (13, 20), (12, 18)]
    )
    def test_use_and_half_of_it_are_whole_instances_rounded_up(self, peak: float, want: int) -> None:
        assert self.left(peak) == want

    def test_the_percentage_of_a_day_is_whole_instances_rounded_down(self) -> None:
        assert self.left(0, maxMovePercent=14.9) == 18
        assert self.left(0, maxMovePercent=15) == 17
        assert self.left(0, maxMovePercent=0) == 20

    def test_the_rate_looks_back_a_day_and_no_further(self) -> None:
        within = self.left(0, past=((DAY - timedelta(seconds=1), 20),), today=10, maxMovePercent=10)
        assert within == 18

    def test_what_ended_a_day_ago_is_no_longer_looked_at(self) -> None:
        was = quota("b", row(Count=14))
        record = AppliedQuota("id-b", 1, was.compute_quota_config, was.compute_quota_target, "p", NOW, demand={G5: 14})
        teams = document(fixed("b", row(Count=20)), demand=DEMAND)
        for ago, want in ((DAY, 12), (DAY - timedelta(seconds=1), 14)):
            past = (PastQuota(NOW - ago, was.compute_quota_config, demand={G5: 16}),)
            known = replace(record, history=past)
            world = snapshot(teams, nodes(24), [was], observed_use=(use(0),), applied=(known,))
            assert counts(planned(world))["b"] == want

    @pytest.mark.parametrize(
        ("rows", "want"), [([row(P5, Count=1)], 18), ([row(Count=12), row(Count=3)], 10)], ids=["none", "two rows"]
    )
    def test_a_record_without_demand_left_what_it_held_of_the_type(self, rows: list[dict[str, Any]], want: int) -> None:
        was = quota("b", *rows)
        record = AppliedQuota("id-b", 1, was.compute_quota_config, was.compute_quota_target, "p", NOW)
        teams = document(fixed("b", row(Count=20)), demand=DEMAND)
        world = snapshot(teams, nodes(24), [was], observed_use=(use(0),), applied=(record,))
        assert counts_of_g5(planned(world))["b"] == want

    def test_a_promise_that_is_just_used_has_nothing_to_lend(self) -> None:
        teams = document(fixed("b", row(Count=20)), demand=DEMAND, pool=False)
        world = snapshot(teams, nodes(20), [quota("b", row(Count=19))], observed_use=(use(13),))
        (line,) = planned(world).allocations
        assert (line.after, line.because) == (20, "b 19 -> 20 ml.g5.8xlarge: guaranteed 20")

    def test_a_floor_of_part_of_an_instance_is_rounded_up(self) -> None:
        teams = document(
            fixed("b", row(P5, Count=4)),
            demand={"enabled": True, "maxMovePercent": 100},
            guardrails={"minimumQuota": {"b": 20}},
        )
        idle = (use(0, instance_type=P5),)
        world = snapshot(teams, nodes(4, P5), [quota("b", row(P5, Count=4))], observed_use=idle)
        assert counts(planned(world))["b"] == 3


class TestSmallPromises:
    """A percentage of a small promise is less than one instance."""

    def found(self, count: int = 4, peak: float = 0, **rules: Any) -> list[Finding]:
        teams = document(fixed("b", row(Count=count)), demand={**DEMAND, **rules})
        world = snapshot(teams, nodes(count), [quota("b", row(Count=count))], observed_use=(use(peak),))
        return [finding for finding in planned(world).findings if finding.code == "demand-never-moves"]

    def test_an_idle_promise_that_can_never_move_is_reported(self) -> None:
        [finding] = self.found()
        assert (finding.severity, finding.subject) == (Severity.INFO, "b")
        assert finding.because == (
            "b does not use all of its 4 ml.g5.8xlarge, and demand never moves any: "
            "10 % of 4 is less than one instance."
        )
        assert finding.remedy == "set demand.maxMovePercent to 25 or more, or lower the quota"
        assert finding.evidence == {
            "instanceType": G5,
            "promised": 4,
            "maxMovePercent": 10,
            "smallestPercent": 25,
        }

    @pytest.mark.parametrize(("count", "percent"), [(4, 25), (3, 33.34), (7, 14.29)])
    def test_the_percentage_that_is_named_moves_one_and_a_hundredth_less_moves_none(
        self, count: int, percent: float
    ) -> None:
        assert self.found(count, maxMovePercent=percent) == []
        [finding] = self.found(count, maxMovePercent=round(percent - 0.01, 2))
        assert finding.evidence["smallestPercent"] == percent

    def test_nobody_is_notified_where_nothing_would_move_or_none_is_to(self) -> None:
        assert self.found(peak=2.5) == []
        assert self.found(maxMovePercent=0) == []
        assert self.found(enabled=False) == []
        assert self.found(count=1) == []
