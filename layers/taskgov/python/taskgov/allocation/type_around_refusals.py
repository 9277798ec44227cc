"""Plan around refused writes on one instance type: free units go to the team that is farthest from its goal.

`taskgov.allocation.around_refusals` defines the order, and calls this module for each type. Units are distributed by
the divisor method (`taskgov.division`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

from taskgov.allocation.cutting import rows_of_type
from taskgov.allocation.lines import Line, lines_through, rows_on
from taskgov.allocation.parts import above, add, difference, has_room, is_in_parts, need, row_of_parts, subtract
from taskgov.division import Party, divide_while
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.document import CapacityBasis

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskgov.allocation.capacity import TypeCapacity
    from taskgov.allocation.parts import Vector
    from taskgov.allocation.row_numbers import Rows

WANTED, STANDS, EARLIER = range(3)
"""The config that a line of a quota has its number from."""


@dataclass(frozen=True, slots=True)
class Quota:
    """One governed quota: its planned value, its present value, and its value before the interrupted plan."""

    team: str
    wanted: ComputeQuotaConfig
    stands: ComputeQuotaConfig
    earlier: ComputeQuotaConfig | None = None
    """None where no interrupted plan wrote the quota. A refused quota gets it back as a whole."""
    is_pool: bool = False


@dataclass(slots=True)
class _Slot:
    """The new rows of one quota on one type, while they are computed."""

    quota: Quota
    configs: tuple[Rows, Rows, Rows]
    """Wanted, standing, earlier."""
    lines: Sequence[Line] | None
    """None where rows cannot change in parts: they stay, or all become the wanted ones."""
    values: list[Fraction] = field(default_factory=list)
    whole: Rows | None = None
    """The rows as a whole, where no line lies between two configs."""

    def rows(self) -> Rows:
        if self.whole is not None:
            return self.whole
        return rows_on(self.lines or (), self.values, self.configs)

    def at(self, values: Mapping[int, Fraction]) -> Rows:
        """Return the rows with some lines at other values."""
        moved = [values.get(number, value) for number, value in enumerate(self.values)]
        return rows_on(self.lines or (), moved, self.configs)


class TypeAroundRefusals:
    """One instance type: what is free of it, and what every quota has of it so far."""

    def __init__(
        self,
        name: str,
        capacity: TypeCapacity,
        refused: Sequence[Quota],
        others: Sequence[Quota],
        left_alone: Rows,
    ) -> None:
        """Take what there is of the type, the quotas that are refused, the others, and the rows of those left alone."""
        self._name, self._capacity = name, capacity
        self._slots = [self._slot(quota) for quota in others]
        self._lacking = {quota.team: self._lacks(quota.wanted, quota.stands) for quota in refused}
        standing = [self._of(quota.stands) for quota in refused]
        alone = self._need(row for row in left_alone if row.instance_type == name)
        taken = add((alone, *standing, *(self._need(slot.rows()) for slot in self._slots)))
        self._free = {key: capacity.total.get(key, 0) - taken.get(key, 0) for key in {*capacity.total, *taken}}

    def can_give_back(self, refused: Quota) -> bool:
        """Return whether there is room for what stood before the low write of a refused quota."""
        return has_room(self._free, self._more(refused))

    def give_back(self, refused: Quota) -> None:
        """Give a refused quota what stood before its low write."""
        self._free = subtract(self._free, self._more(refused))
        self._lacking[refused.team] = self._lacks(refused.wanted, refused.earlier or refused.stands)

    def run(self) -> dict[str, Rows]:
        """Return the rows of every quota."""
        teams = [slot for slot in self._slots if not slot.quota.is_pool]
        pools = [slot for slot in self._slots if slot.quota.is_pool]
        for slots in (teams, pools):
            self._take_whole(slots)
            self._raise(slots, WANTED)
        lacking = add(self._lacking.values())
        kept = {key: min(amount, self._free.get(key, 0)) for key, amount in lacking.items()}
        for place in (STANDS, EARLIER):
            kept = self._raise(teams, place, kept)
        # A row that keeps more than is wanted is written out, and its numbers are rounded down: that is free again.
        for slots in (teams, pools):
            self._raise(slots, WANTED)
        for slot in pools:
            self._hold_the_rest(slot, kept)
        return {slot.quota.team: slot.rows() for slot in self._slots}

    def _slot(self, quota: Quota) -> _Slot:
        earlier = quota.earlier or quota.stands
        wanted, stands, before = (rows_of_type(config, self._name) for config in (quota.wanted, quota.stands, earlier))
        configs = (wanted, stands, before)
        lines = lines_through(configs, self._capacity.resources)
        slot = _Slot(quota, configs, lines)
        if lines is None:
            had, has = self._need(stands), self._need(wanted)
            slot.whole = wanted if all(amount <= had.get(key, 0) for key, amount in has.items()) else stands
        else:
            slot.values = [min(line.numbers[WANTED], line.numbers[STANDS]) for line in lines]
        return slot

    def _take_whole(self, slots: Iterable[_Slot]) -> None:
        """Give what cannot be given in part."""
        for slot in slots:
            wanted = slot.configs[WANTED]
            if slot.lines is None and slot.whole != wanted and self._spend([(slot, wanted)]) is not None:
                slot.whole = wanted

    def _raise(self, slots: Iterable[_Slot], place: int, budget: Vector | None = None) -> dict[str, int]:
        """Raise lines to what one of the configs has, as far as there is room and the budget goes.

        Return what is left of the budget, which is for what is more than wanted.
        """
        tops = {
            f"{slot.quota.team} {number:04}": (slot, number, line.numbers[place])
            for slot in slots
            for number, line in enumerate(slot.lines or ())
            if line.numbers[place] > slot.values[number]
        }
        if not tops:
            return dict(budget or {})
        at_once = self._all_at_once(list(tops.values()), budget)
        if at_once is not None:
            return subtract(budget or {}, at_once)
        left = dict(budget or {})

        def take(key: str) -> bool:
            slot, number, top = tops[key]
            value = min(Fraction(floor(slot.values[number]) + 1), top)
            spent = self._spend([(slot, slot.at({number: value}))], None if budget is None else left)
            if spent is None:
                return False
            slot.values[number] = value
            left.update(subtract(left, spent))
            return True

        distance = {key: ceil(top - slot.values[number]) for key, (slot, number, top) in tops.items()}
        divide_while([Party(key, weight, ceiling=weight) for key, weight in distance.items()], take)
        return left

    def _all_at_once(self, tops: Iterable[tuple[_Slot, int, Fraction]], budget: Vector | None) -> Vector | None:
        """Raise all lines at once where there is room for all of them; None where there is not."""
        by_slot: dict[str, tuple[_Slot, dict[int, Fraction]]] = {}
        for slot, number, top in tops:
            by_slot.setdefault(slot.quota.team, (slot, {}))[1][number] = top
        spent = self._spend([(slot, slot.at(values)) for slot, values in by_slot.values()], budget)
        for slot, values in by_slot.values() if spent is not None else ():
            slot.values = [values.get(number, value) for number, value in enumerate(slot.values)]
        return spent

    def _hold_the_rest(self, slot: _Slot, kept: Vector) -> None:
        """Give the shared pool the rest, in the units of its row, without over-commitment."""
        wanted = slot.rows()
        if wanted != slot.configs[WANTED] or len(wanted) > 1:
            return
        total, usable = self._capacity.total, self._capacity.usable
        planned = {key: total.get(key, 0) - usable.get(key, 0) for key in kept}
        left = {key: max(min(amount, self._free[key] - planned[key]), 0) for key, amount in kept.items()}
        row = self._row_with(wanted, left)
        if row is not None and (row,) != wanted and self._spend([(slot, (row,))], kept) is not None:
            slot.whole = (row,)

    def _row_with(self, wanted: Rows, left: Vector) -> ComputeQuotaResource | None:
        """Return the pool's row with `left` on top, in whole units; None where it has none and nothing is left."""
        teams = [row for slot in self._slots if not slot.quota.is_pool for row in slot.rows()]
        # A row of nothing says nothing of the units.
        told = wanted if any(self._need(wanted).values()) else teams
        in_parts = any(map(is_in_parts, told)) or self._capacity.basis is CapacityBasis.ALLOCATABLE
        if in_parts:
            row = row_of_parts(self._name, add((self._need(wanted), left)))
            return row if wanted or any((row.accelerators, row.vcpu, row.memory_in_gib)) else None
        parts = (left.get(key, 0) // amount for key, amount in self._capacity.per_instance.items() if amount)
        count = (wanted[0].count or 0 if wanted else 0) + min(parts, default=0)
        return ComputeQuotaResource(instance_type=self._name, count=count) if wanted or count else None

    def _spend(self, changes: Iterable[tuple[_Slot, Rows]], budget: Vector | None = None) -> dict[str, int] | None:
        """Take from what is free what these rows have more than those so far; None where that or the budget lacks.

        Return what it takes from the budget: what is more than wanted. Measured from what a quota has so far, the same
        rows would cost the next plan more, as rows that are written out are rounded down, and what is wanted is not.
        """
        more: dict[str, int] = {}
        kept: dict[str, int] = {}
        for slot, rows in changes:
            had, has, wanted = map(self._need, (slot.rows(), rows, slot.configs[WANTED]))
            more = add((more, difference(had, has)))
            kept = add((kept, difference(above(had, wanted), above(has, wanted))))
        if not has_room(self._free, more) or (budget is not None and not has_room(budget, kept)):
            return None
        self._free = subtract(self._free, more)
        return kept

    def _more(self, refused: Quota) -> Vector:
        return difference(self._of(refused.stands), self._of(refused.earlier or refused.stands))

    def _lacks(self, wanted: ComputeQuotaConfig, stands: ComputeQuotaConfig) -> Vector:
        had = self._of(stands)
        return {key: max(amount - had.get(key, 0), 0) for key, amount in self._of(wanted).items()}

    def _of(self, config: ComputeQuotaConfig) -> Vector:
        return self._need(rows_of_type(config, self._name))

    def _need(self, rows: Iterable[ComputeQuotaResource]) -> Vector:
        return add(need(row, self._capacity.resources) or {} for row in rows)
