"""The limits of the SageMaker API, as marks on the fields of its model.

Requests and policy documents are checked against them, responses are not: what the service says is read as it is (the
documentation's own sample ARNs break its pattern). A mark checks only when the validation context requests it:

    ComputeQuotaConfig.model_validate(given, context=CheckLimits())

Source: the service model of botocore 1.43.11, which holds the limits and checks neither enums, patterns nor maxima.
"""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Sized
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from taskgov.hyperpod.instance_types import is_instance_type_name


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """Validation context: check the limits. `plain_instance_types` lets EC2's own names pass, for plain EKS."""

    plain_instance_types: bool = False


class Mark(ABC):
    """An annotation on a field that checks its value when the context says so."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after the field's own type has been read."""
        return core_schema.with_info_after_validator_function(self.validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Add the limit to the JSON Schema of the field."""
        field = handler(schema)
        return {**field, **self.json_schema(is_list=field.get("type") == "array")}

    def validate(self, value: Any, info: ValidationInfo) -> Any:
        """Return the value, or raise with the rule that it breaks."""
        if isinstance(info.context, CheckLimits) and (rule := self.broken_rule(value)):
            raise PydanticCustomError("limit", "{rule}", {"rule": rule})
        return value

    @abstractmethod
    def broken_rule(self, value: Any) -> str | None:
        """Return the sentence of the rule that `value` breaks, or None."""

    def json_schema(self, *, is_list: bool) -> dict[str, Any]:  # noqa: ARG002 - for those whom it concerns
        """Return what the limit adds to the JSON Schema of a field."""
        return {}


@dataclass(frozen=True)
class Between(Mark):
    """A number from `minimum` to `maximum`; NaN is between nothing."""

    minimum: int
    maximum: int

    def broken_rule(self, value: float) -> str | None:
        """Compare with both ends."""
        return None if self.minimum <= value <= self.maximum else f"must be from {self.minimum:,} to {self.maximum:,}"

    def json_schema(self, *, is_list: bool) -> dict[str, Any]:  # noqa: ARG002
        """State the range."""
        return {"minimum": self.minimum, "maximum": self.maximum}


@dataclass(frozen=True)
class Length(Mark):
    """A text or list of `minimum` to `maximum` characters or entries."""

    minimum: int
    maximum: int

    def broken_rule(self, value: Sized) -> str | None:
        """Count what is there."""
        if self.minimum <= len(value) <= self.maximum:
            return None
        unit = "characters" if isinstance(value, str) else "entries"
        return f"must have {self.minimum} to {self.maximum:,} {unit}; it has {len(value):,}"

    def json_schema(self, *, is_list: bool) -> dict[str, Any]:
        """State the length."""
        return {"maxItems" if is_list else "maxLength": self.maximum}


@dataclass(frozen=True)
class Pattern(Mark):
    """A text that the API's `pattern` matches from end to end. `meaning` is the same in words."""

    pattern: str
    meaning: str

    def broken_rule(self, value: str) -> str | None:
        """Match the whole text."""
        return None if matcher(self.pattern)(value) else f"must be {self.meaning} ({self.pattern})"


@dataclass(frozen=True)
class OneOf(Mark):
    """A text out of a closed list."""

    choices: tuple[str, ...]

    def broken_rule(self, value: str) -> str | None:
        """Look it up."""
        return None if value in self.choices else f"must be one of {', '.join(self.choices)}"

    def json_schema(self, *, is_list: bool) -> dict[str, Any]:  # noqa: ARG002
        """List the choices."""
        return {"enum": list(self.choices)}


@dataclass(frozen=True)
class InstanceTypeName(Mark):
    """The name of an instance type. The API has a closed list that grows quickly: an unknown `ml.*` name may be new."""

    def validate(self, value: str, info: ValidationInfo) -> str:
        """Read `g5.8xlarge` as `ml.g5.8xlarge` where plain names may stand."""
        plain = isinstance(info.context, CheckLimits) and info.context.plain_instance_types
        super().validate(f"ml.{value.removeprefix('ml.')}" if plain else value, info)
        return value

    def broken_rule(self, value: str) -> str | None:
        """Ask for the form of the name only."""
        return None if is_instance_type_name(value) else "must be an instance type such as ml.g5.8xlarge"


@lru_cache
def matcher(pattern: str) -> Callable[[str], bool]:
    r"""Return a full match for a pattern of the API (Java's syntax), safe on any text.

    Two of its forms need help: `re` has no `\p{L}`, and `(x*y){0,39}` takes exponential time on what does not match.

    Example:
        >>> matcher(r"[\p{L}\p{Z}_]*")("größe _"), matcher(TEAM_NAME.pattern)("a-b"), matcher(TEAM_NAME.pattern)("a-")
        (True, True, False)

    """
    if "\\p{" in pattern:
        return _character_class(pattern)
    compiled = re.compile(_SAFE.get(pattern, pattern))
    return lambda text: compiled.fullmatch(text) is not None


def _character_class(pattern: str) -> Callable[[str], bool]:
    r"""Read `[\p{L}\p{N}_.:]*`: any number of characters of these Unicode categories, or of those listed."""
    categories = frozenset(re.findall(r"\\p\{(\w)\}", pattern))
    literals = frozenset(re.sub(r"\\p\{\w\}|^\(?\[|\]\*\)?$", "", pattern).replace("\\", ""))
    return lambda text: all(
        unicodedata.category(character)[0] in categories or character in literals for character in text
    )


TEAM_NAME: Final = Pattern(
    "[a-z0-9]([-a-z0-9]*[a-z0-9]){0,39}?", "lower-case letters, digits and hyphens, with no hyphen at either end"
)
ENTITY_NAME: Final = Pattern(
    "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", "letters, digits and hyphens, with no hyphen at either end"
)
CLUSTER_ARN: Final = Pattern(
    "arn:aws[a-z\\-]*:sagemaker:[a-z0-9\\-]*:[0-9]{12}:cluster/[a-z0-9]{12}", "the ARN of a HyperPod cluster"
)
AMOUNT: Final = Between(0, 10_000_000)
WEIGHT: Final = Between(0, 100)

MIG_PROFILES: Final = OneOf(
    tuple(
        f"mig-{slices}g.{memory}gb"
        for slices, memories in {
            1: (5, 10, 18, 20, 23, 35, 45, 47),
            2: (10, 20, 35, 45, 47),
            3: (20, 40, 71, 90, 93),
            4: (20, 40, 71, 90, 93),
            7: (40, 80, 141, 180, 186),
        }.items()
        for memory in memories
    )
)

_SAFE: Final = {TEAM_NAME.pattern: "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"}
"""The same languages without nested repetition."""
