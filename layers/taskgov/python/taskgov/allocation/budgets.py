"""Budgets in GPU-hours per period: they warn, and stop borrowing if the document says so.

A budget never changes the guarantee: a team over its budget keeps its quota and loses at most what it borrows.
"""

from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta

from taskgov.allocation.allocations import Allocation
from taskgov.allocation.governed import LeftAlone
from taskgov.allocation.plan import Change
from taskgov.allocation.sharing import is_stop, sharing_before
from taskgov.allocation.wording import said_number, said_setting
from taskgov.findings import Finding
from taskgov.findings.of_plan import BORROWING_LEFT_ALONE, BORROWING_UNKNOWN, BUDGET_NOT_MEASURED, BUDGET_THRESHOLD
from taskgov.hyperpod.borrowing import sharing_of
from taskgov.hyperpod.model import ComputeQuotaConfig, ResourceSharingConfig, SharingStrategy
from taskgov.policy.document import Budget
from taskgov.snapshot.model import BudgetUse, Snapshot
from taskgov.snapshot.records import AppliedQuota


def budget_findings(
    budgets: Iterable[Budget], uses: Iterable[BudgetUse], borrowing: Mapping[str, str]
) -> Iterable[Finding]:
    """Return a finding for each budget that passed a threshold, and for each that is not measured.

    `borrowing` has, by team, the effect of a used-up budget on borrowing (`said_borrowing`).
    """
    used = {(use.team, use.period): use for use in uses}
    for budget in sorted(budgets, key=_key):
        use = used.get(_key(budget))
        if use is None:
            yield BUDGET_NOT_MEASURED.about(
                budget.team,
                {"budget": budget.gpu_hours, "period": budget.period},
                team=budget.team,
                budget=said_number(budget.gpu_hours),
                period=budget.period,
            )
            continue
        percent = use.gpu_hours * 100 / budget.gpu_hours
        passed = [threshold for threshold in budget.warn_percent if percent >= threshold]
        if passed:
            yield _passed(budget, use, percent, max(passed), borrowing)


def out_of_budget(budgets: Iterable[Budget], uses: Iterable[BudgetUse]) -> frozenset[str]:
    """Return the teams whose borrowing stops, because the budget is used up and the document requires it."""
    used = {(use.team, use.period): use.gpu_hours for use in uses}
    return frozenset(
        budget.team
        for budget in budgets
        if budget.lower_borrow_limit and used.get(_key(budget), 0.0) >= budget.gpu_hours
    )


def borrowing_resumes_at(budgets: Iterable[Budget], uses: Iterable[BudgetUse]) -> datetime | None:
    """Return when the first period of a stopped team ends; None if no team is stopped."""
    used = {(use.team, use.period): use for use in uses}
    ends = (
        _end(used[_key(budget)])
        for budget in budgets
        if budget.lower_borrow_limit and _key(budget) in used and used[_key(budget)].gpu_hours >= budget.gpu_hours
    )
    return min(ends, default=None)


def said_borrowing(
    allocations: Iterable[Allocation],
    left_alone: Iterable[LeftAlone],
    left_out: Iterable[Change],
    refused: Container[str],
) -> dict[str, str]:
    """Return in words, by team, what a used-up budget makes of its borrowing; nothing of teams that never borrow.

    The quotas of teams in `refused` are not written, because that was refused.
    """
    unwritten = {change.team for change in left_out}
    said = {quota.team: _said_of_left_alone(quota) for quota in left_alone}
    for allocation in allocations:
        team = allocation.promise.team
        is_there = allocation.promise.holds is not None or bool(allocation.config.compute_quota_resources)
        match allocation.borrowing:
            case "stopped" if allocation.within_budget is None:
                said[team] = "borrowing is stopped"
            case "stopped":
                said[team] = "borrowing is stopped until the period ends"
            case "stops" if team in refused:
                said[team] = "borrowing continues: the write of the quota was refused"
            case "stops" if team in unwritten:
                said[team] = "borrowing continues: there is no room to write the quota"
            case "stops" if is_there:
                said[team] = "this plan stops its borrowing until the period ends"
            case _:
                said[team] = ""
    return said


def unresumed(
    snapshot: Snapshot, allocations: Iterable[Allocation], left_alone: Iterable[LeftAlone], stopped: Container[str]
) -> Iterable[Finding]:
    """Return a finding for each borrow limit of a stop that does not go by itself when the period ends.

    Either it is not known what was before (records of an earlier version), or the quota is left alone.
    """
    applied = {record.compute_quota_id: record for record in snapshot.applied}
    budgets = () if snapshot.policy is None else snapshot.policy.budgets
    stopping = {budget.team for budget in budgets if budget.lower_borrow_limit}
    for allocation in allocations:
        quota = allocation.promise.quota
        if quota is not None and allocation.within_budget is None and allocation.promise.team in stopping:
            yield _unknown(allocation.promise.team, applied[quota.compute_quota_id])
    for left in left_alone:
        before = sharing_before(left.quota, applied.get(left.quota.compute_quota_id))
        if before.is_stopped and before.within_budget is not None and before.is_known and left.team not in stopped:
            yield _left_alone(left, before.within_budget)


def _said_of_left_alone(left: LeftAlone) -> str:
    sharing = sharing_of(left.quota.compute_quota_config)
    if sharing.strategy is not SharingStrategy.LEND_AND_BORROW:
        return ""
    goes_on = f"borrowing continues: the quota is left alone, because {left.because}"
    return "borrowing is stopped" if is_stop(sharing) else goes_on


def _unknown(team: str, applied: AppliedQuota) -> Finding:
    others = (earlier for earlier in reversed(applied.history or ()) if not is_stop(_sharing(earlier.config)))
    last = next(others, None)
    before = f" Until {last.until:%Y-%m-%d %H:%M} UTC it was {said_setting(_sharing(last.config))}." if last else ""
    return BORROWING_UNKNOWN.about(team, {"borrowLimit": 0}, team=team, before=before)


def _left_alone(left: LeftAlone, within: ResourceSharingConfig) -> Finding:
    return BORROWING_LEFT_ALONE.about(
        left.team, {"borrowLimit": 0}, team=left.team, because=left.because, setting=said_setting(within)
    )


def _sharing(config: ComputeQuotaConfig) -> ResourceSharingConfig | None:
    return config.resource_sharing_config


def _end(use: BudgetUse) -> datetime:
    """Return when the period ends. Days are in UTC, which has no daylight saving time."""
    match use.period:
        case "day":
            return use.period_start + timedelta(days=1)
        case "week":
            return use.period_start + timedelta(days=7)
        case _:
            return (use.period_start.replace(day=28) + timedelta(days=4)).replace(day=1)


def _passed(budget: Budget, use: BudgetUse, percent: float, threshold: int, borrowing: Mapping[str, str]) -> Finding:
    stops = budget.lower_borrow_limit and use.gpu_hours >= budget.gpu_hours
    told = borrowing.get(budget.team, "") if stops else ""
    stopped = f"; {told}" if told else ""
    evidence = {
        "used": use.gpu_hours,
        "budget": budget.gpu_hours,
        "percent": round(percent, 1),
        "period": budget.period,
    }
    return BUDGET_THRESHOLD.about(
        budget.team,
        evidence,
        case=percent,
        team=budget.team,
        used=said_number(use.gpu_hours),
        budget=said_number(budget.gpu_hours),
        period=budget.period,
        since=use.period_start,
        percent=percent,
        threshold=threshold,
        borrowing=stopped,
    )


def _key(budget: Budget) -> tuple[str, str]:
    return budget.team, budget.period
