"""One request to a cluster's API, raw JSON in and out, with errors in the domain's words.

The client's generated classes are not used: each is half a megabyte of source or more, which every cold start would
compile, and their models cost time and memory for each object.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from pydantic_core import ValidationError, from_json

from taskgov.adapters.kubernetes.trimming import Parts
from taskgov.errors import (
    ConflictError,
    GovernanceError,
    InvalidRequestError,
    NotFoundError,
    ThrottledError,
    UpstreamError,
)

TIMEOUT_SECONDS: Final = (5, 30)
"""To connect, and to wait for data."""
SLACK_SECONDS: Final = 5
"""How much longer than requested a watch may be silent."""


class ExpiredError(UpstreamError):
    """The continue token is too old (410): the list has to start again."""


_ERRORS: Final[Mapping[int, type[GovernanceError]]] = {
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.GONE: ExpiredError,
    HTTPStatus.TOO_MANY_REQUESTS: ThrottledError,
}
_ERRORS_OF_WRITES: Final[Mapping[int, type[GovernanceError]]] = {
    **_ERRORS,
    HTTPStatus.BAD_REQUEST: InvalidRequestError,
    HTTPStatus.UNPROCESSABLE_ENTITY: InvalidRequestError,
}


class Requests:
    """Requests over one open connection."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api

    def get(
        self, path: str, what: str, query: Mapping[str, str] | None = None, parts: Parts | None = None
    ) -> dict[str, Any]:
        """Return what is at a path; `what` begins the sentence of an error, `parts` is what to keep of the answer.

        Raises NotFoundError, ThrottledError, ConflictError, ExpiredError, UpstreamError; refused access is an
        UpstreamError with the server's sentence.
        """
        return self.send("GET", path, what, None, query or {}, parts)

    def send(
        self,
        method: str,
        path: str,
        what: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str],
        parts: Parts | None = None,
    ) -> dict[str, Any]:
        """Return the answer. Raises as `get` does, and InvalidRequestError where a write breaks a rule."""
        response = self._open(method, path, what, body, query, TIMEOUT_SECONDS)
        try:
            answer: dict[str, Any] = _parsed(_read(response, what), parts)
        except json.JSONDecodeError as error:
            raise UpstreamError(f"{what}: {error}") from error
        return answer

    def watch(self, path: str, what: str, query: Mapping[str, str], seconds: int) -> Iterator[bytes]:
        """Yield the lines of a watch as they come, until the server ends it or the connection breaks.

        `seconds` is the duration of the watch. Raises as `get` does, before the first line. What is left
        of a line when the connection breaks is not a line.
        """
        asked = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds), **query}
        connect, _ = TIMEOUT_SECONDS
        response = self._open("GET", path, what, None, asked, (connect, seconds + SLACK_SECONDS))
        rest = b""
        try:
            for chunk in response.response.stream(decode_content=True):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from filter(None, lines)
        except urllib3.exceptions.HTTPError:
            return
        finally:
            response.response.close()  # the stream may have more: the connection cannot be used again

    def _open(
        self,
        method: str,
        path: str,
        what: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str],
        timeout: tuple[int, int],
    ) -> Any:
        """Return the response; its body is not read yet."""
        content = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        request = self._api.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params={"Content-Type": content, "Accept": "application/json"},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            response = self._api.call_api(*request, _request_timeout=timeout)
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            raise UpstreamError(f"{what}: {error}") from error
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _problem(response, what, _ERRORS if method == "GET" else _ERRORS_OF_WRITES)
        return response


def _problem(response: Any, what: str, known: Mapping[int, type[GovernanceError]]) -> GovernanceError:
    """Return the error of an answer.

    A frame that has the error it raises as a variable is a cycle: it and its callers, with all that they have read,
    would stay until the next collection.
    """
    sentence = _sentence(_read(response, what), response.reason)
    problem = known.get(response.status, UpstreamError)(f"{what}: {response.status} {sentence}")
    if response.status == HTTPStatus.FORBIDDEN:
        problem.refusal = "access-denied"
    return problem


def _read(response: Any, what: str) -> bytes:
    try:
        text: bytes = response.read()
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        raise UpstreamError(f"{what}: {error}") from error
    return text


def _parsed(text: bytes, parts: Parts | None) -> Any:
    """Return what JSON says: faster than the standard library, which reads the rest.

    That is what one odd object may have: half a surrogate pair, or lists in lists without end. An answer without the
    form of `parts` is returned whole.
    """
    if parts is not None:
        with suppress(ValidationError):
            return parts.read(text)
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


def _sentence(text: bytes, reason: str) -> str:
    """Return the message of the Status object that the server sent, or the HTTP reason when it sent none."""
    try:
        return str(json.loads(text)["message"])
    except (json.JSONDecodeError, KeyError, TypeError):
        return reason
