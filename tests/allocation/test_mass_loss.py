"""A sudden loss of nodes that nobody confirms lowers no quota before a person approves it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.mass_loss import loss_findings, mass_losses, settled
from taskgov.allocation.plan import Outcome, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.findings import Severity
from taskgov.hyperpod.model import ComputeQuota
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.memory import NodeMemory, remember_nodes
from taskgov.snapshot.model import InstanceGroup, Node, Snapshot, Taint
from taskgov.snapshot.records import AppliedQuota
from tests.allocation.world import G5, NOW, P5, applied, document, fixed, quota, row, share, snapshot

HOLD = 10
"""Minutes: the default of `capacity.holdUnhealthyMinutes`."""
EVERYTHING = document(share("team-a", 100))


def machines(count: int, instance_type: str = G5, **fields: Any) -> dict[str, Node]:
    """Return healthy nodes by name, as Kubernetes and SageMaker both list them."""
    prefix = instance_type.split(".")[1]
    found = (
        Node(f"{prefix}-{n}", instance_type, instance_group=prefix, instance_status="Running", **fields)
        for n in range(count)
    )
    return {node.name: node for node in found}


def unlisted(node: Node) -> Node:
    return replace(node, in_kubernetes=False, ready=False)


def not_ready(node: Node) -> Node:
    return replace(node, ready=False)


def cordoned(node: Node) -> Node:
    return replace(node, cordoned=True)


@dataclass
class Cluster:
    """A cluster that is looked at again and again; every plan that may be applied is applied."""

    nodes: dict[str, Node]
    policy: PolicyDocument | None = EVERYTHING
    quotas: tuple[ComputeQuota, ...] = ()
    groups: tuple[InstanceGroup, ...] = ()
    now: datetime = NOW
    memory: NodeMemory = field(default_factory=NodeMemory)
    records: tuple[AppliedQuota, ...] = ()

    def look(self, minute: float) -> Snapshot:
        self.now = NOW + timedelta(minutes=minute)
        self.memory, nodes = remember_nodes(self.memory, self.nodes.values(), self.now)
        world = snapshot(self.policy, nodes, self.quotas, now=self.now, gone=self.memory.gone, applied=self.records)
        world = replace(world, cluster=replace(world.cluster, instance_groups=self.groups))
        self.memory = self.memory.without(settled(world))
        return world

    def run(self, minute: float, approved: str | None = None) -> Plan:
        world = self.look(minute)
        plan = plan_quotas(world, mode="apply", approved_changes=approved)
        if plan.outcome is Outcome.APPLY:
            self.quotas = applied(world, plan).quotas
            accepted = {loss.instance_type: loss.until for loss in plan.losses}
            self.records = tuple(
                AppliedQuota(
                    compute_quota_id=each.compute_quota_id,
                    version=each.compute_quota_version,
                    config=each.compute_quota_config,
                    target=each.compute_quota_target,
                    plan_id=plan.plan_id,
                    at=self.now,
                    accepted_losses=accepted or None,
                )
                for each in self.quotas
            )
        return plan

    def lose(self, how: Callable[[Node], Node] | None, names: Iterable[str]) -> None:
        for name in list(names):
            if how is None:
                del self.nodes[name]
            else:
                self.nodes[name] = how(self.nodes[name])

    @property
    def promised(self) -> int:
        rows = (row for each in self.quotas for row in each.compute_quota_config.compute_quota_resources)
        return sum(row.count or 0 for row in rows)


def governed(count: int = 10, instance_type: str = G5, **fields: Any) -> Cluster:
    """Return a cluster whose quotas promise all of its nodes."""
    policy = fields.pop("policy", document(share("team-a", 100, instance_type)))
    cluster = Cluster(machines(count, instance_type), policy, **fields)
    cluster.run(0)
    assert cluster.promised == count
    return cluster


def stopped(plan: Plan) -> list[str]:
    return [verdict.guardrail for verdict in plan.guardrails if not verdict.passed]


def first(cluster: Cluster, count: int) -> list[str]:
    return sorted(cluster.nodes)[:count]


WAYS: Mapping[str, Callable[[Node], Node] | None] = {
    "Kubernetes does not list them": unlisted,
    "they are not ready": not_ready,
    "somebody cordoned them": cordoned,
    "nobody lists them": None,
}


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("count", [4, 5, 9, 10])
def test_a_mass_loss_that_nobody_confirms_lowers_nothing(how: Callable[[Node], Node] | None, count: int) -> None:
    cluster = governed()
    cluster.lose(how, first(cluster, count))
    plan = cluster.run(1)
    for minute in (5, 12, 13, 60, 60 * 24 * 30):
        plan = cluster.run(minute)
        assert cluster.promised == 10
        [incident] = [finding for finding in plan.findings if finding.code == "mass-loss"]
        assert (incident.severity, incident.subject, incident.evidence["lost"]) == (Severity.INCIDENT, G5, count)
    if how is not None:  # quotas on a type that nobody lists stay as they are
        assert (plan.outcome, stopped(plan)) == (Outcome.NEEDS_APPROVAL, ["nodes-seen"])


@pytest.mark.parametrize(
    ("of", "count", "is_mass_loss"),
    [
        (10, 3, False),
        (10, 4, True),
        (1, 1, False),
        (2, 1, False),
        (2, 2, True),
        (3, 1, False),
        (100, 30, False),
        (100, 31, True),
    ],
)
def test_a_mass_loss_is_more_than_the_limit_and_two_nodes_or_more(of: int, count: int, *, is_mass_loss: bool) -> None:
    cluster = governed(of)
    cluster.lose(not_ready, first(cluster, count))
    cluster.run(1)
    cluster.run(1 + HOLD)
    assert cluster.promised == (of if is_mass_loss else of - count)


def test_the_document_says_what_a_mass_loss_is() -> None:
    for percent, promised in ((30, 10), (50, 5), (49.9, 10), (100, 5)):
        cluster = governed(policy=document(share("team-a", 100), guardrails={"massLossPercent": percent}))
        cluster.lose(not_ready, first(cluster, 5))
        cluster.run(1)
        cluster.run(1 + HOLD)
        assert cluster.promised == promised


@pytest.mark.parametrize(
    "node",
    [
        {"instance_status": "Failure"},
        {"instance_status": "ShuttingDown", "in_kubernetes": False, "ready": False},
        {"health": "UnschedulablePendingReplacement"},
        {"deep_health_check": "Failed"},
        {"taints": (Taint("ToBeDeletedByClusterAutoscaler", "", "NoSchedule"),)},
    ],
    ids=["failed", "shutting down", "to be replaced", "failed its deep check", "removed by the autoscaler"],
)
def test_what_the_provider_confirms_continues(node: Mapping[str, Any]) -> None:
    cluster = governed()
    cluster.lose(lambda each: replace(each, **node), first(cluster, 5))
    cluster.run(1)
    plan = cluster.run(1 + HOLD)
    assert (cluster.promised, [finding.code for finding in plan.findings]) == (5, ["over-commitment"])


@pytest.mark.parametrize(
    ("group", "promised"),
    [
        (InstanceGroup("g5", (), 4, 4), 4),
        (InstanceGroup("g5", (), 4, 10), 4),
        (InstanceGroup("g5", (), 10, 4), 4),
        (InstanceGroup("g5", (), 10, 10), 10),
        (InstanceGroup("g5", (), None, None), 10),
        (InstanceGroup("others", (), 3, 3), 4),
    ],
    ids=["scaled down", "deleted, and to be replaced", "scaling down", "a list in part", "not said", "no such group"],
)
def test_nodes_that_nobody_lists_are_confirmed_by_the_counts_of_their_group(
    group: InstanceGroup, promised: int
) -> None:
    cluster = governed(groups=(InstanceGroup("g5", (), 10, 10),))
    cluster.groups = (group,)
    cluster.lose(None, first(cluster, 6))
    cluster.run(1)
    cluster.run(1 + HOLD)
    assert cluster.promised == promised


def test_a_group_that_scales_down_explains_as_many_nodes_as_it_loses_and_no_more() -> None:
    for target, promised in ((0, 0), (3, 3), (5, 10)):
        cluster = governed(groups=(InstanceGroup("g5", (), 10, target),))
        cluster.lose(unlisted, first(cluster, 10 - min(target, 3)))
        cluster.run(1)
        cluster.run(1 + HOLD)
        assert cluster.promised == promised


def test_a_list_that_is_empty_at_the_first_look_lowers_nothing() -> None:
    cluster = Cluster(machines(10), quotas=(quota("team-a", row(Count=10)),))
    cluster.lose(unlisted, list(cluster.nodes))
    for minute in (0, 1, 30):
        assert stopped(cluster.run(minute)) == ["nodes-seen"]
    cluster.nodes = machines(10)
    assert stopped(cluster.run(31)) == ["nodes-seen"]  # back, and not yet long enough to count
    assert (cluster.run(37).changes, cluster.promised) == ((), 10)


def test_a_new_cluster_that_fills_up_is_no_loss() -> None:
    cluster = Cluster({})
    cluster.nodes = {name: replace(node, instance_status="Pending") for name, node in machines(10).items()}
    cluster.lose(unlisted, list(cluster.nodes))
    assert cluster.run(0).findings == ()
    cluster.nodes = {name: unlisted(node) for name, node in machines(10).items()}
    assert cluster.run(5).findings == ()
    cluster.nodes = machines(10)
    cluster.run(6)
    cluster.run(12)
    assert cluster.promised == 10


def test_nodes_that_are_back_still_count_as_lost_until_they_count() -> None:
    cluster = governed()
    cluster.lose(unlisted, first(cluster, 9))
    cluster.run(1)
    cluster.run(60)
    cluster.nodes = machines(10)
    assert stopped(cluster.run(61)) == ["nodes-seen"]
    assert cluster.run(67).findings == ()
    assert cluster.promised == 10


def test_health_that_does_not_last_hides_no_loss() -> None:
    cluster = governed()
    lost = first(cluster, 4)
    cluster.lose(unlisted, lost)
    cluster.run(1)
    for minute, name in enumerate(lost):  # each is back for a minute, hours apart
        cluster.nodes[name] = machines(10)[name]
        cluster.run(60 + 120 * minute)
        cluster.lose(unlisted, [name])
        cluster.run(61 + 120 * minute)
    assert stopped(cluster.run(2000)) == ["nodes-seen"]
    assert cluster.promised == 10


def test_losses_just_below_the_limit_add_up_within_the_hold_time() -> None:
    cluster = governed()
    cluster.lose(not_ready, first(cluster, 3))
    cluster.run(1)
    cluster.lose(None, first(cluster, 5)[3:])
    cluster.run(9)
    cluster.run(1 + HOLD)
    assert stopped(cluster.run(60)) == ["nodes-seen"]
    assert cluster.promised == 10


def test_a_loss_is_a_part_of_the_nodes_that_were_healthy_before_it() -> None:
    """Three of ten are no mass loss. Three of the seven that are left are."""
    cluster = governed()
    cluster.lose(not_ready, first(cluster, 3))
    cluster.run(1)
    cluster.run(60)
    assert cluster.promised == 7
    cluster.lose(not_ready, first(cluster, 6)[3:])
    cluster.run(61)
    assert stopped(cluster.run(120)) == ["nodes-seen"]
    assert cluster.promised == 7


def test_new_nodes_do_not_hide_what_was_lost() -> None:
    cluster = governed(100)
    lost = first(cluster, 31)
    cluster.lose(not_ready, lost)
    cluster.run(1)
    cluster.nodes |= {name: node for name, node in machines(104).items() if name not in cluster.nodes}
    cluster.run(2)
    assert stopped(cluster.run(60)) == ["nodes-seen"]
    assert cluster.promised == 100


def test_nodes_that_are_replaced_one_by_one_are_no_mass_loss() -> None:
    cluster = governed(groups=(InstanceGroup("g5", (), 10, 10),))
    for minute, name in enumerate(sorted(cluster.nodes)):
        cluster.lose(None, [name])
        cluster.nodes[f"new-{name}"] = replace(machines(1)["g5-0"], name=f"new-{name}")
        assert [finding.code for finding in cluster.run(1 + minute).findings] in ([], ["over-commitment"])
    cluster.run(30)
    assert cluster.promised == 10


def test_types_are_judged_apart() -> None:
    policy = document({"name": "team-a", "share": [{"instanceType": name, "percent": 100} for name in (G5, P5)]})
    cluster = Cluster(machines(10) | machines(2, P5), policy)
    cluster.run(0)
    cluster.lose(not_ready, ["p5-0", "p5-1"])
    cluster.run(1)
    plan = cluster.run(1 + HOLD)
    assert [loss.instance_type for loss in plan.losses] == [P5]
    assert cluster.promised == 12


def test_what_rises_continues_where_capacity_holds_without_the_lost_nodes() -> None:
    more = {count: document(fixed("team-a", row(Count=count)), pool=False) for count in (2, 6, 7)}
    for count, outcome in ((6, Outcome.APPLY), (7, Outcome.NEEDS_APPROVAL)):
        cluster = Cluster(machines(10), more[2])
        cluster.run(0)
        cluster.lose(unlisted, first(cluster, 4))
        cluster.run(1)
        cluster.policy = more[count]
        assert cluster.run(2).outcome is outcome  # within the hold time all ten count


def test_decreases_that_the_document_asks_for_wait_too() -> None:
    cluster = governed(policy=document(fixed("team-a", row(Count=10)), pool=False))
    cluster.lose(unlisted, first(cluster, 4))
    cluster.run(1)
    cluster.policy = document(fixed("team-a", row(Count=9)), pool=False)
    assert stopped(cluster.run(2)) == ["nodes-seen"]


def test_an_approved_loss_is_not_asked_for_again() -> None:
    cluster = governed()
    cluster.lose(unlisted, first(cluster, 4))
    cluster.run(1)
    asked = cluster.run(1 + HOLD)
    assert asked.outcome is Outcome.NEEDS_APPROVAL
    cluster.run(12, approved=changes_sha256(asked))
    assert cluster.promised == 6
    for minute in (13, 25, 60 * 24 * 40):
        plan = cluster.run(minute)
        assert (plan.outcome, plan.findings) == (Outcome.NOTHING_TO_DO, ())
    cluster.policy = document(share("team-a", 50))
    assert cluster.run(60 * 24 * 41).outcome is Outcome.APPLY


def test_an_approval_covers_the_nodes_that_were_named_and_no_others() -> None:
    cluster = governed()
    cluster.lose(unlisted, first(cluster, 4))
    cluster.run(1)
    asked = cluster.run(1 + HOLD)
    cluster.lose(unlisted, first(cluster, 9)[4:])
    assert cluster.run(12, approved=changes_sha256(asked)).outcome is Outcome.NEEDS_APPROVAL
    assert cluster.promised == 10


def test_a_node_whose_loss_was_approved_is_a_new_one_when_it_is_back() -> None:
    cluster = governed()
    cluster.lose(unlisted, first(cluster, 4))
    cluster.run(1)
    cluster.run(12, approved=changes_sha256(cluster.run(1 + HOLD)))
    cluster.run(30)
    cluster.nodes = machines(10)
    cluster.run(31)
    cluster.run(37)
    assert cluster.promised == 10
    cluster.lose(not_ready, first(cluster, 4))
    cluster.run(40)
    assert stopped(cluster.run(60)) == ["nodes-seen"]


def test_the_incident_names_both_lists_in_bounds() -> None:
    cluster = governed(40)
    cluster.lose(unlisted, first(cluster, 20))
    [finding] = [each for each in cluster.run(1).findings if each.code == "mass-loss"]
    assert finding.because.startswith("20 of 40 ml.g5.8xlarge nodes were lost since 2026-11-20 12:01 UTC")
    assert finding.because.endswith("Kubernetes lists 20 of them and SageMaker 40.")
    for name, more in (("lostNodes", 10), ("kubernetesLists", 10), ("sagemakerLists", 30)):
        assert str(finding.evidence[name]).endswith(f" and {more} more")


@pytest.mark.parametrize(
    ("states", "silence", "told", "evidence"),
    [
        (["running", "running"], None, "EC2 reports on the lost nodes: 2 running", "lost-0 running, lost-1 running"),
        (["pending", None], None, "1 not asked, 1 pending", "lost-0 pending, lost-1 not asked"),
        ([None, None], "access denied", "EC2 does not report their state: access denied", "access denied"),
    ],
)
def test_on_plain_eks_the_incident_names_what_ec2_says(
    states: list[str | None], silence: str | None, told: str, evidence: str
) -> None:
    gone = [
        Node(f"lost-{n}", G5, ec2_state=state, in_kubernetes=False, ready=False, unhealthy_since=NOW)
        for n, state in enumerate(states)
    ]
    stay = Node("stays", G5, healthy_since=NOW - timedelta(days=1))
    world = snapshot(EVERYTHING, [stay], gone=tuple(gone), ec2_silence=silence)
    [finding] = loss_findings(world, mass_losses(world))
    assert finding.because.endswith(f"{told}.")
    assert finding.evidence["ec2Says"] == evidence
    assert "sagemakerLists" not in finding.evidence


def test_a_memory_without_a_document_forgets_only_what_is_confirmed() -> None:
    cluster = governed()
    cluster.policy = None
    cluster.lose(None, first(cluster, 2))
    cluster.look(1)
    cluster.look(600)
    assert len(cluster.memory.gone) == 2
    cluster.groups = (InstanceGroup("g5", (), 8, 8),)
    cluster.look(601)
    assert not cluster.memory.gone


def test_a_small_loss_is_forgotten_after_its_hold_time() -> None:
    cluster = governed()
    cluster.lose(None, first(cluster, 2))
    cluster.run(1)
    assert len(cluster.memory.gone) == 2
    cluster.run(12)
    assert not cluster.memory.gone
    assert cluster.promised == 8


losses = st.dictionaries(
    st.integers(0, 9), st.tuples(st.integers(1, 60), st.sampled_from(list(WAYS.values()))), max_size=10
)


@given(losses, st.sets(st.integers(1, 120), min_size=1, max_size=12))
def test_no_order_of_looks_lowers_a_quota_by_a_loss_above_the_limit(
    lost: Mapping[int, tuple[int, Callable[[Node], Node] | None]], looks: set[int]
) -> None:
    """The truth is known here to the minute; the product has only its snapshots."""
    cluster = governed()
    happened: dict[int, int] = {}
    for look in sorted(looks):
        for number, (minute, how) in lost.items():
            if minute <= look and number not in happened:
                happened[number] = minute
                cluster.lose(how, [f"g5-{number}"])
        before = cluster.promised
        cluster.run(look)
        if cluster.promised < before:
            assert not is_above_the_limit(happened.values())


def is_above_the_limit(moments: Iterable[int]) -> bool:
    """Say whether more than 3 in 10 nodes, and two or more, were lost within a hold time."""
    moments = sorted(moments)
    for start in moments:
        within = sum(start <= moment <= start + HOLD for moment in moments)
        before = 10 - sum(moment < start for moment in moments)
        if within >= 2 and within * 10 > 3 * before:
            return True
    return False


def test_losses_of_a_snapshot_made_by_hand_are_judged_by_its_moments() -> None:
    sick = [replace(node, ready=False, unhealthy_since=NOW - timedelta(days=1)) for node in machines(4).values()]
    fine = [node for name, node in machines(10).items() if name > "g5-3"]
    [loss] = mass_losses(snapshot(EVERYTHING, (*sick, *fine)))
    assert (len(loss.nodes), loss.of) == (4, 10)
