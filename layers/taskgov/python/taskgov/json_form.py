"""How a dataclass becomes JSON, and how it is read back: its members in camelCase, `taken_at` as `takenAt`.

The names follow from the types and from nothing else. What AWS names keeps PascalCase, what Kubernetes names keeps its
own form, and keys that are data (teams, instance types, resources, evidence) are never touched.

Reading also takes members as the fields are called, as releases before this one wrote them: a plan that waits for
approval, a snapshot file and what is kept of the past outlive an upgrade.
"""

import zlib
from functools import cached_property
from typing import Any, Final, Generic, NewType, TypeVar

from pydantic import ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

T = TypeVar("T")
DAMAGED: Final = (
    OSError,
    EOFError,
    zlib.error,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
)
"""What reading compressed JSON in another form may raise, besides `ValueError`."""


def member_of(field: str) -> str:
    """Return what a field is called in JSON.

    Example:
        >>> member_of("taken_at"), member_of("snapshot_sha256")
        ('takenAt', 'snapshotSha256')

    """
    return to_camel(field)


_BOTH: Final = ConfigDict(alias_generator=member_of, validate_by_alias=True, validate_by_name=True, defer_build=True)


class JsonForm(Generic[T]):
    """The form of one dataclass and of what it holds. Its first use takes milliseconds: keep it."""

    def __init__(self, kind: type[T]) -> None:
        # TypeAdapter takes no configuration for a dataclass, and does for a new type of it; nested ones inherit it.
        self._adapter: TypeAdapter[T] = TypeAdapter(NewType("Form", kind), config=_BOTH)

    def data(self, value: T, *, without_defaults: bool = False) -> Any:
        """Return a value in JSON's own types."""
        return self._adapter.dump_python(value, mode="json", by_alias=True, exclude_defaults=without_defaults)

    def indented(self, value: T) -> bytes:
        """Return a value as a text for people too: two spaces of indent, members in the order of the schema."""
        return self._adapter.dump_json(value, by_alias=True, indent=2) + b"\n"

    def read(self, text: str | bytes) -> T:
        """Return the value that a text holds in either form. Raises `ValueError` (pydantic) for anything else."""
        return self.read_with_members(text)[0]

    def read_with_members(self, text: str | bytes) -> tuple[T, dict[str, Any]]:
        """Return the value as `read` does, and all members of the text, also those that the form does not have."""
        try:
            # Half the time of `validate_json`, which makes an object of each value before it is validated.
            members = from_json(text)
            return self._adapter.validate_python(members), members
        except ValueError:
            return self._adapter.validate_json(text), from_json(text)  # its errors name the types of JSON

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of `data`."""
        return self._adapter.json_schema(by_alias=True, mode="serialization")


class KeptForm(JsonForm[T]):
    """The form of what functions store: read in both forms, and written as the release before reads it.

    While a deployment moves the functions one by one, and after its alarm has taken it back, the release before
    continues with what the new one left: records, the snapshot and plan of a run that is under way, a plan that waits
    for approval. A release after this one may write `data`.
    """

    def __init__(self, kind: type[T]) -> None:
        super().__init__(kind)
        self._kind = kind

    @cached_property
    def _before(self) -> TypeAdapter[T]:
        return TypeAdapter(self._kind)

    def kept_data(self, value: T, *, without_defaults: bool = False) -> Any:
        """Return a value as it is kept, in JSON's own types."""
        return self._before.dump_python(value, mode="json", by_alias=True, exclude_defaults=without_defaults)

    def kept(self, value: T, *, without_none: bool = False) -> bytes:
        """Return a value as it is kept."""
        return self._before.dump_json(value, by_alias=True, exclude_none=without_none)
