"""`time.sleep` on the stack's clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskgov_embedded.aws_api.patches import Patches
    from taskgov_embedded.virtual_time.cooperative import Turns


def install(turns: Turns, patches: Patches) -> None:
    """Let `time.sleep` of the stack's threads pass time on its clock; a thread of anyone else sleeps as before."""
    own = time.sleep

    def sleep(seconds: Any) -> None:
        if turns.current() is not None or turns.is_driver():
            turns.sleep(seconds)
        else:
            own(seconds)

    patches.replace(time, "sleep", sleep, "a sleep lets time of the stack pass")
