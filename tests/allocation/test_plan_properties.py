"""What holds for every plan of every world."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.codec import changes_sha256, plan_from_json, plan_to_json
from taskgov.allocation.parts import need
from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.codec import snapshot_from_json, snapshot_sha256, snapshot_to_json
from taskgov.snapshot.model import GroupInstanceType, InstanceGroup, Node, Snapshot
from taskgov.snapshot.threads import Threads
from tests.allocation.world import (
    C5,
    G5,
    NOW,
    P5,
    applied,
    broken,
    config,
    document,
    minutes,
    nodes,
    quota,
    row,
    snapshot,
)

TABLE = InstanceTypeTable()
TYPES = (G5, P5, C5)
SINGLE = InstanceGroup("single", tuple(GroupInstanceType(each, threads_per_core=1) for each in TYPES))
"""A group whose cores run one thread: half of the vCPUs."""
PROFILES = ("mig-1g.10gb", "mig-3g.40gb")
TEAMS = ("ant", "bee", "cat", "dog", "elk")
MINIMA = st.sampled_from([{}, {"ant": 8}, {"bee": 2, "cat": 1}])


def rows(draw: st.DrawFn, *, parts: bool) -> list[Mapping[str, object]]:
    drawn = draw(st.lists(st.sampled_from(TYPES), unique=True, max_size=3))
    promised = [_row(draw, instance_type, parts=parts) for instance_type in drawn]
    profiles = draw(st.lists(st.sampled_from(PROFILES), unique=True, max_size=2)) if parts else []
    return promised + [
        row(P5, AcceleratorPartition={"Type": each, "Count": draw(st.integers(0, 9))}) for each in profiles
    ]


def _row(draw: st.DrawFn, instance_type: str, *, parts: bool) -> Mapping[str, object]:
    given: dict[str, object] = {"InstanceType": instance_type}
    kinds = ["Count", "VCpu", *(["Accelerators"] if instance_type != C5 else [])] if parts else ["Count"]
    kind = draw(st.sampled_from(kinds))
    given[kind] = draw(st.integers(0, 8))
    if kind == "Accelerators" and draw(st.booleans()):
        given["VCpu"] = draw(st.integers(0, 100))
    return given


@st.composite
def documents(draw: st.DrawFn, *, parts: bool) -> PolicyDocument:
    teams: list[dict[str, object]] = []
    for name in draw(st.lists(st.sampled_from(TEAMS), unique=True, max_size=4)):
        promised = rows(draw, parts=parts)
        taken = {each["InstanceType"] for each in promised}
        free = [instance_type for instance_type in TYPES if instance_type not in taken]
        shares = [
            {"instanceType": each, "percent": draw(st.integers(0, 30)), "floor": draw(st.integers(0, 2))}
            for each in (draw(st.lists(st.sampled_from(free), unique=True, max_size=2)) if free else [])
        ]
        tier = draw(st.integers(1, 3))
        teams.append({"name": name, "tier": tier, "quota": config(*promised), "share": shares})
    return document(
        *teams,
        pool=draw(st.booleans()),
        guardrails={"minimumQuota": draw(MINIMA)},
        capacity={"headroomPercent": draw(st.sampled_from([0, 10]))},
    )


@st.composite
def worlds(draw: st.DrawFn, *, parts: bool = True) -> Snapshot:
    cluster: list[Node] = []
    for instance_type in draw(st.lists(st.sampled_from(TYPES), unique=True, min_size=1)):
        cluster += nodes(draw(st.integers(0, 8)), instance_type, instance_group=draw(st.sampled_from([None, "single"])))
        cluster += nodes(draw(st.integers(0, 2)), instance_type, f"more-{instance_type}", instance_group="single")
        cluster += broken(draw(st.integers(0, 2)), instance_type)
        cluster += nodes(
            draw(st.integers(0, 1)), instance_type, "held", cordoned=True, unhealthy_since=NOW - minutes(1)
        )
    quotas = [
        quota(team, *rows(draw, parts=parts), version=draw(st.integers(1, 9)))
        for team in draw(st.lists(st.sampled_from([*TEAMS, "shared-pool"]), unique=True, max_size=4))
    ]
    world = snapshot(draw(documents(parts=parts)), cluster, quotas)
    return replace(world, cluster=replace(world.cluster, instance_groups=(SINGLE,)))


def plan_of(world: Snapshot) -> Plan:
    return plan_quotas(world, mode="apply")


def sums_of(world: Snapshot) -> Counter[tuple[str, str]]:
    total: Counter[tuple[str, str]] = Counter()
    threads = Threads(world.cluster.instance_groups)
    for each in world.quotas:
        for held in each.compute_quota_config.compute_quota_resources:
            counted = [n for n in world.nodes if n.instance_type == held.instance_type and n.health is None]
            numbers = threads.least(counted, TABLE.require(held.instance_type))
            for resource, amount in (need(held, numbers) or {}).items():
                total[held.instance_type, resource] += amount
    return total


def limits_of(plan: Plan) -> Counter[tuple[str, str]]:
    return Counter({(line.instance_type, r): amount for line in plan.capacity for r, amount in line.resources.items()})


@given(worlds())
def test_no_step_of_a_plan_lets_the_sum_overshoot(world: Snapshot) -> None:
    plan = plan_of(world)
    before, limits = sums_of(world), limits_of(plan)
    for written in range(1, len(plan.changes) + 1):
        after = sums_of(applied(world, plan, up_to=written))
        assert all(amount <= max(limits[key], before[key]) for key, amount in after.items())


@given(worlds())
def test_after_a_plan_the_governed_fit_beside_what_is_left_alone(world: Snapshot) -> None:
    plan = plan_of(world)
    if plan.recheck_at == NOW + minutes(1):
        return  # some give in this run and take in the next
    kept = [each for each in world.quotas if each.compute_quota_target.team_name in strangers(world)]
    taken = sums_of(replace(world, quotas=tuple(kept)))
    without_nodes = {line.instance_type for line in plan.capacity if not line.nodes}
    for key, amount in sums_of(applied(world, plan)).items():
        assert key[0] in without_nodes or amount <= max(limits_of(plan)[key], taken[key])


def strangers(world: Snapshot) -> set[str]:
    assert world.policy is not None
    pool = {world.policy.shared_pool.team} if world.policy.shared_pool else set()
    return {each.compute_quota_target.team_name for each in world.quotas} - pool - {t.name for t in world.policy.teams}


@given(worlds())
def test_a_plan_applied_to_its_own_result_is_empty(world: Snapshot) -> None:
    for _ in range(2):
        world = applied(world, plan_of(world))
    assert plan_of(world).changes == ()


@given(worlds(parts=False))
def test_with_a_pool_the_sum_is_the_capacity(world: Snapshot) -> None:
    policy = world.policy
    if policy is None or policy.shared_pool is None:
        return
    world = replace(world, quotas=())
    plan = plan_of(world)
    limits = limits_of(plan)
    for line in plan.capacity:
        if 0 < line.one_thread < line.counted:  # whole instances have the fewer vCPUs, only parts can have the rest
            limits[line.instance_type, "cpu"] = line.usable * TABLE.require(line.instance_type).vcpu * 500
    assert sums_of(applied(world, plan)) == limits


@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_nodes_quotas_and_teams_does_not_matter(world: Snapshot, random: Random) -> None:
    assert world.policy is not None
    teams, cluster, quotas = list(world.policy.teams), list(world.nodes), list(world.quotas)
    for each in (teams, cluster, quotas):
        random.shuffle(each)
    policy = world.policy.model_copy(update={"teams": tuple(teams)})
    shuffled = plan_of(replace(world, policy=policy, nodes=tuple(cluster), quotas=tuple(quotas)))
    plan = plan_of(world)
    assert changes_sha256(shuffled) == changes_sha256(plan)
    assert shuffled.allocations == plan.allocations
    assert shuffled.findings == plan.findings


@given(worlds())
def test_the_same_snapshot_gives_the_same_bytes_after_a_journey(world: Snapshot) -> None:
    travelled = snapshot_from_json(snapshot_to_json(world))
    assert travelled == world
    assert plan_to_json(plan_of(travelled)) == plan_to_json(plan_of(world))


@given(worlds())
def test_a_plan_survives_its_bytes(world: Snapshot) -> None:
    plan = plan_of(world)
    assert plan_from_json(plan_to_json(plan)) == plan
    assert plan.snapshot_sha256 == snapshot_sha256(world)
