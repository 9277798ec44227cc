"""How does the cluster's API answer reads? One object, a list, a table for kubectl, a watch, a log."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from taskgov_embedded.cluster.listing import BadTokenError, SelectorError, page_of
from taskgov_embedded.cluster.objects import KubeObject, key_of
from taskgov_embedded.cluster.requests import BUILT_IN_GROUPS, Refusal, Target, in_version
from taskgov_embedded.cluster.tables import table_of
from taskgov_embedded.cluster.writing import not_found, scale_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping

    from werkzeug.wrappers import Request

    from taskgov_embedded.cluster.objects import Key, Objects

LOOK_SECONDS: Final = 0.1
"""How late a watcher may hear of a change."""
LONGEST_WATCH: Final = 300.0
"""Seconds after which a watch ends that asked for no time; clients begin another one."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Answers the reading requests of one API server."""

    objects: Objects

    def answer(self, target: Target, request: Request) -> KubeObject | str:
        """Return an object, a list or a table; a log as text. Raises Refusal."""
        if target.name is None:
            return self._list(target, request)
        found = self.objects.find(target.kind.plural, target.name, target.namespace or "")
        if found is None:
            raise not_found(target)
        if target.subresource == "scale":
            return scale_of(found)
        if target.subresource == "log":
            return _log(found)
        if _as_table(request):
            return table_of(target.kind.plural, [found], self.objects.now, {})
        return in_version(found, target.version)

    def watch(self, target: Target, request: Request, stopped: threading.Event) -> Iterator[bytes]:
        """Yield what happens to a list after its `resourceVersion`, one JSON document a line, until time is up."""
        since = int(request.args.get("resourceVersion") or 0)
        known = {key: version for key, version in self._versions(target, request).items() if int(version) <= since}
        ends = time.monotonic() + float(request.args.get("timeoutSeconds") or LONGEST_WATCH)
        seen: dict[Key, KubeObject] = {}
        yield b""  # sends the headers: clients wait for them before anything happens
        while True:
            present = {key_of(item): item for item in self._chosen(target, request)}
            for key, item in present.items():
                version = item["metadata"]["resourceVersion"]
                if known.get(key) != version:
                    yield self._event("MODIFIED" if key in known else "ADDED", item, target, request)
                known[key] = version
                seen[key] = item
            for key in sorted(known.keys() - present.keys()):
                del known[key]
                if key in seen:
                    yield self._event("DELETED", seen.pop(key), target, request)
            if time.monotonic() > ends or stopped.wait(LOOK_SECONDS):
                return

    def _versions(self, target: Target, request: Request) -> dict[Key, str]:
        return {key_of(item): item["metadata"]["resourceVersion"] for item in self._chosen(target, request)}

    def _chosen(self, target: Target, request: Request) -> list[KubeObject]:
        """Return the objects that a watch is about; what has no version was placed there and never changes."""
        items = self.objects.list(target.kind.plural, target.namespace)
        asked = {name: value for name, value in request.args.items() if name in {"labelSelector", "fieldSelector"}}
        chosen, _ = _page(items, asked, self.objects.resource_version)
        return [
            item
            for item in chosen
            if target.name in {None, item["metadata"]["name"]} and "resourceVersion" in item["metadata"]
        ]

    def _event(self, kind: str, item: KubeObject, target: Target, request: Request) -> bytes:
        shown = in_version(item, target.version)
        if _as_table(request):
            shown = table_of(target.kind.plural, [item], self.objects.now, {})
        return json.dumps({"type": kind, "object": shown}).encode() + b"\n"

    def _list(self, target: Target, request: Request) -> KubeObject:
        items = self.objects.list(target.kind.plural, target.namespace)
        chosen, metadata = _page(items, request.args, self.objects.resource_version)
        if _as_table(request):
            return table_of(target.kind.plural, chosen, self.objects.now, metadata)
        return {
            "kind": f"{target.kind.kind}List",
            "apiVersion": target.kind.api_version(target.version),
            "metadata": metadata,
            "items": [_listed(item, target) for item in chosen],
        }


def _page(items: list[KubeObject], query: Mapping[str, str], version: str) -> tuple[list[KubeObject], dict[str, Any]]:
    try:
        return page_of(items, query, version)
    except BadTokenError as error:
        raise Refusal(410, "Expired", str(error)) from error
    except SelectorError as error:
        raise Refusal(400, "BadRequest", str(error)) from error


def _as_table(request: Request) -> bool:
    return "as=Table" in request.headers.get("Accept", "")


def _listed(item: KubeObject, target: Target) -> KubeObject:
    """Return an item of a list: those of built-in types come without their kind, custom resources with it."""
    shown = in_version(item, target.version)
    if target.kind.group not in BUILT_IN_GROUPS:
        return shown
    return {name: value for name, value in shown.items() if name not in {"apiVersion", "kind"}}


def _log(pod: KubeObject) -> str:
    """Return what a simulated container prints: of a training job, which worker is the master."""
    if pod["status"]["phase"] != "Running":
        return ""
    lines = ["simulated container: no process runs here"]
    owner = next(iter(pod["metadata"].get("ownerReferences", ())), {"kind": "", "name": ""})
    if owner["kind"] in {"PyTorchJob", "HyperPodPyTorchJob"}:
        first = pod["metadata"]["name"].rpartition("-")[0] + "-0"
        lines.append(f"torch.distributed.elastic.agent.server.api: [INFO]   master_addr={first}")
    return "".join(f"[{pod['status'].get('startTime', '')}] {line}\n" for line in lines)
