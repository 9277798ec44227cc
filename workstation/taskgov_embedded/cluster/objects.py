"""Which Kubernetes objects does the simulated cluster hold? Kept by type, namespace and name.

The API server's memory: every part of the simulated cluster puts its objects here; the API server reads them.
Objects are dicts in the form of the Kubernetes API (Kueue's in `v1beta2`). An object that has been stored is never
changed in place, so that a reader on another thread always sees a whole one.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from taskgov.hyperpod.names import NAMESPACE_NAME_LABEL
from taskgov_embedded.cluster.history import Change, History

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

KubeObject = dict[str, Any]

KUEUE_GROUP: Final = "kueue.x-k8s.io"


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A kind of object as API discovery describes it; versions in the order of preference."""

    plural: str
    kind: str
    group: str
    versions: tuple[str, ...]
    namespaced: bool
    short_names: tuple[str, ...] = ()
    scales: bool = False
    """Whether it has the subresource `scale`."""

    def api_version(self, version: str | None = None) -> str:
        """Return `group/version`, or the bare version in the core group."""
        chosen = version or self.versions[0]
        return f"{self.group}/{chosen}" if self.group else chosen


def _kueue(plural: str, kind: str, *short_names: str, namespaced: bool = False) -> ResourceType:
    return ResourceType(plural, kind, KUEUE_GROUP, ("v1beta2", "v1beta1"), namespaced, short_names)


def _apps(plural: str, kind: str, short_name: str) -> ResourceType:
    return ResourceType(plural, kind, "apps", ("v1",), namespaced=True, short_names=(short_name,), scales=True)


def _admission(plural: str, kind: str) -> ResourceType:
    return ResourceType(plural, kind, "admissionregistration.k8s.io", ("v1",), namespaced=False)


