"""One stack governs every cluster of its account and Region, each by its own document and with its own lock."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.services.metric_catalogue import ALL_CLUSTERS
from taskgov_embedded.cluster.access import TokenVerifier, read_rules
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.simulated import Pace, SimulatedCluster
from taskgov_embedded.sagemaker.cluster_port import GroupFact
from taskgov_embedded.stack import Stack
from taskgov_embedded.virtual_time.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
NODES = {"ml-east": 4, "ml-west": 2}
WANTED = {"ml-east": 3, "ml-west": 1}


class Two:
    """Two clusters of different size, each with a document of its own."""

    def __init__(self, opened: ExitStack) -> None:
        self.clock = VirtualClock()
        parameters = {"ApplyMode": "apply"}
        self.stack = opened.enter_context(Stack(ROOT / "template.yaml", parameters, self.clock))
        self.registered = {name: self.register(name, count, opened) for name, count in NODES.items()}
        self.stack.run_until_quiet()
        for name, count in WANTED.items():
            self.write(name, count)
        self.stack.run_until_quiet(300)

    def register(self, name: str, count: int, opened: ExitStack) -> Any:
        cluster = SimulatedCluster(name, lambda: self.clock.now, pace=Pace(join=30, stop=1), at=self.clock.at)
        cluster.set_target(GroupFact("workers", "ml.g5.8xlarge", count))
        verifier = TokenVerifier(f"{name}-eks", lambda: self.clock.now)
        rules = read_rules(ROOT / "docs" / "rbac.yaml")
        server = opened.enter_context(ClusterApiServer(cluster.store, verifier=verifier, rules=rules))
        self.stack.eks.register_cluster(f"{name}-eks", server.url, certificate_authority="")
        return self.stack.sagemaker.register_cluster(name, cluster, eks_cluster_name=f"{name}-eks")

    def write(self, name: str, count: int) -> None:
        quota = {"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "Count": count}]}
        document = {
            "apiVersion": "taskgov/v1",
            "cluster": {"name": name, "arn": self.registered[name].arn},
            "teams": [{"name": "team-a", "quota": quota}],
            "sharedPool": {"team": "shared-pool", "takes": "remainder"},
            "capacity": {"holdUnhealthyMinutes": 0, "growAfterMinutes": 0},
        }
        bucket, key = self.stack.physical("GovernanceBucket"), f"policies/{name}.yaml"
        self.stack.client("s3").put_object(Bucket=bucket, Key=key, Body=json.dumps(document).encode())

    def counts(self, name: str) -> dict[str, int]:
        quotas = self.stack.sagemaker.quotas(self.registered[name].arn)
        return {
            one["ComputeQuotaTarget"]["TeamName"]: one["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"]
            for one in quotas
        }


@pytest.fixture(scope="module")
def two() -> Iterator[Two]:
    with ExitStack() as opened:
        yield Two(opened)


def test_each_cluster_gets_the_quotas_of_its_own_document(two: Two) -> None:
    assert two.counts("ml-east") == {"team-a": 3, "shared-pool": 1}
    assert two.counts("ml-west") == {"team-a": 1, "shared-pool": 1}
    assert two.stack.timeline.of("denied") == []


def test_runs_of_different_clusters_do_not_wait_for_each_other(two: Two) -> None:
    client = two.stack.client("stepfunctions")
    machine = two.stack.physical("ReconcileStateMachine")
    runs = client.list_executions(stateMachineArn=machine, statusFilter="SUCCEEDED")["executions"]
    first: dict[str, Any] = {}
    for run in sorted(runs, key=lambda one: one["startDate"]):
        given = json.loads(client.describe_execution(executionArn=run["executionArn"])["input"])
        first.setdefault(given["clusterArn"], run)
    east, west = (first[two.registered[name].arn] for name in NODES)
    assert east["startDate"] < west["stopDate"]
    assert west["startDate"] < east["stopDate"]


def test_a_change_of_one_cluster_leaves_the_other_alone(two: Two) -> None:
    before = two.counts("ml-east")
    two.write("ml-west", 2)
    two.stack.run_until_quiet(300)
    assert two.counts("ml-west")["team-a"] == 2
    assert two.counts("ml-east") == before


def test_one_audit_and_one_publication_cover_both(two: Two) -> None:
    two.stack.fire("AuditAllSchedule")
    two.stack.fire("PublishUsageSchedule")
    two.stack.run_until_quiet()
    found = two.stack.client("s3").list_objects_v2(Bucket=two.stack.physical("GovernanceBucket"), Prefix="reports/")
    assert {one["Key"].split("/")[1] for one in found["Contents"]} == set(NODES)
    metrics = two.stack.client("cloudwatch").list_metrics(Namespace="TaskGovernance")["Metrics"]
    named = {one["Value"] for metric in metrics for one in metric["Dimensions"] if one["Name"] == "Cluster"}
    assert named == {*NODES, ALL_CLUSTERS}
