"""How far numbers of teams fall or rise, once what leases move by the document's own words is set aside.

The guardrails on changes of numbers judge by it. Every number is looked at as it would be without leases: what a team
has by a lease is taken off, what it lends is put back, both by the leases that held when the number was written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.leases import active_leases
from taskgov.allocation.plan import TeamAllocation
from taskgov.allocation.wording import value_in
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.policy.document import Lease, PolicyDocument
from taskgov.snapshot.model import AppliedQuota, Snapshot


@dataclass(frozen=True, slots=True)
class Movement:
    """One number that falls or rises; `before`, `after` and the extremes are without leases, the words with them."""

    team: str
    words: str
    before: float
    after: float
    farthest: float | None
    """Within the guardrail's period the most it was if it falls, the least above nothing if it rises (0: never more).

    None when that cannot be read.
    """

    @property
    def falls(self) -> bool:
        """Whether it falls; otherwise it rises."""
        return self.after < self.before

    def percent_of(self, base: float) -> float | None:
        """Return by how many percent of `base` it is beyond it, rounded to a tenth; None where there was nothing."""
        beyond = base - self.after if self.falls else self.after - base
        return round(max(beyond, 0) * 100 / base, 1) if base > 0 else None


def movements(
    snapshot: Snapshot,
    policy: PolicyDocument,
    lines: Iterable[TeamAllocation],
    given: Iterable[Lease],
    capacities: Mapping[str, TypeCapacity],
) -> list[Movement]:
    """Return the numbers that move, of all teams but the shared pool. `given` are the leases that hold in the plan."""
    reckoning = _Reckoning(snapshot, policy, tuple(given), capacities)
    pool = policy.shared_pool.team if policy.shared_pool else None
    moving = (line for line in lines if line.after != line.before and line.team != pool)
    found = (reckoning.of(line) for line in moving)
    return [each for each in found if each.after != each.before]


class _Reckoning:
    def __init__(
        self,
        snapshot: Snapshot,
        policy: PolicyDocument,
        given: tuple[Lease, ...],
        capacities: Mapping[str, TypeCapacity],
    ) -> None:
        self._leases, self._given, self._capacities = policy.leases, given, capacities
        self._now, self._guardrails = snapshot.taken_at, policy.guardrails
        self._applied: dict[str, AppliedQuota] = {
            applied.target.team_name: applied for applied in sorted(snapshot.applied, key=_when)
        }

    def of(self, line: TeamAllocation) -> Movement:
        applied = self._applied.get(line.team)
        # What the automation never wrote has no lease in it.
        before = line.before if applied is None else line.before - self._leased(line, applied.at)
        after = line.after - self._net(line, self._given)
        unit = "" if line.unit == "Count" else f" {line.unit}"
        words = f"{line.team} {line.instance_type} {line.before:g} -> {line.after:g}{unit}"
        falls = after < before
        past = self._past(line, applied, self._began(falls=falls))
        return Movement(
            line.team, words, before, after, None if past is None else _farthest((before, *past), falls=falls)
        )

    def _began(self, *, falls: bool) -> datetime:
        rules = self._guardrails
        period = rules.max_decrease_per_period if falls else rules.max_increase_per_period
        return self._now - timedelta(hours=period.hours if period else 0)

    def _past(self, line: TeamAllocation, applied: AppliedQuota | None, began: datetime) -> list[float] | None:
        """Return what the number was since `began`; None when that cannot be read."""
        if applied is None:
            return []
        if applied.history is None:
            return None
        values = [self._value(line, applied.config, applied.at)]
        written: datetime | None = None
        for past in applied.history:
            if past.until > began:
                values.append(self._value(line, past.config, written))
            written = past.until
        return values

    def _value(self, line: TeamAllocation, config: ComputeQuotaConfig, written: datetime | None) -> float:
        rows = (row for row in config.compute_quota_resources if row.instance_type == line.instance_type)
        value = sum(value_in(row, line.unit) for row in rows)
        return value if written is None else value - self._leased(line, written)

    def _leased(self, line: TeamAllocation, at: datetime) -> float:
        return self._net(line, active_leases(self._leases, at))

    def _net(self, line: TeamAllocation, leases: Iterable[Lease]) -> float:
        """Return what leases bring the team less what they take, in the unit of its promise."""
        count = sum(
            lease.count * ((lease.to == line.team) - (lease.from_ == line.team))
            for lease in leases
            if lease.instance_type == line.instance_type
        )
        return count * self._units_in_an_instance(line)

    def _units_in_an_instance(self, line: TeamAllocation) -> float:
        capacity = self._capacities.get(line.instance_type)
        resources = capacity.resources if capacity else None
        if line.unit == "Count" or resources is None:
            return 1
        units = {"Accelerators": resources.accelerators, "VCpu": resources.vcpu, "MemoryInGiB": resources.memory_gib}
        return units.get(line.unit, 0)


def _farthest(values: Iterable[float], *, falls: bool) -> float:
    if falls:
        return max(values)
    # Nothing is no measure: a team that had none for a moment is held against what it had else in the period.
    return min((value for value in values if value > 0), default=0)


def _when(applied: AppliedQuota) -> datetime:
    return applied.at
