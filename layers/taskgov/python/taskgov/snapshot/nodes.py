"""Which machines the cluster has, from what Kubernetes and SageMaker each say of them.

`read_snapshot` calls it with the items of the Kubernetes node list and the summaries of ListClusterNodes. Kubernetes
shows what a node offers and whether it takes pods; SageMaker lists machines that have not joined, or have left.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from taskgov.hyperpod.names import (
    DEEP_HEALTH_CHECK_LABEL,
    INSTANCE_TYPE_LABEL,
    MIG_STATE_LABEL,
    NODE_HEALTH,
    kubernetes_node_of,
)
from taskgov.quantities import HUGEPAGES_PREFIX, parse
from taskgov.snapshot.memory import NodeMemory, remember_nodes
from taskgov.snapshot.model import KubernetesObject, Node, Taint
from taskgov.snapshot.unreadable import UnreadableObject

__all__ = ["NodeMemory", "nodes_from_kubernetes", "remember_nodes"]

INSTANCE_GROUP_LABEL: Final = "sagemaker.amazonaws.com/instance-group-name"
LABELS: Final = (INSTANCE_TYPE_LABEL, INSTANCE_GROUP_LABEL, NODE_HEALTH, DEEP_HEALTH_CHECK_LABEL, MIG_STATE_LABEL)
"""The labels of nodes that are used."""
_NOTHING: Final[Mapping[str, Any]] = {}
_EC2_MACHINE: Final = re.compile(r"aws:///[^/]+/(i-[0-9a-f]{8,17})")
"""`spec.providerID` of an EC2 instance, as the cloud controller manager of AWS writes it (zone, instance id)."""


def nodes_from_kubernetes(
    items: Iterable[KubernetesObject],
    sagemaker_nodes: Iterable[Mapping[str, Any]] = (),
    unreadable: Iterable[UnreadableObject] = (),
) -> tuple[Node, ...]:
    """Return the cluster's nodes by name.

    `items` are Node objects as the API server sends them; `sagemaker_nodes` are ClusterNodeSummary structures. They
    are joined by name (`hyperpod-<instance id>`) or private host name. A machine that only SageMaker lists is not in
    Kubernetes yet, or no longer; a node that only Kubernetes lists has no instance status.

    `unreadable` are Node objects that were left out of `items`. Where one has no name, it may be of any machine that
    only SageMaker lists.

    Raises `ValueError` when an allocatable amount is not a Kubernetes quantity.
    """
    summaries, hosts = _index(sagemaker_nodes)
    seen_offers: dict[tuple[tuple[str, str], ...], dict[str, int]] = {}
    nodes = [_joined(item, summaries, hosts, seen_offers) for item in items]
    odd = tuple(unreadable)
    nodes.extend(_unread(entry.name, _summary(entry.name, summaries, hosts)) for entry in odd if entry.name)
    # What is left has no Kubernetes node that is known; the others were taken out.
    is_unsure = any(not entry.name for entry in odd)
    nodes.extend(replace(_missing(name, summary), unreadable=is_unsure) for name, summary in summaries.items())
    return tuple(sorted(nodes, key=_name))


def _index(summaries: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Mapping[str, Any]], dict[str, str]]:
    """Return SageMaker's summaries by node name, and the node name by private host name."""
    by_name = {kubernetes_node_of(summary["InstanceId"]): summary for summary in summaries}
    hosts = {
        summary["PrivateDnsHostname"]: name for name, summary in by_name.items() if summary.get("PrivateDnsHostname")
    }
    return by_name, hosts


def _joined(
    item: KubernetesObject,
    summaries: dict[str, Mapping[str, Any]],
    hosts: Mapping[str, str],
    seen_offers: dict[tuple[tuple[str, str], ...], dict[str, int]],
) -> Node:
    metadata, spec, status = item["metadata"], item.get("spec") or _NOTHING, item.get("status") or _NOTHING
    name = metadata["name"]
    labels = metadata.get("labels") or _NOTHING
    summary = _summary(name, summaries, hosts)
    taints = spec.get("taints")
    return Node(
        name=name,
        instance_type=summary.get("InstanceType") or labels.get(INSTANCE_TYPE_LABEL, ""),
        instance_id=summary.get("InstanceId") or _ec2_machine(spec.get("providerID")),
        instance_group=summary.get("InstanceGroupName") or labels.get(INSTANCE_GROUP_LABEL),
        instance_status=summary["InstanceStatus"]["Status"] if summary else None,
        ready=_is_ready(status),
        cordoned=bool(spec.get("unschedulable")),
        health=labels.get(NODE_HEALTH),
        deep_health_check=labels.get(DEEP_HEALTH_CHECK_LABEL),
        mig_state=labels.get(MIG_STATE_LABEL),
        taints=tuple(map(_taint, taints)) if taints else (),
        joined_at=_instant(metadata.get("creationTimestamp")),
        allocatable=_offer(status.get("allocatable") or _NOTHING, seen_offers),
    )


def _ec2_machine(provider_id: str | None) -> str | None:
    found = _EC2_MACHINE.fullmatch(provider_id or "")
    return found and found[1]


def _summary(name: str, summaries: dict[str, Mapping[str, Any]], hosts: Mapping[str, str]) -> Mapping[str, Any]:
    """Take out what SageMaker says of a node."""
    return summaries.pop(name, None) or summaries.pop(hosts.get(name, ""), None) or _NOTHING


def _unread(name: str, summary: Mapping[str, Any]) -> Node:
    """Return a node with only its name and SageMaker's summary known."""
    known = _missing(name, summary) if summary else Node(name, instance_type="", ready=False)
    return replace(known, in_kubernetes=True, unreadable=True)


def _missing(name: str, summary: Mapping[str, Any]) -> Node:
    return Node(
        name=name,
        instance_type=summary["InstanceType"],
        instance_id=summary["InstanceId"],
        instance_group=summary["InstanceGroupName"],
        instance_status=summary["InstanceStatus"]["Status"],
        in_kubernetes=False,
        ready=False,
    )


def _is_ready(status: Mapping[str, Any]) -> bool:
    # Ready is the last of the conditions that the kubelet writes.
    for condition in reversed(status.get("conditions") or ()):
        if condition["type"] == "Ready":
            return bool(condition["status"] == "True")
    return False


def _taint(taint: Mapping[str, Any]) -> Taint:
    return Taint(key=taint["key"], value=taint.get("value", ""), effect=taint["effect"])


def _offer(
    allocatable: Mapping[str, str], seen: dict[tuple[tuple[str, str], ...], dict[str, int]]
) -> Mapping[str, int]:
    """Return allocatable amounts in base units; nodes of one type share one mapping."""
    key = tuple(allocatable.items())
    offer = seen.get(key)
    if offer is None:
        offer = {name: parse(name, amount) for name, amount in key if not name.startswith(HUGEPAGES_PREFIX)}
        seen[key] = offer
    return offer


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _name(node: Node) -> str:
    return node.name
