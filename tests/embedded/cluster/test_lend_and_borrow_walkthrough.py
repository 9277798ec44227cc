"""Who may lend and borrow how much, and whose turn it is (the examples of the policies guide)."""

from __future__ import annotations

import pytest

from taskgov_embedded.cluster.states import condition_status
from tests.embedded.cluster.support import RANKS, Lab, policy, quota

C5 = "ml.c5.2xlarge"


def c5(count: int) -> dict[str, object]:
    return {"InstanceType": C5, "Count": count}


def six_and_five(limit: int, strategy_a: str = "LendAndBorrow", strategy_b: str = "LendAndBorrow") -> Lab:
    """A has 6 and uses 2, B has 5 and uses 4; units are instances, as cpu in eights."""
    lab = Lab().nodes(C5, 11)
    lab.cluster.govern(
        [quota("a", c5(6), limit=limit, strategy=strategy_a), quota("b", c5(5), limit=limit, strategy=strategy_b)],
        policy(RANKS),
    )
    lab.submit("a", "a-runs", pods=2, cpu=8)
    lab.submit("b", "b-runs", pods=4, cpu=8)
    return lab


def admitted(lab: Lab, team: str, name: str) -> bool:
    return condition_status(lab.workload(team, name), "Admitted") == "True"


@pytest.mark.parametrize(("limit", "fits"), [(100, True), (60, True), (59, False), (50, False), (500, True)])
def test_a_task_of_four_borrows_three(limit: int, *, fits: bool) -> None:
    lab = six_and_five(limit)
    lab.submit("b", "b-more", pods=4, cpu=8)
    assert admitted(lab, "b", "b-more") is fits
    assert lab.used("b", "cpu") == (("64", "24") if fits else ("32", "0"))


def test_what_is_over_the_limit_says_the_most_that_there_could_be() -> None:
    lab = six_and_five(50)
    lab.submit("b", "b-more", pods=8, cpu=8)
    assert lab.condition("b", "b-more", "QuotaReserved")["message"] == (
        "couldn't assign flavors to pod set worker: insufficient quota for cpu in flavor ml.c5.2xlarge, "
        "previously considered podsets requests (0) + current podset request (64) > maximum capacity (60)"
    )


def test_who_does_not_lend_cannot_borrow() -> None:
    lab = six_and_five(100, strategy_b="DontLend")
    lab.submit("b", "b-more", pods=4, cpu=8)
    assert not admitted(lab, "b", "b-more")


def test_who_does_not_lend_lends_nothing() -> None:
    lab = six_and_five(100, strategy_a="DontLend")
    lab.submit("b", "b-more", pods=4, cpu=8)
    assert not admitted(lab, "b", "b-more")


def test_who_only_lends_lends() -> None:
    lab = six_and_five(100, strategy_a="Lend")
    lab.submit("b", "b-more", pods=4, cpu=8)
    assert admitted(lab, "b", "b-more")


def test_who_only_lends_cannot_borrow() -> None:
    lab = six_and_five(100, strategy_b="Lend")
    lab.submit("b", "b-more", pods=4, cpu=8)
    assert not admitted(lab, "b", "b-more")


def test_five_hundred_percent_is_five_times_ones_own() -> None:
    lab = Lab().nodes(C5, 20)
    lab.cluster.govern([quota("small", c5(2), limit=500), quota("pool", c5(18))], policy(RANKS))
    lab.submit("small", "eleven-more", pods=13, cpu=8)
    assert not admitted(lab, "small", "eleven-more")
    lab.submit("small", "ten-more", pods=12, cpu=8)
    assert admitted(lab, "small", "ten-more")
    assert lab.used("small", "cpu") == ("96", "80")


def test_a_dedicated_pool_team_lends_the_gap_to_capacity() -> None:
    lab = Lab().nodes(C5, 20)
    teams = [quota("a", c5(6), limit=100), quota("b", c5(5), limit=100), quota("shared-pool", c5(9), strategy="Lend")]
    lab.cluster.govern(teams, policy(RANKS))
    lab.submit("a", "a-wide", pods=12, cpu=7)
    lab.submit("b", "b-wide", pods=8, cpu=7)
    assert set(lab.states().values()) == {"Running"}


