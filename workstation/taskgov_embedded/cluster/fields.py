"""Which fields does a kind not have? What `kubectl apply --validate=strict` gets for a typing error.

The fields of built-in kinds are those of the Kubernetes client (`kubernetes.client.models`). Of the operators' kinds
those are listed whose fields are documented; what is not listed may hold anything, apart from pod templates, which are
checked everywhere. Objects of Kueue are not checked.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MODELS: Final[Mapping[str, str]] = {
    "Pod": "V1Pod",
    "Service": "V1Service",
    "Namespace": "V1Namespace",
    "Deployment": "V1Deployment",
    "StatefulSet": "V1StatefulSet",
    "Job": "V1Job",
}
_CONTAINED: Final = re.compile(r"(?:List\[|Dict\[str, )(?P<inner>\w+)\]")

Schema = str | dict[str, Any]
"""The name of a model or plain type of the client, or the fields of an object; `*` stands for every field."""

_RUN_POLICY: Final = dict.fromkeys(
    (
        "activeDeadlineSeconds",
        "backoffLimit",
        "cleanPodPolicy",
        "managedBy",
        "schedulingPolicy",
        "suspend",
        "ttlSecondsAfterFinished",
    ),
    "object",
)
_ELASTIC_POLICY: Final = dict.fromkeys(
    (
        "maxReplicas",
        "maxRestarts",
        "metrics",
        "minReplicas",
        "nProcPerNode",
        "rdzvBackend",
        "rdzvConf",
        "rdzvHost",
        "rdzvId",
        "rdzvPort",
        "standalone",
    ),
    "object",
)
_REPLICAS: Final = {"replicas": "int", "restartPolicy": "str", "template": "V1PodTemplateSpec"}
_POD_TEMPLATE: Final = {"template": "V1PodTemplateSpec", "*": "object"}
_CUSTOM: Final[Mapping[str, Schema]] = {
    "PyTorchJob": {
        "elasticPolicy": _ELASTIC_POLICY,
        "nprocPerNode": "object",
        "pytorchReplicaSpecs": {"Master": _REPLICAS, "Worker": _REPLICAS},
        "runPolicy": _RUN_POLICY,
    },
    "HyperPodPyTorchJob": {"replicaSpecs": [_POD_TEMPLATE], "*": "object"},
    "RayJob": {
        "rayClusterSpec": {"headGroupSpec": _POD_TEMPLATE, "workerGroupSpecs": [_POD_TEMPLATE], "*": "object"},
        "submitterPodTemplate": "V1PodTemplateSpec",
        "*": "object",
    },
}


def unknown_fields(item: Mapping[str, Any]) -> list[str]:
    """Return the paths of an object's fields that its kind does not have, in the order of the object."""
    kind = item.get("kind", "")
    if kind in _MODELS:
        return list(_unknown(item, _MODELS[kind], ""))
    if kind not in _CUSTOM:
        return []
    whole = {"apiVersion": "str", "kind": "str", "metadata": "V1ObjectMeta", "spec": _CUSTOM[kind], "status": "object"}
    return list(_unknown(item, whole, ""))


def _unknown(value: Any, schema: Any, path: str) -> Iterator[str]:
    """Walk a value along its schema; where the value has another form, its own check says so."""
    if isinstance(schema, list):
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _unknown(item, schema[0], f"{path}[{index}]")
    elif isinstance(schema, str) and (contained := _CONTAINED.fullmatch(schema)) is not None:
        if schema.startswith("List"):
            yield from _unknown(value, [contained["inner"]], path)
        else:
            for name, item in value.items() if isinstance(value, dict) else ():
                yield from _unknown(item, contained["inner"], f"{path}.{name}")
    elif isinstance(value, dict) and (fields := _fields(schema)) is not None:
        for name, item in value.items():
            here = f"{path}.{name}" if path else str(name)
            if name not in fields and "*" not in fields:
                yield here
            else:
                yield from _unknown(item, fields.get(name, fields.get("*")), here)


def _fields(schema: Any) -> Mapping[str, Any] | None:
    """Return the fields of a schema, or None where anything goes."""
    if isinstance(schema, dict):
        return schema
    # Over a thousand classes that few clusters ever need: they are loaded by the first strict request.
    model = getattr(importlib.import_module("kubernetes.client.models"), schema, None)
    if model is None:
        return None
    return {model.attribute_map[name]: kind for name, kind in model.openapi_types.items()}
