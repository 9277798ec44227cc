"""Say which values of a definition's fields Step Functions refuses, when a machine is made and when it runs."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LONGEST_NAME = 80
"""Characters of the name of a state or a variable."""
_LONGEST_SECONDS = 99_999_999
_LONGEST_DELAY = 31_622_399
WHOLE_NUMBERS: Mapping[str, tuple[int, int]] = {
    "Seconds": (0, _LONGEST_SECONDS),
    "TimeoutSeconds": (1, _LONGEST_SECONDS),
    "HeartbeatSeconds": (1, _LONGEST_SECONDS),
    "MaxConcurrency": (0, _LONGEST_SECONDS),
    "IntervalSeconds": (1, _LONGEST_SECONDS),
    "MaxAttempts": (0, _LONGEST_SECONDS),
    "MaxDelaySeconds": (1, _LONGEST_DELAY),
}
"""The least and the most of each whole number (Developer Guide: each kind of state, and "Handling errors")."""
_OF_RETRY = ("IntervalSeconds", "MaxAttempts", "MaxDelaySeconds")
_OF_STATE = ("Seconds", "TimeoutSeconds", "HeartbeatSeconds", "MaxConcurrency")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_JITTER = {"FULL", "NONE"}
_EVERYTHING = "States.ALL"


def moment(text: Any) -> datetime | None:
    """Return the moment that RFC 3339 text names, with its T and Z in capitals; None for anything else.

    >>> moment("2026-11-20T09:00:00Z").isoformat(), moment("2026-11-20"), moment("2026-11-20T09:00:00")
    ('2026-11-20T09:00:00+00:00', None, None)
    """
    if not isinstance(text, str) or _MOMENT.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def problem_of_number(field: str, number: Any) -> str | None:
    """Say why a value cannot be that of a field of `WHOLE_NUMBERS`; None when it can.

    >>> problem_of_number("Seconds", "10"), problem_of_number("Seconds", 10.0)
    ("Seconds is '10', not a whole number from 0 to 99999999", None)
    """
    least, most = WHOLE_NUMBERS[field]
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and number == number // 1
    if is_number and least <= number <= most:
        return None
    return f"{field} is {number!r}, not a whole number from {least} to {most}"


def problems_of_state(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the values of a state's own fields; expressions are evaluated in an execution."""
    yield from _problems_of_numbers(state, _OF_STATE)
    beats, lasts = state.get("HeartbeatSeconds"), state.get("TimeoutSeconds")
    if isinstance(beats, int) and isinstance(lasts, int) and beats >= lasts:
        yield f"HeartbeatSeconds is {beats}, not less than TimeoutSeconds"
    until = state.get("Timestamp")
    if until is not None and not is_expression(until) and moment(until) is None:
        yield f"the Timestamp {until!r} is not a time as in RFC 3339, in capitals"
    for rule in state.get("Choices", ()):
        if not isinstance(rule.get("Condition"), bool) and not is_expression(rule.get("Condition")):
            yield "a rule of Choices needs a Condition: an expression, true or false"
        if "Next" not in rule:
            yield "a rule of Choices needs Next"
    for field in ("Retry", "Catch"):
        yield from (f"{field}: {problem}" for problem in _problems_of_rules(field, state.get(field, ())))


def problems_of_names(names: Mapping[str, Any] | Any) -> Iterator[str]:
    """Yield what is wrong with the variables of an Assign."""
    if not isinstance(names, dict):
        yield "Assign has to be an object"
        return
    for name in names:
        if not name.isidentifier() or len(name) > LONGEST_NAME or name == "states":
            yield f"{name!r} cannot be the name of a variable"


def is_expression(value: Any) -> bool:
    """Return whether a value is text that is evaluated."""
    return isinstance(value, str) and value.startswith("{%")


def _problems_of_numbers(
    holder: Mapping[str, Any], fields: Sequence[str], *, may_be_asked: bool = True
) -> Iterator[str]:
    for field in fields:
        value = holder.get(field)
        if field in holder and not (may_be_asked and is_expression(value)):
            problem = problem_of_number(field, value)
            yield from () if problem is None else (problem,)


def _problems_of_rules(field: str, rules: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for rule in rules:
        names = rule.get("ErrorEquals")
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            yield "ErrorEquals has to be a list of names, at least one"
        elif _EVERYTHING in names and (len(names) > 1 or rule is not rules[-1]):
            yield f"{_EVERYTHING} has to stand alone, in the last rule"
        if field == "Catch" and "Next" not in rule:
            yield "a rule needs Next"
        yield from _problems_of_back_off(rule)


def _problems_of_back_off(retrier: Mapping[str, Any]) -> Iterator[str]:
    yield from _problems_of_numbers(retrier, _OF_RETRY, may_be_asked=False)
    rate = retrier.get("BackoffRate", 2.0)
    if not isinstance(rate, int | float) or rate < 1:
        yield f"BackoffRate is {rate!r}, not a number of at least 1"
    if retrier.get("JitterStrategy", "NONE") not in _JITTER:
        yield f"JitterStrategy is {retrier['JitterStrategy']!r}, neither FULL nor NONE"
