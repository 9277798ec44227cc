"""What holds for every plan of every week, and after every run. Each check yields sentences about what is wrong.

Path, writes, sums, limits, predictions and the way back are judged by the prover (`tests.prove`); what is here needs
the cluster of before and after, and what somebody else did to it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.plan import Plan
from taskgov.hyperpod.model import ActivationState, ComputeQuota, ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.document import PolicyDocument
from taskgov.policy.measured import Unit
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AnnouncedWrite, AppliedQuota
from tests.prove.account import is_policy
from tests.prove.amounts import EFA, Book, in_parts, resources_of
from tests.prove.facts import NEVER_IN_FORCE, Facts, facts_of
from tests.prove.goal import UNLIMITED, Planner
from tests.prove.path import waves_of
from tests.prove.sameness import config_key, target_key
from tests.prove.writing import write_path

TO_DELETE: Final = frozenset(
    {"CreateFailed", "CreateRollbackFailed", "UpdateRollbackFailed", "DeleteFailed", "DeleteRollbackFailed"}
)
"""Statuses that only deletion fixes; a governed quota is deleted and created again, even if a person edited it."""


def byte_failures(snapshot: Snapshot, plan: Plan, planner: Planner) -> Iterator[str]:
    """The same snapshot gives the same bytes, also after a journey."""
    if plan_to_json(planner(snapshot_from_json(snapshot_to_json(snapshot)))) != plan_to_json(plan):
        yield "the same snapshot gives another plan after a journey"


def left_alone_failures(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Quotas that the document leaves alone are not written."""
    alone = set(left_alone(snapshot))
    for change in plan.changes:
        if not is_policy(change) and change.resource_id in alone:
            yield f"{change.name} is left alone, and is written"


def left_alone(snapshot: Snapshot) -> Iterator[str]:
    """Yield the ids of the quotas that nothing changes: strangers, frozen, switched off, being deleted, kept edits."""
    policy = snapshot.policy
    if policy is None:
        yield from (quota.compute_quota_id for quota in snapshot.quotas)
        return
    named = {team.name for team in policy.teams} | pool_of(snapshot)
    applied = {item.compute_quota_id: item for item in snapshot.applied}
    for quota in snapshot.quotas:
        team, edited = quota.compute_quota_target.team_name, _edited(quota, applied.get(quota.compute_quota_id))
        if (
            team not in named
            or team in policy.guardrails.freeze
            or quota.activation_state is ActivationState.DISABLED
            or quota.status == "Deleting"
            or (edited and policy.hand_edits == "keep" and quota.status not in TO_DELETE)
        ):
            yield quota.compute_quota_id


def _edited(quota: ComputeQuota, record: AppliedQuota | None) -> bool:
    """Say whether somebody changed a quota after taskgov's last write, be it recorded or only announced."""
    if record is None or quota.compute_quota_version <= record.version:
        return False
    announced = record.announced
    ours: list[AppliedQuota | AnnouncedWrite] = [record]
    ours += [announced] if announced is not None and announced.version == quota.compute_quota_version else []
    stands = config_key(quota.compute_quota_config), target_key(quota.compute_quota_target)
    return all(stands != (config_key(each.config), target_key(each.target)) for each in ours)


def pool_of(snapshot: Snapshot) -> set[str]:
    """Return the team of taskgov's shared pool; None where HyperPod keeps idle resources."""
    policy = snapshot.policy
    if policy is None or policy.shared_pool is None or policy.shared_pool.native:
        return set()
    told = policy.scheduler_config and policy.scheduler_config.idle_resource_sharing
    stands = snapshot.scheduler_config and snapshot.scheduler_config.scheduler_config.idle_resource_sharing
    return set() if (told or stands) == "Enabled" else {policy.shared_pool.team}


def floor_failures(facts: Facts, after: Snapshot) -> Iterator[str]:
    """Nobody goes below the floor of his share where he stood on it, unless not even the floors fit.

    An adopted edit takes the place of a share, and has no floor.
    """
    policy = facts.snapshot.policy
    if policy is None or policy.capacity.basis != "instances" or policy.hand_edits == "adopt":
        return
    scaled = {str(finding.subject) for finding in facts.plan.findings if finding.code == "floors-exceed-capacity"} | {
        line.instance_type for line in facts.plan.capacity if not line.nodes
    }
    before, now = (_by_team(snapshot) for snapshot in (facts.snapshot, after))
    for team in policy.teams:
        for share in team.share:
            name = share.instance_type
            if name in scaled or name not in facts.book:
                continue
            stood, stands = (_instances(held.get(team.name), name, facts.book) for held in (before, now))
            if share.unit is Unit.INSTANCES and stood >= share.floor > stands:
                yield f"{team.name} falls below its floor of {share.floor} {name}: {stood} -> {stands}"


