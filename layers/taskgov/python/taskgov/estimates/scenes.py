"""Build the queue that futures start from, from a snapshot: its running and waiting jobs, and possible arrivals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from taskgov.estimates.batches import sized
from taskgov.estimates.held_back import held_back
from taskgov.estimates.queue_now import Present, Scene
from taskgov.estimates.requests import Ran, Request
from taskgov.futures import Held, Setting
from taskgov.hyperpod.names import NAMESPACE_NAME_LABEL, local_queue_of, namespace_of
from taskgov.kueue.named import named
from taskgov.quantities import is_accelerator
from taskgov.scheduling import instant
from taskgov.scheduling.instants import SECOND
from taskgov.scheduling.objects import Admission, PodSet, Workload
from taskgov.scheduling.reading import read_cluster_queue, read_cohort, read_flavor, read_local_queue, read_workload
from taskgov.scheduling.status_reading import read_admission, read_conditions
from taskgov.snapshot.manager import config_of
from taskgov.usage.amounts import accelerators
from taskgov.usage.workload_facts import FollowedKueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta

    from taskgov.estimates.arrivals import Coming
    from taskgov.scheduling.instants import Instant
    from taskgov.snapshot.model import KubernetesObject, KueueObjects, Snapshot
    from taskgov.usage.workload_facts import WorkloadFacts


@dataclass(frozen=True, slots=True)
class Background:
    """What the record of work adds to a workload's object: its owner, how long it ran before, and its batch."""

    owner: str = ""
    ran: float = 0.0
    """Its longest run so far, in seconds."""
    size: int = 0
    """The size class of its batch (`taskgov.estimates.batches`)."""
    batch: int = 0
    """The number of its batch."""


CHECKS_LEFT_OUT: Final = "admission checks are not simulated: a job starts when its quota is reserved"
_UNKNOWN: Final = Background()


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue of a snapshot: the scene of its futures, and key and UID of each job, in the scene's order."""

    scene: Scene
    keys: tuple[str, ...]
    uids: tuple[str, ...]
    runs: tuple[Ran, ...]
    """The running jobs, with the time that they have run so far."""
    blocked: tuple[str, ...] = ()
    """The keys of waiting jobs that no free quota starts (`taskgov.estimates.held_back`), sorted."""
    notes: tuple[str, ...] = ()
    """What is not simulated, for people."""


def queue_of(
    snapshot: Snapshot, said: Mapping[str, timedelta], backgrounds: Mapping[str, Background] | None = None
) -> Queue:
    """Return the queue of a snapshot.

    `said` are total run times that somebody gave, by Kueue's key. `backgrounds` come from the record of work, by UID.
    Evicted workloads that still hold quota count as waiting. Where only facts about workloads are known
    (`FollowedKueue`), their pods are not. Raises `KeyError` or `ValueError` for objects that cannot be read.
    """
    now = instant(snapshot.taken_at)
    present: dict[str, Present] = {}
    for found in _all_present(snapshot.kueue, now, backgrounds or {}):
        fixed = said.get(found.workload.key)
        present[found.workload.key] = found._replace(fixed=None if fixed is None else fixed.total_seconds())
    runs = tuple(
        Ran(job.request, job.held.since / SECOND, job.ran, ended=False)
        for job in present.values()
        if job.held is not None
    )
    setting = _setting(snapshot, {job.workload.namespace for job in present.values()})
    uids = tuple(job.workload.uid for job in present.values())
    scene = Scene(now, setting, tuple(present.values()), _Newcomers(setting))
    blocked = () if isinstance(snapshot.kueue, FollowedKueue) else tuple(sorted(held_back(snapshot) & present.keys()))
    notes = (CHECKS_LEFT_OUT,) if any(_checks_of(item) for item in snapshot.kueue.cluster_queues) else ()
    return Queue(scene, tuple(present), uids, runs, blocked, notes)


def _checks_of(cluster_queue: KubernetesObject) -> bool:
    return bool(read_cluster_queue({**cluster_queue, "kind": "ClusterQueue"}).checks)


def is_present(facts: WorkloadFacts) -> bool:
    """Return whether a workload is known to wait or run."""
    return facts.waiting_since is not None or _runs_since(facts) is not None


def _runs_since(facts: WorkloadFacts) -> Instant | None:
    attempt = facts.attempt
    if attempt is None or attempt.finished is not None or facts.waiting_since is not None:
        return None
    return attempt.admitted


