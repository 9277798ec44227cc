"""Leases: temporary moves of quota from a donor to a borrower.

A lease has a donor, a borrower, an amount in one unit, a start and an end. It is active from start (inclusive) to end
(exclusive), by the snapshot's clock alone, so it starts and returns without any record. It moves granted quota of the
donor, and the sum stays the same. The donor never falls below its floor: a lease that does not fit is refused, or with
`partial` gives as much as possible, which is reported.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.parts import Vector, add, fits, is_in_parts, subtract
from taskgov.allocation.transfer import moved
from taskgov.allocation.units import row_at_basis, vector_of
from taskgov.allocation.wording import said, said_number
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import CapacityBasis
from taskgov.policy.measured import Lease, Measured, Unit

Rows = Mapping[str, ComputeQuotaResource]
"""Team (or team and MIG profile) -> what it has of one instance type."""


class LeaseState(StrEnum):
    """The state of a lease."""

    DUE = "due"
    ACTIVE = "active"
    """It should be active, and the quotas of both teams are as planned."""
    PLANNED = "planned"
    """It should be active, but a quota of the two teams is not as planned: the plan waits, or is only shown."""
    REFUSED = "refused"
    """It should be active, but the donor cannot give it."""
    ENDED = "ended"


class LeaseRefusedError(Exception):
    """A lease cannot be given now. The message has the reason."""


@dataclass(frozen=True, slots=True)
class Given:
    """An active lease, and how much of it the donor gives, in its unit."""

    lease: Lease
    amount: int

    @property
    def is_partial(self) -> bool:
        """Whether the donor gives less than the lease requests."""
        return self.amount < self.lease.count

    def side_of(self, team: str) -> int:
        """Return 1 for the borrower, -1 for the donor, 0 for everybody else."""
        return (self.lease.to == team) - (self.lease.from_ == team)

    def words(self, team: str) -> str:
        """Return the lease as it stands beside a number of one of its two teams."""
        lease = self.lease
        way = f"leased from {lease.from_}" if lease.to == team else f"leased to {lease.to}"
        of = f" of {lease.count}" if self.is_partial else ""
        return f"{self.amount}{of}{unit_after(lease)} {way} {until(lease)}"


@dataclass(frozen=True, slots=True)
class Lending:
    """What teams have of one instance type after leases, and what the shared pool has left."""

    rows: Rows
    pool_left: Vector
    given: tuple[Given, ...] = ()
    after: tuple[Rows, ...] = ()
    """What donor and borrower have after each lease in `given`, the shared pool aside."""


@dataclass(frozen=True, slots=True)
class Lenders:
    """Who may lend and borrow of one instance type, and what each keeps."""

    capacity: TypeCapacity
    basis: CapacityBasis
    teams: frozenset[str]
    """Teams whose quotas the plan governs; the shared pool aside."""
    pool: str | None
    """The team of taskgov's shared pool, if there is one."""
    floors: Mapping[str, Vector] = field(default_factory=dict)
    """What each row (by its key) keeps; the shared pool keeps nothing."""
    left_alone: Mapping[str, str] = field(default_factory=dict)
    """Team -> why its quota is left alone."""


def state_at(lease: Lease, now: datetime) -> LeaseState:
    """Return the state of a lease by the clock alone: due, active or ended."""
    if now < lease.start:
        return LeaseState.DUE
    return LeaseState.ACTIVE if now < lease.end else LeaseState.ENDED


def told_as(lease: Lease) -> dict[str, str | int]:
    """Return what a finding about a lease carries, to distinguish the leases of the same two teams."""
    moments = {"start": lease.start.isoformat(), "end": lease.end.isoformat()}
    unit = {} if lease.unit is Unit.INSTANCES else {"unit": lease.unit_name}
    return {"instanceType": lease.instance_type, "count": lease.count, **unit, **moments, "reason": lease.reason}


def unit_after(lease: Measured) -> str:
    """Return a unit as it stands after a number; instances go without saying."""
    return "" if lease.unit is Unit.INSTANCES else f" {lease.unit_name}"


def active_leases(leases: Iterable[Lease], now: datetime) -> list[Lease]:
    """Return the active leases, earliest first."""
    return sorted((lease for lease in leases if state_at(lease, now) is LeaseState.ACTIVE), key=_order)


def until(lease: Lease) -> str:
    """Return the end of a lease, with its reason, as plans and explanations say it."""
    return f"until {lease.end.astimezone(UTC):%Y-%m-%d %H:%M} UTC ({lease.reason})"


def next_moment(leases: Iterable[Lease], now: datetime) -> datetime | None:
    """Return when the next lease starts or ends."""
    moments = (moment for lease in leases for moment in (lease.start, lease.end) if moment > now)
    return min(moments, default=None)


def has_ended_since(leases: Iterable[Lease], team: str, instance_type: str, since: datetime, now: datetime) -> bool:
    """Return whether a lease from or to `team` ended after `since`."""
    return any(
        lease.instance_type == instance_type and team in {lease.to, lease.from_} and since < lease.end <= now
        for lease in leases
    )


