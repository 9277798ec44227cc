"""Read the changes of workloads since an earlier read: by a short watch, or by a whole list where that fails.

How it is known that a watch has caught up (docs/scale.md, "Following workloads"):

1. A list of one workload without `resourceVersion` is a consistent read: its version, the *target*, is that of the
   collection at a moment after the read began (Kubernetes API Concepts, "Semantics for get and list").
2. A watch from the version known reports every change after it, in order; an event has the version of its change, and a
   bookmark says that everything up to its version was sent ("Watch bookmarks").
3. So the known objects with the changes sent are the collection at the version sent last. It has caught up once that
   version is not older than the target.

Versions of one resource type compare as integers (KEP-5504: promised from Kubernetes 1.35 on, and so before it wherever
etcd stores the objects). Versions of another form compare as equal or not: then a watch hardly ever catches up, and all
workloads are listed.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Generic

from taskgov.adapters.kubernetes.connection import ApiConnections
from taskgov.adapters.kubernetes.paging import PAGE
from taskgov.adapters.kubernetes.reader import GROUP, KubernetesReader, read_kueue, read_list, served_by, version_of
from taskgov.adapters.kubernetes.request import ExpiredError, Requests
from taskgov.adapters.kubernetes.trimming import kept, trimmed_workload
from taskgov.errors import UpstreamError
from taskgov.ports import ClusterAccess, Kept, WorkloadsKnown, WorkloadsRead
from taskgov.snapshot.model import KubernetesObject, KueueObjects

WATCHES: Final = (3, 10)
"""Seconds of the watches of one read. kube-apiserver sends a bookmark two seconds before the end of a watch: after one
second where nothing else happens. The second watch is for a server whose cache is behind."""
MOST_EVENTS: Final = 50_000
"""Beyond these a list is the shorter way."""
_WHAT: Final = "watch workloads"
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,38}")
"""A version that compares: a decimal number of up to 128 bits without leading zeros (KEP-5504)."""


class KueueFollower(KubernetesReader):
    """The `WorkloadsApi` port over a cluster's API.

    Of each workload it also keeps the annotation or label `also`, as an annotation. As few as `list_up_to` workloads
    are not followed: one page is one request, and nobody waits.
    """

    list_up_to = PAGE

    def __init__(self, connections: ApiConnections, also: str = "") -> None:
        super().__init__(connections)
        self._trim = partial(trimmed_workload, also=also)

    def kueue_since(
        self, cluster: ClusterAccess, known: WorkloadsKnown | None, keep: Callable[[KubernetesObject], Kept]
    ) -> tuple[KueueObjects, WorkloadsRead[Kept]]:
        """Return Kueue's objects without the workloads, and what became of these since `known`."""
        with self._connections.open(cluster) as connection:
            api = Requests(connection)
            version, served = served_by(api)
            objects = read_kueue(api, version, served, with_workloads=False)
            workloads = _Workloads(
                api, f"{GROUP}/{version}", lambda item: keep(kept(item, self._trim)), self.list_up_to
            )
            if known is None or known.api_version != workloads.api_version:
                return objects, workloads.all()
            return objects, workloads.since(known)


class _RelistError(Exception):
    """The changes are not to be had: all workloads have to be listed. The text says why."""


