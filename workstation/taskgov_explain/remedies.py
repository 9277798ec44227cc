"""What is the smallest change that lets a waiting workload run? Each answer was tried in the scheduling model.

Three kinds are tried: somebody finishes, the team's quota rises, its borrow limit rises. A change counts when the
workload, were it the next, would then be admitted or could preempt its way in.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from taskgov.quantities import is_accelerator
from taskgov.scheduling import Admission, KueueModel
from taskgov.scheduling.objects import FlavorResource, flavor_resource, split
from taskgov.scheduling.reasons import Blocker, InsufficientUnusedQuota
from taskgov.usage.amounts import accelerators, words
from taskgov.usage.node_shortage import offered_by_nodes
from taskgov.usage.quota_usage import usage_at
from taskgov_explain.case import Case
from taskgov_explain.more_quota import least, least_more_quota
from taskgov_explain.trial import Trial

MOST_TRIED: Final = 64
"""Workloads that are tried one by one."""
_ROUNDS: Final = 4
"""How often a change is enlarged: one resource may hide the lack of another."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change after which the workload runs."""

    kind: Literal["finish", "quota", "borrow-limit"]
    because: str
    workloads: tuple[str, ...] = ()
    """Who has to finish (`finish`)."""
    amounts: Mapping[FlavorResource, int] = field(default_factory=dict)
    """How much more (`quota`), or the new limit (`borrow-limit`), by `instance type/resource`, in base units."""
    preempts: tuple[str, ...] = ()
    """The workloads that it would preempt then."""


def remedies_of(case: Case) -> tuple[Remedy, ...]:
    """Return what would let a workload run that waits for quota."""
    if case.queue is None or case.queue_object is None:
        return ()
    trial = Trial(case, case.queue, case.queue_object)
    found = list(_finishing(trial))
    for remedies in (_more_quota, _higher_borrow_limit):
        with trial.with_queue_put_back():
            found += remedies(trial)
    return tuple(found)


# Somebody finishes


def _finishing(trial: Trial) -> Iterator[Remedy]:
    case = trial.case
    if case.assignment is None or case.assignment.blocker is Blocker.EXCEEDS_MAX_QUOTA:
        return  # it does not fit, even when all others finish
    holders = _holders(case)
    large = [key for key in holders if _may_suffice(case, key)]
    alone = next((key for key in large[:MOST_TRIED] if trial.runs_without((key,))), None)
    if enough := _enough(trial, holders) if alone is None else (alone,):
        shown = tuple(case.shown(key) for key in enough)
        yield Remedy("finish", f"{', '.join(shown)} {'finishes' if len(shown) == 1 else 'finish'}", shown)


def _holders(case: Case) -> list[str]:
    """Return who holds what the workload lacks, the smallest first: the least that has to end is the best answer."""
    wanted, held = set(case.lacking), list[tuple[int, str]]()
    for key in case.world.workloads():
        admission = case.world.admission(key)
        if admission is not None and wanted & _usage(admission).keys():
            held.append((accelerators(_by_resource(_usage(admission))), key))
    return [key for _, key in sorted(held)]


def _may_suffice(case: Case, key: str) -> bool:
    """Return whether a workload holds as much of something as is missing: one that holds less cannot make the room."""
    admission = case.world.admission(key)
    usage = {} if admission is None else _usage(admission)
    lacks = (shortfall for shortfall in case.shortfalls if isinstance(shortfall, InsufficientUnusedQuota))
    return any(
        usage.get(flavor_resource(shortfall.flavor, shortfall.resource), 0) >= shortfall.missing for shortfall in lacks
    )


def _enough(trial: Trial, holders: list[str]) -> tuple[str, ...]:
    """Return workloads whose end suffices, the largest first, none of which could be left out."""
    case, gone = trial.case, list[str]()
    world = case.world.copy()
    for key in reversed(holders):
        world.finish(key, case.snapshot.taken_at)
        gone.append(key)
        if trial.runs(world)[0]:
            break
    else:
        return ()
    for key in gone[:MOST_TRIED]:
        fewer = [other for other in gone if other != key]
        if trial.runs_without(fewer):
            gone = fewer
    return tuple(gone)


# Quotas


