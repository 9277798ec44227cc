"""The limits of decreases and increases of quotas, and their verdicts.

Guardrails and `onLimit: partial` share these limits. All arithmetic is exact; percentages of the document are read as
written decimals.

| limit | measured from | a number may move by |
| --- | --- | --- |
| `max-decrease` | the present value | the greater of `maxDecreasePercent` and `maxDecreaseInstances` whole instances |
| `max-decrease-per-period` | the maximum in the period | `maxDecreasePerPeriod.percent` |
| `max-increase` | the present value | `maxIncreasePercent`; from zero without limit |
| `max-increase-per-period` | the minimum above zero in the period | `maxIncreasePerPeriod.percent`; as above |
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from taskgov.allocation.plan import GuardrailVerdict
from taskgov.allocation.quota_deltas import QuotaDelta
from taskgov.allocation.wording import said_number
from taskgov.policy.document import GrowthLimit, Guardrails, OnLimit, PeriodLimit

MOST_DECREASE: Final = 100
MOST_INCREASE: Final = 100_000
"""Percentages that the document can hold (`docs/policy.md`)."""

FEWEST_DECIMALS: Final = 2


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of the document, in one direction, for a step (`hours` is None) or over a period."""

    falls: bool
    percent: Fraction
    hours: int | None = None
    instances: int = 0
    is_partial: bool = False
    """The document sets cutting back to the limit: the verdict is about what is left of the plan then."""

    @property
    def name(self) -> str:
        """The guardrail's name."""
        return ("max-decrease" if self.falls else "max-increase") + ("" if self.hours is None else "-per-period")

    @property
    def field(self) -> str:
        """Its key in the document."""
        key = "maxDecrease" if self.falls else "maxIncrease"
        return f"{key}Percent" if self.hours is None else f"{key}PerPeriod"

    def judges(self, delta: QuotaDelta) -> bool:
        """Return whether the number moves in this limit's direction."""
        return delta.falls if self.falls else delta.rises

    def is_readable(self, delta: QuotaDelta) -> bool:
        """Return whether the value that the limit measures from is known."""
        return self.hours is None or delta.farthest is not None

    def bound(self, delta: QuotaDelta) -> Fraction | None:
        """Return the farthest that the number may go to; None without a bound: nothing has no percentage.

        A number whose past cannot be read may not move.
        """
        if not self.is_readable(delta):
            return delta.before
        base = self._base(delta)
        if self.falls:
            return base - max(base * self.percent / 100, self.instances * delta.instance)
        return base * (100 + self.percent) / 100 if base > 0 else None

    def allows(self, delta: QuotaDelta) -> bool:
        """Return whether the number stays within its bound."""
        bound = self.bound(delta)
        return bound is None or (delta.after >= bound if self.falls else delta.after <= bound)

    def stops(self, delta: QuotaDelta) -> bool:
        """Return whether the number moves in this limit's direction, and beyond its bound."""
        return self.judges(delta) and not self.allows(delta)

    def percent_of(self, delta: QuotaDelta) -> Fraction:
        """Return by how many percent of what it is measured from the number moves; 0 from nothing."""
        base = self._base(delta)
        return abs(delta.after - base) * 100 / base if base > 0 else Fraction(0)

    def verdicts(self, quota: Sequence[QuotaDelta]) -> Iterator[GuardrailVerdict]:
        """Yield this limit's verdict on one quota: one verdict, or none if nothing moves."""
        moving = [delta for delta in quota if self.judges(delta)]
        if not moving:
            yield from self._of_leases(quota)
            return
        beyond = [delta for delta in moving if self.stops(delta)]
        unread = next((delta for delta in beyond if not self.is_readable(delta)), None)
        measured = [delta for delta in beyond or moving if self.bound(delta) is not None]
        if unread is not None:
            because = f"{unread.words}: what it was in the last {self.hours} h cannot be read."
            yield GuardrailVerdict(
                self.name, passed=False, because=because, remedy="wait until the history can be read"
            )
        elif not measured:
            because = f"{moving[0].words}: it was zero before, and zero has no percentage."
            yield GuardrailVerdict(self.name, passed=True, because=because)
        else:
            worst = max(measured, key=self.percent_of)
            because = self._sentence(worst) + _more(worst, beyond)
            remedy = self._remedy(max(map(self.percent_of, beyond))) if beyond else ""
            yield GuardrailVerdict(self.name, not beyond, because, remedy)

    def _of_leases(self, quota: Iterable[QuotaDelta]) -> Iterator[GuardrailVerdict]:
        """Say that a number moves by leases alone: that is neither a decrease nor an increase."""
        for delta in quota:
            if delta.set_aside and delta.is_lower == self.falls and delta.before == delta.after:
                because = f"{delta.words}: {delta.set_aside}, nothing else {self._moves}."
                yield GuardrailVerdict(self.name, passed=True, because=because)
                return

    @property
    def _moves(self) -> str:
        return "falls" if self.falls else "rises"

    def _base(self, delta: QuotaDelta) -> Fraction:
        return delta.before if self.hours is None else delta.farthest or Fraction(0)

    def _sentence(self, delta: QuotaDelta) -> str:
        aside = f" ({delta.set_aside})" if delta.set_aside else ""
        percent = said_percent(self.percent_of(delta), self.percent)
        moves = f"{delta.words}{aside} {self._moves} by {percent} %"
        most = f"{said_percent(self.percent, self.percent)} %"
        if self.instances:
            most += f" or {self.instances} whole instance{'s' if self.instances > 1 else ''}"
        if self.hours is None:
            return f"{moves} in one step; the most allowed is {most}."
        farthest = "most" if self.falls else "least"
        from_ = said_number(self._base(delta) / delta.shown)
        return f"{moves} from the {farthest} in {self.hours} h ({from_}); the most allowed is {most}."

    def _remedy(self, percent: Fraction) -> str:
        enough = -(-percent * 100 // 1) / Fraction(100)
        field = self.field if self.hours is None else f"{self.field}.percent"
        ways = []
        if enough <= (MOST_DECREASE if self.falls else MOST_INCREASE):
            ways.append(f"raise guardrails.{field} to {said_percent(enough, enough)}")
        if self.hours is not None:
            ways.insert(0, "wait")
        else:
            steps = f"{'lower' if self.falls else 'raise'} the quota in steps"
            ways.append(steps if self.is_partial else f"{steps} (guardrails.onLimit: partial)")
        return ", or ".join(ways)


def limits(guardrails: Guardrails) -> tuple[Limit, ...]:
    """Return the limits of decreases and increases that a document has."""
    partial = guardrails.on_limit is OnLimit.PARTIAL
    found: list[Limit] = []
    for falls, percent, period in (
        (True, guardrails.max_decrease_percent, guardrails.max_decrease_per_period),
        (False, guardrails.max_increase_percent, guardrails.max_increase_per_period),
    ):
        if percent is not None:
            instances = guardrails.max_decrease_instances or 0 if falls else 0
            found.append(Limit(falls, _exact(percent), instances=instances, is_partial=partial))
        if period is not None:
            found.append(_of_period(period, falls=falls, is_partial=partial))
    return tuple(found)


def _of_period(period: PeriodLimit | GrowthLimit, *, falls: bool, is_partial: bool) -> Limit:
    return Limit(falls, _exact(period.percent), period.hours, is_partial=is_partial)


def _exact(number: float) -> Fraction:
    """Read a float as the decimal that a person wrote: 33.3 is 333 tenths."""
    return Fraction(str(number))


def _more(worst: QuotaDelta, beyond: Iterable[QuotaDelta]) -> str:
    """Count the other numbers beyond the limit; those of whole instances count as one."""
    others = {delta.words for delta in beyond} - {worst.words}
    if not others:
        return ""
    return f" {len(others)} more number{'s are' if len(others) > 1 else ' is'} beyond it."


def said_percent(percent: Fraction, limit: Fraction) -> str:
    """Return a percentage with as many decimals as it takes not to look like the limit, or like nothing.

    Example:
        >>> said_percent(Fraction("37.5"), Fraction(25)), said_percent(Fraction("25.0004"), Fraction(25))
        ('37.5', '25.0004')
        >>> said_percent(Fraction(1, 3), Fraction(0)), said_percent(Fraction("0.0004"), Fraction(0))
        ('0.33', '0.0004')

    """
    decimals = FEWEST_DECIMALS
    while True:
        shown = Fraction(round(percent * 10**decimals), 10**decimals)
        if (shown > limit, shown < limit, shown > 0) == (percent > limit, percent < limit, percent > 0):
            break
        decimals += 1
    whole, rest = divmod(round(shown * 10**decimals), 10**decimals)
    return f"{whole}.{rest:0{decimals}d}".rstrip("0").rstrip(".")