def lend(lease: Lease, before: Lending, lenders: Lenders) -> Lending:
    """Return what teams have with the lease given; raise `LeaseRefusedError` when it cannot be."""
    _check(lease, lenders)
    profile = lease.accelerator_partition_type
    donor, borrower = (" ".join(filter(None, (team, profile))) for team in (lease.from_, lease.to))
    amount = _amount(lease, before, donor, lenders)
    rows, pool_left = dict(before.rows), before.pool_left
    moves = row_at_basis(lease, amount, lenders.capacity, lenders.basis)
    takes = vector_of(moves, lenders.capacity) or {}
    _check_borrower(lease, rows.get(borrower), moves, lenders.capacity)
    if lease.from_ == lenders.pool:
        pool_left = subtract(pool_left, takes)
    else:
        rows[donor] = moved(rows[donor], moves, lenders.capacity, out=True)
    if lease.to == lenders.pool:
        pool_left = {r: n for r, n in add((pool_left, takes)).items() if r in lenders.capacity.per_instance}
    elif borrower in rows:
        rows[borrower] = moved(rows[borrower], moves, lenders.capacity)
    else:
        rows[borrower] = moves
    touched = {key: rows[key] for key in (donor, borrower) if key in rows}
    return Lending(rows, pool_left, (*before.given, Given(lease, amount)), (*before.after, touched))


def _check(lease: Lease, lenders: Lenders) -> None:
    for role, team in (("donor", lease.from_), ("borrower", lease.to)):
        if team not in lenders.teams and team != lenders.pool:
            why = lenders.left_alone.get(team, "it is not governed by this plan")
            raise LeaseRefusedError(f"the quota of the {role} {team} is left as it is ({why})")
    resources, profile = lenders.capacity.resources, lease.accelerator_partition_type
    if profile is not None and resources is not None and profile not in resources.mig_profiles:
        raise LeaseRefusedError(f"{lease.instance_type} has no partitions of {profile}")
    if lenders.pool in {lease.from_, lease.to} and not lenders.capacity.has_nodes:
        raise LeaseRefusedError(f"the shared pool has nothing of {lease.instance_type}: there are no nodes of it")


def _check_borrower(
    lease: Lease, row: ComputeQuotaResource | None, moves: ComputeQuotaResource, capacity: TypeCapacity
) -> None:
    """Raise `LeaseRefusedError` if the amount cannot be added to the borrower's row."""
    in_parts = row is not None and (is_in_parts(row) or is_in_parts(moves))
    if row is not None and in_parts and vector_of(row, capacity) is None:
        has = f"{said(row)} {lease.instance_type}"
        raise LeaseRefusedError(f"the borrower {lease.to} has {has}, whose resources are not known")


def _amount(lease: Lease, before: Lending, donor: str, lenders: Lenders) -> int:
    """Return how much of the lease the donor gives: all of it, or with `partial` the most that it can."""
    row = before.rows.get(donor)
    if lease.from_ != lenders.pool and row is None:
        raise LeaseRefusedError(f"the donor {lease.from_} has no {lease.place}")
    floor = lenders.floors.get(donor, {})

    def can_give(amount: int) -> bool:
        moves = row_at_basis(lease, amount, lenders.capacity, lenders.basis)
        if lease.from_ == lenders.pool:
            takes = vector_of(moves, lenders.capacity)
            return bool(takes) and fits(takes or {}, before.pool_left)
        return row is not None and _keeps_floor(row, moves, floor, lenders.capacity)

    if can_give(lease.count):
        return lease.count
    most, beyond = 0, lease.count
    while beyond - most > 1:
        middle = (most + beyond) // 2
        most, beyond = (middle, beyond) if can_give(middle) else (most, middle)
    if lease.partial and most:
        return most
    raise LeaseRefusedError(_too_little(lease, row, most, floor, lenders))


def _keeps_floor(row: ComputeQuotaResource, moves: ComputeQuotaResource, floor: Vector, capacity: TypeCapacity) -> bool:
    """Return whether the row has the amount to move, and keeps its floor in each resource."""
    has, takes = vector_of(row, capacity), vector_of(moves, capacity)
    if has is None or not takes:
        return False  # what an instance of the type has is unknown
    return fits(takes, has) and all(has[r] - n >= floor.get(r, 0) for r, n in takes.items() if n)


def _too_little(lease: Lease, row: ComputeQuotaResource | None, most: int, floor: Vector, lenders: Lenders) -> str:
    """Say what the donor has, and what it could give."""
    unit, per_instance = unit_after(lease), lenders.capacity.per_instance
    asked = f"{lease.count}{unit}"
    could = f"it can give {most}{unit} (partial: true takes that)" if most else "it can give none"
    if lease.from_ == lenders.pool:
        return f"the shared pool has no {asked} of {lease.instance_type} left; {could}"
    kept = max((Fraction(n, per_instance[r]) for r, n in floor.items() if per_instance.get(r)), default=Fraction(0))
    floor_words = f" and a floor of {said_number(kept)}" if kept else ""
    has = "nothing" if row is None else said(row)
    return f"the donor {lease.from_} has {has} {lease.instance_type}{floor_words}, and cannot give {asked}; {could}"


def _order(lease: Lease) -> tuple[datetime, str, str, str]:
    return lease.start, lease.to, lease.from_, lease.instance_type
