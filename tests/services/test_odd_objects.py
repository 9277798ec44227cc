"""One odd object of Kubernetes holds up nothing: it is left out and reported, and lowers nobody's quota."""

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation.plan import Outcome, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.findings import Severity
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from taskgov.snapshot.health import node_fault
from taskgov.snapshot.model import KubernetesObject, KueueObjects, Snapshot
from taskgov.snapshot.unreadable import UnreadableObject
from tests.support.clusters import G5, GPU, GovernedCluster
from tests.support.memory import CLUSTER_ARN

Odd = dict[str, Any]


def document(**more: Any) -> bytes:
    teams = [{"name": name, "share": [{"instanceType": G5, "percent": 50}]} for name in ("team-a", "team-b")]
    cluster = {"name": "ml-cluster", "arn": CLUSTER_ARN}
    return json.dumps({"apiVersion": "taskgov/v1", "cluster": cluster, "teams": teams, **more}).encode()


class World:
    """Two teams share four nodes half and half; `look` takes a snapshot, hours after the previous one."""

    def __init__(self, **more: Any) -> None:
        self.cluster = GovernedCluster().with_fair_share().with_nodes(4)
        self.cluster.with_team("team-a", 2, used={GPU: "4"}).with_team("team-b", 2)
        self.cluster.with_waiting("waits", "team-b", gpus=4)
        self.cluster.documents.stored["policies/ml-cluster.yaml"] = document(**more)
        self.take = self.cluster.take_snapshot()
        self.look()

    def look(self) -> Snapshot:
        self.cluster.clock.advance(hours=3)
        snapshot = self.take(CLUSTER_ARN, remember=True)
        return snapshot_from_json(snapshot_to_json(snapshot))

    def spoil_node(self, spoil: Callable[[Odd], Any], number: int = 1) -> None:
        items: list[Any] = self.cluster.kubernetes.node_objects
        items[number] = spoil(copy.deepcopy(items[number]))

    def spoil(self, kind: str, item: object) -> None:
        """Put an object in the place of the first of its kind."""
        kueue: KueueObjects = self.cluster.kubernetes.kueue
        changed: Mapping[str, Any] = {kind: (item, *getattr(kueue, kind)[1:])}
        self.cluster.kubernetes.kueue = replace(kueue, **changed)


def put(*way: str | int, value: object) -> Callable[[Odd], Odd]:
    def spoil(item: Odd) -> Odd:
        holder: Any = item
        for step in way[:-1]:
            holder = holder[step]
        holder[way[-1]] = value
        return item

    return spoil


def plan(snapshot: Snapshot) -> Plan:
    return plan_quotas(snapshot, mode="apply")


NODES: Mapping[str, Callable[[Odd], Any]] = {
    "no object": lambda _: 7,
    "null": lambda _: None,
    "no metadata": lambda item: {**item, "metadata": None},
    "no name": put("metadata", "name", value=None),
    "a name that is a number": put("metadata", "name", value=7),
    "labels that are a list": put("metadata", "labels", value=[]),
    "a label that is a number": put("metadata", "labels", value={"node.kubernetes.io/instance-type": 5}),
    "a moment out of reach": put("metadata", "creationTimestamp", value="0001-01-01T00:00:00+14:00"),
    "a status that is text": put("status", value="Ready"),
    "a quantity that does not parse": put("status", "allocatable", value={"cpu": "many"}),
    "a quantity below nothing": put("status", "allocatable", value={"cpu": "-5"}),
    "conditions without a type": put("status", "conditions", value=[{"status": "False"}]),
    "a taint without an effect": put("spec", "taints", value=[{"key": "node.kubernetes.io/unreachable"}]),
    "nesting without end": lambda item: {**item, "spec": {"x": json.loads("[" * 300 + "]" * 300)}},
}


