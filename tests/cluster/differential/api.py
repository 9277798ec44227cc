"""Many short requests at once, and one watch over all workloads: what playing many sequences side by side needs.

`tests.cluster.kube.Kube` asks for whole lists; here a single watch keeps them, which wakes waiting callers.
"""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from kubernetes import client, config

from tests.cluster.kube import RETRIES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from pathlib import Path

    from tests.cluster.kube import Object

CONNECTIONS: Final = 64
MANAGER: Final = "taskgov"
LANE: Final = re.compile(r"\bq\d+x\b")
"""The word by which a sequence's objects are known, in every name."""
_KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
_PATHS: Final[Mapping[str, str]] = {
    "Namespace": "/api/v1/namespaces",
    "LimitRange": "/api/v1/namespaces/{namespace}/limitranges",
    "ResourceFlavor": f"{_KUEUE}/resourceflavors",
    "WorkloadPriorityClass": f"{_KUEUE}/workloadpriorityclasses",
    "ClusterQueue": f"{_KUEUE}/clusterqueues",
    "LocalQueue": f"{_KUEUE}/namespaces/{{namespace}}/localqueues",
    "Workload": f"{_KUEUE}/namespaces/{{namespace}}/workloads",
}
_ALL_WORKLOADS: Final = f"{_KUEUE}/workloads"
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_END_SECONDS: Final = 30


