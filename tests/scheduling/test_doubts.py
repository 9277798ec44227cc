"""Predictions that rest on what the model does not follow are uncertain, and no others."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.scheduling import KueueModel, ManagerConfig, settle
from tests.scheduling.builders import (
    HYPERPOD_PREEMPTION,
    NOW,
    Object,
    a_condition,
    a_door,
    a_flavor,
    a_job,
    a_queue,
    a_running_job,
    a_world,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

RACK: dict[str, Any] = {"topologyRequest": {"required": "rack"}}
TOPOLOGY = ("TopologyAwareScheduling",)
TWO = {"gpu": {"cpu": "4"}, "cpu": {"cpu": "4"}}


def uncertain(model: KueueModel) -> dict[str, tuple[str, ...]]:
    return {key.removeprefix("default/"): features for key, features in model.doubts.items()}


def only(flavor: str) -> dict[str, Any]:
    """Make a job one that may use one of two flavors only."""
    return {
        "template": {
            "spec": {"nodeSelector": {"of": flavor}, "containers": [{"resources": {"requests": {"cpu": "1"}}}]}
        }
    }


def two_flavors(*objects: Object, fair_sharing: bool = False) -> KueueModel:
    flavors = (a_flavor("gpu", nodeLabels={"of": "gpu"}), a_flavor("cpu", nodeLabels={"of": "cpu"}))
    return a_world(*flavors, *objects, fair_sharing=fair_sharing)


def test_where_all_is_followed_everything_is_certain() -> None:
    assert uncertain(a_world(a_queue("q", cpu="4"), a_job("j", "q"))) == {}


def test_who_competes_with_a_workload_that_uses_a_feature_is_uncertain() -> None:
    queues = (a_queue("a", cohort="all", cpu="4"), a_queue("b", cohort="all", cpu="4"), a_queue("c", cpu="4"))
    jobs = (a_job("racked", "a", **RACK), a_running_job("runs", "a"), a_job("beside", "b"), a_job("elsewhere", "c"))
    assert uncertain(a_world(*queues, *jobs)) == dict.fromkeys(("racked", "runs", "beside"), TOPOLOGY)


def test_who_may_use_other_flavors_only_is_certain() -> None:
    queues = [a_queue(name, cohort="all", flavors=TWO) for name in "abc"]
    jobs = [a_job("racked", "a", **RACK | only("gpu")), a_job("other", "b", **only("cpu"))]
    assert uncertain(two_flavors(*queues, *jobs)) == {"racked": TOPOLOGY}
    both = a_job("both", "c")
    assert uncertain(two_flavors(*queues, *jobs, both)) == dict.fromkeys(("racked", "other", "both"), TOPOLOGY)


def test_a_queue_is_one_line_whatever_flavors_those_in_it_may_use() -> None:
    """Because `racked` is looked at first, `beside` comes after `rival`, of another queue, who wants the same."""
    queues = [a_queue("a", cohort="all", flavors={"gpu": {"cpu": "4"}, "cpu": {"cpu": "1"}})]
    queues += [a_queue("b", cohort="all", flavors={"gpu": {"cpu": "0"}, "cpu": {"cpu": "0"}})]
    jobs = [a_job("beside", "a", second=1, **only("cpu")), a_job("rival", "b", second=2, **only("cpu"))]
    racked = a_job("racked", "a", priority=5, **RACK | only("gpu"))
    with_it, without = two_flavors(*queues, *jobs, racked), two_flavors(*queues, *jobs)
    assert uncertain(with_it) == dict.fromkeys(("racked", "beside", "rival"), TOPOLOGY)
    for model, first in ((with_it, "rival"), (without, "beside")):
        settle(model, NOW)
        assert [key for key in model.workloads() if model.admission(key) and "racked" not in key] == [
            f"default/{first}"
        ]


def test_under_fair_sharing_a_tree_is_one_competition() -> None:
    queues = (a_queue("a", cohort="all", flavors=TWO), a_queue("b", cohort="all", flavors=TWO), a_queue("c", cpu="1"))
    jobs = (a_job("racked", "a", **RACK | only("gpu")), a_job("other", "b", **only("cpu")), a_job("apart", "c"))
    assert uncertain(two_flavors(*queues, *jobs)) == {"racked": TOPOLOGY}
    assert uncertain(two_flavors(*queues, *jobs, fair_sharing=True)) == dict.fromkeys(("racked", "other"), TOPOLOGY)


def test_a_flavor_and_a_queue_count_for_those_who_use_them() -> None:
    jobs = (a_job("gpus", "q", **only("gpu")), a_job("cpus", "r", **only("cpu")))
    queues = [a_queue(name, cohort="all", flavors=TWO) for name in "qr"]
    model = two_flavors(*queues, *jobs)
    model.apply(a_flavor("cpu", nodeLabels={"of": "cpu"}, topologyName="racks"))
    assert uncertain(model) == {"cpus": TOPOLOGY}
    checked = two_flavors(
        a_queue("q", cohort="all", flavors=TWO, concurrentAdmissionPolicy={"mode": "x"}), queues[1], *jobs
    )
    assert uncertain(checked) == {"gpus": ("ConcurrentAdmission",)}


def test_what_is_done_for_good_makes_nobody_uncertain() -> None:
    done = a_job("done", "q", **RACK) | {"status": {"conditions": [a_condition("Finished")]}}
    assert uncertain(a_world(a_queue("q", cpu="4"), done, a_job("j", "q"))) == {}


def test_a_gate_makes_everybody_uncertain_and_an_assumed_configuration_nobody() -> None:
    objects = (a_queue("q", cpu="4"), a_job("j", "q"))
    assert uncertain(a_world(*objects, gates={"PriorityBoost": True})) == {"j": ("FeatureGate",)}
    model = KueueModel(ManagerConfig(not_followed=(("AssumedConfiguration", "kueue-manager-config"),)))
    model.load([a_flavor(), a_door("q"), *objects])
    assert uncertain(model) == {}


def test_a_workload_that_no_queue_takes_is_uncertain_by_what_it_uses_itself() -> None:
    assert uncertain(a_world(a_job("racked", "nowhere", **RACK), a_job("plain", "nowhere"))) == {"racked": TOPOLOGY}


def threatened(objects: Iterable[Object], *waiting: str, fair_sharing: bool = False) -> set[str]:
    model = a_world(*objects, fair_sharing=fair_sharing)
    threats = model.threats([f"default/{name}" for name in waiting], model.doubts)
    return {key.removeprefix("default/") for key in model.threatened(threats)}


def pair(nominal: str, **preemption: object) -> tuple[Object, Object]:
    """Return two queues of a cohort: `a` with the policies, and `b`, which has 2."""
    policies = {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never", **preemption}
    return a_queue("a", cohort="all", cpu=nominal, preemption=policies), a_queue("b", cohort="all", cpu="2")


RACKED = a_job("racked", "a", cpu="2", priority=5, **RACK)
LOW, HIGH = a_running_job("low", "a"), a_running_job("high", "a", priority=9)
BORROWS = a_running_job("borrows", "b", cpu="3")
THREATS = {
    "whom the own queue's policy allows": (
        [*pair("4", withinClusterQueue="LowerPriority"), LOW, HIGH, BORROWS, RACKED], False, {"low"},
    ),
    "a borrower, by who is within its quota": (
        [*pair("4", reclaimWithinCohort="Any"), BORROWS, RACKED], False, {"borrows"},
    ),
    "nobody, by who would be beyond it": ([*pair("1", reclaimWithinCohort="Any"), BORROWS, RACKED], False, set()),
    "a borrower, by who is within it without its own": (
        [*pair("2", reclaimWithinCohort="Any", withinClusterQueue="LowerPriority"), LOW, BORROWS, RACKED],
        False, {"low", "borrows"},
    ),
    "nobody within its quota": (
        [*pair("4", reclaimWithinCohort="Any"), a_running_job("small", "b"), RACKED], False, set(),
    ),
    "a borrower of lower priority, by who may borrow": (
        [*pair("1", reclaimWithinCohort="Never", borrowWithinCohort={"policy": "LowerPriority"}), BORROWS, RACKED],
        False, {"borrows"},
    ),
    "nobody above the threshold": (
        [
            *pair("1", borrowWithinCohort={"policy": "LowerPriority", "maxPriorityThreshold": -1}),
            BORROWS, RACKED,
        ],
        False, set(),
    ),
    "a borrower whose share is larger": (
        [*pair("1", reclaimWithinCohort="Any"), a_running_job("borrows", "b", cpu="4"), RACKED], True, {"borrows"},
    ),
    "nobody whose share is smaller": (
        [*pair("0", reclaimWithinCohort="Any"), BORROWS, RACKED], True, set(),
    ),
    "nobody, by who is certain": (
        [*pair("4", reclaimWithinCohort="Any"), BORROWS, a_job("racked", "a", cpu="2")], False, set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "fair_sharing", "want"), THREATS.values(), ids=THREATS)
def test_who_waits_and_is_uncertain_threatens(objects: list[Object], want: set[str], *, fair_sharing: bool) -> None:
    assert threatened(objects, "racked", fair_sharing=fair_sharing) == want


def test_a_queue_that_would_borrow_with_its_uncertain_work_counts_as_borrowing() -> None:
    objects = (*pair("4", reclaimWithinCohort="Any"), a_running_job("small", "b"), RACKED)
    wants = a_job("wants", "b", cpu="2", **RACK)
    assert threatened((*objects, wants), "racked") == set()
    assert threatened((*objects, wants), "racked", "wants") == {"small"}


def test_hyperpods_policies_threaten_borrowers_of_the_whole_tree() -> None:
    queues = (
        a_queue("a", cohort="all", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="all", cpu="2"),
        a_queue("c", cohort="all", cpu="2"),
    )
    running = (a_running_job("large", "b", cpu="3"), a_running_job("within", "c"))
    assert threatened((*queues, *running, RACKED), "racked") == {"large"}


def a_random_world(seed: int, *, fair_sharing: bool) -> tuple[KueueModel, str]:
    """Two cohorts and a queue by itself on three flavors, with work that waits and runs; one workload needs racks."""
    random = Random(seed)  # noqa: S311 - worlds, not secrets
    flavors = [a_flavor(name, nodeLabels={"of": name}) for name in ("gpu", "cpu", "tpu")]
    queues = [
        a_queue(
            f"q{number}",
            cohort=("left", "left", "left", "right", "right", None)[number],
            flavors={name: {"cpu": str(random.randint(0, 4))} for name in random.sample(("gpu", "cpu", "tpu"), 2)},
            queueingStrategy=random.choice(("StrictFIFO", "BestEffortFIFO")),
            preemption=random.choice((HYPERPOD_PREEMPTION, {"reclaimWithinCohort": "LowerPriority"}, {})),
        )
        for number in range(6)
    ]
    jobs = []
    for number in range(24):
        at: dict[str, Any] = {"priority": random.randint(0, 2), "second": random.randint(0, 50)}
        job = a_job(f"j{number}", f"q{random.randrange(6)}", **at)
        spec = job["spec"]["podSets"][0]["template"]["spec"]
        spec["containers"][0]["resources"]["requests"]["cpu"] = str(random.randint(1, 3))
        if random.random() < 0.9:
            spec["nodeSelector"] = {"of": random.choice(("gpu", "cpu", "tpu"))}
        jobs.append(job)
    first, later = jobs[:12], jobs[12:]
    racked = random.choice(later)
    racked["spec"]["podSets"][0] |= RACK
    model = a_world(*flavors, *queues, *first, fair_sharing=fair_sharing)
    settle(model, NOW)
    model.load(later)
    return model, str(racked["metadata"]["name"])


@pytest.mark.parametrize("fair_sharing", [False, True])
def test_what_becomes_of_certain_work_does_not_depend_on_the_uncertain(*, fair_sharing: bool) -> None:
    """Whatever Kueue does with a workload that is not followed, in the extreme as if it were not there."""
    certain = 0
    for seed in range(60):
        model, racked = a_random_world(seed, fair_sharing=fair_sharing)
        without = model.copy()
        without.delete("Workload", racked, "default")
        unsure = model.doubts
        if settle(model, NOW).loop or settle(without, NOW).loop:
            continue
        sure = [key for key in without.workloads() if key not in unsure]
        certain += len(sure)
        assert {key: model.admission(key) for key in sure} == {key: without.admission(key) for key in sure}, seed
    assert certain > 150
