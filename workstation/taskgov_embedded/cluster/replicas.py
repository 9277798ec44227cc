"""Which pods does a Deployment have? As many as it requests: its controller adds, removes and replaces them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskgov_embedded.cluster.jobs import asks
from taskgov_embedded.cluster.pods import replica_pod
from taskgov_embedded.cluster.states import pods_belonging_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov_embedded.cluster.objects import KubeObject, ObjectStore


class Replicas:
    """The pods of all Deployments; each is submitted and deleted as a pod of its own."""

    def __init__(
        self,
        store: ObjectStore,
        submit: Callable[[KubeObject, int | None], KubeObject],
        delete: Callable[[KubeObject], None],
    ) -> None:
        self._store = store
        self._submit = submit
        self._delete = delete
        self._made: dict[str, int] = {}

    def deploy(self, manifest: Mapping[str, Any], run_seconds: int | None) -> KubeObject:
        """Create a Deployment and its pods; with `run_seconds` they end by themselves."""
        deployment = self._store.apply(manifest)
        for _ in range(manifest["spec"].get("replicas", 1)):
            self._add(deployment, run_seconds)
        return deployment

    def change(self, before: KubeObject, after: KubeObject) -> KubeObject:
        """Scale a Deployment, the newest pods first; another template or queue means other pods."""
        stored = self._store.apply(after)
        pods = sorted(pods_belonging_to(self._store, stored), key=lambda pod: str(pod["metadata"]["uid"]))
        same = asks(before)[1:] == asks(stored)[1:]
        wanted = stored["spec"].get("replicas", 1)
        kept = wanted if same else 0
        for pod in pods[kept:]:
            self._delete(pod)
        for _ in range(wanted - min(kept, len(pods))):
            self._add(stored)
        return stored

    def replace(self, pod: KubeObject) -> None:
        """Make up for a pod that was taken from a Deployment; a pod of its own is gone for good."""
        for owner in pod["metadata"].get("ownerReferences", ()):
            deployment = self._store.find("deployments", owner["name"], pod["metadata"]["namespace"])
            if deployment is not None and deployment["metadata"]["uid"] == owner["uid"]:
                self._add(deployment)

    def _add(self, deployment: KubeObject, run_seconds: int | None = None) -> None:
        uid = deployment["metadata"]["uid"]
        self._made[uid] = self._made.get(uid, 0) + 1
        self._submit(replica_pod(deployment, self._made[uid]), run_seconds)
