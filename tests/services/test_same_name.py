"""A cluster that is deleted and created again under its name is another: what is kept by name is not its past."""

import json

import pytest

from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.contracts.steps import ReadSnapshotRequest
from taskgov.services.read_snapshot import ReadSnapshot
from taskgov.snapshot.codec import snapshot_from_json
from taskgov.snapshot.model import Snapshot
from tests.support.clusters import G5, GovernedCluster
from tests.support.memory import CLUSTER_ARN, cluster_description

OTHER_ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/createdagain"
NODES, STAMP = "memory/ml-cluster/nodes.json", "memory/ml-cluster/state.json"


def document(arn: str) -> bytes:
    teams = [{"name": "team-a", "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 2}]}}]
    cluster = {"name": "ml-cluster", "arn": arn}
    return json.dumps({"apiVersion": "taskgov/v1", "cluster": cluster, "teams": teams}).encode()


def look(cluster: GovernedCluster, arn: str = CLUSTER_ARN) -> Snapshot:
    read = ReadSnapshot(cluster.take_snapshot(), cluster.documents, cluster.state)
    result = read(ReadSnapshotRequest(cluster_arn=arn, run_id="run-1"))
    cluster.clock.advance(hours=1)
    return snapshot_from_json(cluster.documents.get(result.snapshot))  # type: ignore[union-attr]


def codes(plan: Plan) -> set[str]:
    return {finding.code for finding in plan.findings}


@pytest.fixture
def governed() -> GovernedCluster:
    cluster = GovernedCluster().with_fair_share().with_nodes(4).with_team("team-a", 2)
    cluster.documents.stored["policies/ml-cluster.yaml"] = document(CLUSTER_ARN)
    look(cluster)
    look(cluster)
    return cluster


def created_again(before: GovernedCluster, nodes: int = 4) -> GovernedCluster:
    """Return the other cluster, with the stack's table and bucket."""
    cluster = GovernedCluster(documents=before.documents, state=before.state, clock=before.clock).with_fair_share()
    cluster.with_nodes(nodes)
    for number, (item, summary) in enumerate(zip(cluster.kubernetes.node_objects, cluster.hyperpod.nodes, strict=True)):
        machine = f"i-{100 + number:017x}"
        item["metadata"]["name"] = f"hyperpod-{machine}"
        summary["InstanceId"] = machine  # type: ignore[index]
    cluster.hyperpod.descriptions = [cluster_description(arn=OTHER_ARN)]
    cluster.documents.stored["policies/ml-cluster.yaml"] = document(OTHER_ARN)
    return cluster


def test_a_cluster_that_is_created_again_has_lost_no_node_and_no_record(governed: GovernedCluster) -> None:
    snapshot = look(created_again(governed), OTHER_ARN)
    assert (snapshot.gone, [node.turns for node in snapshot.nodes]) == ((), [()] * 4)
    assert snapshot.state is not None
    assert (snapshot.state.serial, snapshot.state.restored) == (1, None)
    plan = plan_quotas(snapshot, mode="apply")
    assert codes(plan) & {"mass-loss", "state-restored"} == set()
    assert [line.counted for line in plan.capacity] == [4]


def test_what_the_earlier_cluster_left_is_replaced(governed: GovernedCluster) -> None:
    again = created_again(governed)
    look(again, OTHER_ARN)
    assert [json.loads(again.documents.stored[key])["cluster"] for key in (NODES, STAMP)] == [OTHER_ARN] * 2
    snapshot = look(again, OTHER_ARN)
    assert snapshot.state is not None
    assert (snapshot.state.serial, snapshot.state.restored) == (2, None)


def test_a_node_that_the_new_cluster_loses_is_lost(governed: GovernedCluster) -> None:
    again = created_again(governed)
    look(again, OTHER_ARN)
    again.kubernetes.node_objects = again.kubernetes.node_objects[1:]
    again.hyperpod.nodes = again.hyperpod.nodes[1:]
    assert [node.name for node in look(again, OTHER_ARN).gone] == [f"hyperpod-i-{100:017x}"]


@pytest.mark.parametrize("key", [NODES, STAMP])
def test_what_the_release_before_kept_is_of_this_cluster(governed: GovernedCluster, key: str) -> None:
    kept = json.loads(governed.documents.stored[key])
    del kept["cluster"]
    governed.documents.stored[key] = json.dumps(kept).encode()
    lost = governed.kubernetes.node_objects[0]["metadata"]["name"]
    governed.kubernetes.node_objects = governed.kubernetes.node_objects[1:]
    governed.hyperpod.nodes = governed.hyperpod.nodes[1:]
    snapshot = look(governed)
    assert [node.name for node in snapshot.gone] == [lost]
    assert snapshot.state is not None
    assert (snapshot.state.serial, snapshot.state.restored) == (3, None)


def test_a_memory_of_another_cluster_in_the_place_of_this_one_s_is_a_memory_that_is_lost(
    governed: GovernedCluster,
) -> None:
    kept = json.loads(governed.documents.stored[NODES])
    governed.documents.stored[NODES] = json.dumps({**kept, "cluster": OTHER_ARN}).encode()
    snapshot = look(governed)
    assert snapshot.gone == ()
    assert [node.found_healthy for node in snapshot.nodes] == [True] * 4
