# ruff: noqa: N815 - the fields have the API's own names
"""The form of a Workload of Kueue, with its pods and what completes them: the fields that decisions read."""

from typing import Any

from taskgov.scheduling.field_forms import (
    MAY_BE_MISSING,
    Amounts,
    ConditionForm,
    Count,
    Labels,
    MetadataForm,
    Moment,
    NamespacedForm,
    NodeRequirementForm,
    Number,
    ObjectForm,
    OwnedForm,
    Text,
    TolerationForm,
)


class _Resources(ObjectForm):
    limits: Amounts = None
    requests: Amounts = None


class _Container(ObjectForm):
    name: Text = None
    resources: _Resources | None = None
    restartPolicy: Text = None


class _Term(ObjectForm):
    matchExpressions: list[NodeRequirementForm] | None = None


class _Required(ObjectForm):
    nodeSelectorTerms: list[_Term] | None = None


class _NodeAffinity(ObjectForm):
    requiredDuringSchedulingIgnoredDuringExecution: _Required | None = None


class _Affinity(ObjectForm):
    nodeAffinity: _NodeAffinity | None = None


class _Pod(ObjectForm):
    nodeSelector: Labels = None
    tolerations: list[TolerationForm] | None = None
    affinity: _Affinity | None = None
    overhead: Amounts = None
    resources: _Resources | None = None
    initContainers: list[_Container] | None = None
    containers: list[_Container] | None = None
    runtimeClassName: Text = None


class _Template(ObjectForm):
    spec: _Pod = MAY_BE_MISSING


class _Topology(ObjectForm):
    podSetGroupName: Text = None


class PodSetForm(ObjectForm):
    name: Text = None
    count: Count = 1
    minCount: Count | None = None
    template: _Template = MAY_BE_MISSING
    topologyRequest: _Topology | None = None


class _ClassReference(ObjectForm):
    kind: Text = None
    name: Text = None


class _WorkloadSpec(ObjectForm):
    queueName: Text = None
    priority: Number | None = None
    priorityClassName: Text = None
    priorityClassSource: Text = None
    priorityClassRef: _ClassReference | None = None
    active: bool | None = None
    podSets: list[PodSetForm] = MAY_BE_MISSING


class _Assignment(ObjectForm):
    name: str
    count: Count | None = None
    flavors: Labels = None
    resourceUsage: Amounts = None


class _Admission(ObjectForm):
    clusterQueue: str
    podSetAssignments: list[_Assignment] | None = None


class _Requeue(ObjectForm):
    count: Count | None = None
    requeueAt: Moment | None = None


class _Reclaimable(ObjectForm):
    name: str
    count: Count


class _CheckState(ObjectForm):
    name: str
    state: str
    message: Text = None
    lastTransitionTime: Moment | None = None
    requeueAfterSeconds: Count | None = None
    retryCount: Count | None = None


class _Eviction(ObjectForm):
    reason: str = ""
    count: Count = 0


class _SchedulingStats(ObjectForm):
    evictions: list[_Eviction] | None = None


class _WorkloadStatus(ObjectForm):
    conditions: list[ConditionForm] | None = None
    admissionChecks: list[_CheckState] | None = None
    schedulingStats: _SchedulingStats | None = None
    accumulatedPastExecutionTimeSeconds: Count = 0
    accumulatedPastExexcutionTimeSeconds: Count = 0
    """As v1beta1 spells it."""
    admission: _Admission | None = None
    requeueState: _Requeue | None = None
    reclaimablePods: list[_Reclaimable] | None = None


class WorkloadForm(ObjectForm):
    metadata: OwnedForm
    spec: _WorkloadSpec
    status: _WorkloadStatus | None = None


class _SpecBesidesPods(_WorkloadSpec):
    podSets: Any = MAY_BE_MISSING


class BesidesPodsForm(WorkloadForm):
    """The form of a Workload whose pod sets have been checked (`taskgov.scheduling.pod_forms`)."""

    spec: _SpecBesidesPods


class _Limit(ObjectForm):
    type: str
    max: Amounts = None
    min: Amounts = None
    default: Amounts = None
    defaultRequest: Amounts = None


class _LimitRangeSpec(ObjectForm):
    limits: list[_Limit] | None = None


class LimitRangeForm(ObjectForm):
    metadata: NamespacedForm
    spec: _LimitRangeSpec | None = None


class _Overhead(ObjectForm):
    podFixed: Amounts = None


class RuntimeClassForm(ObjectForm):
    metadata: MetadataForm
    overhead: _Overhead | None = None
