"""What a command keeps to its end: a large snapshot and what is made of it are not searched for cycles, nor freed."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_kept: list[object] = []


@contextmanager
def kept_to_the_end() -> Iterator[None]:
    """Keep Python's collector of cycles away from what is read or made here: the command needs it to its end.

    Searching it, at once and later, took a quarter of the CPU time of `status` at 50,000 workloads.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_on:
            gc.enable()


def keep(value: object) -> None:
    """Keep a value to the end of the command, in place of the value that was kept before."""
    _kept[:] = [value]


def end_at_once(code: object) -> None:
    """End the process with this exit code if something is kept; return otherwise, and for a code that is a text.

    Freeing millions of objects one by one took a twelfth of the CPU time of `status` at 50,000 workloads.
    """
    if _kept and isinstance(code, int | None):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)
