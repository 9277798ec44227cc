"""How the model's work grows: counted function calls, which no busy machine changes."""

from __future__ import annotations

import cProfile
import math
import pstats
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.scale import models
from benchmarks.scale.measured import AIMS
from taskgov.scheduling import KueueModel, ManagerConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

pytestmark = pytest.mark.slow


Item = dict[str, Any]


def _calls(work: Callable[[], object]) -> int:
    profile = cProfile.Profile()
    with profile:
        work()
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return calls


SIZES = {
    "model: shapes that do not fit": 100,
    "model: queues with fair sharing": 20,
    "model: deep trees": 16,
    "model: flavors": 20,
    "model: victims": 200,
}
"""Row -> the smaller of two sizes; the larger one is four times that."""


@pytest.mark.parametrize("row", models.CASES)
def test_work_grows_no_faster_than_the_aim(row: str) -> None:
    """All of it until the queues rest, or as fast as the heads that Kueue considers, where these grow faster.

    The code of before fails it: the exponents of shapes and queues were 1.8 and 2.2.
    """

    def work(number: int) -> tuple[int, float]:
        found: list[Mapping[str, float]] = []
        return _calls(lambda: found.append(models.measure(row, number))), found[0]["heads"]

    models.measure(row, 8)  # imports modules
    (smaller, fewer), (larger, more) = work(SIZES[row]), work(4 * SIZES[row])
    aim = AIMS[row].exponent
    assert aim is not None
    assert math.log(larger / smaller, 4) <= max(aim, math.log(more / fewer, 4) + 0.05)


def _labelled(number: int) -> list[Item]:
    """Make a queue with flavors of which each job may use one, as in a cluster of many instance types."""
    names = [f"type-{n}" for n in range(number)]
    quotas = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": "1"}]} for name in names]
    group = {"coveredResources": ["cpu"], "flavors": quotas}
    pod = {"nodeSelector": {"type": names[-1]}, "containers": [{"resources": {"requests": {"cpu": "2"}}}]}
    return [
        *({"kind": "ResourceFlavor", "metadata": {"name": n}, "spec": {"nodeLabels": {"type": n}}} for n in names),
        {
            "kind": "ClusterQueue",
            "metadata": {"name": "q"},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
        },
        {"kind": "LocalQueue", "metadata": {"name": "q", "namespace": "a"}, "spec": {"clusterQueue": "q"}},
        *(
            {
                "kind": "Workload",
                "metadata": {"name": f"job-{n}", "namespace": "a", "uid": f"{n}"},
                "spec": {
                    "queueName": "q",
                    "priority": n,
                    "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}],
                },
            }
            for n in range(50)
        ),
    ]


def test_a_flavor_that_pods_may_not_use_costs_a_head_one_call_to_write_it_down() -> None:
    """They are found once for each shape of pods, however many heads have it."""

    def calls_a_head(number: int) -> float:
        model = KueueModel()
        model.load(_labelled(number))
        model.cycle(models.NOW)
        return _calls(lambda: [model.cycle(models.NOW) for _ in range(40)]) / 40

    assert calls_a_head(40) - calls_a_head(10) <= 30 + 1


def _borrowers(number: int) -> list[Item]:
    """Make queues of one cohort that borrow alike what a lender leaves; the job that waits in each may take nothing."""
    lender = models._queue("lender", cohort="all", flavors={"f0": str(2 * number)})
    queues = [models._queue(f"q{n}", cohort="all", flavors={"f0": "1"}) for n in range(number)]
    running = [models._job(f"runs-{n}", f"q{n}", cpu="3", second=n, runs="f0") for n in range(number)]
    waiting = [models._job(f"waits-{n}", f"q{n}", cpu="1", second=n) for n in range(number)]
    return [models._flavor("f0"), *lender, *(item for pair in queues for item in pair), *running, *waiting]


def test_a_head_that_may_take_from_nobody_costs_the_same_in_any_cohort() -> None:
    def calls_of_a_cycle(number: int) -> int:
        model = KueueModel(ManagerConfig(fair_sharing=True))
        model.load(_borrowers(number))
        results = []
        calls = _calls(lambda: results.append(model.cycle(models.NOW)))
        assert len(results[0].waiting) == number
        return calls

    assert math.log(calls_of_a_cycle(80) / calls_of_a_cycle(20), 4) <= 1.05
