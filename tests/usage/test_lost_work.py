"""What a preemption threw away, where Kueue lets us know."""

from typing import Any

import pytest

from taskgov.usage.lost_work import lost_work
from taskgov.usage.workload_facts import facts_of_all
from taskgov.usage.workloads import preemptions_of
from tests.support.clusters import GovernedCluster


def lost(workload: dict[str, Any]) -> list[float]:
    facts = facts_of_all([workload])
    return list(lost_work(preemptions_of(facts), facts).values())


def preempted(*, ran_minutes: int | None = None, **status: Any) -> dict[str, Any]:
    [workload] = GovernedCluster().with_preempted("w", "a", by="b", gpus=4, ran_minutes=ran_minutes).workloads
    workload["status"] |= status
    return workload


def evictions(*counts: int) -> dict[str, Any]:
    return {"evictions": [{"reason": "Preempted", "underlyingCause": "", "count": count} for count in counts]}


def test_a_workload_that_still_holds_its_quota_ran_since_its_admission() -> None:
    assert lost(preempted(ran_minutes=60)) == [4 * 3600]


@pytest.mark.parametrize(
    "field",
    ["accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds"],
    ids=["v1beta2", "v1beta1"],
)
def test_a_workload_that_was_evicted_once_ran_as_long_as_kueue_added_up(field: str) -> None:
    assert lost(preempted(schedulingStats=evictions(1), **{field: 900})) == [4 * 900]


@pytest.mark.parametrize("counts", [(), (2,), (1, 1)], ids=["not counted", "twice", "for two reasons"])
def test_the_sum_over_several_admissions_says_nothing_of_the_last(counts: tuple[int, ...]) -> None:
    assert lost(preempted(schedulingStats=evictions(*counts), accumulatedPastExecutionTimeSeconds=900)) == []


def test_a_released_workload_without_a_sum_is_unknown() -> None:
    assert lost(preempted(schedulingStats=evictions(1))) == []
    assert lost(preempted()) == []
