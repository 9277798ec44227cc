"""Whether one node more gives nobody less: pairs of worlds, without leases and demand, the second with another node.

It is looked at what is planned, type by type, whether a guardrail stops it or not (`onLimit: block`). Left out is what
the documentation does not guarantee, with the reason:

| left out | because |
| --- | --- |
| leases | a donor that has more can give more, and a lease that was refused is given then |
| demand | it lowers what is promised by what was used, not by what there is |
| basis `allocatable` | a smaller node changes what an instance is |
| promises in different units on one type | each unit is rounded by itself, and one grain cuts them all |
| rows of parts that give several units | they complement one another, and are cut by the largest |
| types without nodes | nothing is added or taken there until the first node comes, and the promises are divided then |
| the shared pool | it has what is left, which is less when promises get more |
| quotas that no wave can write | what has room depends on all others |

Quotas that are left alone may be whatever they are: they are the same in both worlds.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from itertools import groupby

from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.model import KueueObjects, Node, Snapshot
from tests.prove.facts import facts_of
from tests.prove.goal import Planner
from tests.prove.path import waves_of
from tests.prove.table import given_by, rows_of
from tests.prove.writing import write_path

LONG = timedelta(days=30)
CANNOT_BE_WRITTEN = frozenset({"no-room", "unknown-instance-type"})
Held = dict[tuple[str, str, str], Fraction]
"""Team, instance type and unit -> amount."""


def monotone_failures(snapshot: Snapshot, planner: Planner) -> Iterator[str]:
    """Yield who is planned less of a type when there is one node more of it."""
    plain = without_what_varies(snapshot)
    if plain is None:
        return
    types = sorted({node.instance_type for node in plain.nodes})
    compared = [name for name in types if plain.policy and promised_unit(plain.policy, name) is not None]
    if not compared:
        return
    before, left_out = _planned(plain, planner)
    for name in compared:
        after, left_out_then = _planned(with_node(plain, name), planner)
        for (team, instance_type, unit), amount in sorted(before.items()):
            if instance_type != name or team in left_out | left_out_then:
                continue
            then = after.get((team, instance_type, unit), Fraction(0))
            if then < amount:
                yield f"{team} has {amount} {unit} of {name}, and {then} with one node more"


def without_what_varies(snapshot: Snapshot) -> Snapshot | None:
    """Return the world without leases, demand, refusals, partial plans and work; None where nothing is promised."""
    policy = snapshot.policy
    if policy is None or policy.capacity.basis == "allocatable":
        return None
    guardrails = policy.guardrails.model_copy(update={"on_limit": "block"})
    demand = policy.demand.model_copy(update={"enabled": False})
    plain = policy.model_copy(update={"leases": (), "demand": demand, "guardrails": guardrails})
    return replace(snapshot, policy=plain, kueue=KueueObjects(), refusals=())


def with_node(snapshot: Snapshot, instance_type: str) -> Snapshot:
    """Return the world with another node of a type, healthy since long ago."""
    node = Node(
        name=f"{instance_type}-another",
        instance_type=instance_type,
        instance_group="workers",
        healthy_since=snapshot.taken_at - LONG,
        found_healthy=True,
    )
    return replace(snapshot, nodes=(*snapshot.nodes, node))


def promised_unit(policy: PolicyDocument, instance_type: str) -> str | None:
    """Return the one unit in which everything on a type is promised; None where there are several, or nothing.

    Parts are compared where all promises are fixed, or all are shares.
    """
    fixed = [row for row in _rows(policy) if row.instance_type == instance_type]
    shares = [share for team in policy.teams for share in team.share if share.instance_type == instance_type]
    units = {" and ".join(sorted(given_by(row))) for row in fixed}
    names = {"instances": "Count", "accelerators": "Accelerators", "vcpu": "VCpu", "memoryInGiB": "MemoryInGiB"}
    units |= {names.get(share.unit, share.accelerator_partition_type or "") for share in shares}
    if len(units) != 1:
        return None
    [unit] = units
    is_mixed = bool(fixed) and bool(shares)
    return None if " and " in unit or (is_mixed and unit != "Count") else unit


def _rows(policy: PolicyDocument) -> Iterator[ComputeQuotaResource]:
    for team in policy.teams:
        yield from team.quota.compute_quota_resources if team.quota else ()


def _planned(snapshot: Snapshot, planner: Planner) -> tuple[Held, set[str]]:
    """Return what the teams have at the end of the plan, by type and unit, and whose quota cannot be written.

    A quota that an edit made of something else than the document's unit is left out with them.
    """
    plan = planner(snapshot)
    facts = facts_of(snapshot, plan)
    account = write_path(facts, waves_of(plan)).account
    left_out = {finding.subject for finding in plan.findings if finding.code in CANNOT_BE_WRITTEN}
    if facts.pool is not None:
        left_out.add(facts.pool)
    adopted = {item.compute_quota_id for item in snapshot.applied}
    held: Held = {}
    quotas = sorted(account.quotas.values(), key=lambda quota: quota.compute_quota_target.team_name)
    for team, mine in groupby(quotas, key=lambda quota: quota.compute_quota_target.team_name):
        for quota in mine:
            if snapshot.policy and snapshot.policy.hand_edits == "adopt" and quota.compute_quota_id in adopted:
                left_out.add(team)
            for (instance_type, _), row in rows_of(quota).items():
                for unit, amount in row.items():
                    key = team, instance_type, unit
                    held[key] = held.get(key, Fraction(0)) + amount
    return held, left_out
