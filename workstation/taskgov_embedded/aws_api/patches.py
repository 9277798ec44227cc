"""Replace names of other packages while a stack is open, with the reason for each, and put them back."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Patches:
    """The replacements of one stack, in the order in which they were made."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        """Each name that was ever replaced, and why."""
        self._before: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, value: Any, why: str) -> None:
        """Replace an attribute of a module or a class. Raises AttributeError when there is none by that name."""
        before = inspect.getattr_static(owner, name)
        self.reasons[_full_name(owner, name)] = why
        self._before.append((owner, name, before))
        setattr(owner, name, value)

    def undo(self, kept: int = 0) -> None:
        """Put back what was there, last first, all but the first `kept`."""
        while len(self._before) > kept:
            setattr(*self._before.pop())

    @contextmanager
    def within(self) -> Iterator[None]:
        """Put back at the end of the body what is replaced in it."""
        kept = len(self._before)
        try:
            yield
        finally:
            self.undo(kept)


def _full_name(owner: Any, name: str) -> str:
    """Name an attribute with its module.

    >>> _full_name(Patches, "undo")
    'taskgov_embedded.aws_api.patches.Patches.undo'
    """
    whose = f"{owner.__module__}.{owner.__qualname__}" if inspect.isclass(owner) else owner.__name__
    return f"{whose}.{name}"
