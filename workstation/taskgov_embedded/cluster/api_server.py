"""The simulated cluster's API over HTTP: what the product's Kubernetes adapter, or kubectl-like clients, call.

Answers discovery, lists (paged, selected), single objects, tables and watches, and who may do what
(SubjectAccessReview); checks the EKS token, the caller's access entry and RBAC rules; keeps every call. With `writes`
it takes creations, replacements, patches, applies (dry runs too) and deletions; without, it only answers reads.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from taskgov_embedded.cluster.access import (
    ADMINISTRATORS,
    EVERYTHING,
    Caller,
    PolicyRule,
    TokenVerifier,
    UnauthorizedError,
)
from taskgov_embedded.cluster.discovery import answer as discover
from taskgov_embedded.cluster.objects import RESOURCE_TYPES
from taskgov_embedded.cluster.openapi import answer as describe_api
from taskgov_embedded.cluster.reading import Reading
from taskgov_embedded.cluster.requests import Refusal, Target, target_of
from taskgov_embedded.cluster.writing import Writing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from werkzeug.serving import BaseWSGIServer

    from taskgov_embedded.cluster.objects import KubeObject, Objects
    from taskgov_embedded.cluster.writing import Writes

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
MAX_FAULTS = 1000
ANYBODY = Caller("")
POLL_SECONDS = 0.02
"""How long `stop` may wait for the serving thread to notice."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it was answered."""

    method: str
    path: str
    query: dict[str, str]
    status: int
    caller: str | None


Answer = dict[str, Any] | str | Iterator[bytes]
"""A JSON document, a text, or the lines of a watch."""
RulesOf = Callable[[frozenset[str]], Sequence[PolicyRule]]
"""What somebody in these groups may do; administrators may do everything anyway."""


