"""Carry out a person's order: who gave it is attested by AWS, and is what gets recorded.

Called by the function behind the stack's signed entry. Only its role may answer a waiting run (`states:SendTask*`), set
the stop switch and write who put a document into force, so those records name nobody by free text.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from taskgov.contracts.orders import (
    AnswerOrder,
    DocumentOrder,
    ManualOrder,
    Order,
    RunOrder,
    StopOrder,
    UnlockOrder,
)
from taskgov.contracts.steps import StepModel
from taskgov.errors import (
    ConflictError,
    GovernanceError,
    InvalidRequestError,
    NotAllowedError,
    NotFoundError,
    UpstreamError,
)
from taskgov.number_text import stored_moment
from taskgov.people import Person, is_same_person, may, person_of, require_patterns
from taskgov.policy.parse import parse_policy
from taskgov.ports import Answer, ApprovalRequest, Clock, OrderBook

UNKNOWN: Final = "unknown"


class Rights(StepModel):
    """Who may order what: patterns of ARNs of users, roles and named sessions, from the stack's parameters.

    An empty list leaves it to IAM: who may call the entry may order. `approvers` also decides whether a document
    of an unknown author needs an approver, and whether its author may approve.
    """

    approvers: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    stoppers: tuple[str, ...] = ()
    named_session_roles: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Self:
        """Read the stack's parameters: lists separated by commas. Raises InvalidRequestError."""
        try:
            given = json.loads(text)
        except ValueError as error:
            raise InvalidRequestError(f"who may order what cannot be read: {error}") from error
        if not isinstance(given, dict):
            raise InvalidRequestError("who may order what cannot be read: it is not a JSON object")
        return cls.parse({name: require_patterns(name, str(listed).split(",")) for name, listed in given.items()})


class OrderResult(StepModel):
    """The result of an order. `by` is the caller's ARN as AWS attests it."""

    action: str
    by: str
    at: datetime
    cluster_arn: str | None = None
    cluster_name: str | None = None
    plan_id: str | None = None
    summary: str | None = None
    approved: bool | None = None
    on: bool | None = None
    version: str | None = None
    """S3 version of the document that was stored."""
    order_id: str | None = None
    event_id: str | None = None
    """Id of the event that starts the requested run."""


