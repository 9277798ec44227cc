"""Leases that reach beyond the end of the machines that they are made of: refused, because nobody could keep them.

A lease of an instance type is tried on the world after each end (a training plan's or a Capacity Block's) that comes
before its own. Where its donor can give it today and cannot then, it is refused from the beginning: also before it
starts, and until its end is moved. A lease with `partial: true` is refused where nothing is left to give.
"""

from collections.abc import Iterable
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
    """A lease that is refused, where it stands in the document, and the node by whose end it is."""

    place: int
    lease: Lease
    node: Node


def leases_beyond(snapshot: Snapshot) -> tuple[LeaseBeyond, ...]:
    """Return the leases that the end of a reservation refuses, in the order of the document."""
    policy = snapshot.policy
    if policy is None or not policy.leases or all(node.leaves_at is None for node in snapshot.nodes):
        return ()
    found = []
    for place, lease in enumerate(policy.leases):
        ends = _ends_within(snapshot, lease)
        if ends and _is_given(snapshot, policy, lease, at=max(lease.start, snapshot.taken_at)):
            refused_by = next((node for node in ends if not _survives(snapshot, policy, lease, node)), None)
            if refused_by is not None:
                found.append(LeaseBeyond(place, lease, refused_by))
    return tuple(found)


def without_leases(snapshot: Snapshot, refused: Iterable[LeaseBeyond]) -> Snapshot:
    """Return the snapshot as if the document did not have the refused leases."""
    places = {beyond.place for beyond in refused}
    if snapshot.policy is None or not places:
        return snapshot
    kept = tuple(lease for place, lease in enumerate(snapshot.policy.leases) if place not in places)
    return replace(snapshot, policy=snapshot.policy.model_copy(update={"leases": kept}))


def after_end(snapshot: Snapshot, moment: datetime) -> Snapshot:
    """Return the snapshot as if all machines that leave until `moment` had left."""
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


def _survives(snapshot: Snapshot, policy: PolicyDocument, lease: Lease, node: Node) -> bool:
    moment = max(lease.start, node.leaves_at or lease.start)
    return _is_given(after_end(snapshot, moment), policy, lease, at=moment)


def _is_given(snapshot: Snapshot, policy: PolicyDocument, lease: Lease, *, at: datetime) -> bool:
    """Say whether the donor gives a lease beside those that hold at a moment, on the machines of the snapshot."""
    now = snapshot.taken_at
    # All else is decided at the moment of the snapshot: only the leases are those of then.
    then = [
        other.model_copy(update={"start": min(other.start, now)})
        for other in policy.leases
        if state_at(other, at) is LeaseState.ACTIVE
    ]
    asked = lease.model_copy(update={"start": min(lease.start, now)})
    policy_then = policy.model_copy(update={"leases": tuple(then)})
    world = replace(snapshot, policy=policy_then)
    capacities = capacities_of(world)
    claims = allocate(world, policy_then, select_governed(world, capacities), capacities)
    return any(given.lease == asked for of_type in claims for given in of_type.given)


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
