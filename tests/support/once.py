"""Make something dear once in a run of the tests, however many processes and modules want to look at it."""

from __future__ import annotations

import fcntl
import pickle
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

_T = TypeVar("_T")


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[], _T]) -> _T:
    """Return what `make` gives, which can be pickled; a second caller waits and gets a copy of it.

    What `make` raises is raised, and the next one tries again.
    """
    kept = _folder_of_the_run(factory) / f"{name}.pickle"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(make()))
        value: _T = pickle.loads(kept.read_bytes())  # noqa: S301 it is our own
    return value


def _folder_of_the_run(factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of this run share, and no other run; xdist gives each worker one below it."""
    own = factory.getbasetemp()
    folder = (own.parent if own.name.startswith("popen-") else own) / "once"
    folder.mkdir(exist_ok=True)
    return folder
