"""How teams stand: entitlement, loans, capacity, leading resources."""

from dataclasses import replace
from typing import Any

import pytest

from taskgov.hyperpod.model import Switch
from taskgov.usage.capacity import Capacity
from taskgov.usage.cluster_usage import ClusterUsage, Loan, TeamUsage, cluster_usage
from tests.support.clusters import G5, GPU, GovernedCluster

C5 = "ml.c5.2xlarge"


def team(usage: ClusterUsage, name: str, resource: str = GPU) -> TeamUsage:
    [found] = [each for each in usage.teams if (each.usage.team, each.usage.resource) == (name, resource)]
    return found


def a_borrowing_pair() -> GovernedCluster:
    cluster = GovernedCluster().with_fair_share().with_nodes(2)
    return cluster.with_team("team-a", used={GPU: "6", "cpu": "72"}).with_team("team-b", used={GPU: "1"})


def test_accelerators_lead_and_the_rest_does_not() -> None:
    usage = cluster_usage(a_borrowing_pair().snapshot())
    assert {each.usage.resource for each in usage.teams if each.leading} == {GPU}
    assert team(usage, "team-a", "cpu").usage.borrowed == 24_000


def test_cpu_leads_where_there_is_no_accelerator() -> None:
    cluster = GovernedCluster().with_nodes(3, instance_type=C5).with_team("team-a", 2, instance_type=C5)
    usage = cluster_usage(cluster.snapshot())
    assert [each.usage.resource for each in usage.teams if each.leading] == ["cpu"]
    assert usage.capacities == (Capacity(C5, "cpu", 24_000, 0, 3, 0, 16_000),)


def test_an_instance_type_without_quota_has_a_capacity_too() -> None:
    [capacity] = cluster_usage(GovernedCluster().with_nodes(1).snapshot()).capacities
    assert (capacity.resource, capacity.healthy, capacity.guaranteed) == (GPU, 4, 0)


def test_quota_above_healthy_capacity_is_overcommitment() -> None:
    cluster = a_borrowing_pair().with_team("team-c").with_nodes(1, ready=False)
    [capacity] = cluster_usage(cluster.snapshot()).capacities
    assert (capacity.healthy, capacity.unhealthy, capacity.guaranteed, capacity.overcommit) == (8, 4, 12, 4)
    assert (capacity.healthy_nodes, capacity.unhealthy_nodes) == (2, 1)


def test_a_healthy_node_that_offers_fewer_gpus_counts_with_those_it_offers() -> None:
    cluster = a_borrowing_pair()
    cluster.kubernetes.node_objects[0]["status"]["allocatable"][GPU] = "3"
    assert cluster_usage(cluster.snapshot()).capacities[0].healthy == 7


def test_loans_name_borrower_and_lender_and_add_up_on_both_sides() -> None:
    cluster = a_borrowing_pair().with_team("team-c", used={GPU: "5"}).with_team("team-d", 2, used={GPU: "4"})
    usage = cluster_usage(cluster.snapshot())
    on_gpus = [loan for loan in usage.loans if loan.resource == GPU]
    assert on_gpus == [
        Loan("team-a", "team-b", G5, GPU, 1),
        Loan("team-a", "team-d", G5, GPU, 1),
        Loan("team-c", "team-d", G5, GPU, 1),
    ]
    for each in usage.teams:
        line = each.usage
        mine = [
            loan for loan in usage.loans if (loan.instance_type, loan.resource) == (line.instance_type, line.resource)
        ]
        assert sum(loan.amount for loan in mine if loan.borrower == line.team) == line.borrowed
        assert sum(loan.amount for loan in mine if loan.lender == line.team) == line.lent


def test_what_one_team_borrows_is_no_longer_lent_to_the_next() -> None:
    cluster = GovernedCluster().with_nodes(4)
    for name, used in (("team-a", "5"), ("team-b", "5"), ("team-c", "3"), ("team-d", "3")):
        cluster.with_team(name, used={GPU: used})
    loans = [loan for loan in cluster_usage(cluster.snapshot()).loans if loan.resource == GPU]
    assert loans == [Loan("team-a", "team-c", G5, GPU, 1), Loan("team-b", "team-d", G5, GPU, 1)]


