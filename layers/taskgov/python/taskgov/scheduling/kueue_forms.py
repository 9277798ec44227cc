# ruff: noqa: N815 - the fields have the API's own names
"""The form of Kueue's objects, as decisions read them: the fields that they use, with their types and bounds.

The API server checks its objects against the same schemas, so that an object of another form is damage, or of a version
that this release does not know. The scheduling model refuses one by name; a snapshot leaves it out and reports it
(`taskgov.snapshot.forms`). What no decision uses may have any form.
"""

from collections.abc import Mapping
from reprlib import Repr
from typing import Any, Final

from pydantic import ValidationError

from taskgov.scheduling.field_forms import (
    Amount,
    Amounts,
    ConditionForm,
    FlavorTaintForm,
    Labels,
    MetadataForm,
    Moment,
    NamespacedForm,
    Number,
    ObjectForm,
    SelectorForm,
    Text,
    TolerationForm,
)
from taskgov.scheduling.workload_forms import LimitRangeForm, RuntimeClassForm, WorkloadForm

DEEPEST: Final = 60
"""Levels of an object; Kubernetes' own forms have less than 20, and a snapshot with more than 200 cannot be read."""


class _FlavorSpec(ObjectForm):
    nodeLabels: Labels = None
    nodeTaints: list[FlavorTaintForm] | None = None
    tolerations: list[TolerationForm] | None = None


class _Flavor(ObjectForm):
    metadata: MetadataForm
    spec: _FlavorSpec | None = None


class _QuotaOfResource(ObjectForm):
    name: str
    nominalQuota: Amount
    borrowingLimit: Amount | None = None
    lendingLimit: Amount | None = None


class _QuotaOfFlavor(ObjectForm):
    name: str
    resources: list[_QuotaOfResource]


class _Group(ObjectForm):
    coveredResources: list[str]
    flavors: list[_QuotaOfFlavor]


class _FairSharing(ObjectForm):
    weight: Amount | None = None


class _EffectiveQuotas(ObjectForm):
    resourceGroups: list[_Group] | None = None


class _CohortStatus(ObjectForm):
    effectiveQuotas: _EffectiveQuotas | None = None


class _CohortSpec(ObjectForm):
    parent: Text = None
    parentName: Text = None
    resourceGroups: list[_Group] | None = None
    fairSharing: _FairSharing | None = None


class _Cohort(ObjectForm):
    metadata: MetadataForm
    spec: _CohortSpec | None = None
    status: _CohortStatus | None = None


class _Borrow(ObjectForm):
    policy: Text = None
    maxPriorityThreshold: Number | None = None


class _Preemption(ObjectForm):
    withinClusterQueue: str = ""
    reclaimWithinCohort: str = ""
    borrowWithinCohort: _Borrow | None = None


class _Fungibility(ObjectForm):
    whenCanBorrow: Text = None
    whenCanPreempt: Text = None
    preference: Text = None


class _Scope(ObjectForm):
    admissionMode: Text = None


class _CheckOfFlavors(ObjectForm):
    name: str
    onFlavors: list[str] | None = None


class _ChecksStrategy(ObjectForm):
    admissionChecks: list[_CheckOfFlavors] | None = None


class _QueueSpec(_CohortSpec):
    cohort: Text = None
    cohortName: Text = None
    queueingStrategy: Text = None
    namespaceSelector: SelectorForm | None = None
    preemption: _Preemption | None = None
    flavorFungibility: _Fungibility | None = None
    stopPolicy: Text = None
    admissionScope: _Scope | None = None
    admissionChecks: list[str] | None = None
    admissionChecksStrategy: _ChecksStrategy | None = None


class _UsedResource(ObjectForm):
    name: str
    total: Amount | None = None


class _UsedFlavor(ObjectForm):
    name: str
    resources: list[_UsedResource] | None = None


class _Share(ObjectForm):
    weightedShare: int | None = None


class _QueueStatus(_CohortStatus):
    flavorsReservation: list[_UsedFlavor] | None = None
    flavorsUsage: list[_UsedFlavor] | None = None
    fairSharing: _Share | None = None
    conditions: list[ConditionForm] | None = None


