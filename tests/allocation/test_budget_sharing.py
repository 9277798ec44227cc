"""What a team borrows when its budget stops that, and what it returns to when the period ends."""

from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation.applied_record import remember
from taskgov.allocation.plan import Reason
from taskgov.hyperpod.borrowing import borrow_percent, sharing_of
from taskgov.hyperpod.model import ComputeQuotaConfig, ResourceSharingConfig
from taskgov.services.plan_path import path_of, undone
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AnnouncedWrite, AppliedQuota
from tests.allocation.budget_world import (
    NOT_RESUMED,
    STOP,
    config,
    edited,
    found,
    planned,
    shares,
    sharing,
    spent,
    the_quota,
    world,
    written,
)
from tests.allocation.world import C5, G6, NOW, document, fixed, nodes, quota, row, snapshot

TODAY: dict[str, dict[str, Any] | None] = {
    "a percentage": sharing(200),
    "absolute limits": sharing(Accelerators=1),
    "absolute limits beside a percentage": sharing(30, Accelerators=1),
    "a strategy alone": sharing(),
    "nothing": None,
}


@pytest.mark.parametrize("today", TODAY.values(), ids=TODAY.keys())
def test_what_the_quota_said_of_borrowing_comes_back_when_the_period_ends(today: dict[str, Any] | None) -> None:
    stopped = written(world(today), 100)
    assert shares(stopped) == STOP
    assert planned(stopped).changes == ()
    back = written(stopped, 0)
    before, after = (sharing_of(each.quotas[0].compute_quota_config) for each in (world(today), back))
    assert borrow_percent(after) == borrow_percent(before)
    assert after.absolute_borrow_limits == before.absolute_borrow_limits
    assert planned(back).changes == ()


def test_the_default_of_hyperpod_is_written_out_when_it_comes_back() -> None:
    assert shares(written(written(world(None), 100), 0)) == sharing(50)


def test_a_stop_that_is_written_again_still_has_what_stood_before_the_first() -> None:
    stopped = written(world(sharing(200)), 100)
    assert stopped.policy is not None
    teams = document(fixed("team-a", row(Count=3)), pool=False).teams
    again = written(replace(stopped, policy=stopped.policy.model_copy(update={"teams": teams})), 120)
    assert (the_quota(again).compute_quota_version, shares(again)) == (3, STOP)
    assert shares(written(again, 0)) == sharing(200)


def test_a_budget_that_is_taken_out_of_the_document_stops_nothing_any_more() -> None:
    stopped = written(world(sharing(200)), 100)
    assert stopped.policy is not None
    assert shares(written(replace(stopped, policy=stopped.policy.model_copy(update={"budgets": ()})), 100)) == sharing(
        200
    )


def test_what_the_document_states_holds_when_borrowing_resumes() -> None:
    stopped = written(world(sharing(200), sharing(30)), 100)
    assert shares(stopped) == STOP
    assert shares(written(stopped, 0)) == sharing(30)


STATED: dict[str, tuple[dict[str, Any] | None, dict[str, Any], dict[str, Any] | None]] = {
    "a strategy without limits leaves today's": (sharing(200), sharing(), sharing(200)),
    "a strategy without limits leaves today's absolute ones": (
        sharing(30, Accelerators=1),
        sharing(),
        sharing(30, Accelerators=1),
    ),
    "another strategy has no limits of today's": (sharing(200), sharing(strategy="Lend"), sharing(strategy="Lend")),
    "absolute limits are stated limits": (sharing(200), sharing(Accelerators=1), sharing(Accelerators=1)),
    "a strategy where nothing stands": (None, sharing(), None),
}


@pytest.mark.parametrize(("today", "said", "want"), STATED.values(), ids=STATED.keys())
def test_limits_that_the_document_leaves_unsaid_stay(
    today: dict[str, Any] | None, said: dict[str, Any], want: dict[str, Any] | None
) -> None:
    assert shares(written(world(today, said), 0)) == want


