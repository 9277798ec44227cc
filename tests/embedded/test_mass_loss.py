"""A sudden loss of nodes on a whole stack: what EC2 confirms is taken at once, and nothing else lowers a quota."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from moto.autoscaling.models import autoscaling_backends

from taskgov.adapters.items import NEWEST
from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.world import World
from tests.support.ec2_machines import launch_in_ec2, lose_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.long

TYPE = "ml.g5.8xlarge"
NODES = 4


def opened(backend: str) -> World:
    cluster = {"name": "ml", "backend": backend, "groups": [{"instanceType": TYPE, "count": NODES}]}
    walkthrough = {
        "name": "mass-loss",
        "source": "the tests of this file",
        "about": "nodes that are lost at once",
        "mode": "apply",
        "starts": "2026-11-20T09:00:00Z",
        "cluster": cluster,
        "steps": [{"title": "lose nodes"}],
    }
    return World(Walkthrough.model_validate(walkthrough))


def govern(world: World) -> None:
    """Let two teams have half of the nodes each."""
    share = [{"instanceType": TYPE, "percent": 50}]
    cluster = {"name": "ml", "arn": world.cluster_arn, **({"backend": "kueue"} if world.is_plain_eks else {})}
    teams = [{"name": "team-a", "share": share}, {"name": "team-b", "share": share}]
    Actor(world)._policy({"apiVersion": "taskgov/v1", "cluster": cluster, "teams": teams})
    world.stack.run_until_quiet(600)
    assert counts(world) == {"team-a": 2, "team-b": 2}


def counts(world: World) -> dict[str, int]:
    return {team: sum(row["Count"] for row in rows) for team, rows in world.quotas().items()}


def resync(world: World) -> None:
    world.stack.advance(3600, schedules=["ResyncAllSchedule"])
    world.stack.run_until_quiet(1800)


def notices(world: World) -> list[Mapping[str, Any]]:
    """Return what was published on the topic, oldest first."""
    return [call.params for call in world.stack.calls if call.operation == "Publish" and call.error is None]


def of_loss(world: World) -> list[str]:
    return [each["Message"] for each in notices(world) if "nodes were lost since" in each["Message"]]


def asked(world: World) -> list[Any]:
    """Return the questions about lost machines; each snapshot also queries Capacity Blocks."""
    calls = (call for call in world.stack.calls if call.operation == "DescribeInstances")
    return [call for call in calls if call.params["Filters"][0]["Name"] == "instance-id"]


def test_on_plain_eks_ec2_is_asked_about_lost_nodes() -> None:
    """One story in one world: EC2 refuses, has the machines running, and has terminated them."""
    with opened("kueue") as world:
        machines = launch_in_ec2(world)
        govern(world)
        resync(world)
        assert asked(world) == [], "nothing is lost"

        lost = lose_nodes(world, 2)
        world.stack.faults.fail("ec2", "DescribeInstances", code="UnauthorizedOperation", message="not yours", times=99)
        resync(world)
        assert counts(world) == {"team-a": 2, "team-b": 2}
        (refused,) = of_loss(world)
        assert "EC2 does not report their state: describe instances: UnauthorizedOperation: not yours" in refused
        world.stack.faults.clear()

        resync(world)
        assert counts(world) == {"team-a": 2, "team-b": 2}, (
            "the machines run: a list that came back in part looks the same"
        )
        assert "EC2 reports on the lost nodes: 2 running." in of_loss(world)[-1]
        queried = [call for call in world.stack.calls if call.operation == "DescribeAutoScalingInstances"]
        assert sorted(queried[-1].params["InstanceIds"]) == sorted(machines[name] for name in lost)
        assert queried[-1].error is None

        world.stack.client("ec2").terminate_instances(InstanceIds=[machines[name] for name in lost])
        resync(world)
        assert counts(world) == {"team-a": 1, "team-b": 1}, "EC2 confirms it: nobody has to approve"
        assert all("approvedAt" not in item and "answeredAt" not in item for item in approvals(world))


def test_nodes_that_auto_scaling_drains_are_no_mass_loss_though_their_machines_still_run() -> None:
    with opened("kueue") as world:
        machines = launch_in_ec2(world)
        scaling = world.stack.client("autoscaling")
        scaling.create_auto_scaling_group(
            AutoScalingGroupName="nodes",
            InstanceId=min(machines.values()),
            AvailabilityZones=["us-east-1a"],
            MinSize=0,
            MaxSize=NODES,
        )
        scaling.attach_instances(AutoScalingGroupName="nodes", InstanceIds=list(machines.values()))
        govern(world)

        lost = [machines[name] for name in lose_nodes(world, 2)]
        members = autoscaling_backends[world.stack.place.account][world.stack.place.region].autoscaling_groups["nodes"]
        for member in members.instance_states:
            if member.instance.id in lost:
                member.lifecycle_state = "Terminating:Wait"  # moto knows no lifecycle hooks
        resync(world)
        assert counts(world) == {"team-a": 1, "team-b": 1}
        assert of_loss(world) == []


def approvals(world: World) -> list[dict[str, Any]]:
    found = world.stack.client("dynamodb").scan(TableName=world.stack.physical("GovernanceTable"))["Items"]
    return [item for item in found if item["pk"]["S"].startswith("APPROVAL#")]


def test_on_hyperpod_an_empty_node_list_lowers_nothing_until_a_person_approves() -> None:
    with opened("sagemaker") as world:
        govern(world)
        seen = world.cluster.store.list("nodes")
        lose_nodes(world, NODES)
        resync(world)
        assert counts(world) == {"team-a": 2, "team-b": 2}
        assert [each["Subject"] for each in notices(world)] == [
            "taskgov: incident on ml",
            "taskgov: approval needed for ml",
        ]
        assert all("4 of 4 ml.g5.8xlarge nodes were lost" in each for each in of_loss(world))
        assert all("Kubernetes lists 0 of them and SageMaker 4." in each for each in of_loss(world))

        Actor(world)._approve(True)
        world.stack.run_until_quiet(1800)
        assert counts(world) == {"team-a": 0, "team-b": 0}

        for node in seen:
            world.cluster.store.apply(node)
        resync(world)
        resync(world)  # they count once they have been healthy for `growAfterMinutes`
        assert counts(world) == {"team-a": 2, "team-b": 2}
        assert len(notices(world)) == 2
        items = world.stack.client("dynamodb").scan(TableName=world.stack.physical("GovernanceTable"))["Items"]
        assert {item["pk"]["S"].partition("#")[0] for item in items} >= {"CLUSTER", "APPROVAL"}
        assert [item["sk"]["S"] for item in items if item.get("schema") != {"N": str(NEWEST)}] == []


def test_a_loss_that_lowers_nothing_is_reported_once() -> None:
    with opened("sagemaker") as world:
        share = {"quota": {"ComputeQuotaResources": [{"InstanceType": TYPE, "Count": 1}]}}
        cluster = {"name": "ml", "arn": world.cluster_arn}
        teams = [{"name": "team-a", **share}]
        Actor(world)._policy({"apiVersion": "taskgov/v1", "cluster": cluster, "teams": teams})
        world.stack.run_until_quiet(600)
        lose_nodes(world, 2)
        resync(world)
        for _ in range(2):
            world.stack.advance(24 * 3600, schedules=[])
            resync(world)
        assert [each["Subject"] for each in notices(world)] == ["taskgov: incident on ml"]
        assert counts(world) == {"team-a": 1}
