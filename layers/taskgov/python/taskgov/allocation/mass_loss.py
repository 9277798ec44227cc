"""Detect a sudden loss of nodes, and whether the provider confirms it.

An empty or partial node list looks like a cluster that shrank. A loss of more than `guardrails.massLossPercent` of an
instance type, and of at least two nodes, within the hold time is therefore accepted only if the provider confirms it
(`taskgov.allocation.confirmed_losses`) or a person approves it. Called by the planner, by `take_snapshot` (to drop
records of nodes) and by `publish_usage`.

A node was lost at some time between two snapshots. Losses belong together if they may have happened within the hold
time.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import chain
from operator import attrgetter
from typing import Final

from taskgov.allocation.capacity import is_counted
from taskgov.allocation.confirmed_losses import confirmed_nodes
from taskgov.allocation.plan import MassLoss
from taskgov.findings import Finding
from taskgov.findings.of_plan import MASS_LOSS
from taskgov.hyperpod.instance_types import is_instance_type_name
from taskgov.policy.document import CapacityRules, Guardrails
from taskgov.snapshot.health import node_fault
from taskgov.snapshot.model import Node, Snapshot

AT_LEAST: Final = 2
"""One failed node is not a mass loss, however few there are of its type."""
NAMED: Final = 10
"""Nodes that a finding names of each list."""


@dataclass(frozen=True, slots=True)
class _Lost:
    """A node that stopped counting after `earliest`, and had by `latest`."""

    node: Node
    earliest: datetime
    latest: datetime


def mass_losses(snapshot: Snapshot) -> tuple[MassLoss, ...]:
    """Return the losses that are neither confirmed nor approved, by instance type."""
    guardrails, rules = _rules(snapshot)
    confirmed = confirmed_nodes(snapshot)
    promised = {
        row.instance_type for quota in snapshot.quotas for row in quota.compute_quota_config.compute_quota_resources
    }
    by_type: dict[str, list[Node]] = {}
    for node in chain(snapshot.nodes, snapshot.gone):
        if node.name not in confirmed and _is_governed(snapshot, node):
            by_type.setdefault(node.instance_type, []).append(node)
    accepted = _accepted(snapshot)
    found = []
    for instance_type, nodes in sorted(by_type.items()):
        lost = [
            gone
            for node in nodes
            if (gone := _lost(node, rules, snapshot.taken_at, promised)) and not _is_accepted(gone, accepted)
        ]
        if loss := _mass_loss(instance_type, nodes, lost, guardrails, rules):
            found.append(_with_lists(snapshot, loss))
    return tuple(found)


def settled(snapshot: Snapshot) -> frozenset[str]:
    """Return the names of nodes whose past does not matter any more.

    A gone node: its loss is confirmed, approved, or was not a mass loss within its hold time. A node that is still
    there: its loss is approved; it counts as a new node when it comes back. Without a document it is not known which
    losses matter, so that only what is confirmed is settled.
    """
    confirmed = confirmed_nodes(snapshot)
    settled = {node.name for node in snapshot.gone if node.name in confirmed}
    if snapshot.policy is None:
        return frozenset(settled)
    _, rules = _rules(snapshot)
    hold = timedelta(minutes=rules.hold_unhealthy_minutes)
    gone, accepted = {node.name for node in snapshot.gone}, _accepted(snapshot)
    # Of a node that is still there, only a loss that is approved is settled.
    nodes = [*(snapshot.nodes if accepted else ()), *snapshot.gone]
    massive = {name for loss in mass_losses(snapshot) for name in loss.nodes} if gone else frozenset[str]()
    for node in nodes:
        lost = _lost(node, rules, snapshot.taken_at, {node.instance_type})
        if lost is None:
            settled |= {node.name} & gone
        elif snapshot.taken_at - lost.latest > hold and (
            _is_accepted(lost, accepted) or (node.name in gone and node.name not in massive)
        ):
            settled.add(node.name)
    return frozenset(settled)


def loss_findings(snapshot: Snapshot, losses: Iterable[MassLoss]) -> Iterable[Finding]:
    """Return an incident for each mass loss, with what either side lists."""
    for loss in losses:
        kubernetes, provider = _listed(snapshot, loss)
        evidence: dict[str, str | int | float | bool] = {
            "instanceType": loss.instance_type,
            "lost": len(loss.nodes),
            "of": loss.of,
            "since": loss.since.isoformat(),
            "until": loss.until.isoformat(),
            "lostNodes": _some(loss.nodes),
            "kubernetesLists": _some(kubernetes),
        }
        states = _ec2_states(snapshot, loss)
        if snapshot.ec2_silence or states:
            evidence["ec2Says"] = snapshot.ec2_silence or _some([f"{name} {state}" for name, state in states.items()])
        else:
            evidence["sagemakerLists"] = _some(provider)
        yield MASS_LOSS.about(loss.instance_type, evidence, loss=said_loss(loss))


def _listed(snapshot: Snapshot, loss: MassLoss) -> tuple[list[str], list[str]]:
    """Return which nodes of the type Kubernetes lists, and which SageMaker does."""
    of_type = [node for node in snapshot.nodes if node.instance_type == loss.instance_type]
    kubernetes = [node.name for node in of_type if node.in_kubernetes]
    return kubernetes, [node.name for node in of_type if node.instance_status is not None]


def _ec2_states(snapshot: Snapshot, loss: MassLoss) -> dict[str, str]:
    """Return the EC2 state of each lost node; empty if EC2 is not the provider, or did not answer."""
    names = frozenset(loss.nodes)
    lost = [node for node in chain(snapshot.nodes, snapshot.gone) if node.name in names]
    if not any(node.ec2_state for node in lost):
        return {}
    return {node.name: node.ec2_state or "not asked" for node in sorted(lost, key=attrgetter("name"))}


def _with_lists(snapshot: Snapshot, loss: MassLoss) -> MassLoss:
    """Return the loss with a sentence on what Kubernetes and the provider list."""
    kubernetes, provider = _listed(snapshot, loss)
    said = f"Kubernetes lists {len(kubernetes)}"
    if snapshot.ec2_silence:
        said += f". EC2 does not report their state: {snapshot.ec2_silence}"
    elif states := Counter(_ec2_states(snapshot, loss).values()):
        said += ". EC2 reports on the lost nodes: " + ", ".join(
            f"{count} {state}" for state, count in sorted(states.items())
        )
        if snapshot.auto_scaling_silence:
            said += f". Auto Scaling does not report on them: {snapshot.auto_scaling_silence}"
    elif snapshot.cluster.instance_groups or provider:
        said += f" of them and SageMaker {len(provider)}"
    return replace(loss, lists=f"{said}.")


def said_loss(loss: MassLoss) -> str:
    """Return the sentences on lost nodes, and on what Kubernetes and the provider list."""
    return (
        f"{len(loss.nodes)} of {loss.of} {loss.instance_type} nodes were lost since {loss.since:%Y-%m-%d %H:%M} UTC, "
        f"and their provider does not confirm it: {_some(loss.nodes)}. {loss.lists}"
    )


def _rules(snapshot: Snapshot) -> tuple[Guardrails, CapacityRules]:
    if snapshot.policy is None:
        return Guardrails(), CapacityRules()
    return snapshot.policy.guardrails, snapshot.policy.capacity


def _is_governed(snapshot: Snapshot, node: Node) -> bool:
    foreign_too = snapshot.policy is not None and not snapshot.policy.cluster.backend.is_of_hyperpod
    return bool(node.instance_type) and (foreign_too or is_instance_type_name(node.instance_type))


def _lost(node: Node, rules: CapacityRules, now: datetime, promised: Iterable[str]) -> _Lost | None:
    """Return between which moments a node that counted stopped doing so; None for one that counts, or never did.

    Health that did not last as long as a new node's has to (`growAfterMinutes`) ends no loss and begins none.
    """
    fault = node_fault(node)
    if fault is None and is_counted(node, rules, now, healthy=True):
        return None
    if not node.turns and node.unhealthy_since is not None:  # given by hand
        return _Lost(node, node.unhealthy_since, node.unhealthy_since)
    last = len(node.turns) - (1 if fault is not None else 2)
    steady = _last_steady(node, timedelta(minutes=rules.grow_after_minutes))
    if steady is None:
        # Quotas in the very first snapshot were made for nodes that Kubernetes did not list then.
        if node.first_look is None or node.instance_type not in promised:
            return None
        return _Lost(node, node.first_look, node.turns[last] if last >= 0 else node.first_look)
    looks = node.looked_before
    earliest = looks[steady] if steady < len(looks) else None
    return _Lost(node, earliest or node.turns[steady], node.turns[last])


def _last_steady(node: Node, grow: timedelta) -> int | None:
    """Return the index of the turn that ended the last health which had lasted long enough to count."""
    found = None
    healthy = node.found_healthy
    for index, turn in enumerate(node.turns):
        if healthy and (index == 0 or turn - node.turns[index - 1] >= grow):
            found = index
        healthy = not healthy
    return found


def _mass_loss(
    instance_type: str, nodes: Sequence[Node], lost: Sequence[_Lost], guardrails: Guardrails, rules: CapacityRules
) -> MassLoss | None:
    """Return the nodes of all groups of losses that are too large, or None.

    A group is what may have been lost within the hold time of one loss. It is compared with the nodes that were
    healthy before that loss.
    """
    hold = timedelta(minutes=rules.hold_unhealthy_minutes)
    limit = Fraction(str(guardrails.mass_loss_percent)) / 100
    massive: dict[str, _Lost] = {}
    most = 0
    for first in sorted({loss.latest for loss in lost}):
        group = [loss for loss in lost if loss.latest >= first and loss.earliest <= first + hold]
        names = {loss.node.name for loss in group}
        before = len(names | {node.name for node in nodes if _was_healthy(node, first)})
        if len(names) >= AT_LEAST and len(names) > limit * before:
            massive |= {loss.node.name: loss for loss in group}
            most = max(most, before)
    if not massive:
        return None
    moments = [loss.latest for loss in massive.values()]
    return MassLoss(instance_type, tuple(sorted(massive)), max(most, len(massive)), min(moments), max(moments))


def _was_healthy(node: Node, moment: datetime) -> bool:
    """Return whether a node was healthy just before a moment."""
    if node.turns:
        return node.found_healthy is (sum(turn < moment for turn in node.turns) % 2 == 0)
    if node.unhealthy_since is not None:
        return moment <= node.unhealthy_since
    if node_fault(node) is not None:
        return False
    return node.healthy_since is None or node.healthy_since < moment


def _accepted(snapshot: Snapshot) -> Mapping[str, datetime]:
    """Return until when losses of each type were approved."""
    accepted: dict[str, datetime] = {}
    for applied in snapshot.applied:
        for instance_type, until in (applied.accepted_losses or {}).items():
            accepted[instance_type] = max(until, accepted.get(instance_type, until))
    return accepted


def _is_accepted(lost: _Lost, accepted: Mapping[str, datetime]) -> bool:
    until = accepted.get(lost.node.instance_type)
    return until is not None and lost.latest <= until


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "") if names else "none"
