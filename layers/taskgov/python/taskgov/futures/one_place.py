"""Queues where everybody requests one and the same flavor and resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from taskgov.futures.queues import INFINITE, Queue

if TYPE_CHECKING:
    from taskgov.futures.asks import Amounts


class OnePlace(Queue):
    """A queue where everybody requests one and the same flavor and resource: the same answers, sooner."""

    plain: ClassVar[bool] = True

    def fits(self, asks: Amounts) -> bool:
        """Return whether an amount fits as things stand."""
        amount = asks[0][1]
        return amount <= 0 or amount <= self.available(0)

    def add(self, amounts: Amounts) -> None:
        """Count usage."""
        amount, before = amounts[0][1], self.used[0]
        self.used[0] = before + amount
        kept = self.local[0] - before
        if kept <= 0:
            self.tree.used[0] += amount
        elif amount > kept:
            self.tree.used[0] += amount - kept

    def remove(self, amounts: Amounts) -> None:
        """Undo `add`."""
        amount, before = amounts[0][1], self.used[0]
        self.used[0] = before - amount
        spilled = before - self.local[0]
        if spilled > 0:
            self.tree.used[0] -= min(amount, spilled)

    def exceeds(self, mask: int) -> bool:
        """Return whether the queue uses more than its own quota."""
        return bool(mask) and self.used[0] > self.nominal[0]

    def borrows(self) -> bool:
        """Return whether the queue holds more than its quota, if it has one."""
        return self.used[0] > self.nominal[0] and bool(self.counted)

    def would_borrow(self, asks: Amounts) -> bool:
        """Return whether an amount exceeds the queue's own quota."""
        return self.used[0] + asks[0][1] > self.nominal[0]

    def would_borrow_for(self, asks: Amounts) -> bool:
        """Return whether an amount, if it is one, exceeds the queue's own quota."""
        amount = asks[0][1]
        return amount > 0 and self.used[0] + amount > self.nominal[0]

    def may_ever_fit(self, asks: Amounts) -> bool:
        """Return whether an amount fits the borrowing limit while this queue keeps what it has."""
        amount = asks[0][1]
        return amount <= 0 or self.alone or self.used[0] + amount <= self.nominal[0] + self.limit[0]

    def share(self) -> float:
        """Return the dominant resource share as a number to compare by."""
        return self._share(self.used[0])

    def share_with(self, asks: Amounts) -> float:
        """Return the dominant resource share with an amount in addition to what the queue uses."""
        return self._share(self.used[0] + asks[0][1])

    def stays_within(self, asks: Amounts, mask: int) -> bool:
        """Return whether the queue with an amount in addition stays within its own quota."""
        return not mask or self.used[0] + asks[0][1] <= self.nominal[0]

    def _share(self, used: int) -> float:
        over = used - self.nominal[0]
        lendable = self.tree.lendable[0]
        if over <= 0 or lendable <= 0 or not self.counted:
            return 0.0
        weight = self.spec.weight
        return 1000.0 * over / lendable * INFINITE if weight == 0 else 1000.0 * over / lendable / weight
