"""The form of the table's items: one attribute says which it is, and one place reads them all.

| `schema` | written by | what is different |
| --- | --- | --- |
| absent | releases before the attribute | nothing |
| 1 | this release | |

An older item is brought up to date as it is read, and is written in today's form with its next change. What a newer
release wrote, or nobody can read, is an `UnreadableItem`: a reader of many continues without it and reports it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from taskgov.ports import OnUnreadable
from taskgov.snapshot.unreadable import UnreadableItem, UnreadableItemError

SCHEMA: Final = "schema"
"""The attribute."""
NEWEST: Final = 1
Item = Mapping[str, Any]
Value = TypeVar("Value")
UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What reading an item of another form raises."""


def _named(item: Item) -> Item:
    return {**item, SCHEMA: 1}


UPGRADES: Final[Mapping[int, Callable[[Item], Item]]] = {0: _named}
"""How an item of each older form becomes one of the next."""


def in_form(item: Item) -> Item:
    """Return an item as it is written."""
    return {**item, SCHEMA: NEWEST}


def upgraded(item: Item) -> Item:
    """Return an item in today's form. Raises ValueError for one of a newer release, or without a readable form."""
    form = _form(item)
    while form < NEWEST:
        item = UPGRADES[form](item)
        form = _form(item)
    return item


def read(item: Item, form: Callable[[Item], Value], on_unreadable: OnUnreadable | None = None) -> Value | None:
    """Return what an item holds; None, after it was reported, when it cannot be read.

    Without `on_unreadable` it raises UnreadableItemError, which names the item: nothing is decided on half of the past.
    """
    try:
        return form(upgraded(item))
    except UNREADABLE as error:
        unreadable = UnreadableItem(str(item.get("pk")), str(item.get("sk")), _why(error))
        if on_unreadable is None:
            raise UnreadableItemError(unreadable) from error
        on_unreadable(unreadable)
        return None


def _form(item: Item) -> int:
    stated = item.get(SCHEMA, 0)
    try:
        form = int(stated)
    except (TypeError, ValueError):
        raise ValueError(f"its schema is {stated!r}, which is not a number") from None
    if not 0 <= form <= NEWEST:
        raise ValueError(f"its schema is {form}; this release reads schemas up to {NEWEST}")
    return form


def _why(error: Exception) -> str:
    match error:
        case ValidationError():
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            return f"{place}: {first['msg']}" if place else str(first["msg"])
        case KeyError():
            return f"it has no {error}"
        case _:
            return str(error)
