"""How the cluster behaves over time: evictions, run times, lost nodes, changed quotas and policies."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from taskgov.hyperpod.instance_types import UnknownInstanceTypeError
from taskgov.hyperpod.model import ActivationState
from taskgov_embedded.cluster.manifests import JobKind, job_manifest
from taskgov_embedded.cluster.simulated import Pace, SimulatedCluster
from taskgov_embedded.sagemaker.cluster_port import ClusterPort, GroupFact
from taskgov_embedded.virtual_time.clock import VirtualClock
from tests.embedded.cluster.support import GPU, RANKS, Lab, policy, quota

G5 = "ml.g5.12xlarge"
NS_A, NS_B = "hyperpod-ns-a", "hyperpod-ns-b"


def count(number: int) -> dict[str, object]:
    return {"InstanceType": G5, "Count": number}


def two_teams(*, pace: Pace | None = None, fair: bool = True) -> Lab:
    """Two nodes of four GPUs; A and B have one each and may borrow the other."""
    lab = Lab(pace or Pace()).nodes(G5, 2)
    lab.cluster.govern([quota("a", count(1), limit=100), quota("b", count(1), limit=100)], policy(RANKS, fair=fair))
    return lab


def whole_node(team: str, name: str, *, pods: int = 1) -> dict[str, object]:
    return job_manifest(team, name, {GPU: 4}, pods=pods)


def test_the_cluster_is_what_sagemaker_asks_of_it() -> None:
    port: ClusterPort = Lab().nodes(G5, 2).cluster
    assert [group.target_count for group in port.groups()] == [2]
    port.delete_nodes([port.nodes()[0].instance_id])
    assert len(port.nodes()) == 1


# Evictions


def test_an_evicted_job_holds_its_quota_until_it_has_stopped() -> None:
    lab = two_teams(pace=Pace(stop=30))
    lab.submit("a", "wide", pods=2, gpu=4)
    lab.cluster.submit(whole_node("b", "own"))
    assert lab.condition("a", "wide", "Evicted")["status"] == "True"
    assert lab.condition("a", "wide", "QuotaReserved")["status"] == "True"
    assert "Pending the preemption of 1 workload(s)" in lab.condition("b", "own", "QuotaReserved")["message"]
    assert [line.split()[2] for line in lab.views.pods(NS_A).splitlines()[1:]] == ["Terminating"] * 2
    assert lab.cluster.next_due() == lab.moment + timedelta(seconds=30)
    lab.advance(29)
    assert lab.states() == {"wide": "Running", "own": "Suspended"}
    lab.advance(1)
    assert lab.states() == {"wide": "Suspended", "own": "Running"}
    assert lab.views.pods(NS_A) == "NAME   READY   STATUS   RESTARTS   AGE"


def test_an_eviction_may_take_no_time_at_all() -> None:
    lab = two_teams(pace=Pace(stop=0))
    lab.submit("a", "wide", pods=2, gpu=4)
    lab.cluster.submit(whole_node("b", "own"))
    assert lab.states() == {"wide": "Suspended", "own": "Running"}


def test_an_evicted_replica_of_a_deployment_is_made_anew_and_queues_again() -> None:
    lab = two_teams()
    lab.cluster.submit(job_manifest("a", "serve", {GPU: 4}, kind="Deployment", pods=2))
    lab.advance(10)
    before = set(lab.pods("a"))
    lab.submit("b", "own", gpu=4)
    after = lab.pods("a")
    assert len(after) == 2
    assert len(before & set(after)) == 1
    assert sorted(after.values()) == ["Pending", "Running"]
    assert [line.split()[1:3] for line in lab.views.pods(NS_A).splitlines()[1:]].count(["0/1", "SchedulingGated"]) == 1
    assert len(lab.cluster.store.list("workloads", NS_A)) == 2


def test_an_evicted_pod_of_its_own_is_gone() -> None:
    lab = two_teams()
    for name in ("one", "two"):
        lab.submit("a", name, kind="Pod", gpu=4)
    lab.submit("b", "own", gpu=4)
    assert list(lab.pods("a")) == ["one"]
    assert len(lab.cluster.store.list("workloads", NS_A)) == 1


# Jobs


@pytest.mark.parametrize(
    ("kind", "workload", "pod", "pod_set"),
    [
        ("PyTorchJob", "pytorchjob-train-", "train-worker-0", "worker"),
        ("HyperPodPyTorchJob", "hyperpodpytorchjob-train-", "train-pod-0", "pod"),
        ("Job", "job-train-", "train-", "main"),
        ("Pod", "pod-train-", "train", "main"),
        ("Deployment", "pod-train-", "train-", "main"),
    ],
)
def test_each_kind_of_job_has_kueues_names(kind: JobKind, workload: str, pod: str, pod_set: str) -> None:
    lab = two_teams()
    lab.submit("a", "train", kind=kind, gpu=4)
    [found] = lab.cluster.store.list("workloads", NS_A)
    assert found["metadata"]["name"].startswith(workload)
    assert len(found["metadata"]["name"].rpartition("-")[2]) == 5
    assert found["spec"]["podSets"][0]["name"] == pod_set
    assert found["status"]["admission"]["podSetAssignments"][0]["flavors"] == {GPU: G5}
    [(name, phase)] = lab.pods("a").items()
    assert name.startswith(pod)
    assert phase == "Running"


def test_a_workload_name_fits_a_label() -> None:
    lab = two_teams()
    lab.submit("a", "x" * 60, gpu=1)
    [found] = lab.cluster.store.list("workloads", NS_A)
    assert len(found["metadata"]["name"]) == 63


def test_a_pytorch_job_may_have_a_master() -> None:
    lab = two_teams()
    job = job_manifest("a", "train", {GPU: 1}, pods=2)
    replicas = job["spec"]["pytorchReplicaSpecs"]
    replicas["Master"] = {"template": replicas["Worker"]["template"]}
    lab.cluster.submit(job)
    assert [one["name"] for one in lab.workload("a", "train")["spec"]["podSets"]] == ["master", "worker"]
    assert list(lab.pods("a")) == ["train-master-0", "train-worker-0", "train-worker-1"]


def test_a_job_ends_by_itself_once_all_its_pods_have_run_for_so_long() -> None:
    lab = Lab().nodes(G5, 1)
    lab.cluster.govern([quota("a", count(2), limit=0)], policy(RANKS))
    lab.submit("a", "wide", pods=2, run_seconds=100, gpu=4)
    lab.advance(1000)
    assert lab.states() == {"wide": "Admitted, waiting for nodes"}
    lab.nodes(G5, 2)
    lab.advance(99)
    assert lab.states() == {"wide": "Running"}
    lab.advance(1)
    assert lab.states() == {"wide": "Succeeded"}
    assert lab.condition("a", "wide", "Finished")["message"] == "Job finished successfully"
    assert lab.pods("a") == {}
    assert lab.used("a") == ("0", "0")


def test_a_suspended_job_begins_from_nothing() -> None:
    lab = two_teams()
    lab.submit("a", "wide", pods=2, run_seconds=100, gpu=4)
    lab.advance(50)
    lab.submit("b", "own", run_seconds=10, gpu=4)
    assert lab.states()["wide"] == "Suspended"
    lab.advance(60)
    assert lab.states() == {"wide": "Running", "own": "Succeeded"}
    lab.advance(60)
    assert lab.states()["wide"] == "Succeeded"


def test_a_deleted_job_leaves_nothing_and_frees_its_quota() -> None:
    lab = two_teams()
    lab.submit("a", "wide", pods=2, run_seconds=1000, gpu=4)
    lab.delete("a", "wide")
    assert lab.states() == {}
    assert lab.pods("a") == {}
    assert lab.cluster.store.list("workloads") == []
    assert lab.used("a") == ("0", "0")
    assert lab.cluster.next_due() is None


def test_a_job_that_is_deleted_while_it_stops_leaves_nothing_to_come() -> None:
    lab = two_teams(pace=Pace(stop=30))
    lab.submit("a", "wide", pods=2, gpu=4)
    lab.cluster.submit(whole_node("b", "own"))
    lab.cluster.delete_job("PyTorchJob", NS_A, "wide")
    assert lab.states() == {"own": "Running"}
    lab.advance(1)
    assert lab.cluster.next_due() is None


def test_the_same_name_twice_is_refused() -> None:
    lab = two_teams()
    lab.submit("a", "train", gpu=1)
    with pytest.raises(ValueError, match=f"PyTorchJob {NS_A}/train already exists"):
        lab.submit("a", "train", gpu=1)


def test_what_is_not_there_cannot_be_deleted() -> None:
    with pytest.raises(KeyError):
        two_teams().cluster.delete_job("PyTorchJob", NS_A, "train")


def test_a_kind_that_is_unknown_is_refused() -> None:
    job = {**job_manifest("a", "ray", {GPU: 1}), "kind": "SparkJob"}
    with pytest.raises(KeyError, match="SparkJob"):
        two_teams().cluster.submit(job)


def test_a_job_outside_the_queues_runs_at_once() -> None:
    lab = two_teams()
    job = job_manifest("a", "free", {GPU: 4}, kind="Job", pods=2)
    del job["metadata"]["labels"]
    lab.cluster.submit(job, run_seconds=60)
    assert lab.states() == {"free": "Running"}
    assert lab.cluster.store.list("workloads") == []
    lab.advance(60)
    assert lab.states() == {"free": "Succeeded"}
    assert lab.pods("a") == {}


# Queues that are in the way


def test_a_queue_that_does_not_exist_is_named() -> None:
    lab = two_teams()
    lab.submit("nobody", "lost", gpu=1)
    said = lab.condition("nobody", "lost", "QuotaReserved")
    assert (said["status"], said["reason"]) == ("False", "Inadmissible")
    assert said["message"] == "LocalQueue hyperpod-ns-nobody-localqueue doesn't exist"
    lab.cluster.govern([quota("nobody", count(1))], policy(RANKS))
    assert lab.states() == {"lost": "Running"}


def test_a_disabled_quota_stops_its_queue_and_lets_running_work_finish() -> None:
    lab = two_teams()
    lab.submit("a", "runs", gpu=4)
    disabled = quota("a", count(1)).model_copy(update={"activation_state": ActivationState.DISABLED})
    lab.cluster.govern([disabled], policy(RANKS))
    lab.submit("a", "waits", gpu=1)
    assert lab.states() == {"runs": "Running", "waits": "Suspended"}
    since = lab.condition("a", "waits", "QuotaReserved")["lastTransitionTime"]
    assert lab.condition("a", "waits", "QuotaReserved")["message"] == "LocalQueue hyperpod-ns-a-localqueue is inactive"
    lab.advance(60)
    assert lab.condition("a", "waits", "QuotaReserved")["lastTransitionTime"] == since


def test_a_deleted_quota_takes_its_queue_along() -> None:
    lab = two_teams()
    lab.cluster.govern([quota("a", count(1), limit=100)], policy(RANKS))
    store = lab.cluster.store
    assert [one["metadata"]["name"] for one in store.list("clusterqueues")] == ["hyperpod-ns-a-clusterqueue"]
    assert [one["metadata"]["name"] for one in store.list("localqueues")] == ["hyperpod-ns-a-localqueue"]
    assert [one["metadata"]["name"] for one in store.list("namespaces")] == [NS_A, NS_B]
    lab.submit("a", "wide", pods=2, gpu=4)
    assert lab.states() == {"wide": "Suspended"}


def test_a_quota_on_an_unknown_type_changes_nothing() -> None:
    lab = two_teams()
    with pytest.raises(UnknownInstanceTypeError):
        lab.cluster.govern([quota("c", {"InstanceType": "ml.g99.huge", "Count": 1})], policy(RANKS))
    assert len(lab.cluster.store.list("clusterqueues")) == 2


def test_a_raised_quota_admits_who_waited() -> None:
    lab = two_teams()
    lab.submit("a", "wide", pods=2, gpu=4)
    lab.submit("b", "own", gpu=4)
    assert lab.states() == {"wide": "Suspended", "own": "Running"}
    lab.cluster.govern([quota("a", count(2), limit=100), quota("b", count(1), limit=100)], policy(RANKS))
    assert lab.states() == {"wide": "Suspended", "own": "Running"}
    assert lab.cluster.next_due() == lab.moment + timedelta(seconds=1)
    lab.advance(1)
    assert lab.states() == {"wide": "Admitted, waiting for nodes", "own": "Running"}


def test_a_lowered_quota_evicts_nobody() -> None:
    lab = two_teams()
    lab.submit("a", "own", gpu=4)
    lowered = [quota("a", {"InstanceType": G5, "Accelerators": 2}, limit=0), quota("b", count(1), limit=0)]
    lab.cluster.govern(lowered, policy(RANKS))
    assert lab.states() == {"own": "Running"}
    assert lab.used("a") == ("4", "2")


# Policies


def test_a_changed_class_ranks_waiting_work_anew() -> None:
    lab = Lab().nodes(G5, 1)
    lab.cluster.govern([quota("a", count(1), preempt="Never")], policy(RANKS))
    lab.submit("a", "runs", gpu=4)
    lab.submit("a", "tunes", gpu=4, priority="fine-tuning")
    lab.submit("a", "trains", gpu=4, priority="training")
    lab.cluster.govern([quota("a", count(1), preempt="Never")], policy({**RANKS, "fine-tuning": 99}))
    assert lab.workload("a", "tunes")["spec"]["priority"] == 99
    lab.delete("a", "runs")
    assert lab.states() == {"tunes": "Running", "trains": "Suspended"}


def test_switching_fair_sharing_keeps_what_runs_and_what_waits() -> None:
    lab = two_teams(fair=True)
    lab.submit("a", "wide", pods=2, gpu=4)
    lab.submit("a", "waits", gpu=4)
    before = lab.workload("a", "wide")
    lab.cluster.govern([quota("a", count(1), limit=100), quota("b", count(1), limit=100)], policy(RANKS, fair=False))
    assert lab.workload("a", "wide")["status"] == before["status"]
    assert lab.workload("a", "wide")["metadata"]["uid"] == before["metadata"]["uid"]
    assert lab.used("a") == ("8", "4")
    assert lab.states() == {"wide": "Running", "waits": "Suspended"}
    queue = lab.cluster.store.get("clusterqueues", "hyperpod-ns-a-clusterqueue")
    assert "fairSharing" not in queue["status"]
    lab.submit("b", "own", gpu=4)
    assert lab.preemptions()[-1] == ("pytorchjob-wide", "InCohortReclamation")


def test_a_borrower_of_weight_zero_has_an_infinite_share() -> None:
    lab = two_teams()
    lab.submit("a", "wide", pods=2, gpu=4)
    queue = lab.cluster.store.get("clusterqueues", "hyperpod-ns-a-clusterqueue")
    assert queue["status"]["fairSharing"] == {"weightedShare": 2**63 - 1}
    local = lab.cluster.store.get("localqueues", "hyperpod-ns-a-localqueue", NS_A)
    assert local["status"]["admittedWorkloads"] == 1
    [usage] = [one for one in local["status"]["flavorsUsage"][0]["resources"] if one["name"] == GPU]
    assert usage == {"name": GPU, "total": "8"}


# Nodes


def test_pods_of_a_failed_node_are_lost_and_wait_for_another() -> None:
    lab = two_teams()
    lab.submit("a", "wide", pods=2, gpu=4)
    old = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in lab.cluster.store.list("pods")}
    first = lab.cluster.store.list("nodes")[0]["metadata"]["name"]
    lab.cluster.fail_node(first)
    assert lab.states() == {"wide": "Admitted, waiting for nodes"}
    assert lab.condition("a", "wide", "Admitted")["status"] == "True"
    [pending] = [pod for pod in lab.cluster.store.list("pods") if pod["status"]["phase"] == "Pending"]
    assert pending["metadata"]["uid"] != old[pending["metadata"]["name"]]
    assert pending["status"]["conditions"][0]["message"] == (
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were not ready."
    )
    lab.cluster.recover_node(first)
    assert lab.states() == {"wide": "Running"}


def test_an_unhealthy_node_that_is_ready_keeps_its_pods_and_gets_no_more() -> None:
    lab = two_teams()
    lab.submit("a", "own", gpu=4)
    busy = lab.cluster.store.list("pods")[0]["spec"]["nodeName"]
    lab.cluster.fail_node(busy, ready=True)
    assert lab.states() == {"own": "Running"}
    lab.delete("a", "own")
    lab.submit("a", "wide", pods=2, gpu=4)
    assert lab.states() == {"wide": "Admitted, waiting for nodes"}
    assert busy not in {pod["spec"].get("nodeName") for pod in lab.cluster.store.list("pods")}


def test_a_cordoned_node_gets_no_more_pods() -> None:
    lab = two_teams()
    for node in lab.cluster.store.list("nodes"):
        lab.cluster.cordon_node(node["metadata"]["name"])
    lab.submit("a", "own", gpu=4)
    assert lab.states() == {"own": "Admitted, waiting for nodes"}
    lab.cluster.cordon_node(lab.cluster.store.list("nodes")[0]["metadata"]["name"], cordoned=False)
    assert lab.states() == {"own": "Running"}


def test_a_replica_that_is_lost_with_its_node_queues_again() -> None:
    lab = two_teams()
    lab.cluster.submit(job_manifest("a", "serve", {GPU: 4}, kind="Deployment"))
    [old] = lab.pods("a")
    lab.cluster.delete_nodes([lab.cluster.store.get("pods", old, NS_A)["spec"]["nodeName"].removeprefix("hyperpod-")])
    [new] = lab.pods("a")
    assert new != old
    assert lab.pods("a") == {new: "Running"}
    assert len(lab.cluster.store.list("workloads", NS_A)) == 1


def test_a_running_job_that_loses_a_node_begins_again() -> None:
    lab = two_teams()
    lab.submit("a", "wide", pods=2, run_seconds=100, gpu=4)
    lab.advance(50)
    lab.cluster.replace_node(lab.cluster.store.list("nodes")[0]["metadata"]["name"])
    lab.advance(60)
    assert lab.states() == {"wide": "Running"}
    lab.advance(40)
    assert lab.states() == {"wide": "Succeeded"}


# Time


def test_a_clock_is_asked_to_come_back() -> None:
    asked: list[datetime] = []
    clock = VirtualClock()
    cluster = SimulatedCluster("ml", lambda: clock.now, pace=Pace(join=180), at=lambda moment, _: asked.append(moment))
    cluster.set_target(GroupFact("workers", G5, 1))
    cluster.settle()
    assert asked == [clock.now + timedelta(seconds=180)]


def test_the_stacks_clock_drives_it() -> None:
    clock = VirtualClock()
    cluster = SimulatedCluster("ml", lambda: clock.now, pace=Pace(join=180, stop=5), at=clock.at)
    cluster.set_target(GroupFact("workers", G5, 1))
    while (timer := clock.next_once()) is not None:
        clock.fire(timer)
    assert len(cluster.store.list("nodes")) == 1


def test_the_same_story_gives_the_same_objects() -> None:
    def story() -> list[object]:
        lab = two_teams()
        lab.submit("a", "wide", pods=2, gpu=4)
        lab.submit("b", "own", gpu=4, run_seconds=30)
        lab.advance(100)
        store = lab.cluster.store
        return [store.list(plural) for plural in ("nodes", "pods", "workloads", "clusterqueues", "pytorchjobs")]

    assert story() == story()