@pytest.mark.parametrize(
    ("case", "basis"),
    [
        *((case, "instances") for case in NODES),
        ("no name", "allocatable"),
        ("conditions without a type", "allocatable"),
    ],
)
def test_an_odd_node_counts_as_it_did_and_lowers_no_quota(case: str, basis: str) -> None:
    world = World(capacity={"basis": basis})
    calm = plan(world.look())
    world.spoil_node(NODES[case])
    world.look()
    snapshot = world.look()
    found = plan(snapshot)
    assert [node.name for node in snapshot.nodes if node_fault(node)] == []
    assert [each.kind for each in snapshot.unreadable_objects] == ["Node"]
    assert ([line.counted for line in found.capacity], found.changes) == ([4], calm.changes)
    assert [each.subject for each in found.findings if each.code == "unreadable-object"] == ["Node"]


def test_a_node_that_is_lost_lowers_quotas_where_an_odd_one_does_not() -> None:
    world = World()
    world.spoil_node(put("status", "conditions", value=[{"type": "Ready", "status": "False"}]))
    world.look()
    assert [line.counted for line in plan(world.look()).capacity] == [3]


def test_an_odd_node_that_sagemaker_says_failed_does_not_count() -> None:
    world = World()
    world.spoil_node(NODES["a quantity that does not parse"])
    world.cluster.hyperpod.nodes[1]["InstanceStatus"] = {"Status": "Failure"}  # type: ignore[index]
    world.look()
    assert [line.counted for line in plan(world.look()).capacity] == [3]


def test_a_new_node_that_cannot_be_read_adds_nothing_until_it_can() -> None:
    world = World()
    world.cluster.with_nodes(1)
    good = world.cluster.kubernetes.node_objects[4]
    world.spoil_node(NODES["a label that is a number"], 4)
    world.look()
    assert [line.counted for line in plan(world.look()).capacity] == [4]
    world.cluster.kubernetes.node_objects[4] = good
    world.look()
    assert [line.counted for line in plan(world.look()).capacity] == [5]


def test_an_odd_node_that_is_gone_is_a_lost_node() -> None:
    world = World()
    world.spoil_node(NODES["a label that is a number"])
    world.look()
    del world.cluster.kubernetes.node_objects[1], world.cluster.hyperpod.nodes[1]
    world.look()
    assert [line.counted for line in plan(world.look()).capacity] == [3]


def spoiled(item: KubernetesObject, **fields: object) -> KubernetesObject:
    return {**item, **fields}


@pytest.mark.parametrize("odd", ["named", "without a name"])
def test_the_quota_of_an_odd_queue_stands_and_the_others_continue(odd: str) -> None:
    world = World()
    queue = world.cluster.kubernetes.kueue.cluster_queues[0]
    team = "team-a" if "team-a" in queue["metadata"]["name"] else "team-b"
    other = "team-b" if team == "team-a" else "team-a"
    metadata = queue["metadata"] if odd == "named" else {}
    world.spoil("cluster_queues", spoiled(queue, metadata=metadata, spec={"resourceGroups": 7}))
    world.cluster.with_nodes(4)
    world.look()
    snapshot = world.look()
    found = plan(snapshot)
    assert {change.team for change in found.changes} == {other}
    (said,) = (each.because for each in found.findings if each.code == "unreadable-object")
    assert said.endswith("The quota of its team stays as it is.")


OBJECTS: Mapping[str, Any] = {
    "resource_flavors": {"metadata": {"name": "f"}, "spec": {"nodeLabels": ["x"]}},
    "cohorts": {"metadata": {"name": "c"}, "spec": {"parentName": 5}},
    "local_queues": {"metadata": {"name": "q"}, "spec": {"clusterQueue": "cq"}},
    "priority_classes": {"metadata": {"name": "p"}, "value": "high"},
    "workloads": {"metadata": {"name": "w", "namespace": "n"}, "spec": {"podSets": [{"count": None}]}},
}


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("whole", [True, False])
def test_any_other_odd_object_is_left_out_and_the_prediction_says_so(kind: str, *, whole: bool) -> None:
    world = World()
    world.spoil(kind, OBJECTS[kind] if whole else None)
    world.cluster.with_nodes(4)
    world.look()
    found = plan(world.look())
    assert found.outcome is Outcome.APPLY
    assert [each.code for each in found.findings if each.code == "unreadable-object"] == ["unreadable-object"]
    assert not found.prediction.is_complete