RESOURCE_TYPES: Final[Mapping[str, ResourceType]] = {
    kind.plural: kind
    for kind in (
        ResourceType("nodes", "Node", "", ("v1",), namespaced=False, short_names=("no",)),
        ResourceType("namespaces", "Namespace", "", ("v1",), namespaced=False, short_names=("ns",)),
        ResourceType("pods", "Pod", "", ("v1",), namespaced=True, short_names=("po",)),
        ResourceType("services", "Service", "", ("v1",), namespaced=True, short_names=("svc",)),
        ResourceType("limitranges", "LimitRange", "", ("v1",), namespaced=True, short_names=("limits",)),
        ResourceType("runtimeclasses", "RuntimeClass", "node.k8s.io", ("v1",), namespaced=False),
        ResourceType("configmaps", "ConfigMap", "", ("v1",), namespaced=True, short_names=("cm",)),
        ResourceType("events", "Event", "", ("v1",), namespaced=True, short_names=("ev",)),
        ResourceType(
            "deployments", "Deployment", "apps", ("v1",), namespaced=True, short_names=("deploy",), scales=True
        ),
        ResourceType(
            "statefulsets", "StatefulSet", "apps", ("v1",), namespaced=True, short_names=("sts",), scales=True
        ),
        ResourceType(
            "customresourcedefinitions",
            "CustomResourceDefinition",
            "apiextensions.k8s.io",
            ("v1",),
            namespaced=False,
            short_names=("crd", "crds"),
        ),
        ResourceType("jobs", "Job", "batch", ("v1",), namespaced=True),
        ResourceType("pytorchjobs", "PyTorchJob", "kubeflow.org", ("v1",), namespaced=True),
        ResourceType("hyperpodpytorchjobs", "HyperPodPyTorchJob", "sagemaker.amazonaws.com", ("v1",), namespaced=True),
        ResourceType("rayjobs", "RayJob", "ray.io", ("v1",), namespaced=True),
        _admission("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
        _admission("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
        _kueue("resourceflavors", "ResourceFlavor", "flavor", "flavors", "rf"),
        _kueue("cohorts", "Cohort"),
        _kueue("clusterqueues", "ClusterQueue", "cq"),
        _kueue("localqueues", "LocalQueue", "queue", "queues", "lq", namespaced=True),
        _kueue("workloadpriorityclasses", "WorkloadPriorityClass"),
        _kueue("workloads", "Workload", "wl", namespaced=True),
    )
}
TYPE_OF_KIND: Final[Mapping[str, ResourceType]] = {kind.kind: kind for kind in RESOURCE_TYPES.values()}

Key = tuple[str, str]
"""Namespace (empty for what has none) and name."""


def timestamp(moment: datetime) -> str:
    """Write a moment as the API server does: RFC 3339 in UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def key_of(item: Mapping[str, Any]) -> Key:
    """Return an object's namespace and name."""
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def defaulted(item: KubeObject) -> KubeObject:
    """Label a namespace with its name, by which queues select it, and give a new pod its phase: as the API server."""
    if item["kind"] == "Pod":
        return {"status": {"phase": "Pending"}, **item}
    if item["kind"] != "Namespace":
        return item
    metadata = item["metadata"]
    labels = {**metadata.get("labels", {}), NAMESPACE_NAME_LABEL: metadata["name"]}
    return {**item, "metadata": {**metadata, "labels": labels}}


class Listable(Protocol):
    """What has objects by type and namespace: the store, or anything that stands for it."""

    def list(self, plural: str, namespace: str | None = None) -> list[KubeObject]:
        """Return all objects of a type (in one namespace), in order."""
        ...


class Objects(Listable, Protocol):
    """What the API server reads."""

    @property
    def now(self) -> datetime:
        """The present moment, for the ages in tables."""
        ...

    @property
    def resource_version(self) -> str:
        """The version of the latest write."""
        ...

    def find(self, plural: str, name: str, namespace: str = "") -> KubeObject | None:
        """Return one object, or None."""
        ...

    def changes_since(self, plural: str, version: int) -> tuple[list[Change[KubeObject]], int]:
        """Return what happened to a type after a version, and the version of the latest write. Raises TooOldError."""
        ...


class ObjectStore:
    """Objects by type, namespace and name, with the metadata that the API server adds."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = threading.RLock()
        self._objects: dict[str, dict[Key, KubeObject]] = {plural: {} for plural in RESOURCE_TYPES}
        self._version = 0
        self._created = 0
        self._history = History[KubeObject]()

    @property
    def now(self) -> datetime:
        """The cluster's present moment."""
        return self._now()

    @property
    def resource_version(self) -> str:
        """The version of the latest write, as lists carry it."""
        return str(self._version)

    def apply(self, item: Mapping[str, Any]) -> KubeObject:
        """Create or replace an object and return it as stored; the same content again changes nothing.

        Creation gives it `uid`, `creationTimestamp` and `generation`; a new `spec` raises the generation.
        """
        plural = TYPE_OF_KIND[item["kind"]].plural
        with self._lock:
            existing = self._objects[plural].get(key_of(item))
            stored = self._next(item, existing)
            if existing is not None and stored == existing:
                return existing
            self._version += 1
            stored["metadata"]["resourceVersion"] = str(self._version)
            self._objects[plural][key_of(stored)] = stored
            self._history.add(Change(self._version, plural, existing, stored))
            return stored

    def tried(self, item: Mapping[str, Any]) -> KubeObject:
        """Return what `apply` would store, and store nothing (a dry run)."""
        with self._lock:
            return self._next(item, self._objects[TYPE_OF_KIND[item["kind"]].plural].get(key_of(item)))

    def _next(self, item: Mapping[str, Any], existing: KubeObject | None) -> KubeObject:
        given = dict(item["metadata"])
        metadata = {**self._birth(item), **given} if existing is None else {**given, **_identity(existing)}
        stored = {**item, "metadata": metadata}
        if existing is not None and stored.get("spec") != existing.get("spec"):
            metadata["generation"] = existing["metadata"]["generation"] + 1
        return stored

    def place(self, item: Mapping[str, Any]) -> None:
        """Put an object as it is, uid and all, that is not part of what happens: it takes no version and no serial."""
        with self._lock:
            self._objects[TYPE_OF_KIND[item["kind"]].plural][key_of(item)] = dict(item)

    def find(self, plural: str, name: str, namespace: str = "") -> KubeObject | None:
        """Return one object, or None."""
        return self._objects[plural].get((namespace, name))

    def get(self, plural: str, name: str, namespace: str = "") -> KubeObject:
        """Return one object; KeyError when there is none."""
        return self._objects[plural][namespace, name]

    def changes_since(self, plural: str, version: int) -> tuple[list[Change[KubeObject]], int]:
        """Return what happened to a type after a version, and the version of the latest write. Raises TooOldError."""
        with self._lock:
            return self._history.since(plural, version), self._version

    def list(self, plural: str, namespace: str | None = None) -> list[KubeObject]:
        """Return all objects of a type (in one namespace), by namespace and name."""
        with self._lock:
            found = sorted(self._objects[plural].items())
        return [item for (place, _), item in found if namespace is None or place == namespace]

    def delete(self, plural: str, name: str, namespace: str = "") -> None:
        """Remove an object, if it is there."""
        with self._lock:
            gone = self._objects[plural].pop((namespace, name), None)
            if gone is not None:
                self._version += 1
                self._history.add(Change(self._version, plural, gone, None))

    def compact(self) -> None:
        """Forget what happened so far, as etcd does every five minutes: a watch from before has to list again."""
        with self._lock:
            self._history.compact(self._version)

    def _birth(self, item: Mapping[str, Any]) -> KubeObject:
        self._created += 1
        return {
            "uid": _uid(self._created, item["kind"], *key_of(item)),
            "creationTimestamp": timestamp(self._now()),
            "generation": 1,
        }


def _identity(existing: KubeObject) -> KubeObject:
    kept = ("uid", "creationTimestamp", "generation", "resourceVersion")
    return {name: existing["metadata"][name] for name in kept}


def _uid(serial: int, *parts: str) -> str:
    """Return an id that grows with each creation: Kueue breaks ties of creation time by uid, so order is kept."""
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()
    return f"{serial:08x}-{digest[:4]}-4{digest[4:7]}-a{digest[7:10]}-{digest[10:22]}"
