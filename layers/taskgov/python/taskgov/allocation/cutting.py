"""Cut the planned quotas of one instance type back to the limits, so that the sums still fit.

`taskgov.allocation.partial` defines the rules, builds the slots, and combines the results of all types.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from taskgov.allocation.between import lost, rows_at
from taskgov.allocation.goals import NOTHING
from taskgov.allocation.parts import add, need, subtract

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskgov.allocation.between import Axis, TypeRows
    from taskgov.allocation.capacity import TypeCapacity
    from taskgov.allocation.goals import Goal
    from taskgov.allocation.limits import Limit
    from taskgov.allocation.parts import Vector
    from taskgov.allocation.quota_deltas import QuotaDelta, Reckoning
    from taskgov.allocation.row_numbers import Rows
    from taskgov.hyperpod.model import ComputeQuotaConfig

NOT_GIVEN: Final = "what others do not give up yet"
NOT_TAKEN: Final = "what nobody can take yet"
NOT_BETWEEN: Final = "numbers that cannot be written in between"

MOST_ROUNDS: Final = 3
"""Rounding gives less, then less can be taken, and what is taken less may have to be rounded again."""


@dataclass(slots=True)
class Slot:
    """The planned rows of one quota on one instance type, while they are cut."""

    goal: Goal
    rows: TypeRows
    axes: list[Axis] | None
    """None: the rows can only stay unchanged, or change to the planned rows as a whole."""
    deltas: Sequence[QuotaDelta]
    """The numbers that move, without leases."""
    today: Rows
    """The present rows, even if the quota is deleted on the way."""
    moves_leases: bool = False
    """A lease of the type begins or ends for the quota."""
    because: list[str] = field(default_factory=list)
    """Why it was held back, in the order found."""
    binding: list[tuple[Limit, QuotaDelta]] = field(default_factory=list)
    stays: bool = False

    def written(self) -> Rows:
        """Return the rows as they should be written."""
        if self.stays:
            return self.today
        return self.rows.wanted if self.axes is None else rows_at(self.rows, self.axes)

    def stay(self, because: str) -> None:
        """Leave the rows as they are."""
        if not self.stays and self.today != self.rows.wanted:
            self.stays = True
            self.say(because)

    def say(self, because: str) -> None:
        """Keep why it is held back, once."""
        if because not in self.because:
            self.because.append(because)


@dataclass(frozen=True, slots=True)
class TypeCut:
    """The slots of one instance type, and their bounds."""

    slots: Sequence[Slot]
    limits: Sequence[Limit]
    capacity: TypeCapacity
    reckoning: Reckoning
    others: Rows
    """Rows of quotas that no goal writes."""
    is_unbound: bool = False
    """Promises on the type are planned for future capacity: sums have no bound."""

    def run(self) -> None:
        """Cut the slots back to the limits, then to the bounds of the sums."""
        for slot in self.slots:
            for falls in (True, False):
                for delta in slot.deltas:
                    self._stop_at_limits(slot, delta, falls=falls)
        self._fit()
        for slot in self.slots:
            if not self._is_within(slot):
                slot.stay(NOT_BETWEEN)
        # A lease moves on both sides or on neither.
        torn = any(slot.stays and slot.moves_leases for slot in self.slots)
        self._fit()
        if torn or not self._is_sound():
            for slot in self.slots:
                slot.stay(NOT_BETWEEN)

    def _fit(self) -> None:
        for _ in range(MOST_ROUNDS):
            self._round()
            if not self.is_unbound:
                self._take_no_more_than_is_given()
        self._keep_in_the_pool()

    def _stop_at_limits(self, slot: Slot, delta: QuotaDelta, *, falls: bool) -> None:
        if slot.goal.is_deleted and delta.falls:
            return  # whether it may fall to nothing was judged before
        judging = [limit for limit in self.limits if limit.falls is falls and limit.judges(delta)]
        bounds = [(bound, limit) for limit in judging if (bound := limit.bound(delta)) is not None]
        beyond = [(bound, limit) for bound, limit in bounds if not limit.allows(delta)]
        if not beyond:
            return
        bound, limit = (max if falls else min)(beyond, key=itemgetter(0))
        slot.say(f"guardrails.{limit.field}")
        slot.binding.append((limit, delta))
        if slot.axes is None:
            slot.stay(f"guardrails.{limit.field}")
            return
        resource = delta.place[1]
        for axis in slot.axes:
            amount = axis.amounts.get(resource)
            lacking = bound - _total(slot.axes, resource) if falls else _total(slot.axes, resource) - bound
            if amount and lacking > 0 and (axis.goal < axis.start) is falls:
                axis.hold_back(lacking / amount)

    def _round(self) -> None:
        """Round numbers that the API would not store to whole ones, towards the present value."""
        for slot in self.slots:
            for axis in () if slot.stays else lost(slot.rows, slot.axes or ()):
                axis.hold_back(Fraction(0))

    def _take_no_more_than_is_given(self) -> None:
        bound, sums = self._bound_of_takes(), self._sums()
        for slot in sorted(self.slots, key=_takes_less_first):
            for axis in () if slot.stays else slot.axes or ():
                over = _over(sums, bound)
                distances = [over[name] / amount for name, amount in axis.taken.items() if amount and name in over]
                if distances and axis.value > axis.start:
                    had = self._need(slot.written())
                    axis.hold_back(max(distances))
                    slot.say(NOT_GIVEN)
                    sums = add((subtract(sums, had), self._need(slot.written())))

    def _keep_in_the_pool(self) -> None:
        usable = self.capacity.usable
        for slot in self.slots:
            for axis in () if slot.stays or not slot.goal.is_pool else slot.axes or ():
                if axis.value >= axis.start:
                    continue
                sums = self._sums()
                free = [
                    (usable.get(name, 0) - sums.get(name, 0)) / amount for name, amount in axis.taken.items() if amount
                ]
                kept = min(axis.value + max(min(free, default=Fraction(0)) // 1, 0), axis.start)
                if kept != axis.value:
                    axis.value = kept
                    slot.say(NOT_TAKEN)

    def _is_sound(self) -> bool:
        """Return whether the result can be written: it keeps every limit, and no number or sum leaves its bounds."""
        fits = self.is_unbound or not _over(self._sums(), self._bound())
        return fits and all(map(self._is_within, self.slots))

    def _is_within(self, slot: Slot) -> bool:
        if slot.stays or all(axis.value == axis.goal for axis in slot.axes or ()):
            return True
        if lost(slot.rows, slot.axes or ()):
            return False
        goal = replace(slot.goal, after=with_rows(slot.goal.after, slot.written()))
        moving = (delta for delta in self.reckoning.of(goal, self._name) if not (goal.is_deleted and delta.falls))
        if any(limit.stops(delta) for delta in moving for limit in self.limits):
            return False
        leases = self.reckoning.leases
        own = leases.without(goal.after, leases.net_after(goal))
        start, wanted, value = (
            self.reckoning.amounts(with_rows(NOTHING, rows))
            for rows in (slot.rows.own_stands, slot.rows.own_wanted, rows_of_type(own, self._name))
        )
        places = {*start, *wanted, *value}
        return all(
            min(start.get(place, 0), wanted.get(place, 0))
            <= value.get(place, 0)
            <= max(start.get(place, 0), wanted.get(place, 0))
            for place in places
        )

    @property
    def _name(self) -> str:
        return self.capacity.line.instance_type

    def _sums(self) -> Vector:
        return add((*(self._need(slot.written()) for slot in self.slots), self._need(self.others)))

    def _bound_of_takes(self) -> Vector:
        """Return the greater of capacity and the planned sum: decreases end over-commitment first."""
        wanted = add((*(self._need(slot.rows.wanted) for slot in self.slots), self._need(self.others)))
        total = self.capacity.total
        return {name: max(total.get(name, 0), wanted.get(name, 0)) for name in {*total, *wanted}}

    def _bound(self) -> Vector:
        """Return the greater of capacity and the sum before, by resource."""
        today = add((*(self._need(slot.today) for slot in self.slots), self._need(self.others)))
        total = self.capacity.total
        return {name: max(total.get(name, 0), today.get(name, 0)) for name in {*total, *today}}

    def _need(self, rows: Rows) -> Vector:
        return add(need(row, self.capacity.resources) or {} for row in rows)


def rows_of_type(config: ComputeQuotaConfig, instance_type: str) -> Rows:
    """Return the rows of one type."""
    return tuple(row for row in config.compute_quota_resources if row.instance_type == instance_type)


def with_rows(config: ComputeQuotaConfig, rows: Rows) -> ComputeQuotaConfig:
    """Return the config with these rows instead of its own."""
    return config.model_copy(update={"compute_quota_resources": rows})


def _takes_less_first(slot: Slot) -> tuple[bool, int, tuple[int, ...]]:
    """Sort the shared pool first, then the highest tier, within a tier the last by team and name."""
    letters = (-ord(letter) for letter in slot.goal.key)
    return not slot.goal.is_pool, -slot.goal.tier, (*letters, 1)


def _over(sums: Vector, bound: Vector) -> dict[str, Fraction]:
    """Return by how much each sum exceeds its bound, where it does."""
    over = {name: Fraction(amount - bound.get(name, 0)) for name, amount in sums.items()}
    return {name: amount for name, amount in over.items() if amount > 0}


def _total(axes: Iterable[Axis], resource: str) -> Fraction:
    return sum((axis.value * axis.amounts.get(resource, 0) for axis in axes), Fraction(0))
