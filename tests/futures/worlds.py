"""Random settings with jobs, drawn from a seed: small enough that everybody meets everybody."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from taskgov.futures import Change, Held, Job, Jobs, Setting
from taskgov.scheduling.config import DEFAULT_STRATEGIES, ManagerConfig, Strategy
from taskgov.scheduling.instants import SECOND
from taskgov.scheduling.objects import (
    Admission,
    BorrowWithinCohort,
    ClusterQueue,
    Cohort,
    Fungibility,
    LocalQueue,
    PodSet,
    PodSetAdmission,
    Preemption,
    Quota,
    ResourceFlavor,
    ResourceGroup,
    Selector,
    Workload,
)

RESOURCES = ("gpu", "cpu", "memory")
POLICIES = ("Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any")
SEARCHES = ("TryNextFlavor", "MayStopSearch")
POLICIES_OF_CHOICE = ("BorrowingOverPreemption", "PreemptionOverBorrowing")
HYPERPOD = Fungibility("TryNextFlavor", "TryNextFlavor")


@dataclass(frozen=True)
class Family:
    """What is drawn: how many resources, flavors, queues, jobs and pod sets at most; only HyperPod's rules or all."""

    resources: int = 1
    flavors: int = 1
    queues: int = 5
    jobs: int = 25
    pod_sets: int = 1
    running: float = 0.0
    """The share of jobs that run when the replay begins."""
    hyperpod: bool = False


def draw(seed: int, family: Family) -> tuple[Setting, Jobs]:
    """Return one world; the same arguments give the same world."""
    chance = random.Random(seed)  # noqa: S311 -- no secret
    count = chance.randint(1, family.queues)
    groups = _groups(chance, family)
    queues = tuple(_queue(chance, f"q{i}", groups, family) for i in range(count))
    held = 0.05 if not family.running else 0.0  # nobody runs whose LocalQueue is held: the exact model follows that
    doors = tuple(
        LocalQueue(f"ns{i}", "door", f"q{i}", "Hold" if chance.random() < held else "None") for i in range(count)
    )
    flavors = tuple(ResourceFlavor(f"f{i}", {"type": f"f{i}"}) for i in range(family.flavors))
    cohorts = (Cohort("pool", None, {"f0/gpu": Quota(chance.randint(0, 4))}),) if chance.random() < 0.2 else ()
    strategies = chance.choice([DEFAULT_STRATEGIES, tuple(Strategy)[:1], tuple(Strategy)[1:]])
    config = ManagerConfig(fair_sharing=chance.random() < 0.6, strategies=strategies)
    batch = chance.choice([0, 1, 5, 60]) * SECOND
    setting = Setting(queues, doors, flavors, cohorts, config=config, batch=batch)
    return setting, Jobs(_jobs(chance, count, family))


def _groups(chance: random.Random, family: Family) -> tuple[ResourceGroup, ...]:
    """Return one group, or sometimes a second one for the last resource."""
    resources = RESOURCES[: family.resources]
    flavors = tuple(f"f{i}" for i in range(family.flavors))
    if family.resources > 2 and not family.hyperpod and chance.random() < 0.4:
        return ResourceGroup(resources[:-1], flavors), ResourceGroup(resources[-1:], flavors[::-1])
    return (ResourceGroup(resources, flavors),)


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


def _queue(chance: random.Random, name: str, groups: tuple[ResourceGroup, ...], family: Family) -> ClusterQueue:
    cohort = "pool" if chance.random() < 0.85 else None
    quotas = {
        f"{flavor}/{resource}": _quota(chance, shares=cohort is not None)
        for group in groups
        for flavor in group.flavors
        for resource in group.resources
    }
    preferences = POLICIES_OF_CHOICE if family.resources == 1 else POLICIES_OF_CHOICE[:1]
    fungibility = Fungibility(chance.choice(SEARCHES), chance.choice(SEARCHES), chance.choice(preferences))
    return ClusterQueue(
        name,
        cohort,
        groups,
        quotas,
        namespace_selector=Selector(),
        preemption=_preemption(chance, hyperpod=family.hyperpod),
        fungibility=HYPERPOD if family.hyperpod else fungibility,
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


def _jobs(chance: random.Random, queues: int, family: Family) -> list[Job]:
    jobs, now, gap = [], 0, chance.choice([1, 5, 30])
    for number in range(chance.randint(1, family.jobs)):
        now += chance.choice([0, 0, 1, chance.randint(0, gap)])
        runs = chance.random() < family.running
        arrival = 0 if runs else now
        workload = Workload(
            f"ns{chance.randrange(queues)}",
            f"j{number}",
            "door",
            _pod_sets(chance, family),
            priority=chance.choice([0, 0, 1, 2]),
            created=(arrival - chance.choice([0, 0, 3])) * SECOND,
            uid=f"u{chance.randrange(5)}{number:04}",
        )
        run_time = chance.randint(1, 60)
        held, remaining = None, None
        if runs:
            held, remaining = _held(chance, workload, family), chance.randint(0, run_time) * SECOND
        jobs.append(Job(workload, arrival * SECOND, run_time * SECOND, held, remaining))
    return jobs


def _pod_sets(chance: random.Random, family: Family) -> tuple[PodSet, ...]:
    group = "together" if chance.random() < 0.3 else None
    return tuple(
        PodSet(
            f"p{number}",
            chance.choice([1, 1, 2]),
            tuple(
                (resource, chance.randint(0 if resource != "gpu" and chance.random() < 0.2 else 1, 4))
                for resource in RESOURCES[: family.resources]
                if resource == "gpu" or chance.random() < 0.7
            ),
            node_selector=(("type", f"f{chance.randrange(family.flavors)}"),) if chance.random() < 0.3 else (),
            group=group,
        )
        for number in range(chance.randint(1, family.pod_sets))
    )


def _held(chance: random.Random, workload: Workload, family: Family) -> Held:
    flavor = f"f{chance.randrange(family.flavors)}"
    pod_sets = tuple(
        PodSetAdmission(
            pods.name,
            pods.count,
            {resource: flavor for resource, _ in pods.requests},
            {resource: amount * pods.count for resource, amount in pods.requests},
        )
        for pods in workload.pod_sets
    )
    return Held(Admission(f"q{workload.namespace[2:]}", pod_sets), -chance.randint(0, 9) * SECOND)
