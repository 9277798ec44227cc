"""What is a cluster's first policy document to say? Today's quotas and cluster policy, so that nothing changes by it.

`draft_policy` is a pure function of a snapshot. It proves its answer: the document is read back by the product's own
parser and planned on the same snapshot, and what the plan would still change is taken out or frozen, with the reason.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from taskgov.allocation.capacity import count_capacity
from taskgov.allocation.changes import quota_sums
from taskgov.allocation.governed import NO_UPDATE_MENDS
from taskgov.allocation.planner import plan_quotas
from taskgov.backends.registry import backend_of
from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.instance_types import InstanceTypeTable, is_instance_type_name
from taskgov.hyperpod.model import ActivationState, Switch
from taskgov.kueue.record import FOREIGN
from taskgov.policy.backends import Backend
from taskgov.policy.document import CapacityRules, CoOwnedPolicy
from taskgov.policy.parse import parse_policy
from taskgov_cli.onboarding.first_teams import first_sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.allocation.capacity import TypeCapacity
    from taskgov.allocation.plan import Plan
    from taskgov.hyperpod.model import ComputeQuota
    from taskgov.policy.parse import ParsedPolicy
    from taskgov.snapshot.model import Snapshot
    from taskgov_cli.onboarding.first_teams import FirstTeams

GUARDRAILS: Final = {
    "maxDecreasePercent": 25,
    "maxDecreaseInstances": 1,
    "maxPreemptedGpus": 8,
    "approveAbove": {"changedGpus": 16},
}
"""Safe to begin with: as in the documentation's examples; they stop changes and never make one."""
MAX_OVERCOMMIT: Final = 1000
"""Percent that the document can declare (`docs/policy.md`)."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What there is of one instance type: machines, those that count now, and what quotas promise, in instances."""

    instance_type: str
    groups: tuple[str, ...]
    nodes: int
    usable: int
    promised: float
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A quota of today that the document does not have, and why; no plan touches it then."""

    quota: ComputeQuota
    because: str


@dataclass(frozen=True, slots=True)
class Draft:
    """The document as plain values, what was found, and the plan that proves it: empty, or the first quotas."""

    document: Mapping[str, Any]
    supply: tuple[Supply, ...]
    quotas: tuple[ComputeQuota, ...]
    """The quotas that the document promises, in the order of its teams."""
    left_out: tuple[LeftOut, ...]
    frozen: Mapping[str, str]
    """Team -> what a plan would do to its quota if it were not frozen."""
    scheduler_left_out: str | None
    """Why the cluster policy is not in the document; None when it is, or when there is none."""
    parsed: ParsedPolicy
    plan: Plan
    wanted: FirstTeams | None = None
    """With which teams the cluster begins, where it has no quotas yet."""


def draft_policy(snapshot: Snapshot, wanted: FirstTeams | None = None, co_owned: CoOwnedPolicy | None = None) -> Draft:
    """Return the first document of a cluster; planned on the same snapshot, it changes nothing.

    `wanted` says with which teams a cluster without quotas begins: their quotas are what the plan then creates.
    `co_owned` says how to treat quotas that infrastructure as code keeps too; None says nothing of them.
    Raises InvalidRequestError for a cluster that no document can name (a snapshot made by hand), and for teams that
    break rules or are wanted where there are quotas.
    """
    if violations := parse_policy(json.dumps(_head(snapshot))).violations:
        raise InvalidRequestError(f"no policy document can name cluster {snapshot.cluster.name}", violations)
    snapshot = replace(snapshot, policy=None, policy_version=None, policy_violations=(), policy_findings=())
    chosen, left_out = _choose(snapshot)
    capacities = _capacities(snapshot)
    sums = quota_sums(snapshot.quotas, capacities)
    base = _document(snapshot, chosen, overcommit=_overcommit(sums, capacities))
    if wanted is not None:
        base = _with_first_teams(snapshot, base, wanted, capacities)
    if co_owned is not None:
        base["coOwned"] = co_owned.value
    document, frozen, scheduler_left_out = base, dict[str, str](), None
    while True:
        parsed = parse_policy(json.dumps(document))
        assert parsed.document is not None, parsed.violations
        plan = plan_quotas(replace(snapshot, policy=parsed.document, policy_version="draft"), mode="plan")
        if not plan.changes or wanted is not None:
            break
        for change in plan.changes:
            if not change.team:  # of the cluster policy
                scheduler_left_out = _scheduler_trouble(snapshot)
            else:
                frozen[change.team] = change.because
        document = _frozen(base, frozen, without_scheduler=scheduler_left_out is not None)
    return Draft(
        document=document,
        supply=tuple(_supply(snapshot, sums, capacity) for capacity in capacities.values()),
        quotas=tuple(chosen),
        left_out=tuple(left_out),
        frozen=frozen,
        scheduler_left_out=scheduler_left_out,
        parsed=parsed,
        plan=plan,
        wanted=wanted,
    )


def _choose(snapshot: Snapshot) -> tuple[list[ComputeQuota], list[LeftOut]]:
    """Return one quota a team that a document can promise, and the others."""
    chosen: dict[str, ComputeQuota] = {}
    left_out: list[LeftOut] = []
    for quota in sorted(
        snapshot.quotas, key=lambda compute_quota: (compute_quota.compute_quota_target.team_name, compute_quota.name)
    ):
        team = quota.compute_quota_target.team_name
        because = _cannot_be_promised(snapshot, quota)
        if because is None and team in chosen:
            because = f"{team} has two quotas, and only {chosen[team].name} is governed"
        if because is None:
            chosen[team] = quota
        else:
            left_out.append(LeftOut(quota, because))
    return list(chosen.values()), left_out


def _cannot_be_promised(snapshot: Snapshot, quota: ComputeQuota) -> str | None:
    """Return why a quota has no place in a document; whether its words are allowed, the document's own rules say."""
    if quota.activation_state is ActivationState.DISABLED:
        return "it is switched off"
    # What somebody else made is in the document, or nobody could adopt it; until then no plan touches it.
    if quota.status in NO_UPDATE_MENDS and quota.status != FOREIGN:
        return f"its status is {quota.status}: {NO_UPDATE_MENDS[quota.status]}"
    alone = {**_head(snapshot), "teams": [_team(quota)]}
    violations = parse_policy(json.dumps(alone)).violations
    return "; ".join(map(str, violations)) or None


