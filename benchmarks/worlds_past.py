"""What happened before: our own writes and their history, edits by hand, failures, observed use, budgets."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from benchmarks.worlds_cluster import NOW
from benchmarks.worlds_draw import Draw
from benchmarks.worlds_odd import recorded_how_often, with_doubles, with_failed_updates
from benchmarks.worlds_quotas import POOL, Standing
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig
from taskgov.policy.document import PolicyDocument
from taskgov.policy.measured import Lease
from taskgov.snapshot.model import BudgetUse, ObservedUse
from taskgov.snapshot.records import AppliedQuota, PastQuota, QuotaEdit

FAILURES: Final = (
    "CreateFailed",
    "CreateRollbackFailed",
    "UpdateFailed",
    "UpdateRollbackFailed",
    "DeleteFailed",
    "DeleteRollbackFailed",
    "Deleting",
)
NEVER_IN_FORCE: Final = ("CreateFailed", "CreateRollbackFailed")


@dataclass(frozen=True, slots=True)
class Past:
    """The parts of a snapshot that remember."""

    applied: tuple[AppliedQuota, ...]
    edits: tuple[QuotaEdit, ...]
    observed_use: tuple[ObservedUse, ...]
    budget_use: tuple[BudgetUse, ...]
    stopped: bool | None


def draw_past(draw: Draw, standing: Standing, document: PolicyDocument) -> tuple[Standing, Past]:
    """Return what stands with its failures, and what is remembered of it."""
    standing = _with_failures(draw, standing) if draw.chance(draw.mix.stuck) else standing
    standing = with_failed_updates(draw, with_doubles(draw, standing))
    quotas: list[ComputeQuota] = []
    applied: list[AppliedQuota] = []
    edits: list[QuotaEdit] = []
    for quota in standing.quotas:
        edited = draw.chance(draw.mix.edited) and quota.status in {"Created", "Updated"}
        held = quota
        if edited:
            held = quota.model_copy(update={"compute_quota_version": quota.compute_quota_version + 1})
            edits.append(QuotaEdit(quota.compute_quota_id, "alice", NOW - timedelta(hours=1), "UpdateComputeQuota"))
        quotas.append(held)
        recorded = edited or draw.chance(recorded_how_often(quota, standing, draw.mix.applied))
        if recorded and quota.status not in NEVER_IN_FORCE:
            applied.append(_applied(draw, quota, document.leases, edited=edited))
    stopped = draw.pick([True, None]) if draw.chance(0.05 * draw.mix.limits) else False
    past = Past(tuple(applied), tuple(edits), tuple(_use(draw, document)), tuple(_budgets(draw, document)), stopped)
    return replace(standing, quotas=tuple(quotas)), past


def _with_failures(draw: Draw, standing: Standing) -> Standing:
    chosen = {quota.name for quota in draw.some(standing.quotas, 0, 2)}
    quotas = [
        quota.model_copy(update={"status": draw.pick(FAILURES), "failure_reason": "the add-on did not answer"})
        if quota.name in chosen
        else quota
        for quota in standing.quotas
    ]
    scheduler = standing.scheduler
    if scheduler is not None and draw.chance(0.4):
        status = {"status": draw.pick(FAILURES[:-1]), "failure_reason": "the add-on did not answer"}
        scheduler = scheduler.model_copy(update=status)
    return Standing(tuple(quotas), scheduler)


def _applied(draw: Draw, quota: ComputeQuota, leases: tuple[Lease, ...], *, edited: bool) -> AppliedQuota:
    """Return our last write: what stands, or something near it where a person changed the quota since."""
    at = NOW - timedelta(minutes=draw.pick([10, 90, 600, 3000]))
    config = quota.compute_quota_config
    version = quota.compute_quota_version
    if edited:
        config = _moved(draw, config)
    history: tuple[PastQuota, ...] | None = tuple(_history(draw, config, at))
    if draw.chance(0.05):
        history = None
    leased = None
    if draw.chance(0.5):
        leased = _net(leases, quota.compute_quota_target.team_name, at)
    return AppliedQuota(
        compute_quota_id=quota.compute_quota_id,
        version=version,
        config=config,
        target=quota.compute_quota_target,
        plan_id="plan-0123456789abcdef",
        at=at,
        history=history,
        leased=leased,
        began_from=_moved(draw, config) if draw.mix.doubles and not edited and draw.chance(0.6) else None,
    )


def _history(draw: Draw, config: ComputeQuotaConfig, at: datetime) -> Iterator[PastQuota]:
    for hours in sorted(draw.some([1, 5, 20, 100], 0, 3), reverse=True):
        yield PastQuota(until=at - timedelta(hours=hours), config=_moved(draw, config))


def _moved(draw: Draw, config: ComputeQuotaConfig) -> ComputeQuotaConfig:
    """Return a config whose numbers are a little lower or higher."""
    rows = []
    for row in config.compute_quota_resources:
        step = draw.number(-2, 3)
        update = {
            name: max(round(getattr(row, name) + step, 3), 0)
            for name in ("count", "accelerators", "vcpu", "memory_in_gib")
            if getattr(row, name) is not None
        }
        rows.append(row.model_copy(update=update))
    return config.model_copy(update={"compute_quota_resources": tuple(rows)})


def _net(leases: tuple[Lease, ...], team: str, at: datetime) -> dict[str, int]:
    net: dict[str, int] = {}
    for lease in leases:
        if lease.start <= at < lease.end and team in {lease.to, lease.from_}:
            net[lease.place] = net.get(lease.place, 0) + lease.count * (1 if lease.to == team else -1)
    return net


def _use(draw: Draw, document: PolicyDocument) -> Iterator[ObservedUse]:
    if not document.demand.enabled:
        return
    for team in document.teams:
        for row in team.quota.compute_quota_resources if team.quota else ():
            if draw.chance(0.7) and row.accelerator_partition is None:
                hours = draw.pick([3.0, 24.0, 200.0])
                peak = draw.pick([0.0, 0.5, 1.0, 2.0, 3.5])
                yield ObservedUse(team.name, row.instance_type, hours, peak, pending=draw.chance(0.2))


def _budgets(draw: Draw, document: PolicyDocument) -> Iterator[BudgetUse]:
    month = NOW.replace(day=1, hour=0)
    for budget in document.budgets:
        if draw.chance(0.8) and budget.team != POOL:
            yield BudgetUse(budget.team, month, draw.pick([10.0, 85.0, 130.0]))