def _more_quota(trial: Trial) -> Iterator[Remedy]:
    added = least_more_quota(trial)
    if added is None:
        return
    preempts = tuple(map(trial.case.shown, trial.runs(trial.with_quota(added))[1]))
    because = f"the quota of {trial.case.named.team} rises by {_amounts(added)}{_preempting(preempts)}"
    yield Remedy("quota", because + _machines(trial.case, added), (), added, preempts)


def _higher_borrow_limit(trial: Trial) -> Iterator[Remedy]:
    limits = {key: quota.borrowing_limit for key, quota in trial.queue.quotas.items()}
    if trial.queue.cohort is None:
        return
    for enough, world in _enlarged(trial, trial.with_borrow_limit):
        if not trial.runs(world)[0]:
            continue
        added = least(enough, lambda more: trial.runs(trial.with_borrow_limit(more))[0])
        reached = {key: limit + more for key, more in added.items() if (limit := limits.get(key)) is not None}
        if reached:
            preempts = tuple(map(trial.case.shown, trial.runs(trial.with_borrow_limit(added))[1]))
            because = f"the borrow limit of {trial.case.named.team} is {_told(reached)}{_percent(trial, reached)}"
            yield Remedy("borrow-limit", because + _preempting(preempts), (), reached, preempts)
        return


def _enlarged(
    trial: Trial, world_with: Callable[[Mapping[FlavorResource, int]], KueueModel]
) -> Iterator[tuple[dict[FlavorResource, int], KueueModel]]:
    """Give worlds in which the queue has more of what the workload lacks, a little more each time."""
    world, added = trial.case.world, dict[FlavorResource, int]()
    for _ in range(_ROUNDS):
        lacking = trial.missing(world)
        if not lacking:
            return
        added = added | {key: added.get(key, 0) + amount for key, amount in lacking.items()}
        world = world_with(added)
        yield added, world


# Words


def _amounts(amounts: Mapping[FlavorResource, int]) -> str:
    """Say every amount, accelerators first."""
    some = sorted(amounts.items(), key=lambda pair: (not is_accelerator(split(pair[0])[1]), pair))
    return ", ".join(f"{words(split(key)[1], amount)} of {split(key)[0]}" for key, amount in some)


def _told(amounts: Mapping[FlavorResource, int]) -> str:
    """Say accelerators, or whatever there is where there are none."""
    some = sorted(amounts.items())
    leading = [pair for pair in some if is_accelerator(split(pair[0])[1])] or some
    return ", ".join(f"{words(split(key)[1], amount)} of {split(key)[0]}" for key, amount in leading)


def _percent(trial: Trial, reached: Mapping[FlavorResource, int]) -> str:
    """Return the limit as the API has it: a percentage of the team's own quota, rounded up."""
    nominal = {key: trial.queue.quotas[key].nominal for key in reached}
    percents = [-(-100 * amount // nominal[key]) for key, amount in reached.items() if nominal[key]]
    return f" (BorrowLimit {max(percents)})" if percents else ""


def _machines(case: Case, added: Mapping[FlavorResource, int]) -> str:
    """Return whether there are machines that nobody was promised."""
    lines = usage_at(case.snapshot.kueue, set(map(split, added))).lines
    for key, amount in added.items():
        instance_type, resource = split(key)
        offered = offered_by_nodes(case.snapshot, instance_type, resource)
        promised = sum(line.guaranteed for line in lines if flavor_resource(line.instance_type, line.resource) == key)
        if is_accelerator(resource) and promised + amount > offered:
            return f"; {promised} of {offered} are guaranteed already: another quota must shrink"
    return ""


def _preempting(victims: tuple[str, ...]) -> str:
    return f", and it preempts {', '.join(victims)}" if victims else ""


def _usage(admission: Admission) -> dict[FlavorResource, int]:
    usage: dict[FlavorResource, int] = {}
    for pods in admission.pod_sets:
        for resource, amount in pods.usage.items():
            key = flavor_resource(pods.flavors[resource], resource)
            usage[key] = usage.get(key, 0) + amount
    return usage


def _by_resource(usage: Mapping[FlavorResource, int]) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for key, amount in usage.items():
        amounts[split(key)[1]] = amounts.get(split(key)[1], 0) + amount
    return amounts
