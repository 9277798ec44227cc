"""Cut a plan back to what the limits of decreases and increases allow (`guardrails.onLimit: partial`).

The planner calls `hold_back` with the planned quotas, before it turns them into writes. For each instance type
(`taskgov.allocation.cutting`):

1. Each number of a quota stops at its limit. Instances, accelerators and partitions stay whole. vCPU and memory are
   rounded to whole numbers, towards the present value. Amounts moved by a lease are not limited, and move in full.
2. Increases shrink by what decreases do not free. If a sum would exceed capacity and the planned sum, the shared pool
   gets less first, then the quotas with the highest tier number, within a tier the last by name. The first decreases
   therefore reduce over-commitment.
3. The shared pool keeps what no quota can take yet.

Rules for cases that cannot be cut:

* No number moves away from its goal or beyond it.
* A quota stays unchanged on a type if its cut rows would have numbers that the API does not store, or would still
  exceed a limit.
* All quotas stay unchanged on a type if the sums are then wrong, or a lease would move on one side only.
* A failed quota is deleted completely, or not at all.
* A quota has at most 15 rows. New rows wait while too many old ones remain.
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
"""When the next step is due, after a limit of a single step held a plan back."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The goals within the limits, and what was held back."""

    goals: tuple[Goal, ...]
    """In the given order, with `after` cut back. `is_deleted` is unset for a failed quota that must stay."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Key of the quota (`Goal.key`) -> a sentence on what was held back, and by which limit."""
    recheck_at: datetime | None = None
    """When the rest can continue; None if nothing was held back, or nothing moves."""
    moves: bool = True
    """Whether anything still moves. If not, no step is small enough, and the plan is blocked as without `partial`."""


def hold_back(
    snapshot: Snapshot,
    policy: PolicyDocument,
    goals: Iterable[Goal],
    given: Iterable[Given],
    capacities: Mapping[str, TypeCapacity],
) -> HeldBack:
    """Return the goals cut back to what the document's limits allow.

    `goals` are all quotas that the plan governs or deletes, including unchanged ones. Every other quota of the snapshot
    counts with its present value. `given` are the active leases of the plan.
    """
    wanted = tuple(goals)
    cutting = _Cutting(snapshot, policy, wanted, given, capacities)
    left: frozenset[str] = frozenset()
    while True:
        held = cutting.cut_back(left)
        crowded = [goal for goal in held.goals if len(goal.after.compute_quota_resources) > MAX_ROWS]
        added = {name for goal in crowded for name in _newest_type(goal)} - left
        if not added:
            return held
        left |= added


def _newest_type(goal: Goal) -> list[str]:
    """Return the last (by name) of the types that the quota would gain, to leave out; empty if it gains none."""
    had = {row.instance_type for row in goal.stands.compute_quota_resources}
    return sorted({row.instance_type for row in goal.after.compute_quota_resources} - had)[-1:]


class _Cutting:
    """Cuts one plan. Has what all instance types need."""

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
        # A failed creation that the plan leaves alone counts too: allocation and waves also reserve its room.
        others = (quota for quota in snapshot.quotas if _key_of(quota) not in keys)
        self._others = tuple(row for quota in others for row in quota.compute_quota_config.compute_quota_resources)

    def cut_back(self, left: frozenset[str]) -> HeldBack:
        """Return the goals, cut back. On the types in `left` all quotas stay unchanged, because they lack rows."""
        undeletable = {goal.key: found for goal in self._goals if (found := self._limits_of_deletion(goal))}
        types = {delta.place[0] for _, delta in self._exceeded()} | left
        if not types and not undeletable:
            return HeldBack(self._goals)
        goals = [_not_deleted(goal) if goal.key in undeletable else goal for goal in self._goals]
        types |= {
            row.instance_type
            for goal in goals
            if goal.key in undeletable
            for row in goal.stands.compute_quota_resources
        }
        slots: dict[str, list[Slot]] = {}
        for name in sorted(types):
            for slot in self._cut(name, goals, stays=name in left):
                slots.setdefault(slot.goal.key, []).append(slot)
        cut = tuple(_with_slots(goal, slots[goal.key], types) for goal in goals)
        notes = {goal.key: _note(slots[goal.key], undeletable.get(goal.key, ())) for goal in goals}
        binding = [stop for found in undeletable.values() for stop in found]
        binding += [stop for found in slots.values() for slot in found for stop in slot.binding]
        moves = any(map(self._differs, cut))
        moments = [self._moment(limit, delta) for limit, delta in binding]
        recheck_at = min(moments, default=self._now + NEXT_STEP)
        written_notes = {name: note for name, note in notes.items() if note}
        return HeldBack(cut, written_notes, recheck_at if moves else None, moves)

    def _exceeded(self) -> list[tuple[Limit, QuotaDelta]]:
        """Return the numbers that exceed a limit, without the decreases of quotas that are deleted."""
        moving = (
            delta for goal in self._goals for delta in self._deltas[goal.key] if not (goal.is_deleted and delta.falls)
        )
        return [(limit, delta) for delta in moving for limit in self._limits if limit.stops(delta)]

    def _limits_of_deletion(self, goal: Goal) -> list[tuple[Limit, QuotaDelta]]:
        """Return the limits that forbid deleting a failed quota, each with the number that exceeds it."""
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
        # The amounts of leases are known for the value that a path began from, but not for its low write.
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
        """Return when a limit allows more: one step later, or when the value it measures from leaves the period."""
        return self._now + NEXT_STEP if limit.hours is None else delta.leaves_at or self._now + NEXT_STEP


def _key_of(quota: ComputeQuota) -> str:
    return quota_key(quota.compute_quota_target.team_name, quota.name)


def _not_deleted(goal: Goal) -> Goal:
    return replace(goal, after=goal.stands, is_deleted=False)


def _with_slots(goal: Goal, slots: Iterable[Slot], types: Iterable[str]) -> Goal:
    """Return the goal with its rows on `types` replaced by those of its slots."""
    own = [row for row in goal.after.compute_quota_resources if row.instance_type not in types]
    rows = sorted((*own, *(row for slot in slots for row in slot.written())), key=row_key)
    return replace(goal, after=with_rows(goal.after, tuple(rows)))


def _note(slots: Iterable[Slot], undeletable: Iterable[tuple[Limit, QuotaDelta]]) -> str:
    """Return what was held back of one quota, and by which limits; empty if nothing was."""
    fields = sorted({f"guardrails.{limit.field}" for limit, _ in undeletable})
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
