"""Decide in which state an alarm is, from its data points: a pure function, as the CloudWatch user guide describes it.

Pages "Alarm evaluation" and "Configuring how CloudWatch alarms treat missing data". The guide does not say how many
data points are evaluated for each alarm; its examples evaluate two more than the alarm has evaluation periods.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

State = Literal["OK", "ALARM", "INSUFFICIENT_DATA"]
OK: Final = "OK"
ALARM: Final = "ALARM"
INSUFFICIENT_DATA: Final = "INSUFFICIENT_DATA"

MORE_POINTS: Final = 2
"""Data points that are evaluated beyond the evaluation periods: 5 for 3, in the guide's examples."""

COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
TREATMENTS: Final = frozenset({"missing", "ignore", "breaching", "notBreaching"})


@dataclass(frozen=True, slots=True)
class Rule:
    """When an alarm rings: `datapoints` (M) of `periods` (N) breach the threshold.

    Raises ValueError for a comparison or a treatment of missing data that is not known.
    """

    comparison: str
    threshold: float
    periods: int
    datapoints: int
    missing: str = "missing"

    def __post_init__(self) -> None:
        """Check what cannot be evaluated."""
        if self.comparison not in COMPARISONS:
            raise ValueError(f"the embedded stack does not know the comparison {self.comparison}")
        if self.missing not in TREATMENTS:
            raise ValueError(f"TreatMissingData has no value {self.missing}")

    @property
    def points(self) -> int:
        """How many periods are evaluated (the evaluation range)."""
        return self.periods + MORE_POINTS

    def is_breaching(self, value: float) -> bool:
        """Return whether a value is on the wrong side of the threshold."""
        return COMPARISONS[self.comparison](value, self.threshold)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A state, and why."""

    state: State
    reason: str


def judge(points: Sequence[float | None], rule: Rule, before: State) -> Judgement:
    """Return the state for the data points of the evaluation range, oldest first; None is a missing one.

    `before` is what the state was: it stands where missing data is ignored, and nothing else decides.

    >>> rule = Rule("GreaterThanThreshold", 3, periods=3, datapoints=2, missing="notBreaching")
    >>> judge([None, 5, 1, 4, 2], rule, "OK").state
    'OK'
    >>> judge([1, 5, None, 4, None], rule, "OK").state
    'ALARM'
    """
    real = [rule.is_breaching(point) for point in points if point is not None]
    enough = len(real) >= rule.periods
    breaching = sum(real[-rule.periods :])
    filled = 0 if enough else rule.periods - len(real)
    if breaching >= rule.datapoints:
        return _judged(ALARM, points, rule, breaching)
    if rule.missing == "breaching" and breaching + filled >= rule.datapoints:
        return _judged(ALARM, points, rule, breaching, filled)
    if enough or (real and not all(real)) or rule.missing not in {"missing", "ignore"}:
        return _judged(OK, points, rule, breaching)
    return _of_few(points, rule, before, breaching)


def _of_few(points: Sequence[float | None], rule: Rule, before: State, breaching: int) -> Judgement:
    """Judge data points that all breach, or are missing, and are fewer than make an alarm."""
    if rule.missing == "ignore":
        return Judgement(before, "missing data is ignored: the state stays")
    if breaching and _age_of_first(points) >= rule.datapoints:
        return _judged(ALARM, points, rule, breaching)
    return Judgement(INSUFFICIENT_DATA, f"{breaching} of {rule.periods} data points are there")


def _age_of_first(points: Sequence[float | None]) -> int:
    """Return how old the oldest data point is, in periods: 1 for the newest."""
    first = next(place for place, point in enumerate(points) if point is not None)
    return len(points) - first


def _judged(state: State, points: Sequence[float | None], rule: Rule, breaching: int, filled: int = 0) -> Judgement:
    shown = ", ".join("-" if point is None else f"{point:g}" for point in points)
    also = f" and {filled} missing" if filled else ""
    reason = f"{breaching}{also} of {rule.periods} are {rule.comparison} {rule.threshold:g} ([{shown}])"
    return Judgement(state, reason)
