"""Since when each node is healthy or not, and which are gone: what a single snapshot of the cluster does not show.

Kept between runs as one small JSON document. It records moments only; what they mean (hold time, growth once stable)
is decided by `taskgov.allocation.capacity` from the policy, so that a changed policy applies to the past as well.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Self

from taskgov.snapshot.health import node_fault
from taskgov.snapshot.kept_forms import NodeForm, NodesForm, read_kept
from taskgov.snapshot.model import Node

MAX_TURNS: Final = 16
"""Turns kept for a node; older ones are dropped in pairs, which leaves the meaning of the rest as it is."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """One node: its state in the last snapshot, whether it was healthy in the very first one, and its turns since."""

    healthy: bool
    found_healthy: bool = False
    turns: tuple[datetime, ...] = ()
    looked_before: tuple[datetime | None, ...] = ()
    """As in `Node`."""
    first_look: datetime | None = None
    """As in `Node`."""
    instance_type: str = ""
    instance_group: str | None = None
    instance_id: str | None = None
    gone: bool = False
    """Neither Kubernetes nor SageMaker lists it any more."""
    reservation: str | None = None
    """As in `Node`, with `leaves_at`: a machine that is gone, or whose reservation cannot be read, is still of it."""
    leaves_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """The memory of a cluster's nodes. `looked` is False before the very first snapshot."""

    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    looked: bool = False
    lost: bool = False
    """There was a memory, and it is gone: this snapshot starts again; a node that is unhealthy now has just turned."""
    looked_at: datetime | None = None
    """The time of the last snapshot; None before the first one, and in a memory that an older version wrote."""
    cluster: str | None = None
    """The ARN of the cluster; None in a memory that an older version wrote."""

    @property
    def gone(self) -> tuple[Node, ...]:
        """The nodes that are gone, by name."""
        return tuple(_gone_node(name, record) for name, record in sorted(self.nodes.items()) if record.gone)

    def without(self, names: Collection[str]) -> Self:
        """Return the memory without the past of these nodes: those that are there count from their last turn on."""
        kept = {name: record for name, record in self.nodes.items() if not (record.gone and name in names)}
        return replace(self, nodes={name: _anew(record) if name in names else record for name, record in kept.items()})

    def to_json(self) -> bytes:
        """Return the memory as canonical JSON: the same memory gives the same bytes."""
        nodes = {name: _to_data(record) for name, record in self.nodes.items()}
        document: dict[str, Any] = {"version": 1, "looked": self.looked, "lookedAt": _text(self.looked_at)}
        document |= {"nodes": nodes, "cluster": self.cluster}
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes | None) -> Self:
        """Read what `to_json` wrote; None (nothing was kept yet) is an empty memory.

        Raises `ValueError` for anything else: guessing would make every node look new, or none.
        """
        if text is None:
            return cls()
        kept = read_kept(NodesForm, text, "the memory of nodes")
        nodes = {name: _record(node) for name, node in kept.nodes.items()}
        return cls(nodes=nodes, looked=kept.looked, looked_at=kept.lookedAt, cluster=kept.cluster)


def remember_nodes(
    memory: NodeMemory,
    nodes: Iterable[Node],
    now: datetime,
    *,
    is_partial: bool = False,
    unread: AbstractSet[str | None] = frozenset(),
) -> tuple[NodeMemory, tuple[Node, ...]]:
    """Return the memory after this snapshot, and the nodes with what is known of their past.

    A node that is gone stays in the memory (`NodeMemory.gone`) if it ever was healthy; `NodeMemory.without` forgets it.
    A new node counts as seen from `now`; in the very first snapshot every node is taken as it is, because its past is
    not known.

    A node whose object cannot be read is neither lost nor healed: it counts as it did, unless SageMaker says that it
    does not run. With `is_partial` there are such objects without a name, so that no node is known to be gone. `unread`
    are the names and instance ids of machines that SageMaker lists in a form that cannot be read: they are not gone.
    """
    records: dict[str, NodeRecord] = {}
    marked = []
    for node in nodes:
        record = _look(memory, node, now)
        records[node.name] = record
        marked.append(_marked(node, record))
    for name in memory.nodes.keys() - records.keys():
        record = memory.nodes[name]
        if (is_partial or {name, record.instance_id} & unread) and not record.gone:
            records[name] = record
            marked.append(_marked(Node(name, record.instance_type, unreadable=True), record))
        elif record.healthy or record.turns or record.first_look:
            records[name] = replace(_turned(record, memory, now, healthy=False), gone=True)
    return NodeMemory(nodes=records, looked=True, looked_at=now, cluster=memory.cluster), tuple(marked)


