# ruff: noqa: N815 - the fields have the API's own names
"""The form of the objects that decisions read, Kubernetes' and SageMaker's: the fields they use, with their types.

The API server checks its objects against the same schemas, so that an object of another form is damage, or of a version
that this release does not know. `fault_of` finds it before anything reads the object. What no decision uses may have
any form.
"""

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ValidationError

from taskgov.snapshot.field_forms import (
    Amount,
    Amounts,
    ConditionForm,
    Count,
    FlavorTaintForm,
    Labels,
    MetadataForm,
    Moment,
    Name,
    NamespacedForm,
    Number,
    SelectorForm,
    TaintForm,
    Text,
    TolerationForm,
)
from taskgov.snapshot.unreadable import CLUSTER_NODE, INSTANCE_GROUP
from taskgov.snapshot.workload_forms import LimitRangeForm, RuntimeClassForm, WorkloadForm

UNTRIMMED: Final = "taskgov.untrimmed"
"""The field of an object that could not even be trimmed: why."""


class _NodeSpec(BaseModel):
    taints: list[TaintForm] | None = None
    unschedulable: bool | None = None


class _NodeStatus(BaseModel):
    conditions: list[ConditionForm] | None = None
    capacity: Amounts = None
    allocatable: Amounts = None


class _Node(BaseModel):
    metadata: MetadataForm
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class _FlavorSpec(BaseModel):
    nodeLabels: Labels = None
    nodeTaints: list[FlavorTaintForm] | None = None
    tolerations: list[TolerationForm] | None = None


class _Flavor(BaseModel):
    metadata: MetadataForm
    spec: _FlavorSpec | None = None


class _QuotaOfResource(BaseModel):
    name: str
    nominalQuota: Amount
    borrowingLimit: Amount | None = None
    lendingLimit: Amount | None = None


class _QuotaOfFlavor(BaseModel):
    name: str
    resources: list[_QuotaOfResource]


class _Group(BaseModel):
    coveredResources: list[str]
    flavors: list[_QuotaOfFlavor]


class _FairSharing(BaseModel):
    weight: Amount | None = None


class _EffectiveQuotas(BaseModel):
    resourceGroups: list[_Group] | None = None


class _CohortStatus(BaseModel):
    effectiveQuotas: _EffectiveQuotas | None = None


class _CohortSpec(BaseModel):
    parent: Text = None
    parentName: Text = None
    resourceGroups: list[_Group] | None = None
    fairSharing: _FairSharing | None = None


class _Cohort(BaseModel):
    metadata: MetadataForm
    spec: _CohortSpec | None = None
    status: _CohortStatus | None = None


class _Borrow(BaseModel):
    policy: Text = None
    maxPriorityThreshold: Number | None = None


class _Preemption(BaseModel):
    withinClusterQueue: str = ""
    reclaimWithinCohort: str = ""
    borrowWithinCohort: _Borrow | None = None


class _Fungibility(BaseModel):
    whenCanBorrow: Text = None
    whenCanPreempt: Text = None
    preference: Text = None


class _Scope(BaseModel):
    admissionMode: Text = None


class _QueueSpec(_CohortSpec):
    cohort: Text = None
    cohortName: Text = None
    queueingStrategy: Text = None
    namespaceSelector: SelectorForm | None = None
    preemption: _Preemption | None = None
    flavorFungibility: _Fungibility | None = None
    stopPolicy: Text = None
    admissionScope: _Scope | None = None


class _UsedResource(BaseModel):
    name: str
    total: Amount | None = None


class _UsedFlavor(BaseModel):
    name: str
    resources: list[_UsedResource] | None = None


class _Share(BaseModel):
    weightedShare: int | None = None


class _QueueStatus(_CohortStatus):
    flavorsReservation: list[_UsedFlavor] | None = None
    flavorsUsage: list[_UsedFlavor] | None = None
    fairSharing: _Share | None = None
    conditions: list[ConditionForm] | None = None


class _ClusterQueue(BaseModel):
    metadata: MetadataForm
    spec: _QueueSpec | None = None
    status: _QueueStatus | None = None


class _DoorSpec(BaseModel):
    clusterQueue: str
    stopPolicy: Text = None
    fairSharing: _FairSharing | None = None


class _Consumed(BaseModel):
    consumedResources: Amounts = None
    lastUpdate: Moment | None = None


class _DoorSharing(BaseModel):
    admissionFairSharingStatus: _Consumed | None = None


class _DoorStatus(BaseModel):
    fairSharing: _DoorSharing | None = None


class _LocalQueue(BaseModel):
    metadata: NamespacedForm
    spec: _DoorSpec
    status: _DoorStatus | None = None


class _PriorityClass(BaseModel):
    metadata: MetadataForm
    value: Number


DEEPEST: Final = 60
"""Levels of an object; Kubernetes' own forms have less than 20, and a snapshot with more than 200 cannot be read."""


class _Namespace(BaseModel):
    metadata: MetadataForm


class _InstanceStatus(BaseModel):
    Status: Name


class _ClusterNode(BaseModel):
    """A ClusterNodeSummary of ListClusterNodes."""

    InstanceId: Name
    InstanceGroupName: Name
    InstanceType: Name
    InstanceStatus: _InstanceStatus
    PrivateDnsHostname: Text = None


class _TypeDetails(BaseModel):
    InstanceType: Text = None
    ThreadsPerCore: Count | None = None


class _InstanceGroup(_TypeDetails):
    """An instance group of DescribeCluster."""

    InstanceGroupName: Name
    InstanceTypeDetails: list[_TypeDetails] | None = None
    CurrentCount: Count | None = None
    TargetCount: Count | None = None


_FORMS: Final[Mapping[str, type[BaseModel]]] = {
    CLUSTER_NODE: _ClusterNode,
    INSTANCE_GROUP: _InstanceGroup,
    "Namespace": _Namespace,
    "Node": _Node,
    "ResourceFlavor": _Flavor,
    "Cohort": _Cohort,
    "ClusterQueue": _ClusterQueue,
    "LocalQueue": _LocalQueue,
    "WorkloadPriorityClass": _PriorityClass,
    "Workload": WorkloadForm,
    "LimitRange": LimitRangeForm,
    "RuntimeClass": RuntimeClassForm,
}


def fault_of(kind: str, item: object) -> str | None:
    """Return where an object differs from the form of its kind, and how; None when decisions can read it.

    Example:
        >>> fault_of("Node", {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "many"}}})
        "status.allocatable.cpu: Value error, 'many' is not a Kubernetes quantity"

    """
    if isinstance(item, Mapping) and UNTRIMMED in item:
        return str(item[UNTRIMMED])
    if _is_deep(item):
        return f"it is nested deeper than {DEEPEST} levels"
    try:
        _FORMS[kind].model_validate(item, strict=True)
    except ValidationError as error:
        return first_fault(error)
    except (ArithmeticError, RecursionError) as error:
        return type(error).__name__
    return None


def first_fault(error: ValidationError) -> str:
    """Return where a form is first broken, and how, without the value."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"] if isinstance(step, int) or "-" not in str(step))
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def _is_deep(item: object) -> bool:
    level = [item]
    for _ in range(DEEPEST):
        inner = (
            container.values() if isinstance(container, dict) else container
            for container in level
            if isinstance(container, dict | list)
        )
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
        if not level:
            return False
    return True
