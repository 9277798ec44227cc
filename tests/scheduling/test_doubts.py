"""Predictions that rest on what the model does not follow are uncertain, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from taskgov.scheduling import KueueModel, ManagerConfig
from tests.scheduling.builders import (
    HYPERPOD_PREEMPTION,
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
    jobs = (a_job("racked", "q", **RACK | only("gpu")), a_job("other", "q", **only("cpu")))
    assert uncertain(two_flavors(a_queue("q", flavors=TWO), *jobs)) == {"racked": TOPOLOGY}


def test_who_may_use_both_flavors_joins_those_who_use_either() -> None:
    jobs = (a_job("racked", "q", **RACK | only("gpu")), a_job("other", "q", **only("cpu")), a_job("both", "q"))
    assert uncertain(two_flavors(a_queue("q", flavors=TWO), *jobs)) == dict.fromkeys(
        ("racked", "other", "both"), TOPOLOGY
    )


def test_under_fair_sharing_a_tree_is_one_competition() -> None:
    queues = (a_queue("a", cohort="all", flavors=TWO), a_queue("b", cohort="all", flavors=TWO), a_queue("c", cpu="1"))
    jobs = (a_job("racked", "a", **RACK | only("gpu")), a_job("other", "b", **only("cpu")), a_job("apart", "c"))
    assert uncertain(two_flavors(*queues, *jobs)) == {"racked": TOPOLOGY}
    assert uncertain(two_flavors(*queues, *jobs, fair_sharing=True)) == dict.fromkeys(("racked", "other"), TOPOLOGY)


def test_who_waits_in_a_strict_queue_waits_for_those_before() -> None:
    queue = a_queue("q", flavors=TWO, queueingStrategy="StrictFIFO")
    jobs = (a_job("racked", "q", **RACK | only("gpu")), a_job("other", "q", **only("cpu")))
    assert uncertain(two_flavors(queue, *jobs)) == dict.fromkeys(("racked", "other"), TOPOLOGY)


def test_a_flavor_a_queue_and_a_local_queue_count_for_those_who_use_them() -> None:
    jobs = (a_job("gpus", "q", **only("gpu")), a_job("cpus", "q", **only("cpu")))
    model = two_flavors(a_queue("q", flavors=TWO), *jobs)
    model.apply(a_flavor("cpu", nodeLabels={"of": "cpu"}, topologyName="racks"))
    assert uncertain(model) == {"cpus": TOPOLOGY}
    checked = two_flavors(a_queue("q", flavors=TWO, admissionChecks=["c"]), *jobs)
    assert uncertain(checked) == dict.fromkeys(("gpus", "cpus"), ("AdmissionChecks",))
    weighted = two_flavors(a_queue("q", flavors=TWO), *jobs)
    door = a_door("q")
    weighted.apply(door | {"spec": {**door["spec"], "fairSharing": {"weight": "1"}}})
    assert uncertain(weighted) == dict.fromkeys(("gpus", "cpus"), ("AdmissionFairSharing",))


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


def test_hyperpods_policies_threaten_borrowers_of_the_whole_tree() -> None:
    queues = (
        a_queue("a", cohort="all", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="all", cpu="2"),
        a_queue("c", cohort="all", cpu="2"),
    )
    running = (a_running_job("large", "b", cpu="3"), a_running_job("within", "c"))
    assert threatened((*queues, *running, RACKED), "racked") == {"large"}
