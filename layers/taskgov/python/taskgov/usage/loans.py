"""Who lends what to whom, where nobody wrote it down: one flavor and resource of one cohort.

A cohort is a common pool: Kueue records who holds more than its quota, but not whose quota that is. So loans
are **attributed**: to everybody with idle quota, in proportion to it (`taskgov.division`, ties by name). What is held
above the quota and cannot be a loan is over quota:

* beyond the borrowing limit, or outside a cohort, nothing can have been borrowed;
* together nobody can have borrowed more than the others leave idle.

That is what remains when a quota was lowered under running work. An excess that the limit allows and that others leave
idle *is* borrowing, however it came about: Kueue treats it so, and may reclaim it. Sums are exact: borrowed = lent.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from taskgov.division import Party, divide


class Account(NamedTuple):
    """What one queue (or cohort with quota of its own) is guaranteed and holds. A limit of None means no limit."""

    name: str
    nominal: int
    used: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None

    @property
    def excess(self) -> int:
        """What is held above the quota."""
        return max(0, self.used - self.nominal)

    @property
    def unused(self) -> int:
        """What of the quota its owner does not use."""
        return max(0, self.nominal - self.used)

    @property
    def borrowable(self) -> int:
        """What of the excess the borrowing limit allows."""
        return self.excess if self.borrowing_limit is None else min(self.excess, self.borrowing_limit)

    @property
    def lendable(self) -> int:
        """What of the unused quota the lending limit allows."""
        return self.unused if self.lending_limit is None else min(self.unused, self.lending_limit)


class LoanAttribution(NamedTuple):
    """How one account stands: its excess is `borrowed + over_quota`, its unused quota `lent + idle`."""

    borrowed: int = 0
    over_quota: int = 0
    lent: int = 0
    idle: int = 0


def attribute_loans(accounts: Sequence[Account]) -> Mapping[str, LoanAttribution]:
    """Attribute the loans of one flavor and resource of one cohort, by account name.

    Example: 3 are missing, and the two lenders have 4 and 2 idle.
        >>> loans = attribute_loans([Account("a", 2, 5, borrowing_limit=3), Account("b", 4, 0), Account("c", 3, 1)])
        >>> loans["a"].borrowed, loans["b"].lent, loans["c"].lent, loans["c"].idle
        (3, 2, 1, 1)

    """
    borrowable = {account.name: amount for account in accounts if (amount := account.borrowable)}
    if not borrowable:
        return {account.name: attribute_alone(account) for account in accounts}
    lendable = {account.name: amount for account in accounts if (amount := account.lendable)}
    lent_in_all = min(sum(lendable.values()), sum(borrowable.values()))
    borrowed, lent = apportion(lent_in_all, borrowable), apportion(lent_in_all, lendable)
    return {
        account.name: _attribution(account, borrowed.get(account.name, 0), lent.get(account.name, 0))
        for account in accounts
    }


def attribute_alone(account: Account) -> LoanAttribution:
    """Return how an account stands outside any cohort: it neither borrows nor lends."""
    return _attribution(account, borrowed=0, lent=0)


def apportion(total: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Divide `total` in proportion to `weights`, nobody more than its weight: by `taskgov.division`, ties by name.

    What exceeds the sum of the weights is not divided.

    Example:
        >>> apportion(10, {"b": 4, "a": 4, "c": 4})
        {'a': 4, 'b': 3, 'c': 3}

    """
    if total >= sum(weights.values()):
        return dict(weights)
    return divide(total, [Party(name, weight, ceiling=weight) for name, weight in weights.items()])


def _attribution(account: Account, borrowed: int, lent: int) -> LoanAttribution:
    above = account.used - account.nominal
    return LoanAttribution(borrowed, max(0, above) - borrowed, lent, max(0, -above) - lent)
