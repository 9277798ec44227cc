"""Which fields of a Kubernetes object do decisions use? All others are dropped on arrival.

A pod template may carry kilobytes of commands and environment, with secrets among them: none of it is kept, logged or
stored. Objects keep the API's own form.
"""

import marshal
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pydantic_core import CoreSchema, SchemaValidator, core_schema

from taskgov.scheduling.kueue_fields import ANNOTATIONS
from taskgov.snapshot.forms import UNTRIMMED
from taskgov.snapshot.model import KubernetesObject
from taskgov.snapshot.nodes import LABELS

_TOP: Final = ("apiVersion", "kind", "spec", "status", "value")
_METADATA: Final = ("name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp", "labels")
_OWNER: Final = ("apiVersion", "kind", "name", "uid", "controller")
_NODE_SPEC: Final = ("providerID", "taints", "unschedulable")
_NODE_STATUS: Final = ("allocatable",)
_READY: Final = "Ready"
_POD_SET: Final = ("name", "count", "minCount", "topologyRequest")
_POD: Final = (
    "nodeSelector",
    "tolerations",
    "affinity",
    "overhead",
    "resources",
    "runtimeClassName",
    "priority",
    "topologySpreadConstraints",
    "resourceClaims",
)
_CONTAINERS: Final = ("initContainers", "containers")
_CONTAINER: Final = ("name", "resources", "restartPolicy", "ports")
MOST_SHARED: Final = 10_000
"""Different parts that are kept to be shared."""


def _parts(names: tuple[str, ...] = (), **more: CoreSchema) -> CoreSchema:
    """Return the form of an object: what is parsed of it. Any of it may be missing."""
    fields = dict.fromkeys(names, core_schema.any_schema()) | more
    return core_schema.typed_dict_schema(
        {name: core_schema.typed_dict_field(schema, required=False) for name, schema in fields.items()}
    )


_NODE: Final = _parts(
    metadata=_parts((*_METADATA, "ownerReferences"), labels=_parts(LABELS)),
    spec=_parts(_NODE_SPEC),
    status=_parts((*_NODE_STATUS, "conditions")),
)


class Parts(NamedTuple):
    """Which part of a page of a list is read: its form, and the text that is cut out before it is parsed."""

    form: SchemaValidator
    cut: tuple[re.Pattern[bytes], ...]

    def read(self, text: bytes) -> Any:
        """Return the parts of a page. Raises ValidationError: then the caller reads the page whole.

        No pattern matches more than the array that it begins with: it has no more `]` than arrays that it surely opens.
        If it matches less, brackets are left over, and parsing fails. No match begins or ends within a string,
        because a quotation mark there would be escaped.
        """
        for pattern in self.cut:
            text = pattern.sub(b"", text)
        return self.form.validate_json(text)


NODES: Final = Parts(
    SchemaValidator(_parts(("metadata",), items=core_schema.list_schema(_NODE))),
    (
        re.compile(rb',"images":\[(?:\{"names":\[[^]]*\],"sizeBytes":[0-9]+\},?)*+\]'),
        re.compile(rb',"managedFields":\[[^]]*\](?=\},"spec":)'),
    ),
)
"""What is read of a page of nodes: a tenth of it. The rest is images, managed fields, and labels of others.

To cut images and managed fields out takes a third of the time that parsing them does. The patterns are the API server's
own text, without spaces, in the order of the Go structures (`ObjectMeta`, `ContainerImage`); any other is parsed.
"""


def kept(item: Any, trim: Callable[[KubernetesObject], KubernetesObject]) -> KubernetesObject:
    """Trim one item of a list. Of one that cannot be trimmed only its name is kept, and why; it holds up no other."""
    try:
        return trim(item)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        metadata = item.get("metadata") if isinstance(item, Mapping) else None
        names = _only(metadata, ("name", "namespace")) if isinstance(metadata, Mapping) else {}
        return {"metadata": names, UNTRIMMED: f"it has not the form of a Kubernetes object ({type(error).__name__})"}


