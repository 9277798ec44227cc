"""Query EC2 and Auto Scaling about lost machines of a plain EKS cluster, because SageMaker does not list them.

Used by `take_snapshot`. They are queried only when a mass loss is seen, and only about the nodes that were lost; Auto
Scaling only about those that EC2 has running. Whatever they do not report leaves the loss unconfirmed, and the finding
`mass-loss` gives the reason.
"""

from dataclasses import replace
from itertools import chain
from typing import Final

from taskgov.allocation.confirmed_losses import EC2_GONE, NOT_FOUND, REMOVED
from taskgov.allocation.mass_loss import mass_losses
from taskgov.errors import GovernanceError
from taskgov.ports import Machines
from taskgov.snapshot.model import Node, Snapshot

ASKED_AT_MOST: Final = 2000
"""Machines queried for a snapshot, in ten calls (40 to Auto Scaling); more stay unconfirmed until a person approves."""

SAID_AT_MOST: Final = 300
"""Characters of an error of EC2 that a finding quotes: a refusal carries kilobytes of encoded details."""


def with_lost_machines(snapshot: Snapshot, machines: Machines) -> Snapshot:
    """Return the snapshot with what EC2 and Auto Scaling report on the lost nodes of a plain EKS cluster."""
    if not machines.asks_about_machines(snapshot.cluster.arn):
        return snapshot
    lost = {name for loss in mass_losses(snapshot) for name in loss.nodes}
    known = {node.instance_id for node in chain(snapshot.nodes, snapshot.gone) if node.name in lost}
    asked = sorted(instance for instance in known if instance)[:ASKED_AT_MOST]
    if not asked:
        silence = "no lost node has the providerID of an EC2 instance" if lost else ""
        return replace(snapshot, ec2_silence=silence)
    try:
        states = machines.machine_states(snapshot.cluster.arn, asked)
    except GovernanceError as error:  # it is said in the finding; the loss stays unconfirmed
        return replace(snapshot, ec2_silence=str(error)[:SAID_AT_MOST])
    found = {instance: states.get(instance, NOT_FOUND) for instance in asked}
    running = [instance for instance in asked if found[instance] not in EC2_GONE]
    try:
        removed = machines.machines_being_removed(snapshot.cluster.arn, running) if running else frozenset()
    except GovernanceError as error:  # what EC2 confirms still counts
        removed = frozenset()
        snapshot = replace(snapshot, auto_scaling_silence=str(error)[:SAID_AT_MOST])
    found |= dict.fromkeys(removed, REMOVED)

    def told(node: Node) -> Node:
        return replace(node, ec2_state=found.get(node.instance_id or "")) if node.name in lost else node

    return replace(snapshot, nodes=tuple(map(told, snapshot.nodes)), gone=tuple(map(told, snapshot.gone)))
