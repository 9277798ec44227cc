from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from taskgov.allocation.plan import Plan, Reason
from taskgov.allocation.planner import plan_quotas
from taskgov.findings import Severity
from taskgov.snapshot.model import BudgetUse, Snapshot
from tests.allocation.world import NOW, document, fixed, nodes, quota, row, snapshot

PERIODS = ("day", "month")
SHARING = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50}}


def world(used: float | None, **budget: Any) -> Snapshot:
    """team-a has 100 GPU-hours a month."""
    budgets = [{"team": "team-a", "gpuHours": 100, **budget}]
    policy = document(fixed("team-a", row(Count=2), **SHARING), budgets=budgets, pool=False)
    uses = () if used is None else (BudgetUse("team-a", NOW.replace(day=1, hour=0), used),)
    return snapshot(policy, nodes(2), [quota("team-a", row(Count=2), settings=SHARING)], budget_use=uses)


def plan_of(each: Snapshot) -> Plan:
    return plan_quotas(each, mode="apply")


CASES = {
    "below every threshold nothing is said": (79.9, []),
    "the first threshold is a warning": (80.0, [("budget-threshold", Severity.WARNING)]),
    "a used-up budget is an error": (100.0, [("budget-threshold", Severity.ERROR)]),
    "a budget that is not measured says so": (None, [("budget-not-measured", Severity.INFO)]),
}


@pytest.mark.parametrize(("used", "want"), CASES.values(), ids=CASES.keys())
def test_budgets(used: float | None, want: list[tuple[str, Severity]]) -> None:
    plan = plan_of(world(used))
    assert [(finding.code, finding.severity) for finding in plan.findings] == want
    assert plan.changes == ()


def test_the_sentence_has_use_budget_period_and_threshold() -> None:
    [finding] = plan_of(world(85, warnPercent=[50, 80])).findings
    assert finding.because == (
        "team-a used 85 of 100 GPU-hours a month since 2026-11-01 00:00 UTC (85 %, threshold 80 %)."
    )


def test_where_the_document_says_so_borrowing_stops_and_the_guarantee_stays() -> None:
    [change] = plan_of(world(100, lowerBorrowLimit=True)).changes
    assert change.reason is Reason.BUDGET
    assert change.after.to_api() == {
        "ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "Count": 2}],
        "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 0},
    }
    assert "borrowing stops" in change.because


def test_below_the_budget_borrowing_continues() -> None:
    assert plan_of(world(99, lowerBorrowLimit=True)).changes == ()


def test_budgets_of_other_periods_are_measured_apart() -> None:
    each = world(85)
    assert each.policy is not None
    daily = {"team": "team-a", "gpuHours": 8, "period": "day"}
    monthly = {"team": "team-a", "gpuHours": 100}
    policy = document(fixed("team-a", row(Count=2), **SHARING), budgets=[daily, monthly], pool=False)
    uses = (*each.budget_use, BudgetUse("team-a", NOW.replace(hour=0), 9, period="day"))
    told = plan_of(replace(each, policy=policy, budget_use=uses)).findings
    assert [finding.evidence["percent"] for finding in told] == [112.5, 85.0]


@pytest.mark.parametrize(
    ("period", "start", "end"),
    [
        ("day", datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)),
        ("week", datetime(2026, 11, 16, tzinfo=UTC), datetime(2026, 11, 23, tzinfo=UTC)),
        ("month", datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)),
        ("month", datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)),
    ],
)
def test_when_the_period_ends_the_plan_is_due_again_and_borrowing_resumes(
    period: str, start: datetime, end: datetime
) -> None:
    stopped = replace(
        world(None, lowerBorrowLimit=True, period=period), budget_use=(BudgetUse("team-a", start, 100, period),)
    )
    assert plan_of(stopped).recheck_at == end


def test_a_budget_that_is_not_used_up_makes_no_plan_due() -> None:
    assert plan_of(world(99, lowerBorrowLimit=True)).recheck_at is None
    assert plan_of(world(100)).recheck_at is None


def test_of_two_budgets_that_are_used_up_the_first_period_to_end_makes_the_plan_due() -> None:
    day, month = ({"team": "team-a", "gpuHours": 10, "period": name, "lowerBorrowLimit": True} for name in PERIODS)
    each = world(100)
    policy = document(fixed("team-a", row(Count=2), **SHARING), budgets=[day, month], pool=False)
    uses = (*each.budget_use, BudgetUse("team-a", NOW.replace(hour=0), 11, period="day"))
    due = plan_of(replace(each, policy=policy, budget_use=uses)).recheck_at
    assert due == datetime(2026, 11, 21, tzinfo=UTC)


def test_the_percentage_of_the_evidence_is_rounded_to_a_tenth() -> None:
    [finding] = plan_of(world(85.26)).findings
    assert finding.evidence == {"used": 85.26, "budget": 100, "percent": 85.3, "period": "month"}
