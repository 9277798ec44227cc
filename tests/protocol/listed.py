"""The conditions that the explorer does not miss, each with the reason why the protocol holds without it."""

from typing import Final

LISTED: Final[dict[str, str]] = {
    "Lock.is_held sees no lock": "a run that finds the lock taken leaves; it saves an execution for each event",
    "ReceiveEvent._mark always starts a run": "the same: a run that finds the lock taken leaves",
    "Take the lock: 1. attribute_not_exists(lockOwner) is never met": "with no owner there is no end: part 4 is met",
    "manual_lock: taking, attribute_not_exists(lockOwner) is never met": "the same, by the last part",
    "Release the lock: 3. attribute_not_exists(generation) is never met": "each run follows a mark, which makes one",
    "Table.hold_lock does not compare the owner": "each take has a token of its own, which is compared",
    "Table.end_lease does not compare the owner": "the same",
    "manual_lock._release does not compare the owner": "the same",
    "Set the lock aside: 2. attribute_not_exists(generation) is never met": "each run follows a mark, which makes one",
    "Set the lock aside: 4. attribute_not_exists(askedChanges) is never met": "`<>` is met where there is none",
}
