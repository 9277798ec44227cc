# ruff: noqa: N815 - the fields have the API's own names
"""The form of a Workload of Kueue, with its pods and what completes them: the fields that decisions read."""

from pydantic import BaseModel

from taskgov.scheduling.field_forms import (
    Amounts,
    ConditionForm,
    Count,
    Labels,
    MetadataForm,
    Moment,
    NamespacedForm,
    NodeRequirementForm,
    Number,
    OwnedForm,
    Text,
    TolerationForm,
)


class _Resources(BaseModel):
    limits: Amounts = None
    requests: Amounts = None


class _Container(BaseModel):
    name: Text = None
    resources: _Resources | None = None
    restartPolicy: Text = None


class _Term(BaseModel):
    matchExpressions: list[NodeRequirementForm] | None = None


class _Required(BaseModel):
    nodeSelectorTerms: list[_Term] | None = None


class _NodeAffinity(BaseModel):
    requiredDuringSchedulingIgnoredDuringExecution: _Required | None = None


class _Affinity(BaseModel):
    nodeAffinity: _NodeAffinity | None = None


class _Pod(BaseModel):
    nodeSelector: Labels = None
    tolerations: list[TolerationForm] | None = None
    affinity: _Affinity | None = None
    overhead: Amounts = None
    resources: _Resources | None = None
    initContainers: list[_Container] | None = None
    containers: list[_Container] | None = None
    runtimeClassName: Text = None


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


class _CheckState(BaseModel):
    name: str
    state: str
    message: Text = None
    lastTransitionTime: Moment | None = None
    requeueAfterSeconds: Count | None = None
    retryCount: Count | None = None


class _Eviction(BaseModel):
    reason: str = ""
    count: Count = 0


class _SchedulingStats(BaseModel):
    evictions: list[_Eviction] | None = None


class _WorkloadStatus(BaseModel):
    conditions: list[ConditionForm] | None = None
    admissionChecks: list[_CheckState] | None = None
    schedulingStats: _SchedulingStats | None = None
    accumulatedPastExecutionTimeSeconds: Count = 0
    accumulatedPastExexcutionTimeSeconds: Count = 0
    """As v1beta1 spells it."""
    admission: _Admission | None = None
    requeueState: _Requeue | None = None
    reclaimablePods: list[_Reclaimable] | None = None


class WorkloadForm(BaseModel):
    metadata: OwnedForm
    spec: _WorkloadSpec
    status: _WorkloadStatus | None = None


class _Limit(BaseModel):
    type: str
    max: Amounts = None
    min: Amounts = None
    default: Amounts = None
    defaultRequest: Amounts = None


class _LimitRangeSpec(BaseModel):
    limits: list[_Limit] | None = None


class LimitRangeForm(BaseModel):
    metadata: NamespacedForm
    spec: _LimitRangeSpec | None = None


class _Overhead(BaseModel):
    podFixed: Amounts = None


class RuntimeClassForm(BaseModel):
    metadata: MetadataForm
    overhead: _Overhead | None = None
