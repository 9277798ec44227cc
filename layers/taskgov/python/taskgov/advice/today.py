"""What may advice change? How each team stands today on one instance type, and the bounds of its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskgov.advice.rules import Rule
from taskgov.hyperpod.borrowing import borrow_percent, sharing_of
from taskgov.hyperpod.model import ComputeQuotaConfig, PreemptTeamTasks, SharingStrategy, Switch
from taskgov.policy.measured import Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.hyperpod.model import ComputeQuotaResource
    from taskgov.policy.document import PolicyDocument, TeamPolicy
    from taskgov.policy.measured import Share


@dataclass(frozen=True, slots=True)
class TeamToday:
    """A team on one instance type. Numbers are GPUs; `least` and `most` bound what its quota may become."""

    team: str
    quota: int
    limit: int = 100
    """The borrow limit, in percent of the quota."""
    least: int = 1
    most: int | None = None
    shares: bool = True
    """Whether it lends and is lent to: `DontLend` stands alone."""
    moves: bool = True
    """Whether its quota may become another."""
    borrows: bool = True
    """Whether its limit may become another."""
    never: bool = False
    """`PreemptTeamTasks: Never`."""
    weight: int = 0
    why_held: str = ""
    """Why its quota stays as it is; empty where it may move."""


@dataclass(frozen=True, slots=True)
class Today:
    """All teams of an instance type, by name; the GPUs that quotas are counted in; how idle quota is given out."""

    teams: tuple[TeamToday, ...]
    unit: int = 1
    fair: bool = True
    rule: Rule = Rule.TODAY
    """The rule that made its quotas, where one did."""

    @property
    def total(self) -> int:
        """GPUs of all quotas."""
        return sum(team.quota for team in self.teams)


def today_of(document: PolicyDocument, instance_type: str, per_instance: int, quotas: Mapping[str, int]) -> Today:
    """Return how a document's teams stand on an instance type of so many GPUs each, and what of it may change.

    `quotas` are the GPUs that each team is planned to have. Kept are floors, ceilings, `minimumQuota`, strategies,
    teams that are frozen or stand alone (`DontLend`), absolute limits, and quotas that are not written in whole
    instances or GPUs of this type. Teams are counted in whole instances where one of them is written in instances.
    """
    teams = [(team, quotas.get(team.name, 0)) for team in document.teams]
    unit = per_instance if any(_in_instances(team, instance_type) for team, _ in teams) else 1
    rows = [_team(document, team, instance_type, per_instance, unit, quota) for team, quota in teams]
    scheduler = document.scheduler_config
    fair = scheduler is None or scheduler.fair_share is not Switch.DISABLED
    return Today(tuple(sorted(rows, key=lambda row: row.team)), unit, fair)


def gpu_types(document: PolicyDocument) -> dict[str, int]:
    """Return the instance types with GPUs that teams are promised, by name, and how many GPUs one of them has."""
    named = {
        row.instance_type
        for team in document.teams
        for row in (team.quota.compute_quota_resources if team.quota else ())
    } | {share.instance_type for team in document.teams for share in team.share}
    table = document.instance_type_table()
    return {name: found.gpu for name in sorted(named) if (found := table.resources_of(name)) is not None and found.gpu}


def row_of(team: TeamPolicy, instance_type: str) -> ComputeQuotaResource | None:
    """Return the fixed promise of a team on an instance type that is written in instances or GPUs alone."""
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
    """Return the share of a team on an instance type that is counted in instances or GPUs."""
    wanted = {Unit.INSTANCES, Unit.ACCELERATORS}
    return next((share for share in team.share if share.instance_type == instance_type and share.unit in wanted), None)


def _in_instances(team: TeamPolicy, instance_type: str) -> bool:
    row, share = row_of(team, instance_type), share_of(team, instance_type)
    return (row is not None and row.count is not None) or (share is not None and share.unit is Unit.INSTANCES)


def _team(
    document: PolicyDocument, team: TeamPolicy, instance_type: str, per_instance: int, unit: int, quota: int
) -> TeamToday:
    sharing = sharing_of(team.quota or ComputeQuotaConfig())
    share = share_of(team, instance_type)
    size = per_instance if share is not None and share.unit is Unit.INSTANCES else 1
    floor = max(share.floor * size if share else 0, document.guardrails.minimum_quota.get(team.name, 0), unit)
    frozen = team.name in document.guardrails.freeze
    alone = sharing.strategy is SharingStrategy.DONT_LEND
    written = share is not None or row_of(team, instance_type) is not None
    why = _why_held(
        ("it is frozen", frozen),
        ("it lends nothing (DontLend)", alone),
        (f"its quota on {instance_type} is not written in whole instances or GPUs", not written),
        (f"it holds {quota} GPUs, which is no multiple of {unit}", quota % unit != 0),
    )
    absolute = {limit.instance_type for limit in sharing.absolute_borrow_limits or ()}
    return TeamToday(
        team=team.name,
        quota=quota,
        limit=borrow_percent(sharing),
        least=min(-(-floor // unit) * unit, quota),
        most=None if share is None or share.ceiling is None else max(share.ceiling * size // unit * unit, quota),
        shares=not alone,
        moves=not why,
        borrows=sharing.strategy is SharingStrategy.LEND_AND_BORROW and not frozen and instance_type not in absolute,
        never=(team.quota or ComputeQuotaConfig()).preempt_team_tasks is PreemptTeamTasks.NEVER,
        weight=team.fair_share_weight or 0,
        why_held=why,
    )


def _why_held(*reasons: tuple[str, bool]) -> str:
    return next((why for why, holds in reasons if holds), "")
