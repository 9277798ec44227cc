"""The conditions that the explorer does not miss, each with the reason why the protocol holds without it."""

from typing import Final

LISTED: Final[dict[str, str]] = {
    "Lock.is_held sees no lock": "a run that finds the lock taken leaves; it saves an execution for each event",
    "ReceiveEvent._mark always starts a run": "the same: a run that finds the lock taken leaves",
    "Set the lock aside: 2. attribute_not_exists(generation) is never met": "each run follows a mark, which makes one",
    "Set the lock aside: 4. attribute_not_exists(askedChanges) is never met": "`<>` is met where there is none",
}
