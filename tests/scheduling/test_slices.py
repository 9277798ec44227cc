"""Elastic jobs: a new slice takes the place of the one before it, on the same flavors, and only the difference counts.

Rules: `pkg/workloadslicing/workloadslicing.go`, `getInitialAssignments` in `pkg/scheduler/scheduler.go` and
`findFlavorForPodSets` in `pkg/scheduler/flavorassigner/flavorassigner.go` of Kueue.
"""

from __future__ import annotations

from typing import Any

from taskgov.scheduling import KueueModel, events, settle
from tests.scheduling.builders import (
    HYPERPOD_PREEMPTION,
    NOW,
    Object,
    a_condition,
    a_flavor,
    a_job,
    a_queue,
    a_running_job,
    a_world,
    conditions,
    names,
)


def _slice(name: str, of: str, *, count: int, queue: str = "q", **job: Any) -> Object:
    workload = a_job(name, queue, count=count, **job)
    workload["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": f"default/{of}"}
    return workload


def _running(name: str, *, count: int, queue: str = "q", flavor: str = "gpu", **job: Any) -> Object:
    workload = a_job(name, queue, count=count, **job)
    held = {"name": "main", "count": count, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": str(count)}}
    status = {"admission": {"clusterQueue": queue, "podSetAssignments": [held]}}
    return workload | {"status": status | {"conditions": [a_condition("QuotaReserved"), a_condition("Admitted")]}}


def _owned(workload: Object, uid: str = "u1") -> Object:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid}
    return workload | {"metadata": {**workload["metadata"], "ownerReferences": [owner]}}


def _said(world: KueueModel, name: str) -> str:
    return str(conditions(world, name)["QuotaReserved"]["message"])


def test_a_slice_takes_the_place_of_its_predecessor_where_only_the_difference_is_free() -> None:
    world = a_world(a_queue("q", cpu="15"), _running("old", count=10), _slice("new", "old", count=15))
    result = world.cycle(NOW)
    assert names(result) == (["new"], [], [])
    assert result.admitted[0].replaces == "default/old"
    done = conditions(world, "old")["Finished"]
    because = "Replaced to accommodate a workload (UID: uid-new, JobUID: job-new) due to workload slice aggregation"
    assert (done["status"], done["reason"], done["message"]) == ("True", "WorkloadSliceReplaced", because)
    assert world.quota("q").usage == {"gpu/cpu": 15000}
    assert not world.not_modelled
    assert [(e.workload, e.reason) for e in events(result)][-1] == ("default/old", "WorkloadSliceReplaced")


def test_a_difference_that_is_not_free_leaves_the_predecessor_alone() -> None:
    world = a_world(a_queue("q", cpu="12"), _running("old", count=10), _slice("new", "old", count=15))
    assert names(world.cycle(NOW)) == ([], [], ["new"])
    told = "previously considered podsets requests (0) + current podset request (5) > maximum capacity (12)"
    assert told not in _said(world, "new")  # five more are no more than the capacity
    assert "insufficient unused quota for cpu in flavor gpu, 3 more needed" in _said(world, "new")
    assert world.quota("q").usage == {"gpu/cpu": 10000}


def test_a_slice_keeps_the_flavor_of_its_predecessor() -> None:
    queue = a_queue("q", flavors={"a": {"cpu": "20"}, "b": {"cpu": "12"}})
    world = a_world(a_flavor("a"), a_flavor("b"), queue, _running("old", count=10, flavor="b"))
    world.apply(_slice("new", "old", count=15))
    world.cycle(NOW)
    assert "could not assign a flavor since the original workload is assigned: b" in _said(world, "new")
    world.apply(_slice("new", "old", count=12))
    assert world.cycle(NOW).admitted[0].admission.pod_sets[0].flavors == {"cpu": "b"}


def test_where_the_predecessor_is_gone_a_slice_is_a_workload_like_any_other() -> None:
    for before in ((), (_running("old", count=10, queue="other"),)):
        world = a_world(a_queue("q", cpu="12"), a_queue("other", cpu="12"), *before, _slice("new", "old", count=12))
        result = world.cycle(NOW)
        assert (names(result)[0], result.admitted[0].replaces) == (["new"], "")


def test_without_the_feature_gate_a_slice_is_a_workload_like_any_other() -> None:
    world = a_world(
        a_queue("q", cpu="15"),
        _running("old", count=10),
        _slice("new", "old", count=15),
        gates={"ElasticJobsViaWorkloadSlices": False},
    )
    assert names(world.cycle(NOW)) == ([], [], ["new"])


