"""The present quotas and limits of each team on one instance type, and what advice may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskgov.advice.rules import Rule
from taskgov.allocation.sharing import SharingBefore, sharing_after
from taskgov.hyperpod.borrowing import borrow_percent
from taskgov.hyperpod.model import (
    ComputeQuotaConfig,
    PreemptTeamTasks,
    ResourceSharingConfig,
    SharingStrategy,
    Switch,
)
from taskgov.hyperpod.ratio import complete_all
from taskgov.policy.measured import Unit
from taskgov.quantities import GPU

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskgov.hyperpod.instance_types import InstanceTypeTable
    from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaResource
    from taskgov.policy.document import PolicyDocument, TeamPolicy
    from taskgov.policy.measured import Share


@dataclass(frozen=True, slots=True)
class TeamToday:
    """A team on one instance type. Numbers are GPUs. `least` and `most` bound the advised quota."""

    team: str
    quota: int
    limit: int = 100
    """The borrow limit, in percent of the quota."""
    absolute: int | None = None
    """The borrow limit in GPUs, in the place of the percentage, where the document has an absolute one."""
    least: int = 1
    most: int | None = None
    shares: bool = True
    """Whether it lends and borrows; false with `DontLend`."""
    moves: bool = True
    """Whether its quota may change."""
    borrows: bool = True
    """Whether its borrow limit may change."""
    never: bool = False
    """`PreemptTeamTasks: Never`."""
    weight: int = 0
    why_held: str = ""
    """Why its quota may not change; empty if it may."""


@dataclass(frozen=True, slots=True)
class Today:
    """All teams of an instance type, by name; GPUs in a unit of quota; whether idle quota is shared by `FairShare`."""

    teams: tuple[TeamToday, ...]
    unit: int = 1
    fair: bool = True
    rule: Rule = Rule.TODAY
    """The rule that computed the quotas, if any."""

    @property
    def total(self) -> int:
        """GPUs of all quotas."""
        return sum(team.quota for team in self.teams)


def today_of(
    document: PolicyDocument,
    instance_type: str,
    per_instance: int,
    in_force: Iterable[ComputeQuota],
    table: InstanceTypeTable,
) -> Today:
    """Return the quotas and limits of a document's teams on an instance type, and what may change.

    `per_instance` is the number of GPUs of an instance, `in_force` the quotas of the cluster: they say how many GPUs
    each team has, and how it shares where the document does not. Advice never changes floors, ceilings,
    `minimumQuota`, sharing strategies, absolute limits, frozen teams, teams with `DontLend`, the shared pool, and
    quotas that are not written in whole instances or GPUs of this type. If any team's quota is written in instances,
    all quotas are counted in whole instances.
    """
    known = tuple(in_force)
    gpus = gpus_of(known, instance_type, table)
    kept = {quota.compute_quota_target.team_name: quota.compute_quota_config.resource_sharing_config for quota in known}
    unit = per_instance if any(_in_instances(team, instance_type) for team in document.teams) else 1
    on = _Machines(document, instance_type, per_instance, unit, table)
    rows = [_team(on, team, gpus.get(team.name, 0), kept.get(team.name)) for team in document.teams]
    pool = document.shared_pool
    if pool is not None and (idle := gpus.get(pool.team)):
        why = "it is the shared pool, which only lends"
        rows.append(TeamToday(pool.team, idle, limit=0, moves=False, borrows=False, never=True, why_held=why))
    scheduler = document.scheduler_config
    fair = scheduler is None or scheduler.fair_share is not Switch.DISABLED
    return Today(tuple(sorted(rows, key=lambda row: row.team)), unit, fair)


def gpus_of(in_force: Iterable[ComputeQuota], instance_type: str, table: InstanceTypeTable) -> dict[str, int]:
    """Return the GPUs of an instance type that quotas give each team, by team. Raises `UnknownInstanceTypeError`."""
    found: dict[str, int] = {}
    for quota in in_force:
        team = quota.compute_quota_target.team_name
        rows = [row for row in quota.compute_quota_config.compute_quota_resources if row.instance_type == instance_type]
        for amounts in complete_all(rows, table).values():
            found[team] = found.get(team, 0) + amounts.get(GPU, 0)
    return found


def gpu_types(document: PolicyDocument) -> dict[str, int]:
    """Return the promised instance types with GPUs, by name, with the GPUs of one instance."""
    named = {
        row.instance_type
        for team in document.teams
        for row in (team.quota.compute_quota_resources if team.quota else ())
    } | {share.instance_type for team in document.teams for share in team.share}
    table = document.instance_type_table()
    return {name: found.gpu for name in sorted(named) if (found := table.resources_of(name)) is not None and found.gpu}


def row_of(team: TeamPolicy, instance_type: str) -> ComputeQuotaResource | None:
    """Return a team's fixed promise on an instance type; None unless it is one row with only instances or only GPUs."""
    found = [
        row
        for row in (team.quota or ComputeQuotaConfig()).compute_quota_resources
        if row.instance_type == instance_type
    ]
    if (
        len(found) != 1
        or found[0].accelerator_partition
        or found[0].vcpu is not None
        or found[0].memory_in_gib is not None
    ):
        return None
    return found[0] if (found[0].count is None) != (found[0].accelerators is None) else None


