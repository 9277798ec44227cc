"""Worlds in which a run writes a plan, and some of its writes are refused."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta

from taskgov.allocation.applied_record import remember
from taskgov.allocation.plan import DELETIONS, POLICY_KINDS, Change, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.refusals import refused_write
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.services.plan_path import path_of
from taskgov.services.write_records import path_before
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import RefusalError
from tests.allocation.world import applied


def plan_of(world: Snapshot) -> Plan:
    return plan_quotas(world, mode="apply")


def written(world: Snapshot, plan: Plan, changes: Sequence[Change]) -> Snapshot:
    """Return the world after these changes of the plan were written and recorded."""
    for change in changes:
        world = _written(world, plan, change)
    return world


def played(
    world: Snapshot,
    plan: Plan,
    refused: Collection[str],
    *,
    up_to: int | None = None,
    error: RefusalError | None = None,
) -> Snapshot:
    """Return the world after a run of the plan up to a wave, in which the writes of these subjects were refused.

    With the wave of the first refusal the run has ended: the writes beside it are made, and none of a later wave.
    """
    for number in sorted({change.wave for change in plan.changes})[:up_to]:
        wave = [change for change in plan.changes if change.wave == number]
        world = written(world, plan, [change for change in wave if change.subject not in refused])
        failed = [change for change in wave if change.subject in refused]
        for change in failed:
            found = refused_write(
                plan, change, error=error or RefusalError.LIMIT_REACHED, because="no more", at=world.taken_at
            )
            kept = (each for each in world.refusals if each.subject != change.subject)
            world = replace(world, refusals=(*kept, found))
        if failed:
            break
    return world


def settled(world: Snapshot, refused: Collection[str], *, rounds: int = 9) -> tuple[Snapshot, list[Snapshot]]:
    """Return the world once nothing is left to write, where these writes are always refused, and those before it."""
    before: list[Snapshot] = []
    for _ in range(rounds):
        plan = plan_of(world)
        if not plan.changes:
            return world, before
        before.append(world)
        world = played(world, plan, refused)
    raise AssertionError(f"{rounds} rounds were not enough")


def later(world: Snapshot, **time: float) -> Snapshot:
    return replace(world, taken_at=world.taken_at + timedelta(**time))


def _written(world: Snapshot, plan: Plan, change: Change) -> Snapshot:
    ids = {each.name: each.compute_quota_id for each in world.quotas}
    if change.resource_id is None and change.name in ids:
        change = replace(change, resource_id=ids[change.name])
    after = applied(world, replace(plan, changes=(change,)))
    if change.kind in POLICY_KINDS or change.kind in DELETIONS or not isinstance(change.after, ComputeQuotaConfig):
        return after
    quota = next(each for each in after.quotas if each.name == change.name)
    records = {each.compute_quota_id: each for each in world.applied}
    record = remember(
        change,
        records.get(quota.compute_quota_id),
        quota_id=quota.compute_quota_id,
        version=quota.compute_quota_version,
        plan_id=plan.plan_id,
        now=world.taken_at,
        path_before=path_before(change, path_of(plan.changes, change)),
    )
    return replace(after, applied=tuple((records | {quota.compute_quota_id: record}).values()))
