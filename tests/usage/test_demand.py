"""What waiting workloads ask for, by instance type."""

from typing import Any

from taskgov.usage.demand import waiting_demand
from tests.support.clusters import G5, GPU, GovernedCluster

QUEUE = "hyperpod-ns-team-a-clusterqueue"


def test_a_waiting_workload_counts_for_the_first_type_of_its_queue() -> None:
    snapshot = GovernedCluster().with_team("team-a").with_waiting("one", "team-a", gpus=8).snapshot()
    assert waiting_demand(snapshot.kueue) == {(QUEUE, G5, GPU): 8, (QUEUE, G5, "cpu"): 4000}


def selecting(cluster: GovernedCluster, instance_type: str) -> GovernedCluster:
    pod: dict[str, Any] = cluster.workloads[0]["spec"]["podSets"][0]["template"]["spec"]
    pod["nodeSelector"] = {"node.kubernetes.io/instance-type": instance_type}
    return cluster


def test_a_workload_that_selects_a_type_counts_for_that_one_or_for_none() -> None:
    cluster = GovernedCluster().with_team("team-a").with_waiting("one", "team-a", gpus=8)
    assert waiting_demand(selecting(cluster, G5).snapshot().kueue)[QUEUE, G5, GPU] == 8
    assert waiting_demand(selecting(cluster, "ml.p5.48xlarge").snapshot().kueue) == {}


def test_what_runs_and_what_is_in_no_queue_does_not_wait() -> None:
    cluster = GovernedCluster().with_team("team-a").with_preempted("held", "team-a", by="team-b", gpus=4)
    cluster.with_waiting("stray", "team-z", gpus=4)
    assert waiting_demand(cluster.snapshot().kueue) == {}
