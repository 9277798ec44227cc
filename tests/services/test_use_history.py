"""What is used is remembered by the schedule alone, and snapshots know it."""

import gzip
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from taskgov.contracts.steps import PublishUsageRequest
from taskgov.errors import InvalidRequestError
from taskgov.policy.parse import parse_policy
from taskgov.services.use_history import KEY, KEY_BEFORE, UseHistory, with_use
from tests.support.clusters import G5, GPU, GovernedCluster
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    FixedClock,
)

DOCUMENT = f"""
apiVersion: taskgov/v1
cluster: {{name: ml-cluster, arn: "{CLUSTER_ARN}"}}
teams: [{{name: team-a, quota: {{ComputeQuotaResources: [{{InstanceType: {G5}, Count: 2}}]}}}}]
"""
BUDGET = "budgets: [{team: team-a, gpuHours: 10, period: day}, {team: team-a, gpuHours: 90}]\n"


def a_cluster(text: str = DOCUMENT) -> GovernedCluster:
    cluster = GovernedCluster().with_nodes(2).with_team("team-a", 2, used={GPU: "6", "cpu": "4"})
    cluster.documents.put("policies/ml-cluster.yaml", text.encode(), "text/yaml")
    return cluster


def publish(cluster: GovernedCluster, minutes: int, request: PublishUsageRequest | None = None) -> None:
    cluster.clock = FixedClock(NOON + timedelta(minutes=minutes))
    cluster.publish_usage()(request or PublishUsageRequest())


def published_for(minutes: int, text: str = DOCUMENT) -> GovernedCluster:
    cluster = a_cluster(text)
    for minute in range(0, minutes + 1, 10):
        publish(cluster, minute)
    return cluster


def test_a_snapshot_has_what_was_used_in_instances_by_the_resource_that_is_used_most() -> None:
    (use,) = published_for(60).snapshot().observed_use
    assert (use.team, use.instance_type, use.hours, use.peak_instances) == ("team-a", G5, 1, 1.5)


def test_a_snapshot_has_what_is_spent_of_each_budget() -> None:
    spent = published_for(60, DOCUMENT + BUDGET).snapshot().budget_use
    assert [(use.team, use.period, use.gpu_hours) for use in spent] == [("team-a", "day", 6), ("team-a", "month", 6)]


def test_before_the_first_publication_nothing_was_observed_and_no_budget_is_measured() -> None:
    snapshot = a_cluster(DOCUMENT + BUDGET).snapshot()
    assert (snapshot.observed_use, snapshot.budget_use) == ((), ())


def test_the_end_of_a_run_adds_no_time() -> None:
    cluster = published_for(60, DOCUMENT + BUDGET)
    before = cluster.documents.stored[KEY.format("ml-cluster")]
    end = PublishUsageRequest(cluster_arn=CLUSTER_ARN, run_id="run-1", outcome="nothing-to-do", started_at=NOON)
    publish(cluster, 63, end)
    assert cluster.documents.stored[KEY.format("ml-cluster")] == before


def test_what_an_earlier_release_kept_is_continued() -> None:
    cluster = published_for(60, DOCUMENT + BUDGET)
    kept = cluster.documents.stored.pop(KEY.format("ml-cluster"))
    cluster.documents.stored[KEY_BEFORE.format("ml-cluster")] = gzip.decompress(kept)
    assert cluster.snapshot().budget_use[0].gpu_hours == 6
    publish(cluster, 70)
    assert cluster.snapshot().budget_use[0].gpu_hours == 7
    assert cluster.documents.stored[KEY_BEFORE.format("ml-cluster")] == gzip.decompress(kept)


def test_a_publication_that_is_tried_again_at_the_same_moment_writes_nothing() -> None:
    cluster = published_for(60)
    puts: list[str] = []

    def put(key: str, *_: Any) -> None:
        puts.append(key)

    cluster.documents.put = put  # type: ignore[method-assign, assignment]
    publish(cluster, 60)
    assert puts == []


def test_the_window_is_that_of_the_document_where_rebalancing_is_on() -> None:
    rules = "demand: {enabled: true, windowHours: 1}\n"
    (use,) = published_for(180, DOCUMENT + rules).snapshot().observed_use
    assert use.hours == 1


@pytest.mark.parametrize(("selector", "pending"), [(None, True), (G5, True), ("ml.p5.48xlarge", False)])
def test_work_waits_for_the_type_that_it_names_or_for_any(selector: str | None, pending: bool) -> None:
    cluster = published_for(10).with_waiting("train", "team-a", gpus=8)
    if selector:
        spec = cluster.workloads[0]["spec"]["podSets"][0]["template"]["spec"]
        spec["nodeSelector"] = {"node.kubernetes.io/instance-type": selector}
    (use,) = cluster.snapshot().observed_use
    assert use.pending is pending


def test_a_type_that_is_unknown_is_measured_by_what_its_nodes_offer() -> None:
    cluster = a_cluster()
    known = cluster.snapshot()
    odd = "ml.z9.96xlarge"
    queue = {
        "metadata": {"name": "hyperpod-ns-team-a-clusterqueue"},
        "spec": {},
        "status": {"flavorsReservation": [{"name": odd, "resources": [{"name": GPU, "total": "2"}]}]},
    }
    nodes = (replace(known.nodes[0], instance_type=odd, allocatable={GPU: 8}),)
    snapshot = replace(known, nodes=nodes, kueue=replace(known.kueue, cluster_queues=(queue,)))
    UseHistory(cluster.documents).keep(snapshot)
    (use,) = with_use(snapshot, UseHistory(cluster.documents).read("ml-cluster")).observed_use
    assert (use.instance_type, use.peak_instances) == (odd, 0.25)


def test_a_damaged_memory_says_what_to_do() -> None:
    cluster = a_cluster()
    cluster.documents.put(KEY.format("ml-cluster"), b'{"version": 1}', "application/json")
    with pytest.raises(InvalidRequestError, match=r"memory/ml-cluster/use\.json\.gz cannot be read .* delete it"):
        cluster.snapshot()


def test_the_document_used_here_is_a_good_one() -> None:
    assert parse_policy(DOCUMENT + BUDGET).violations == ()