def share_of(team: TeamPolicy, instance_type: str) -> Share | None:
    """Return a team's share of an instance type, if it is counted in instances or GPUs."""
    wanted = {Unit.INSTANCES, Unit.ACCELERATORS}
    return next((share for share in team.share if share.instance_type == instance_type and share.unit in wanted), None)


def _in_instances(team: TeamPolicy, instance_type: str) -> bool:
    row, share = row_of(team, instance_type), share_of(team, instance_type)
    return (row is not None and row.count is not None) or (share is not None and share.unit is Unit.INSTANCES)


@dataclass(frozen=True, slots=True)
class _Machines:
    """The machines to advise on: their type, its GPUs, and the GPUs in a unit of quota."""

    document: PolicyDocument
    instance_type: str
    per_instance: int
    unit: int
    table: InstanceTypeTable


def _team(on: _Machines, team: TeamPolicy, quota: int, kept: ResourceSharingConfig | None) -> TeamToday:
    """Return a team as it stands; `kept` is how it shares on the cluster."""
    document, instance_type, unit = on.document, on.instance_type, on.unit
    said = team.quota.resource_sharing_config if team.quota else None
    sharing = sharing_after(said, SharingBefore(kept), in_budget=True).config or ResourceSharingConfig()
    share = share_of(team, instance_type)
    size = on.per_instance if share is not None and share.unit is Unit.INSTANCES else 1
    floor = max(share.floor * size if share else 0, document.guardrails.minimum_quota.get(team.name, 0), unit)
    frozen = team.name in document.guardrails.freeze
    alone = sharing.strategy is SharingStrategy.DONT_LEND
    written = share is not None or row_of(team, instance_type) is not None
    why = _why_held(
        ("it is frozen", frozen),
        ("it lends nothing (DontLend)", alone),
        (f"its quota on {instance_type} is not written in whole instances or GPUs", not written),
        (f"it holds {quota} GPUs, which is not a multiple of {unit}", quota % unit != 0),
    )
    limits = [limit for limit in sharing.absolute_borrow_limits or () if limit.instance_type == instance_type]
    borrows = sharing.strategy is SharingStrategy.LEND_AND_BORROW
    absolute = complete_all(limits, on.table)[instance_type].get(GPU, 0) if limits and borrows else None
    return TeamToday(
        team=team.name,
        quota=quota,
        limit=borrow_percent(sharing),
        absolute=absolute,
        least=min(-(-floor // unit) * unit, quota),
        most=None if share is None or share.ceiling is None else max(share.ceiling * size // unit * unit, quota),
        shares=not alone,
        moves=not why,
        borrows=borrows and not frozen and absolute is None and (written or quota > 0),
        never=(team.quota or ComputeQuotaConfig()).preempt_team_tasks is PreemptTeamTasks.NEVER,
        weight=team.fair_share_weight or 0,
        why_held=why,
    )


def _why_held(*reasons: tuple[str, bool]) -> str:
    return next((why for why, holds in reasons if holds), "")
