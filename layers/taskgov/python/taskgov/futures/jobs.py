"""Which jobs come, or are there already? Prepared once, replayed under many settings."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from taskgov.scheduling.objects import flavor_resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.objects import Admission, FlavorResource, PodSet, Workload

Shape = tuple[tuple["PodSet", ...], int]
"""What makes jobs of one queue alike: their pod sets and their priority."""
Door = tuple[str, str]
"""Namespace and name of a LocalQueue."""


class Held(NamedTuple):
    """What a job holds that runs when the replay begins, and since when (`QuotaReserved`)."""

    admission: Admission
    since: Instant

    def usage(self) -> dict[FlavorResource, int]:
        """Sum what its pod sets hold."""
        usage: dict[FlavorResource, int] = {}
        for pod_set in self.admission.pod_sets:
            for resource, flavor in pod_set.flavors.items():
                fr = flavor_resource(flavor, resource)
                usage[fr] = usage.get(fr, 0) + pod_set.usage.get(resource, 0)
        return usage


@dataclass(frozen=True, slots=True)
class Job:
    """A workload with its moment and its run time, both in microseconds.

    It runs for `run_time`, and for all of it again after a preemption. One that waits or runs (`held`) when the replay
    begins arrives at its first moment; one that runs ends `remaining` after that.
    """

    workload: Workload
    arrival: Instant
    run_time: int
    held: Held | None = None
    remaining: int | None = None


class Jobs:
    """Jobs with everything worked out that does not depend on the setting, to be replayed under many of them.

    Results name a job by its index in `jobs`, which are in the order in which they were given. Within a replay a job is
    its rank: its place in Kueue's order of a queue, by priority, age, UID and key. Raises `ValueError` for two jobs of
    one key.
    """

    __slots__ = ("arrivals", "index", "jobs", "origin", "origins", "remaining", "run_time", "turn", "uid_place")

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.jobs = tuple(jobs)
        order = [(-work.priority, work.created, work.uid, work.key) for work in (job.workload for job in self.jobs)]
        if len({key for _, _, _, key in order}) < len(order):
            raise ValueError("two jobs have one key (namespace/name)")
        self.index = sorted(range(len(order)), key=order.__getitem__)
        """Index in `jobs`, by rank."""
        line = [self.jobs[i] for i in self.index]
        by_uid = sorted(range(len(line)), key=lambda rank: order[self.index[rank]][2:])
        self.uid_place = [0] * len(line)
        """Place by UID and key, by rank: what decides between candidates for preemption that are alike."""
        for place, rank in enumerate(by_uid):
            self.uid_place[rank] = place
        self.turn = [(order[i][0], order[i][1], order[i][3]) for i in self.index]
        """What decides between heads that borrow alike, by rank."""
        self.arrivals = sorted((job.arrival, rank) for rank, job in enumerate(line))
        self.run_time = [job.run_time for job in line]
        """How long each runs, by rank."""
        self.remaining = [job.run_time if job.remaining is None else job.remaining for job in line]
        """How long its first stay is, by rank."""
        origins: dict[tuple[Door, Shape], int] = {}
        self.origin = [
            origins.setdefault(
                (
                    (job.workload.namespace, job.workload.queue),
                    (job.workload.pod_sets, job.workload.priority),
                ),
                len(origins),
            )
            for job in line
        ]
        """Place in `origins`, by rank."""
        self.origins: tuple[tuple[Door, Shape], ...] = tuple(origins)
        """From where jobs come, and of what shape they are."""

    def lasting(self, run_times: Sequence[int], remaining: Sequence[int | None]) -> Jobs:
        """Return the same jobs with other run times, by index in `jobs`: another future, without preparing it again."""
        twin = copy(self)
        times = zip(self.jobs, run_times, remaining, strict=True)
        twin.jobs = tuple(replace(job, run_time=full, remaining=first) for job, full, first in times)
        twin.run_time = [run_times[index] for index in self.index]
        firsts = [run if first is None else first for run, first in zip(run_times, remaining, strict=True)]
        twin.remaining = [firsts[index] for index in self.index]
        return twin

    def __len__(self) -> int:
        return len(self.jobs)