def _document(snapshot: Snapshot, quotas: Iterable[ComputeQuota], *, overcommit: int) -> dict[str, Any]:
    document = _head(snapshot)
    scheduler = snapshot.scheduler_config
    if scheduler is not None:
        document["schedulerConfig"] = scheduler.scheduler_config.to_api()
    document["teams"] = [_team(quota) for quota in quotas]
    if scheduler is not None and scheduler.scheduler_config.idle_resource_sharing is Switch.ENABLED:
        document["sharedPool"] = {"native": True}
    if overcommit:
        document["capacity"] = {"overcommitPercent": overcommit}
    document["guardrails"] = GUARDRAILS
    return document


def _with_first_teams(
    snapshot: Snapshot, base: Mapping[str, Any], wanted: FirstTeams, capacities: Mapping[str, TypeCapacity]
) -> dict[str, Any]:
    if snapshot.quotas:
        teams = ", ".join(sorted({quota.compute_quota_target.team_name for quota in snapshot.quotas}))
        rule = f"{snapshot.cluster.name} has quotas ({teams}), which the first document keeps: add teams afterwards"
        raise InvalidRequestError(rule)
    sections = first_sections(
        wanted, capacities, pool_is_native="sharedPool" in base, has_scheduler=snapshot.scheduler_config is not None
    )
    document = {**_head(snapshot), **base, **sections}
    if violations := parse_policy(json.dumps(document)).violations:
        raise InvalidRequestError("no document can have these teams", violations)
    return {key: document[key] for key in _ORDER if key in document}


