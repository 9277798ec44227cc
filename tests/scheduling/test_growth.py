"""How the model's work grows: counted function calls, which no busy machine changes."""

from __future__ import annotations

import cProfile
import math
import pstats
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.scale import models
from taskgov.scheduling import KueueModel

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow


Item = dict[str, Any]


def _calls(work: Callable[[], object]) -> int:
    profile = cProfile.Profile()
    with profile:
        work()
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return calls


def _calls_a_cycle(row: str, number: int) -> float:
    figures: dict[str, float] = {}
    calls = _calls(lambda: figures.update(models.measure(row, number)))
    return calls / max(figures["cycles"], 1)


@pytest.mark.parametrize(
    ("row", "number", "aim"),
    [
        ("model: shapes that do not fit", 100, 1.25),
        ("model: queues with fair sharing", 20, 1.25),
        ("model: deep trees", 16, 1.25),
        ("model: flavors", 20, 1.25),
        ("model: victims", 200, 1.25),
    ],
)
def test_a_cycle_grows_no_faster_than_the_aim(row: str, number: int, aim: float) -> None:
    """A cycle looks at one head of each queue, so that it may grow as the number of queues does."""
    smallest, largest = _calls_a_cycle(row, number), _calls_a_cycle(row, 4 * number)
    assert math.log(largest / smallest, 4) <= aim


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
