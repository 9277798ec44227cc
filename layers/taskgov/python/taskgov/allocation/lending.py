"""Give the leases of one instance type, one after another, and report them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.claims import Claim
from taskgov.allocation.leases import Given, LeaseRefusedError, Lenders, Lending, lend, told_as, unit_after
from taskgov.allocation.parts import Vector
from taskgov.allocation.sources import Cause
from taskgov.allocation.units import in_instances, vector_of
from taskgov.findings import Finding
from taskgov.findings.of_plan import LEASE_PARTIAL, LEASE_REFUSED
from taskgov.policy.measured import Lease


def lend_all(leases: Iterable[Lease], lending: Lending, lenders: Lenders) -> tuple[Lending, list[Finding]]:
    """Return what teams have after all leases, and what should be said of those that are refused or given in part.

    A lease that cannot be given is tried again once others were: what its donor is to lend may be leased itself.
    """
    waiting, tried = list(enumerate(leases)), -1
    refusals: dict[int, LeaseRefusedError] = {}
    findings: list[Finding] = []
    while len(waiting) != tried:
        tried, again = len(waiting), waiting
        waiting = []
        for place, lease in again:
            try:
                lending = lend(lease, lending, lenders)
            except LeaseRefusedError as refusal:
                refusals.setdefault(place, refusal)  # what stood when its turn came
                waiting.append((place, lease))
            else:
                findings += _given_in_part(lending.given[-1])
    refused = (_refused(lease, refusals[place]) for place, lease in waiting)
    return lending, [*findings, *refused]


def _given_in_part(given: Given) -> Iterator[Finding]:
    if given.is_partial:
        lease, amount = given.lease, given.amount
        evidence = {**told_as(lease), "given": amount}
        yield LEASE_PARTIAL.about(
            _subject(lease), evidence, what=_what(lease), reason=lease.reason, donor=lease.from_, given=amount
        )


def _refused(lease: Lease, refusal: LeaseRefusedError) -> Finding:
    return LEASE_REFUSED.about(_subject(lease), told_as(lease), what=_what(lease), reason=lease.reason, refusal=refusal)


def _subject(lease: Lease) -> str:
    return f"{lease.from_} -> {lease.to}"


def _what(lease: Lease) -> str:
    return f"{lease.count}{unit_after(lease)} {lease.instance_type}"


def floor_vector(claim: Claim, capacity: TypeCapacity) -> Vector:
    """Return what the floor keeps of each resource: the part of the claim that it is."""
    whole = in_instances(claim.row, capacity)
    part = min(claim.floor / whole, Fraction(1)) if whole else Fraction(0)
    return {resource: -int(-amount * part // 1) for resource, amount in (vector_of(claim.row, capacity) or {}).items()}


def with_leases(claim: Claim, key: str, lending: Lending, capacity: TypeCapacity) -> Claim:
    """Return the claim with what leases moved of it (by its key in `lending`), its sentence and its sources."""
    told = ""
    for given, after in zip(lending.given, lending.after, strict=True):
        if key in after and given.side_of(claim.team):
            words = given.words(claim.team)
            told += f", {'+' if given.lease.to == claim.team else '-'}{words}"
            claim = claim.moved_to(after[key], Cause.LEASE, words, capacity)
    return replace(claim, because=claim.because + told) if told else claim
