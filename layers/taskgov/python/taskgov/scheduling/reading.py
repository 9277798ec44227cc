"""What do Kubernetes objects say? `kueue.x-k8s.io` v1beta1 and v1beta2 objects as the API server sends them.

Missing fields get the defaults of the CRDs. Called by `kueue_model.KueueModel.apply`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple

from taskgov.quantities import exact, parse
from taskgov.scheduling.check_reading import read_checks
from taskgov.scheduling.config import DEFAULTS
from taskgov.scheduling.demand import layout, pod_requests
from taskgov.scheduling.instants import instant
from taskgov.scheduling.objects import (
    BEST_EFFORT_FIFO,
    BORROWING_OVER_PREEMPTION,
    MAY_STOP_SEARCH,
    NEVER,
    TRY_NEXT_FLAVOR,
    BorrowWithinCohort,
    ClusterQueue,
    Cohort,
    FlavorResource,
    Fungibility,
    LocalQueue,
    PodSet,
    Preemption,
    Quota,
    Requirement,
    ResourceFlavor,
    ResourceGroup,
    Selector,
    Taint,
    Toleration,
    Workload,
    flavor_resource,
)
from taskgov.scheduling.pods import PodRules
from taskgov.scheduling.shapes import KNOWN, shape_of_pods

Object = Mapping[str, Any]

JOB_UID_LABEL: Final = "kueue.x-k8s.io/job-uid"
PRIORITY_CLASS_LABEL: Final = "kueue.x-k8s.io/priority-class"
AS_WRITTEN: Final = PodRules(DEFAULTS)
"""What is known of pods where there is no LimitRange, no RuntimeClass and no setting of the manager."""
GATES_ANNOTATION: Final = "kueue.x-k8s.io/admission-gated-by"
REPLACES_ANNOTATION: Final = "kueue.x-k8s.io/workload-slice-replacement-for"
_V1BETA1_STOPS: Final = {"Borrow": MAY_STOP_SEARCH, "Preempt": MAY_STOP_SEARCH}


def name_of(obj: Object) -> str:
    """Return `metadata.name`; raises `ValueError` when the object has none."""
    name = obj.get("metadata", {}).get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{obj.get('kind', 'object')} without metadata.name")
    return name


def namespace_of(obj: Object) -> str:
    """Return `metadata.namespace`, empty when there is none."""
    return str(obj["metadata"].get("namespace") or "")


def read_flavor(obj: Object) -> ResourceFlavor:
    """Read a ResourceFlavor."""
    spec = obj.get("spec") or {}
    return ResourceFlavor(
        name=name_of(obj),
        labels=dict(spec.get("nodeLabels") or {}),
        taints=tuple(
            Taint(t["key"], t.get("value") or "", t.get("effect") or "") for t in spec.get("nodeTaints") or ()
        ),
        tolerations=_tolerations(spec.get("tolerations")),
    )


def effective_groups(obj: Object) -> Sequence[Object]:
    """Return the resource groups that count for a ClusterQueue or Cohort: the effective ones, where Kueue sets them.

    `status.effectiveQuotas` (Kueue 0.20, alpha) takes the place of the whole spec, also when it is empty. It is
    used where it exists; with the gate DynamicQuotaOrchestration off again, Kueue would pass over it (KEP-12382,
    "Source of Truth for Quotas").
    """
    effective = (obj.get("status") or {}).get("effectiveQuotas")
    holder = effective if effective is not None else obj.get("spec") or {}
    groups: Sequence[Object] = holder.get("resourceGroups") or ()
    return groups


def orchestrator_of(obj: Object) -> str:
    """Return who sets the effective quotas of a ClusterQueue or Cohort, as `kind name`; empty where nobody does."""
    effective = (obj.get("status") or {}).get("effectiveQuotas")
    if effective is None:
        return ""
    reference = effective.get("orchestratorRef") or {}
    return f"{reference.get('kind') or 'somebody'} {reference.get('name') or ''}".strip()


def read_cohort(obj: Object) -> Cohort:
    """Read a Cohort; v1beta1 names its parent `parent`, v1beta2 `parentName`."""
    spec = obj.get("spec") or {}
    return Cohort(
        name=name_of(obj),
        parent=spec.get("parentName") or spec.get("parent") or None,
        quotas=_quotas(effective_groups(obj)),
        weight=_weight(spec),
    )


def read_cluster_queue(obj: Object) -> ClusterQueue:
    """Read a ClusterQueue; v1beta1 names its cohort `cohort`, v1beta2 `cohortName`."""
    spec = obj.get("spec") or {}
    groups = effective_groups(obj)
    return ClusterQueue(
        name=name_of(obj),
        cohort=spec.get("cohortName") or spec.get("cohort") or None,
        groups=tuple(
            ResourceGroup(tuple(group["coveredResources"]), tuple(f["name"] for f in group["flavors"]))
            for group in groups
        ),
        quotas=_quotas(groups),
        strategy=spec.get("queueingStrategy") or BEST_EFFORT_FIFO,
        namespace_selector=_selector(spec.get("namespaceSelector")),
        preemption=_preemption(spec.get("preemption") or {}),
        fungibility=_fungibility(spec.get("flavorFungibility") or {}),
        weight=_weight(spec),
        stop_policy=spec.get("stopPolicy") or "None",
        fair_admission=(spec.get("admissionScope") or {}).get("admissionMode") == "UsageBasedAdmissionFairSharing",
        checks=read_checks(spec),
    )


def read_local_queue(obj: Object) -> LocalQueue:
    """Read a LocalQueue."""
    spec = obj.get("spec") or {}
    weight = (spec.get("fairSharing") or {}).get("weight")
    return LocalQueue(
        namespace=namespace_of(obj),
        name=name_of(obj),
        cluster_queue=str(spec.get("clusterQueue")),
        stop_policy=spec.get("stopPolicy") or "None",
        weight=1.0 if weight is None else float(exact(weight)),
    )


def read_workload(
    obj: Object, priority_of_class: Mapping[str, int], rules: PodRules = AS_WRITTEN, shape: bytes | None = None
) -> Workload:
    """Read a Workload's spec. Without `spec.priority` its WorkloadPriorityClass gives the value, else it is 0.

    `rules` are what else there is to know of its pods, without any they are taken as written; `shape` is theirs.
    """
    spec = obj.get("spec") or {}
    metadata = obj["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    workload_class = priority_class_of(obj)
    priority = priority_of_class.get(workload_class or "", spec.get("priority"))
    namespace = namespace_of(obj)
    pods = _pods(spec.get("podSets") or (), namespace, rules, shape or shape_of_pods(obj))
    status = obj.get("status") or {}
    return Workload(  # by position: to give all of them by name takes longer than to read them
        namespace,
        name_of(obj),
        spec.get("queueName") or "",
        pods.sets,
        priority or 0,
        instant(metadata.get("creationTimestamp")),
        metadata.get("uid") or "",
        labels.get(JOB_UID_LABEL) or "",
        workload_class,
        spec.get("active") is not False,
        tuple((r["name"], r["count"]) for r in status.get("reclaimablePods") or () if r["count"]),
        pods.completion,
        pods.refusal,
        annotations.get(GATES_ANNOTATION) or "",
        annotations.get(REPLACES_ANNOTATION) or "",
        obj,
    )


class _Pods(NamedTuple):
    """What the pod sets of a workload say; the rest as in `taskgov.scheduling.pods.Reviewed`."""

    sets: tuple[PodSet, ...]
    completion: str
    refusal: str


def _pods(pod_sets: Sequence[Object], namespace: str, rules: PodRules, shape: bytes | None) -> _Pods:
    """Read pod sets; equal ones share what was read, as long as the rules are the same."""
    key = None if shape is None else rules.key_of(shape, namespace)
    found: _Pods | None = None if key is None else rules.known.get(key)
    if found is None:
        templates = [(pod_set.get("template") or {}).get("spec") or {} for pod_set in pod_sets]
        review = rules.review(templates, namespace)
        read = (_pod_set(pod_set, pod, rules) for pod_set, pod in zip(pod_sets, review.pods, strict=True))
        found = _Pods(tuple(read), review.completion, review.refusal)
        if key is not None and len(rules.known) < KNOWN:
            rules.known[key] = found
    return found


def priority_class_of(obj: Object) -> str | None:
    """Return the WorkloadPriorityClass of a Workload; None where it has none."""
    spec = obj.get("spec") or {}
    reference: Object = spec.get("priorityClassRef") or {}
    named: str | None = (obj["metadata"].get("labels") or {}).get(PRIORITY_CLASS_LABEL)
    if reference.get("kind") == "WorkloadPriorityClass":
        named = reference.get("name")
    elif (source := spec.get("priorityClassSource")) and str(source).endswith("workloadpriorityclass"):
        named = spec.get("priorityClassName")
    return named


def _pod_set(obj: Object, pod: Object, rules: PodRules) -> PodSet:
    requests = pod_requests(pod)
    counted = rules.counted(requests)
    return PodSet(
        name=obj.get("name") or "main",
        count=obj.get("count", 1),
        requests=tuple(sorted(counted.items())),
        min_count=obj.get("minCount"),
        node_selector=tuple(sorted((pod.get("nodeSelector") or {}).items())),
        affinity=_affinity(pod),
        tolerations=_tolerations(pod.get("tolerations")),
        group=(obj.get("topologyRequest") or {}).get("podSetGroupName"),
        layout=layout(pod, recounted=counted is not requests),
    )


def _affinity(pod: Object) -> tuple[tuple[Requirement, ...], ...]:
    node = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return tuple(_requirements(term.get("matchExpressions")) for term in required.get("nodeSelectorTerms") or ())


def _requirements(expressions: Iterable[Object] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(e["key"], e["operator"], tuple(e.get("values") or ())) for e in expressions or ())


def _tolerations(items: Iterable[Object] | None) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(t.get("key") or "", t.get("operator") or "Equal", t.get("value") or "", t.get("effect") or "")
        for t in items or ()
    )


def _selector(selector: Object | None) -> Selector | None:
    if selector is None:
        return None
    labels = tuple(Requirement(k, "In", (v,)) for k, v in sorted((selector.get("matchLabels") or {}).items()))
    return Selector(labels + _requirements(selector.get("matchExpressions")))


def _weight(spec: Object) -> float:
    weight = (spec.get("fairSharing") or {}).get("weight")
    return 1.0 if weight is None else float(Decimal(parse("cpu", str(weight))) / 1000)


def _quotas(groups: Iterable[Object]) -> dict[FlavorResource, Quota]:
    return {
        flavor_resource(flavor["name"], resource["name"]): _quota(
            resource["name"], resource["nominalQuota"], resource.get("borrowingLimit"), resource.get("lendingLimit")
        )
        for group in groups
        for flavor in group["flavors"]
        for resource in flavor["resources"]
    }


@lru_cache(maxsize=KNOWN)
def _quota(resource: str, nominal: str | float, *limits: str | float | None) -> Quota:
    """Read a quota with its borrowing and lending limit; many queues have the same one."""
    return Quota(parse(resource, nominal), *(None if limit is None else parse(resource, limit) for limit in limits))


def _preemption(spec: Object) -> Preemption:
    borrow = spec.get("borrowWithinCohort")
    return Preemption(
        within_cluster_queue=spec.get("withinClusterQueue", NEVER),
        reclaim_within_cohort=spec.get("reclaimWithinCohort", NEVER),
        borrow_within_cohort=borrow
        and BorrowWithinCohort(borrow.get("policy") or NEVER, borrow.get("maxPriorityThreshold")),
    )


def _fungibility(spec: Object) -> Fungibility:
    borrow = spec.get("whenCanBorrow") or MAY_STOP_SEARCH
    preempt = spec.get("whenCanPreempt") or TRY_NEXT_FLAVOR
    return Fungibility(
        when_can_borrow=_V1BETA1_STOPS.get(borrow, borrow),
        when_can_preempt=_V1BETA1_STOPS.get(preempt, preempt),
        preference=spec.get("preference") or BORROWING_OVER_PREEMPTION,
    )
