"""How a team shares its quota: what the document says, what stood before, and what a used-up budget leaves of it.

A used-up budget stops borrowing: it writes a borrow limit of 0 (a *stop*). What the team returns to is recorded with
every write (`AppliedQuota.sharing_within_budget`), because neither the quota nor the document need say it then.

| today's borrow limit is 0, and our last write | the setting that the document may leave unsaid is |
| --- | --- |
| recorded how the team shares within its budget | that |
| did not record it (an earlier version) | not known; 0 stays |
| was another limit, or there was none | 0: a person set it |
"""

from dataclasses import dataclass
from typing import Final, Literal

from taskgov.hyperpod.borrowing import sharing_of
from taskgov.hyperpod.equality import DEFAULT_BORROW_LIMIT
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ResourceSharingConfig, SharingStrategy
from taskgov.snapshot.records import AppliedQuota

STOP: Final = ResourceSharingConfig(strategy=SharingStrategy.LEND_AND_BORROW, borrow_limit=0)
"""The sharing of a team with a used-up budget: it still lends."""

Borrowing = Literal["", "stops", "stopped", "resumes"]
"""What a budget makes of borrowing: nothing, it stops, it is stopped already, it resumes."""


@dataclass(frozen=True, slots=True)
class SharingBefore:
    """How a team shares before a plan. `within_budget` is None where nothing is said, or where it is not known."""

    within_budget: ResourceSharingConfig | None = None
    """Today's setting; while borrowing is stopped, the one that it returns to."""
    is_stopped: bool = False
    """Today's borrow limit is the 0 of a stop, or may be."""
    is_known: bool = True


NOTHING_SAID: Final = SharingBefore()


@dataclass(frozen=True, slots=True)
class SharingAfter:
    """The planned sharing of a team: as written, as within the budget, and the budget's effect."""

    config: ResourceSharingConfig | None
    within_budget: ResourceSharingConfig | None
    """None where it is not known."""
    borrowing: Borrowing = ""


def is_stop(sharing: ResourceSharingConfig | None) -> bool:
    """Return whether the setting lets a team that may borrow borrow nothing, as a used-up budget writes it."""
    if sharing is None or sharing.strategy is not SharingStrategy.LEND_AND_BORROW:
        return False
    return sharing.borrow_limit == 0 and not sharing.absolute_borrow_limits


def sharing_before(
    quota: ComputeQuota | None, applied: AppliedQuota | None, *, put_right: bool = False
) -> SharingBefore:
    """Return how a team shares today. With `put_right` an edit of what a stop wrote counts for nothing."""
    if quota is None:
        return NOTHING_SAID
    today = quota.compute_quota_config.resource_sharing_config
    if applied is None or not (is_stop(today) or put_right):
        return SharingBefore(today)
    announced = applied.announced
    at_last = announced if announced and announced.version <= quota.compute_quota_version else applied
    stopped = next((record for record in (at_last, applied) if is_stop(record.config.resource_sharing_config)), None)
    if stopped is None:
        return SharingBefore(today)
    within = stopped.sharing_within_budget
    if within is None:
        return SharingBefore(today, is_stopped=is_stop(today), is_known=not is_stop(today))
    return SharingBefore(within, is_stopped=is_stop(today) and not is_stop(within))


def sharing_after(said: ResourceSharingConfig | None, before: SharingBefore, *, in_budget: bool) -> SharingAfter:
    """Return how a team is to share. What the document does not say stays as it is; a used-up budget stops borrowing.

    A limit that comes back is written out, HyperPod's default too: whether an update that names none sets the default
    is not documented.
    """
    today = before.within_budget
    unsaid = said is None or (today is not None and _is_unsaid(said, today))
    wanted = today if unsaid else said
    within = None if unsaid and not before.is_known else wanted or ResourceSharingConfig()
    if is_stop(within) or (within and within.strategy is not SharingStrategy.LEND_AND_BORROW):
        return SharingAfter(wanted, within)  # there is no borrowing to stop
    if not in_budget:
        return SharingAfter(STOP, within, "stopped" if before.is_stopped else "stops")
    if before.is_stopped and within is not None:
        return SharingAfter(_written_out(within), within, "resumes")
    return SharingAfter(wanted, within)


def within_budget(config: ComputeQuotaConfig, told: ResourceSharingConfig | None) -> ResourceSharingConfig | None:
    """Return what to record of a config as the team's sharing within its budget; None where it is not known.

    A config without a stop says it itself, whatever its change says: a rollback writes the earlier value.
    """
    return told if is_stop(config.resource_sharing_config) else sharing_of(config)


def _is_unsaid(said: ResourceSharingConfig, today: ResourceSharingConfig) -> bool:
    """Return whether the document keeps the present limits."""
    return said.borrow_limit is None and said.absolute_borrow_limits is None and said.strategy is today.strategy


def _written_out(sharing: ResourceSharingConfig) -> ResourceSharingConfig:
    limit = DEFAULT_BORROW_LIMIT if sharing.borrow_limit is None else sharing.borrow_limit
    return sharing.model_copy(update={"borrow_limit": limit})