def _look(memory: NodeMemory, node: Node, now: datetime) -> NodeRecord:
    healthy = node_fault(node) is None
    machine: dict[str, Any] = {
        "instance_type": node.instance_type,
        "instance_group": node.instance_group,
        "instance_id": node.instance_id,
        "reservation": node.reservation,
        "leaves_at": node.leaves_at,
        "gone": False,
    }
    if node.unreadable and node.instance_status in {None, "Running"}:
        return _as_before(memory, node, machine)
    if memory.lost:  # what counted until the loss keeps counting until its hold time ends
        return NodeRecord(healthy, found_healthy=True, turns=() if healthy else (now,), **machine)
    if not memory.looked:
        missed = not node.in_kubernetes and node.instance_status == "Running"
        return NodeRecord(healthy=healthy, found_healthy=healthy, first_look=now if missed else None, **machine)
    before = memory.nodes.get(node.name, NodeRecord(healthy=False))
    return replace(_turned(before, memory, now, healthy=healthy), **machine)


def _as_before(memory: NodeMemory, node: Node, machine: Mapping[str, Any]) -> NodeRecord:
    """Return the record of a node. Without one, the very first snapshot uses the status of SageMaker."""
    before = memory.nodes.get(node.name)
    if before is not None:
        return replace(before, gone=False)
    runs = node.instance_status == "Running" and node.in_kubernetes and (memory.lost or not memory.looked)
    return NodeRecord(healthy=runs, found_healthy=runs, **machine)


def _turned(before: NodeRecord, memory: NodeMemory, now: datetime, *, healthy: bool) -> NodeRecord:
    if before.healthy == healthy:
        return before
    turns = (*before.turns, now)
    looks = (*_padded(before), memory.looked_at)
    kept = slice(2 if len(turns) > MAX_TURNS else 0, None)
    return replace(before, healthy=healthy, turns=turns[kept], looked_before=looks[kept])


def _padded(record: NodeRecord) -> tuple[datetime | None, ...]:
    """Return the time of the snapshot before each turn; a record of an older version has none."""
    return (*(None for _ in record.turns[len(record.looked_before) :]), *record.looked_before)


def _anew(record: NodeRecord) -> NodeRecord:
    """Return the record of a node that was never healthy before its last turn."""
    last = slice(-1, None) if record.healthy else slice(0)
    turns, looks = record.turns[last], _padded(record)[last]
    return replace(record, found_healthy=False, first_look=None, turns=turns, looked_before=looks)


def _gone_node(name: str, record: NodeRecord) -> Node:
    node = Node(
        name=name,
        instance_type=record.instance_type,
        instance_group=record.instance_group,
        instance_id=record.instance_id,
        reservation=record.reservation,
        leaves_at=record.leaves_at,
        in_kubernetes=False,
        ready=False,
    )
    return _marked(node, record)


def _marked(node: Node, record: NodeRecord) -> Node:
    last = record.turns[-1] if record.turns else None
    if node.unreadable:
        node = replace(
            node,
            instance_type=record.instance_type or node.instance_type,
            instance_group=record.instance_group or node.instance_group,
            instance_id=record.instance_id or node.instance_id,
            reservation=record.reservation,
            leaves_at=record.leaves_at,
            in_kubernetes=record.healthy or node.in_kubernetes,
            ready=record.healthy,
        )
    return replace(
        node,
        healthy_since=last if record.healthy else None,
        unhealthy_since=None if record.healthy else last,
        found_healthy=record.found_healthy,
        turns=record.turns,
        looked_before=_padded(record),
        first_look=record.first_look,
    )


def _to_data(record: NodeRecord) -> dict[str, Any]:
    data = {
        "healthy": record.healthy,
        "found": record.found_healthy,
        "turns": [turn.isoformat() for turn in record.turns],
        "looks": [_text(look) for look in record.looked_before],
        "first": _text(record.first_look),
        "type": record.instance_type,
        "group": record.instance_group,
        "id": record.instance_id,
        "gone": record.gone,
        "reservation": record.reservation,
        "leaves": _text(record.leaves_at),
    }
    # What says nothing is left out: a cluster has thousands of nodes.
    return {name: value for name, value in data.items() if value or name in {"healthy", "found", "turns"}}


def _record(node: NodeForm) -> NodeRecord:
    return NodeRecord(
        healthy=node.healthy,
        found_healthy=node.found,
        turns=node.turns,
        looked_before=node.looks,
        first_look=node.first,
        instance_type=node.type,
        instance_group=node.group,
        instance_id=node.id,
        gone=node.gone,
        reservation=node.reservation,
        leaves_at=node.leaves,
    )


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
