"""Is a submitted job sound? What the API server's validation of each kind would find, as far as queues depend on it.

The models have the fields that the simulated cluster reads; a real API server has schemas for all of them.
"""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from taskgov_embedded.cluster.jobs import SUBMITTED
from taskgov_manifests.pod_sets import ManifestError, pod_sets_of

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_PODS: Final = 5_000
"""Pods of a job, at most: far more than the simulated clusters have nodes."""
Texts = dict[str, str]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", alias_generator=to_camel)


class _Owner(_Form):
    api_version: str
    kind: str
    name: str
    uid: str


class _Metadata(_Form):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    labels: Texts = {}
    annotations: Texts = {}
    owner_references: list[_Owner] = []
    finalizers: list[str] = []


class _Resources(_Form):
    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}


class _Container(_Form):
    name: Annotated[str, Field(min_length=1)]
    image: str | None = None
    resources: _Resources = _Resources()
    restart_policy: str | None = None


class _Expression(_Form):
    key: str
    operator: str
    values: list[str] = []


class _Term(_Form):
    match_expressions: list[_Expression] = []
    match_fields: list[_Expression] = []


class _Terms(_Form):
    node_selector_terms: list[_Term]


class _NodeAffinity(_Form):
    required: Annotated[_Terms | None, Field(alias="requiredDuringSchedulingIgnoredDuringExecution")] = None


class _Affinity(_Form):
    node_affinity: _NodeAffinity | None = None


class _Toleration(_Form):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class _Gate(_Form):
    name: str


class _PodSpec(_Form):
    containers: Annotated[list[_Container], Field(min_length=1)]
    init_containers: list[_Container] = []
    overhead: dict[str, str | int | float] = {}
    node_selector: Texts = {}
    node_name: str | None = None
    affinity: _Affinity | None = None
    tolerations: list[_Toleration] = []
    scheduling_gates: list[_Gate] = []
    priority_class_name: str | None = None


class _Template(_Form):
    metadata: _Metadata = _Metadata()
    spec: _PodSpec


class _RunPolicy(_Form):
    suspend: bool | None = None


class _Spec(_Form):
    run_policy: _RunPolicy | None = None
    suspend: bool | None = None
    replicas: int = 1


_RULES: Final = {"model_type": "must be an object", "dict_type": "must be an object", "list_type": "must be a list"}
"""pydantic's sentences that name classes of Python."""


def problems_of(item: Mapping[str, Any]) -> list[str]:
    """Return all that is wrong with a job, each with its field; objects that are not jobs are skipped."""
    if item["kind"] not in SUBMITTED:
        return []
    found = [*problems_of_metadata(item["metadata"]), *_misfits(_Spec, item.get("spec") or {}, "spec")]
    try:
        pod_sets = pod_sets_of(item)
    except ManifestError as error:
        return [*found, *str(error).splitlines()]
    if (count := sum(pod_set.count for pod_set in pod_sets)) > MOST_PODS:
        found.append(f"spec: Invalid value: {count} pods: must be at most {MOST_PODS}")
    if item["kind"] == "Pod":
        return [*found, *_misfits(_PodSpec, item["spec"], "spec")]
    return [
        *found,
        *(misfit for pods in pod_sets for misfit in _misfits(_Template, pods.template, f"{pods.name} template")),
    ]


def problems_of_metadata(metadata: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with names, labels, annotations and owners, which have one form everywhere."""
    return _misfits(_Metadata, metadata, "metadata")


def without_nulls(value: Any) -> Any:
    """Return an object without its nulls: the API server takes a field that is null for one that is not there."""
    if isinstance(value, dict):
        return {name: without_nulls(held) for name, held in value.items() if held is not None}
    return [without_nulls(held) for held in value] if isinstance(value, list) else value


def _misfits(form: type[_Form], value: Any, place: str) -> list[str]:
    try:
        form.model_validate(value)
    except ValidationError as error:
        return [_sentence(place, problem) for problem in error.errors(include_url=False)]
    return []


def _sentence(place: str, problem: Mapping[str, Any]) -> str:
    path = [part for part in problem["loc"] if part not in {"str", "int", "float"}]
    field = place + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    if problem["type"] == "missing":
        return f"{field}: Required value"
    if problem["type"] in {"too_short", "string_too_short"}:
        return f"{field}: Required value: must not be empty"
    shown = reprlib.repr(problem["input"])
    return f"{field}: Invalid value: {shown}: {_RULES.get(problem['type'], problem['msg'])}"
