"""The list of tasks: state, since when, and what each holds beyond its team's quota."""

from datetime import timedelta
from typing import Any

import pytest

from taskgov.scheduling import settle
from taskgov.snapshot.model import Snapshot
from taskgov.usage.quota_usage import usage_of
from taskgov.usage.tasks import Task, TaskState, tasks_of
from tests.support.lab import G5, GPU, Lab, workload
from tests.support.memory import NOON


def tasks(snapshot: Snapshot) -> dict[str, Task]:
    return {task.job: task for task in tasks_of(snapshot)}


def ago(minutes: float) -> Any:
    return NOON - timedelta(minutes=minutes)


def test_what_runs_and_what_waits_say_since_when_what_they_ask_and_where() -> None:
    lab = Lab().team("team-a", 4, borrow=0).machines(4)
    lab.submit("team-a", "runs", pods=3, ago=60).submit("team-a", "waits", gpus=2, ago=30)
    found = tasks(lab.snapshot())
    runs, waits = found["runs"], found["waits"]
    assert (runs.state, runs.since, runs.created) == (TaskState.RUNNING, ago(60), ago(60))
    assert (runs.team, runs.kind, runs.priority_class, runs.priority) == (
        "team-a",
        "PyTorchJob",
        "training-priority",
        50,
    )
    assert (runs.instance_types, runs.asks[GPU], runs.beyond_quota) == ((G5,), 3, {})
    assert (waits.state, waits.since, waits.asks[GPU], waits.instance_types) == (TaskState.PENDING, ago(30), 2, ())


def test_the_newest_comes_first() -> None:
    lab = Lab().team("team-a", 4).machines(4)
    lab.submit("team-a", "oldest", ago=60).submit("team-a", "b", ago=5).submit("team-a", "a", ago=5)
    assert [task.job for task in tasks_of(lab.snapshot())] == ["a", "b", "oldest"]


def test_who_was_preempted_says_so_and_since_when() -> None:
    lab = Lab().team("team-a", 2, borrow=200).team("team-b", 3).machines(5)
    lab.submit("team-a", "borrows", pods=5, ago=50).submit("team-b", "reclaims", pods=3, ago=20)
    settle(lab.world, ago(10))
    task = tasks(lab.snapshot())["borrows"]
    assert (task.state, task.since) == (TaskState.PREEMPTED, ago(20))


def test_what_is_deactivated_is_suspended() -> None:
    lab = Lab().team("team-a", 2).machines(2)
    item = workload("team-a", "stopped", 1, created=ago(90))
    lab.put({**item, "spec": {**item["spec"], "active": False}})
    task = tasks(lab.snapshot())["stopped"]
    assert (task.state, task.since) == (TaskState.SUSPENDED, ago(90))


def test_what_has_quota_and_no_node_waits_for_nodes() -> None:
    lab = Lab().team("team-a", 4).machines(3).machines(1, cordoned=True)
    lab.submit("team-a", "first", pods=3, ago=60).submit("team-a", "second", ago=50)
    found = tasks(lab.snapshot())
    assert (found["first"].state, found["second"].state) == (TaskState.RUNNING, TaskState.WAITING_FOR_NODES)


@pytest.mark.parametrize(("ready", "state"), [("True", TaskState.RUNNING), ("False", TaskState.WAITING_FOR_NODES)])
def test_where_kueue_watches_the_pods_its_condition_counts(ready: str, state: TaskState) -> None:
    lab = Lab().team("team-a", 4).machines(4)
    snapshot = lab.submit("team-a", "job").snapshot()
    condition = {"type": "PodsReady", "status": ready, "reason": "x", "lastTransitionTime": "2026-11-20T11:00:00Z"}
    [item] = snapshot.kueue.workloads
    item["status"]["conditions"].append(condition)
    assert tasks(snapshot)["job"].state is state


def test_what_is_finished_asks_for_nothing_more() -> None:
    lab = Lab().team("team-a", 2, borrow=100).team("team-b", 2).machines(4)
    snapshot = lab.submit("team-a", "job", pods=4).snapshot()
    condition = {"type": "Finished", "status": "True", "reason": "x", "lastTransitionTime": "2026-11-20T11:30:00Z"}
    [item] = snapshot.kueue.workloads
    item["status"]["conditions"].append(condition)
    task = tasks(snapshot)["job"]
    assert (task.state, task.beyond_quota) == (TaskState.FINISHED, {})


def test_what_is_beyond_quota_is_attributed_to_what_would_be_reclaimed_first_and_adds_up() -> None:
    lab = Lab().team("team-a", 3, borrow=200).team("team-b", 5).machines(8)
    lab.submit("team-a", "low-old", pods=2, ago=60).submit("team-a", "low-new", pods=2, ago=50)
    lab.submit("team-a", "high", pods=3, priority="inference", ago=40)
    snapshot = lab.snapshot()
    borrowed = {job: task.beyond_quota.get(GPU, 0) for job, task in tasks(snapshot).items()}
    assert borrowed == {"low-new": 2, "low-old": 2, "high": 0}
    lines = usage_of(snapshot.kueue.cluster_queues).lines
    assert sum(borrowed.values()) == sum(line.borrowed for line in lines if line.resource == GPU)


def test_of_equal_tasks_the_last_that_was_admitted_is_the_one_that_borrows() -> None:
    lab = Lab().team("team-a", 5, borrow=200).team("team-b", 3).machines(8)
    lab.submit("team-a", "old", pods=2, ago=60).submit("team-a", "new", pods=3, ago=50)
    lab.submit("team-a", "middle", pods=2, ago=55)
    borrowed = {job: task.beyond_quota.get(GPU, 0) for job, task in tasks(lab.snapshot()).items()}
    assert borrowed == {"new": 2, "middle": 0, "old": 0}


def test_what_is_held_over_a_quota_that_was_lowered_under_running_work_is_beyond_quota_too() -> None:
    snapshot = Lab().team("team-a", 4, borrow=0).machines(4).submit("team-a", "runs", pods=4).snapshot()
    [queue] = [queue for queue in snapshot.kueue.cluster_queues if "team-a" in queue["metadata"]["name"]]
    for group in queue["spec"]["resourceGroups"]:
        for resource in group["flavors"][0]["resources"]:
            resource["nominalQuota"] = "1"
    assert tasks(snapshot)["runs"].beyond_quota[GPU] == 3


def test_before_it_is_admitted_its_node_selector_says_where_it_wants_to_run() -> None:
    lab = Lab().team("team-a", 1, borrow=0).machines(1)
    selector = {"node.kubernetes.io/instance-type": G5}
    lab.submit("team-a", "waits", pods=2, nodeSelector=selector)
    assert tasks(lab.snapshot())["waits"].instance_types == (G5,)


def test_a_workload_that_nothing_owns_has_its_own_name_and_kind() -> None:
    lab = Lab().team("team-a", 1).machines(1)
    item = workload("team-a", "job", 1)
    del item["metadata"]["ownerReferences"]
    [task] = tasks_of(lab.put(item).snapshot())
    assert (task.job, task.kind) == ("pytorchjob-job-a1b2c", "Workload")
