"""How far numbers of teams fall, once what leases move by the document's own words is set aside.

The guardrails on decreases judge by it. Every number is looked at as it would be without leases: what a team has by a
lease is taken off, what it lends is put back, both by the leases that held when the number was written.
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
class Decrease:
    """One number that falls; `before`, `after` and `most_in_period` are without leases, the words with them."""

    team: str
    words: str
    before: float
    after: float
    most_in_period: float | None
    """The most it was within the guardrail's period; None when that cannot be read."""

    def percent_of(self, base: float) -> float:
        """Return by how many percent of `base` the number falls, rounded to a tenth."""
        return round(max(base - self.after, 0) * 100 / base, 1) if base > 0 else 0.0


def decreases(
    snapshot: Snapshot,
    policy: PolicyDocument,
    lines: Iterable[TeamAllocation],
    given: Iterable[Lease],
    capacities: Mapping[str, TypeCapacity],
) -> list[Decrease]:
    """Return the numbers that fall, of all teams but the shared pool. `given` are the leases that hold in the plan."""
    reckoning = _Reckoning(snapshot, policy, tuple(given), capacities)
    pool = policy.shared_pool.team if policy.shared_pool else None
    falling = (line for line in lines if line.after < line.before and line.team != pool)
    return [reckoning.of(line) for line in falling]


class _Reckoning:
    def __init__(
        self,
        snapshot: Snapshot,
        policy: PolicyDocument,
        given: tuple[Lease, ...],
        capacities: Mapping[str, TypeCapacity],
    ) -> None:
        self._leases, self._given, self._capacities = policy.leases, given, capacities
        period = policy.guardrails.max_decrease_per_period
        self._began = snapshot.taken_at - timedelta(hours=period.hours if period else 0)
        self._applied: dict[str, AppliedQuota] = {
            applied.target.team_name: applied for applied in sorted(snapshot.applied, key=_when)
        }

    def of(self, line: TeamAllocation) -> Decrease:
        applied = self._applied.get(line.team)
        # What the automation never wrote has no lease in it.
        before = line.before if applied is None else line.before - self._leased(line, applied.at)
        after = line.after - self._net(line, self._given)
        unit = "" if line.unit == "Count" else f" {line.unit}"
        words = f"{line.team} {line.instance_type} {line.before:g} -> {line.after:g}{unit}"
        return Decrease(line.team, words, before, after, self._most(line, before, applied))

    def _most(self, line: TeamAllocation, before: float, applied: AppliedQuota | None) -> float | None:
        """Return the most that the number was within the period."""
        if applied is None:
            return before
        if applied.history is None:
            return None
        held = [before]
        written: datetime | None = None
        for past in applied.history:
            if past.until > self._began:
                held.append(self._value(line, past.config, written))
            written = past.until
        return max((*held, self._value(line, applied.config, applied.at)))

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


def _when(applied: AppliedQuota) -> datetime:
    return applied.at
