"""Answer HTTPS requests to the stack's own addresses: function URLs and HTTP APIs, both with IAM.

botocore sends a request that it has signed itself (`URLLib3Session.send`) without asking moto. `Entry` stands there: it
checks the signature and its age, then the caller's policies, and invokes the function with the event that AWS documents
for payload 2.0. Who calls is what the signature says, whatever the body says.
"""

from __future__ import annotations

import hmac
import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session
from moto.core.botocore_stubber import MockRawResponse

from taskgov_embedded.aws_api.aws_requests import Call
from taskgov_embedded.aws_api.wire import AwsError
from taskgov_embedded.functions import process
from taskgov_embedded.iam import actions
from taskgov_embedded.iam.identity import read_signature

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.patches import Patches
    from taskgov_embedded.functions.runtime import Runtime
    from taskgov_embedded.iam.identity import Principal, Signature

SIGNATURE_MINUTES = 5
"""How old a signature may be."""
DATE = "%Y%m%dT%H%M%SZ"


class _RefusedError(Exception):
    """The request does not reach the function; the message is the body of the answer."""


@dataclass(frozen=True, slots=True)
class _Address:
    """One address: what is invoked there, and the IAM request. `api_arn` is None for a function URL."""

    function: str
    function_arn: str
    prefix: str
    api_arn: str | None

    @property
    def signing_name(self) -> str:
        return "lambda" if self.api_arn is None else "execute-api"


