"""What would let a workload run, who holds what, when, and what it was preempted for."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic_core import to_json

from taskgov.scheduling import settle
from taskgov_explain.find import UnknownNameError
from taskgov_explain.reasons import Reason
from taskgov_explain.workload import explain_workload
from tests.support.golden import assert_golden
from tests.support.lab import Lab, workload
from tests.support.memory import NOON

GOLDEN = Path(__file__).parent / "golden"


def lent_out() -> Lab:
    """Team A borrows two of team B's, who has a third of its quota in use."""
    lab = Lab().team("team-a", 2, borrow=200).team("team-b", 3).machines(5)
    lab.submit("team-b", "b-own").submit("team-a", "a-own", pods=2, ago=50)
    return lab.submit("team-a", "a-more", pods=2, ago=40)


def by_kind(lab: Lab, name: str) -> dict[str, str]:
    return {each.kind: each.because for each in explain_workload(lab.snapshot(), name).remedies}


def test_the_least_that_has_to_finish_is_named() -> None:
    lab = Lab().team("team-a", 8).machines(8)
    lab.submit("team-a", "small").submit("team-a", "middle", pods=2).submit("team-a", "large", pods=5)
    lab.submit("team-a", "waits", pods=2)
    assert by_kind(lab, "waits")["finish"] == "team-a/middle finishes"


def test_where_one_is_not_enough_several_have_to_finish_and_none_too_many() -> None:
    lab = Lab().team("team-a", 6).machines(6)
    for name, pods in (("one", 1), ("two", 2), ("three", 3), ("waits", 5)):
        lab.submit("team-a", name, pods=pods)
    assert by_kind(lab, "waits")["finish"] == "team-a/three, team-a/two finish"


def test_more_quota_helps_and_it_is_said_that_somebody_has_to_give_it() -> None:
    lab = Lab().team("team-a", 4, borrow=0).machines(4)
    lab.submit("team-a", "own", pods=3).submit("team-a", "waits", pods=3)
    assert by_kind(lab, "waits")["quota"] == (
        "the quota of team-a rises by 2 GPUs of ml.g5.8xlarge; 4 of 4 are guaranteed already: another quota must shrink"
    )


def test_a_higher_borrow_limit_helps_where_others_leave_quota_idle() -> None:
    lab = Lab().team("team-a", 4, borrow=25).team("team-b", 4).machines(8)
    lab.submit("team-a", "own", pods=4).submit("team-a", "waits", pods=3)
    answer = explain_workload(lab.snapshot(), "waits")
    [limit] = [each for each in answer.remedies if each.kind == "borrow-limit"]
    assert limit.because == "the borrow limit of team-a is 3 GPUs of ml.g5.8xlarge (BorrowLimit 75)"
    assert limit.amounts["ml.g5.8xlarge/nvidia.com/gpu"] == 3


def test_no_borrow_limit_helps_where_nobody_leaves_anything() -> None:
    lab = Lab().team("team-a", 4, borrow=25).team("team-b", 4).machines(8)
    lab.submit("team-b", "b-own", pods=4).submit("team-a", "own", pods=4).submit("team-a", "waits", pods=3)
    assert set(by_kind(lab, "waits")) == {"finish", "quota"}


def test_who_runs_on_borrowed_quota_is_shown_whose_it_is_and_when_it_would_have_to_leave() -> None:
    answer = explain_workload(lent_out().snapshot(), "a-more")
    assert answer.reason is Reason.ADMITTED
    assert answer.borrowing == (
        "team-a uses 4 GPUs of ml.g5.8xlarge with a quota of 2: 2 GPUs borrowed, from team-b (2 lent)",
    )
    [risk] = answer.risks
    assert (risk.lender, risk.size, risk.unused, risk.reason) == ("team-b", 1, 2, "InCohortReclamation")


