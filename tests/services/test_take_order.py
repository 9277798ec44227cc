"""Orders of people: whom AWS attests, who may order what, and what is kept of it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from taskgov.contracts.orders import DocumentOrder, ManualOrder, RunOrder, UnlockOrder, caller_of, order_of
from taskgov.errors import ConflictError, InvalidRequestError, NotAllowedError, NotFoundError, UpstreamError
from taskgov.people import Person, person_of
from taskgov.ports import Answer, ApprovalRequest
from taskgov.services.take_order import Rights, TakeOrder
from taskgov.snapshot.records import Authorship
from tests.support.memory import CLUSTER_ARN, NOON, FixedClock

ACCOUNT = "arn:aws:iam::111122223333"
ANA, BEN = f"{ACCOUNT}:user/ana", f"{ACCOUNT}:user/ben"
OPS = "arn:aws:sts::111122223333:assumed-role/Ops/{}"
PLAN = "plan-0123456789abcdef"
REQUEST = ApprovalRequest(
    cluster_arn=CLUSTER_ARN,
    cluster_name="ml-cluster",
    plan_id=PLAN,
    policy_version="v1",
    task_token="token-1",
    summary="2 GPUs change hands",
    asked_at=NOON.isoformat(),
    expires_at=int(NOON.timestamp()) + 3600,
)
DOCUMENT = f"{{apiVersion: taskgov/v1, cluster: {{name: ml-cluster, arn: '{CLUSTER_ARN}'}}, teams: []}}"


@dataclass
class InMemoryBook:
    """Requests, answers, documents and orders in dictionaries."""

    requests: dict[tuple[str, str], ApprovalRequest] = field(default_factory=dict)
    waits: bool = True
    fails: bool = False
    told: list[tuple[str, bool]] = field(default_factory=list)
    behind: dict[tuple[str, str], Authorship] = field(default_factory=dict)
    claims: dict[tuple[str, str], str] = field(default_factory=dict)
    switch: tuple[bool, str, str] | None = None
    documents: list[str] = field(default_factory=list)
    orders: list[tuple[str, str]] = field(default_factory=list)
    lock: str = "a run"
    runs: list[tuple[RunOrder | UnlockOrder, str]] = field(default_factory=list)

    def request(self, cluster_arn: str, plan_id: str) -> ApprovalRequest | None:
        return self.requests.get((cluster_arn, plan_id))

    def claim(self, request: ApprovalRequest, answer: Answer) -> None:
        key = (request.cluster_arn, request.plan_id)
        stands = self.requests[key]
        same = (stands.answered_person, stands.approved) == (answer.by.identity, answer.approved)
        if stands.task_token != request.task_token or (stands.answered_by is not None and not same):
            raise ConflictError("another answer stands")
        self.requests[key] = replace(
            stands,
            answered_by=answer.by.arn,
            answered_person=answer.by.identity,
            answered_at=answer.at.isoformat(),
            approved=answer.approved,
        )

    def tell(self, request: ApprovalRequest, answer: Answer) -> bool:
        if self.fails:
            raise UpstreamError("Step Functions does not answer")
        if self.waits:
            self.told.append((answer.by.identity, answer.approved))
        was, self.waits = self.waits, False
        return was

    def turn(self, by: Person, at: datetime, reason: str, *, on: bool) -> None:
        self.switch = (on, by.arn, reason)

    def put_document(self, order: DocumentOrder) -> str:
        self.documents.append(order.text)
        return f"v{len(self.documents)}"

    def authorship(self, cluster_name: str, version: str) -> Authorship | None:
        return self.behind.get((cluster_name, version))

    def record_author(self, cluster_name: str, version: str, by: Person, at: datetime, claim: str) -> None:
        if self.fails:
            raise UpstreamError("DynamoDB does not answer")
        self.behind[cluster_name, version] = Authorship(author=by.identity)
        self.claims[cluster_name, version] = claim

    def record_acceptance(self, cluster_name: str, version: str, by: Person, at: datetime) -> None:
        self.behind[cluster_name, version] = Authorship(accepted_by=by.identity)

    def withdraw_acceptance(self, cluster_name: str, version: str, by: Person) -> None:
        if self.behind.get((cluster_name, version)) == Authorship(accepted_by=by.identity):
            del self.behind[cluster_name, version]

    def record_order(self, order: ManualOrder | UnlockOrder, by: Person, at: datetime) -> str:
        self.orders.append((order.action, by.arn))
        return f"{order.action}-1"

    def free_lock(self, order: UnlockOrder) -> None:
        if order.owner != self.lock:
            raise ConflictError("the lock changed meanwhile")
        self.lock = ""

    def request_run(self, order: RunOrder | UnlockOrder, by: Person, at: datetime) -> str:
        if self.fails:
            raise UpstreamError("SQS does not answer")
        self.runs.append((order, by.arn))
        return "event-1"


@pytest.fixture
def book() -> InMemoryBook:
    return InMemoryBook({(CLUSTER_ARN, PLAN): REQUEST})


Give = Callable[..., dict[str, Any]]


@pytest.fixture
def give(book: InMemoryBook) -> Give:
    """Give an order as AWS hands it on: the body is the person's, the request context AWS's."""

    def given(
        who: str, action: str = "approve", at: datetime = NOON, rights: str = "", stoppers: str = "", **more: Any
    ) -> dict[str, Any]:
        body = {"action": action, **(_ANSWERS if action in {"approve", "reject"} else {}), **more}
        event = {"requestContext": {"authorizer": {"iam": {"userArn": who}}}, "body": json.dumps(body)}
        named = f"{ACCOUNT}:role/Named"
        text = json.dumps({"approvers": rights, "stoppers": stoppers, "namedSessionRoles": named})
        take = TakeOrder(book, lambda: Rights.read(text), FixedClock(at))
        return take(caller_of(event), order_of(event)).to_json()

    return given


_ANSWERS = {"clusterArn": CLUSTER_ARN, "planId": PLAN}
ANYBODY = f"{ACCOUNT}:user/*,{ACCOUNT}:role/*"


def test_the_answer_and_the_record_name_whom_aws_attests(book: InMemoryBook, give: Give) -> None:
    answer = give(OPS.format("ana"))
    assert (answer["by"], answer["approved"], answer["clusterName"]) == (OPS.format("ana"), True, "ml-cluster")
    assert book.told == [(f"{ACCOUNT}:role/Ops", True)]
    assert book.requests[CLUSTER_ARN, PLAN].answered_by == OPS.format("ana")


@pytest.mark.parametrize(
    "forged", [{"by": BEN}, {"person": BEN}, {"requestContext": {"authorizer": {"iam": {"userArn": BEN}}}}]
)
def test_a_body_that_names_somebody_is_refused(book: InMemoryBook, give: Give, forged: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="Extra inputs"):
        give(ANA, **forged)
    assert book.told == []


def test_a_request_without_an_attested_caller_is_refused(book: InMemoryBook) -> None:
    for event in (
        {},
        {"requestContext": {"authorizer": None}},
        {"requestContext": {"authorizer": {"iam": {"userArn": ""}}}},
    ):
        with pytest.raises(InvalidRequestError, match="names no caller"):
            caller_of(event)


def test_only_whom_the_parameter_names_answers_requests(book: InMemoryBook, give: Give) -> None:
    for action in ("approve", "reject"):
        with pytest.raises(NotAllowedError, match="Approvers does not name"):
            give(BEN, action, rights=ANA)
    assert (book.told, book.requests[CLUSTER_ARN, PLAN].answered_by) == ([], None)
    give(ANA, rights=ANA)
    assert book.told == [(ANA, True)]


OWN = {
    "the same user": (ANA, ANA),
    "another session of the same role": (OPS.format("one"), OPS.format("two")),
    "the user in a named session": (ANA, "arn:aws:sts::111122223333:assumed-role/Named/ana"),
    "a user of Identity Center with another permission set": (
        "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Author_0123456789abcdef/ana@example.com",
        "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Lead_fedcba9876543210/Ana@example.com",
    ),
}


@pytest.mark.parametrize(("author", "approver"), OWN.values(), ids=OWN)
def test_nobody_approves_what_follows_from_his_own_document(
    book: InMemoryBook, give: Give, author: str, approver: str
) -> None:
    put = give(author, "put-document", clusterArn=CLUSTER_ARN, clusterName="ml-cluster", text=DOCUMENT, rights=ANYBODY)
    assert put["version"] == "v1"
    with pytest.raises(NotAllowedError, match="put the document into force"):
        give(approver, rights=ANYBODY)
    assert (book.told, book.requests[CLUSTER_ARN, PLAN].answered_by) == ([], None)
    give(approver, "reject", rights=ANYBODY)  # saying no to oneself is no risk
    assert [approved for _, approved in book.told] == [False]


def test_where_nobody_is_named_one_person_operates_alone(book: InMemoryBook, give: Give) -> None:
    give(ANA, "put-document", clusterArn=CLUSTER_ARN, clusterName="ml-cluster", text=DOCUMENT)
    give(ANA)
    assert book.told == [(ANA, True)]


def test_who_is_not_recorded_as_the_author_is_asked_to_apply_again_and_is_the_author_then(
    book: InMemoryBook, give: Give
) -> None:
    order = {"clusterArn": CLUSTER_ARN, "clusterName": "ml-cluster", "text": DOCUMENT}
    book.fails = True
    with pytest.raises(UpstreamError, match=r"in force \(version v1\), but its author could not be recorded .*again"):
        give(ANA, "put-document", **order)
    assert book.behind == {}
    book.fails = False
    give(ANA, "put-document", **order)
    assert list(book.behind) == [("ml-cluster", "v2")]


def test_an_approver_accepts_a_document_whose_author_is_not_known(book: InMemoryBook, give: Give) -> None:
    give(BEN, rights=ANYBODY)
    assert book.behind == {("ml-cluster", "v1"): Authorship(accepted_by=BEN)}


def test_an_approval_that_no_run_waits_for_accepts_no_document(book: InMemoryBook, give: Give) -> None:
    book.waits = False
    with pytest.raises(ConflictError, match="no run waits"):
        give(BEN, rights=ANYBODY)
    assert book.behind == {}


def test_an_approval_that_is_repeated_after_it_reached_the_run_accepts_the_document_still(
    book: InMemoryBook, give: Give
) -> None:
    give(BEN, rights=ANYBODY)
    with pytest.raises(ConflictError, match=f"was approved by {BEN}"):
        give(BEN, rights=ANYBODY)
    assert book.behind == {("ml-cluster", "v1"): Authorship(accepted_by=BEN)}


def test_a_rejection_accepts_no_document(book: InMemoryBook, give: Give) -> None:
    give(BEN, "reject", rights=ANYBODY)
    assert book.behind == {}


def test_an_approval_is_not_replayed(book: InMemoryBook, give: Give) -> None:
    give(ANA)
    for who, action in ((BEN, "approve"), (ANA, "reject"), (ANA, "approve")):
        with pytest.raises(ConflictError, match=f"was approved by {ANA}"):
            give(who, action)
    assert book.told == [(ANA, True)]


def test_an_approval_that_did_not_reach_the_run_may_be_repeated_by_the_same_person(
    book: InMemoryBook, give: Give
) -> None:
    book.fails = True
    with pytest.raises(UpstreamError):
        give(ANA)
    book.fails = False
    with pytest.raises(ConflictError, match=f"was approved by {ANA}"):
        give(BEN)
    give(ANA)
    assert book.told == [(ANA, True)]


def test_an_expired_request_is_not_answered(book: InMemoryBook, give: Give) -> None:
    with pytest.raises(
        ConflictError, match="expired or was answered; ask for a new plan: taskgov reconcile ml-cluster"
    ):
        give(ANA, at=NOON + timedelta(hours=1))
    assert (book.told, book.requests[CLUSTER_ARN, PLAN].answered_by) == ([], None)


def test_a_run_that_waits_no_more_is_said_with_the_way_to_a_new_plan(book: InMemoryBook, give: Give) -> None:
    book.waits = False
    with pytest.raises(ConflictError, match="taskgov reconcile ml-cluster"):
        give(ANA)


def test_a_plan_that_nobody_asked_for_is_not_found(give: Give) -> None:
    with pytest.raises(NotFoundError, match="no plan plan-ff waits"):
        give(ANA, planId="plan-ff")


@pytest.mark.parametrize(
    "user_arn", ["arn:aws:sts::111122223333:federated-user/ana", "ana", "arn:aws:sts::111122223333:assumed-role/Ops"]
)
def test_a_caller_who_is_no_person_orders_nothing(book: InMemoryBook, give: Give, user_arn: str) -> None:
    for action in ("approve", "stop"):
        with pytest.raises(InvalidRequestError, match="caller "):
            give(user_arn, action)
    assert (book.told, book.switch) == ([], None)


def test_the_stop_switch_keeps_who_turned_it_and_why(book: InMemoryBook, give: Give) -> None:
    assert give(ANA, "stop", reason="maintenance")["on"] is True
    assert book.switch == (True, ANA, "maintenance")
    give(BEN, "resume")
    assert book.switch == (False, BEN, "")


def test_a_reason_with_escape_sequences_is_refused(book: InMemoryBook, give: Give) -> None:
    with pytest.raises(InvalidRequestError, match="reason"):
        give(ANA, "stop", reason="a\x1b[31m")
    assert book.switch is None


def test_each_right_is_its_own_parameter(book: InMemoryBook) -> None:
    take = TakeOrder(book, lambda: Rights(authors=(ANA,), stoppers=(BEN,)), FixedClock(NOON))
    document = DocumentOrder(action="put-document", cluster_arn=CLUSTER_ARN, cluster_name="ml-cluster", text=DOCUMENT)
    with pytest.raises(NotAllowedError, match="Authors"):
        take(BEN, document)
    with pytest.raises(NotAllowedError, match="Stoppers"):
        take(ANA, order_of({"body": '{"action": "stop"}'}))
    assert (book.documents, book.switch) == ([], None)


@pytest.mark.parametrize(
    ("text", "why"),
    [("{apiVersion: taskgov/v9}", "is not valid"), (DOCUMENT.replace("ml-cluster", "other"), "document is of other")],
    ids=["that breaks rules", "of another cluster"],
)
def test_a_document_is_not_stored(book: InMemoryBook, give: Give, text: str, why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why):
        give(ANA, "put-document", clusterArn=CLUSTER_ARN, clusterName="ml-cluster", text=text)
    assert (book.documents, book.behind) == ([], {})


@pytest.mark.parametrize("action", ["apply", "rollback"])
def test_a_write_by_hand_is_on_record_before_it_begins(book: InMemoryBook, give: Give, action: str) -> None:
    answer = give(ANA, action, clusterArn=CLUSTER_ARN, planId=PLAN)
    assert (answer["by"], answer["orderId"]) == (ANA, f"{action}-1")
    assert book.orders == [(action, ANA)]


def test_a_run_that_is_asked_for_names_whom_aws_attests(book: InMemoryBook, give: Give) -> None:
    answer = give(OPS.format("ana"), "reconcile", clusterArn=CLUSTER_ARN)
    assert (answer["by"], answer["eventId"]) == (OPS.format("ana"), "event-1")
    assert [(order.cluster_arn, by) for order, by in book.runs] == [(CLUSTER_ARN, OPS.format("ana"))]
    with pytest.raises(InvalidRequestError, match="Extra inputs"):
        give(ANA, "reconcile", clusterArn=CLUSTER_ARN, by=BEN)


LOCK = {"clusterArn": CLUSTER_ARN, "owner": "a run", "fencingToken": 7, "reason": "its execution is gone"}


def test_a_lock_is_freed_with_who_and_why_on_record_and_a_run_follows(book: InMemoryBook, give: Give) -> None:
    answer = give(ANA, "unlock", **LOCK)
    assert (answer["by"], answer["orderId"], answer["eventId"]) == (ANA, "unlock-1", "event-1")
    assert (book.orders, book.lock) == ([("unlock", ANA)], "")
    assert book.runs == [(UnlockOrder.parse({"action": "unlock", **LOCK}), ANA)]


def test_a_lock_that_changed_meanwhile_stays_and_no_run_is_asked_for(book: InMemoryBook, give: Give) -> None:
    with pytest.raises(ConflictError, match="changed meanwhile"):
        give(ANA, "unlock", **LOCK | {"owner": "another run"})
    assert (book.lock, book.runs) == ("a run", [])


def test_a_lock_is_freed_by_those_who_may_stop(book: InMemoryBook, give: Give) -> None:
    with pytest.raises(NotAllowedError, match="may not free locks: the stack's parameter Stoppers"):
        give(BEN, "unlock", stoppers=ANA, **LOCK)
    assert (book.lock, book.orders) == ("a run", [])
    assert give(ANA, "unlock", stoppers=ANA, **LOCK)["by"] == ANA


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines"])
def test_a_lock_is_freed_for_a_reason_only(book: InMemoryBook, give: Give, reason: str) -> None:
    with pytest.raises(InvalidRequestError, match="reason"):
        give(ANA, "unlock", **LOCK | {"reason": reason})
    assert book.lock == "a run"


def test_a_lock_that_was_freed_and_whose_run_fails_has_its_order_on_record(book: InMemoryBook, give: Give) -> None:
    book.fails = True
    with pytest.raises(UpstreamError):
        give(ANA, "unlock", **LOCK)
    assert (book.lock, book.orders) == ("", [("unlock", ANA)])


@pytest.mark.parametrize("retry", [False, True])
def test_a_run_is_asked_for_with_or_without_the_writes_that_were_refused(
    book: InMemoryBook, give: Give, *, retry: bool
) -> None:
    assert give(BEN, "reconcile", clusterArn=CLUSTER_ARN, retryRefused=retry)["by"] == BEN
    ((order, by),) = book.runs
    assert isinstance(order, RunOrder)
    assert (order.cluster_arn, order.retry_refused, by) == (CLUSTER_ARN, retry, BEN)


@pytest.mark.parametrize(
    "body", [None, "", "[]", "{", '{"action": "delete"}', '{"action": "approve", "planId": "../x"}', "x" * 7_000_000]
)
def test_what_is_no_order_is_refused_with_what_is_wrong(body: Any) -> None:
    with pytest.raises(InvalidRequestError, match="order"):
        order_of({"body": body})


@pytest.mark.parametrize("text", ["", "{", '{"approvers": "everybody"}', '{"bosses": ""}'])
def test_rights_that_cannot_be_read_allow_nothing(book: InMemoryBook, text: str) -> None:
    with pytest.raises(InvalidRequestError):
        TakeOrder(book, lambda: Rights.read(text), FixedClock(NOON))(ANA, order_of({"body": '{"action": "stop"}'}))
    assert book.switch is None


@pytest.mark.parametrize("text", ["[]", "7", "null"])
def test_rights_that_are_no_object_allow_nothing(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="not a JSON object"):
        Rights.read(text)


@pytest.mark.parametrize(
    "odd",
    [
        {"fencingToken": True},
        {"fencingToken": "7"},
        {"fencingToken": -1},
        {"fencingToken": 10**400},
        {"expires": -1},
        {"expires": 10**16},
        {"expires": "soon"},
        {"by": ANA},
        {"person": ANA},
    ],
)
def test_a_number_that_no_lock_has_and_a_name_in_the_body_are_refused_by_name(odd: dict[str, Any]) -> None:
    """A number of hundreds of digits would end the function in DynamoDB's serializer."""
    with pytest.raises(InvalidRequestError, match=f"unlock.{next(iter(odd))}"):
        order_of({"body": json.dumps({"action": "unlock", **LOCK} | odd)})


