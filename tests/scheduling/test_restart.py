"""A restart of Kueue's manager with another configuration: objects and admissions stay, its memory goes."""

from taskgov.scheduling import Budget, KueueModel, ManagerConfig, settle
from tests.scheduling.builders import NOW, a_cohort, a_group, a_job, a_queue, a_world

FAIR = ManagerConfig(fair_sharing=True)


def a_busy_world() -> KueueModel:
    world = a_world(a_queue("a", cohort="pool", cpu="2"), a_queue("b", cohort="pool", cpu="2"))
    for job in (a_job("runs", "a", cpu="3"), a_job("waits", "b", cpu="2"), a_job("done", "b", cpu="1")):
        world.apply(job)
        settle(world, NOW)
    world.finish("default/done", NOW)
    return world


def test_work_keeps_its_quota_and_its_conditions() -> None:
    before = a_busy_world()
    after = before.restarted(FAIR)
    assert after.config.fair_sharing
    assert not before.config.fair_sharing
    assert set(after.workloads()) == set(before.workloads())
    for key in before.workloads():
        assert after.workload(key) == before.workload(key)
    for queue in before.cluster_queues():
        assert after.quota(queue) == before.quota(queue)


def test_everybody_who_waits_is_in_line_again() -> None:
    before = a_busy_world()
    assert before.pending("b") == ([], ["default/waits"])
    assert before.restarted(FAIR).pending("b") == (["default/waits"], [])
    assert before.pending("b") == ([], ["default/waits"])


def test_a_restart_alone_changes_nobodys_place() -> None:
    world = a_busy_world().restarted(ManagerConfig())
    settlement = settle(world, NOW, budget=Budget(100))
    assert settlement.settled
    assert not settlement.admitted
    assert not settlement.preempted


def test_what_has_been_evicted_still_has_to_leave() -> None:
    before = a_busy_world()
    before.evict("default/runs", NOW, reason="Preempted", message="told")
    after = before.restarted(FAIR)
    assert after.admission("default/runs") is not None
    after.finish_eviction("default/runs", NOW)
    assert after.admission("default/runs") is None
    assert before.admission("default/runs") is not None


def test_work_that_is_out_of_its_queue_for_a_time_stays_out() -> None:
    before = a_busy_world()
    before.evict("default/runs", NOW, reason="PodsReadyTimeout", message="not ready")
    before.finish_eviction("default/runs", NOW)
    after = before.restarted(FAIR)
    assert after.next_backoff == before.next_backoff is not None
    assert after.pending("a") == ([], ["default/runs"])


def test_classes_of_priority_and_cohorts_are_still_there() -> None:
    group = a_group({"gpu": {"cpu": "3"}})
    before = a_world(a_cohort("pool", resourceGroups=[group]), a_queue("a", cohort="pool", cpu="1"))
    before.load([{"kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}, "value": 9}])
    after = before.restarted(FAIR)
    late = a_job("late", "a", cpu="4", second=2)
    late["metadata"]["labels"] = {"kueue.x-k8s.io/priority-class": "urgent"}
    after.load([a_job("early", "a", cpu="4", second=1), late])
    assert [each.workload for each in settle(after, NOW).admitted] == ["default/late"]
