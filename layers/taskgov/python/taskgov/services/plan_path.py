"""Answer which writes of a plan concern one quota, and which make a wave.

A quota may be written twice by one plan, or deleted and created again: then it has several changes, in several waves.
All code that judges, restores or describes a plan uses it, so that it handles quotas and not writes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate, groupby

from taskgov.allocation.plan import DELETIONS, POLICY_KINDS, Change
from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig


class Direction(StrEnum):
    """Whether changes are written or undone (`taskgov rollback`)."""

    APPLY = "apply"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class QuotaPath:
    """The changes of one quota (or of the cluster policy), in the order of their waves: at least one."""

    changes: tuple[Change, ...]

    @property
    def first(self) -> Change:
        """The first write, which has the value before the plan."""
        return self.changes[0]

    @property
    def last(self) -> Change:
        """The last write, which has the goal and why."""
        return self.changes[-1]

    @property
    def subject(self) -> str:
        """What the path writes (`Change.subject`)."""
        return self.first.subject

    @property
    def is_policy(self) -> bool:
        """Whether it is the cluster policy's."""
        return self.first.kind in POLICY_KINDS

    @property
    def before(self) -> ComputeQuotaConfig | SchedulerConfig | None:
        """What stood before the plan; None where nothing did."""
        return self.first.before

    @property
    def target_before(self) -> ComputeQuotaTarget | None:
        """Its team and weight before the plan."""
        return self.first.target_before

    @property
    def deleted_ids(self) -> frozenset[str]:
        """Ids of what the path deletes; the same name may be created again."""
        return frozenset(change.resource_id or "" for change in self.changes if change.kind in DELETIONS)

    def before_change(self, change: Change) -> Change | None:
        """Return the write that comes before this one on the path, or None for the first."""
        earlier = [other for other in self.changes if other.index < change.index]
        return earlier[-1] if earlier else None


def paths(changes: Iterable[Change]) -> tuple[QuotaPath, ...]:
    """Return one path for each quota that the changes concern, in the order of their first writes."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.subject, []).append(change)
    return tuple(QuotaPath(tuple(mine)) for mine in found.values())


def path_of(changes: Iterable[Change], change: Change) -> QuotaPath:
    """Return the path that this change is part of."""
    return QuotaPath(tuple(other for other in changes if other.subject == change.subject))


def first_writes(changes: Iterable[Change]) -> frozenset[int]:
    """Return the indexes at which quotas are written for the first time: so many quotas does the plan change."""
    return frozenset(path.first.index for path in paths(changes))


def wave_ends(changes: Iterable[Change]) -> tuple[int, ...]:
    """Return how many changes have been made when each wave ends: (3, 7) says that changes 0 to 2 are the first."""
    return tuple(accumulate(len(tuple(wave)) for _, wave in groupby(changes, key=lambda change: change.wave)))


def waves(changes: Iterable[Change]) -> tuple[tuple[Change, ...], ...]:
    """Return the changes by wave, in order; a plan that was stored before there were waves is one."""
    return tuple(tuple(wave) for _, wave in groupby(changes, key=lambda change: change.wave))


def undone(change: Change, path: QuotaPath) -> Change:
    """Return the write that takes a quota back from `after` to `before`.

    Back from the second of two writes the quota is at the low one again. Raises InvalidRequestError where the change
    does not say what stood before it.
    """
    if change.before is None:
        raise InvalidRequestError(f"change {change.index} does not say what stood before it")
    earlier = path.before_change(change)
    return replace(
        change,
        target_version=None,
        before=change.after,
        after=change.before,
        target_before=change.target_after,
        target_after=change.target_before,
        gpus_before=change.gpus_after,
        gpus_after=change.gpus_before,
        is_low=earlier.is_low if earlier else change.began_from is not None,
        leased=earlier.leased if earlier else None,
        demand=earlier.demand if earlier else None,
    )