def trimmed_node(node: KubernetesObject) -> KubernetesObject:
    """Keep a node's name, the labels that are used, taints, amounts and whether it is ready."""
    metadata, status = _metadata(node), node.get("status", {})
    labels = metadata.get("labels")
    ready = [condition for condition in status.get("conditions", ()) if condition["type"] == _READY]
    return {
        "metadata": {**metadata, "labels": _only(labels, LABELS)} if isinstance(labels, Mapping) else metadata,
        "spec": _only(node.get("spec", {}), _NODE_SPEC),
        "status": {**_only(status, _NODE_STATUS), "conditions": ready},
    }


class Shared:
    """Gives equal parts of objects as one object: tens of thousands of workloads have few different pod sets."""

    def __init__(self) -> None:
        self._known: dict[bytes, Any] = {}

    def one(self, part: Any) -> Any:
        """Return the first part that was equal to this one, in the order of its members too."""
        key = marshal.dumps(part, 2)  # a version that depends on the values alone
        if len(self._known) < MOST_SHARED:
            return self._known.setdefault(key, part)
        return self._known.get(key, part)


def trimmed_workload(workload: KubernetesObject, also: str = "", shared: Shared | None = None) -> KubernetesObject:
    """Keep a workload's queue, priority, status, and of its pods what they need and where they may go.

    With `also`, the value of this annotation or label is kept as an annotation: of the workload, else of its pods. With
    `shared`, equal pod sets of several workloads are one object.
    """
    spec = workload["spec"]
    pod_sets = [_pod_set(pod_set) for pod_set in spec.get("podSets", ())]
    if shared is not None:
        pod_sets = [shared.one(pod_set) for pod_set in pod_sets]
    small = {**trimmed(workload), "spec": {**spec, "podSets": pod_sets}}
    value = _named_by(workload, also) if also else None
    if value is None:
        return small
    metadata = small["metadata"]
    return {**small, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), also: value}}}


def _named_by(workload: KubernetesObject, name: str) -> str | None:
    """Return the value of an annotation or label of a workload, else of the templates of its pods."""
    templates = (pod_set.get("template", {}).get("metadata") or {} for pod_set in workload["spec"].get("podSets", ()))
    places = (
        metadata.get(kind) or {}
        for metadata in (workload["metadata"], *templates)
        for kind in ("annotations", "labels")
    )
    values = (place.get(name) for place in places)
    return next((value for value in values if isinstance(value, str) and value), None)


def trimmed_limit_range(limit_range: KubernetesObject) -> KubernetesObject:
    """Keep a LimitRange's name and limits."""
    return {"metadata": _metadata(limit_range), "spec": _only(limit_range.get("spec") or {}, ("limits",))}


def trimmed_runtime_class(runtime_class: KubernetesObject) -> KubernetesObject:
    """Keep a RuntimeClass's name and what it adds to pods."""
    return {"metadata": _metadata(runtime_class), **_only(runtime_class, ("overhead",))}


def trimmed(item: KubernetesObject) -> KubernetesObject:
    """Keep spec, status, a priority class's value, and the metadata without managed fields.

    Of annotations only those by which Kueue decides are kept: the scheduling model follows them, or names them.
    """
    annotations = _only(item["metadata"].get("annotations") or {}, tuple(ANNOTATIONS))
    return {
        **_only(item, _TOP),
        "metadata": {**_metadata(item), **({"annotations": annotations} if annotations else {})},
    }


def _metadata(item: KubernetesObject) -> dict[str, Any]:
    metadata = item["metadata"]
    owners = [_only(owner, _OWNER) for owner in metadata.get("ownerReferences", ())]
    return {**_only(metadata, _METADATA), **({"ownerReferences": owners} if owners else {})}


def _pod_set(pod_set: Mapping[str, Any]) -> dict[str, Any]:
    pod = pod_set.get("template", {}).get("spec", {})
    containers = {
        name: [_only(container, _CONTAINER) for container in pod[name]] for name in _CONTAINERS if pod.get(name)
    }
    return {**_only(pod_set, _POD_SET), "template": {"spec": {**_only(pod, _POD), **containers}}}


def _only(mapping: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: mapping[name] for name in names if name in mapping}
