"""Which machines of a cluster leave when: the nodes, each with its reservation and the moment at which that ends.

`take_snapshot` marks the nodes with what the backend says (`taskgov.snapshot.reservations`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from taskgov.snapshot.memory import NodeMemory, NodeRecord
from taskgov.snapshot.model import InstanceGroup, Node
from taskgov.snapshot.reservations import Reservation


@dataclass(frozen=True, slots=True)
class Reserved:
    """What a backend says of a cluster's reservations: which there are, and which machines are in each."""

    reservations: tuple[Reservation, ...] = ()
    by_machine: Mapping[str, str] | None = None
    """Instance id -> reservation; None where the instance groups say it."""

    def of(self, nodes: Iterable[Node]) -> tuple[Reservation, ...]:
        """Return the reservations that may be of these nodes: an account's instances are of many clusters."""
        if self.by_machine is None:
            return self.reservations
        own = {"", *(self.by_machine.get(node.instance_id or "") for node in nodes)}
        return tuple(reservation for reservation in self.reservations if reservation.id in own)


def marked(
    nodes: Iterable[Node], reserved: Reserved, groups: Iterable[InstanceGroup], now: datetime, memory: NodeMemory
) -> tuple[Node, ...]:
    """Return the nodes, each with its reservation and with the moment at which that takes it back.

    What cannot be read is as in the previous snapshot (`memory`), also for a node that has come since.
    """
    known = {reservation.id: reservation for reservation in reserved.reservations}
    all_silent, ends = "" in known, _remembered(memory)
    plans = {group.name: group.training_plan for group in groups}
    found = []
    for node in nodes:
        if reserved.by_machine is None:
            its_id = plans.get(node.instance_group or "")
        else:
            its_id = reserved.by_machine.get(node.instance_id or "")
        reservation, before = known.get(its_id or ""), memory.nodes.get(node.name)
        if all_silent:
            found.append(node if before is None else _as_before(node, before))
        elif reservation is None:
            found.append(node)
        else:
            remembered = ends.get((reservation.id, node.instance_type))
            moment = remembered if reservation.silence else reservation.leaves_at(node.instance_type, now)
            found.append(replace(node, reservation=reservation.id, leaves_at=moment))
    return tuple(found)


def _remembered(memory: NodeMemory) -> dict[tuple[str, str], datetime]:
    """Return when the nodes of each reservation and instance type leave, as it was read last: of those listed then."""
    records = sorted(memory.nodes.values(), key=lambda record: not record.gone)
    return {
        (record.reservation, record.instance_type): record.leaves_at
        for record in records
        if record.reservation and record.leaves_at
    }


def _as_before(node: Node, before: NodeRecord) -> Node:
    return replace(node, reservation=before.reservation, leaves_at=before.leaves_at)


def has_left(node: Node, now: datetime) -> bool:
    """Return whether the reservation of a node takes it back now, or did before."""
    return node.leaves_at is not None and node.leaves_at <= now
