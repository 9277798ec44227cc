"""Random settings with jobs, drawn from a seed: small enough that everybody meets everybody."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from taskgov.futures import Change, Job, Jobs, Setting
from taskgov.scheduling.config import DEFAULT_STRATEGIES, ManagerConfig, Strategy
from taskgov.scheduling.instants import SECOND
from taskgov.scheduling.objects import (
    BorrowWithinCohort,
    ClusterQueue,
    Cohort,
    Fungibility,
    LocalQueue,
    PodSet,
    Preemption,
    Quota,
    ResourceFlavor,
    ResourceGroup,
    Selector,
    Workload,
)

RESOURCES = ("gpu", "cpu", "memory")
POLICIES = ("Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any")
HYPERPOD = Fungibility("TryNextFlavor", "TryNextFlavor")


@dataclass(frozen=True)
class Family:
    """What is drawn: how many resources, flavors, queues and jobs at most, and whether only HyperPod's rules."""

    resources: int = 1
    queues: int = 5
    jobs: int = 25
    hyperpod: bool = False


def draw(seed: int, family: Family) -> tuple[Setting, Jobs]:
    """Return one world; the same arguments give the same world."""
    chance = random.Random(seed)  # noqa: S311 -- no secret
    count = chance.randint(1, family.queues)
    resources = RESOURCES[: family.resources]
    queues = tuple(_queue(chance, f"q{i}", resources, hyperpod=family.hyperpod) for i in range(count))
    doors = tuple(LocalQueue(f"ns{i}", "door", f"q{i}") for i in range(count))
    cohorts = (Cohort("pool", None, {"f0/gpu": Quota(chance.randint(0, 4))}),) if chance.random() < 0.2 else ()
    strategies = chance.choice([DEFAULT_STRATEGIES, tuple(Strategy)[:1], tuple(Strategy)[1:]])
    config = ManagerConfig(fair_sharing=chance.random() < 0.6, strategies=strategies)
    batch = chance.choice([0, 1, 5, 60]) * SECOND
    setting = Setting(queues, doors, (ResourceFlavor("f0"),), cohorts, config, batch=batch)
    return setting, Jobs(_jobs(chance, count, resources, family.jobs))


def draw_changes(seed: int, setting: Setting, jobs: Jobs) -> list[Change]:
    """Return changes of quotas, limits, weights and rules while the jobs come and run."""
    chance = random.Random(seed)  # noqa: S311 -- no secret
    last = max(job.arrival for job in jobs.jobs) + 60 * SECOND
    changes = []
    for _ in range(chance.randint(1, 4)):
        some = chance.sample(setting.queues, chance.randint(1, len(setting.queues)))
        changes.append(Change(chance.randrange(last), tuple(_changed(chance, queue) for queue in some)))
    return changes


def _changed(chance: random.Random, queue: ClusterQueue) -> ClusterQueue:
    quotas = {fr: _quota(chance, shares=queue.cohort is not None) for fr in queue.quotas}
    rules = _preemption(chance, hyperpod=chance.random() < 0.5)
    policy = "Hold" if chance.random() < 0.1 else "None"
    return replace(queue, quotas=quotas, weight=chance.choice([0.0, 1.0, 3.0]), preemption=rules, stop_policy=policy)


def _queue(chance: random.Random, name: str, resources: tuple[str, ...], *, hyperpod: bool) -> ClusterQueue:
    cohort = "pool" if chance.random() < 0.85 else None
    quotas = {f"f0/{resource}": _quota(chance, shares=cohort is not None) for resource in resources}
    return ClusterQueue(
        name,
        cohort,
        (ResourceGroup(resources, ("f0",)),),
        quotas,
        namespace_selector=Selector(),
        preemption=_preemption(chance, hyperpod=hyperpod),
        fungibility=HYPERPOD,
        weight=chance.choice([0.0, 1.0, 1.0, 3.0, 10.0]),
        stop_policy="Hold" if chance.random() < 0.05 else "None",
    )


def _quota(chance: random.Random, *, shares: bool) -> Quota:
    nominal = chance.randint(0, 8)
    if not shares:
        return Quota(nominal)
    limits = [None, 0, nominal // 2, nominal]
    return Quota(nominal, chance.choice([*limits, 2 * nominal]), chance.choice([None, *limits]))


def _preemption(chance: random.Random, *, hyperpod: bool) -> Preemption:
    if hyperpod:
        return Preemption(chance.choice(POLICIES[:2]), "Any", BorrowWithinCohort("LowerPriority"))
    borrow = BorrowWithinCohort("LowerPriority", chance.choice([None, 0, 1]))
    return Preemption(
        chance.choice([*POLICIES, ""]),
        chance.choice([*POLICIES, "Any", ""]),
        chance.choice([None, BorrowWithinCohort("Never"), borrow]),
    )


def _jobs(chance: random.Random, queues: int, resources: tuple[str, ...], most: int) -> list[Job]:
    jobs, now, gap = [], 0, chance.choice([1, 5, 30])
    for number in range(chance.randint(1, most)):
        now += chance.choice([0, 0, 1, chance.randint(0, gap)])
        asks = tuple(
            (resource, chance.randint(0 if resource != "gpu" and chance.random() < 0.2 else 1, 4))
            for resource in resources
            if resource == "gpu" or chance.random() < 0.7
        )
        workload = Workload(
            f"ns{chance.randrange(queues)}",
            f"j{number}",
            "door",
            (PodSet("main", chance.choice([1, 1, 2]), asks),),
            priority=chance.choice([0, 0, 1, 2]),
            created=(now - chance.choice([0, 0, 3])) * SECOND,
            uid=f"u{chance.randrange(5)}{number:04}",
        )
        jobs.append(Job(workload, now * SECOND, chance.randint(1, 60) * SECOND))
    return jobs
