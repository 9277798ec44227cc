"""What the reader brings home from a live cluster is enough to decide on: the same nodes, the same scheduler state."""

from __future__ import annotations

import pytest
from kubernetes import client

from taskgov.adapters.kubernetes import KubernetesReader
from taskgov.ports import ClusterAccess
from taskgov.scheduling import KueueModel, ManagerConfig, settle
from taskgov.snapshot.nodes import nodes_from_kubernetes
from taskgov_embedded.cluster.api_server import ClusterApiServer
from tests.embedded.cluster.support import RANKS, Lab, policy, quota

CLUSTER = ClusterAccess("arn:aws:eks:us-west-2:111122223333:cluster/ml-eks")
ONE = {"InstanceType": "ml.g5.12xlarge", "Count": 1}


class Direct:
    """A connection without EKS."""

    def __init__(self, url: str) -> None:
        self.url = url

    def open(self, _cluster: ClusterAccess) -> client.ApiClient:
        return client.ApiClient(client.Configuration(host=self.url))


@pytest.fixture
def lab() -> Lab:
    """A borrows B's node, B reclaims it, and somebody's wish can never be met."""
    lab = Lab().nodes("ml.g5.12xlarge", 2)
    lab.cluster.govern([quota("a", ONE, limit=100), quota("b", ONE, limit=100)], policy(RANKS))
    lab.submit("a", "wide", pods=2, priority="training", gpu=4, cpu=44, memory="164Gi")
    lab.submit("a", "impossible", pods=9, gpu=4)
    lab.submit("b", "own", priority="inference", gpu=4)
    lab.submit("b", "small", kind="Job", gpu=1)
    return lab


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_a_scheduler_that_reads_the_api_stands_where_the_cluster_stands(lab: Lab, version: str) -> None:
    with ClusterApiServer(lab.cluster.store, versions_served=("v1", version)) as server:
        objects = KubernetesReader(Direct(server.url)).kueue_objects(CLUSTER)
    world = KueueModel(ManagerConfig(fair_sharing=True))
    world.load(
        [
            *objects.resource_flavors,
            *objects.cluster_queues,
            *objects.local_queues,
            *objects.priority_classes,
            *objects.workloads,
        ]
    )
    store = lab.cluster.store
    for workload in store.list("workloads"):
        key = f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"
        assert world.workload(key)["status"] == workload["status"]
    for queue in store.list("clusterqueues"):
        status = world.cluster_queue(queue["metadata"]["name"])["status"]
        for counted in ("pendingWorkloads", "admittedWorkloads", "reservingWorkloads", "fairSharing"):
            assert status[counted] == queue["status"][counted]
    assert settle(world, lab.moment)[0].idle


def test_nodes_are_understood(lab: Lab) -> None:
    failed = lab.cluster.store.list("nodes")[0]["metadata"]["name"]
    lab.cluster.fail_node(failed)
    with ClusterApiServer(lab.cluster.store) as server:
        nodes = nodes_from_kubernetes(KubernetesReader(Direct(server.url)).nodes(CLUSTER))
    assert [(node.ready, node.health, len(node.taints)) for node in nodes] == [
        (False, "UnschedulablePendingReplacement", 1),
        (True, "Schedulable", 0),
    ]
    assert nodes[1].instance_type == "ml.g5.12xlarge"
    assert nodes[1].allocatable["cpu"] == 44_610
    assert nodes[1].joined_at == lab.moment.replace(second=0)