def test_what_a_lowered_quota_leaves_is_over_quota_and_not_borrowed() -> None:
    snapshot = lent_out().snapshot()
    [queue] = [queue for queue in snapshot.kueue.cluster_queues if "team-a" in queue["metadata"]["name"]]
    for group in queue["spec"]["resourceGroups"]:
        for resource in group["flavors"][0]["resources"]:
            resource["nominalQuota"] = "1"  # it holds 4, and team-b leaves 2 idle
    answer = explain_workload(snapshot, "a-more")
    [beyond] = answer.borrowing
    assert beyond == (
        "team-a uses 4 GPUs of ml.g5.8xlarge with a quota of 1: 2 GPUs borrowed, from team-b (2 lent); "
        "1 GPU over quota, since the quota was lowered under running work"
    )
    assert {(holder.team, holder.borrowed, holder.over_quota) for holder in answer.holders} == {
        ("team-a", 2, 1),
        ("team-b", 0, 0),
    }


def test_a_preempted_workload_is_shown_by_whom_and_why() -> None:
    lab = lent_out().submit("team-b", "b-more", pods=2, ago=10)
    answer = explain_workload(lab.snapshot(), "a-more")
    assert answer.reason is Reason.WAITING_FOR_QUOTA
    [told] = answer.history
    assert told.startswith("preempted at 2026-11-20 11:50 by team-b: another team reclaimed its quota")
    assert answer.since == datetime(2026, 11, 20, 11, 50, tzinfo=UTC)


def test_the_earliest_time_follows_from_the_run_times_that_are_known() -> None:
    lab = Lab().team("team-a", 4).machines(4).submit("team-a", "own", pods=4).submit("team-a", "waits", pods=2, ago=30)
    snapshot = lab.snapshot()
    key = "hyperpod-ns-team-a/pytorchjob-own-a1b2c"
    answer = explain_workload(snapshot, "waits", {key: timedelta(hours=3)})
    assert answer.earliest == datetime(2026, 11, 20, 14, 0, tzinfo=UTC)  # admitted at 11:00, runs for 3 hours
    assert explain_workload(snapshot, "waits").earliest is None


def test_a_limit_on_execution_time_is_a_run_time() -> None:
    lab = Lab().team("team-a", 4).machines(4)
    item = workload("team-a", "own", 1, pods=4, created=NOON - timedelta(hours=1))
    lab.put({**item, "spec": {**item["spec"], "maximumExecutionTimeSeconds": 7200}})
    settle(lab.world, NOON - timedelta(hours=1))
    answer = explain_workload(lab.submit("team-a", "waits", pods=2, ago=30).snapshot(), "waits")
    assert answer.earliest == NOON + timedelta(hours=1)


def test_what_never_fits_the_queue_has_no_earliest_time() -> None:
    lab = Lab().team("team-a", 4).machines(4).submit("team-a", "waits", pods=9)
    assert explain_workload(lab.snapshot(), "waits").earliest_because == "never, with today's quotas and borrow limits"


@pytest.mark.parametrize(
    "name", ["b-own", "team-b/b-own", "pytorchjob-b-own-a1b2c", "hyperpod-ns-team-b/pytorchjob-b-own-a1b2c"]
)
def test_a_workload_is_found_by_any_of_its_names(name: str) -> None:
    assert explain_workload(lent_out().snapshot(), name).workload == "team-b/b-own"


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"there is no workload named b-won; did you mean team-b/b-own"):
        explain_workload(lent_out().snapshot(), "b-won")


def test_a_name_that_two_teams_use_is_not_guessed() -> None:
    lab = Lab().team("team-a", 2).team("team-b", 2).machines(4).submit("team-a", "train").submit("team-b", "train")
    with pytest.raises(UnknownNameError, match="train may be team-a/train, team-b/train: choose one"):
        explain_workload(lab.snapshot(), "train")


@pytest.mark.parametrize("name", ["a-more", "b-own"])
def test_whole_answers_are_kept_as_golden_files(name: str) -> None:
    lab = lent_out().submit("team-b", "b-more", pods=2, ago=10)
    text = to_json(explain_workload(lab.snapshot(), name), indent=2).decode() + "\n"
    assert_golden(GOLDEN / f"workload-{name}.json", text)
