"""Budgets in GPU-hours per period: warned about, and where the document says so, borrowing stops first.

The guarantee is never touched: a team over its budget keeps its quota and loses, at most, what it borrows.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from taskgov.allocation.wording import said_number
from taskgov.findings import Finding, Severity
from taskgov.policy.document import Budget
from taskgov.snapshot.model import BudgetUse


def budget_findings(budgets: Iterable[Budget], uses: Iterable[BudgetUse]) -> Iterable[Finding]:
    """Return a finding for each budget that passed a threshold, and for each that is not measured."""
    used = {(use.team, use.period): use for use in uses}
    for budget in sorted(budgets, key=_key):
        use = used.get(_key(budget))
        if use is None:
            because = (
                f"The budget of {budget.team} ({said_number(budget.gpu_hours)} GPU-hours a {budget.period}) "
                "is not measured yet."
            )
            remedy = "wait for the first measurement, or see that the schedule of publish_usage runs"
            evidence: dict[str, str | float] = {"budget": budget.gpu_hours, "period": budget.period}
            yield Finding("budget-not-measured", Severity.INFO, budget.team, because, remedy, evidence)
            continue
        percent = use.gpu_hours * 100 / budget.gpu_hours
        passed = [threshold for threshold in budget.warn_percent if percent >= threshold]
        if passed:
            yield _passed(budget, use, percent, max(passed))


def out_of_budget(budgets: Iterable[Budget], uses: Iterable[BudgetUse]) -> frozenset[str]:
    """Return the teams whose borrowing stops: the budget is used up, and the document says so."""
    used = {(use.team, use.period): use.gpu_hours for use in uses}
    return frozenset(
        budget.team
        for budget in budgets
        if budget.lower_borrow_limit and used.get(_key(budget), 0.0) >= budget.gpu_hours
    )


def borrowing_resumes_at(budgets: Iterable[Budget], uses: Iterable[BudgetUse]) -> datetime | None:
    """Return when the first period ends of a team whose borrowing is stopped; None when nobody's is."""
    used = {(use.team, use.period): use for use in uses}
    ends = (
        _end(used[_key(budget)])
        for budget in budgets
        if budget.lower_borrow_limit and _key(budget) in used and used[_key(budget)].gpu_hours >= budget.gpu_hours
    )
    return min(ends, default=None)


def _end(use: BudgetUse) -> datetime:
    """Return when the period ends: days are days in UTC, which has no summer time."""
    match use.period:
        case "day":
            return use.period_start + timedelta(days=1)
        case "week":
            return use.period_start + timedelta(days=7)
        case _:
            return (use.period_start.replace(day=28) + timedelta(days=4)).replace(day=1)


def _passed(budget: Budget, use: BudgetUse, percent: float, threshold: int) -> Finding:
    stopped = "; borrowing is stopped until the period ends" if budget.lower_borrow_limit and percent >= 100 else ""
    return Finding(
        code="budget-threshold",
        severity=Severity.ERROR if percent >= 100 else Severity.WARNING,
        subject=budget.team,
        because=f"{budget.team} used {said_number(use.gpu_hours)} of {said_number(budget.gpu_hours)} GPU-hours a "
        f"{budget.period} since {use.period_start:%Y-%m-%d %H:%M} UTC "
        f"({percent:.0f} %, threshold {threshold} %){stopped}.",
        remedy="use less, or raise the budget in the policy document",
        evidence={
            "used": use.gpu_hours,
            "budget": budget.gpu_hours,
            "percent": round(percent, 1),
            "period": budget.period,
        },
    )


def _key(budget: Budget) -> tuple[str, str]:
    return budget.team, budget.period
