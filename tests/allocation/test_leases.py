from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from taskgov.allocation.plan import Plan, Reason
from taskgov.allocation.planner import plan_quotas
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota
from tests.allocation.world import (
    G5,
    NOW,
    P5,
    applied,
    broken,
    counts,
    document,
    fixed,
    nodes,
    quota,
    row,
    share,
    snapshot,
)

HOUR = timedelta(hours=1)


def lease(to: str = "team-a", source: str = "shared-pool", count: int = 1, **fields: Any) -> dict[str, Any]:
    given = {"instanceType": G5, "start": NOW - HOUR, "end": NOW + 3 * HOUR, "reason": "paper deadline", **fields}
    return {"to": to, "from": source, "count": count, **given}


def world(*leases: Mapping[str, Any], instances: int = 8, **sections: Any) -> Snapshot:
    teams = fixed("team-a", row(Count=2)), fixed("team-b", row(Count=4))
    return snapshot(document(*teams, leases=leases, **sections), nodes(instances))


def plan_of(each: Snapshot) -> Plan:
    return plan_quotas(each, mode="apply")


CASES: Mapping[str, tuple[Snapshot, dict[str, float]]] = {
    "the pool lends to a team": (world(lease()), {"team-a": 3, "team-b": 4, "shared-pool": 1}),
    "a team lends to a team": (world(lease(source="team-b", count=3)), {"team-a": 5, "team-b": 1, "shared-pool": 2}),
    "a lease that has not started moves nothing": (
        world(lease(start=NOW + HOUR)),
        {"team-a": 2, "team-b": 4, "shared-pool": 2},
    ),
    "a lease starts at its first moment": (world(lease(start=NOW)), {"team-a": 3, "team-b": 4, "shared-pool": 1}),
    "a lease is over at its last moment": (world(lease(end=NOW)), {"team-a": 2, "team-b": 4, "shared-pool": 2}),
    "two leases add up": (
        world(lease(), lease("team-b", start=NOW - HOUR / 2)),
        {"team-a": 3, "team-b": 5, "shared-pool": 0},
    ),
    "a borrowed instance may be lent on": (
        world(lease("team-b", count=2), lease(source="team-b", count=5, start=NOW - HOUR / 2)),
        {"team-a": 7, "team-b": 1, "shared-pool": 0},
    ),
}


@pytest.mark.parametrize(("each", "want"), CASES.values(), ids=CASES.keys())
def test_leases_move(each: Snapshot, want: dict[str, float]) -> None:
    plan = plan_of(each)
    assert counts(plan) == want
    assert plan_of(applied(each, plan)).changes == ()


NO_FLOOR = world(lease(source="team-b", count=5))
REFUSED: Mapping[str, tuple[Snapshot, str]] = {
    "a pool that has nothing left": (
        world(lease(count=3)),
        "the shared pool has no 3 of ml.g5.8xlarge left; it can give 2 (partial: true takes that)",
    ),
    "a donor that has fewer": (
        NO_FLOOR,
        "the donor team-b has 4 ml.g5.8xlarge, and cannot give 5; it can give 4 (partial: true takes that)",
    ),
    "a donor at its floor": (
        world(lease(source="team-b", count=2), guardrails={"minimumQuota": {"team-b": 3}}),
        (
            "the donor team-b has 4 ml.g5.8xlarge and a floor of 3, and cannot give 2; "
            "it can give 1 (partial: true takes that)"
        ),
    ),
    "a donor without a quota": (
        world(lease(source="nobody")),
        "the quota of the donor nobody is left as it is (it is not governed by this plan)",
    ),
    "a borrower without a promise": (
        world(lease("nobody")),
        "the quota of the borrower nobody is left as it is (it is not governed by this plan)",
    ),
    "a frozen donor": (
        replace(
            world(lease(source="team-b"), guardrails={"freeze": ["team-b"]}), quotas=(quota("team-b", row(Count=4)),)
        ),
        "the quota of the donor team-b is left as it is (the team is frozen)",
    ),
}


