"""Orders of people: requests for approval, and where answers, documents and switches are kept."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from taskgov.contracts.orders import (
    DocumentOrder,
    ManualOrder,
    RunOrder,
    UnlockOrder,
)
from taskgov.people import Person
from taskgov.snapshot.records import Authorship


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A plan that waits for a person, and the answer when there is one."""

    cluster_arn: str
    cluster_name: str
    plan_id: str
    policy_version: str | None
    """Version of the document that the plan follows; None without a document."""
    task_token: str
    summary: str
    asked_at: str
    expires_at: int
    """Epoch seconds."""
    answered_by: str | None = None
    answered_person: str | None = None
    answered_at: str | None = None
    approved: bool | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Who answered, when, and who put the document into force."""

    by: Person
    at: datetime
    approved: bool
    author: str


class OrderBook(Protocol):
    """Where orders are carried out and recorded. Raises ThrottledError, UpstreamError."""

    def request(self, cluster_arn: str, plan_id: str) -> ApprovalRequest | None:
        """Return what waits for a person under this id, strongly consistent."""
        ...

    def claim(self, request: ApprovalRequest, answer: Answer) -> None:
        """Keep the answer beside its request, once. Raises ConflictError when another answer or request stands."""
        ...

    def tell(self, request: ApprovalRequest, answer: Answer) -> bool:
        """Send the answer to the run that waits; False when none waits any more."""
        ...

    def turn(self, by: Person, at: datetime, reason: str, *, on: bool) -> None:
        """Set the stop switch."""
        ...

    def put_document(self, order: DocumentOrder) -> str:
        """Store a document and return its version. Raises ConflictError when another one stands than was replaced."""
        ...

    def authorship(self, cluster_name: str, version: str) -> Authorship | None:
        """Return who put this version into force through the entry, and who accepted it."""
        ...

    def record_author(self, cluster_name: str, version: str, by: Person, at: datetime, claim: str) -> None:
        """Keep who put this version into force, and, where it is not empty, who is said to have written it."""
        ...

    def record_acceptance(self, cluster_name: str, version: str, by: Person, at: datetime) -> None:
        """Keep who accepted a version of an unknown author by approving a plan that follows from it."""
        ...

    def withdraw_acceptance(self, cluster_name: str, version: str, by: Person) -> None:
        """Forget that this person accepted a version: the approval did not reach a run. Another's acceptance stays."""
        ...

    def record_order(self, order: ManualOrder | UnlockOrder, by: Person, at: datetime) -> str:
        """Keep that a person is about to write by hand, or frees a lock; return the order's id."""
        ...

    def free_lock(self, order: UnlockOrder) -> None:
        """Free the lock that the order describes. Raises ConflictError when another one stands."""
        ...

    def request_run(self, order: RunOrder | UnlockOrder, by: Person, at: datetime) -> str:
        """Ask for a run on the order's cluster; return the id of the event that causes it.

        Who takes the event in keeps the record of an unlock, and forgets refusals where the order says so.
        """
        ...
