"""What do usage, metrics and notices need of a Workload? A small record: no pod template, nothing of the job but names.

`publish_usage` keeps these records from one minute to the next (`taskgov.usage.workload_memory`). Code that has the
Workloads themselves gets the same records from `facts_in`, so that both see the same.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import NamedTuple

from taskgov.hyperpod import names
from taskgov.kueue.named import owner_of
from taskgov.quantities import ResourceName
from taskgov.scheduling.instants import Instant, instant
from taskgov.scheduling.reading import namespace_of, priority_class_of
from taskgov.scheduling.shapes import KNOWN, shape_of_pods
from taskgov.scheduling.status_reading import true_conditions
from taskgov.snapshot.derived import once
from taskgov.snapshot.model import KubernetesObject, KueueObjects
from taskgov.snapshot.readable import pod_shapes
from taskgov.usage.pods_asked import PodsAsked, accelerators_of, asked_by, selected_type

_PAST_SECONDS = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
"""The field as v1beta2 spells it, and as v1beta1 does."""


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


class WorkloadFacts(NamedTuple):
    """One Workload: a named tuple, because tens of thousands of frozen dataclasses would take twice the time."""

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
        return accelerators_of(self.asks)


@lru_cache(maxsize=KNOWN)
def _team_of(namespace: str) -> str:
    return names.team_of_namespace(namespace) or namespace


@dataclass(frozen=True, slots=True)
class Told:
    """A state of a workload between two measurements; `is_last`: it was deleted in this state."""

    facts: WorkloadFacts
    is_last: bool = False


class Backlog(NamedTuple):
    """Workloads of one LocalQueue that wait for quota and request the same."""

    namespace: str
    queue: str
    asks: tuple[PodsAsked, ...]
    workloads: int
    oldest_since: Instant

    @property
    def team(self) -> str:
        """The team of its namespace, as `WorkloadFacts.team`."""
        return _team_of(self.namespace)


@dataclass(frozen=True, slots=True)
class FollowedKueue(KueueObjects):
    """Kueue's objects of a measurement that followed the workloads: facts about them instead of the objects."""

    facts: tuple[WorkloadFacts, ...] = ()
    backlog: tuple[Backlog, ...] | None = None
    """What waits, if the facts are of preempted workloads only; None if they are of all."""
    told: tuple[Told, ...] = ()
    """The changes of workloads since the previous measurement, in order; nothing if all were listed."""


@once
def facts_in(kueue: KueueObjects) -> tuple[WorkloadFacts, ...]:
    """Return what is known of all workloads of a measurement; of the preempted ones where the backlog is beside."""
    return kueue.facts if isinstance(kueue, FollowedKueue) else facts_of_all(kueue.workloads)


def with_facts_alone(kueue: KueueObjects, facts: tuple[WorkloadFacts, ...]) -> FollowedKueue:
    """Return the objects with these facts instead of workloads."""
    others = {field.name: getattr(kueue, field.name) for field in fields(KueueObjects)}
    return FollowedKueue(**{**others, "workloads": ()}, facts=facts)


def with_backlog_alone(kueue: KueueObjects) -> FollowedKueue:
    """Return the objects with facts of preempted workloads and the backlog instead of workloads.

    Tables of use for people need no more, and most workloads are then read in part.
    """
    if isinstance(kueue, FollowedKueue):
        return kueue
    facts, waiting = [], []
    for item, pods in zip(kueue.workloads, pod_shapes(kueue), strict=True):
        spec, true = item.get("spec") or {}, true_conditions(item.get("status") or {})
        if "Preempted" in true:
            facts.append(_facts(item, true, pods))
        if _is_waiting(spec, true):
            asks = asked_by(spec.get("podSets") or (), pods)
            waiting.append(((namespace_of(item), spec.get("queueName") or "", asks), _waiting_since(item, true)))
    return replace(with_facts_alone(kueue, tuple(facts)), backlog=_backlog(waiting))


@once
def backlog_in(kueue: KueueObjects) -> tuple[Backlog, ...]:
    """Return what waits for quota."""
    if isinstance(kueue, FollowedKueue) and kueue.backlog is not None:
        return kueue.backlog
    return _backlog(
        ((facts.namespace, facts.queue, facts.asks), facts.waiting_since)
        for facts in facts_in(kueue)
        if facts.waiting_since is not None
    )


def _backlog(waiting: Iterable[tuple[tuple[str, str, tuple[PodsAsked, ...]], Instant]]) -> tuple[Backlog, ...]:
    alike: dict[tuple[str, str, tuple[PodsAsked, ...]], list[Instant]] = {}
    for key, since in waiting:
        alike.setdefault(key, []).append(since)
    return tuple(Backlog(*key, len(moments), min(moments)) for key, moments in alike.items())


def waiting_for(kueue: KueueObjects) -> frozenset[tuple[str, str]]:
    """Return for which instance type work of which team waits; "" where any type would do.

    A run needs nothing else of most workloads: they are not read for this.
    """
    if isinstance(kueue, FollowedKueue):
        return frozenset((some.team, pods.instance_type or "") for some in backlog_in(kueue) for pods in some.asks)
    return frozenset(
        (_team_of(namespace_of(item)), selected_type(pod_set) or "")
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


def _facts(item: KubernetesObject, true: Mapping[str, KubernetesObject], pods: bytes | None = None) -> WorkloadFacts:
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
        waiting_since=_waiting_since(item, true) if waits else None,
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
        asks=asked_by(spec.get("podSets") or (), pods or shape_of_pods(item)) if waits or preempted else (),
    )


def _waiting_since(item: KubernetesObject, true: Mapping[str, KubernetesObject]) -> Instant:
    evicted = true.get("Evicted")
    return _since(evicted) if evicted else instant(item["metadata"].get("creationTimestamp"))


def _since(condition: KubernetesObject) -> Instant:
    return instant(condition.get("lastTransitionTime"))


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