_ORDER: Final = ("apiVersion", "cluster", "schedulerConfig", "teams", "sharedPool", "capacity", "guardrails")


def _head(snapshot: Snapshot) -> dict[str, Any]:
    cluster = {"name": snapshot.cluster.name, "arn": snapshot.cluster.arn}
    backend = _backend(snapshot)
    if backend is not Backend.SAGEMAKER:  # the default
        cluster["backend"] = backend.value
    return {"apiVersion": "taskgov/v1", "cluster": cluster}


def _backend(snapshot: Snapshot) -> Backend:
    return backend_of(
        snapshot.cluster.arn, lambda _: None if snapshot.policy is None else snapshot.policy.cluster.backend
    )


def _team(quota: ComputeQuota) -> dict[str, Any]:
    target = quota.compute_quota_target
    team: dict[str, Any] = {"name": target.team_name, "quota": quota.compute_quota_config.to_api()}
    if target.fair_share_weight is not None:
        team["fairShareWeight"] = target.fair_share_weight
    return team


def _frozen(base: Mapping[str, Any], frozen: Mapping[str, str], *, without_scheduler: bool) -> dict[str, Any]:
    document = {key: value for key, value in base.items() if not (without_scheduler and key == "schedulerConfig")}
    if frozen:
        document["guardrails"] = {**GUARDRAILS, "freeze": sorted(frozen)}
    return document


def _scheduler_trouble(snapshot: Snapshot) -> str:
    found = snapshot.scheduler_config
    status = "missing" if found is None else found.status
    reason = f" ({found.failure_reason})" if found is not None and found.failure_reason else ""
    return f"its status is {status}{reason}: to have it written again, put it back"


def _capacities(snapshot: Snapshot) -> dict[str, TypeCapacity]:
    """Count what there is, as the planner does with the document's defaults."""
    named = {
        row.instance_type for quota in snapshot.quotas for row in quota.compute_quota_config.compute_quota_resources
    }
    # As the planner has it: other machines are not capacity of HyperPod, whose types begin with ml.
    all_count = not _backend(snapshot).is_of_hyperpod
    nodes = (node for node in snapshot.nodes if node.instance_type)
    return count_capacity(
        (node for node in nodes if all_count or is_instance_type_name(node.instance_type)),
        CapacityRules(),
        snapshot.taken_at,
        InstanceTypeTable(),
        instance_types=named,
        memory_reserved_percent=snapshot.cluster.memory_reserved_percent,
        instance_groups=snapshot.cluster.instance_groups,
    )


def _overcommit(sums: Mapping[str, Mapping[str, int]], capacities: Mapping[str, TypeCapacity]) -> int:
    """Return the percent by which quotas exceed capacity at most; 0 where the document cannot declare as much."""
    percents = [0]
    for name, capacity in capacities.items():
        usable, promised = capacity.line.usable, ceil(_instances(sums.get(name, {}), capacity))
        if usable:
            percents.append(ceil(Fraction(max(promised - usable, 0) * 100, usable)))
    return max((percent for percent in percents if percent <= MAX_OVERCOMMIT), default=0)


def _instances(amounts: Mapping[str, int], capacity: TypeCapacity) -> Fraction:
    """Return amounts in instances, by the resource of which they take most."""
    per_instance = capacity.per_instance
    parts = (Fraction(amount, per_instance[name]) for name, amount in amounts.items() if per_instance.get(name))
    return max(parts, default=Fraction(0))


def _supply(snapshot: Snapshot, sums: Mapping[str, Mapping[str, int]], capacity: TypeCapacity) -> Supply:
    line = capacity.line
    mine = [node for node in snapshot.nodes if node.instance_type == line.instance_type]
    return Supply(
        instance_type=line.instance_type,
        groups=tuple(sorted({node.instance_group for node in mine if node.instance_group})),
        nodes=line.nodes,
        usable=line.usable,
        promised=float(_instances(sums.get(line.instance_type, {}), capacity)),
        left_out=line.left_out,
    )