@dataclass(frozen=True, slots=True)
class TakeOrder:
    """Carries out the orders of people, checked against the stack's parameters. Its fields are the ports it uses.

    `rights` is read for each order, so that a right that is revoked ends at once.
    """

    book: OrderBook
    rights: Callable[[], Rights]
    clock: Clock

    def __call__(self, user_arn: str, order: Order) -> OrderResult:
        """Carry out an order of the caller with this attested ARN.

        Raises InvalidRequestError, NotAllowedError, NotFoundError, ConflictError, ThrottledError, UpstreamError.
        """
        rights = self.rights()
        by = person_of(user_arn, rights.named_session_roles)
        match order:
            case AnswerOrder():
                _require(by, rights.approvers, "Approvers", "answer requests for approval")
                return self._answer(order, by, rights)
            case StopOrder():
                _require(by, rights.stoppers, "Stoppers", "turn the stop switch")
                return self._stop(order, by)
            case DocumentOrder():
                _require(by, rights.authors, "Authors", "put documents into force")
                return self._document(order, by)
            case RunOrder():
                at = self.clock.now()
                event_id = self.book.request_run(order, by, at)
                return OrderResult(
                    action=order.action, by=by.arn, at=at, cluster_arn=order.cluster_arn, event_id=event_id
                )
            case UnlockOrder():
                _require(by, rights.stoppers, "Stoppers", "free locks")
                return self._unlock(order, by)
            case ManualOrder():
                at = self.clock.now()
                order_id = self.book.record_order(order, by, at)
                return OrderResult(
                    action=order.action,
                    by=by.arn,
                    at=at,
                    cluster_arn=order.cluster_arn,
                    plan_id=order.plan_id,
                    order_id=order_id,
                )

    def _answer(self, order: AnswerOrder, by: Person, rights: Rights) -> OrderResult:
        request = self.book.request(order.cluster_arn, order.plan_id)
        now = self.clock.now()
        if request is None:
            raise NotFoundError(f"no plan {order.plan_id} waits for approval on {order.cluster_arn}")
        approved = order.action == "approve"
        if request.answered_by is not None and (request.answered_person, request.approved) != (by.identity, approved):
            raise ConflictError(_answered(request))
        if request.expires_at <= now.timestamp():
            raise ConflictError(_over(request))
        known = None
        if request.policy_version is not None:
            known = self.book.authorship(request.cluster_name, request.policy_version)
        author = known.author if known is not None else None
        if approved and rights.approvers:
            require_another_author(by.identity, author, order.plan_id)
        answer = Answer(by, now, approved, author or UNKNOWN)
        # The answer is kept before the run gets it: two answers cannot both count, and the same one may be repeated.
        self.book.claim(request, answer)
        is_unknown = known is None or (known.author is None and known.accepted_by is None)
        accepts = request.policy_version if approved and rights.approvers and is_unknown else None
        if accepts is not None:
            self.book.record_acceptance(request.cluster_name, accepts, by, now)
        if not self.book.tell(request, answer):
            if accepts is not None and request.answered_by is None:  # an answer that did not count accepts nothing
                self.book.withdraw_acceptance(request.cluster_name, accepts, by)
            raise ConflictError(_over(request) if request.answered_by is None else _answered(request))
        return OrderResult(
            action=order.action,
            by=by.arn,
            at=now,
            cluster_arn=request.cluster_arn,
            cluster_name=request.cluster_name,
            plan_id=request.plan_id,
            summary=request.summary,
            approved=approved,
        )

    def _stop(self, order: StopOrder, by: Person) -> OrderResult:
        on, at = order.action == "stop", self.clock.now()
        self.book.turn(by, at, order.reason, on=on)
        return OrderResult(action=order.action, by=by.arn, at=at, on=on)

    def _unlock(self, order: UnlockOrder, by: Person) -> OrderResult:
        at = self.clock.now()
        order_id = self.book.record_order(order, by, at)
        self.book.free_lock(order)
        event_id = self.book.request_run(order, by, at)
        return OrderResult(
            action=order.action,
            by=by.arn,
            at=at,
            cluster_arn=order.cluster_arn,
            order_id=order_id,
            event_id=event_id,
        )

    def _document(self, order: DocumentOrder, by: Person) -> OrderResult:
        parsed = parse_policy(order.text)
        if parsed.document is None:
            raise InvalidRequestError(f"the document of {order.cluster_name} is not valid", parsed.violations)
        cluster = parsed.document.cluster
        if (cluster.name, cluster.arn) != (order.cluster_name, order.cluster_arn):
            raise InvalidRequestError(
                f"the document is of {cluster.name} ({cluster.arn}), and should be put into force for "
                f"{order.cluster_name} ({order.cluster_arn})"
            )
        at = self.clock.now()
        version = self.book.put_document(order)
        # After the document, whose version is known only now: a run that reads it in between finds no author and
        # requests approval.
        try:
            self.book.record_author(order.cluster_name, version, by, at, order.claim)
        except GovernanceError as error:
            raise UpstreamError(
                f"the document of {order.cluster_name} is in force (version {version}), but its author could not be "
                f"recorded ({error}): apply it again; without an author its plans need an approver"
            ) from error
        return OrderResult(
            action=order.action,
            by=by.arn,
            at=at,
            cluster_arn=order.cluster_arn,
            cluster_name=order.cluster_name,
            version=version,
        )


def require_another_author(approver: str, author: str | None, plan_id: str) -> None:
    """Raise NotAllowedError when the approver put the document into force from which the plan follows."""
    if author is not None and is_same_person(approver, author):
        raise NotAllowedError(
            f"{author} put the document into force from which plan {plan_id} follows; somebody else approves it"
        )


def _require(by: Person, patterns: tuple[str, ...], parameter: str, what: str) -> None:
    if patterns and not may(by, patterns):
        raise NotAllowedError(f"{by.arn} may not {what}: the stack's parameter {parameter} does not name this person")


def _answered(request: ApprovalRequest) -> str:
    what = "approved" if request.approved else "rejected"
    return (
        f"plan {request.plan_id} was {what} by {request.answered_by} at {stored_moment(request.answered_at)}; "
        f"for the outcome: taskgov history {request.cluster_name}"
    )


def _over(request: ApprovalRequest) -> str:
    return (
        f"no run waits for plan {request.plan_id} any more: the request of {stored_moment(request.asked_at)} expired "
        f"or was answered; ask for a new plan: taskgov reconcile {request.cluster_name}"
    )
