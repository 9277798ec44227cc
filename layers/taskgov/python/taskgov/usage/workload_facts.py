"""What do usage, metrics and notices need of a Workload? A small record: no pod template, nothing of the job but names.

`publish_usage` keeps these records from one minute to the next (`taskgov.usage.workload_memory`). Code that has the
Workloads themselves gets the same records from `facts_in`, so that both see the same.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

from taskgov.hyperpod import names
from taskgov.kueue.named import owner_of
from taskgov.quantities import ResourceName, is_accelerator
from taskgov.scheduling.demand import pod_requests
from taskgov.scheduling.instants import Instant, instant
from taskgov.scheduling.reading import namespace_of, priority_class_of
from taskgov.scheduling.shapes import KNOWN, shape_of, value_of
from taskgov.scheduling.status_reading import true_conditions
from taskgov.snapshot.derived import once
from taskgov.snapshot.model import KubernetesObject, KueueObjects

_PAST_SECONDS = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
"""The field as v1beta2 spells it, and as v1beta1 does."""


@dataclass(frozen=True, slots=True)
class PodsAsked:
    """Equal pods of one workload."""

    instance_type: str | None
    """The one that their node selector names."""
    count: int
    requests: tuple[tuple[ResourceName, int], ...]
    """What one of them requests, in base units."""


@dataclass(frozen=True, slots=True)
class Preempted:
    """The condition `Preempted` of a workload, while it is true."""

    at: Instant
    reason: str
    message: str
    ran_since: Instant | None
    """When the workload was admitted, as long as it has not released its quota."""


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """What a Workload says of its attempts, for the record of work (`taskgov.usage.attempt_facts` reads it)."""

    owner: str | None
    max_seconds: int | None
    """`spec.maximumExecutionTimeSeconds`."""
    created: Instant
    latest: Instant
    """When one of its conditions changed last: a state with an earlier moment is older."""
    held: tuple[tuple[str, ResourceName, int], ...]
    """Instance type, resource, amount: what it is admitted with, else what it requests."""
    admitted: Instant | None
    """Since when it is admitted. A finished one still says so."""
    released: Instant | None
    """Since when it is not any more."""
    evicted: Instant | None
    """Since when it is evicted, until it is admitted again."""
    evicted_why: str
    finished: Instant | None
    finished_why: str
    evictions: tuple[tuple[str, int], ...]
    """Reason and how often, as Kueue counts them."""
    past_seconds: int | None
    """How long its earlier admissions took together."""


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """One Workload."""

    namespace: str
    name: str
    uid: str
    queue: str
    """Its LocalQueue."""
    job: str
    """The name of its owner, or its own when nobody owns it."""
    kind: str
    """The kind of its owner; `Workload` when nobody owns it."""
    priority_class: str | None
    priority: int
    waiting_since: Instant | None = None
    """Since when it waits for quota: since its eviction, else its creation. None when it does not wait."""
    evicted: bool = False
    preempted: Preempted | None = None
    past_seconds: float | None = None
    """How long it ran before its only eviction, while it is preempted; None when that is unknown."""
    asks: tuple[PodsAsked, ...] = ()
    """Nothing for a workload that neither waits nor is preempted: it is not needed."""
    attempt: AttemptFacts | None = None
    """Only each minute's measurement needs it."""

    @property
    def team(self) -> str:
        """The team of its namespace; a namespace that HyperPod did not make is a team of its own name."""
        return _team_of(self.namespace)

    @property
    def accelerators(self) -> int:
        """How many it requests; a partition of one counts as one."""
        return sum(pods.count * n for pods in self.asks for name, n in pods.requests if is_accelerator(name))

    @property
    def wanted_types(self) -> frozenset[str]:
        """The instance types that its pods name; "" for pods that name none."""
        return frozenset(pods.instance_type or "" for pods in self.asks)


def _team_of(namespace: str) -> str:
    return names.team_of_namespace(namespace) or namespace


@dataclass(frozen=True, slots=True)
class Told:
    """A state of a workload between two measurements; `is_last`: it was deleted in this state."""

    facts: WorkloadFacts
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class FollowedKueue(KueueObjects):
    """Kueue's objects of a measurement that followed the workloads: facts about them instead of the objects."""

    facts: tuple[WorkloadFacts, ...] = ()
    told: tuple[Told, ...] = ()
    """The changes of workloads since the previous measurement, in order; nothing if all were listed."""


@once
def facts_in(kueue: KueueObjects) -> tuple[WorkloadFacts, ...]:
    """Return what is known of all workloads of a measurement."""
    return kueue.facts if isinstance(kueue, FollowedKueue) else facts_of_all(kueue.workloads)


def with_facts_alone(kueue: KueueObjects, facts: tuple[WorkloadFacts, ...]) -> FollowedKueue:
    """Return the objects with these facts instead of workloads."""
    others = {field.name: getattr(kueue, field.name) for field in fields(KueueObjects)}
    return FollowedKueue(**{**others, "workloads": ()}, facts=facts)


