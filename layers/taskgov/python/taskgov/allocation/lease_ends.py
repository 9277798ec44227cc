"""Refuse leases that last beyond the end of their machines.

A lease is tried on the snapshot after each end of a training plan or Capacity Block before its own end. If the donor
can give the lease now but not then, the lease is refused from the beginning, even before it starts, until its end is
moved. A lease with `partial: true` is refused only if nothing is left to give.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from taskgov.allocation.allocate import allocate
from taskgov.allocation.governed import select_governed
from taskgov.allocation.leases import LeaseState, state_at, told_as, unit_after
from taskgov.allocation.snapshot_capacity import capacities_of
from taskgov.findings import Finding
from taskgov.findings.of_plan import LEASE_BEYOND_END
from taskgov.policy.document import PolicyDocument
from taskgov.policy.measured import Lease
from taskgov.snapshot.model import Node, Snapshot
from taskgov.snapshot.reservations import name_of


@dataclass(frozen=True, slots=True)
class LeaseBeyond:
    """A refused lease, its position in the document, and the node whose end is the reason."""

    place: int
    lease: Lease
    node: Node


def leases_beyond(snapshot: Snapshot) -> tuple[LeaseBeyond, ...]:
    """Return the leases that the end of a reservation refuses, in the order of the document."""
    policy = snapshot.policy
    if policy is None or not policy.leases or all(node.leaves_at is None for node in snapshot.nodes):
        return ()
    found, tried = [], _Tried(snapshot, policy)
    for place, lease in enumerate(policy.leases):
        ends = _ends_within(snapshot, lease)
        if ends and tried.is_given(lease, None):
            refused_by = next((node for node in ends if not tried.is_given(lease, node.leaves_at)), None)
            if refused_by is not None:
                found.append(LeaseBeyond(place, lease, refused_by))
    return tuple(found)


def without_leases(snapshot: Snapshot, refused: Iterable[LeaseBeyond]) -> Snapshot:
    """Return the snapshot without the refused leases."""
    places = {beyond.place for beyond in refused}
    if snapshot.policy is None or not places:
        return snapshot
    kept = tuple(lease for place, lease in enumerate(snapshot.policy.leases) if place not in places)
    return replace(snapshot, policy=snapshot.policy.model_copy(update={"leases": kept}))


def after_end(snapshot: Snapshot, moment: datetime) -> Snapshot:
    """Return the snapshot without the machines that leave until `moment`."""
    nodes = (
        replace(node, leaves_at=snapshot.taken_at) if node.leaves_at is not None and node.leaves_at <= moment else node
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=tuple(nodes))


def refused_leases_found(refused: Iterable[LeaseBeyond]) -> Iterable[Finding]:
    """Report each refused lease, with the field, its value and the rule that it breaks."""
    for beyond in refused:
        lease, node = beyond.lease, beyond.node
        if node.leaves_at is None:
            continue
        evidence = {
            **told_as(lease),
            "path": f"leases[{beyond.place}].end",
            "value": lease.end.isoformat(),
            "rule": f"must be at or before {_clock(node.leaves_at)}",
        }
        yield LEASE_BEYOND_END.about(
            f"{lease.from_} -> {lease.to}",
            evidence,
            what=f"{lease.count}{unit_after(lease)} {lease.instance_type}",
            reason=lease.reason,
            path=evidence["path"],
            value=_clock(lease.end),
            rule=evidence["rule"],
            reservation=name_of(node.reservation or "its reservation"),
            instance_type=lease.instance_type,
        )


def _ends_within(snapshot: Snapshot, lease: Lease) -> list[Node]:
    """Return a node of the lease's type for each moment, before the lease's end, at which some leave."""
    now = snapshot.taken_at
    if state_at(lease, now) is LeaseState.ENDED:
        return []
    first: dict[datetime, Node] = {}
    for node in snapshot.nodes:
        if node.instance_type == lease.instance_type and node.leaves_at and now < node.leaves_at < lease.end:
            first.setdefault(node.leaves_at, node)
    return [first[moment] for moment in sorted(first)]


class _Tried:
    """Which leases are given once machines have left: each world is worked out once, for all leases."""

    def __init__(self, snapshot: Snapshot, policy: PolicyDocument) -> None:
        self._snapshot, self._policy = snapshot, policy
        self._known: dict[tuple[datetime, tuple[int, ...]], tuple[Lease, ...]] = {}

    def is_given(self, lease: Lease, left_by: datetime | None) -> bool:
        """Return whether the donor gives a lease beside those that hold then, once machines have left; None: as it is.

        Those that leave between that end and a later start of the lease have left, too.
        """
        now = self._snapshot.taken_at
        then = max(lease.start, left_by or now)
        leases = enumerate(self._policy.leases)
        world = (
            now if left_by is None else then,
            tuple(place for place, other in leases if state_at(other, then) is LeaseState.ACTIVE),
        )
        if world not in self._known:
            self._known[world] = tuple(self._given(*world))
        return self._as_now(lease) in self._known[world]

    def _given(self, left_by: datetime, holding: Iterable[int]) -> Iterator[Lease]:
        leases = tuple(self._as_now(self._policy.leases[place]) for place in holding)
        policy = self._policy.model_copy(update={"leases": leases})
        world = replace(after_end(self._snapshot, left_by), policy=policy)
        capacities = capacities_of(world)
        claims = allocate(world, policy, select_governed(world, capacities), capacities)
        yield from (given.lease for of_type in claims for given in of_type.given)

    def _as_now(self, lease: Lease) -> Lease:
        """Return a lease as one that holds at the snapshot: all else is decided at that moment."""
        return lease.model_copy(update={"start": min(lease.start, self._snapshot.taken_at)})


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