def pool_failures(facts: Facts, after: Snapshot) -> Iterator[str]:
    """Where all is in whole instances, the shared pool has what the others leave of the capacity."""
    pool = facts.pool
    if pool is None or not _is_kept_by_us(facts, pool):
        return
    for line in facts.plan.capacity:
        rows = [
            (quota.compute_quota_target.team_name, row)
            for quota in after.quotas
            for row in quota.compute_quota_config.compute_quota_resources
            if row.instance_type == line.instance_type
        ]
        if not line.nodes or line.one_thread or any(in_parts(row) for _, row in rows):
            continue
        if any(in_parts(row) for row in _promised(facts.snapshot.policy, line.instance_type)):
            continue
        others = sum(row.count or 0 for team, row in rows if team != pool)
        kept = sum(row.count or 0 for team, row in rows if team == pool)
        if kept != max(line.usable - others, 0):
            yield f"the pool keeps {kept} {line.instance_type}: {line.usable} are usable, others have {others}"


def _is_kept_by_us(facts: Facts, pool: str) -> bool:
    snapshot, policy = facts.snapshot, facts.snapshot.policy
    if policy is None or pool not in pool_of(snapshot) or policy.capacity.basis != "instances":
        return False
    alone = set(left_alone(snapshot))
    held = [quota for quota in snapshot.quotas if quota.compute_quota_target.team_name == pool]
    out_of_reach = {"no-room", "unknown-instance-type"} & {finding.code for finding in facts.plan.findings}
    is_left = pool in policy.guardrails.freeze or any(quota.compute_quota_id in alone for quota in held)
    return not is_left and not out_of_reach


def _promised(policy: PolicyDocument | None, instance_type: str) -> Iterator[ComputeQuotaResource]:
    for team in policy.teams if policy else ():
        for row in team.quota.compute_quota_resources if team.quota else ():
            if row.instance_type == instance_type:
                yield row


def _by_team(snapshot: Snapshot) -> Mapping[str, ComputeQuotaConfig]:
    """Return the first quota of each team by name, as the product does."""
    held: dict[str, ComputeQuotaConfig] = {}
    for quota in sorted(snapshot.quotas, key=lambda quota: quota.name):
        if quota.status not in NEVER_IN_FORCE:
            held.setdefault(quota.compute_quota_target.team_name, quota.compute_quota_config)
    return held


def _instances(config: ComputeQuotaConfig | None, instance_type: str, book: Book) -> Fraction:
    """Return how many whole instances of a type a config promises."""
    whole = book[instance_type].whole()
    vector = resources_of(config, book)
    parts = [
        Fraction(vector.get((instance_type, name), 0), whole[name]) for name in whole if whole[name] and name != EFA
    ]
    return min(parts, default=Fraction(0))


def memory_failures(snapshot: Snapshot, planner: Planner) -> Iterator[str]:
    """What is reached does not depend on the way: a cluster without any quota would come to the same numbers.

    What the document says nothing of stays as it is, and so does what it does not govern; types without nodes keep what
    they have. Where something is remembered on purpose (demand, adopted edits), there is nothing to compare.
    """
    policy = snapshot.policy
    if policy is None or policy.demand.enabled or any(item.adopted for item in snapshot.applied):
        return
    free = policy.model_copy(update={"guardrails": policy.guardrails.model_copy(update=UNLIMITED)})
    here = replace(snapshot, policy=free)
    alone = set(left_alone(here))
    mine = tuple(quota for quota in snapshot.quotas if quota.compute_quota_id in alone)
    if len({quota.compute_quota_target.team_name for quota in snapshot.quotas}) < len(snapshot.quotas):
        return  # a second quota of a team: which one is governed depends on their names
    if policy.hand_edits == "adopt" or any(quota.status != "Created" and "Failed" in quota.status for quota in mine):
        return
    kept = tuple(item for item in snapshot.applied if item.compute_quota_id in alone)
    new = replace(here, quotas=mine, applied=kept)
    ends = [_end(each, planner) for each in (here, new)]
    for team in sorted({*ends[0], *ends[1]}):
        if ends[0].get(team, {}) != ends[1].get(team, {}):
            yield f"{team} has {ends[0].get(team)}, on a cluster without quotas it would have {ends[1].get(team)}"