def idle_compute(*, fair: bool, weights: dict[str, int], ranks: dict[str, int] | None = RANKS) -> Lab:
    """Teams of 2 each with limit 500 %, and a pool of 4 that only lends."""
    lab = Lab().nodes(C5, 2 * len(weights) + 4)
    quotas = [quota(team, c5(2), limit=500, weight=weight) for team, weight in weights.items()]
    lab.cluster.govern([*quotas, quota("zz-pool", c5(4), strategy="Lend")], policy(ranks, fair=fair))
    return lab


def test_first_come_first_served_lets_one_user_take_all_idle_compute_within_the_limit() -> None:
    lab = idle_compute(fair=False, weights={"a": 0, "b": 0})
    lab.submit("a", "greedy", pods=8, cpu=7)
    assert lab.states() == {"greedy": "Running"}
    assert lab.used("a", "cpu") == ("56", "40")


def test_first_come_first_served_a_higher_priority_preempts_a_borrowing_task() -> None:
    lab = idle_compute(fair=False, weights={"a": 0, "b": 0})
    lab.submit("a", "low-borrows", pods=7, cpu=7, priority="fine-tuning")
    lab.submit("b", "high-borrows", pods=3, cpu=7, priority="inference")
    assert lab.states() == {"high-borrows": "Running", "low-borrows": "Suspended"}
    assert lab.preemptions() == [("pytorchjob-low-borrows", "InCohortReclaimWhileBorrowing")]


def test_first_come_first_served_an_equal_priority_does_not() -> None:
    lab = idle_compute(fair=False, weights={"a": 0, "b": 0})
    lab.submit("a", "first", pods=7, cpu=7, priority="training")
    lab.submit("b", "second", pods=3, cpu=7, priority="training")
    assert lab.states() == {"first": "Running", "second": "Suspended"}
    assert lab.preemptions() == []


def test_weight_ten_goes_before_five_and_zero_goes_last() -> None:
    lab = idle_compute(fair=True, weights={"c-zero": 0, "b-five": 5, "a-ten": 10})
    # All is in use, then three wait to borrow, in an order that is not that of their weights; then four are free.
    lab.submit("zz-pool", "own", pods=4, cpu=8)
    for team in ("c-zero", "b-five", "a-ten"):
        lab.submit(team, f"{team}-own", pods=2, cpu=8)
    for team in ("c-zero", "b-five", "a-ten"):
        lab.submit(team, f"{team}-more", pods=2, cpu=8)
    assert {name for name, state in lab.states().items() if state == "Suspended"} == {
        "c-zero-more",
        "b-five-more",
        "a-ten-more",
    }
    lab.delete("zz-pool", "own")
    assert {name for name, state in lab.states().items() if state == "Suspended"} == {"c-zero-more"}
    order = [one.workload for cycle in lab.cluster.cycles for one in cycle.admitted][-2:]
    assert [name.partition("-job-")[0].partition("pytorchjob-")[2].rpartition("-")[0] for name in order] == [
        "a-ten-more",
        "b-five-more",
    ]


def test_without_priority_classes_the_order_is_that_of_submission() -> None:
    lab = Lab().nodes(C5, 2)
    lab.cluster.govern([quota("a", c5(2))], policy(None, fair=False))
    lab.submit("a", "zeta", pods=2, cpu=7, run_seconds=600)
    for name in ("yard", "x-ray", "alpha"):
        lab.submit("a", name, pods=2, cpu=7, run_seconds=600)
    order = []
    for _ in range(4):
        order += [name for name, state in lab.states().items() if state == "Running"]
        lab.advance(600)
    assert order == ["zeta", "yard", "x-ray", "alpha"]
    assert set(lab.states().values()) == {"Succeeded"}
    assert {one["spec"]["priority"] for one in lab.cluster.store.list("workloads")} == {0}
