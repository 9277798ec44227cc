"""Worlds in which a plan is cut back: quotas that stand, what they are to become, and the limits of the document."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from taskgov.allocation.capacity import TypeCapacity, count_capacity
from taskgov.allocation.goals import Goal
from taskgov.allocation.leases import Given
from taskgov.allocation.partial import HeldBack, hold_back
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.policy.document import CapacityRules
from taskgov.policy.measured import Lease
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota
from tests.allocation.world import NOW, config, document, fixed, nodes, quota, snapshot

POOL: Final = "shared-pool"
Rows = Sequence[Mapping[str, Any]]
DECREASES: Final[Mapping[str, Any]] = {"maxDecreasePercent": 25, "onLimit": "partial"}
STEP: Final[Mapping[str, Any]] = {**DECREASES, "maxIncreasePercent": 50}


@dataclass(frozen=True)
class World:
    """Quotas that stand, what they are to become, and the document's limits."""

    machines: Mapping[str, int]
    stands: Mapping[str, Rows]
    wanted: Mapping[str, Rows]
    guardrails: Mapping[str, Any]
    left_alone: Mapping[str, Rows]
    leases: Sequence[Lease] = ()
    applied: Mapping[str, AppliedQuota] | None = None
    now: datetime = NOW
    pool: bool = True
    tiers: Mapping[str, int] | None = None

    @property
    def snapshot(self) -> Snapshot:
        teams = sorted({*self.stands, *self.wanted} - {POOL})
        tiers = self.tiers or {}
        policy = document(
            *(fixed(team, tier=tiers.get(team, 1)) for team in teams),
            guardrails=self.guardrails,
            leases=[lease.model_dump(by_alias=True) for lease in self.leases],
            pool=self.pool,
        )
        held = {team: quota(team, *rows) for team, rows in {**self.stands, **self.left_alone}.items()}
        machines = tuple(node for name, count in self.machines.items() for node in nodes(count, name))
        records = tuple((self.applied or {}).values())
        return replace(snapshot(policy, machines, tuple(held.values()), now=self.now), applied=records)

    @property
    def capacities(self) -> Mapping[str, TypeCapacity]:
        rows = [row for each in (self.stands, self.wanted, self.left_alone) for rows in each.values() for row in rows]
        types = {each["InstanceType"] for each in rows}
        machines = self.snapshot.nodes
        return count_capacity(machines, CapacityRules(), NOW, InstanceTypeTable(), instance_types=types)

    def goals(self) -> list[Goal]:
        goals = []
        for team in sorted({*self.stands, *self.wanted}):
            stands = as_config(self.stands.get(team, ()))
            goals.append(
                Goal(
                    name=f"{team}-quota",
                    team=team,
                    before=stands,
                    stands=stands,
                    after=as_config(self.wanted.get(team, ())),
                    applied=(self.applied or {}).get(team),
                    is_pool=team == POOL,
                    tier=(self.tiers or {}).get(team, 1),
                )
            )
        return goals

    def held_back(self) -> HeldBack:
        world = self.snapshot
        assert world.policy is not None
        return hold_back(
            world, world.policy, self.goals(), [Given(each, each.count) for each in self.leases], self.capacities
        )


def a_world(
    stands: Mapping[str, Rows], wanted: Mapping[str, Rows], machines: Mapping[str, int], **fields: Any
) -> World:
    guardrails = fields.pop("guardrails", STEP)
    return World(machines, stands, wanted, guardrails, fields.pop("left_alone", {}), **fields)


def as_config(rows: Iterable[Mapping[str, Any]]) -> ComputeQuotaConfig:
    return ComputeQuotaConfig.model_validate(config(*rows))


def rows_of(held: HeldBack) -> dict[str, list[dict[str, Any]]]:
    return {goal.team: [row.to_api() for row in goal.after.compute_quota_resources] for goal in held.goals}


def counts_of(held: HeldBack) -> dict[str, int]:
    return {goal.team: sum(row.count or 0 for row in goal.after.compute_quota_resources) for goal in held.goals}
