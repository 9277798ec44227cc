"""Send an order to the stack's entry, signed with the credentials of the caller.

The entry is a function URL or an HTTP API with IAM (output `OrderEntryUrl`): AWS checks the signature and names the
function who called. What the function records and what commands print as "by" is its answer, not this machine's word.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import boto3
import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.configprovider import ConfiguredEndpointProvider
from botocore.exceptions import HTTPClientError, NoCredentialsError
from botocore.httpsession import URLLib3Session

from taskgov.contracts.orders import ManualOrder
from taskgov.errors import ConflictError, InvalidRequestError, NotFoundError, ThrottledError, UpstreamError
from taskgov_cli.deployed import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.awsrequest import AWSPreparedRequest

    from taskgov.contracts.orders import Order
    from taskgov_cli.deployed import Deployed

TIMEOUT: Final = 35
"""Seconds: a little longer than the function has."""
REFUSED: Final = frozenset({"NotAllowedError", "ConflictError"})
ERRORS: Final = {
    error.__name__: error
    for error in (ConflictError, InvalidRequestError, NotFoundError, ThrottledError, UpstreamError)
}


def give(place: Deployed, order: Order) -> dict[str, Any]:
    """Send the order and return the result; `by` is the caller as AWS attests it.

    Raises RefusedError for what this person may not order or what is over, GovernanceError.
    """
    body = order.model_dump_json(by_alias=True, exclude_none=True)
    request = _to_configured_endpoint(_signed(place.entry_url, body).prepare())
    try:
        response = URLLib3Session(timeout=TIMEOUT).send(request)
    except HTTPClientError as error:
        raise UpstreamError(f"send the order to {place.entry_url}: {error}") from error
    answer = _read(response.content)
    if response.status_code == 200 and isinstance(answer, dict):
        return answer
    raise _refusal(response.status_code, answer if isinstance(answer, dict) else {}, place)


def by_hand(place: Deployed, action: str, cluster_arn: str, plan_id: str) -> str:
    """Record that this person is about to `apply` or `rollback` a plan by hand; return whom AWS attests.

    Raises RefusedError, GovernanceError: then nothing may be written.
    """
    order = ManualOrder.parse({"action": action, "clusterArn": cluster_arn, "planId": plan_id})
    return str(give(place, order)["by"])


def _signed(url: str, body: str) -> AWSRequest:
    session = boto3.Session()
    credentials = session.get_credentials()
    if credentials is None:
        raise UpstreamError("sign the order: no AWS credentials were found") from NoCredentialsError()
    parts = (urlsplit(url).hostname or "").split(".")
    service = "execute-api" if parts[1] == "execute-api" else "lambda"
    request = AWSRequest("POST", url, {"content-type": "application/json"}, body.encode())
    SigV4Auth(credentials.get_frozen_credentials(), service, parts[2]).add_auth(request)
    return request


def _to_configured_endpoint(request: AWSPreparedRequest) -> AWSPreparedRequest:
    """Send a signed order where the environment sends the calls of Lambda (`AWS_ENDPOINT_URL`), e.g. `taskgov local`.

    The header Host, which is signed, still names the entry.
    """
    session = botocore.session.get_session()
    endpoint = ConfiguredEndpointProvider(session.full_config, session.get_scoped_config(), "lambda").provide()
    if endpoint:
        parts = urlsplit(request.url)
        request.headers["Host"] = parts.netloc
        request.url = f"{str(endpoint).rstrip('/')}{parts.path or '/'}"
    return request


def _read(content: bytes) -> object:
    try:
        read: object = json.loads(content)
    except ValueError:
        return None
    return read


def _refusal(status: int, answer: Mapping[str, Any], place: Deployed) -> Exception:
    name, message = str(answer.get("error", "")), str(answer.get("message", ""))
    if name in REFUSED:
        return RefusedError(message)
    if name in ERRORS:
        return ERRORS[name](message)
    if status == 403:
        return RefusedError(
            f"AWS denied your call of {place.entry_url}: {answer.get('Message', answer.get('message', 'forbidden'))}; "
            "who may is in the policies of the stack's outputs (docs/operations.md)"
        )
    return UpstreamError(
        f"the stack's entry answered {status}: {message or answer.get('Message', 'nothing that can be read')}"
    )
