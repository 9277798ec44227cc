"""Temporary quota: who lends how many instances to whom, now.

A lease has a donor, a borrower, a count, a start and an end. It holds from start (inclusive) to end (exclusive) by the
clock of the snapshot alone, so that it starts and returns by itself and survives whatever restarts. It moves what the
donor was granted; the sum stays the same. A donor that cannot give is never driven below its floor: then the lease is
refused, and says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction

from taskgov.allocation.parts import ACCELERATOR, Vector, fits, is_in_parts, subtract
from taskgov.hyperpod.instance_types import MIG_SLICES_PER_GPU
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import Lease
from taskgov.quantities import CPU, GIBIBYTE, MEMORY

Rows = Mapping[str, ComputeQuotaResource]
"""Team (or team and MIG profile, which no lease moves) -> what it has of one instance type."""


class LeaseState(StrEnum):
    """How a lease stands."""

    DUE = "due"
    ACTIVE = "active"
    """It holds, and the quotas of both teams are as planned."""
    PLANNED = "planned"
    """It is to hold now, and the quota of one of the teams is not as planned: the plan waits, or is only shown."""
    REFUSED = "refused"
    """It is to hold now, and the donor cannot give it."""
    ENDED = "ended"


class LeaseRefusedError(Exception):
    """A lease cannot be given now; the message says why."""


@dataclass(frozen=True, slots=True)
class Lending:
    """What teams have of one instance type after a lease, and what the shared pool has left."""

    rows: Rows
    pool_left: Vector


def state_at(lease: Lease, now: datetime) -> LeaseState:
    """Return how a lease stands by the clock alone: due, active or ended."""
    if now < lease.start:
        return LeaseState.DUE
    return LeaseState.ACTIVE if now < lease.end else LeaseState.ENDED


def refused_as(lease: Lease) -> dict[str, str | int]:
    """Return what a finding about a refused lease carries, to tell the leases of the same two teams apart."""
    moments = {"start": lease.start.isoformat(), "end": lease.end.isoformat()}
    return {"instanceType": lease.instance_type, "count": lease.count, **moments}


def active_leases(leases: Iterable[Lease], now: datetime) -> list[Lease]:
    """Return the leases that hold now, earliest first."""
    return sorted((lease for lease in leases if state_at(lease, now) is LeaseState.ACTIVE), key=_order)


def until(lease: Lease) -> str:
    """Return the end of a lease, with its reason, as plans and explanations say it."""
    return f"until {lease.end.astimezone(UTC):%Y-%m-%d %H:%M} UTC ({lease.reason})"


def next_moment(leases: Iterable[Lease], now: datetime) -> datetime | None:
    """Return when the next lease starts or ends."""
    moments = (moment for lease in leases for moment in (lease.start, lease.end) if moment > now)
    return min(moments, default=None)


def has_ended_since(leases: Iterable[Lease], team: str, instance_type: str, since: datetime, now: datetime) -> bool:
    """Say whether a lease from or to `team` ended after `since`."""
    return any(
        lease.instance_type == instance_type and team in {lease.to, lease.from_} and since < lease.end <= now
        for lease in leases
    )


def lend(lease: Lease, before: Lending, pool_team: str | None, per_instance: Vector, floor: Fraction) -> Lending:
    """Return the holdings with the lease given; raise `LeaseRefusedError` when it cannot be.

    `floor` is what the donor keeps, in instances; the shared pool keeps nothing.
    """
    if lease.to not in before.rows:
        raise LeaseRefusedError(f"the borrower {lease.to} has no governed promise on {lease.instance_type}")
    moved = {resource: amount * lease.count for resource, amount in per_instance.items()}
    rows, pool_left = dict(before.rows), before.pool_left
    if lease.from_ == pool_team:
        if not fits(moved, pool_left):
            raise LeaseRefusedError(f"the shared pool has no {lease.count} {lease.instance_type} left")
        pool_left = subtract(pool_left, moved)
    else:
        rows[lease.from_] = _given(lease, rows.get(lease.from_), floor)
    rows[lease.to] = with_instances(rows[lease.to], lease.count, per_instance)
    return Lending(rows, pool_left)


def _given(lease: Lease, row: ComputeQuotaResource | None, floor: Fraction) -> ComputeQuotaResource:
    if row is None:
        raise LeaseRefusedError(f"the donor {lease.from_} has no governed quota on {lease.instance_type}")
    if row.count is None or is_in_parts(row):
        raise LeaseRefusedError(f"the donor {lease.from_} has parts of instances and cannot give whole ones")
    if row.count - lease.count < floor:
        has = f"{row.count} {lease.instance_type}" + (f" and a floor of {float(floor):g}" if floor else "")
        raise LeaseRefusedError(f"the donor {lease.from_} has {has}, and cannot give {lease.count}")
    return row.model_copy(update={"count": row.count - lease.count})


def with_instances(row: ComputeQuotaResource, count: int, per_instance: Vector) -> ComputeQuotaResource:
    """Return the row with `count` instances more (below zero: fewer, down to nothing), in the units that it gives."""
    if not is_in_parts(row):
        return row.model_copy(update={"count": max((row.count or 0) + count, 0)})
    numbers = {
        "accelerators": count * (per_instance.get(ACCELERATOR, 0) // MIG_SLICES_PER_GPU),
        "vcpu": count * per_instance.get(CPU, 0) / 1000,
        "memory_in_gib": count * per_instance.get(MEMORY, 0) / GIBIBYTE,
    }
    given = {name: getattr(row, name) for name in numbers if getattr(row, name) is not None}
    return row.model_copy(update={name: max(amount + numbers[name], 0) for name, amount in given.items()})


def _order(lease: Lease) -> tuple[datetime, str, str, str]:
    return lease.start, lease.to, lease.from_, lease.instance_type