class RefusedError(Exception):
    """The API server did not do it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """Plain requests with plain answers; may be used by many threads."""

    def __init__(self, kubeconfig: Path) -> None:
        configuration = client.Configuration()
        config.load_kube_config(str(kubeconfig), client_configuration=configuration)
        configuration.proxy = None
        configuration.connection_pool_maxsize = CONNECTIONS
        configuration.retries = RETRIES
        self._client = client.ApiClient(configuration)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def create(self, manifest: Object) -> Object:
        """Create an object; return it as stored."""
        return self._ask("POST", _folder(manifest), manifest)

    def apply(self, manifest: Object) -> Object:
        """Apply an object server-side; return it as stored."""
        path = f"{_path(manifest)}?fieldManager={MANAGER}&force=true"
        return self._ask("PATCH", path, manifest, "application/apply-patch+yaml")

    def replace(self, manifest: Object) -> Object:
        """Give an object another spec, again when somebody else wrote in between; return it as stored."""
        while True:
            current = self._ask("GET", _path(manifest))
            try:
                return self._ask("PUT", _path(manifest), {**current, "spec": manifest["spec"]})
            except RefusedError as refused:
                if refused.status != _CONFLICT:
                    raise

    def read(self, manifest: Object) -> Object | None:
        """Return an object as it is stored, None when it is gone."""
        try:
            return self._ask("GET", _path(manifest))
        except RefusedError as refused:
            if refused.status != _NOT_FOUND:
                raise
            return None

    def delete_workloads(self, namespace: str) -> None:
        """Delete all workloads of a namespace."""
        self._ask("DELETE", _PATHS["Workload"].format(namespace=namespace))

    def delete(self, manifest: Object) -> None:
        """Delete an object; what is gone already is fine."""
        try:
            self._ask("DELETE", _path(manifest))
        except RefusedError as refused:
            if refused.status != _NOT_FOUND:
                raise

    def change_status(self, manifest: Object, change: Callable[[Object], None]) -> Object:
        """Read an object, change its status and write it, again when somebody else wrote in between."""
        while True:
            current = self._ask("GET", _path(manifest))
            change(current["status"])
            try:
                return self._ask("PUT", f"{_path(manifest)}/status", current)
            except RefusedError as refused:
                if refused.status != _CONFLICT:
                    raise

    def workloads(self) -> tuple[list[Object], str]:
        """Return all workloads and the version at which the list is true."""
        found = self._ask("GET", _ALL_WORKLOADS)
        return found["items"], found["metadata"]["resourceVersion"]

    def changes(self, since: str) -> Generator[Object]:
        """Give the changes of workloads as they happen, until the server ends the connection."""
        arguments = self._arguments("GET", f"{_ALL_WORKLOADS}?watch=1&resourceVersion={since}&timeoutSeconds=600")
        method, url, headers, *_ = arguments
        answer = self._client.rest_client.pool_manager.request(method, url, headers=headers, preload_content=False)
        buffer = b""
        try:
            for chunk in answer.stream(65536):
                *lines, buffer = (buffer + chunk).split(b"\n")
                yield from (json.loads(line) for line in lines if line)
        finally:
            answer.close()  # it may have more: left to the garbage collector, its socket is a warning, and so an error

    def _ask(self, method: str, path: str, body: Object | None = None, content: str = "application/json") -> Object:
        answer = self._client.call_api(*self._arguments(method, path, body, content))
        read: Object = json.loads(answer.read() or b"{}")
        if answer.status >= 400:
            raise RefusedError(answer.status, read.get("message", ""))
        return read

    def _arguments(
        self, method: str, path: str, body: Object | None = None, content: str = "application/json"
    ) -> tuple[Any, ...]:
        headers = {"Content-Type": content, "Accept": "application/json"}
        auth = ["BearerToken"]
        serialized: tuple[Any, ...] = self._client.param_serialize(
            method, path, header_params=headers, body=body, auth_settings=auth
        )
        return serialized


class Workloads:
    """What the API server has of workloads, kept true by a watch."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[str, Object] = {}
        self._changed_at: dict[str, float] = {}
        self._changed = threading.Condition()
        self._stopped = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True, name="watch")
        self._thread.start()

    def stop(self) -> None:
        """Follow no longer: the watch has ended when the next change of a workload has come."""
        self._stopped = True

    def wait_for_end(self) -> None:
        """Wait until the watch has ended."""
        self._thread.join(_END_SECONDS)
        assert not self._thread.is_alive(), f"after {_END_SECONDS} seconds the watch over workloads has not ended"

    def get(self, key: str) -> Object | None:
        """Return a workload as last seen."""
        with self._changed:
            self._check()
            return self._known.get(key)

    def last_change(self, lane: str) -> float:
        """Return when a workload changed last in whose namespace the word of a sequence is; 0 for never.

        Other words only are no change: the head of a strict queue has others in every cycle, forever.
        """
        with self._changed:
            self._check()
            return self._changed_at.get(lane, 0.0)

    def wait(self, what: str, true: Callable[[], bool], seconds: float = 30) -> None:
        """Wait until it is true; it is asked again whenever a workload has changed."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not true():
                self._check()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"after {seconds} seconds still not: {what}")
                self._changed.wait(min(left, 1))

    def _check(self) -> None:
        if self._failure is not None:
            raise AssertionError("the watch over workloads broke") from self._failure

    def _follow(self) -> None:
        """List and watch, again and again. The next caller gets the error that ends it."""
        try:
            while not self._stopped:
                self._watch()
        except Exception as failure:  # noqa: BLE001 - handed to the threads that wait
            self._failure = failure
            with self._changed:
                self._changed.notify_all()

    def _watch(self) -> None:
        listed, version = self._api.workloads()
        with self._changed:
            self._known = {key_of(one): one for one in listed}
            self._changed.notify_all()
        if self._stopped:
            return  # the last change may have come before this list
        with closing(self._api.changes(version)) as changes:
            self._take_all(changes)

    def _take_all(self, changes: Iterable[Object]) -> None:
        for change in changes:
            if self._stopped or change["type"] == "ERROR":
                return
            with self._changed:
                one = change["object"]
                found = LANE.search(one["metadata"]["namespace"])
                if found and (change["type"] == "DELETED" or wordless(one) != wordless(self._known.get(key_of(one)))):
                    self._changed_at[found[0]] = time.time()
                if change["type"] == "DELETED":
                    self._known.pop(key_of(one), None)
                else:
                    self._known[key_of(one)] = one
                self._changed.notify_all()


def wordless(workload: Object | None) -> Object | None:
    """Return what is said of a workload without the words and the moments of conditions, and without who said it."""
    if workload is None:
        return None
    metadata, status = workload["metadata"], workload.get("status", {})
    conditions = {one["type"]: (one["status"], one["reason"]) for one in status.get("conditions", ())}
    asked = {"generation": metadata.get("generation"), "leaves": metadata.get("deletionTimestamp")}
    return {**status, **asked, "conditions": conditions}


def key_of(workload: Object) -> str:
    """Return `namespace/name`."""
    return f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"


def _folder(manifest: Object) -> str:
    return _PATHS[manifest["kind"]].format(namespace=manifest["metadata"].get("namespace"))


def _path(manifest: Object) -> str:
    return f"{_folder(manifest)}/{manifest['metadata']['name']}"
