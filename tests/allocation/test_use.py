"""What teams use now, in instances and in accelerators."""

from fractions import Fraction
from typing import Any

from taskgov.allocation.use import use_now, waiting_places
from taskgov.snapshot.model import ClusterFacts, GroupInstanceType, InstanceGroup, KueueObjects, Node, Snapshot
from taskgov.snapshot.use_memory import UseNow
from tests.allocation.work import job, queues
from tests.allocation.world import G5, quota, row, snapshot
from tests.support.memory import CLUSTER_ARN, NOON

P4 = "ml.p4d.24xlarge"
"""8 GPUs, 96 vCPU, 1,152 GiB."""


def queue(team: str, name: str = "", **used: str) -> dict[str, Any]:
    resources = [{"name": resource, "total": total} for resource, total in used.items()]
    return {
        "metadata": {"name": name or f"hyperpod-ns-{team}-clusterqueue", "labels": {}},
        "spec": {},
        "status": {"flavorsReservation": [{"name": P4, "resources": resources}]},
    }


def use_of(*queues: dict[str, Any]) -> UseNow:
    kueue = KueueObjects(cluster_queues=queues)
    return use_now(Snapshot(ClusterFacts("ml-cluster", CLUSTER_ARN), NOON, kueue=kueue))


def test_use_in_instances_is_that_of_the_resource_that_is_used_most() -> None:
    use = use_of(queue("team-a", **{"nvidia.com/gpu": "4", "cpu": "72"}))
    assert use.instances == {("team-a", P4): Fraction(3, 4)}
    assert use.accelerators == {"team-a": 4 * 7}


def test_an_instance_with_one_thread_per_core_is_used_up_by_half_of_the_vcpus() -> None:
    group = InstanceGroup("single", (GroupInstanceType(P4, threads_per_core=1),))
    cluster = ClusterFacts("ml-cluster", CLUSTER_ARN, instance_groups=(group,))
    kueue = KueueObjects(cluster_queues=(queue("team-a", cpu="48"),))
    nodes = (Node("n", P4, instance_group="single"),)
    assert use_now(Snapshot(cluster, NOON, nodes, kueue=kueue)).instances == {("team-a", P4): 1}


def test_a_partition_counts_as_its_sevenths_of_a_gpu() -> None:
    use = use_of(queue("team-a", **{"nvidia.com/gpu": "1", "nvidia.com/mig-3g.20gb": "2"}))
    assert use.accelerators == {"team-a": 7 + 2 * 3}
    assert use.instances == {("team-a", P4): Fraction(13, 56)}


def test_the_queues_of_one_team_add_up() -> None:
    second = queue("team-a", "hyperpod-ns-team-a-other", **{"nvidia.com/gpu": "8"})
    second["metadata"]["labels"] = {"sagemaker.amazonaws.com/quota-allocation-id": "team-a"}
    use = use_of(queue("team-a", **{"nvidia.com/gpu": "8"}), second)
    assert use.instances == {("team-a", P4): 2}


def test_a_team_with_quota_that_uses_nothing_is_watched_and_has_no_accelerators() -> None:
    idle = queue("team-a")
    flavor = {"name": P4, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "8"}]}
    idle["spec"] = {"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [flavor]}]}
    use = use_of(idle)
    assert use == UseNow({("team-a", P4): Fraction(0)}, {})


def test_work_that_names_no_instance_type_waits_for_all_of_its_team_s_and_nobody_else_s() -> None:
    quotas = [quota("team-a", row(Count=1), row(P4, Count=1)), quota("team-b", row(Count=1))]
    each = snapshot(None, (), quotas, kueue=queues(quotas, job("team-a", "too-big", 99)))
    assert waiting_places(each, use_now(each)) == {("team-a", G5), ("team-a", P4)}
