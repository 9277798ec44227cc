"""Cut a plan back to what the limits of decreases and increases allow (`guardrails.onLimit: partial`).

The planner calls `hold_back` with what every quota is to become, before it makes writes of it. Instance type by
instance type (`taskgov.allocation.cutting`):

1. Each number of each quota stops at its limit; whole instances, accelerators and partitions stay whole, vCPU and
   memory are rounded to whole numbers, towards what stands. What a lease moves is set aside, and moves in full.
2. What is not given is not taken: where a sum would exceed capacity (and what is wanted of it in the end), those who
   take take less; the shared pool first, then the highest tier number, within a tier the last by name. So what is given
   first ends over-commitment.
3. The shared pool keeps what nobody can take yet.

No number goes away from its goal or beyond it. Where that cannot be done for a quota on a type (its rows would come out
as numbers that the API does not keep, or a limit would still not hold), it stays as it is on it; where the sums do not
come out then, or a lease would move on one side only, all quotas do. A failed quota is deleted as a whole, or not at
all. A quota has 15 rows at most: what it gains waits while it keeps too many of what it is to lose.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from taskgov.allocation.between import TypeRows, axes_between
from taskgov.allocation.cutting import Slot, TypeCut, rows_of_type, with_rows
from taskgov.allocation.desired_quotas import MAX_ROWS
from taskgov.allocation.goals import NOTHING
from taskgov.allocation.limits import limits
from taskgov.allocation.parts import row_key
from taskgov.allocation.plan import quota_key
from taskgov.allocation.quota_deltas import Reckoning
from taskgov.allocation.set_aside import net_of_type
from taskgov.allocation.wording import said

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from taskgov.allocation.capacity import TypeCapacity
    from taskgov.allocation.goals import Goal
    from taskgov.allocation.leases import Given
    from taskgov.allocation.limits import Limit
    from taskgov.allocation.quota_deltas import QuotaDelta
    from taskgov.allocation.row_numbers import Rows
    from taskgov.hyperpod.model import ComputeQuota
    from taskgov.policy.document import PolicyDocument
    from taskgov.snapshot.model import Snapshot

NEXT_STEP: Final = timedelta(minutes=5)
"""When the next step is due, where a limit of a single step held a plan back."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The goals within the limits, and what was held back."""

    goals: tuple[Goal, ...]
    """In the order given; `after` is cut back. A failed quota that is not to be deleted is no longer `is_deleted`."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Key of the quota (`Goal.key`) -> a sentence on what of it was held back, and by what."""
    recheck_at: datetime | None = None
    """When the rest can continue; None when nothing was held back, or nothing moves."""
    moves: bool = True
    """Whether anything still moves. If not, no step is small enough: the plan is blocked as without `partial`."""


def hold_back(
    snapshot: Snapshot,
    policy: PolicyDocument,
    goals: Iterable[Goal],
    given: Iterable[Given],
    capacities: Mapping[str, TypeCapacity],
) -> HeldBack:
    """Return the goals cut back to what the document's limits allow.

    `goals` are all quotas that the plan governs or deletes, those that do not change too; every other quota of the
    snapshot counts as it stands. `given` are the leases that hold in the plan.
    """
    wanted = tuple(goals)
    cutting = _Cutting(snapshot, policy, wanted, given, capacities)
    left: frozenset[str] = frozenset()
    while True:
        held = cutting.made(left)
        crowded = [goal for goal in held.goals if len(goal.after.compute_quota_resources) > MAX_ROWS]
        added = {name for goal in crowded for name in _newest_type(goal)} - left
        if not added:
            return held
        left |= added


def _newest_type(goal: Goal) -> list[str]:
    """Return a type that the quota would gain, and for which it has no row to spare."""
    had = {row.instance_type for row in goal.stands.compute_quota_resources}
    return sorted({row.instance_type for row in goal.after.compute_quota_resources} - had)[-1:]