class HttpEntry:
    """The addresses of one account."""

    def __init__(self, account: Account, runtime: Runtime) -> None:
        self._account = account
        self._runtime = runtime

    def install(self, patches: Patches) -> None:
        """Stand between botocore and the network."""
        own = URLLib3Session.send

        def send(session: Any, request: Any) -> Any:
            answer = self.answer(request)
            if answer is None:
                return own(session, request)
            status, headers, body = answer
            return AWSResponse(request.url, status, HTTPHeaders.from_dict(headers), MockRawResponse(body))

        patches.replace(URLLib3Session, "send", send, "signed orders go to a function's address, which moto has not")

    def answer(self, request: Any) -> tuple[int, dict[str, str], bytes] | None:
        """Return status, headers and body for a request to one of the addresses; None when its URL is another one."""
        address = self._address_of(request.url)
        if address is None:
            return None
        with process.running(None):
            return self._answer(address, request)

    def order(self, order: Mapping[str, Any], person: str | None = None, **overrides: Any) -> tuple[int, Any]:
        """Send a signed order (see `signed_order`); return status and body of the answer."""
        response = URLLib3Session().send(self.signed_order(order, person, **overrides).prepare())
        return response.status_code, json.loads(response.content)

    def signed_order(
        self,
        order: Mapping[str, Any],
        person: str | None = None,
        *,
        credentials: Credentials | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Return an order to the stack's entry, signed as a person's command does it.

        `person` is a user, `Approvers/ana` a session of a role; the operator when it is not given. `credentials` to
        sign with and further `headers` are what a forger would change.
        """
        url = self._account.resources.outputs["OrderEntryUrl"]
        service = "execute-api" if ".execute-api." in url else "lambda"
        key = self._account.identities.key_of(person or "")
        signer = credentials or Credentials(key, self._account.identities.secret_of(key))
        request = AWSRequest("POST", url, {"content-type": "application/json"} | dict(headers or {}), json.dumps(order))
        SigV4Auth(signer, service, self._account.place.region).add_auth(request)
        return request

    def _address_of(self, url: str) -> _Address | None:
        host = urlsplit(url).hostname or ""
        prefix = host.partition(".")[0]
        if host == f"{prefix}.lambda-url.{self._account.place.region}.on.aws":
            return self._function_url(prefix)
        if host == f"{prefix}.execute-api.{self._account.place.region}.amazonaws.com":
            return self._api(prefix)
        return None

    def _function_url(self, prefix: str) -> _Address | None:
        for url in self._account.resources.of("AWS::Lambda::Url"):
            if url.physical_id.startswith(f"https://{prefix}."):
                arn = f"{url.properties['TargetFunctionArn']}:{url.properties['Qualifier']}"
                return _Address(arn.rpartition("function:")[2], arn, prefix, None)
        return None

    def _api(self, prefix: str) -> _Address | None:
        for integration in self._account.resources.of("AWS::ApiGatewayV2::Integration"):
            if integration.properties["ApiId"] == prefix:
                arn = integration.properties["IntegrationUri"]
                api = self._account.place.arn("execute-api", f"{prefix}/$default/POST/")
                return _Address(arn.rpartition("function:")[2], arn, prefix, api)
        return None

    def _answer(self, address: _Address, request: Any) -> tuple[int, dict[str, str], bytes]:
        try:
            principal, signature = self._signed_by(address, request)
            self._authorized(address, principal)
        except (_RefusedError, AwsError) as refused:
            return 403, {"content-type": "application/json"}, json.dumps({"Message": str(refused)}).encode()
        result = self._runtime.invoke(address.function, self._event(address, request, principal, signature))
        if result.is_error:
            return 502, {"content-type": "application/json"}, b"Internal Server Error"
        answer = result.value
        headers = {name: str(value) for name, value in answer.get("headers", {}).items()}
        return int(answer["statusCode"]), headers, answer.get("body", "").encode()

    def _signed_by(self, address: _Address, request: Any) -> tuple[Principal, Signature]:
        headers = {name.lower(): _text(value) for name, value in request.headers.items()}
        authorization = headers.get("authorization", "")
        signature = read_signature(authorization)
        if signature is None or signature.signing_name != address.signing_name:
            raise _RefusedError("Forbidden")
        signed_at = datetime.strptime(headers["x-amz-date"], DATE).replace(tzinfo=UTC)
        if abs(self._account.clock.now - signed_at) > timedelta(minutes=SIGNATURE_MINUTES):
            raise _RefusedError(f"Signature expired: {headers['x-amz-date']}")
        secret = self._account.identities.secret_of(signature.access_key)
        wanted = _signature_of(request, headers, secret, signature)
        if not hmac.compare_digest(wanted, authorization.rpartition("Signature=")[2]):
            raise _RefusedError(
                "The request signature we calculated does not match the signature you provided. "
                "Check your AWS Secret Access Key and signing method."
            )
        return self._account.identities.principal(signature.access_key), signature

    def _authorized(self, address: _Address, principal: Principal) -> None:
        service, operation = ("execute-api", "Invoke") if address.api_arn else ("lambda", "InvokeFunctionUrl")
        resource = address.api_arn or address.function_arn
        params = {"Arn": resource}
        action = actions.needs(service, operation, params, self._account.place)[0].action
        now = self._account.clock.now
        self._account.requests.admit(Call(now, principal, service, operation, action, (resource,), params))
        if address.api_arn and not self._may_invoke(address):
            raise _RefusedError("Internal Server Error")

    def _may_invoke(self, address: _Address) -> bool:
        """Return whether the function's policy lets API Gateway invoke it."""
        return any(
            permission.properties["FunctionName"] == address.function_arn
            and permission.properties["Principal"] == "apigateway.amazonaws.com"
            and f":{address.prefix}/" in permission.properties["SourceArn"]
            for permission in self._account.resources.of("AWS::Lambda::Permission")
        )

    def _event(self, address: _Address, request: Any, principal: Principal, signature: Signature) -> dict[str, Any]:
        url = urlsplit(request.url)
        user_id = self._account.identities.user_id(principal)
        body = request.body
        return {
            "version": "2.0",
            "routeKey": "$default" if address.api_arn is None else "POST /",
            "rawPath": url.path or "/",
            "rawQueryString": url.query,
            "headers": {name.lower(): _text(value) for name, value in request.headers.items()},
            "requestContext": {
                "accountId": self._account.place.account,
                "apiId": address.prefix,
                "authentication": None,
                "authorizer": {
                    "iam": {
                        "accessKey": signature.access_key,
                        "accountId": self._account.place.account,
                        "callerId": user_id,
                        "cognitoIdentity": None,
                        "principalOrgId": None,
                        "userArn": principal.arn,
                        "userId": user_id,
                    }
                },
                "domainName": url.hostname,
                "domainPrefix": address.prefix,
                "http": {
                    "method": request.method,
                    "path": url.path or "/",
                    "protocol": "HTTP/1.1",
                    "sourceIp": "192.0.2.1",
                    "userAgent": _text(request.headers.get("User-Agent", "")),
                },
                "requestId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{address.prefix}/{self._account.clock.iso}")),
                "routeKey": "$default" if address.api_arn is None else "POST /",
                "stage": "$default",
                "time": self._account.clock.now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
                "timeEpoch": int(self._account.clock.now.timestamp() * 1000),
            },
            "body": _text(body) if body else None,
            "isBase64Encoded": False,
        }


def _signature_of(request: Any, headers: Mapping[str, str], secret: str, signature: Signature) -> str:
    """Sign the request again, with the headers that were signed."""
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    again = AWSRequest(
        method=request.method,
        url=request.url,
        data=request.body,
        headers={name: headers[name] for name in signed if name != "host" and name in headers},
    )
    again.context["timestamp"] = headers["x-amz-date"]
    credentials = Credentials(signature.access_key, secret, headers.get("x-amz-security-token"))
    auth = SigV4Auth(credentials, signature.signing_name, signature.region)
    canonical = auth.canonical_request(again)
    made: str = auth.signature(auth.string_to_sign(again, canonical), again)
    return made


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
