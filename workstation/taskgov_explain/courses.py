"""When each workload starts and ends, before and after a supposition, as far as run times are known."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from taskgov.scheduling import KueueModel, instant, moment
from taskgov.snapshot.model import Snapshot
from taskgov_explain.find import workloads_in
from taskgov_explain.run_times import RunTimes, run_times_of, simulation_of, until


@dataclass(frozen=True, slots=True)
class Begin:
    """A cluster whose queues have come to rest, and how often each workload was preempted until then."""

    snapshot: Snapshot
    world: KueueModel
    preempted: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Course:
    """When a workload starts and ends, before and after, where run times are known; None for never.

    What runs already starts at the moment of the snapshot.
    """

    workload: str
    team: str
    starts_before: datetime | None
    ends_before: datetime | None
    starts_after: datetime | None
    ends_after: datetime | None
    preemptions_before: int
    preemptions_after: int


def courses(supposed: Snapshot, before: Begin, after: Begin, told: RunTimes) -> Iterator[Course]:
    """Give the courses of all workloads to which anything happens; none when no run time is known."""
    known = run_times_of(supposed, told)
    if not known:
        return
    old, new = (_history(begin, known) for begin in (before, after))
    nothing = _Life(None, None, 0)
    for workload in sorted(workloads_in(supposed.kueue), key=lambda named_workload: named_workload.shown):
        was, becomes = old.get(workload.key, nothing), new.get(workload.key, nothing)
        if (was, becomes) != (nothing, nothing):
            yield Course(
                workload=workload.shown,
                team=workload.team,
                starts_before=was.starts,
                ends_before=was.ends,
                starts_after=becomes.starts,
                ends_after=becomes.ends,
                preemptions_before=was.preemptions,
                preemptions_after=becomes.preemptions,
            )


@dataclass(frozen=True, slots=True)
class _Life:
    """When a workload starts (again) at last, when it ends, and how often it is preempted until then."""

    starts: datetime | None
    ends: datetime | None
    preemptions: int


def _history(begin: Begin, known: RunTimes) -> Mapping[str, _Life]:
    """Advance a cluster in time, and return the course of each workload that changes."""
    snapshot, world = begin.snapshot, begin.world.copy()
    running = {key for key in world.workloads() if world.admission(key) is not None}
    timeline = simulation_of(world, snapshot, known).run(instant(until(snapshot)))
    starts: dict[str, datetime] = dict.fromkeys(running & known.keys(), snapshot.taken_at)
    preempted = dict(begin.preempted)
    for happening in timeline.happenings:
        if happening.kind == "admitted":
            starts[happening.workload] = moment(happening.at)
        elif happening.kind == "preempted":
            preempted[happening.workload] = preempted.get(happening.workload, 0) + 1
    lives = {*starts, *preempted}
    return {key: _Life(starts.get(key), _end(world, key), preempted.get(key, 0)) for key in lives}


def _end(world: KueueModel, key: str) -> datetime | None:
    conditions = world.workload(key)["status"]["conditions"]
    ended = (condition["lastTransitionTime"] for condition in conditions if condition["type"] == "Finished")
    return next((datetime.fromisoformat(time) for time in ended), None)
