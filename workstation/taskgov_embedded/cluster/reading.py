"""How does the cluster's API answer reads? One object, a list, a table for kubectl, a watch, a log."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from taskgov_embedded.cluster.history import TooOldError
from taskgov_embedded.cluster.listing import BadTokenError, SelectorError, page_of
from taskgov_embedded.cluster.objects import KubeObject, key_of
from taskgov_embedded.cluster.requests import BUILT_IN_GROUPS, Refusal, Target, in_version
from taskgov_embedded.cluster.tables import table_of
from taskgov_embedded.cluster.writing import not_found, scale_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping

    from werkzeug.wrappers import Request

    from taskgov_embedded.cluster.history import Change
    from taskgov_embedded.cluster.objects import Objects

LOOK_SECONDS: Final = 0.02
"""How late a watcher may get a change."""
BOOKMARK_BEFORE_END: Final = 2.0
"""Seconds before its end in which a watch has its last bookmark."""
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
        """Yield what happens to a list after its `resourceVersion`, one JSON document a line, until time is up.

        Without a version everything that is there comes first. What is not kept any more is an event `ERROR` (410), and
        a bookmark comes two seconds before the end and once a minute, as of kube-apiserver (its storage cacher).
        """
        began = time.monotonic()
        seconds = float(request.args.get("timeoutSeconds") or LONGEST_WATCH)
        marks = _bookmark_times(seconds) if request.args.get("allowWatchBookmarks") else iter(())
        mark = next(marks, None)
        yield b""  # sends the headers: clients wait for them before anything happens
        since = int(request.args.get("resourceVersion") or 0)
        if not since:
            _, since = self.objects.changes_since(target.kind.plural, int(self.objects.resource_version))
            for item in self.objects.list(target.kind.plural, target.namespace):
                if "resourceVersion" in item["metadata"] and self._is_chosen(item, target, request):
                    yield self._event("ADDED", item, target, request)
        while True:
            try:
                changes, version = self.objects.changes_since(target.kind.plural, since)
            except TooOldError as error:
                yield _line("ERROR", Refusal(410, "Expired", str(error)).status())
                return
            for change in changes:
                yield from self._events(change, target, request)
            since = max(since, version)
            passed = time.monotonic() - began
            if mark is not None and passed >= mark:
                kind = target.kind
                marked = {"kind": kind.kind, "apiVersion": kind.api_version(target.version)}
                yield _line("BOOKMARK", {**marked, "metadata": {"resourceVersion": str(since)}})
                mark = next(marks, None)
            if passed > seconds or stopped.wait(LOOK_SECONDS):
                return

    def _events(self, change: Change[KubeObject], target: Target, request: Request) -> Iterator[bytes]:
        """Yield what a watcher sees of one write: an object may come into its selection, or leave it."""
        before, after = (
            item if item is not None and self._is_chosen(item, target, request) else None
            for item in (change.before, change.after)
        )
        if after is not None:
            yield self._event("ADDED" if before is None else "MODIFIED", after, target, request)
        elif before is not None:
            metadata = {**before["metadata"], "resourceVersion": str(change.version)}
            yield self._event("DELETED", {**before, "metadata": metadata}, target, request)

    def _is_chosen(self, item: KubeObject, target: Target, request: Request) -> bool:
        asked = {name: value for name, value in request.args.items() if name in {"labelSelector", "fieldSelector"}}
        chosen, _ = _page([item], asked, "")
        namespace, name = key_of(item)
        return bool(chosen) and target.namespace in {None, namespace} and target.name in {None, name}

    def _event(self, kind: str, item: KubeObject, target: Target, request: Request) -> bytes:
        shown = in_version(item, target.version)
        if _as_table(request):
            shown = table_of(target.kind.plural, [item], self.objects.now, {})
        return _line(kind, shown)

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


def _line(kind: str, item: KubeObject) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def _bookmark_times(seconds: float) -> Iterator[float]:
    """Yield after how many seconds a watch of this length has bookmarks; none in one that ends before."""
    last = seconds - BOOKMARK_BEFORE_END
    yield from range(60, int(last), 60)
    if last > 0:
        yield last


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
