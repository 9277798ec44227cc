from datetime import timedelta
from typing import Any

import pytest

from taskgov.allocation.capacity import TypeCapacity, count_capacity
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.policy.document import CapacityRules
from taskgov.quantities import GIBIBYTE
from taskgov.snapshot.model import GroupInstanceType, InstanceGroup, Node, Taint
from tests.allocation.world import G5, NOW, P5, minutes, nodes


def count(
    *cluster: Node, memory_reserved: int = 0, groups: tuple[InstanceGroup, ...] = (), **rules: Any
) -> TypeCapacity:
    counted = count_capacity(
        cluster,
        CapacityRules.model_validate(rules),
        NOW,
        InstanceTypeTable(),
        memory_reserved_percent=memory_reserved,
        instance_groups=groups,
    )
    return counted[cluster[0].instance_type]


LEFT_OUT = {
    "cordoned": ({"cordoned": True}, "cordoned"),
    "not ready": ({"ready": False}, "not ready"),
    "marked unschedulable by HyperPod": ({"health": "Unschedulable"}, "Unschedulable"),
    "waiting for replacement": ({"health": "UnschedulablePendingReplacement"}, "UnschedulablePendingReplacement"),
    "waiting for a reboot": ({"health": "UnschedulablePendingReboot"}, "UnschedulablePendingReboot"),
    "under a deep health check": ({"deep_health_check": "InProgress"}, "deep health check InProgress"),
    "failed in a deep health check": ({"deep_health_check": "Failed"}, "deep health check Failed"),
    "being partitioned": ({"mig_state": "pending"}, "MIG state pending"),
    "failed says SageMaker": ({"instance_status": "Failure"}, "SageMaker: Failure"),
    "not in Kubernetes": (
        {"in_kubernetes": False, "instance_status": "Pending"},
        "not in Kubernetes (SageMaker: Pending)",
    ),
    "tainted by the node controller": (
        {"taints": (Taint("node.kubernetes.io/unreachable", "", "NoExecute"),)},
        "taint node.kubernetes.io/unreachable",
    ),
    "tainted by HyperPod": (
        {"taints": (Taint("sagemaker.amazonaws.com/node-health-status", "Unschedulable", "NoSchedule"),)},
        "taint sagemaker.amazonaws.com/node-health-status",
    ),
}