@pytest.mark.parametrize(("each", "because"), REFUSED.values(), ids=REFUSED.keys())
def test_a_lease_is_refused_by(each: Snapshot, because: str) -> None:
    [finding] = [finding for finding in plan_of(each).findings if finding.code == "lease-refused"]
    assert finding.because.endswith(f"(paper deadline) is refused: {because}.")


def test_a_borrower_of_parts_gets_the_parts_of_an_instance() -> None:
    promised = row(P5, Accelerators=2, VCpu=40, MemoryInGiB=500)
    policy = document(fixed("a", promised), leases=[lease("a", instanceType=P5)])
    [change, _] = plan_of(snapshot(policy, nodes(2, P5))).changes
    want = {"InstanceType": P5, "Accelerators": 10, "VCpu": 232.0, "MemoryInGiB": 2548.0}
    assert change.after.to_api()["ComputeQuotaResources"] == [want]


def test_a_lease_is_said_wherever_a_number_has_it() -> None:
    words = {line.team: line.because for line in plan_of(world(lease())).allocations}
    assert words["team-a"].endswith("+1 leased from shared-pool until 2026-11-20 15:00 UTC (paper deadline)")
    assert words["shared-pool"].endswith("-1 leased to team-a until 2026-11-20 15:00 UTC (paper deadline)")


def test_a_lease_starts_and_returns_by_the_clock_alone() -> None:
    before = world(lease(start=NOW + HOUR, end=NOW + 2 * HOUR))
    before = applied(before, plan_of(before))
    plan = plan_of(before)
    assert (plan.changes, plan.recheck_at) == ((), NOW + HOUR)

    during = replace(before, taken_at=NOW + HOUR, applied=written(before))
    plan = plan_of(during)
    assert [(change.team, change.reason) for change in plan.changes] == [
        ("shared-pool", Reason.LEASE_STARTED),
        ("team-a", Reason.LEASE_STARTED),
    ]
    assert plan.recheck_at == NOW + 2 * HOUR

    after = applied(during, plan)
    after = replace(after, taken_at=NOW + 2 * HOUR, applied=written(after))
    plan = plan_of(after)
    assert [(change.team, change.reason) for change in plan.changes] == [
        ("team-a", Reason.LEASE_ENDED),
        ("shared-pool", Reason.LEASE_ENDED),
    ]
    assert counts(plan) == {"team-a": 2, "team-b": 4, "shared-pool": 2}


def written(each: Snapshot) -> tuple[AppliedQuota, ...]:
    """What was written just before the snapshot's time."""
    return tuple(
        AppliedQuota(
            compute_quota_id=one.compute_quota_id,
            version=one.compute_quota_version,
            config=one.compute_quota_config,
            target=one.compute_quota_target,
            plan_id="plan-1",
            at=each.taken_at - HOUR / 2,
        )
        for one in each.quotas
    )


def test_a_shortage_comes_before_a_lease() -> None:
    each = world(lease(source="team-b", count=3))
    each = replace(each, nodes=(*nodes(4), *broken(4)))
    assert counts(plan_of(each)) == {"team-a": 4, "team-b": 0, "shared-pool": 0}
    each = replace(each, nodes=(*nodes(3), *broken(5)))
    assert counts(plan_of(each)) == {"team-a": 1, "team-b": 2, "shared-pool": 0}
    assert "has 2 ml.g5.8xlarge, and cannot give 3" in str(plan_of(each).findings)


def test_a_share_may_be_lent_above_its_floor() -> None:
    policy = document(
        share("a", 50, floor=2),
        share("b", 50),
        leases=[lease("b", "a", count=3)],
        pool=False,
    )
    assert counts(plan_of(snapshot(policy, nodes(10)))) == {"a": 2, "b": 8}