SUMMARIES: Mapping[str, Callable[[Odd], Any]] = {
    "no object": lambda _: 7,
    "no instance id": put("InstanceId", value=None),
    "no status": put("InstanceStatus", value={}),
    "a status that is text": put("InstanceStatus", value="Running"),
    "no type": put("InstanceType", value=None),
    "no group": put("InstanceGroupName", value=None),
}


def spoil_summary(world: World, spoil: Callable[[Odd], Any], number: int = 1) -> None:
    rows: list[Any] = world.cluster.hyperpod.nodes
    rows[number] = spoil(copy.deepcopy(dict(rows[number])))


@pytest.mark.parametrize("also_gone", [False, True], ids=["in Kubernetes", "not in Kubernetes any more"])
@pytest.mark.parametrize("case", SUMMARIES)
def test_an_odd_summary_of_a_machine_lowers_no_quota_and_raises_none(case: str, *, also_gone: bool) -> None:
    world = World()
    calm = plan(world.look())
    spoil_summary(world, SUMMARIES[case])
    if also_gone:
        del world.cluster.kubernetes.node_objects[1]
    world.look()
    found = plan(world.look())
    assert ([line.counted for line in found.capacity], found.changes) == ([4], calm.changes)
    assert [each.subject for each in found.findings if each.code == "unreadable-object"] == ["ClusterNode"]


def test_a_machine_that_is_gone_is_lost_although_another_s_summary_is_odd() -> None:
    world = World()
    spoil_summary(world, SUMMARIES["no status"])
    del world.cluster.kubernetes.node_objects[0], world.cluster.hyperpod.nodes[0]
    world.look()
    assert [line.counted for line in plan(world.look()).capacity] == [3]


GROUPS: Mapping[str, Any] = {
    "no object": 7,
    "no name": {"InstanceType": G5},
    "threads that are text": {"InstanceGroupName": "g", "InstanceType": G5, "ThreadsPerCore": "two"},
    "details that are text": {"InstanceGroupName": "g", "InstanceTypeDetails": "all"},
}
PROMISES: Mapping[str, Callable[[World], Any]] = {
    **{
        case: lambda world, odd=odd: world.cluster.hyperpod.descriptions[0].update(InstanceGroups=[odd])  # type: ignore[misc]
        for case, odd in GROUPS.items()
    },
    "a quota": lambda world: world.cluster.hyperpod.odd.append(UnreadableObject("ComputeQuota", "quota7", "odd")),
    "the cluster policy": lambda world: world.cluster.hyperpod.odd.append(
        UnreadableObject("ClusterSchedulerConfig", "", "odd")
    ),
}


@pytest.mark.parametrize("nodes", [2, 8])
@pytest.mark.parametrize("case", PROMISES)
def test_nothing_is_written_while_a_promise_cannot_be_read(case: str, nodes: int) -> None:
    """With twice the nodes quotas would rise above what an unread quota holds; with half of them they would fall."""
    world = World()
    world.cluster.with_nodes(max(nodes - 4, 0))
    del world.cluster.kubernetes.node_objects[nodes:], world.cluster.hyperpod.nodes[nodes:]
    world.look()
    assert plan(world.look()).outcome is not Outcome.NOTHING_TO_DO
    PROMISES[case](world)
    found = plan(world.look())
    assert found.outcome is Outcome.BLOCKED
    assert [each.guardrail for each in found.guardrails if not each.passed and each.guardrail == "all-read"]
    (finding,) = (each for each in found.findings if each.code == "unreadable-object")
    assert finding.severity is Severity.ERROR


def test_the_usage_is_measured_although_a_promise_cannot_be_read() -> None:
    world = World()
    PROMISES["a quota"](world)
    snapshot = world.look()
    assert [quota.name for quota in snapshot.quotas] != []
    assert [each.kind for each in snapshot.unreadable_objects] == ["ComputeQuota"]
