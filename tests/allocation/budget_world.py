"""A team with a budget: what it shares today, what the document says of that, and what a run writes and records."""

from dataclasses import replace
from typing import Any

from taskgov.allocation.applied_record import remember
from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.findings import Finding
from taskgov.hyperpod.model import ComputeQuota
from taskgov.snapshot.model import BudgetUse, Snapshot
from tests.allocation.world import G5, NOW, applied, document, fixed, nodes, quota, row, snapshot

NOT_RESUMED = "borrowing-not-resumed"
STOP = {"Strategy": "LendAndBorrow", "BorrowLimit": 0}


def sharing(limit: int | None = None, strategy: str = "LendAndBorrow", **absolute: int) -> dict[str, Any]:
    stated: dict[str, Any] = {"Strategy": strategy}
    if limit is not None:
        stated["BorrowLimit"] = limit
    if absolute:
        stated["AbsoluteBorrowLimits"] = [{"InstanceType": G5, **absolute}]
    return stated


def config(stated: dict[str, Any] | None) -> dict[str, Any]:
    return {} if stated is None else {"ResourceSharingConfig": stated}


def world(
    today: dict[str, Any] | None, said: dict[str, Any] | None = None, *, used: float = 0, **more: Any
) -> Snapshot:
    """team-a has 2, may use 100 GPU-hours a month, and shares as `today`; the document says `said` of that."""
    budgets = more.pop("budgets", [{"team": "team-a", "gpuHours": 100, "lowerBorrowLimit": True}])
    count, status = more.pop("count", 2), more.pop("status", "Created")
    policy = document(fixed("team-a", row(Count=count), **config(said)), budgets=budgets, pool=False, **more)
    held = quota("team-a", row(Count=2), settings=config(today), status=status)
    return spent(snapshot(policy, nodes(4), [held]), used)


def spent(each: Snapshot, used: float) -> Snapshot:
    return replace(each, budget_use=(BudgetUse("team-a", NOW.replace(day=1, hour=0), used),))


def planned(each: Snapshot) -> Plan:
    return plan_quotas(each, mode="apply")


def written(each: Snapshot, used: float) -> Snapshot:
    """The world after a run, with the record of each write, when so many hours are used."""
    now = spent(each, used)
    plan = planned(now)
    records = {record.compute_quota_id: record for record in each.applied}
    after = applied(now, plan)
    version = {held.compute_quota_id: held.compute_quota_version for held in after.quotas}
    for change in plan.changes:
        key = change.resource_id or f"id-{change.team}"
        if key in version:
            records[key] = remember(
                change, records.get(key), quota_id=key, version=version[key], plan_id=plan.plan_id, now=NOW
            )
    return replace(after, applied=tuple(records.values()))


def edited(each: Snapshot, stated: dict[str, Any], count: int = 2) -> Snapshot:
    """A person writes the quota of team-a."""
    (held,) = each.quotas
    version = held.compute_quota_version + 1
    return replace(each, quotas=(quota("team-a", row(Count=count), version=version, settings=config(stated)),))


def the_quota(each: Snapshot) -> ComputeQuota:
    (held,) = each.quotas
    return held


def shares(each: Snapshot) -> dict[str, Any] | None:
    stated = the_quota(each).compute_quota_config.resource_sharing_config
    return None if stated is None else stated.to_api()


def found(each: Snapshot, code: str) -> list[Finding]:
    return [finding for finding in planned(each).findings if finding.code == code]