def facts_of_affected(kueue: KueueObjects) -> tuple[WorkloadFacts, ...]:
    """Return what is known of the workloads that wait or were preempted; the others are not read."""
    if isinstance(kueue, FollowedKueue):
        return tuple(facts for facts in kueue.facts if facts.waiting_since is not None or facts.preempted)
    read = ((item, true_conditions(item.get("status") or {})) for item in kueue.workloads)
    return tuple(
        _facts(item, true) for item, true in read if "Preempted" in true or _is_waiting(item.get("spec") or {}, true)
    )


def waiting_for(kueue: KueueObjects) -> frozenset[tuple[str, str]]:
    """Return for which instance type work of which team waits; "" where any type would do.

    A run needs nothing else of most workloads: they are not read for this.
    """
    if isinstance(kueue, FollowedKueue):
        waiting = (facts for facts in kueue.facts if facts.waiting_since is not None)
        return frozenset((facts.team, wanted) for facts in waiting for wanted in facts.wanted_types)
    return frozenset(
        (_team_of(namespace_of(item)), _selected_type(pod_set) or "")
        for item in kueue.workloads
        if _waits(item)
        for pod_set in (item.get("spec") or {}).get("podSets") or ()
    )


def _waits(item: KubernetesObject) -> bool:
    return _is_waiting(item.get("spec") or {}, true_conditions(item.get("status") or {}))


def _is_waiting(spec: KubernetesObject, true: Container[str]) -> bool:
    """Return whether a Workload has no quota reservation, and is neither finished nor deactivated."""
    return spec.get("active") is not False and "QuotaReserved" not in true and "Finished" not in true


def facts_of_all(workloads: Iterable[KubernetesObject]) -> tuple[WorkloadFacts, ...]:
    """Return what is known of these Workloads."""
    return tuple(map(facts_of, workloads))


def facts_of(item: KubernetesObject) -> WorkloadFacts:
    """Read a Workload that has the form of its kind (`taskgov.snapshot.forms`)."""
    return _facts(item, true_conditions(item.get("status") or {}))


def _facts(item: KubernetesObject, true: Mapping[str, KubernetesObject]) -> WorkloadFacts:
    metadata, status, spec = item["metadata"], item.get("status") or {}, item.get("spec") or {}
    waits = _is_waiting(spec, true)
    evicted, preempted, admitted = true.get("Evicted"), true.get("Preempted"), true.get("Admitted")
    owner = owner_of(item)
    return WorkloadFacts(
        namespace=namespace_of(item),
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        queue=spec.get("queueName") or "",
        job=owner["name"] if owner else metadata["name"],
        kind=owner.get("kind", "Workload") if owner else "Workload",
        priority_class=priority_class_of(item),
        priority=spec.get("priority") or 0,
        waiting_since=(_since(evicted) if evicted else instant(metadata.get("creationTimestamp"))) if waits else None,
        evicted=evicted is not None,
        preempted=Preempted(
            at=_since(preempted),
            reason=preempted.get("reason") or "",
            message=preempted.get("message") or "",
            ran_since=_since(admitted) if admitted else None,
        )
        if preempted
        else None,
        past_seconds=_past_seconds(status) if preempted else None,
        asks=asked_by(spec.get("podSets") or ()) if waits or preempted else (),
    )


def _since(condition: KubernetesObject) -> Instant:
    return instant(condition.get("lastTransitionTime"))


def asked_by(pod_sets: Sequence[KubernetesObject]) -> tuple[PodsAsked, ...]:
    """Read pod sets; those of one shape are read once."""
    shape = shape_of(pod_sets)
    return tuple(map(_asked, pod_sets)) if shape is None else _asked_by_shape(shape)


@lru_cache(maxsize=KNOWN)
def _asked_by_shape(shape: bytes) -> tuple[PodsAsked, ...]:
    return tuple(map(_asked, value_of(shape)))


def _asked(pod_set: KubernetesObject) -> PodsAsked:
    """Read a pod set as it is written: what the cluster adds to its pods or excludes of them is not known here."""
    pod = (pod_set.get("template") or {}).get("spec") or {}
    return PodsAsked(_selected_type(pod_set), pod_set.get("count", 1), tuple(sorted(pod_requests(pod).items())))


def _selected_type(pod_set: KubernetesObject) -> str | None:
    pod = (pod_set.get("template") or {}).get("spec") or {}
    selected: str | None = (pod.get("nodeSelector") or {}).get(names.INSTANCE_TYPE_LABEL)
    return selected


def _past_seconds(status: KubernetesObject) -> float | None:
    """Return how long all admissions but the present one took together, if only one was ended."""
    evictions = (status.get("schedulingStats") or {}).get("evictions") or ()
    if sum(int(eviction.get("count", 0)) for eviction in evictions) != 1:
        return None
    past = past_seconds(status)
    return None if past is None else float(past)


def past_seconds(status: KubernetesObject) -> int | None:
    """Return how long all admissions but the present one took together; None where Kueue does not say."""
    return next((int(status[name]) for name in _PAST_SECONDS if name in status), None)
