"""Demand-aware rebalancing: quota that a team has not used for a whole window moves to the shared pool and returns.

Off by default. A fixed promise is lowered towards 1.5 times the peak use of the window, by at most `maxMovePercent` of
the promise a day, and never below its floor. Amounts lent by leases are added on top, because they are neither used nor
idle. If use grows, the promise grows with it. If work of the team waits, the whole promise returns at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Final

from taskgov.allocation.applied_record import known_since
from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.leases import active_leases
from taskgov.allocation.units import in_instances, row_of
from taskgov.findings import Finding
from taskgov.findings.of_plan import DEMAND_NEVER_MOVES
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.document import DemandRules
from taskgov.policy.measured import Lease
from taskgov.policy.moves import most_moved, smallest_percent
from taskgov.snapshot.model import ObservedUse
from taskgov.snapshot.records import AppliedQuota

RATE_PERIOD: Final = timedelta(days=1)
"""The period for which `maxMovePercent` is the most that may be moved."""


@dataclass(frozen=True, slots=True)
class Lent:
    """What leases take from one team of one instance type, by the clock."""

    team: str
    capacity: TypeCapacity
    leases: tuple[Lease, ...] = ()

    def at(self, moment: datetime) -> int:
        """Return how many instances the team lends to others at a moment; parts of one count as a whole."""
        mine = (lease for lease in active_leases(self.leases, moment) if lease.from_ == self.team)
        here = (lease for lease in mine if lease.instance_type == self.capacity.line.instance_type)
        return ceil(sum(in_instances(row_of(lease, lease.count), self.capacity) for lease in here))


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A promise after demand has been considered; `words` is empty when nothing moved."""

    row: ComputeQuotaResource
    words: str = ""
    level: int | None = None
    """Whole instances that demand leaves; None where it has no say."""
    never_moves: bool = False
    """It would be lowered, and `maxMovePercent` of it is less than one instance."""


def trimmed(
    row: ComputeQuotaResource,
    use: ObservedUse | None,
    rules: DemandRules,
    applied: AppliedQuota | None,
    now: datetime,
    floor: Fraction,
    lent: Lent,
) -> Trimmed:
    """Return the promise that remains for a team. Promises in parts, and unobserved ones, are left alone.

    What is lent stays part of the promise beyond what the team itself needs, or the lease could not be given.
    """
    if not rules.enabled or row.count is None or use is None or use.hours < rules.window_hours or use.pending:
        return Trimmed(row)
    used, away = ceil(use.peak_instances), lent.at(now)
    needed = max(used + _spare(used), ceil(floor)) + away
    step = most_moved(row.count, rules.max_move_percent)
    least = max(needed, _most_left(row, applied, now, lent) - step)
    if least >= row.count:
        never = needed < row.count and step == 0 and rules.max_move_percent > 0
        return Trimmed(row, level=row.count, never_moves=never)
    words = f"used {used} at most in {rules.window_hours} h, {row.count - least} of {row.count} lent to the shared pool"
    return Trimmed(row.model_copy(update={"count": least}), words, least)


def never_moves(team: str, row: ComputeQuotaResource, rules: DemandRules) -> Finding:
    """Return the finding about an idle promise too small for `maxMovePercent` to move an instance of it."""
    count, percent = row.count or 0, smallest_percent(row.count or 0)
    evidence: dict[str, str | float] = {
        "instanceType": row.instance_type,
        "promised": count,
        "maxMovePercent": rules.max_move_percent,
        "smallestPercent": percent,
    }
    return DEMAND_NEVER_MOVES.about(
        team,
        evidence,
        team=team,
        count=count,
        instance_type=row.instance_type,
        percent=rules.max_move_percent,
        smallest_percent=percent,
    )


def observed(uses: Iterable[ObservedUse]) -> dict[tuple[str, str], ObservedUse]:
    """Return the observations by team and instance type."""
    return {(use.team, use.instance_type): use for use in uses}


def _spare(used: int) -> int:
    """Return what is left to a team beyond its use, so that growing into it shows before it is short."""
    return max(1, ceil(used / 2))


def _most_left(row: ComputeQuotaResource, applied: AppliedQuota | None, now: datetime, lent: Lent) -> int:
    """Return the most that demand left of the promise within the rate period, whatever was granted of it.

    A shortage, a lease or an edit makes a quota smaller, and is not a step of demand: a write whose record names no
    level of the type left the whole promise. Where a write recorded no level at all, its quota is taken for that, with
    what it lent; before the first write, and where the past cannot be read, the promise.
    """
    promised = row.count or 0
    if applied is None or applied.history is None:
        return promised
    since = known_since(applied.history)
    if since is not None and since > now - RATE_PERIOD:
        return promised
    if applied.demand is None:
        levels = [_held(row, applied.config) + lent.at(applied.at)]
    else:
        levels = [applied.demand.get(row.instance_type, promised)]
        if not applied.history and applied.at > now - RATE_PERIOD:
            levels.append(promised)  # a quota that the automation created: nothing was taken of its promise before
    recent = (past for past in applied.history if past.until > now - RATE_PERIOD)
    levels += (promised if past.demand is None else past.demand.get(row.instance_type, promised) for past in recent)
    return max(levels)


def _held(row: ComputeQuotaResource, config: ComputeQuotaConfig) -> int:
    rows = (held for held in config.compute_quota_resources if held.instance_type == row.instance_type)
    return max((held.count or 0 for held in rows), default=row.count or 0)
