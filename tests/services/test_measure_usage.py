"""The metric values of a cluster's standing."""

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from pathlib import Path

import pytest

from taskgov.adapters.metrics import EmbeddedMetrics
from taskgov.allocation.lease_book import LeaseEntry
from taskgov.allocation.leases import LeaseState
from taskgov.ports import Measurement
from taskgov.services.measure_usage import measure_preemptions, measure_usage
from taskgov.services.metric_catalogue import METRICS
from taskgov.usage.cluster_usage import TeamUsage, cluster_usage
from taskgov.usage.quota_usage import QuotaUsage
from tests.support.clusters import G5, GPU, GovernedCluster
from tests.support.golden import assert_section
from tests.support.memory import NOON
from tests.support.metric_page import metric_count

HELD = {"cpu": "88", "memory": "328Gi", GPU: "6"}


def a_cluster() -> GovernedCluster:
    cluster = GovernedCluster().with_fair_share().with_nodes(2)
    return cluster.with_team("team-a", used=HELD).with_team("team-b", used={GPU: "1"})


def measured(cluster: GovernedCluster) -> list[Measurement]:
    return measure_usage(cluster_usage(cluster.snapshot()), NOON)


def named(measurements: Iterable[Measurement], **dimensions: str) -> dict[str, float]:
    return {each.name: each.value for each in measurements if each.dimensions == dimensions}


def test_a_borrower_and_a_lender_on_the_leading_resource() -> None:
    values = measured(a_cluster())
    assert named(values, Team="team-a", InstanceType=G5, Resource=GPU) == {
        "QuotaGuaranteed": 4,
        "QuotaUsed": 6,
        "Borrowed": 2,
        "Lent": 0,
        "Idle": 0,
        "OverQuota": 0,
        "BorrowLimitUtilization": 50,
        "FairShareEntitlement": 6,
        "FairShareDeviation": 0,
    }
    assert named(values, Team="team-b", InstanceType=G5, Resource=GPU) == {
        "QuotaGuaranteed": 4,
        "QuotaUsed": 1,
        "Borrowed": 0,
        "Lent": 2,
        "Idle": 1,
        "OverQuota": 0,
        "BorrowLimitUtilization": 0,
        "FairShareEntitlement": 1,
        "FairShareDeviation": 0,
    }


def test_other_resources_travel_as_properties_and_not_as_metrics() -> None:
    values = measured(a_cluster())
    assert {each.dimensions.get("Resource", GPU) for each in values} == {GPU}
    [borrowed] = [each for each in values if each.name == "Borrowed" and each.dimensions["Team"] == "team-a"]
    assert borrowed.properties == {"Borrowed_cpu": 40.0, "Borrowed_memory": 136 * 2**30, "Borrowed_efa": 0}


def test_what_is_borrowed_is_what_is_lent() -> None:
    values = measured(a_cluster().with_team("team-c", used={GPU: "5"}))
    sums = {name: sum(each.value for each in values if each.name == name) for name in ("Borrowed", "Lent")}
    assert sums == {"Borrowed": 3, "Lent": 3}
    assert not any("unattributed" in each.properties for each in values)


def test_a_lowered_quota_under_running_work_is_over_quota_and_not_borrowed() -> None:
    cluster = GovernedCluster().with_team("team-a", used={GPU: "7"}).with_team("team-b", used={GPU: "4"})
    values = named(measured(cluster), Team="team-a", InstanceType=G5, Resource=GPU)
    assert (values["Borrowed"], values["OverQuota"]) == (0, 3)


def test_an_infinite_share_is_a_flag_and_every_value_is_finite() -> None:
    cluster = GovernedCluster().with_fair_share().with_team("idle").with_team("zero", weight=0, used={GPU: "6"})
    values = measured(cluster)
    flags = {
        each.dimensions["Team"]: each.properties["infiniteShare"]
        for each in values
        if each.name == "FairShareDeviation"
    }
    assert flags == {"idle": False, "zero": True}
    assert all(abs(each.value) < 1e6 for each in values)


def test_a_team_that_may_borrow_nothing_has_no_utilisation() -> None:
    values = named(measured(GovernedCluster().with_team("t", strategy="Lend")), Team="t", InstanceType=G5, Resource=GPU)
    assert "BorrowLimitUtilization" not in values


def test_capacity_is_in_the_unit_of_quotas_with_the_nodes_beside_it() -> None:
    values = measured(a_cluster().with_team("team-c").with_nodes(1, ready=False))
    assert named(values, InstanceType=G5, Resource=GPU) == {
        "CapacityHealthy": 8,
        "CapacityUnhealthy": 4,
        "Overcommit": 4,
    }
    assert [each.properties for each in values if each.name.startswith("Capacity")] == [
        {"instancesHealthy": 2},
        {"instancesUnhealthy": 1},
    ]


def test_types_without_accelerators_are_measured_in_cores() -> None:
    cluster = GovernedCluster().with_team("t", 2, instance_type="ml.c5.2xlarge")
    values = named(measured(cluster), Team="t", InstanceType="ml.c5.2xlarge", Resource="cpu")
    assert values["QuotaGuaranteed"] == 16


def test_waiting_is_zero_for_teams_that_wait_for_nothing() -> None:
    values = measured(a_cluster().with_waiting("w", "team-b", gpus=8, minutes=10))
    assert named(values, Team="team-b") == {"PendingWorkloads": 1, "PendingGpus": 8, "OldestPendingSeconds": 600}
    assert named(values, Team="team-a") == {"PendingWorkloads": 0, "PendingGpus": 0, "OldestPendingSeconds": 0}


