"""How is the cause of a run said to people? taskgov's own events in words, everybody else's as the service names it."""

from typing import Final

_OWN: Final = {
    "Reconcile Requested": "run requested",
    "Recheck Due": "recheck that an earlier run scheduled",
    "Resync Due": "run of the schedule",
    "Run Ordered": "run requested",
}
"""Detail types of taskgov's events."""


def cause_words(what: str, by: str | None, at: str = "") -> str:
    """Return what caused a run, by whom and when, and who approved its plan.

    `what` is the event, and after `; plan` the approval that the run waited for.

    >>> cause_words("Run Ordered; plan plan-1 approved by ben", "ana", " at 12:00:00 UTC")
    'run requested by ana at 12:00:00 UTC; plan plan-1 approved by ben'
    >>> cause_words("UpdateComputeQuota", None)
    'UpdateComputeQuota'
    >>> cause_words("Object Created: policies/ml-cluster.yaml", "111122223333")  # S3 names no person
    'Object Created: policies/ml-cluster.yaml by account 111122223333'
    """
    event, *approval = what.partition("; plan ")
    who = f"account {by}" if by and by.isdigit() else by
    return f"{_OWN.get(event, event)}{f' by {who}' if who else ''}{at}{''.join(approval)}"
