"""Query EC2 about the machines of a plain EKS cluster that were lost, because SageMaker does not list them.

Used by `take_snapshot`. EC2 is queried only when a mass loss is seen, and only about the nodes that were lost. Whatever
it cannot say leaves the loss unconfirmed, and the finding `mass-loss` says why.
"""

from dataclasses import replace
from itertools import chain
from typing import Final

from taskgov.allocation.confirmed_losses import NOT_FOUND
from taskgov.allocation.mass_loss import mass_losses
from taskgov.errors import GovernanceError
from taskgov.ports import Machines
from taskgov.snapshot.model import Node, Snapshot

ASKED_AT_MOST: Final = 2000
"""Machines that one look queries, in ten calls; more stay unconfirmed until a person approves."""

SAID_AT_MOST: Final = 300
"""Characters of an error of EC2 that a finding quotes: a refusal carries kilobytes of encoded details."""


def with_lost_machines(snapshot: Snapshot, machines: Machines) -> Snapshot:
    """Return the snapshot with what EC2 says of the lost nodes of a plain EKS cluster."""
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

    def told(node: Node) -> Node:
        return replace(node, ec2_state=found.get(node.instance_id or "")) if node.name in lost else node

    return replace(snapshot, nodes=tuple(map(told, snapshot.nodes)), gone=tuple(map(told, snapshot.gone)))