@pytest.mark.parametrize(("state", "words"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_a_node_is_left_out_that_is(state: dict[str, Any], words: str) -> None:
    capacity = count(*nodes(1), *nodes(1, prefix="sick", **state))
    assert (capacity.line.counted, capacity.line.left_out) == (1, (f"sick-0000: {words}",))


FINE = {
    "reserved for GPU work by a taint": {"taints": (Taint("nvidia.com/gpu", "", "NoSchedule"),)},
    "only preferred against": {"taints": (Taint("node.kubernetes.io/memory-pressure", "", "PreferNoSchedule"),)},
    "passed in a deep health check": {"deep_health_check": "Passed"},
    "partitioned with success": {"mig_state": "success"},
    "schedulable and running": {"health": "Schedulable", "instance_status": "Running"},
}


@pytest.mark.parametrize("state", FINE.values(), ids=FINE.keys())
def test_a_node_counts_that_is(state: dict[str, Any]) -> None:
    assert count(*nodes(1, **state)).line.counted == 1


def turned(*minutes_ago: float, found: bool = True) -> Node:
    """A node that turned so long ago, last of all to what it is now."""
    healthy = found is (len(minutes_ago) % 2 == 0)
    turns = tuple(NOW - minutes(ago) for ago in minutes_ago)
    since: dict[str, Any] = {"healthy_since" if healthy else "unhealthy_since": turns[-1]} if turns else {}
    return nodes(1, cordoned=not healthy, turns=turns, found_healthy=found, **since)[0]


TURNS = {
    "found healthy counts at once": (turned(), 1),
    "found sick never counted": (turned(found=False), 0),
    "broke within the hold time counts": (turned(9), 1),
    "broke beyond the hold time does not": (turned(10), 0),
    "recovered within the hold time never stopped counting": (turned(9, 1), 1),
    "recovered after the hold time has to be steady first": (turned(30, 1), 0),
    "recovered and steady counts again": (turned(30, 5), 1),
    "new and fresh does not count": (turned(4, found=False), 0),
    "new and steady counts": (turned(5, found=False), 1),
    "new, fresh and broken is not held": (turned(6, 2, found=False), 0),
    "keeps turning as it last was: counted": (turned(8, 6, 4, 2), 1),
    "keeps turning as it last was: not counted": (turned(60, 8, 6, 4, 2, 1), 0),
}


@pytest.mark.parametrize(("node", "want"), TURNS.values(), ids=TURNS.keys())
def test_a_node_that(node: Node, want: int) -> None:
    assert count(node).line.counted == want


def test_a_held_node_is_named_with_its_fault_and_the_moment_its_hold_ends() -> None:
    capacity = count(turned(9))
    held = "ml-g5-8xlarge-0000: cordoned since 2026-11-20 11:51 UTC; counts until 2026-11-20 12:01 UTC"
    assert (capacity.line.held, capacity.recheck_at) == ((held,), NOW + minutes(1))


def test_a_node_held_without_a_known_beginning_is_named_without_an_end() -> None:
    turns = (NOW - minutes(9),)
    [node] = nodes(1, cordoned=True, turns=turns, found_healthy=True)
    assert count(node).line.held == ("ml-g5-8xlarge-0000: cordoned",)


def test_a_steady_node_gives_no_moment_to_look_again() -> None:
    assert count(turned(9, 1)).recheck_at is None


def test_hold_and_growth_of_no_minutes_act_at_once() -> None:
    rules: dict[str, Any] = {"holdUnhealthyMinutes": 0, "growAfterMinutes": 0}
    assert count(turned(0), **rules).line.counted == 0
    assert count(turned(0, found=False), **rules).line.counted == 1


HEADROOM = {"none of 20": (0, 20, 20), "5 % of 20": (5, 20, 19), "5 % of 19": (5, 19, 19), "all": (100, 7, 0)}


@pytest.mark.parametrize(("percent", "instances", "usable"), HEADROOM.values(), ids=HEADROOM.keys())
def test_headroom_is_taken_in_whole_instances(percent: int, instances: int, usable: int) -> None:
    assert count(*nodes(instances), headroomPercent=percent).line.usable == usable


def test_resources_are_nominal_at_the_basis_instances() -> None:
    resources = count(*nodes(2, P5)).line.resources
    assert resources == {"accelerator": 2 * 8 * 7, "cpu": 384_000, "memory": 4096 * GIBIBYTE}


def test_resources_are_what_nodes_offer_at_the_basis_allocatable_less_headroom() -> None:
    offer = {"cpu": 1_930, "memory": 100, "pods": 29, "ephemeral-storage": 7}
    capacity = count(*nodes(4, "ml.m5.xlarge", allocatable=offer), basis="allocatable", headroomPercent=25)
    assert capacity.line.resources == {"cpu": 3 * 1_930, "memory": 300}


def test_tiered_storage_takes_its_share_of_memory() -> None:
    capacity = count(*nodes(1, allocatable={"memory": 1000}), basis="allocatable", memory_reserved=20)
    assert capacity.line.resources == {"memory": 800}


M5 = "ml.m5.xlarge"
"""4 vCPU, 16 GiB."""
SINGLE = InstanceGroup("single", (GroupInstanceType(M5, threads_per_core=1),))
DOUBLE = InstanceGroup("double", (GroupInstanceType(M5, threads_per_core=2),))


def test_one_thread_per_core_halves_the_vcpus_at_the_basis_instances() -> None:
    capacity = count(*nodes(4, M5, instance_group="single"), groups=(SINGLE, DOUBLE))
    assert capacity.line.resources == {"cpu": 8_000, "memory": 64 * GIBIBYTE}
    assert (capacity.line.one_thread, capacity.per_instance["cpu"]) == (4, 2_000)


def test_what_nodes_offer_shows_one_thread_per_core_by_itself() -> None:
    offer = {"cpu": 1_930, "memory": 100}
    capacity = count(*nodes(4, M5, instance_group="single", allocatable=offer), groups=(SINGLE,), basis="allocatable")
    assert capacity.line.resources == {"cpu": 4 * 1_930, "memory": 400}


def test_groups_of_one_and_of_two_threads_add_up_to_what_they_really_have() -> None:
    mixed = (*nodes(2, M5, "s", instance_group="single"), *nodes(2, M5, "d", instance_group="double"))
    capacity = count(*mixed, groups=(SINGLE, DOUBLE))
    assert capacity.line.resources["cpu"] == 12_000
    assert (capacity.line.one_thread, capacity.per_instance["cpu"]) == (2, 2_000)


def test_over_commitment_adds_instances_of_the_fewer_vcpus() -> None:
    mixed = (*nodes(2, M5, "s", instance_group="single"), *nodes(2, M5, "d", instance_group="double"))
    assert count(*mixed, groups=(SINGLE, DOUBLE), overcommitPercent=25).line.resources["cpu"] == 14_000


def test_a_type_that_has_one_thread_by_nature_keeps_its_vcpus() -> None:
    graviton = InstanceGroup("arm", (GroupInstanceType("ml.m6g.xlarge", threads_per_core=1),))
    capacity = count(*nodes(1, "ml.m6g.xlarge", instance_group="arm"), groups=(graviton,))
    assert (capacity.line.resources["cpu"], capacity.line.one_thread) == (4_000, 0)


@pytest.mark.parametrize("group", [None, "other"], ids=["no group", "a group that nobody described"])
def test_a_node_of_an_unknown_group_has_the_vcpus_of_its_type(group: str | None) -> None:
    assert count(*nodes(1, M5, instance_group=group), groups=(SINGLE,)).line.resources["cpu"] == 4_000


def test_over_commitment_adds_whole_instances() -> None:
    assert count(*nodes(3), overcommitPercent=50).line.resources["accelerator"] == 4 * 7


def test_types_are_counted_apart_and_named_ones_without_nodes_too() -> None:
    counted = count_capacity(
        (*nodes(2), *nodes(3, P5)), CapacityRules(), NOW, InstanceTypeTable(), instance_types=["ml.c5.2xlarge"]
    )
    assert {name: capacity.line.nodes for name, capacity in counted.items()} == {"ml.c5.2xlarge": 0, G5: 2, P5: 3}


def test_each_node_that_is_left_out_says_since_when() -> None:
    sick = nodes(1, health="Unschedulable", unhealthy_since=NOW - timedelta(hours=2, minutes=48))
    fresh = nodes(1, prefix="new", healthy_since=NOW - minutes(1))
    assert count(*sick, *fresh).line.left_out == (
        "ml-g5-8xlarge-0000: Unschedulable since 2026-11-20 09:12 UTC",
        "new-0000: healthy since 2026-11-20 11:59 UTC, not yet long enough to count",
    )


def test_nothing_of_the_memory_is_reserved_unless_it_is_said() -> None:
    rules = CapacityRules.model_validate({"basis": "allocatable"})
    counted = count_capacity(nodes(1, allocatable={"memory": 1000}), rules, NOW, InstanceTypeTable())
    assert counted[G5].line.resources == {"memory": 1000}


def test_one_instance_has_what_each_node_offers_at_the_basis_allocatable() -> None:
    """The device plugin of the second node does not run."""
    whole = nodes(1, prefix="a", allocatable={"cpu": 32_000, "nvidia.com/gpu": 1})
    lacking = nodes(1, prefix="b", allocatable={"cpu": 31_000})
    capacity = count(*whole, *lacking, basis="allocatable")
    assert capacity.per_instance == {"accelerator": 7, "cpu": 31_000}
    assert capacity.line.resources == {"accelerator": 7, "cpu": 63_000}
