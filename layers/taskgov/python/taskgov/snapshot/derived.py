"""Answers about Kueue's objects that several ask for: computed once for each snapshot."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import ref

from taskgov.snapshot.model import KueueObjects

Answer = TypeVar("Answer")


def once(make: Callable[[KueueObjects], Answer]) -> Callable[[KueueObjects], Answer]:
    """Let a pure function of Kueue's objects run once for each set of them; what it returned is given again.

    It is known by the identity of the set, and forgotten together with it.
    """
    known: dict[int, tuple[ref[KueueObjects], Answer]] = {}

    @wraps(make)
    def remembered(kueue: KueueObjects) -> Answer:
        key = id(kueue)
        found = known.get(key)
        if found is None or found[0]() is not kueue:
            found = known[key] = (ref(kueue, lambda _: known.pop(key, None)), make(kueue))
        return found[1]

    return remembered
