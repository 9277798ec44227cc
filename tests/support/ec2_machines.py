"""Machines in moto's EC2 for the nodes of a plain EKS cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov_embedded.ec2 import CapacityBlock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from taskgov_embedded.walkthrough.world import World

BLOCK: Final = "cr-0123456789abcdef0"


def launch_in_ec2(world: World) -> dict[str, str]:
    """Run an EC2 instance for each node, as node groups of EKS do; return the instances' ids by node."""
    store, ec2 = world.cluster.store, world.stack.client("ec2")
    nodes = store.list("nodes")
    image = ec2.describe_images()["Images"][0]["ImageId"]
    made = ec2.run_instances(ImageId=image, MinCount=len(nodes), MaxCount=len(nodes))["Instances"]
    found = {}
    for node, instance in zip(nodes, made, strict=True):
        found[node["metadata"]["name"]] = instance["InstanceId"]
        provider = f"aws:///{instance['Placement']['AvailabilityZone']}/{instance['InstanceId']}"
        store.apply({**node, "spec": {**node["spec"], "providerID": provider}})
    return found


def buy_block(world: World, instance_ids: Sequence[str], ends_at: datetime, name: str = BLOCK) -> CapacityBlock:
    """Let these machines run in a Capacity Block; an extension moves its `ends_at`."""
    block = CapacityBlock(name, "g5.8xlarge", tuple(instance_ids), world.clock.now, ends_at)
    world.stack.ec2.blocks.append(block)
    return block


def lose_nodes(world: World, count: int) -> list[str]:
    """Take the last nodes out of what Kubernetes lists, and return their names. Their machines run on."""
    lost = sorted(node["metadata"]["name"] for node in world.cluster.store.list("nodes"))[-count:]
    for name in lost:
        world.cluster.store.delete("nodes", name)
    return lost
