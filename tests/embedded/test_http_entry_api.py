"""The entry where Lambda has no function URLs: an HTTP API with IAM."""

from botocore.credentials import Credentials

from taskgov_embedded.deployable import TEMPLATE
from taskgov_embedded.stack import Stack

STOP = {"action": "stop", "reason": "a test"}


def test_an_api_gives_the_function_the_same_caller() -> None:
    with Stack(TEMPLATE, {"OrdersThrough": "api-gateway"}) as stack:
        assert ".execute-api.us-east-1." in stack.outputs["OrderEntryUrl"]
        status, answer = stack.entry.order(STOP, "Ops/ana")
        assert (status, answer["by"]) == (200, "arn:aws:sts::111122223333:assumed-role/Ops/ana")
        forged = Credentials(stack.account.identities.key_of("ana"), "guessed")
        assert stack.entry.order(STOP, credentials=forged)[0] == 403
