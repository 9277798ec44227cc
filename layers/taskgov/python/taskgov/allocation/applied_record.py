"""The record that is stored with each write, for later plans.

`apply_change` builds and stores it after each write (and each restoration). Plans read it from the snapshot to detect
edits by hand, to find how far a quota moved in a period, and to know which edit was adopted.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from taskgov.allocation.plan import Change
from taskgov.allocation.sharing import within_budget
from taskgov.hyperpod.equality import is_same_config
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.snapshot.records import AppliedQuota, PastQuota

KEPT_FOR: Final = timedelta(days=31)
"""How long earlier configs are kept: the longest period of `maxDecreasePerPeriod` and `maxIncreasePerPeriod`."""
MOST_WEIGHT: Final = 1000
"""Most rows of earlier configs that are kept, so that the item stays below 200 KB (DynamoDB's limit is 400 KB)."""
WEIGHT_OF_ONE: Final = 2
"""Size of one config without its rows, counted in rows."""
MOST_OF_ONE: Final = WEIGHT_OF_ONE + 15
"""Largest size of one config: a quota has at most 15 rows."""


def remember(
    change: Change,
    previous: AppliedQuota | None,
    *,
    quota_id: str,
    version: int,
    plan_id: str,
    now: datetime,
    path_before: ComputeQuotaConfig | None = None,
) -> AppliedQuota:
    """Return what to keep of a quota after `change` was written to it at `now`, giving `version`.

    A quota that is written twice has moved once: the low config between its writes is not part of the past, and
    `began_from` says for as long as it stands what the quota came from (`path_before`: what stood before the plan; by
    default `change.before`). A path that ended at its low write continues from there with the plan after it.

    A past that could not be read (None) stays unread: guardrails that need it fail closed until it is old enough to
    matter no longer, which only a fresh record shows. Raises `ValueError` for a change of the cluster policy.
    """
    if not isinstance(change.after, ComputeQuotaConfig) or change.target_after is None:
        raise ValueError(f"{change.kind} is not the change of a quota")
    origin = _origin(change, previous)
    past = () if previous is None else previous.history
    if past is not None and origin is None and isinstance(change.before, ComputeQuotaConfig):
        recent = (earlier for earlier in past if earlier.until > now - KEPT_FOR)
        past = bounded((*recent, _past(change.before, previous, now)))
    before = change.before if isinstance(change.before, ComputeQuotaConfig) else None
    return AppliedQuota(
        compute_quota_id=quota_id,
        version=version,
        config=change.after,
        target=change.target_after,
        plan_id=plan_id,
        at=now,
        history=past,
        adopted=change.adopted,
        promise=change.promise,
        began_from=(origin or path_before or before) if change.is_low else None,
        leased=change.leased,
        demand=_demand_before(change, previous) if change.demand is None else change.demand,
        sharing_within_budget=within_budget(change.after, change.sharing_within_budget),
    )


def bounded(past: tuple[PastQuota, ...]) -> tuple[PastQuota, ...]:
    """Return as much of a past as is kept: the newest, and of equal ones the last, which says the same.

    What is forgotten is not known any more (`known_since`).
    """
    if _weight(past) <= MOST_WEIGHT:
        return past
    levels = {_level(earlier): earlier for earlier in past}  # of equal ones the last
    kept = sorted(levels.values(), key=lambda earlier: earlier.until, reverse=True)
    while _weight(kept) > MOST_WEIGHT:
        kept.pop()
    return tuple(reversed(kept))


def known_since(past: Sequence[PastQuota]) -> datetime | None:
    """Return since when a past is whole; None where nothing is forgotten.

    One that is nearly as long as it may be counts as cut: guardrails that need more of it fail closed.
    """
    return past[0].until if _weight(past) > MOST_WEIGHT - MOST_OF_ONE else None


def _level(past: PastQuota) -> Hashable:
    """Return a past config without the time at which it ended."""
    amounts = (None if some is None else frozenset(some.items()) for some in (past.leased, past.demand))
    return (past.config, *amounts)


def _weight(past: Iterable[PastQuota]) -> int:
    return sum(WEIGHT_OF_ONE + len(earlier.config.compute_quota_resources) for earlier in past)


def _past(before: ComputeQuotaConfig, previous: AppliedQuota | None, now: datetime) -> PastQuota:
    """Return what the quota was until now, with what the record of its last write says of it.

    Where that says nothing of demand, or a person changed the quota since, what it held is taken for what demand left.
    """
    if previous is None:
        return PastQuota(until=now, config=before)
    if not is_same_config(previous.config, before):
        return PastQuota(until=now, config=before, demand=_counts(before))
    demand = _counts(before) if previous.demand is None else previous.demand
    return PastQuota(until=now, config=before, leased=previous.leased, demand=demand)


def _counts(config: ComputeQuotaConfig) -> dict[str, int]:
    return {row.instance_type: row.count for row in config.compute_quota_resources if row.count is not None}


def _demand_before(change: Change, previous: AppliedQuota | None) -> Mapping[str, int] | None:
    """Return what demand left of the promise when the config that a roll back writes stood before; None if unknown."""
    past = () if previous is None else (previous.history or ())
    if not past or not isinstance(change.after, ComputeQuotaConfig):
        return None
    return past[-1].demand if is_same_config(past[-1].config, change.after) else None


def _origin(change: Change, previous: AppliedQuota | None) -> ComputeQuotaConfig | None:
    """Return the value before the path if this write leaves its low config, else None."""
    if previous is None or not isinstance(change.before, ComputeQuotaConfig):
        return None
    for written in (previous, previous.announced):
        if written is not None and written.began_from is not None and is_same_config(written.config, change.before):
            return written.began_from
    return None