def test_a_limit_of_nothing_that_the_document_states_is_no_stop_of_a_budget() -> None:
    stands = written(world(sharing(200), STOP), 0)
    assert stands.policy is not None
    unsaid = document(fixed("team-a", row(Count=2)), pool=False).teams
    later = replace(stands, policy=stands.policy.model_copy(update={"teams": unsaid}))
    assert planned(later).changes == ()
    assert found(later, NOT_RESUMED) == []


def test_a_limit_of_nothing_that_the_document_stated_needs_nobody_when_the_quota_is_left_alone() -> None:
    stands = written(world(sharing(200), STOP), 0)
    assert stands.policy is not None
    frozen = stands.policy.guardrails.model_copy(update={"freeze": ("team-a",)})
    assert found(replace(stands, policy=stands.policy.model_copy(update={"guardrails": frozen})), NOT_RESUMED) == []


def test_a_limit_of_nothing_that_a_person_set_stays() -> None:
    never_written = world(STOP)
    assert planned(never_written).changes == ()
    assert found(never_written, NOT_RESUMED) == []
    adopted = edited(written(world(sharing(200), handEdits="adopt", count=3), 0), STOP)
    assert shares(written(adopted, 0)) == STOP


def test_a_run_that_is_broken_off_between_two_writes_forgets_nothing() -> None:
    """A full node of 4 GPUs: team-a gives a GPU and takes vCPUs, the other team the other way round."""
    budgets = [{"team": "team-a", "gpuHours": 100, "lowerBorrowLimit": True}]
    was = {"Accelerators": 2, "VCpu": 12, "MemoryInGiB": 96}
    said = fixed("team-a", row(G6, **was | {"Accelerators": 1, "VCpu": 24}))
    other = fixed("b", row(G6, Accelerators=3, VCpu=24, MemoryInGiB=96))
    policy = document(said, other, pool=False, budgets=budgets)
    held = quota("team-a", row(G6, **was), settings=config(STOP))
    within = ResourceSharingConfig(borrow_limit=200)
    record = AppliedQuota("id-team-a", 1, held.compute_quota_config, held.compute_quota_target, "p", NOW)
    record = replace(record, sharing_within_budget=within)
    others = quota("b", row(G6, Accelerators=2, VCpu=36, MemoryInGiB=96))
    full = spent(snapshot(policy, nodes(1, G6), [held, others], applied=(record,)), 100)
    low = next(change for change in planned(full).changes if change.team == "team-a")
    assert low.is_low
    after = remember(low, record, quota_id="id-team-a", version=2, plan_id="p", now=NOW)
    assert after.sharing_within_budget == within
    assert isinstance(low.after, ComputeQuotaConfig)
    broken_off = held.model_copy(update={"compute_quota_version": 2, "compute_quota_config": low.after})
    goes_on = replace(full, quotas=(broken_off, others), applied=(after,))
    last = [change for change in planned(spent(goes_on, 0)).changes if change.team == "team-a"][-1]
    assert last.after.to_api()["ResourceSharingConfig"] == sharing(200)


def rolled_back(each: Snapshot, used: float) -> Snapshot:
    """The world after a run that was taken back, with its records."""
    plan = planned(spent(each, used))
    (change,) = plan.changes
    after = written(each, used)
    back = undone(change, path_of(plan.changes, change))
    held = the_quota(each).model_copy(update={"compute_quota_version": 9})
    record = remember(back, after.applied[0], quota_id="id-team-a", version=9, plan_id="back", now=NOW)
    return replace(after, quotas=(held,), applied=(record,))


def test_a_stop_that_is_rolled_back_leaves_the_limit_of_before() -> None:
    back = rolled_back(written(world(sharing(200), count=3), 0), 100)
    assert shares(back) == sharing(200)
    assert planned(spent(back, 0)).changes == ()


def test_a_return_that_is_rolled_back_is_still_a_stop() -> None:
    back = rolled_back(written(world(sharing(200)), 100), 0)
    assert shares(back) == STOP
    assert shares(written(back, 0)) == sharing(200)


