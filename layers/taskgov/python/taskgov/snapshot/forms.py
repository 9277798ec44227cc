# ruff: noqa: N815 - the fields have the API's own names
"""The form of the objects that decisions read, Kubernetes' and SageMaker's: the fields they use, with their types.

The API server checks its objects against the same schemas, so that an object of another form is damage, or of a version
that this release does not know. `fault_of` finds it before anything reads the object. What no decision uses may have
any form.
"""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from taskgov.quantities import CPU, parse
from taskgov.scheduling.instants import instant, moment
from taskgov.snapshot.unreadable import CLUSTER_NODE, INSTANCE_GROUP

UNTRIMMED: Final = "taskgov.untrimmed"
"""The field of an object that could not even be trimmed: why."""


def _amount(quantity: str | float) -> str | float:
    if parse(CPU, quantity) < 0:
        raise ValueError("an amount is not below 0")
    return quantity


def _moment(text: str) -> str:
    moment(instant(text))
    return text


Amount = Annotated[str | int | float, AfterValidator(_amount)]
Amounts = dict[str, Amount] | None
Labels = dict[str, str] | None
Moment = Annotated[str, AfterValidator(_moment)]
Name = Annotated[str, Field(min_length=1)]
Text = str | None
Count = Annotated[int, Field(ge=0, lt=2**31)]
"""Not below 0, and as long as Kubernetes' int32."""
Number = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class _Metadata(BaseModel):
    name: Name
    namespace: Text = None
    uid: Text = None
    labels: Labels = None
    creationTimestamp: Moment | None = None
    deletionTimestamp: Moment | None = None


class _Namespaced(_Metadata):
    namespace: Name


class _Condition(BaseModel):
    type: str
    status: str
    reason: Text = None
    message: Text = None
    lastTransitionTime: Moment | None = None


class _Taint(BaseModel):
    key: str
    value: str = ""
    effect: str


class _FlavorTaint(BaseModel):
    key: str
    value: Text = None
    effect: Text = None


class _Toleration(BaseModel):
    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None


class _Requirement(BaseModel):
    key: str
    operator: str
    values: list[str] | None = None


class _Selector(BaseModel):
    matchLabels: Labels = None
    matchExpressions: list[_Requirement] | None = None


class _NodeSpec(BaseModel):
    taints: list[_Taint] | None = None
    unschedulable: bool | None = None


class _NodeStatus(BaseModel):
    conditions: list[_Condition] | None = None
    capacity: Amounts = None
    allocatable: Amounts = None


class _Node(BaseModel):
    metadata: _Metadata
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class _FlavorSpec(BaseModel):
    nodeLabels: Labels = None
    nodeTaints: list[_FlavorTaint] | None = None
    tolerations: list[_Toleration] | None = None


class _Flavor(BaseModel):
    metadata: _Metadata
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


class _CohortSpec(BaseModel):
    parent: Text = None
    parentName: Text = None
    resourceGroups: list[_Group] | None = None
    fairSharing: _FairSharing | None = None


class _Cohort(BaseModel):
    metadata: _Metadata
    spec: _CohortSpec | None = None


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


class _QueueSpec(_CohortSpec):
    cohort: Text = None
    cohortName: Text = None
    queueingStrategy: Text = None
    namespaceSelector: _Selector | None = None
    preemption: _Preemption | None = None
    flavorFungibility: _Fungibility | None = None
    stopPolicy: Text = None


class _UsedResource(BaseModel):
    name: str
    total: Amount | None = None


class _UsedFlavor(BaseModel):
    name: str
    resources: list[_UsedResource] | None = None


class _Share(BaseModel):
    weightedShare: int | None = None


class _QueueStatus(BaseModel):
    flavorsReservation: list[_UsedFlavor] | None = None
    flavorsUsage: list[_UsedFlavor] | None = None
    fairSharing: _Share | None = None
    conditions: list[_Condition] | None = None


class _ClusterQueue(BaseModel):
    metadata: _Metadata
    spec: _QueueSpec | None = None
    status: _QueueStatus | None = None


class _DoorSpec(BaseModel):
    clusterQueue: str
    stopPolicy: Text = None


class _LocalQueue(BaseModel):
    metadata: _Namespaced
    spec: _DoorSpec


class _PriorityClass(BaseModel):
    metadata: _Metadata
    value: Number


class _Resources(BaseModel):
    limits: Amounts = None
    requests: Amounts = None


class _Container(BaseModel):
    name: Text = None
    resources: _Resources | None = None
    restartPolicy: Text = None


class _Term(BaseModel):
    matchExpressions: list[_Requirement] | None = None


class _Required(BaseModel):
    nodeSelectorTerms: list[_Term] | None = None


class _NodeAffinity(BaseModel):
    requiredDuringSchedulingIgnoredDuringExecution: _Required | None = None


class _Affinity(BaseModel):
    nodeAffinity: _NodeAffinity | None = None


class _Pod(BaseModel):
    nodeSelector: Labels = None
    tolerations: list[_Toleration] | None = None
    affinity: _Affinity | None = None
    overhead: Amounts = None
    resources: _Resources | None = None
    initContainers: list[_Container] | None = None
    containers: list[_Container] | None = None


class _Template(BaseModel):
    spec: _Pod = _Pod()


class _Topology(BaseModel):
    podSetGroupName: Text = None


class _PodSet(BaseModel):
    name: Text = None
    count: Count = 1
    minCount: Count | None = None
    template: _Template = _Template()
    topologyRequest: _Topology | None = None


class _ClassReference(BaseModel):
    kind: Text = None
    name: Text = None


class _WorkloadSpec(BaseModel):
    queueName: Text = None
    priority: Number | None = None
    priorityClassName: Text = None
    priorityClassSource: Text = None
    priorityClassRef: _ClassReference | None = None
    active: bool | None = None
    podSets: list[_PodSet] = []


class _Assignment(BaseModel):
    name: str
    count: Count | None = None
    flavors: Labels = None
    resourceUsage: Amounts = None


class _Admission(BaseModel):
    clusterQueue: str
    podSetAssignments: list[_Assignment] | None = None


class _Requeue(BaseModel):
    count: Count | None = None
    requeueAt: Moment | None = None


class _Reclaimable(BaseModel):
    name: str
    count: Count


class _WorkloadStatus(BaseModel):
    conditions: list[_Condition] | None = None
    admission: _Admission | None = None
    requeueState: _Requeue | None = None
    reclaimablePods: list[_Reclaimable] | None = None


class _Workload(BaseModel):
    metadata: _Namespaced
    spec: _WorkloadSpec
    status: _WorkloadStatus | None = None


DEEPEST: Final = 60
"""Levels of an object; Kubernetes' own forms have less than 20, and a snapshot with more than 200 cannot be read."""


class _Namespace(BaseModel):
    metadata: _Metadata


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
    "Workload": _Workload,
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
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
        if not level:
            return False
    return True
