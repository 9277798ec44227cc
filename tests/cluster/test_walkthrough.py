"""The published walkthrough on the real Kueue: borrow, reclaim, preempt, with conditions as Kueue writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskgov.adapters.kubernetes import KubernetesReader
from taskgov.hyperpod.names import cluster_queue_of, namespace_of
from taskgov.kueue.render import manager_configuration
from taskgov.ports import ClusterAccess
from taskgov_cli.kubeconfig import KubeconfigContext
from tests.cluster.kube import KUEUE, Kube, Object, conditions, is_true, wait_for
from tests.cluster.workbench import a_node, a_policy, a_quota, clear, govern, is_suspended, submit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster
POLICY = a_policy(inference=90, experimentation=80, training=70, fine_tuning=50)
GPU = {"nvidia.com/gpu": 1}


@pytest.fixture
def kube(cluster: Cluster) -> Iterator[Kube]:
    cluster.run_kueue(manager_configuration(POLICY).to_manifest())
    yield cluster.kube
    clear(cluster.kube)


def workload(kube: Kube, team: str, name: str) -> Object:
    return kube.get(KUEUE, "Workload", name, namespace_of(team))


def wait_until_admitted(kube: Kube, team: str, name: str) -> None:
    wait_for(f"{name} is admitted", lambda: is_true(workload(kube, team, name), "Admitted"))


def test_borrow_reclaim_preempt(kube: Kube) -> None:
    instances = [{"InstanceType": "ml.g5.8xlarge", "Count": 2}]
    govern(kube, [a_quota("team-a", instances), a_quota("team-b", instances)], POLICY)

    first = submit(kube, "team-a", "imagenet-gpu-team-a-1", GPU, pods=3, priority="training")
    wait_until_admitted(kube, "team-a", first)
    wait_for("the job runs", lambda: not is_suspended(kube, "team-a", "imagenet-gpu-team-a-1"))

    second = submit(kube, "team-b", "hyperpod-cli-mnist-team-b", GPU, pods=2, priority="training")
    wait_until_admitted(kube, "team-b", second)
    wait_for("the borrower is suspended", lambda: is_suspended(kube, "team-a", "imagenet-gpu-team-a-1"))
    assert conditions(workload(kube, "team-a", first))["Preempted"]["reason"] == "InCohortReclamation"

    third = submit(kube, "team-b", "imagenet-gpu-team-b-2", GPU, pods=2, priority="inference")
    wait_until_admitted(kube, "team-b", third)
    wait_for("the lower priority is suspended", lambda: is_suspended(kube, "team-b", "hyperpod-cli-mnist-team-b"))
    written = conditions(workload(kube, "team-b", second))
    uid = workload(kube, "team-b", third)["metadata"]["uid"]
    assert written["Preempted"]["reason"] == "InClusterQueue"
    assert f"Preempted to accommodate a workload (UID: {uid}" in written["Preempted"]["message"]
    assert "due to prioritization in the ClusterQueue" in written["Preempted"]["message"]
    assert (written["Evicted"]["status"], written["Evicted"]["reason"]) == ("True", "Preempted")
    assert (written["Admitted"]["status"], written["Admitted"]["reason"]) == ("False", "NoReservation")
    assert not is_true(workload(kube, "team-a", first), "Admitted")


def test_the_reader_sees_usage_as_documented(kube: Kube) -> None:
    one_instance = [{"InstanceType": "ml.g5.12xlarge", "Count": 1}]
    quotas = [a_quota(team, one_instance, borrow_limit=100) for team in ("team-a", "team-b")]
    govern(kube, quotas, POLICY)
    kube.apply(a_node("node-1", "ml.g5.12xlarge"), a_node("node-2", "ml.g5.12xlarge"))
    requests: dict[str, str | int] = {"nvidia.com/gpu": 4, "cpu": 44, "memory": "164Gi"}
    name = submit(kube, "team-a", "team-a-qwen3-training-prio", requests, pods=2, priority="training")
    wait_until_admitted(kube, "team-a", name)

    def usage() -> dict[str, tuple[str, str]]:
        reader = KubernetesReader(KubeconfigContext(kube.context, str(kube.kubeconfig)))
        objects = reader.kueue_objects(ClusterAccess("unused"))
        queues = {one["metadata"]["name"]: one for one in objects.cluster_queues}
        [flavor] = queues[cluster_queue_of("team-a")]["status"]["flavorsUsage"]
        return {one["name"]: (one.get("total", "0"), one.get("borrowed", "0")) for one in flavor["resources"]}

    documented = {
        "aws.amazon.com/neurondevice": ("0", "0"),
        "cpu": ("88", "40"),
        "memory": ("328Gi", "136Gi"),
        "nvidia.com/gpu": ("8", "4"),
        "vpc.amazonaws.com/efa": ("0", "0"),
    }
    wait_for("the usage is the documented one", lambda: usage() == documented)
    reader = KubernetesReader(KubeconfigContext(kube.context, str(kube.kubeconfig)))
    assert {one["metadata"]["name"] for one in reader.nodes(ClusterAccess("unused"))} >= {"node-1", "node-2"}
    assert [one["metadata"]["name"] for one in reader.kueue_objects(ClusterAccess("unused")).workloads] == [name]
