"""What has happened to tasks and teams that people should know, as a snapshot of the cluster shows it.

Each has an identity, by which it is reported once however often it is seen: a preemption is the workload's uid and its
moment, a wait the uid and its beginning (so that a wait after a preemption is another one), starvation its beginning.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from taskgov.contracts.task_events import TaskEvent, TaskPreempted, TaskWaiting, TeamStarved
from taskgov.policy.notices import NoticeRules, Occasion
from taskgov.quantities import format_quantity, is_accelerator
from taskgov.scheduling.instants import instant, moment
from taskgov.snapshot.model import Snapshot
from taskgov.usage.starved import Starved
from taskgov.usage.workload_facts import WorkloadFacts, facts_in
from taskgov.usage.workloads import Preemption, preemptions_of

RECENT: Final = timedelta(days=1)
"""Older preemptions are neither counted nor reported: the table keeps reported ones for much longer."""
MOST_ASKED: Final = 20
"""Resources that an event names, accelerators first. EventBridge refuses a call above 256 KiB, with all its events."""
OCCASIONS: Final[Mapping[type[TaskEvent], Occasion]] = {
    TaskPreempted: Occasion.PREEMPTED,
    TaskWaiting: Occasion.WAITING,
    TeamStarved: Occasion.STARVED,
}


def place_of(starved: Starved) -> str:
    """Return what is starved, as one text: team, instance type, resource."""
    return f"{starved.team} {starved.instance_type} {starved.resource}"


def starved_id(place: str, since: datetime) -> str:
    """Return the identity of starvation that began at a moment."""
    return f"starved-{place}#{since:%Y-%m-%dT%H:%M:%SZ}"


def preempted_id(preemption: Preemption) -> str:
    """Return the identity of a preemption among the events that teams are notified of."""
    return f"preempted-{preemption.identity}"


def happenings(
    snapshot: Snapshot, starved: tuple[Starved, ...], since: Mapping[str, datetime], rules: NoticeRules
) -> tuple[TaskEvent, ...]:
    """Return everything to report at the moment of the snapshot, oldest first, reported already or not.

    `since` says from when each place in `starved` is, by `place_of`.
    """
    found = [*_preempted(snapshot), *_waiting(snapshot, rules), *_starved(snapshot, starved, since, rules)]
    return tuple(
        sorted(found, key=lambda event: (event.at if isinstance(event, TaskPreempted) else event.since, event.id))
    )


def _preempted(snapshot: Snapshot) -> Iterator[TaskEvent]:
    workloads = _by_uid(snapshot)
    preemptions = preemptions_of(workloads.values())
    for preemption in (found for found in preemptions if snapshot.taken_at - found.at < RECENT):
        preemptor = workloads.get(preemption.preemptor_uid or "")
        yield TaskPreempted(
            id=preempted_id(preemption),
            **_task(snapshot, workloads[preemption.uid]),
            at=preemption.at,
            reason=preemption.reason,
            preempting_team=preemption.preempting_team,
            preempting_priority_class=preemptor.priority_class if preemptor else None,
            ran_seconds=_ran(preemption),
        )


def _by_uid(snapshot: Snapshot) -> dict[str, WorkloadFacts]:
    return {workload.uid: workload for workload in facts_in(snapshot.kueue)}


def _ran(preemption: Preemption) -> int | None:
    if preemption.ran_since is None:
        return None
    return max(0, int((preemption.at - preemption.ran_since).total_seconds()))


def _waiting(snapshot: Snapshot, rules: NoticeRules) -> Iterator[TaskEvent]:
    if rules.pending_minutes is None:
        return
    latest = instant(snapshot.taken_at - timedelta(minutes=rules.pending_minutes))
    for workload in _by_uid(snapshot).values():
        if workload.waiting_since is not None and workload.waiting_since < latest:
            since = moment(workload.waiting_since)
            yield TaskWaiting(
                id=f"waiting-{workload.uid}#{since:%Y-%m-%dT%H:%M:%SZ}",
                **_task(snapshot, workload),
                since=since,
                limit_minutes=rules.pending_minutes,
                evicted=workload.evicted,
            )


def _starved(
    snapshot: Snapshot, starved: tuple[Starved, ...], since: Mapping[str, datetime], rules: NoticeRules
) -> Iterator[TaskEvent]:
    for team_starved in starved:
        began = since[place_of(team_starved)]
        if snapshot.taken_at - began >= timedelta(minutes=rules.starved_minutes):
            yield TeamStarved(
                id=starved_id(place_of(team_starved), began),
                **_cluster(snapshot, team_starved.team),
                instance_type=team_starved.instance_type,
                resource=team_starved.resource,
                guaranteed=team_starved.guaranteed,
                used=team_starved.own_use,
                waiting=team_starved.waiting,
                borrowed=team_starved.borrowed,
                reclaimable=team_starved.reclaimable,
                since=began,
            )


def _cluster(snapshot: Snapshot, team: str) -> dict[str, Any]:
    return {"cluster_arn": snapshot.cluster.arn, "cluster_name": snapshot.cluster.name, "team": team}


def _task(snapshot: Snapshot, workload: WorkloadFacts) -> dict[str, Any]:
    return {
        **_cluster(snapshot, workload.team),
        "namespace": workload.namespace,
        "task": workload.job,
        "kind": workload.kind,
        "workload": workload.name,
        "priority_class": workload.priority_class,
        "priority": workload.priority,
        "asks": _asks(workload),
    }


def _asks(workload: WorkloadFacts) -> dict[str, str]:
    total: dict[str, int] = {}
    for pods in workload.asks:
        for resource, amount in pods.requests:
            total[resource] = total.get(resource, 0) + pods.number * amount
    asked = sorted(
        (name for name, amount in total.items() if amount), key=lambda name: (not is_accelerator(name), name)
    )
    return {name: format_quantity(name, total[name]) for name in sorted(asked[:MOST_ASKED])}
