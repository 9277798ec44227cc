"""The stack's own addresses: who is let in, and what the function hears about the caller."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from taskgov_embedded.deployable import TEMPLATE
from taskgov_embedded.functions.http_entry import SIGNATURE_MINUTES
from taskgov_embedded.stack import Stack

STOP = {"action": "stop", "reason": "a test"}


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with Stack(TEMPLATE) as opened:
        yield opened


def heard(stack: Stack) -> dict[str, Any]:
    (last,) = stack.results[-1:]
    assert last.function == "TakeOrderFunction"
    context: dict[str, Any] = last.event["requestContext"]
    return context


def test_the_function_gets_the_signer(stack: Stack) -> None:
    status, answer = stack.entry.order(STOP, "ana")
    assert (status, answer["by"]) == (200, "arn:aws:iam::111122223333:user/ana")
    context = heard(stack)
    assert context["authorizer"]["iam"]["userArn"] == answer["by"]
    assert context["authorizer"]["iam"]["callerId"].startswith("AIDA")
    assert context["domainName"].endswith(".lambda-url.us-east-1.on.aws")


def test_a_session_of_a_role_is_named_with_its_session(stack: Stack) -> None:
    _, answer = stack.entry.order(STOP, "Ops/ana")
    assert answer["by"] == "arn:aws:sts::111122223333:assumed-role/Ops/ana"
    assert heard(stack)["authorizer"]["iam"]["userId"].endswith(":ana")


@pytest.mark.parametrize("header", ["x-amzn-iam-user-arn", "x-forwarded-user", "requestContext"])
def test_no_header_of_the_caller_says_who_calls(stack: Stack, header: str) -> None:
    _, answer = stack.entry.order(STOP, "ana", headers={header: "arn:aws:iam::111122223333:user/ben"})
    assert answer["by"] == "arn:aws:iam::111122223333:user/ana"


def test_another_secret_than_the_keys_own_is_refused(stack: Stack) -> None:
    key = stack.account.identities.key_of("ana")
    before = len(stack.results)
    status, answer = stack.entry.order(STOP, credentials=Credentials(key, "guessed"))
    assert (status, len(stack.results)) == (403, before)
    assert "signature we calculated does not match" in answer["Message"]


def test_a_signed_request_whose_body_was_changed_is_refused(stack: Stack) -> None:
    request = stack.entry.signed_order(STOP, "ana")
    changed = AWSRequest(
        "POST", request.url, dict(request.headers), json.dumps(STOP | {"reason": "another"}).encode()
    ).prepare()
    assert URLLib3Session().send(changed).status_code == 403


def test_a_request_without_a_signature_is_refused(stack: Stack) -> None:
    request = AWSRequest("POST", stack.outputs["OrderEntryUrl"], {}, json.dumps(STOP).encode()).prepare()
    assert URLLib3Session().send(request).status_code == 403


def test_an_old_signature_is_refused(stack: Stack) -> None:
    request = stack.entry.signed_order(STOP, "ana")
    stack.advance(60 * SIGNATURE_MINUTES + 60, schedules=())
    response = URLLib3Session().send(request.prepare())
    assert response.status_code == 403
    assert "Signature expired" in json.loads(response.content)["Message"]


def test_a_role_whose_policies_do_not_allow_it_is_refused(stack: Stack) -> None:
    role = f"arn:aws:iam::111122223333:role/{stack.physical('ReadSnapshotRole')}"
    lent = stack.account.identities.assume(role, "somebody")
    status, answer = stack.entry.order(STOP, credentials=Credentials(lent.access_key, lent.secret_key, lent.token))
    assert status == 403
    assert "lambda:InvokeFunctionUrl" in answer["Message"]


def test_what_the_function_refuses_is_answered_with_the_name_of_the_error(stack: Stack) -> None:
    status, answer = stack.entry.order({"action": "approve", "by": "ana"}, "ana")
    assert (status, answer["error"]) == (400, "InvalidRequestError")
