"""Demand-aware rebalancing: what a team has not used for a whole window goes to the shared pool, and comes back.

Off by default. A fixed promise is lowered towards the most that the team used at any moment of the window and half as
much again, at most `maxMovePercent` of the promise a day, never below its floor. What the team grows into is its own
again; when work of it waits, the whole promise is back at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Final

from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.document import DemandRules
from taskgov.snapshot.model import AppliedQuota, ObservedUse

RATE_PERIOD: Final = timedelta(days=1)
"""The period for which `maxMovePercent` is the most that may be moved."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A promise after demand has been looked at; `words` is empty when nothing moved."""

    row: ComputeQuotaResource
    words: str = ""
    level: int | None = None
    """Whole instances that demand leaves; None where it has no say."""


def trimmed(
    row: ComputeQuotaResource,
    use: ObservedUse | None,
    rules: DemandRules,
    applied: AppliedQuota | None,
    now: datetime,
    floor: Fraction,
) -> Trimmed:
    """Return the promise that remains for a team. Promises in parts, and unobserved ones, are left alone."""
    if not rules.enabled or row.count is None or use is None or use.hours < rules.window_hours or use.pending:
        return Trimmed(row)
    used = ceil(use.peak_instances)
    step = int(row.count * Fraction(str(rules.max_move_percent)) / 100)
    least = max(used + _spare(used), ceil(floor), _most_left(row, applied, now) - step)
    if least >= row.count:
        return Trimmed(row, level=row.count)
    words = f"used {used} at most in {rules.window_hours} h, {row.count - least} of {row.count} lent to the shared pool"
    return Trimmed(row.model_copy(update={"count": least}), words, least)


def observed(uses: Iterable[ObservedUse]) -> dict[tuple[str, str], ObservedUse]:
    """Return the observations by team and instance type."""
    return {(use.team, use.instance_type): use for use in uses}


def _spare(used: int) -> int:
    """Return what is left to a team beyond its use, so that growing into it shows before it is short."""
    return max(1, ceil(used / 2))


def _most_left(row: ComputeQuotaResource, applied: AppliedQuota | None, now: datetime) -> int:
    """Return the most that demand left of the promise within the rate period, whatever was granted of it.

    A shortage, a lease or an edit makes a quota smaller, and is no step of demand. Where a write did not record what
    demand left, its quota is taken for that; before the first write, and where the past cannot be read, the promise.
    """
    promised = row.count or 0
    if applied is None or applied.history is None:
        return promised
    levels = [_level(row, applied.config, applied.demand)]
    recent = (past for past in applied.history if past.until > now - RATE_PERIOD)
    levels += (promised if past.demand is None else _level(row, past.config, past.demand) for past in recent)
    return max(levels)


def _level(row: ComputeQuotaResource, config: ComputeQuotaConfig, demand: Mapping[str, int] | None) -> int:
    if demand is not None and row.instance_type in demand:
        return demand[row.instance_type]
    held = [each.count or 0 for each in config.compute_quota_resources if each.instance_type == row.instance_type]
    return max(held, default=row.count or 0)
