"""The simulated cluster's API over HTTP: what the product's Kubernetes adapter, or kubectl-like clients, speak to.

Answers discovery, lists (paged, selected) and single objects, and who may do what (SubjectAccessReview); checks the EKS
token, the caller's access entry and RBAC rules; keeps every call. With `writes` it takes server-side applies (dry runs
too) and deletions; without, it only answers reads.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

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
from taskgov_embedded.cluster.listing import BadTokenError, SelectorError, page_of
from taskgov_embedded.cluster.objects import KUEUE_GROUP, RESOURCE_TYPES, ResourceType
from taskgov_embedded.cluster.server_side_apply import ApplyConflictError
from taskgov_embedded.cluster.versions import as_v1beta1, as_v1beta2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from werkzeug.serving import BaseWSGIServer

    from taskgov_embedded.cluster.objects import KubeObject

APPLY = "application/apply-patch+yaml"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
BUILT_IN_GROUPS = {"", "apps", "batch", "apiextensions.k8s.io"}
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
MAX_FAULTS = 1000
ANYBODY = Caller("")
POLL_SECONDS = 0.02
"""How long `stop` may wait for the serving thread to notice."""


class Objects(Protocol):
    """What the server reads."""

    @property
    def resource_version(self) -> str:
        """The version of the latest write."""
        ...

    def find(self, plural: str, name: str, namespace: str = "") -> KubeObject | None:
        """Return one object, or None."""
        ...

    def list(self, plural: str, namespace: str | None = None) -> list[KubeObject]:
        """Return all objects of a type (in one namespace), in order."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it was answered."""

    method: str
    path: str
    query: dict[str, str]
    status: int
    caller: str | None


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names: a resource type in a version, maybe in a namespace, maybe one object."""

    kind: ResourceType
    version: str
    namespace: str | None
    name: str | None


class Writes(Protocol):
    """What the server writes with."""

    def serves(self, kind: ResourceType) -> bool:
        """Say whether the cluster has the type at present: some come with an add-on."""
        ...

    def apply_object(
        self, body: KubeObject, manager: str, *, force: bool = False, dry_run: bool = False
    ) -> tuple[KubeObject, bool]:
        """Apply an object server-side; return it, and whether it is new. Raises ApplyConflictError."""
        ...

    def delete_object(self, plural: str, name: str, namespace: str) -> None:
        """Delete an object that is there."""
        ...


RulesOf = Callable[[frozenset[str]], Sequence[PolicyRule]]
"""What somebody in these groups may do; administrators may do everything anyway."""


class _Refusal(Exception):  # noqa: N818 - an answer, not a fault
    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


class ClusterApiServer:
    """An HTTP server on its own thread; `with ClusterApiServer(...) as server: server.url`.

    Without a `verifier` every caller is let in; `rules` are what callers may do. With a `certificate` (paths of
    certificate and key) it speaks TLS, as it must where it is reached from other hosts.
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
        self._objects = objects
        self._verifier = verifier
        self._rules = rules if callable(rules) else _everybody(tuple(rules))
        self._writes = writes
        self._versions = frozenset(versions_served)
        self._faults: deque[int] = deque(maxlen=MAX_FAULTS)
        self._address = address
        self._certificate = certificate
        self._server: BaseWSGIServer | None = None
        self._thread: threading.Thread | None = None
        self.calls: list[Call] = []
        self.asked: set[tuple[str | None, str, str, str]] = set()
        """Caller, verb, group and resource of everything that was asked for."""

    @property
    def url(self) -> str:
        """The server's address, once it is started."""
        if self._server is None:
            raise RuntimeError("the API server is not started")
        return f"{'https' if self._certificate else 'http'}://{self._address[0]}:{self._server.port}"

    def start(self, poll_seconds: float = POLL_SECONDS) -> Self:
        """Listen and answer on a thread of its own, which looks every `poll_seconds` whether it is to stop."""
        self._server = make_server(
            *self._address,
            self._respond,
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

    def _respond(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        caller = ANYBODY
        try:
            caller = self._authenticated(request)
            code, body = self._answer(request, caller)
        except _Refusal as refusal:
            code, body = refusal.code, _status(refusal.code, refusal.reason, str(refusal))
        key = caller.access_key_id or None
        self.calls.append(Call(request.method, request.path, request.args.to_dict(), code, key))
        response = Response(json.dumps(body), status=code, content_type="application/json")
        if code == 429:
            response.headers["Retry-After"] = "1"
        return response(environ, start_response)

    def _authenticated(self, request: Request) -> Caller:
        if self._verifier is None:
            return ANYBODY
        try:
            return self._verifier.verify(request.headers.get("Authorization"))
        except UnauthorizedError as error:
            raise _Refusal(401, "Unauthorized", f"Unauthorized: {error}") from error

    def _answer(self, request: Request, caller: Caller) -> tuple[int, KubeObject]:
        if self._faults:
            code = self._faults.popleft()
            raise _Refusal(code, "TooManyRequests" if code == 429 else "InternalError", f"told to answer {code}")
        types = [kind for kind in RESOURCE_TYPES.values() if self._writes is None or self._writes.serves(kind)]
        found = discover(request.path, self._versions, types)
        if found is not None and request.method == "GET":
            return 200, found
        if request.path == REVIEWS and request.method == "POST":
            return 201, self._review(request, caller)
        target = _target(request.path, self._versions)
        if target.kind not in types:
            raise _Refusal(404, "NotFound", "the server could not find the requested resource")
        reads = "list" if target.name is None else "get"
        self._authorize(VERBS.get(request.method, "watch" if "watch" in request.args else reads), target, caller)
        if request.method == "GET" and request.args.get("watch") not in {"1", "true"}:
            return 200, self._one(target) if target.name is not None else self._list(target, request)
        if self._writes is None or target.name is None:
            raise _Refusal(405, "MethodNotAllowed", "the simulated cluster's API only answers reads")
        if request.method == "PATCH" and request.mimetype == APPLY:
            return self._apply(target, request, caller, self._writes)
        if request.method == "DELETE":
            return 200, self._delete(target, request, self._writes)
        raise _Refusal(405, "MethodNotAllowed", "the simulated cluster's API takes server-side applies and deletions")

    def _review(self, request: Request, caller: Caller) -> KubeObject:
        """Answer whether somebody else may do something: only an administrator may ask."""
        if self._verifier is not None and ADMINISTRATORS not in caller.groups:
            raise _Refusal(403, "Forbidden", 'User cannot create resource "subjectaccessreviews"')
        review = json.loads(request.get_data())
        asked = review["spec"]["resourceAttributes"]
        may = self._may(frozenset(review["spec"].get("groups", ())), asked["verb"], asked["group"], asked["resource"])
        return {**review, "status": {"allowed": may}}

    def _may(self, groups: frozenset[str], verb: str, group: str, plural: str) -> bool:
        rules = EVERYTHING if ADMINISTRATORS in groups else self._rules(groups)
        return any(rule.allows(verb, group, plural) for rule in rules)

    def _authorize(self, verb: str, target: Target, caller: Caller) -> None:
        group, plural = target.kind.group, target.kind.plural
        self.asked.add((caller.access_key_id or None, verb, group, plural))
        if not self._may(caller.groups, verb, group, plural):
            sentence = f'{plural} is forbidden: User cannot {verb} resource "{plural}" in API group "{group}"'
            raise _Refusal(403, "Forbidden", sentence)

    def _apply(self, target: Target, request: Request, caller: Caller, writes: Writes) -> tuple[int, KubeObject]:
        """Apply what was sent. Who makes an object by it needs the right to create it too."""
        if self._objects.find(target.kind.plural, target.name or "", target.namespace or "") is None:
            self._authorize("create", target, caller)
        if target.namespace and self._objects.find("namespaces", target.namespace) is None:
            raise _Refusal(404, "NotFound", f'namespaces "{target.namespace}" not found')
        body = json.loads(request.get_data())
        stored = as_v1beta2(body) if target.kind.group == KUEUE_GROUP else body
        force, dry = request.args.get("force") == "true", request.args.get("dryRun") == "All"
        try:
            after, new = writes.apply_object(stored, request.args["fieldManager"], force=force, dry_run=dry)
        except ApplyConflictError as conflict:
            raise _Refusal(409, "Conflict", str(conflict)) from conflict
        return (201 if new else 200), _in_version(after, target.version)

    def _delete(self, target: Target, request: Request, writes: Writes) -> KubeObject:
        found = self._one(target)
        wanted = json.loads(request.get_data() or b"{}").get("preconditions", {})
        if any(found["metadata"][name] != value for name, value in wanted.items()):
            raise _Refusal(409, "Conflict", "the object has changed since it was read")
        writes.delete_object(target.kind.plural, target.name or "", target.namespace or "")
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def _one(self, target: Target) -> KubeObject:
        name = target.name or ""
        found = self._objects.find(target.kind.plural, name, target.namespace or "")
        if found is None:
            raise _Refusal(404, "NotFound", f'{target.kind.plural} "{name}" not found')
        return _in_version(found, target.version)

    def _list(self, target: Target, request: Request) -> KubeObject:
        items = self._objects.list(target.kind.plural, target.namespace)
        try:
            chosen, metadata = page_of(items, request.args, self._objects.resource_version)
        except BadTokenError as error:
            raise _Refusal(410, "Expired", str(error)) from error
        except SelectorError as error:
            raise _Refusal(400, "BadRequest", str(error)) from error
        return {
            "kind": f"{target.kind.kind}List",
            "apiVersion": target.kind.api_version(target.version),
            "metadata": metadata,
            "items": [_listed(item, target) for item in chosen],
        }


class _QuietHandler(WSGIRequestHandler):
    """Calls are kept by the server itself; a line on standard error for each would drown the demo's output."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


def _everybody(rules: tuple[PolicyRule, ...]) -> RulesOf:
    return lambda _caller: rules


def _target(path: str, versions: frozenset[str]) -> Target:
    """Read `/api/v1/...` or `/apis/<group>/<version>/...`, then `[namespaces/<namespace>/]<plural>[/<name>]`."""
    parts = path.strip("/").split("/")
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise _Refusal(404, "NotFound", f"the server has nothing at {path}")
    namespace = None
    if len(rest) >= 3 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    kind = RESOURCE_TYPES.get(rest[0]) if rest else None
    served = kind is not None and kind.group == group and version in kind.versions and version in versions
    if kind is None or not served or len(rest) > 2:
        raise _Refusal(404, "NotFound", "the server could not find the requested resource")
    return Target(kind, version, namespace, rest[1] if len(rest) == 2 else None)


def _in_version(item: KubeObject, version: str) -> KubeObject:
    return as_v1beta1(item) if version == "v1beta1" else item


def _listed(item: KubeObject, target: Target) -> KubeObject:
    """Return an item of a list: those of built-in types come without their kind, custom resources with it."""
    shown = _in_version(item, target.version)
    if target.kind.group not in BUILT_IN_GROUPS:
        return shown
    return {name: value for name, value in shown.items() if name not in {"apiVersion", "kind"}}


def _status(code: int, reason: str, message: str) -> KubeObject:
    """Return the Status object with which Kubernetes answers what it refuses."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
