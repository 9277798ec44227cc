"""A rule that a document or a request breaks: where, what was given, and what the rule is."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

Location = tuple[int | str, ...]
"""A place as pydantic gives it: keys and list indexes from the root."""

VALUE_LIMIT: Final = 80
MISSING: Final = "(missing)"
UNKNOWN_KEY: Final = "is an unknown key"
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

_RULES: Final = {
    "missing": "is required",
    "extra_forbidden": UNKNOWN_KEY,
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "datetime_type": "must be a time such as 2026-11-20T09:00Z",
    "datetime_parsing": "must be a time such as 2026-11-20T09:00Z",
    "datetime_from_date_parsing": "must be a time such as 2026-11-20T09:00Z",
    "timezone_aware": "must say its time zone, as in 2026-11-20T09:00Z",
    "string_too_short": "must not be empty",
}
"""What pydantic's error types mean to a person; the others keep pydantic's sentence."""

_HINTS: Final = {
    ("Strategy", "Borrow"): "; some documents list Borrow, which the API does not take: write LendAndBorrow",
}
"""What published documents show and the API refuses, by key and value."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule. `path` is the place in the document (`teams[0].share[1].percent`), `value` what stands there."""

    path: str
    value: str
    rule: str

    def __str__(self) -> str:
        return f"{self.path}: {self.value} - {self.rule}"


def path_of(location: Sequence[int | str]) -> str:
    """Write a location as a person reads it.

    Example:
        >>> path_of(("teams", 2, "quota", "ComputeQuotaResources", 0, "InstanceType"))
        'teams[2].quota.ComputeQuotaResources[0].InstanceType'
        >>> path_of(("instanceTypes", "ml.g5.8xlarge", "vcpu")), path_of(())
        ('instanceTypes["ml.g5.8xlarge"].vcpu', '(document)')

    """
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            path += f".{step}" if path else step
        else:
            path += f'["{step}"]'
    return path or "(document)"


def value_of(value: object) -> str:
    """Write what stands somewhere, as JSON, cut to a line.

    Example:
        >>> value_of("g5.8xlarge"), value_of(None), len(value_of("x" * 500))
        ('"g5.8xlarge"', 'null', 80)

    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= VALUE_LIMIT else f"{text[: VALUE_LIMIT - 3]}..."


def violations_from(error: ValidationError) -> tuple[tuple[Location, Violation], ...]:
    """Return all that a validation found, each with its location."""
    return tuple((details["loc"], _violation(dict(details))) for details in error.errors(include_url=False))


def _violation(details: dict[str, Any]) -> Violation:
    value = MISSING if details["type"] == "missing" else value_of(details["input"])
    rule = _RULES.get(details["type"]) or _sentence(details["msg"])
    key = details["loc"][-1] if details["loc"] else ""
    given = details["input"]
    hint = _HINTS.get((str(key), given), "") if isinstance(given, str) else ""
    return Violation(path_of(details["loc"]), value, rule + hint)


def _sentence(message: str) -> str:
    """Let pydantic's sentences follow the value, as ours do: `Input should be ..` becomes `must be ..`."""
    return message.replace("Input should be", "must be").replace("Value error, ", "")