class _Workloads(Generic[Kept]):
    """The workloads of one cluster in one version of Kueue's API."""

    def __init__(self, api: Requests, api_version: str, keep: Callable[[Any], Kept], list_up_to: int) -> None:
        self.api_version = api_version
        self._list_up_to = list_up_to
        self._api = api
        self._path = f"/apis/{api_version}/workloads"
        self._keep = keep

    def all(self, relisted: str = "") -> WorkloadsRead[Kept]:
        """List all of them."""
        items, version = read_list(self._api, self._path, lambda item: (_key(item), self._keep(item)), "list workloads")
        # One without a name, which no server sends, still counts; but nothing can be followed of it.
        changed = {key or ("", f"#{number}"): item for number, (key, item) in enumerate(items)}
        if len(items) <= self._list_up_to or any(key is None for key, _ in items):
            version = ""
        return WorkloadsRead(
            self.api_version, version, changed, is_whole=True, objects_read=len(items), relisted=relisted
        )

    def since(self, known: WorkloadsKnown) -> WorkloadsRead[Kept]:
        """Return what changed; all of them where that cannot be found out."""
        told = _Told(known.resource_version, self._keep)
        try:
            self._catch_up(told)
        except _RelistError as error:
            return self.all(relisted=str(error))
        return WorkloadsRead(
            self.api_version,
            told.version,
            told.changed,
            is_whole=False,
            objects_read=1 + told.objects_read,
            told=tuple(told.states),
        )

    def _catch_up(self, told: "_Told[Kept]") -> None:
        """Take in the changes up to a version of now. Raises _RelistError."""
        target = version_of(self._api.get(self._path, "list workloads", {"limit": "1"}))
        if not target or is_before(target, told.version):
            raise _RelistError(f"the server is at version {target or 'none'}, before the one that is known")
        for seconds in WATCHES:
            if not has_reached(told.version, target):
                self._watch(told, target, seconds)
        if not has_reached(told.version, target):
            raise _RelistError("the watch has not caught up in time")

    def _watch(self, told: "_Told[Kept]", target: str, seconds: int) -> None:
        """Take in changes until it has caught up, or the watch ends."""
        try:
            for line in self._api.watch(self._path, _WHAT, {"resourceVersion": told.version}, seconds):
                told.take(line)
                if has_reached(told.version, target):
                    return
        except ExpiredError as error:
            raise _RelistError("the version that is known is too old") from error
        except UpstreamError as error:  # refused, or out of order: should the server be down, the list says so
            raise _RelistError(str(error)) from error


class _Told(Generic[Kept]):
    """What the events of watches say, up to a version."""

    def __init__(self, version: str, keep: Callable[[Any], Kept]) -> None:
        self.version = version
        self.changed: dict[tuple[str, str], Kept | None] = {}
        self.states: list[tuple[Kept, bool]] = []
        """Each state that the watch sent, and whether the workload was deleted in it."""
        self.objects_read = 0
        self._keep = keep

    def take(self, line: bytes) -> None:
        """Take in one event. Raises _RelistError for one that cannot be followed."""
        try:
            event = json.loads(line)
        except ValueError as error:
            raise _RelistError("the watch sent something that is not JSON") from error
        kind, item = (event.get("type"), event.get("object")) if isinstance(event, Mapping) else (None, None)
        if kind == "ERROR":
            raise _RelistError(_said(item))
        version = version_of(item)
        if not version:
            raise _RelistError(f"the watch sent an event {kind} without a version")
        if kind in {"ADDED", "MODIFIED", "DELETED"}:
            key = _key(item)
            if key is None or self.objects_read >= MOST_EVENTS:
                raise _RelistError("more changed than a watch is for" if key else "a workload has no name")
            state = self._keep(item)
            self.states.append((state, kind == "DELETED"))
            self.changed[key] = None if kind == "DELETED" else state
            self.objects_read += 1
        elif kind != "BOOKMARK":
            raise _RelistError(f"the watch sent an event {kind}")
        self.version = version


def has_reached(version: str, target: str) -> bool:
    """Return whether a version of the workloads is the target, or newer.

    Example:
        >>> has_reached("10", "9"), has_reached("9", "10"), has_reached("x", "x"), has_reached("y", "x")
        (True, False, True, False)

    """
    return version == target or is_before(target, version)


def is_before(version: str, other: str) -> bool:
    """Return whether a version is known to be older than another one."""
    return bool(_NUMBER.fullmatch(version) and _NUMBER.fullmatch(other)) and int(version) < int(other)


def _key(item: Any) -> tuple[str, str] | None:
    """Return namespace and name; None for what has no name."""
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        return None
    namespace = metadata.get("namespace")
    return namespace if isinstance(namespace, str) else "", metadata["name"]


def _said(status: Any) -> str:
    """Return why the server ended the watch: a Status, 410 for a version that it does not keep any more."""
    code, message = (status.get("code"), status.get("message")) if isinstance(status, Mapping) else (None, None)
    return "the version that is known is too old" if code == 410 else f"the watch ended: {code} {message}"