class _ClusterQueue(ObjectForm):
    metadata: MetadataForm
    spec: _QueueSpec | None = None
    status: _QueueStatus | None = None


class _DoorSpec(ObjectForm):
    clusterQueue: str
    stopPolicy: Text = None
    fairSharing: _FairSharing | None = None


class _Consumed(ObjectForm):
    consumedResources: Amounts = None
    lastUpdate: Moment | None = None


class _DoorSharing(ObjectForm):
    admissionFairSharingStatus: _Consumed | None = None


class _DoorStatus(ObjectForm):
    fairSharing: _DoorSharing | None = None


class _LocalQueue(ObjectForm):
    metadata: NamespacedForm
    spec: _DoorSpec
    status: _DoorStatus | None = None


class _PriorityClass(ObjectForm):
    metadata: MetadataForm
    value: Number


class _Namespace(ObjectForm):
    metadata: MetadataForm


class _CheckStatus(ObjectForm):
    conditions: list[ConditionForm] | None = None


class _Check(ObjectForm):
    metadata: MetadataForm
    status: _CheckStatus | None = None


class _Other(ObjectForm):
    metadata: MetadataForm


FORMS: Final[Mapping[str, type[ObjectForm]]] = {
    "Namespace": _Namespace,
    "ResourceFlavor": _Flavor,
    "Cohort": _Cohort,
    "AdmissionCheck": _Check,
    "ClusterQueue": _ClusterQueue,
    "LocalQueue": _LocalQueue,
    "WorkloadPriorityClass": _PriorityClass,
    "Workload": WorkloadForm,
    "LimitRange": LimitRangeForm,
    "RuntimeClass": RuntimeClassForm,
}
"""The forms by kind; the names of other kinds are all that is read of them."""
_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def checked(obj: object) -> Mapping[str, Any]:
    """Return an object that the readers of this room can read.

    Raises `ValueError` for any other: it names the object, the field, its value, and the rule.
    """
    if not isinstance(obj, Mapping) or not isinstance(obj.get("kind"), str):
        raise ValueError(f"{_SHORT.repr(obj)}: no Kubernetes object, whose kind names its type")  # noqa: TRY004
    kind, metadata = obj["kind"], obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if is_deep(obj):
        raise ValueError(f"{kind} {_SHORT.repr(name)}: it is nested deeper than {DEEPEST} levels")
    if isinstance(metadata, Mapping) and (metadata.get("namespace") is None or metadata["namespace"] == ""):
        metadata = {**metadata, "namespace": "none"}
    try:
        FORMS.get(kind, _Other).check({**obj, "metadata": metadata})
    except ValidationError as error:
        raise ValueError(f"{kind} {_SHORT.repr(name)}: {_fault(error)}") from error
    except (ArithmeticError, RecursionError) as error:
        raise ValueError(f"{kind} {_SHORT.repr(name)}: a number cannot be read ({type(error).__name__})") from error
    return obj


def _fault(error: ValidationError) -> str:
    """Return the field, its value and the rule that it breaks first."""
    first = error.errors(include_url=False)[0]
    place, rule = place_of(first["loc"]), first["msg"].removeprefix("Value error, ")
    if first["type"] == "missing":
        return f"{place} is missing: it is required"
    return f"{place} is {_SHORT.repr(first['input'])}: {rule}"


def place_of(steps: tuple[int | str, ...]) -> str:
    """Return where a form is broken, without the names of alternatives that pydantic puts between."""
    return ".".join(str(step) for step in steps if isinstance(step, int) or "-" not in str(step))


def is_deep(item: object, deepest: int = DEEPEST) -> bool:
    """Return whether an object is nested deeper than any of Kubernetes' own."""
    level = [item] if isinstance(item, _HOLDS_MORE) else []
    for _ in range(deepest):  # all parts of a level at once: a call for each part costs more than the question
        level = [
            part
            for holder in level
            for part in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(part, _HOLDS_MORE)
        ]
        if not level:
            return False
    return bool(level)


_HOLDS_MORE: Final = (dict, list)
