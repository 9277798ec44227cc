"""How far numbers of teams fall, once what leases move by the document's own words is set aside.

The guardrails on decreases judge by it. Numbers are in the unit of the promise, per team and instance type.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.plan import TeamAllocation
from taskgov.allocation.wording import value_in
from taskgov.policy.document import Lease, PolicyDocument
from taskgov.snapshot.model import AppliedQuota, Snapshot


@dataclass(frozen=True, slots=True)
class Decrease:
    """One number that falls. `after` is what it falls to, leases set aside."""

    team: str
    words: str
    before: float
    after: float
    most_in_period: float | None
    """The most it was within the guardrail's period; None when that cannot be read."""

    def percent_of(self, base: float) -> float:
        """Return by how many percent of `base` the number falls, rounded to a tenth."""
        return round(max(base - self.after, 0) * 100 / base, 1) if base else 0.0


def decreases(
    snapshot: Snapshot,
    policy: PolicyDocument,
    lines: Iterable[TeamAllocation],
    capacities: Mapping[str, TypeCapacity],
) -> list[Decrease]:
    """Return the numbers that fall, of all teams but the shared pool."""
    reckoning = _Reckoning(snapshot, policy, capacities)
    pool = policy.shared_pool.team if policy.shared_pool else None
    falling = (line for line in lines if line.after < line.before and line.team != pool)
    return [reckoning.of(line) for line in falling]


class _Reckoning:
    def __init__(self, snapshot: Snapshot, policy: PolicyDocument, capacities: Mapping[str, TypeCapacity]) -> None:
        self._now = snapshot.taken_at
        self._leases = policy.leases
        self._capacities = capacities
        period = policy.guardrails.max_decrease_per_period
        self._period = timedelta(hours=period.hours if period else 0)
        self._applied: dict[str, AppliedQuota] = {
            applied.target.team_name: applied for applied in sorted(snapshot.applied, key=_when)
        }

    def of(self, line: TeamAllocation) -> Decrease:
        applied = self._applied.get(line.team)
        excused = self._moved_by_leases(line, None if applied is None else applied.at)
        words = f"{line.team} {line.instance_type} {line.before:g} -> {line.after:g}"
        words += "" if line.unit == "Count" else f" {line.unit}"
        after = min(line.after + excused, line.before)
        return Decrease(line.team, words, line.before, after, self._most(line, applied))

    def _moved_by_leases(self, line: TeamAllocation, since: datetime | None) -> float:
        """Return what leases took from the team since its quota was last written, in the unit of its promise.

        A quota that was never written has no lease in it: all that the team lends now is new, and none came back.
        """
        count = sum(
            lease.count
            for lease in self._leases
            if lease.instance_type == line.instance_type and self._takes_from(lease, line.team, since)
        )
        return count * self._units_in_an_instance(line)

    def _takes_from(self, lease: Lease, team: str, since: datetime | None) -> bool:
        if lease.from_ == team and lease.start <= self._now < lease.end:
            return since is None or lease.start > since
        return lease.to == team and since is not None and since < lease.end <= self._now

    def _units_in_an_instance(self, line: TeamAllocation) -> float:
        capacity = self._capacities.get(line.instance_type)
        resources = capacity.resources if capacity else None
        if line.unit == "Count" or resources is None:
            return 1
        units = {"Accelerators": resources.accelerators, "VCpu": resources.vcpu, "MemoryInGiB": resources.memory_gib}
        return units.get(line.unit, 0)

    def _most(self, line: TeamAllocation, applied: AppliedQuota | None) -> float | None:
        """Return the most that the number was within the period, less what leases took back in it."""
        if applied is None:
            return line.before
        if applied.history is None:
            return None
        began = self._now - self._period
        configs = [each.config for each in applied.history if each.until > began] + [applied.config]
        rows = [row for config in configs for row in config.compute_quota_resources]
        held = [value_in(row, line.unit) for row in rows if row.instance_type == line.instance_type]
        return max((line.before, *held)) - self._returned(line, began, applied.at)

    def _returned(self, line: TeamAllocation, began: datetime, written: datetime) -> float:
        """Return what leases that ended between `began` and the last write had brought."""
        count = sum(
            lease.count
            for lease in self._leases
            if lease.to == line.team and lease.instance_type == line.instance_type and began < lease.end <= written
        )
        return count * self._units_in_an_instance(line)


def _when(applied: AppliedQuota) -> datetime:
    return applied.at
