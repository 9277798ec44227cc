"""`time.sleep` on the stack's clock."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.virtual_time.cooperative import Turns


@contextmanager
def sleeping_on(turns: Turns) -> Iterator[None]:
    """Let `time.sleep` of the stack's threads pass time on its clock; a thread of anyone else sleeps as before."""
    own = time.sleep

    def sleep(seconds: Any) -> None:
        if turns.current() is not None or turns.is_driver():
            turns.sleep(seconds)
        else:
            own(seconds)

    time.sleep = sleep
    try:
        yield
    finally:
        time.sleep = own