def _end(snapshot: Snapshot, planner: Planner) -> dict[str, dict[tuple[str, str], int]]:
    """Return what each team has when the plan was written, on types with nodes."""
    facts = facts_of(snapshot, planner(snapshot))
    with_nodes = {line.instance_type for line in facts.plan.capacity if line.nodes and line.instance_type in facts.book}
    written = write_path(facts, waves_of(facts.plan))
    found: dict[str, dict[tuple[str, str], int]] = {}
    for quota in written.account.quotas.values():
        vector = resources_of(quota.compute_quota_config, facts.book)
        held = {key: amount for key, amount in vector.items() if amount and key[0] in with_nodes}
        if held:
            found.setdefault(quota.compute_quota_target.team_name, {}).update(held)
    return found


def resting_failures(
    snapshot: Snapshot, recheck_at: datetime | None, time: timedelta, planner: Planner
) -> Iterator[str]:
    """Until `recheckAt` time alone changes nothing.

    Not where demand is looked at, which moves with what is used, and where that was not looked at for long.
    """
    policy = snapshot.policy
    if policy is None or policy.demand.enabled:
        return
    until = snapshot.taken_at + time
    last = until if recheck_at is None else min(until, recheck_at - timedelta(seconds=1))
    if last <= snapshot.taken_at:
        return
    later = planner(replace(snapshot, taken_at=last))
    if later.changes:
        names = ", ".join(f"{change.kind.value} {change.name}: {change.because}" for change in later.changes)
        yield f"at {last} time alone brings changes, and {recheck_at} was to be looked at: {names}"


def lease_failures(snapshot: Snapshot, planner: Planner) -> Iterator[str]:
    """What leases move is all that they change: without them, each team has so many machines less, or more.

    Told where all is in whole instances of known types that have nodes, and limits are out of the way.
    """
    policy = snapshot.policy
    if (
        policy is None
        or policy.demand.enabled
        or not any(lease.start <= snapshot.taken_at <= lease.end for lease in policy.leases)
    ):
        return
    free = policy.model_copy(update={"guardrails": policy.guardrails.model_copy(update=UNLIMITED)})
    here = replace(snapshot, policy=free)
    plan = planner(here)
    given = {
        (*(finding.evidence.get(name) for name in ("instanceType", "count", "start", "end")), finding.subject): (
            finding.evidence.get("given", 0)
        )
        for finding in plan.findings
        if finding.code in {"lease-refused", "lease-partial"}
    }
    moved: dict[tuple[str, str], int] = {}
    for lease in policy.leases:
        told = (lease.start.isoformat(), lease.end.isoformat(), f"{lease.from_} -> {lease.to}")
        amount = int(given.get((lease.instance_type, lease.count, *told), lease.count))
        if lease.start <= snapshot.taken_at < lease.end:
            for team, count in ((lease.to, amount), (lease.from_, -amount)):
                moved[team, lease.instance_type] = moved.get((team, lease.instance_type), 0) + count
    without = replace(here, policy=free.model_copy(update={"leases": ()}))
    ends = [_counts(replace(each), planner) for each in (here, without)]
    for team, name in sorted({*ends[0], *ends[1]}):
        one, other = ends[0].get((team, name), 0), ends[1].get((team, name), 0)
        if one is not None and other is not None and one - other != moved.get((team, name), 0):
            yield f"{team} has {one} {name}, without leases {other}: {moved.get((team, name), 0)} are leased"


def _counts(snapshot: Snapshot, planner: Planner) -> dict[tuple[str, str], int | None]:
    """Return the instances of each team and type when the plan was written; None for a type that has parts too."""
    facts = facts_of(snapshot, planner(snapshot))
    written = write_path(facts, waves_of(facts.plan))
    rows = [
        (quota.compute_quota_target.team_name, row)
        for quota in written.account.quotas.values()
        for row in quota.compute_quota_config.compute_quota_resources
    ]
    partly = {row.instance_type for _, row in rows if in_parts(row)}
    empty = {line.instance_type for line in facts.plan.capacity if not line.nodes or line.one_thread}
    found: dict[tuple[str, str], int | None] = {}
    for team, row in rows:
        key = team, row.instance_type
        odd = row.instance_type in partly | empty or row.instance_type not in facts.book
        found[key] = None if odd else (found.get(key) or 0) + (row.count or 0)
    return found