def test_a_slice_preempts_others_for_the_difference_and_does_not_count_its_predecessor() -> None:
    queue = a_queue("q", cpu="15", preemption=HYPERPOD_PREEMPTION)
    low = [_running(f"low{i}", count=2, priority=0) for i in (1, 2)]
    world = a_world(queue, _running("old", count=11, priority=5), *low, _slice("new", "old", count=13, priority=5))
    result = world.cycle(NOW)
    assert names(result) == ([], ["low1"], ["new"])
    assert result.waiting[0].message.endswith("Pending the preemption of 1 workload(s)")
    assert settle(world, NOW).preempted == ()
    world.finish_eviction("default/low1", NOW)
    assert "default/new" in [a.workload for a in settle(world, NOW).admitted]
    assert conditions(world, "old")["Finished"]["reason"] == "WorkloadSliceReplaced"


def test_who_comes_after_a_slice_in_the_cycle_sees_what_kueue_sees() -> None:
    """The slice that is replaced counts as gone, and only the difference as taken: `fits` in `scheduler.go`.

    So that another head may be admitted beyond the quota of the cohort, as Kueue does.
    """
    world = a_world(
        a_queue("q", cohort="c", cpu="10"),
        a_queue("p", cohort="c", cpu="0"),
        _running("old", count=8),
        _slice("new", "old", count=10),
        a_job("other", "p", cpu="5", second=5),
    )
    assert names(world.cycle(NOW))[0] == ["new"]  # the nomination already found no room for the other
    world = a_world(
        a_queue("q", cohort="c", cpu="10"),
        a_queue("p", cohort="c", cpu="0"),
        _running("old", count=6),
        _slice("new", "old", count=10),
        a_job("other", "p", cpu="3", second=5),
    )
    assert names(world.cycle(NOW))[0] == ["new", "other"]
    assert world.quota("c", cohort=True).usage.get("gpu/cpu", 0) == 13000


def test_an_evicted_slice_gives_way_to_a_newer_one_of_its_job() -> None:
    """Kueue's job controller keeps one slice: `normalizeActiveSlices` in `workloadslicing.go`."""
    world = a_world(a_queue("q", cpu="10"), _owned(_running("old", count=10)), _owned(_slice("new", "old", count=12)))
    world.evict("default/old", NOW, reason="Preempted", message="gone")
    world.finish_eviction("default/old", NOW)
    done = conditions(world, "old")["Finished"]
    assert (done["reason"], done["message"]) == (
        "WorkloadSliceReplaced",
        "Replaced to accommodate a new workload slice",
    )
    assert world.quota("q").usage == {"gpu/cpu": 0}


def test_an_evicted_slice_without_a_newer_one_of_its_job_queues_again() -> None:
    for new in ((), (_slice("new", "old", count=12),), (_owned(_slice("new", "old", count=12), "u2"),)):
        world = a_world(a_queue("q", cpu="10"), _owned(_running("old", count=10)), *new)
        world.evict("default/old", NOW, reason="Preempted", message="gone")
        world.finish_eviction("default/old", NOW)
        assert "default/old" in world.pending("q")[0]


def test_a_slice_that_is_scaled_down_gives_quota_back_at_once() -> None:
    world = a_world(a_queue("q", cpu="10"), _running("old", count=10), a_job("j", "q", cpu="4", second=9))
    world.cycle(NOW)
    world.apply(a_job("old", "q", count=6))
    assert [a.workload for a in settle(world, NOW).admitted] == ["default/j"]


def test_a_slice_whose_predecessor_is_victim_of_another_waits() -> None:
    queue = a_queue("q", cohort="c", cpu="0")
    owner = a_queue("p", cohort="c", cpu="10", preemption=HYPERPOD_PREEMPTION)
    world = a_world(queue, owner, _running("old", count=8), _slice("new", "old", count=9))
    world.apply(a_job("mine", "p", cpu="10", priority=9))
    result = world.cycle(NOW)
    assert "old" in names(result)[1]
    assert names(result)[0] == []


def test_a_pod_set_that_shrinks_while_another_grows_counts_as_less() -> None:
    job = a_job("new", "q")
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": "default/old"}
    template = job["spec"]["podSets"][0]["template"]
    job["spec"]["podSets"] = [
        {"name": "head", "count": 1, "template": template},
        {"name": "work", "count": 9, "template": template},
    ]
    old = a_running_job("old", "q")
    old["spec"]["podSets"] = [
        {"name": "head", "count": 4, "template": template},
        {"name": "work", "count": 4, "template": template},
    ]
    held = [
        {"name": name, "count": 4, "flavors": {"cpu": "gpu"}, "resourceUsage": {"cpu": "4"}}
        for name in ("head", "work")
    ]
    old["status"]["admission"]["podSetAssignments"] = held
    world = a_world(a_queue("q", cpu="10"), old, job)
    assert names(world.cycle(NOW))[0] == ["new"]
    assert world.quota("q").usage == {"gpu/cpu": 10000}
