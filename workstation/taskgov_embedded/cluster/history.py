"""What happened to the objects of the simulated cluster, as far back as it is kept: what watches are answered from."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Generic, TypeVar

_T = TypeVar("_T")
"""The objects."""

KEPT: Final = 20_000
"""Changes that are kept at least; etcd keeps those of about five minutes."""
_VERSION: Final = attrgetter("version")


class TooOldError(Exception):
    """What happened after this version is not kept any more: the caller has to list."""


@dataclass(frozen=True, slots=True)
class Change(Generic[_T]):
    """One write: `before` is None for a creation, `after` for a deletion."""

    version: int
    plural: str
    before: _T | None
    after: _T | None


class History(Generic[_T]):
    """The latest changes, oldest first."""

    def __init__(self) -> None:
        self._changes: list[Change[_T]] = []
        self._begins_after = 0

    def add(self, change: Change[_T]) -> None:
        """Take in the latest change; the oldest ones go."""
        self._changes.append(change)
        if len(self._changes) > 2 * KEPT:
            self.compact(self._changes[-KEPT].version)

    def since(self, plural: str, version: int) -> list[Change[_T]]:
        """Return what happened to a type after a version. Raises TooOldError."""
        if version < self._begins_after:
            raise TooOldError(f"too old resource version: {version} ({self._begins_after})")
        first = bisect_right(self._changes, version, key=_VERSION)
        return [change for change in self._changes[first:] if change.plural == plural]

    def compact(self, version: int) -> None:
        """Forget what happened up to a version, as etcd does."""
        self._begins_after = max(self._begins_after, version)
        del self._changes[: bisect_right(self._changes, version, key=_VERSION)]
