"""What is odd about a world: quotas of one name, unsettled writes, and queues that are not as their quotas say."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from benchmarks.worlds_draw import Draw
from benchmarks.worlds_quotas import POOL, STRANGER, Standing
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig

Object = dict[str, Any]
SECOND: Final = "second"
"""How the ids of second quotas begin."""
FAILED: Final = {"failure_reason": "the add-on did not answer"}


def with_doubles(draw: Draw, standing: Standing) -> Standing:
    """Give a team a second quota that has the name of another team's, and let some quotas be unsettled or failed."""
    if not draw.mix.doubles:
        return standing
    quotas = list(standing.quotas)
    others = [quota for quota in quotas if quota.compute_quota_target.team_name != POOL]
    if len(others) > 1 and draw.chance(draw.mix.doubles):
        one, other = draw.pick(others), draw.pick(others)
        if one is not other:
            rows = one.compute_quota_config.compute_quota_resources[:1]
            update: Object = {
                "compute_quota_id": f"{SECOND}{one.compute_quota_id}"[:12],
                "name": other.name,
                "compute_quota_config": ComputeQuotaConfig(compute_quota_resources=rows),
            }
            quotas.append(one.model_copy(update=update))
    quotas = [_unsettled(draw, quota) for quota in quotas]
    return replace(standing, quotas=tuple(sorted(quotas, key=lambda quota: (quota.name, quota.compute_quota_id))))


def _unsettled(draw: Draw, quota: ComputeQuota) -> ComputeQuota:
    if quota.compute_quota_target.team_name == STRANGER and draw.chance(0.6):
        return quota.model_copy(update={"status": "CreateFailed", **FAILED})
    return quota.model_copy(update={"status": "Updating"}) if draw.chance(0.1) else quota


def with_failed_updates(draw: Draw, standing: Standing) -> Standing:
    """Let updates fail, so that the queues may have older numbers."""
    if not draw.mix.drifted:
        return standing
    failed = {"status": "UpdateFailed", **FAILED}
    quotas = [quota.model_copy(update=failed) if draw.chance(0.4) else quota for quota in standing.quotas]
    return replace(standing, quotas=tuple(quotas))


def recorded_how_often(quota: ComputeQuota, standing: Standing, usually: float) -> float:
    """Return how likely the last write of a quota is known; of two quotas of a team mostly that of the second."""
    team, second = quota.compute_quota_target.team_name, quota.compute_quota_id.startswith(SECOND)
    seconds = (each for each in standing.quotas if each.compute_quota_id.startswith(SECOND))
    if not second and all(each.compute_quota_target.team_name != team for each in seconds):
        return usually
    return 0.9 if second else 0.3


def one_a_team(quotas: Sequence[ComputeQuota]) -> list[ComputeQuota]:
    """Return the first quota of each team, by name: a team has one queue."""
    first: dict[str, ComputeQuota] = {}
    for quota in sorted(quotas, key=lambda quota: quota.name):
        first.setdefault(quota.compute_quota_target.team_name, quota)
    return list(first.values())


def drifts(draw: Draw, quota: ComputeQuota) -> bool:
    """Say whether the queue of a quota has other numbers than it."""
    likely = 1.3 if quota.status == "UpdateFailed" else 0.6
    return bool(draw.mix.drifted) and draw.chance(draw.mix.drifted * likely)


def put_on_hold(draw: Draw, queues: Sequence[Object]) -> tuple[Object, ...]:
    """Put some ClusterQueues or LocalQueues on hold, as a person may."""
    if not draw.mix.on_hold:
        return tuple(queues)
    hold = {"stopPolicy": "Hold"}
    return tuple(
        {**queue, "spec": {**queue["spec"], **hold}} if draw.chance(draw.mix.on_hold) else queue for queue in queues
    )
