"""A run that was broken off: some of its writes were made, others refused, and the rest was not sent."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from benchmarks.worlds_draw import Draw
from taskgov.allocation.applied_record import remember
from taskgov.allocation.plan import DELETIONS, POLICY_KINDS, Change, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.refusals import refused_write
from taskgov.allocation.written import WrittenCluster, quota_id_of
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota, RefusalError, RefusedWrite

AGO: Final = timedelta(minutes=5)


def with_refusals(draw: Draw, snapshot: Snapshot) -> Snapshot:
    """Let a run apply the plan of the snapshot up to the wave of a refused write; once or twice."""
    if not draw.mix.refused:
        return snapshot
    for _ in range(draw.number(1, 2)):
        if draw.chance(draw.mix.refused):
            snapshot = _broken_off(draw, snapshot)
    return snapshot


def _broken_off(draw: Draw, snapshot: Snapshot) -> Snapshot:
    plan = plan_quotas(snapshot, mode="apply")
    if not plan.changes:
        return snapshot
    subjects = draw.some(sorted({change.subject for change in plan.changes}), 1, 3)
    last = min(change.wave for change in plan.changes if change.subject in subjects)
    sent = [change for change in plan.changes if change.wave <= last]
    made = [change for change in sent if change.subject not in subjects]
    if draw.chance(0.3):
        made = draw.some(made, 0, len(made))  # beside a refused write, others of its wave may not have been sent
        made = [each for each in made if _follows(each, made, plan)]
    refused = [_refused(draw, snapshot, plan, change) for change in sent if change.subject in subjects]
    cluster = WrittenCluster(snapshot)
    records = {each.compute_quota_id: each for each in snapshot.applied}
    for change in made:
        _record(records, snapshot, plan, change, cluster)
    kept = [each for each in snapshot.refusals if each.subject not in subjects]
    after = replace(cluster.snapshot(), applied=tuple(records.values()), kueue=snapshot.kueue)
    return replace(after, refusals=tuple(sorted((*kept, *refused), key=lambda each: each.subject)))


def _follows(change: Change, made: list[Change], plan: Plan) -> bool:
    """Say whether all writes of the waves before this one were made: a wave begins when those before have settled."""
    earlier = [each for each in plan.changes if each.wave < change.wave]
    return all(each in made for each in earlier)


def _refused(draw: Draw, snapshot: Snapshot, plan: Plan, change: Change) -> RefusedWrite:
    error = draw.pick(list(RefusalError))
    return refused_write(plan, change, error=error, because="the service said no", at=snapshot.taken_at - AGO)


def _record(
    records: dict[str, AppliedQuota], snapshot: Snapshot, plan: Plan, change: Change, cluster: WrittenCluster
) -> None:
    """Write one change, and keep what a run keeps of it."""
    if change.kind in DELETIONS or change.kind in POLICY_KINDS or not isinstance(change.after, ComputeQuotaConfig):
        cluster.write([change])
        return
    first = next(each for each in plan.changes if each.subject == change.subject)
    origin = change.began_from or first.before
    cluster.write([change])
    quota_id = quota_id_of(change, cluster.quotas)
    records[quota_id] = remember(
        change,
        records.get(quota_id),
        quota_id=quota_id,
        version=cluster.quotas[quota_id].compute_quota_version,
        plan_id=plan.plan_id,
        now=snapshot.taken_at - AGO,
        path_before=origin if isinstance(origin, ComputeQuotaConfig) else None,
    )