class ClusterApiServer:
    """An HTTP server on its own thread; `with ClusterApiServer(...) as server: server.url`.

    Without a `verifier` every caller is let in; `rules` are what callers may do. With a `certificate` (paths of
    certificate and key) it uses TLS, as it must where it is reached from other hosts.
    """

    def __init__(
        self,
        objects: Objects,
        *,
        verifier: TokenVerifier | None = None,
        rules: Sequence[PolicyRule] | RulesOf = EVERYTHING,
        writes: Writes | None = None,
        address: tuple[str, int] = ("127.0.0.1", 0),
        certificate: tuple[str, str] | None = None,
        versions_served: Iterable[str] = ("v1", "v1beta1", "v1beta2"),
    ) -> None:
        self._reading = Reading(objects)
        self._writing = None if writes is None else Writing(objects, writes)
        self._verifier = verifier
        self._rules = rules if callable(rules) else _everybody(tuple(rules))
        self._writes = writes
        self._versions = frozenset(versions_served)
        self._faults: deque[int] = deque(maxlen=MAX_FAULTS)
        self._address = address
        self._certificate = certificate
        self._server: BaseWSGIServer | None = None
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self.calls: list[Call] = []
        self.asked: set[tuple[str | None, str, str, str]] = set()
        """Caller, verb, group and resource of everything that was requested."""
        self.allowed: set[tuple[str | None, str, str, str]] = set()
        """The same of what was allowed."""

    @property
    def url(self) -> str:
        """The server's address, once it is started."""
        if self._server is None:
            raise RuntimeError("the API server is not started")
        return f"{'https' if self._certificate else 'http'}://{self._address[0]}:{self._server.port}"

    def start(self, poll_seconds: float = POLL_SECONDS) -> Self:
        """Listen and answer on a thread of its own, which looks every `poll_seconds` whether it is to stop."""
        self._stopped.clear()
        self._server = make_server(
            *self._address,
            self.respond,
            threaded=True,
            request_handler=_QuietHandler,
            ssl_context=self._certificate,
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(poll_seconds,), name="cluster-api", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop listening and wait for the thread."""
        self._stopped.set()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
        self._server = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def fail_next(self, *codes: int) -> None:
        """Answer the next calls with these HTTP status codes instead."""
        self._faults.extend(codes)

    def respond(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request of WSGI, as the server does."""
        request = Request(environ)
        caller = ANYBODY
        try:
            caller = self._authenticated(request)
            code, body = self._answer(request, caller)
        except Refusal as refusal:
            code, body = refusal.code, refusal.status()
        key = caller.access_key_id or None
        self.calls.append(Call(request.method, request.path, request.args.to_dict(), code, key))
        if isinstance(body, dict):
            response = Response(json.dumps(body), status=code, content_type="application/json")
        elif isinstance(body, str):
            response = Response(body, status=code, content_type="text/plain")
        else:
            response = Response(body, status=code, content_type="application/json")
        if code == 429:
            response.headers["Retry-After"] = "1"
        return response(environ, start_response)

    def _authenticated(self, request: Request) -> Caller:
        if self._verifier is None:
            return ANYBODY
        try:
            return self._verifier.verify(request.headers.get("Authorization"))
        except UnauthorizedError as error:
            raise Refusal(401, "Unauthorized", f"Unauthorized: {error}") from error

    def _answer(self, request: Request, caller: Caller) -> tuple[int, Answer]:
        if self._faults:
            code = self._faults.popleft()
            raise Refusal(code, "TooManyRequests" if code == 429 else "InternalError", f"set to answer {code}")
        types = [kind for kind in RESOURCE_TYPES.values() if self._writes is None or self._writes.serves(kind)]
        if request.method == "GET":
            found = discover(request.path, self._versions, types, writable=self._writes is not None)
            found = found or describe_api(request.path, self._versions, types)
            if found is not None:
                return 200, found
        if request.path == REVIEWS and request.method == "POST":
            return 201, self._review(request, caller)
        if request.path == WHO_AM_I and request.method == "POST":
            return 201, _who(caller)
        target = target_of(request.path, types, self._versions)
        watches = request.args.get("watch") in {"1", "true"}
        reads = "watch" if watches else "list" if target.name is None else "get"
        self._authorize(VERBS.get(request.method, reads), target, caller)
        if request.method == "GET":
            if watches:
                return 200, self._reading.watch(target, request, self._stopped)
            return 200, self._reading.answer(target, request)
        if self._writing is None:
            raise Refusal(405, "MethodNotAllowed", "the simulated cluster's API only answers reads")
        return self._writing.answer(target, request, lambda verb: self._authorize(verb, target, caller))

    def _review(self, request: Request, caller: Caller) -> KubeObject:
        """Answer whether somebody else may do something: only an administrator may ask."""
        if self._verifier is not None and ADMINISTRATORS not in caller.groups:
            raise Refusal(403, "Forbidden", 'User cannot create resource "subjectaccessreviews"')
        review = json.loads(request.get_data())
        asked = review["spec"]["resourceAttributes"]
        groups, about = frozenset(review["spec"].get("groups", ())), (asked.get("namespace"), asked.get("name"))
        may = self._may(groups, asked["verb"], asked["group"], asked["resource"], *about)
        return {**review, "status": {"allowed": may}}

    def _may(
        self,
        groups: frozenset[str],
        verb: str,
        group: str,
        plural: str,
        namespace: str | None = None,
        name: str | None = None,
    ) -> bool:
        rules = EVERYTHING if ADMINISTRATORS in groups else self._rules(groups)
        return any(rule.allows(verb, group, plural, namespace, name) for rule in rules)

    def _authorize(self, verb: str, target: Target, caller: Caller) -> None:
        group, plural = target.kind.group, target.resource
        self.asked.add((caller.access_key_id or None, verb, group, plural))
        if not self._may(caller.groups, verb, group, plural, target.namespace, target.name):
            where = f' in the namespace "{target.namespace}"' if target.namespace else " at the cluster scope"
            user = f'User "{caller.username}"' if caller.username else "User"
            sentence = f'{plural} is forbidden: {user} cannot {verb} resource "{plural}" in API group "{group}"'
            raise Refusal(403, "Forbidden", sentence + where)
        self.allowed.add((caller.access_key_id or None, verb, group, plural))


class _QuietHandler(WSGIRequestHandler):
    """Calls are kept by the server itself; a line on standard error for each would drown the demo's output."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


def _who(caller: Caller) -> KubeObject:
    """Answer who the caller is: everybody may ask it of themselves (system:basic-user).

    A review has no spec, so that the body says nothing; `kubectl auth whoami` sends it as protobuf.
    """
    user = {"username": caller.username, "groups": [*sorted(caller.groups), "system:authenticated"]}
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "status": {"userInfo": user}}


def _everybody(rules: tuple[PolicyRule, ...]) -> RulesOf:
    return lambda _caller: rules
