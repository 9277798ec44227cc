"""Judge the author of the document in force: whether it needs an approver, and who may be one.

Used only if the stack names approvers (`Approvers`). Without approvers, one person operates alone.
"""

from collections.abc import Iterator

from taskgov.allocation.guardrails import APPROVAL
from taskgov.allocation.plan import GuardrailVerdict
from taskgov.people import is_same_person
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import Authorship


def author_verdicts(snapshot: Snapshot) -> Iterator[GuardrailVerdict]:
    """Yield the verdict on the document's author; none without a document."""
    behind = snapshot.authorship
    if snapshot.policy_version is None:
        return
    if behind.author is not None:
        claimed = f", written by {behind.claim} as it says" if behind.claim else ""
        because = f"{behind.author} put the document into force{claimed}."
    elif behind.accepted_by is not None:
        because = f"The author of the document is not known; {behind.accepted_by} accepted it."
    else:
        because = (
            f"Who wrote version {snapshot.policy_version} of the document is not known: it was not put into force "
            "with `taskgov apply`."
        )
        remedy = "approve the plan, which accepts the document, or put it into force with `taskgov apply --policy`"
        yield GuardrailVerdict(APPROVAL, passed=False, because=because, remedy=remedy)
        return
    yield GuardrailVerdict(APPROVAL, passed=True, because=because)


def may_approve(approver: str | None, behind: Authorship) -> bool:
    """Return whether this person's approval counts: somebody is known, and it is not the document's author.

    Example:
        >>> may_approve("identity-center/ana", Authorship(author="arn:aws:iam::111122223333:user/ana"))
        False
    """
    return approver is not None and (behind.author is None or not is_same_person(approver, behind.author))