def in_cohort(queue: Any, cohort: str) -> Any:
    return {**queue, "spec": {**queue["spec"], "cohort": cohort}}


def test_nobody_borrows_across_cohorts() -> None:
    cluster = GovernedCluster().with_team("team-a", used={GPU: "6"}).with_team("team-b")
    cluster = cluster.with_team("team-c", used={GPU: "5"}).with_team("team-d")
    snapshot = cluster.snapshot()
    names = ("left", "left", "right", "right")
    queues = tuple(in_cohort(queue, name) for queue, name in zip(snapshot.kueue.cluster_queues, names, strict=True))
    usage = cluster_usage(replace(snapshot, kueue=replace(snapshot.kueue, cluster_queues=queues)))
    assert [(loan.borrower, loan.lender) for loan in usage.loans] == [("team-a", "team-b"), ("team-c", "team-d")]


def test_idle_quota_is_divided_by_weight_among_those_who_want_more() -> None:
    cluster = GovernedCluster().with_fair_share().with_team("idle", 3)
    cluster = cluster.with_team("heavy", weight=20).with_team("light", weight=10)
    for name in ("heavy", "light"):
        cluster.with_waiting(f"big-{name}", name, gpus=40)
    limit_free = {"borrow_limit": 500}
    for quota_id, quota in cluster.hyperpod.stored.items():
        sharing = quota.compute_quota_config.resource_sharing_config
        assert sharing
        config = quota.compute_quota_config.model_copy(
            update={"resource_sharing_config": sharing.model_copy(update=limit_free)}
        )
        cluster.hyperpod.stored[quota_id] = quota.model_copy(update={"compute_quota_config": config})
    usage = cluster_usage(cluster.snapshot())
    assert {name: team(usage, name).entitlement for name in ("idle", "heavy", "light")} == {
        "idle": 0,
        "heavy": 4 + 8,
        "light": 4 + 4,
    }


def test_a_borrow_limit_bounds_what_a_team_is_entitled_to() -> None:
    cluster = GovernedCluster().with_fair_share().with_team("idle", 3).with_team("team-a", borrow_limit=50)
    usage = cluster_usage(cluster.with_waiting("big", "team-a", gpus=40).snapshot())
    assert team(usage, "team-a").entitlement == 6


def test_a_team_outside_the_cohort_is_entitled_to_its_own_quota_only() -> None:
    cluster = GovernedCluster().with_fair_share().with_team("idle", 3).with_team("alone", strategy="DontLend")
    usage = cluster_usage(cluster.with_waiting("big", "alone", gpus=40).snapshot())
    assert team(usage, "alone").entitlement == 4


def test_a_team_without_weight_gets_what_is_left_after_all_others() -> None:
    cluster = GovernedCluster().with_fair_share().with_team("idle", 1)
    cluster.with_team("weighted", weight=1).with_team("none", weight=0)
    cluster.with_waiting("w", "weighted", gpus=7).with_waiting("n", "none", gpus=8)
    usage = cluster_usage(cluster.snapshot())
    assert team(usage, "weighted").entitlement == 7
    assert team(usage, "none").entitlement == 5


def test_the_share_of_a_team_without_weight_is_infinite_only_while_it_borrows() -> None:
    cluster = GovernedCluster().with_fair_share().with_team("idle", 2)
    cluster.with_team("borrows", weight=0, used={GPU: "5"}).with_team("content", weight=0, used={GPU: "4"})
    usage = cluster_usage(cluster.snapshot())
    assert team(usage, "borrows").infinite_share
    assert not team(usage, "content").infinite_share


@pytest.mark.parametrize("cluster", [GovernedCluster(), GovernedCluster().with_fair_share(Switch.DISABLED)])
def test_there_is_no_entitlement_where_fair_sharing_is_off(cluster: GovernedCluster) -> None:
    usage = cluster_usage(cluster.with_team("team-a", used={GPU: "4"}).snapshot())
    assert {team.entitlement for team in usage.teams} == {None}
