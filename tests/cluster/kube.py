"""Talk to the cluster's API as a test does: apply, get, list, delete, and wait for what controllers will write."""

from __future__ import annotations

import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import urllib3
from kubernetes import client, config, dynamic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

Object = dict[str, Any]
FIELD_MANAGER: Final = "taskgov"
PATIENCE_SECONDS: Final = 60
KUEUE: Final = "kueue.x-k8s.io/v1beta2"
NOT_NOW: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)
"""Answers of a busy machine. A webhook that did not answer in time is a 500; nothing was stored."""
RETRIES: Final = urllib3.Retry(
    total=None,
    connect=2,
    read=2,
    status=6,
    status_forcelist=NOT_NOW,
    allowed_methods=None,
    raise_on_status=False,
    backoff_factor=0.2,
)
AT_ONCE: Final = urllib3.Retry(0, status=0, respect_retry_after_header=False)
"""No retries. While the API server is away, the pause before one would pass the account's time: a function that waits
to try again would find a server that is not ready."""


class Kube:
    """One user's access to the API of a cluster."""

    def __init__(self, kubeconfig: Path, retries: urllib3.Retry = RETRIES) -> None:
        self.kubeconfig = kubeconfig
        self.context = str(config.list_kube_config_contexts(str(kubeconfig))[1]["name"])
        configuration = client.Configuration()
        config.load_kube_config(str(kubeconfig), client_configuration=configuration)
        configuration.proxy = None
        configuration.retries = retries
        self._api = client.ApiClient(configuration)
        try:
            self._dynamic = dynamic.DynamicClient(self._api)
        except BaseException:
            self.close()  # nobody else can: there is no object yet
            raise

    def close(self) -> None:
        """Give the connections back."""
        self._api.close()

    def ready(self) -> bool:
        """Say whether the server answers that it is ready."""
        return self.answers("/readyz")

    def answers(self, path: str) -> bool:
        """Say whether the server answers a GET of a path with 200."""
        request = self._api.param_serialize("GET", path, auth_settings=["BearerToken"])
        return bool(self._api.call_api(*request).status == HTTPStatus.OK)

    def apply(self, *objects: Object, manager: str = FIELD_MANAGER, force: bool = False) -> None:
        """Apply objects server-side, in this order, as `manager`."""
        for one in objects:
            options = {"field_manager": manager, "force_conflicts": force, **_place(one)}
            self.kind_of(one).server_side_apply(body=one, **options)

    def create(self, manifest: Object) -> Object:
        """Create an object; return it as stored."""
        stored: Object = self.kind_of(manifest).create(body=manifest, **_place(manifest)).to_dict()
        return stored

    def patch_status(self, manifest: Object, status: Object) -> None:
        """Write a status, as the controller would that does not run here."""
        name = manifest["metadata"]["name"]
        body = {"status": status}
        kind = self.kind_of(manifest)
        kind.status.patch(body=body, name=name, content_type="application/merge-patch+json", **_place(manifest))

    def merge(self, manifest: Object, change: Object, manager: str) -> None:
        """Change fields of an object as `kubectl edit` does."""
        name = manifest["metadata"]["name"]
        options = {"content_type": "application/merge-patch+json", "field_manager": manager, **_place(manifest)}
        self.kind_of(manifest).patch(body=change, name=name, **options)

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        """Return an object. Raises NotFoundError."""
        found: Object = self._kind(api_version, kind).get(name=name, namespace=namespace).to_dict()
        return found

    def list(self, api_version: str, kind: str) -> list[Object]:
        """Return all objects of a kind, in all namespaces."""
        found: list[Object] = self._kind(api_version, kind).get().to_dict()["items"]
        return found

    def has(self, api_version: str, kind: str) -> bool:
        """Say whether the cluster serves a kind."""
        try:
            self._kind(api_version, kind)
        except dynamic.exceptions.ResourceNotFoundError:
            return False
        return True

    def delete(self, objects: Iterable[Object]) -> None:
        """Delete objects; what is gone already is fine."""
        for one in objects:
            try:
                place = {"name": one["metadata"]["name"], **_place(one)}
                self.kind_of(one).delete(body={"propagationPolicy": "Background"}, **place)
            except dynamic.exceptions.NotFoundError:
                continue

    def delete_all(self, api_version: str, kind: str, keep: set[str]) -> None:
        """Delete all objects of a kind that is in no namespace, but for those named."""
        self.delete(one for one in self.list(api_version, kind) if one["metadata"]["name"] not in keep)

    def kind_of(self, manifest: Object) -> Any:
        """Return the client of an object's kind."""
        return self._kind(manifest["apiVersion"], manifest["kind"])

    def _kind(self, api_version: str, kind: str) -> Any:
        return self._dynamic.resources.get(api_version=api_version, kind=kind)


def really_wait(seconds: float) -> None:
    """Wait in real time: `time.sleep` passes the account's time where an embedded stack is open."""
    threading.Event().wait(seconds)


def wait_for(what: str, true: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Ask until it is true; fail with `what` when it takes too long."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"after {seconds} seconds still not: {what}")
        really_wait(0.05)


def conditions(item: Object) -> dict[str, Object]:
    """Return an object's conditions, by type."""
    return {one["type"]: one for one in item.get("status", {}).get("conditions", ())}


def is_true(item: Object, condition: str) -> bool:
    """Say whether a condition of an object holds."""
    return conditions(item).get(condition, {}).get("status") == "True"


def _place(manifest: Object) -> dict[str, str]:
    namespace = manifest["metadata"].get("namespace")
    return {"namespace": namespace} if namespace else {}
