"""Since when each node is healthy or not: what a single look at the cluster cannot tell.

Kept between runs as one small JSON document. It records moments only; what they mean (hold time, growth once stable)
is decided by `taskgov.allocation.capacity` from the policy, so that a changed policy applies to the past as well.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Self

from taskgov.snapshot.health import node_fault
from taskgov.snapshot.model import Node

MAX_TURNS: Final = 16
"""Turns remembered for a node; older ones are forgotten in pairs, which leaves the meaning of the rest as it is."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """One node: its state at the last look, whether the first look of all found it healthy, and its turns since."""

    healthy: bool
    found_healthy: bool = False
    turns: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """What is remembered of a cluster's nodes. `looked` is False before the first look of all."""

    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    looked: bool = False
    lost: bool = False
    """There was a memory, and it is gone: this look begins anew, and a node that is unhealthy now has just turned."""

    def to_json(self) -> bytes:
        """Return the memory as canonical JSON: the same memory gives the same bytes."""
        nodes = {name: _to_data(record) for name, record in self.nodes.items()}
        document = {"version": 1, "looked": self.looked, "nodes": nodes}
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes | None) -> Self:
        """Read what `to_json` wrote; None (nothing was kept yet) is an empty memory.

        Raises `ValueError` for anything else: guessing would make every node look new, or none.
        """
        if text is None:
            return cls()
        document = json.loads(text)
        if not isinstance(document, dict) or document.get("version") != 1:
            raise ValueError("the memory of nodes is not a version 1 document; remove it to begin anew")
        nodes = {name: _from_data(record) for name, record in document["nodes"].items()}
        return cls(nodes=nodes, looked=document["looked"])


def remember_nodes(memory: NodeMemory, nodes: Iterable[Node], now: datetime) -> tuple[NodeMemory, tuple[Node, ...]]:
    """Return the memory after this look, and the nodes with what is known of their past.

    A node that is gone is forgotten. A new node counts as seen from `now`; at the first look of all, every node is
    taken as it is found, because since when it has been so is not known.
    """
    records: dict[str, NodeRecord] = {}
    marked = []
    for node in nodes:
        record = _look(memory, node, now)
        records[node.name] = record
        marked.append(_marked(node, record))
    return NodeMemory(nodes=records, looked=True), tuple(marked)


def _look(memory: NodeMemory, node: Node, now: datetime) -> NodeRecord:
    healthy = node_fault(node) is None
    if memory.lost:  # what counted until the loss goes on counting until its hold time ends
        return NodeRecord(healthy, found_healthy=True, turns=() if healthy else (now,))
    if not memory.looked:
        return NodeRecord(healthy=healthy, found_healthy=healthy)
    before = memory.nodes.get(node.name, NodeRecord(healthy=False))
    if before.healthy == healthy:
        return before
    turns = (*before.turns, now)
    return NodeRecord(healthy, before.found_healthy, turns[2:] if len(turns) > MAX_TURNS else turns)


def _marked(node: Node, record: NodeRecord) -> Node:
    last = record.turns[-1] if record.turns else None
    return replace(
        node,
        healthy_since=last if record.healthy else None,
        unhealthy_since=None if record.healthy else last,
        found_healthy=record.found_healthy,
        turns=record.turns,
    )


def _to_data(record: NodeRecord) -> dict[str, Any]:
    turns = [turn.isoformat() for turn in record.turns]
    return {"healthy": record.healthy, "found": record.found_healthy, "turns": turns}


def _from_data(data: Mapping[str, Any]) -> NodeRecord:
    turns = tuple(datetime.fromisoformat(turn) for turn in data["turns"])
    return NodeRecord(data["healthy"], data["found"], turns)
