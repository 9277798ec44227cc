"""How does the cluster's API take a write? Creations, replacements, patches, applies, scalings and deletions.

The objects themselves are changed by `Writes`, which is the simulated cluster.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Protocol

from taskgov_embedded.cluster.admission import denial_of
from taskgov_embedded.cluster.fields import unknown_fields
from taskgov_embedded.cluster.jobs import SUBMITTED
from taskgov_embedded.cluster.patches import PatchError, json_patched, merge_patched, strategic_patched
from taskgov_embedded.cluster.pods import suffix
from taskgov_embedded.cluster.requests import BUILT_IN_GROUPS, Refusal, Target, in_stored_form, in_version
from taskgov_embedded.cluster.server_side_apply import ApplyConflictError
from taskgov_embedded.cluster.submitted import problems_of, problems_of_metadata, without_nulls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from werkzeug.wrappers import Request

    from taskgov_embedded.cluster.objects import KubeObject, Objects, ResourceType

APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"


class Writes(Protocol):
    """What the server writes with."""

    def serves(self, kind: ResourceType) -> bool:
        """Return whether the cluster has the type at present: some come with an add-on."""
        ...

    def apply_object(
        self, body: KubeObject, manager: str, *, force: bool = False, dry_run: bool = False
    ) -> tuple[KubeObject, bool]:
        """Apply an object server-side; return it, and whether it is new. Raises ApplyConflictError."""
        ...

    def create_object(self, body: KubeObject, manager: str, *, dry_run: bool = False) -> KubeObject:
        """Create an object that is not there."""
        ...

    def update_object(self, body: KubeObject, manager: str, *, dry_run: bool = False) -> KubeObject:
        """Replace the content of an object that is there."""
        ...

    def delete_object(self, plural: str, name: str, namespace: str) -> None:
        """Delete an object that is there."""
        ...


class Writing:
    """Answers the writing requests of one API server; `authorize` raises a Refusal for a verb that is not allowed."""

    def __init__(self, objects: Objects, writes: Writes) -> None:
        self._objects = objects
        self._writes = writes

    def answer(self, target: Target, request: Request, authorize: Callable[[str], None]) -> tuple[int, KubeObject]:
        """Return status and body of the answer. Raises Refusal."""
        if target.subresource == "log":
            raise Refusal(405, "MethodNotAllowed", "a log can only be read")
        match request.method:
            case "POST" if target.name is None:
                return 201, self._create(target, request)
            case "PUT" if target.name is not None:
                return 200, self._replace(target, request, _read(request))
            case "PATCH" if target.name is not None and request.mimetype == APPLY:
                return self._apply(target, request, authorize)
            case "PATCH" if target.name is not None:
                shown = self._shown(target)
                return 200, self._replace(target, request, _patched(shown, request, target.kind))
            case "DELETE":
                return 200, self._delete(target, request)
            case _:
                raise Refusal(405, "MethodNotAllowed", f"{request.method} is not served at {request.path}")

    def _create(self, target: Target, request: Request) -> KubeObject:
        body = _placed(_read(request), target)
        _require_known_fields(body, target, request)
        if "name" not in body["metadata"]:
            body["metadata"]["name"] = self._generated(body["metadata"])
        name, namespace = body["metadata"]["name"], target.namespace or ""
        self._require_namespace(target)
        if self._objects.find(target.kind.plural, name, namespace) is not None:
            raise Refusal(409, "AlreadyExists", f'{_qualified(target.kind)} "{name}" already exists')
        _require_sound(body)
        self._require_admitted(target, body)
        stored = in_stored_form(body, target.kind)
        return in_version(
            self._writes.create_object(stored, _manager(request), dry_run=_is_dry(request)), target.version
        )

    def _generated(self, metadata: Mapping[str, Any]) -> str:
        if "generateName" not in metadata:
            raise Refusal(422, "Invalid", "metadata.name: Required value: name or generateName is required")
        return f"{metadata['generateName']}{suffix(self._objects.resource_version, 0)}"

    def _replace(self, target: Target, request: Request, body: KubeObject) -> KubeObject:
        before = self._found(target)
        if target.subresource == "scale":
            replicas = body.get("spec", {}).get("replicas")
            if not isinstance(replicas, int) or replicas < 0:
                raise Refusal(422, "Invalid", f"spec.replicas: Invalid value: {replicas!r}: must be 0 or more")
            after = {**before, "spec": {**before["spec"], "replicas": replicas}}
        else:
            body = _placed(body, target)
            _require_known_fields(body, target, request)
            asked = body["metadata"].get("resourceVersion")
            if asked not in {None, before["metadata"].get("resourceVersion")}:
                raise Refusal(409, "Conflict", "the object has been modified; please apply your changes to the latest")
            status = {"status": before["status"]} if "status" in before else {}
            after = {**status, **in_stored_form(body, target.kind)}
        _require_sound(after)
        stored = self._writes.update_object(after, _manager(request), dry_run=_is_dry(request))
        return scale_of(stored) if target.subresource == "scale" else in_version(stored, target.version)

    def _apply(self, target: Target, request: Request, authorize: Callable[[str], None]) -> tuple[int, KubeObject]:
        """Apply what was sent. Who makes an object by it needs the right to create it too."""
        new = self._objects.find(target.kind.plural, target.name or "", target.namespace or "") is None
        if new:
            authorize("create")
        self._require_namespace(target)
        body = _placed(_read(request), target)
        _require_known_fields(body, target, request)
        _require_sound(body)
        if new:
            self._require_admitted(target, body)
        stored = in_stored_form(body, target.kind)
        force, manager = request.args.get("force") == "true", _manager(request)
        try:
            after, _ = self._writes.apply_object(stored, manager, force=force, dry_run=_is_dry(request))
        except ApplyConflictError as conflict:
            raise Refusal(409, "Conflict", str(conflict)) from conflict
        return (201 if new else 200), in_version(after, target.version)

    def _delete(self, target: Target, request: Request) -> KubeObject:
        if target.name is None:
            raise Refusal(405, "MethodNotAllowed", "a whole collection is not deleted at once: name the objects")
        found = self._found(target)
        wanted = _read(request, empty={}).get("preconditions") or {}
        if any(found["metadata"].get(name) != value for name, value in wanted.items()):
            raise Refusal(409, "Conflict", "the object has changed since it was read")
        if not _is_dry(request):
            self._writes.delete_object(target.kind.plural, target.name, target.namespace or "")
        details = {"name": target.name, "kind": target.kind.plural, "uid": found["metadata"].get("uid", "")}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    def _require_admitted(self, target: Target, body: KubeObject) -> None:
        because = denial_of(self._objects, target.kind, body)
        if because is not None:
            raise Refusal(422, "Invalid", because)

    def _require_namespace(self, target: Target) -> None:
        if target.namespace and self._objects.find("namespaces", target.namespace) is None:
            raise Refusal(404, "NotFound", f'namespaces "{target.namespace}" not found')

    def _found(self, target: Target) -> KubeObject:
        found = self._objects.find(target.kind.plural, target.name or "", target.namespace or "")
        if found is None:
            raise not_found(target)
        return found

    def _shown(self, target: Target) -> KubeObject:
        found = self._found(target)
        return scale_of(found) if target.subresource == "scale" else in_version(found, target.version)


def not_found(target: Target) -> Refusal:
    """Return the answer to a request for an object that is not there."""
    return Refusal(404, "NotFound", f'{_qualified(target.kind)} "{target.name}" not found')


def scale_of(item: KubeObject) -> KubeObject:
    """Return the `Scale` of a Deployment or StatefulSet."""
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = item["spec"].get("replicas", 1)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: item["metadata"][name] for name in kept if name in item["metadata"]},
        "spec": {"replicas": replicas},
        "status": {"replicas": replicas},
    }


def _patched(item: KubeObject, request: Request, kind: ResourceType) -> KubeObject:
    patch = _read(request)
    try:
        match request.mimetype:
            case value if value == MERGE:
                return dict(merge_patched(item, patch))
            case value if value == JSON_PATCH:
                return json_patched(item, patch)
            case value if value == STRATEGIC and kind.group in BUILT_IN_GROUPS:
                return strategic_patched(item, patch)
            case other:
                message = f"the body of the request was in an unknown format - accepted media types include: {MERGE}"
                raise Refusal(415, "UnsupportedMediaType", f"{message}, {JSON_PATCH}, {APPLY} ({other} was sent)")
    except PatchError as error:
        raise Refusal(422, "Invalid", f"the patch does not fit: {error}") from error


def _read(request: Request, empty: Any = None) -> Any:
    data = request.get_data()
    if not data and empty is not None:
        return empty
    if "protobuf" in request.mimetype:
        raise Refusal(415, "UnsupportedMediaType", "protobuf is not read here: send JSON, as `kubectl apply` does")
    try:
        return json.loads(data)
    except ValueError as error:
        raise Refusal(400, "BadRequest", f"the body of the request is not JSON: {error}") from error


def _placed(body: Any, target: Target) -> KubeObject:
    """Return a copy of a body whose kind and place are those of the path. Raises Refusal.

    The status of a job is what its controllers write: what a request says of it is left out, as in Kubernetes.
    """
    if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
        raise Refusal(400, "BadRequest", "the body of the request is not an object with metadata")
    wanted = {"apiVersion": target.kind.api_version(target.version), "kind": target.kind.kind}
    for name, value in wanted.items():
        if body.get(name, value) != value:
            raise Refusal(400, "BadRequest", f"{name} is {body[name]!r}, but the path is for {value}")
    metadata = without_nulls(body["metadata"])
    if problems := problems_of_metadata(metadata):
        raise Refusal(422, "Invalid", "; ".join(problems))
    for field, place in (("name", target.name), ("namespace", target.namespace)):
        if place is not None and metadata.setdefault(field, place) != place:
            told = f"the {field} of the object ({metadata[field]}) does not match the {field} on the URL ({place})"
            raise Refusal(400, "BadRequest", told)
    kept = {name: value for name, value in body.items() if name != "status" or target.kind.kind not in SUBMITTED}
    return {**without_nulls(kept), **wanted, "metadata": metadata}


def _require_sound(body: KubeObject) -> None:
    if because := problems_of(body):
        raise Refusal(422, "Invalid", f'{body["kind"]} "{body["metadata"]["name"]}" is invalid: {"; ".join(because)}')


def _require_known_fields(body: KubeObject, target: Target, request: Request) -> None:
    """Refuse fields that the kind does not have where the client requests it, as kubectl does by default."""
    unknown = unknown_fields(body) if request.args.get("fieldValidation") == "Strict" else []
    if unknown:
        kind = target.kind.kind
        told = ", ".join(f'unknown field "{path}"' for path in unknown)
        where = f'{kind} in version "{target.version}" cannot be handled as a {kind}'
        raise Refusal(400, "BadRequest", f"{where}: strict decoding error: {told}")


def _qualified(kind: ResourceType) -> str:
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def _manager(request: Request) -> str:
    return request.args.get("fieldManager") or (request.headers.get("User-Agent", "") or "unknown").partition("/")[0]


def _is_dry(request: Request) -> bool:
    return request.args.get("dryRun") == "All"