class _Cutting:
    """The cutting of one plan: what all its types need."""

    def __init__(
        self,
        snapshot: Snapshot,
        policy: PolicyDocument,
        goals: tuple[Goal, ...],
        given: Iterable[Given],
        capacities: Mapping[str, TypeCapacity],
    ) -> None:
        self._now, self._goals, self._capacities = snapshot.taken_at, goals, capacities
        self._reckoning = Reckoning(snapshot, policy, given, capacities)
        self._limits = limits(policy.guardrails)
        self._overcommit = policy.capacity.overcommit_percent > 0
        self._deltas = {goal.key: tuple(self._reckoning.of(goal)) for goal in goals}
        leases = self._reckoning.leases
        self._leased = {goal.key: (leases.net_before(goal), leases.net_after(goal)) for goal in goals}
        keys = {goal.key for goal in goals}
        # A quota whose creation failed counts where the plan leaves it alone: allocation and waves keep its room, too.
        others = (quota for quota in snapshot.quotas if _key_of(quota) not in keys)
        self._others = tuple(row for quota in others for row in quota.compute_quota_config.compute_quota_resources)

    def made(self, left: frozenset[str]) -> HeldBack:
        """Return what is left of the goals. All quotas stay as they are on the types in `left`: they lack rows."""
        kept = {goal.key: found for goal in self._goals if (found := self._too_much_in_it(goal))}
        types = {delta.place[0] for _, delta in self._beyond()} | left
        if not types and not kept:
            return HeldBack(self._goals)
        goals = [_not_deleted(goal) if goal.key in kept else goal for goal in self._goals]
        types |= {
            row.instance_type for goal in goals if goal.key in kept for row in goal.stands.compute_quota_resources
        }
        slots: dict[str, list[Slot]] = {}
        for name in sorted(types):
            for slot in self._cut(name, goals, stays=name in left):
                slots.setdefault(slot.goal.key, []).append(slot)
        cut = tuple(_with_slots(goal, slots[goal.key], types) for goal in goals)
        notes = {goal.key: _note(slots[goal.key], kept.get(goal.key, ())) for goal in goals}
        binding = [stop for found in kept.values() for stop in found]
        binding += [stop for found in slots.values() for slot in found for stop in slot.binding]
        moves = any(map(self._differs, cut))
        moments = [self._moment(limit, delta) for limit, delta in binding]
        recheck_at = min(moments, default=self._now + NEXT_STEP)
        told = {name: note for name, note in notes.items() if note}
        return HeldBack(cut, told, recheck_at if moves else None, moves)

    def _beyond(self) -> list[tuple[Limit, QuotaDelta]]:
        """Return the numbers beyond a limit, of all quotas that are not deleted."""
        moving = (
            delta for goal in self._goals for delta in self._deltas[goal.key] if not (goal.is_deleted and delta.falls)
        )
        return [(limit, delta) for delta in moving for limit in self._limits if limit.stops(delta)]

    def _too_much_in_it(self, goal: Goal) -> list[tuple[Limit, QuotaDelta]]:
        """Return the limits that keep a failed quota from being deleted, each with the number that is beyond it."""
        falling = [delta for delta in self._deltas[goal.key] if goal.is_deleted and delta.falls]
        return [(limit, delta) for delta in falling for limit in self._limits if limit.stops(delta)]

    def _cut(self, instance_type: str, goals: Iterable[Goal], *, stays: bool) -> list[Slot]:
        slots = [self._slot(goal, instance_type) for goal in goals]
        if stays:
            for slot in slots:
                slot.stay(f"the {MAX_ROWS} rows that a quota can have")
            return slots
        capacity = self._capacities[instance_type]
        others = tuple(row for row in self._others if row.instance_type == instance_type)
        unbound = self._overcommit and not capacity.has_nodes
        TypeCut(slots, self._limits, capacity, self._reckoning, others, unbound).run()
        return slots

    def _slot(self, goal: Goal, instance_type: str) -> Slot:
        leases, (before, after) = self._reckoning.leases, self._leased[goal.key]
        today, wanted = (rows_of_type(config, instance_type) for config in (goal.stands, goal.after))
        start = () if goal.is_deleted else today
        own = [
            rows_of_type(leases.without(with_rows(NOTHING, rows), net_of_type(net, instance_type)), instance_type)
            for rows, net in ((start, before), (wanted, after))
        ]
        rows = TypeRows(start, wanted, *own)
        moving = [delta for delta in self._deltas[goal.key] if delta.place[0] == instance_type]
        if self._is_same(start, wanted):
            return Slot(goal, rows, None, moving, today)
        # What leases brought is known of what a path began from, and not of its low write.
        half_way = not goal.is_deleted and not self._is_same(today, rows_of_type(goal.before, instance_type))
        before, after = net_of_type(before, instance_type), net_of_type(after, instance_type)
        leased = before or after
        axes = None if half_way and leased else axes_between(rows, self._reckoning.resources_of(instance_type))
        moves_leases = before != after
        return Slot(goal, rows, axes, moving, today, moves_leases=moves_leases)

    def _is_same(self, before: Rows, after: Rows) -> bool:
        had, has = (self._reckoning.amounts(with_rows(NOTHING, rows)) for rows in (before, after))
        return had == has

    def _differs(self, goal: Goal) -> bool:
        return goal.is_deleted or self._reckoning.amounts(goal.stands) != self._reckoning.amounts(goal.after)

    def _moment(self, limit: Limit, delta: QuotaDelta) -> datetime:
        """Return when a limit allows more: a step later, or when what it measures from has left the period."""
        return self._now + NEXT_STEP if limit.hours is None else delta.leaves_at or self._now + NEXT_STEP


def _key_of(quota: ComputeQuota) -> str:
    return quota_key(quota.compute_quota_target.team_name, quota.name)


def _not_deleted(goal: Goal) -> Goal:
    return replace(goal, after=goal.stands, is_deleted=False)


def _with_slots(goal: Goal, slots: Iterable[Slot], types: Iterable[str]) -> Goal:
    """Return the goal with the rows of its slots on these types."""
    own = [row for row in goal.after.compute_quota_resources if row.instance_type not in types]
    rows = sorted((*own, *(row for slot in slots for row in slot.written())), key=row_key)
    return replace(goal, after=with_rows(goal.after, tuple(rows)))


def _note(slots: Iterable[Slot], kept: Iterable[tuple[Limit, QuotaDelta]]) -> str:
    """Return what was held back of one quota, and by what; empty when nothing was."""
    fields = sorted({f"guardrails.{limit.field}" for limit, _ in kept})
    if fields:
        return f"held back by {' and '.join(fields)}: it failed, and is not deleted with what it holds"
    held = [slot for slot in slots if slot.because]
    if not held:
        return ""
    reasons = dict.fromkeys(because for slot in held for because in slot.because)
    return f"held back by {' and '.join(reasons)}: {', '.join(map(_said_slot, held))}; the rest follows"


def _said_slot(slot: Slot) -> str:
    [name] = {row.instance_type for row in (*slot.today, *slot.rows.wanted)}
    numbers = [_said(rows) for rows in (slot.today, slot.written(), slot.rows.wanted)]
    return f"{name} {numbers[0]} -> {numbers[1]} of {numbers[2]} wanted"


def _said(rows: Rows) -> str:
    return " and ".join(map(said, rows)) or "0"
