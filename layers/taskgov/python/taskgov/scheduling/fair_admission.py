"""Which LocalQueue of a ClusterQueue has used least? Its usage over time, by which admission fair sharing orders.

What a LocalQueue has consumed decays by half in `usage_half_life_time` and follows what its admitted workloads hold; an
admission is charged at once with what a sampling interval of it will come to (the entry penalty). Rules: KEP-4136,
`pkg/util/admissionfairsharing`, `pkg/cache/queue/afs`, `reconcileConsumedUsage` in
`pkg/controller/core/localqueue_controller.go` and `updateAfsConsumedUsage` in `.../workload_controller.go` of Kueue.

Amounts are billionths of a core, byte or device: so exactly does Kueue count, rounding down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

from taskgov.quantities import CPU, exact
from taskgov.scheduling.instants import SECOND, Instant, instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.scheduling.config import AdmissionFairSharing

QueueKey = tuple[str, str]
"""Namespace and name of a LocalQueue."""

Consumed = dict[str, int]

BILLION: Final = 10**9
_MILLION: Final = 10**6
_EXACT: Final = Context(prec=100)
_MOST_STEPS: Final = 1000
"""So many samplings in a row are played one by one; more of them as one, which differs in the last digits at most."""
_SUFFIXES: Final = ((BILLION, ""), (_MILLION, "m"), (1000, "u"), (1, "n"))


@dataclass(slots=True)
class Account:
    """What a LocalQueue has consumed, when that was brought up to date, and which admissions are not settled yet."""

    consumed: Consumed = field(default_factory=dict)
    updated: Instant | None = None
    penalties: dict[str, Consumed] = field(default_factory=dict)

    def copy(self) -> Account:
        """Return an account of its own with the same amounts."""
        return Account(dict(self.consumed), self.updated, {key: dict(part) for key, part in self.penalties.items()})


class Ledger:
    """The accounts of all LocalQueues; without `settings` they are kept as they are, and nothing is ordered by them."""

    def __init__(self, settings: AdmissionFairSharing | None) -> None:
        self.settings = settings
        self.accounts: dict[QueueKey, Account] = {}

    def take_accounts_of(self, other: Ledger) -> None:
        """Take a copy of the accounts of `other`."""
        self.accounts = {key: account.copy() for key, account in other.accounts.items()}

    def usage(self, key: QueueKey, weight: float) -> float:
        """Return what orders a LocalQueue: what it consumed, weighted by resource, over its weight (infinite for 0)."""
        if weight <= 0:
            return math.inf
        account = self.accounts.get(key)
        if account is None or self.settings is None:
            return 0.0
        in_all = sum_of([account.consumed, *account.penalties.values()])
        weights = self.settings.resource_weights
        total = 0.0
        for resource in sorted(in_all):
            total += weights.get(resource, 1.0) * (float(in_all[resource]) * 1e-9)
        return total / weight

    def charge(self, key: QueueKey, workload: str, requests: Mapping[str, int]) -> None:
        """Book the entry penalty of a workload that gets quota; `requests` are amounts in all, in base units."""
        if self.settings is not None:
            alpha = _alpha(self.settings.usage_sampling_interval, self.settings.usage_half_life_time)
            self._account(key).penalties[workload] = _scaled(in_billionths(requests), alpha)

    def settle(self, key: QueueKey, workload: str, used: Mapping[str, int], now: Instant) -> None:
        """Bring an account up to date when a workload is admitted, and add its entry penalty to what was consumed."""
        if self.settings is not None:
            account = self._account(key)
            elapsed = 0.0 if account.updated is None else max(0, now - account.updated) / SECOND
            decayed = _decayed(account.consumed, used, elapsed, self.settings.usage_half_life_time)
            account.consumed = sum_of([decayed, account.penalties.pop(workload, {})])
            account.updated = now if account.updated is None else max(now, account.updated)

    def release(self, key: QueueKey, workload: str) -> None:
        """Forget the penalty of a workload that cannot be admitted any more."""
        if key in self.accounts:
            self.accounts[key].penalties.pop(workload, None)

    def is_due(self, key: QueueKey, now: Instant) -> bool:
        """Return whether an account should be sampled."""
        account = self.accounts.get(key)
        if account is None or account.updated is None or self.settings is None:
            return True
        return now - account.updated >= self.settings.usage_sampling_interval * SECOND

    def sample(self, key: QueueKey, used: Mapping[str, int], now: Instant) -> None:
        """Bring an account up to date, interval by interval, with what its admitted workloads hold (`used`)."""
        if self.settings is None:
            return
        account = self._account(key)
        if account.updated is None:
            account.updated = now
        interval, half_life = self.settings.usage_sampling_interval, self.settings.usage_half_life_time
        steps = int((now - account.updated) // (interval * SECOND))
        if steps <= 0:
            return
        account.updated += int(steps * interval * SECOND)
        if half_life == 0:
            account.consumed = {}
            return
        elapsed, times = (interval, steps) if steps <= _MOST_STEPS else (interval * steps, 1)
        for _ in range(times):
            account.consumed = _decayed(account.consumed, used, elapsed, half_life)

    def signature(self) -> tuple[object, ...]:
        """Return what the next decisions depend on."""
        if self.settings is None:
            return ()
        return tuple(
            (key, *sorted(sum_of([account.consumed, *account.penalties.values()]).items()))
            for key, account in sorted(self.accounts.items())
        )

    def _account(self, key: QueueKey) -> Account:
        return self.accounts.setdefault(key, Account())


def read_consumed(obj: Mapping[str, Any]) -> tuple[dict[str, int], Instant] | None:
    """Read what a LocalQueue's status says it has consumed, in billionths, and when that was; `None` if it does not."""
    fair_sharing = (obj.get("status") or {}).get("fairSharing") or {}
    status = fair_sharing.get("admissionFairSharingStatus") or {}
    if not status.get("lastUpdate"):
        return None
    consumed = status.get("consumedResources") or {}
    return {r: int(exact(q) * BILLION) for r, q in consumed.items()}, instant(status["lastUpdate"])


def in_billionths(amounts: Mapping[str, int]) -> Consumed:
    """Turn base units (of cpu thousandths) into billionths."""
    return {name: amount * (_MILLION if name == CPU else BILLION) for name, amount in amounts.items()}


def quantity(amount: int) -> str:
    """Write billionths as a quantity.

    Example:
        >>> quantity(6_828_427_124), quantity(6 * 10**9), quantity(1_500_000_000)
        ('6828427124n', '6', '1500m')

    """
    unit, suffix = next(row for row in _SUFFIXES if amount % row[0] == 0)
    return f"{amount // unit}{suffix}"


def sum_of(parts: Iterable[Mapping[str, int]]) -> Consumed:
    """Add amounts resource by resource."""
    total: Consumed = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _alpha(elapsed: float, half_life: float) -> float:
    return 0.0 if half_life == 0 else 1.0 - math.pow(0.5, elapsed / half_life)


def _decayed(before: Mapping[str, int], used: Mapping[str, int], elapsed: float, half_life: float) -> Consumed:
    alpha = _alpha(elapsed, half_life)
    return sum_of([_scaled(before, 1 - alpha), _scaled(used, alpha)])


def _scaled(amounts: Mapping[str, int], factor: float) -> Consumed:
    """Multiply exactly with the factor as it is printed, and round down."""
    printed = Decimal(repr(factor))
    return {name: int(_EXACT.multiply(Decimal(amount), printed)) for name, amount in amounts.items()}