def test_preemptions_are_added_up_by_team_reason_and_preempting_team() -> None:
    cluster = a_cluster()
    for name, ran in (("one", 60), ("two", None)):
        cluster.with_preempted(name, "team-a", by="team-b", gpus=4, ran_minutes=ran)
    cluster.with_preempted("own", "team-b", by="team-b", gpus=1, reason="InClusterQueue", ran_minutes=None)
    standing = cluster_usage(cluster.snapshot())
    values = measure_preemptions(standing.preemptions, standing.lost)
    reclaimed = named(values, Team="team-a", Reason="InCohortReclamation", PreemptingTeam="team-b")
    assert reclaimed == {"Preemptions": 2, "PreemptedGpuSeconds": 4 * 3600}
    assert named(values, Team="team-b", Reason="InClusterQueue", PreemptingTeam="team-b") == {"Preemptions": 1}


def test_a_preemption_for_nobody_that_is_known_has_no_empty_dimension() -> None:
    cluster = a_cluster().with_preempted("one", "team-a", by="team-b", gpus=4)
    for condition in cluster.workloads[0]["status"]["conditions"]:
        condition["message"] = "Preempted by an older Kueue"
    [each] = measure_preemptions(cluster_usage(cluster.snapshot()).preemptions, lost={})
    assert each.dimensions["PreemptingTeam"] == "unknown"


def test_the_number_of_metrics_is_the_documented_one() -> None:
    # run, audit, losses, starvation, looks, what was unreadable, relisted, estimates of two teams and of all
    beside_usage = 7 + 4 + 3 + 1 + 1 + 1 + 2 + 1 + 2 * 3
    distinct = {(each.name, *sorted(each.dimensions.items())) for each in measured(a_cluster())}
    assert len(distinct) + beside_usage == metric_count(teams=2, types=1, quotas=2)


def test_every_value_is_of_a_metric_in_the_catalogue() -> None:
    known = {metric.name: (metric.unit, set(metric.dimensions)) for metric in METRICS}
    for each in measured(a_cluster()):
        assert known[each.name] == (each.unit, set(each.dimensions))


def test_the_document_shows_a_real_line_of_the_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "TaskGovernance")
    EmbeddedMetrics().record("ml-cluster", measured(a_cluster()))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [line] = [each for each in lines if each.get("Team") == "team-a" and "QuotaUsed" in each]
    line["_aws"]["Timestamp"] = int(NOON.timestamp() * 1000)
    line["_aws"]["CloudWatchMetrics"][0]["Metrics"].sort(key=lambda metric: metric["Name"])
    members = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(line.items()))
    assert_section(Path("docs/metrics.md"), "example", f"```json\n{{\n{members}\n}}\n```")


def test_leased_instances_travel_with_the_quota_they_are_part_of() -> None:
    start, end = NOON - timedelta(hours=1), NOON + timedelta(hours=1)
    lease = LeaseEntry("team-a", "team-b", G5, 1, start, end, "deadline", LeaseState.ACTIVE)
    values = measure_usage(cluster_usage(a_cluster().snapshot()), NOON, [lease, replace(lease, state=LeaseState.DUE)])
    told = {
        each.dimensions["Team"]: each.properties["leasedInstances"]
        for each in values
        if "leasedInstances" in each.properties
    }
    assert told == {"team-a": 1, "team-b": -1}
    assert {each.name for each in values if "leasedInstances" in each.properties} == {"QuotaGuaranteed"}


def test_what_teams_with_equal_amounts_share_is_what_each_has_alone() -> None:
    chance = random.Random(5)  # noqa: S311 - a sample, not a secret
    standing = cluster_usage(a_cluster().snapshot())

    def drawn(team: str, instance_type: str) -> Iterator[TeamUsage]:
        def amount() -> int:
            return chance.choice((0, 1))

        def line(resource: str, limit: int | None) -> QuotaUsage:
            amounts = (amount(), amount(), amount(), amount(), amount(), amount())
            return QuotaUsage(team, team, instance_type, resource, *amounts, limit)

        entitled, infinite = chance.choice((None, 1)), chance.random() < 0.5
        yield TeamUsage(line(GPU, chance.choice((None, 0, 4))), True, entitled, infinite)
        for other in chance.choice(((), ("cpu",), ("memory",))):
            yield TeamUsage(line(other, None), False, None, False)

    teams = [part for n in range(2000) for each in (G5, "ml.p5.48xlarge") for part in drawn(f"team-{n}", each)]
    start, end = NOON - timedelta(hours=1), NOON + timedelta(hours=1)
    pairs = [(f"team-{n}", f"team-{n + 1}") for n in range(0, 100, 2)]
    leases = [LeaseEntry(*pair, G5, 1, start, end, "x", LeaseState.ACTIVE) for pair in pairs]

    def of(some: Iterable[TeamUsage]) -> list[Measurement]:
        return measure_usage(replace(standing, teams=tuple(some), capacities=(), pending=()), NOON, leases)

    together = [each for each in of(teams) if "InstanceType" in each.dimensions]
    alone = [
        each
        for _, some in groupby(teams, lambda part: part.usage[:3])
        for each in of(some)
        if "InstanceType" in each.dimensions
    ]
    assert together == alone
