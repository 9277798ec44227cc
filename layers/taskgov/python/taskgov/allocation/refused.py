"""Apply refused writes to the planned quotas.

| refused | then |
| --- | --- |
| an update | the quota stays unchanged; after its low write it gets back its earlier value, if there is room |
| a creation | there is no quota; what is left of a failed creation is deleted |
| the deletion of a failed quota | it stays, and is not created again |

`taskgov.allocation.around_refusals` computes the other quotas.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from taskgov.allocation.allocations import Allocation
from taskgov.allocation.around_refusals import around_refusals
from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.changes import differs
from taskgov.allocation.cutting import rows_of_type
from taskgov.allocation.desired_quotas import DesiredQuotas
from taskgov.allocation.goals import NOTHING, stood_before
from taskgov.allocation.governed import LeftAlone
from taskgov.allocation.plan import ChangeKind
from taskgov.allocation.promises import Promise
from taskgov.allocation.refusals import asked_again_at, standing_refusals, wanted_digest
from taskgov.allocation.set_aside import net_of_type
from taskgov.allocation.sources import Cause
from taskgov.allocation.type_around_refusals import Quota
from taskgov.allocation.wanted import Refused, Wanted
from taskgov.allocation.written import NEVER_IN_FORCE
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ComputeQuotaResource
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import RefusedWrite, began_from

Capacities = Mapping[str, TypeCapacity]


def beside_refusals(
    snapshot: Snapshot, wanted: Wanted, desired_quotas: DesiredQuotas, pool: str | None, capacities: Capacities
) -> Wanted:
    """Return what is wanted without the writes that were refused, and with what that makes of the others.

    `pool` is the team of the shared pool, if it is governed.
    """
    standing = standing_refusals(snapshot)
    refusals = {
        allocation.promise.team: found
        for allocation in wanted.allocations
        if (found := _refusal_of(allocation, standing))
    }
    deletions = _refused_deletions(wanted.stuck, standing)
    if not refusals and not deletions:
        return wanted
    failed = {
        promise.failed.compute_quota_id: promise.team
        for promise in (allocation.promise for allocation in wanted.allocations)
        if promise.failed
    }
    stuck = tuple(
        quota
        for quota in wanted.stuck
        if quota.compute_quota_id not in deletions
        # What never was in force is deleted anyway; what is would not be created again.
        and (failed.get(quota.compute_quota_id) not in refusals or quota.status in NEVER_IN_FORCE)
    )
    gone = {quota.compute_quota_id for quota in stuck}
    plan_ids = {refusal.plan_id for refusal in standing}
    quotas = [
        replace(
            _of_refused(allocation, found, gone)
            if (found := refusals.get(allocation.promise.team))
            else _of_other(allocation, plan_ids),
            is_pool=allocation.promise.team == pool,
        )
        for allocation in wanted.allocations
    ]
    policy = snapshot.policy
    configs = around_refusals(
        [quota for quota in quotas if quota.team in refusals],
        [quota for quota in quotas if quota.team not in refusals],
        tuple(_left_alone(snapshot.quotas, wanted.allocations, gone)),
        capacities,
        overcommit=policy is not None and policy.capacity.overcommit_percent > 0,
    )
    names = ", ".join(sorted({refusal.name for refusal in (*refusals.values(), *deletions.values())}))
    earlier = {quota.team: quota.earlier for quota in quotas}
    allocations: list[Allocation] = []
    refused = [
        Refused(refusal, kept=LeftAlone(quota, said_refusal(refusal)))
        for quota in wanted.stuck
        if (refusal := deletions.get(quota.compute_quota_id)) and quota.compute_quota_id not in failed
    ]
    for allocation in wanted.allocations:
        team = allocation.promise.team
        config, refusal = configs.get(team), refusals.get(team)
        if refusal is None:
            beside = allocation if config is None else _beside(allocation, config, earlier[team], names, desired_quotas)
            allocations.append(beside)
        elif allocation.promise.failed and allocation.promise.failed.compute_quota_id not in gone:
            refused.append(Refused(refusal, kept=LeftAlone(allocation.promise.failed, said_refusal(refusal))))
        elif config is None:
            stays = desired_quotas.not_written(allocation, Cause.REFUSED, said_refusal(refusal))
            refused.append(Refused(refusal, stays, is_wanted=_is_wanted(allocation, refusal, capacities)))
        else:
            allocations.append(_given_back(allocation, config, refusal, desired_quotas))
            refused.append(Refused(refusal))
    return replace(wanted, allocations=tuple(allocations), stuck=stuck, refused=tuple(refused))


def said_refusal(refused: RefusedWrite) -> str:
    """Return in a few words that a write was refused, and until when it is not tried again."""
    until = f"{asked_again_at(refused):%Y-%m-%d %H:%M} UTC"
    return f"the write of {refused.name} was refused ({refused.error}); it is not tried again before {until}"


def _refusal_of(allocation: Allocation, standing: Sequence[RefusedWrite]) -> RefusedWrite | None:
    """Return the refusal of a planned quota, by any write of the path."""
    promise = allocation.promise
    mine = [refusal for refusal in standing if refusal.team == promise.team and refusal.kind in _kinds(promise)]
    for deletion in _refused_deletions([promise.failed] if promise.failed else [], mine).values():
        return deletion
    wanted = wanted_digest(allocation.config, allocation.target) if mine else ""
    return next((refusal for refusal in mine if refusal.wanted == wanted), None)


def _kinds(promise: Promise) -> AbstractSet[str]:
    if promise.quota is not None:
        return {ChangeKind.UPDATE_QUOTA}
    return {ChangeKind.CREATE_QUOTA, ChangeKind.DELETE_QUOTA} if promise.failed else {ChangeKind.CREATE_QUOTA}


def _refused_deletions(stuck: Iterable[ComputeQuota], standing: Iterable[RefusedWrite]) -> dict[str, RefusedWrite]:
    ids = {quota.compute_quota_id: quota.compute_quota_version for quota in stuck}
    return {
        refusal.resource_id: refusal
        for refusal in standing
        if refusal.kind == ChangeKind.DELETE_QUOTA
        and refusal.resource_id
        and ids.get(refusal.resource_id) == refusal.version
    }


def _left_alone(
    quotas: Iterable[ComputeQuota], allocations: Iterable[Allocation], gone: AbstractSet[str]
) -> Iterable[ComputeQuotaResource]:
    governed = {
        quota.compute_quota_id
        for allocation in allocations
        for quota in (allocation.promise.quota, allocation.promise.failed)
        if quota is not None
    }
    for quota in quotas:
        if quota.compute_quota_id not in governed | gone:
            yield from quota.compute_quota_config.compute_quota_resources


def _of_refused(allocation: Allocation, refusal: RefusedWrite, gone: AbstractSet[str]) -> Quota:
    """Return a refused quota; what it gave by the low write of the plan that was refused can be given back."""
    promise, earlier = allocation.promise, None
    standing = promise.quota or promise.failed
    if standing is None or standing.compute_quota_id in gone:
        return Quota(promise.team, allocation.config, NOTHING)
    if promise.quota and promise.applied and promise.applied.plan_id == refusal.plan_id:
        earlier = began_from(promise.applied, promise.quota.compute_quota_version)
    return Quota(promise.team, allocation.config, standing.compute_quota_config, earlier)


def _of_other(allocation: Allocation, plan_ids: AbstractSet[str]) -> Quota:
    promise, holds = allocation.promise, allocation.promise.holds
    version = promise.quota.compute_quota_version if promise.quota else None
    earlier = stood_before(promise.applied, version, plan_ids)
    return Quota(promise.team, allocation.config, NOTHING if holds is None else holds.compute_quota_config, earlier)


def _beside(
    allocation: Allocation,
    config: ComputeQuotaConfig,
    earlier: ComputeQuotaConfig | None,
    names: str,
    desired_quotas: DesiredQuotas,
) -> Allocation:
    because = f"planned around the refused write of {names}"
    made = desired_quotas.instead(allocation, config, because, Cause.REFUSED_TO_ANOTHER, because)
    return replace(made, leased=_leased(allocation, config, earlier))


def _given_back(
    allocation: Allocation, config: ComputeQuotaConfig, refusal: RefusedWrite, desired_quotas: DesiredQuotas
) -> Allocation:
    """Return a refused quota as it stood before its low write, settings and all."""
    because = f"back to the earlier value: {said_refusal(refusal)}"
    made = desired_quotas.instead(allocation, config, because, Cause.REFUSED, because)
    quota = allocation.promise.quota
    target = allocation.target if quota is None else quota.compute_quota_target
    return replace(made, target=target, leased=_leased(allocation, config, config))


def _leased(
    allocation: Allocation, config: ComputeQuotaConfig, earlier: ComputeQuotaConfig | None
) -> Mapping[str, int]:
    """Return what leases bring in `config`: as wanted, or as recorded where it is as it was on a type."""
    promise = allocation.promise
    applied = promise.applied
    past = (applied.history or ())[-1:] if applied else ()
    stands = NOTHING if promise.quota is None else promise.quota.compute_quota_config
    net: dict[str, int] = {}
    places = {*allocation.leased, *(applied.leased or {} if applied else {}), *(past[0].leased or {} if past else {})}
    for name in sorted({place.partition(" ")[0] for place in places}):
        rows = rows_of_type(config, name)
        if rows == rows_of_type(allocation.config, name):
            net |= net_of_type(allocation.leased, name)
        elif rows == rows_of_type(stands, name):
            net |= net_of_type(applied.leased or {} if applied else {}, name)
        elif earlier is not None and rows == rows_of_type(earlier, name):
            net |= net_of_type(past[0].leased or {} if past else {}, name)
        else:
            net |= net_of_type(allocation.leased, name)
    return net


def _is_wanted(allocation: Allocation, refusal: RefusedWrite, capacities: Capacities) -> bool:
    """Return whether the write would be made; a quota that nobody wrote since may have wanted something else by now."""
    quota = allocation.promise.quota
    return differs(allocation, capacities) or (quota is not None and quota.compute_quota_version == refusal.version)
