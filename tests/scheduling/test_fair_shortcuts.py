"""In one cohort a search for victims under fair sharing takes shortcuts: they decide as the rule for trees does."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from taskgov.scheduling import KueueModel, ManagerConfig, settle
from taskgov.scheduling.config import Strategy
from taskgov.scheduling.fair_preemption import _FairSearch
from tests.scheduling.builders import NOW, Object, a_door, a_flavor, a_job, a_queue, a_running_job

if TYPE_CHECKING:
    import pytest

FINAL, INITIAL = Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE, Strategy.LESS_THAN_INITIAL_SHARE
STRATEGIES = ((FINAL, INITIAL), (FINAL, INITIAL), (FINAL,), (INITIAL,))
WITHIN = ("LowerPriority", "Never", "LowerOrNewerEqualPriority", "Any", "Any")
RECLAIM = ("Any", "Any", "LowerPriority", "Never")


def _cohort(random: Random) -> list[Object]:
    """Draw queues of one cohort, most of which borrow, with jobs that run and jobs that wait."""
    objects: list[Object] = [a_flavor()]
    for n in range(random.randint(3, 12)):
        policies = {"withinClusterQueue": random.choice(WITHIN), "reclaimWithinCohort": random.choice(RECLAIM)}
        spec: dict[str, Any] = {"preemption": policies}
        if random.random() < 0.5:
            spec["fairSharing"] = {"weight": random.choice(("1", "2", "0", "0.5"))}
        quota = random.choice(("0", "1", "3", "5"))
        objects += [a_queue(f"q{n}", cohort="pool", cpu=quota, **spec), a_door(f"q{n}")]
        for k in range(random.randint(0, 8)):
            cpu = random.choice(("0", "500m", "1", "1", "2", f"{random.randint(100, 3000)}m", "4"))
            made = a_running_job if random.random() < 0.6 else a_job
            job: dict[str, Any] = {"cpu": cpu, "priority": random.choice((0, 0, 1, 2)), "second": random.randint(0, 50)}
            objects.append(made(f"{n}-{k}", f"q{n}", **job))
    return objects


def _decisions(objects: list[Object], strategies: tuple[Strategy, ...]) -> list[Any]:
    model = KueueModel(ManagerConfig(fair_sharing=True, strategies=strategies))
    model.load(objects)
    return [
        (
            [entry.workload for entry in cycle.admitted],
            [(entry.workload, entry.reason) for entry in cycle.preempted],
            [(entry.workload, entry.message) for entry in cycle.waiting],
        )
        for cycle in settle(model, NOW, max_cycles=60).cycles
    ]


def test_shortcuts_in_one_cohort_decide_as_the_search_down_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = []
    for seed in range(250):
        random = Random(seed)  # noqa: S311 - a drawn world, no secret
        objects, strategies = _cohort(random), random.choice(STRATEGIES)
        worlds.append((objects, strategies, _decisions(objects, strategies)))
    assert sum(len(preempted) for *_, cycles in worlds for _, preempted, _ in cycles) > 1000
    init = _FairSearch.__init__

    def without_shortcuts(search: _FairSearch, *arguments: Any) -> None:
        init(search, *arguments)
        search.flat = False

    monkeypatch.setattr(_FairSearch, "__init__", without_shortcuts)
    for seed, (objects, strategies, decided) in enumerate(worlds):
        assert decided == _decisions(objects, strategies), seed