def test_a_limit_of_the_document_that_is_rolled_back_is_not_taken_for_todays() -> None:
    back = rolled_back(world(sharing(200), sharing(30)), 0)
    assert back.policy is not None
    unsaid = document(fixed("team-a", row(Count=2)), pool=False).teams
    assert planned(replace(back, policy=back.policy.model_copy(update={"teams": unsaid}))).changes == ()


def test_a_write_whose_record_was_lost_is_known_by_its_announcement() -> None:
    before = written(world(sharing(200), count=3), 0)
    stopped = written(before, 100)
    (known,), (lost,) = before.applied, stopped.applied
    announced = AnnouncedWrite(lost.version, lost.config, lost.target, None, lost.sharing_within_budget)
    without = replace(stopped, applied=(replace(known, announced=announced),))
    assert planned(without).changes == ()
    assert shares(written(without, 0)) == sharing(200)


class TestEditsByHand:
    """A person changes the quota while borrowing is stopped."""

    def stopped(self, rule: str) -> Snapshot:
        return written(world(sharing(200), handEdits=rule), 100)

    def test_an_edit_that_is_kept_is_left_alone_and_the_finding_says_that_borrowing_continues(self) -> None:
        kept = edited(self.stopped("keep"), sharing(100))
        assert planned(kept).changes == ()
        [finding] = found(kept, "budget-threshold")
        assert finding.because.endswith(
            "; borrowing continues: the quota is left alone, because it was changed by hand."
        )

    def test_an_edit_that_is_adopted_is_what_borrowing_returns_to(self) -> None:
        stopped = written(edited(self.stopped("adopt"), sharing(100)), 100)
        assert shares(stopped) == STOP
        assert shares(written(stopped, 0)) == sharing(100)

    def test_an_edit_of_the_amount_alone_adopts_no_stop(self) -> None:
        stopped = written(edited(self.stopped("adopt"), STOP, count=3), 100)
        back = written(stopped, 0)
        assert shares(back) == sharing(200)
        assert the_quota(back).compute_quota_config.compute_quota_resources[0].count == 3
        assert planned(back).changes == ()

    def test_an_edit_that_is_put_right_is_forgotten(self) -> None:
        stopped = written(edited(self.stopped("putRight"), sharing(100)), 100)
        assert shares(stopped) == STOP
        assert shares(written(stopped, 0)) == sharing(200)

    def test_a_quota_that_is_kept_with_the_stop_in_it_is_reported_when_the_period_ends(self) -> None:
        kept = edited(self.stopped("keep"), STOP, count=1)
        assert found(kept, NOT_RESUMED) == []
        [finding] = found(spent(kept, 0), NOT_RESUMED)
        assert finding.because == (
            "team-a is within its budget again, and its quota still has the borrow limit 0 of before: "
            "it is left alone, because it was changed by hand."
        )
        assert finding.evidence == {"borrowLimit": 0}
        assert finding.remedy == "set Strategy LendAndBorrow, BorrowLimit 200 by hand, or let the quota be governed"


def test_a_quota_that_is_created_again_returns_to_what_it_shared_before_the_stop() -> None:
    stopped = written(world(sharing(200)), 100)
    failed = the_quota(stopped).model_copy(update={"status": "UpdateRollbackFailed"})
    plan = planned(replace(stopped, quotas=(failed,)))
    creation = plan.changes[-1]
    assert creation.reason is Reason.RECOVERY
    assert creation.sharing_within_budget == ResourceSharingConfig(borrow_limit=200)
    within = planned(spent(replace(stopped, quotas=(failed,)), 0)).changes[-1]
    assert within.after.to_api()["ResourceSharingConfig"] == sharing(200)


def test_a_type_that_may_only_be_borrowed_is_no_longer_borrowed() -> None:
    absolute = {"Strategy": "LendAndBorrow", "AbsoluteBorrowLimits": [{"InstanceType": C5, "VCpu": 8}]}
    stopped = written(world(absolute), 100)
    assert shares(stopped) == STOP
    assert shares(written(stopped, 0)) == sharing(50) | absolute
