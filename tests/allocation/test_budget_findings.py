"""What plans say of borrowing that a budget stops: in findings, in changes, and of records that do not know it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation.plan import Reason
from taskgov.snapshot.model import BudgetUse, Snapshot
from taskgov.snapshot.records import AppliedQuota
from tests.allocation.budget_world import (
    NOT_RESUMED,
    STOP,
    found,
    planned,
    shares,
    sharing,
    spent,
    the_quota,
    world,
    written,
)
from tests.allocation.world import NOW, document, fixed, row


class TestRecordsOfEarlierVersions:
    """A record that does not say how the team shares within its budget."""

    def stopped(self, said: dict[str, Any] | None = None) -> Snapshot:
        each = written(world(sharing(200), said), 100)
        return replace(each, applied=tuple(self.old(each.applied)))

    def old(self, records: Iterable[AppliedQuota]) -> Iterable[AppliedQuota]:
        return [replace(record, sharing_within_budget=None) for record in records]

    def test_what_cannot_be_known_is_said_and_nothing_is_guessed(self) -> None:
        each = spent(self.stopped(), 0)
        assert planned(each).changes == ()
        [finding] = found(each, NOT_RESUMED)
        assert finding.because == (
            "The borrow limit of team-a is 0. Its record is of an earlier version: it does not say whether a budget set"
            " that, and what to return to. Until 2026-11-20 12:00 UTC it was Strategy LendAndBorrow, BorrowLimit 200."
        )
        assert finding.remedy == "state ResourceSharingConfig of team-a in the policy document"
        assert finding.evidence == {"borrowLimit": 0}

    def test_it_is_said_as_long_as_it_is_not_known_whatever_else_is_written(self) -> None:
        each = self.stopped()
        assert each.policy is not None
        teams = document(fixed("team-a", row(Count=3)), pool=False).teams
        later = written(replace(each, policy=each.policy.model_copy(update={"teams": teams})), 0)
        assert the_quota(later).compute_quota_version == 3
        assert len(found(later, NOT_RESUMED)) == 1

    def test_what_the_document_states_is_known(self) -> None:
        each = self.stopped(sharing(30))
        assert found(each, NOT_RESUMED) == []
        assert shares(written(each, 0)) == sharing(30)

    def test_without_a_budget_that_stops_borrowing_nobody_is_asked(self) -> None:
        each = self.stopped()
        assert each.policy is not None
        without = replace(each, policy=each.policy.model_copy(update={"budgets": ()}))
        assert found(without, NOT_RESUMED) == []


SAID = {
    "the plan stops it": (world(sharing(200), used=100), "; this plan stops its borrowing until the period ends."),
    "the plan stops it when more than the budget is used": (
        world(sharing(200), used=130),
        "(130 %, threshold 100 %); this plan stops its borrowing until the period ends.",
    ),
    "it is stopped": (written(world(sharing(200)), 100), "; borrowing is stopped until the period ends."),
    "a quota that says nothing borrows": (
        world(None, used=100),
        "; this plan stops its borrowing until the period ends.",
    ),
    "a team that never borrows": (world(sharing(strategy="Lend"), used=100), "threshold 100 %)."),
    "a limit of nothing all the time": (world(STOP, used=100), "threshold 100 %)."),
    "a frozen team": (
        world(sharing(200), used=100, guardrails={"freeze": ["team-a"]}),
        "; borrowing continues: the quota is left alone, because the team is frozen.",
    ),
    "a budget that only warns": (
        world(sharing(200), used=100, budgets=[{"team": "team-a", "gpuHours": 100}]),
        "threshold 100 %).",
    ),
    "within the budget": (world(sharing(200), used=99), "threshold 80 %)."),
}


@pytest.mark.parametrize(("each", "want"), SAID.values(), ids=SAID.keys())
def test_the_finding_says_what_becomes_of_borrowing(each: Snapshot, want: str) -> None:
    [finding] = found(each, "budget-threshold")
    assert finding.because.endswith(want)


def test_only_the_budget_that_is_used_up_and_stops_borrowing_says_so() -> None:
    day = {"team": "team-a", "gpuHours": 10, "period": "day", "lowerBorrowLimit": True}
    month = {"team": "team-a", "gpuHours": 100, "lowerBorrowLimit": True}
    week = {"team": "team-a", "gpuHours": 10, "period": "week"}
    each = world(sharing(200), used=85, budgets=[day, month, week])
    uses = (*each.budget_use, BudgetUse("team-a", NOW, 10, "day"), BudgetUse("team-a", NOW, 20, "week"))
    said = [finding.because for finding in found(replace(each, budget_use=uses), "budget-threshold")]
    assert ["stops its borrowing" in because for because in said] == [True, False, False]


def test_a_quota_that_is_created_while_the_budget_is_used_up_borrows_nothing() -> None:
    new = replace(world(None, sharing(200), used=100), quotas=())
    assert planned(new).changes[0].after.to_api()["ResourceSharingConfig"] == STOP
    [finding] = found(new, "budget-threshold")
    assert finding.because.endswith("; this plan stops its borrowing until the period ends.")
    assert shares(written(written(new, 100), 0)) == sharing(200)


def test_a_team_without_a_quota_of_its_own_has_no_borrowing_to_stop() -> None:
    each = replace(world(None, used=100), quotas=())
    policy = document({"name": "team-a"}, budgets=[{"team": "team-a", "gpuHours": 100, "lowerBorrowLimit": True}])
    [finding] = found(replace(each, policy=policy), "budget-threshold")
    assert finding.because.endswith("threshold 100 %).")


def test_the_changes_say_why() -> None:
    (stop,) = planned(world(None, used=100)).changes
    (resume,) = planned(spent(written(world(None), 100), 0)).changes
    setting, stopped = "resource sharing config", "Strategy LendAndBorrow, BorrowLimit 0"
    assert stop.because == f"the budget is used up: borrowing stops; {setting} default -> {stopped}"
    assert resume.because == (
        f"within its budget the team borrows again; {setting} {stopped} -> Strategy LendAndBorrow, BorrowLimit 50"
    )
    assert stop.reason is resume.reason is Reason.BUDGET


def test_a_team_that_never_borrows_has_no_change_for_its_budget() -> None:
    each = world(sharing(strategy="Lend"), used=100, count=3)
    (change,) = planned(each).changes
    assert change.reason is not Reason.BUDGET
    assert "borrowing" not in change.because
