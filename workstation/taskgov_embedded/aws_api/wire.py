"""What stands on the wire? Requests as botocore sends them, and answers as it reads them, by moto's parsers."""

from __future__ import annotations

import json
import re
import uuid
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moto.core.exceptions import ServiceException
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model

if TYPE_CHECKING:
    from collections.abc import Mapping

Answer = tuple[int, dict[str, str], Any]
"""Status, headers and body of a response, as moto has it."""


class AwsError(ServiceException):  # type: ignore[misc]  # moto has no types
    """An error answer: `AwsError("ConflictException", "...")` is what a client catches under that name."""


@dataclass(frozen=True, slots=True)
class Wire:
    """What a request looks like to the serializers: needed again for the answer."""

    service: str
    operation: str
    content_type: str
    model: Any

    def serialize(self, result: object) -> Answer:
        """Return the answer to a result of the operation, or to an `AwsError`."""
        service_model = get_service_model(self.service)
        protocol = determine_request_protocol(service_model, self.content_type)
        serializer = get_serializer_class(self.service, protocol)(operation_model=self.model)
        with warnings.catch_warnings():
            # AccessDenied and throttling errors are in no service model; moto warns of that and writes them all right.
            warnings.filterwarnings("ignore", message="Exception.AwsError. with code")
            written = serializer.serialize(result)
        # Step Functions names the request's id in the cause of an error, and moto's version needs one.
        headers = {"x-amzn-RequestId": str(uuid.uuid5(uuid.NAMESPACE_URL, str(written["body"])))}
        return written["status_code"], dict(written["headers"]) | headers, written["body"]


def rewind(body: Any) -> None:
    """Let moto read a streamed body (S3's chunks with a trailing checksum) that was read here already."""
    if hasattr(body, "seek"):
        body.seek(0)


def stays_whole(request: Any) -> bool:
    """Return whether a request can be read again as if it were new: a form is used up, and packed data is unpacked."""
    form = str(request.content_type or "").startswith(("application/x-www-form-urlencoded", "multipart/"))
    return not form and not request.content_encoding


def parse(service: str, request: Any) -> tuple[str, Mapping[str, Any], Any]:
    """Return operation, parameters and operation model of a request, in botocore's words."""
    service_model = get_service_model(service)
    operation, url_params = _operation(service, request)
    model = service_model.operation_model(operation)
    protocol = determine_request_protocol(service_model, request.content_type)
    parsed = PROTOCOL_PARSERS[protocol](model, map_type=dict).parse(
        {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": request.data,
            "url_path": request.path,
            "url_params": url_params,
        }
    )
    return operation, parsed, model


def _operation(service: str, request: Any) -> tuple[str, Mapping[str, Any]]:
    target = request.headers.get("X-Amz-Target")
    if target:
        return target.split(".")[-1], {}
    if "Action" in request.values:
        return request.values["Action"], {}
    operation, url_params = get_service_router(service).match(request)
    return operation.name, url_params


def error_code(answer: Answer | None) -> str | None:
    """Return the code of an error answer; None for any other."""
    if answer is None or int(answer[0]) < 300:
        return None
    _, headers, body = answer
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body or "")
    named = {key.lower(): value for key, value in headers.items()}.get("x-amzn-errortype")
    if named:
        return str(named).split("#")[-1].split(":")[0]
    if text.startswith("{"):
        return str(json.loads(text).get("__type", "Unknown")).split("#")[-1]
    found = re.search(r"<Code>([^<]+)</Code>", text)
    return found[1] if found else f"Http{answer[0]}"