@pytest.mark.parametrize("retry", ["yes", 1, None])
def test_only_a_boolean_says_that_refused_writes_are_asked_for_again(retry: object) -> None:
    body = {"action": "reconcile", "clusterArn": CLUSTER_ARN, "retryRefused": retry}
    with pytest.raises(InvalidRequestError, match="retryRefused"):
        order_of({"body": json.dumps(body)})


@pytest.mark.parametrize(
    "event",
    [[], None, 7, {"body": "\u00e9", "isBase64Encoded": True}, {"body": "//4=", "isBase64Encoded": True}],
    ids=["a list", "null", "a number", "text that is not ASCII", "bytes that are no text"],
)
def test_a_request_of_another_form_is_refused_and_ends_nothing(event: Any) -> None:
    with pytest.raises(InvalidRequestError):
        order_of(event)


@pytest.mark.parametrize(
    ("stored_with", "approves_with"),
    [("", "arn:aws:iam::111122223333:role/Ops"), ("arn:aws:iam::111122223333:role/Ops", "")],
)
def test_naming_a_role_s_sessions_makes_no_second_person_of_an_author(
    book: InMemoryBook, give: Give, stored_with: str, approves_with: str
) -> None:
    """Ana stores a document, then NamedSessionRoles changes: she is still who stored it, under another identity."""
    stored = person_of(OPS.format("ana"), [stored_with] if stored_with else [])
    book.requests[CLUSTER_ARN, PLAN] = REQUEST
    book.behind["ml-cluster", "v1"] = Authorship(author=stored.identity)
    rights = Rights(
        approvers=("arn:aws:iam::111122223333:role/Ops",), named_session_roles=(approves_with,) if approves_with else ()
    )
    order = order_of({"body": json.dumps({"action": "approve", "clusterArn": CLUSTER_ARN, "planId": PLAN})})
    with pytest.raises(NotAllowedError, match="somebody else approves it"):
        TakeOrder(book, lambda: rights, FixedClock(NOON))(OPS.format("ana"), order)
