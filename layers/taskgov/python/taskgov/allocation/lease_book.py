"""List the leases of a cluster with their states, wherever quotas are shown.

During a lease a quota has more or less than promised, and readers of the number must see why. `status`, `explain`,
`what-if`, the audit report and the metrics use this list.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from taskgov.allocation.leases import LeaseState, state_at, told_as
from taskgov.allocation.plan import Plan
from taskgov.findings import Finding
from taskgov.findings.kind import FindingKind
from taskgov.findings.of_plan import LEASE_PARTIAL, LEASE_REFUSED
from taskgov.findings.of_state import CANNOT_BE_SPLIT, NO_ROOM
from taskgov.policy.measured import Lease
from taskgov.snapshot.model import Snapshot


@dataclass(frozen=True, slots=True)
class LeaseEntry:
    """One lease, from `start` (inclusive) to `end` (exclusive); `count` is in whole units."""

    borrower: str
    donor: str
    instance_type: str
    count: int
    start: datetime
    end: datetime
    reason: str
    state: LeaseState
    because: str = ""
    """Why it is refused; empty for any other state."""
    unit: str = "instances"
    """`instances`, `accelerators`, `vCPUs`, `GiB`, or a MIG profile."""
    given: int | None = None
    """How much the donor gives of a lease that it cannot give in full; None for all of it."""

    @property
    def amount(self) -> int:
        """What the donor gives, in whole units."""
        return self.count if self.given is None else self.given

    @property
    def count_words(self) -> str:
        """The count as a table shows it: `2`, `3 of 5`, `2 accelerators`."""
        of = "" if self.given is None else f"{self.given} of "
        return f"{of}{self.count}" + ("" if self.unit == "instances" else f" {self.unit}")

    def said_to(self, team: str) -> str:
        """Return the lease as a note beside the quota of one of its two teams."""
        way = f"from {self.donor}" if team == self.borrower else f"to {self.borrower}"
        return f"{self.count_words} leased {way} until {self.end:%Y-%m-%d %H:%M}"


def lease_book(snapshot: Snapshot, plan: Plan | None = None) -> tuple[LeaseEntry, ...]:
    """Return the leases that have not ended, as they stand at the moment of the snapshot, in the order of their starts.

    `plan` is the snapshot's plan, for those who have made it anyhow: only with leases one is made here.
    """
    now, policy = snapshot.taken_at, snapshot.policy
    leases = (
        [] if policy is None else [lease for lease in policy.leases if state_at(lease, now) is not LeaseState.ENDED]
    )
    if not leases:
        return ()
    # Few documents have leases, and `taskgov status` would wait for the planner's imports.
    from taskgov.allocation.planner import plan_quotas  # noqa: PLC0415

    made = plan or plan_quotas(_without_work(snapshot), mode="plan")
    return tuple(sorted((_as_planned(lease, made) for lease in leases), key=_order))


def _without_work(snapshot: Snapshot) -> Snapshot:
    """Leave out the workloads: what a plan does to them is a prediction, on which no lease depends."""
    return replace(snapshot, kueue=replace(snapshot.kueue, workloads=()))


def leased(book: Iterable[LeaseEntry], team: str, instance_type: str) -> dict[str, int]:
    """Return the leased part of a team's quota, by unit; negative for amounts given to others."""
    moved: dict[str, int] = {}
    for entry in book:
        side = (entry.borrower == team) - (entry.donor == team)
        if side and entry.state is LeaseState.ACTIVE and entry.instance_type == instance_type:
            moved[entry.unit] = moved.get(entry.unit, 0) + side * entry.amount
    return {unit: amount for unit, amount in moved.items() if amount}


def leased_words(moved: Mapping[str, int]) -> str:
    """Return leased amounts as a table shows them.

    Example:
        >>> leased_words({"instances": 2, "accelerators": -3})
        '+2, -3 accelerators'

    """
    return ", ".join(f"{amount:+}" + ("" if unit == "instances" else f" {unit}") for unit, amount in moved.items())


def entry_of(lease: Lease, now: datetime) -> LeaseEntry:
    """Return the state of a lease by the clock alone."""
    return LeaseEntry(
        borrower=lease.to,
        donor=lease.from_,
        instance_type=lease.instance_type,
        count=lease.count,
        start=lease.start.astimezone(UTC),
        end=lease.end.astimezone(UTC),
        reason=lease.reason,
        state=state_at(lease, now),
        unit=lease.unit_name,
    )


def _as_planned(lease: Lease, plan: Plan) -> LeaseEntry:
    entry = entry_of(lease, plan.taken_at)
    if entry.state is LeaseState.ENDED:
        return entry
    refusal = _told(LEASE_REFUSED, lease, plan.findings)
    if refusal is not None:  # also before it starts, where it reaches beyond the end of its machines
        return replace(entry, state=LeaseState.REFUSED, because=refusal.because)
    if entry.state is LeaseState.DUE:
        return entry
    part = _told(LEASE_PARTIAL, lease, plan.findings)
    if part is not None:
        entry = replace(entry, given=int(part.evidence["given"]))
    return replace(entry, state=LeaseState.PLANNED) if _is_unwritten(lease, plan) else entry


def _told(kind: FindingKind, lease: Lease, findings: Iterable[Finding]) -> Finding | None:
    """Return what the plan found about a lease."""
    subject, carried = f"{lease.from_} -> {lease.to}", told_as(lease)
    about = (finding for finding in findings if kind.is_of(finding) and finding.subject == subject)
    # Whole instances carry no unit: a lease of as many accelerators is another one.
    said = (finding for finding in about if finding.evidence.get("unit") == carried.get("unit"))
    return next((finding for finding in said if carried.items() <= finding.evidence.items()), None)


def _is_unwritten(lease: Lease, plan: Plan) -> bool:
    teams = {lease.to, lease.from_}
    if any(finding.subject in teams and "quota" in finding.evidence for finding in plan.findings if _stops(finding)):
        return True
    lines = (line for line in plan.allocations if line.instance_type == lease.instance_type and line.team in teams)
    return any(line.before != line.after for line in lines)


def _stops(finding: Finding) -> bool:
    """Return whether a finding is that of a quota which no wave can write."""
    return NO_ROOM.is_of(finding) or CANNOT_BE_SPLIT.is_of(finding)


def _order(entry: LeaseEntry) -> tuple[datetime, str, str, str]:
    return entry.start, entry.borrower, entry.donor, entry.instance_type
