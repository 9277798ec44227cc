"""Write a path to the emulated account, wave by wave, and check each write, each sum, and the way back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from taskgov.allocation.plan import Change, ChangeKind, Reason
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota, ComputeQuotaConfig, SchedulerConfig
from tests.prove.account import Account, RefusedError, is_policy
from tests.prove.amounts import Vector
from tests.prove.facts import NEVER_IN_FORCE, Facts, taken
from tests.prove.path import Wave, greater
from tests.prove.sameness import config_key, policy_key, target_key


@dataclass(slots=True)
class Written:
    """The account at the end of the path, the states between the waves, and what went wrong."""

    account: Account
    states: list[Account] = field(default_factory=list)
    """The account before each wave."""
    failures: list[str] = field(default_factory=list)


def write_path(facts: Facts, waves: Sequence[Wave], account: Account | None = None) -> Written:
    """Write all waves, each settled before the next; stop at the first write that the API refuses.

    `account` is what is written to: by default that of the snapshot.
    """
    account = account or Account.of(facts.snapshot, facts.plan.plan_id)
    written = Written(account)
    bound = greater(dict(facts.capacity), _sum(account, facts))
    for number, wave in enumerate(waves, start=1):
        written.states.append(account.copy())
        try:
            written.failures += _write_wave(account, wave, facts, bound, number)
        except RefusedError as refusal:
            written.failures.append(f"wave {number}: the API refuses a write: {refusal}")
            return written
        account.settle()
    return written


def _write_wave(account: Account, wave: Wave, facts: Facts, bound: Vector, number: int) -> list[str]:
    """Write one wave, and add up what stands at most while HyperPod renders it in an order that nobody knows."""
    failures = []
    most = _sum(account, facts)
    for change in wave:
        held = None if is_policy(change) else account.find(change)
        failures += [f"wave {number}: {text}" for text in _pointless(account, change, held)]
        before = {} if held is None else taken(held, facts.book)
        account.write(change)
        made = None if is_policy(change) else account.find(change)
        gone = made is None or made.status == "Deleting"
        after = {} if made is None or gone else taken(made, facts.book)
        for key, amount in greater(before, after).items():
            most[key] = most.get(key, 0) + amount - before.get(key, 0)
    for (instance_type, resource), amount in sorted(most.items()):
        limit = bound.get((instance_type, resource), 0)
        if amount > limit and instance_type not in facts.planned_for:
            failures.append(f"wave {number}: {instance_type} {resource} adds up to {amount}, {limit} is the most")
    return failures


def _pointless(account: Account, change: Change, held: ComputeQuota | None) -> Iterator[str]:
    """Yield that a write says what stands already, or that it begins from something that does not stand."""
    if is_policy(change):
        standing = None if account.scheduler is None else account.scheduler.scheduler_config
        retried = account.scheduler is not None and account.scheduler.status == "UpdateFailed"
        wanted = change.after if isinstance(change.after, SchedulerConfig) else None
        updates = change.kind is ChangeKind.UPDATE_SCHEDULER_CONFIG
        if updates and policy_key(standing) == policy_key(wanted) and not retried:
            yield "the cluster policy is written as it stands"
        return
    if change.kind is ChangeKind.CREATE_QUOTA and change.before is not None:
        yield f"{change.name} is created, and its change begins from something"
    if held is None or change.kind is not ChangeKind.UPDATE_QUOTA:
        return
    before = change.before if isinstance(change.before, ComputeQuotaConfig) else None
    if config_key(before) != config_key(held.compute_quota_config):
        yield f"the change of {held.name} begins from something that does not stand"
    if not isinstance(change.after, ComputeQuotaConfig):
        return
    same = config_key(change.after) == config_key(held.compute_quota_config)
    same = same and target_key(change.target_after) == target_key(held.compute_quota_target)
    retried = held.status == "UpdateFailed" and change.reason is Reason.RECOVERY
    if same and not retried:
        yield f"{held.name} is written as it stands"


def _sum(account: Account, facts: Facts) -> Vector:
    total: Vector = {}
    for quota in account.quotas.values():
        for key, amount in taken(quota, facts.book).items():
            total[key] = total.get(key, 0) + amount
    return total


def way_back_failures(facts: Facts, waves: Sequence[Wave], written: Written) -> Iterator[str]:
    """Yield what is wrong when the path is broken off after each of its waves and gone back, wave by wave."""
    states = [*written.states, written.account]
    for last in range(1, len(states)):
        if last > len(waves):
            return
        account = states[last].copy()
        try:
            for number in range(last, 0, -1):
                _go_back(account, waves[number - 1])
                account.settle()
                lost = _difference(states[number - 1], account)
                if lost:
                    yield f"rolling back after wave {last}, wave {number}: {lost}"
                    return
        except RefusedError as refusal:
            yield f"rolling back after wave {last}: the API refuses a write: {refusal}"
            return
    yield from _sums_on_the_way_back(facts, states)


def _go_back(account: Account, wave: Wave) -> None:
    for change in reversed(wave):
        if is_policy(change):
            _policy_back(account, change)
            continue
        if change.kind is ChangeKind.CREATE_QUOTA:
            account.delete(change)
        elif change.kind is ChangeKind.DELETE_QUOTA:
            if isinstance(change.before, ComputeQuotaConfig) and change.target_before is not None:
                account.make(change.name, change.before, change.target_before)
        else:
            quota = account.find(change)
            if quota is None or not isinstance(change.before, ComputeQuotaConfig) or change.target_before is None:
                raise RefusedError(f"{change.name} cannot be given back: what stood is not known")
            account.put(quota, change.before, change.target_before, quota.compute_quota_version)


def team_and_name(quota: ComputeQuota) -> str:
    """Return what tells quotas apart, also where one is deleted and created again: two teams may use one name."""
    return f"{quota.compute_quota_target.team_name} {quota.name}"


def _policy_back(account: Account, change: Change) -> None:
    held = account.scheduler
    if change.kind is ChangeKind.CREATE_SCHEDULER_CONFIG:
        account.scheduler = None
    elif isinstance(change.before, SchedulerConfig):
        account.scheduler = ClusterSchedulerConfig(
            cluster_scheduler_config_id="schedulernew" if held is None else held.cluster_scheduler_config_id,
            name=change.name,
            cluster_scheduler_config_version=1 if held is None else held.cluster_scheduler_config_version + 1,
            status="Creating" if held is None else "Updating",
            scheduler_config=change.before,
        )


def _difference(wanted: Account, got: Account) -> str:
    """Return what is not as it was, by the names of quotas: what is created again has another id."""
    held = {team_and_name(quota): quota for quota in got.quotas.values()}
    for quota in wanted.quotas.values():
        now = held.pop(team_and_name(quota), None)
        if now is None and quota.status in NEVER_IN_FORCE:
            continue
        if now is None:
            return f"{quota.name} is gone"
        if config_key(now.compute_quota_config) != config_key(quota.compute_quota_config):
            return f"{quota.name} holds something else than before"
        if target_key(now.compute_quota_target) != target_key(quota.compute_quota_target):
            return f"{quota.name} has another team or weight than before"
    if held:
        return f"{', '.join(sorted(held))} did not exist before"
    before, now_policy = (each.scheduler_config if each else None for each in (wanted.scheduler, got.scheduler))
    never = wanted.scheduler is not None and wanted.scheduler.status in NEVER_IN_FORCE
    if not never and policy_key(before) != policy_key(now_policy):
        return "the cluster policy is another than before"
    return ""


def _sums_on_the_way_back(facts: Facts, states: Sequence[Account]) -> Iterator[str]:
    """Yield states between two waves whose sums are too high; on the way back each write swaps the same two amounts."""
    bound = greater(dict(facts.capacity), _sum(states[0], facts))
    for number, (low, high) in enumerate(pairwise(states), start=1):
        names = {team_and_name(quota) for state in (low, high) for quota in state.quotas.values()}
        total: Vector = {}
        for name in names:
            ends = [
                taken(quota, facts.book)
                for state in (low, high)
                for quota in state.quotas.values()
                if team_and_name(quota) == name
            ]
            amounts = ends[0] if len(ends) == 1 else greater(ends[0], ends[1])
            for key, amount in amounts.items():
                total[key] = total.get(key, 0) + amount
        for key, amount in sorted(total.items()):
            if amount > bound.get(key, 0) and key[0] not in facts.planned_for:
                yield f"rolling back wave {number}: {key[0]} {key[1]} adds up to {amount}"