def _all_present(kueue: KueueObjects, now: Instant, backgrounds: Mapping[str, Background]) -> Iterable[Present]:
    if isinstance(kueue, FollowedKueue):
        return map(_followed, filter(is_present, kueue.facts))
    classes = {item["metadata"]["name"]: int(item["value"]) for item in kueue.priority_classes}
    found = [
        present
        for item in kueue.workloads
        if (present := _present(item, classes, now, backgrounds.get(str(item["metadata"].get("uid")), _UNKNOWN)))
    ]
    requests = sized([(present.request, present.workload.created / SECOND) for present in found])
    return [present._replace(request=request) for present, request in zip(found, requests, strict=True)]


def _followed(facts: WorkloadFacts) -> Present:
    """Return a workload of which only facts are known."""
    since = _runs_since(facts)
    workload = Workload(facts.namespace, facts.name, facts.queue, (), facts.priority, uid=facts.uid)
    held = None if since is None else Held(Admission("", ()), since)
    return Present(workload, Request(facts.team, facts.accelerators), held)


def _present(item: KubernetesObject, classes: Mapping[str, int], now: Instant, about: Background) -> Present | None:
    """Return a workload as futures begin with it; None if it has finished or is deactivated."""
    status = item.get("status") or {}
    true = {kind: condition for kind, condition in read_conditions(status).items() if condition.status}
    if "Finished" in true or (item.get("spec") or {}).get("active") is False:
        return None
    workload = read_workload({**item, "kind": "Workload"}, classes)
    admission = read_admission(status) if "QuotaReserved" in true and "Evicted" not in true else None
    most = item["spec"].get("maximumExecutionTimeSeconds")
    limit = None if most is None else float(most)
    request = Request(named(item).team, _gpus(workload), about.owner, limit, about.size, about.batch)
    if admission is None:
        return Present(workload, request, ran=about.ran)
    # It runs since its admission, as in the record of work. The clock of the cluster may be ahead.
    since = min(true["Admitted"].since, now) if "Admitted" in true else now
    return Present(workload, request, Held(admission, since), max(about.ran, (now - since) / SECOND))


def _gpus(workload: Workload) -> int:
    asked: dict[str, int] = {}
    for pods in workload.pod_sets:
        for resource, amount in pods.requests:
            asked[resource] = asked.get(resource, 0) + pods.count * amount
    return accelerators(asked)


def _setting(snapshot: Snapshot, namespaces: set[str]) -> Setting:
    kueue = snapshot.kueue
    policy = snapshot.scheduler_config
    doors = tuple(map(read_local_queue, _of("LocalQueue", kueue.local_queues)))
    names = sorted(namespaces | {door.namespace for door in doors})
    return Setting(
        # It is not known when a check will answer.
        queues=tuple(
            replace(read_cluster_queue(item), checks=()) for item in _of("ClusterQueue", kueue.cluster_queues)
        ),
        doors=doors,
        flavors=tuple(map(read_flavor, _of("ResourceFlavor", kueue.resource_flavors))),
        cohorts=tuple(map(read_cohort, _of("Cohort", kueue.cohorts))),
        config=config_of(snapshot.manager, None if policy is None else policy.scheduler_config),
        namespaces={name: {NAMESPACE_NAME_LABEL: name} for name in names},
    )


def _of(kind: str, items: tuple[KubernetesObject, ...]) -> list[dict[str, Any]]:
    return [{**item, "kind": kind} for item in items]


class _Newcomers:
    """Turns arrivals into workloads of their team's queue (HyperPod's names); None for teams without such a queue."""

    def __init__(self, setting: Setting) -> None:
        resources = {
            queue.name: next((name for group in queue.groups for name in group.resources if is_accelerator(name)), None)
            for queue in setting.queues
        }
        self._asks = {(door.namespace, door.name): resources.get(door.cluster_queue) for door in setting.doors}
        self._pods: dict[tuple[str, int], tuple[PodSet, ...]] = {}

    def __call__(self, coming: Coming, number: int, at: Instant) -> Workload | None:
        """Return the workload of an arrival."""
        team, gpus = coming.request.team, coming.request.gpus
        door = namespace_of(team), local_queue_of(team)
        resource = self._asks.get(door)
        if resource is None or gpus <= 0:
            return None
        pods = self._pods.setdefault((resource, gpus), (PodSet("main", 1, ((resource, gpus),)),))
        name = f"taskgov-future-{number}"
        return Workload(door[0], name, door[1], pods, created=at, uid=name)
