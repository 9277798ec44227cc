from typing import Any

import pytest
import yaml

from taskgov.findings import Finding, Severity
from taskgov.policy.parse import parse_policy

CLUSTER = {"name": "ml-cluster", "arn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"}


def warnings(*resources: dict[str, Any], sharing: dict[str, Any] | None = None, **parts: Any) -> list[Finding]:
    quota: dict[str, Any] = {"ComputeQuotaResources": list(resources)}
    if sharing:
        quota["ResourceSharingConfig"] = sharing
    document = {"apiVersion": "taskgov/v1", "cluster": CLUSTER, "teams": [{"name": "a", "quota": quota}], **parts}
    result = parse_policy(yaml.safe_dump(document))
    assert result.violations == ()
    assert all(one.severity is Severity.WARNING and one.because and one.remedy for one in result.warnings)
    return list(result.warnings)


G5 = {"InstanceType": "ml.g5.8xlarge", "Count": 2}


def test_an_unknown_instance_type_is_named_once_with_the_way_to_supply_its_numbers() -> None:
    new = {"InstanceType": "ml.new.xlarge", "Count": 1}
    other = {"name": "b", "share": [{"instanceType": "ml.new.xlarge", "percent": 10}]}

    [found] = warnings(teams=[{"name": "a", "quota": {"ComputeQuotaResources": [new]}}, other])

    assert (found.code, found.subject) == (
        "unknown-instance-type",
        "teams[0].quota.ComputeQuotaResources[0].InstanceType",
    )
    assert "instanceTypes: {ml.new.xlarge:" in found.remedy


def test_a_type_whose_numbers_the_document_gives_is_known() -> None:
    new = {"InstanceType": "ml.new.xlarge", "Count": 2}

    assert warnings(new, instanceTypes={"ml.new.xlarge": {"vcpu": 4, "memoryGiB": 16, "gpu": 1}}) == []


@pytest.mark.parametrize("strategy", ["Lend", "DontLend"])
@pytest.mark.parametrize(
    "limit", [{"BorrowLimit": 50}, {"AbsoluteBorrowLimits": [{"InstanceType": "ml.g5.8xlarge", "Accelerators": 1}]}]
)
def test_a_borrow_limit_of_a_team_that_never_borrows_is_ignored(strategy: str, limit: dict[str, Any]) -> None:
    [found] = warnings(G5, sharing={"Strategy": strategy, **limit})

    assert found.code == "borrow-limit-ignored"
    assert f"Strategy {strategy}" in found.because


def test_a_borrow_limit_of_nothing_and_none_at_all_are_meant() -> None:
    assert warnings(G5, sharing={"Strategy": "Lend", "BorrowLimit": 0}) == []
    assert warnings(G5, sharing={"Strategy": "DontLend"}) == []


@pytest.mark.parametrize(("limit", "warned"), [(500, False), (501, True), (10_000, True)])
def test_document_004_policies_a_limit_above_500_percent_is_taken_with_a_warning(limit: int, *, warned: bool) -> None:
    found = warnings(G5, sharing={"Strategy": "LendAndBorrow", "BorrowLimit": limit})

    assert [one.code for one in found] == ["borrow-limit-above-500"] * warned
    assert all(one.subject == "teams[0].quota.ResourceSharingConfig.BorrowLimit" for one in found)


def test_document_002_key_concepts_strategy_borrow_is_refused_with_what_to_write() -> None:
    quota = {"ComputeQuotaResources": [G5], "ResourceSharingConfig": {"Strategy": "Borrow", "BorrowLimit": 10_001}}
    document = {"apiVersion": "taskgov/v1", "cluster": CLUSTER, "teams": [{"name": "a", "quota": quota}]}

    strategy, limit = parse_policy(yaml.safe_dump(document)).violations

    assert (strategy.path, strategy.value) == ("teams[0].quota.ResourceSharingConfig.Strategy", '"Borrow"')
    assert strategy.rule.startswith("must be 'Lend', 'DontLend' or 'LendAndBorrow'; some documents list Borrow")
    assert "write LendAndBorrow" in strategy.rule
    assert (limit.value, limit.rule) == ("10001", "must be from 0 to 10,000")


def test_a_borrow_limit_that_rounds_to_nothing_is_found() -> None:
    [found] = warnings(G5, sharing={"Strategy": "LendAndBorrow", "BorrowLimit": 49})

    assert found.code == "borrow-limit-rounds-to-zero"


def test_accelerators_of_a_type_without_any_are_found() -> None:
    [found] = warnings({"InstanceType": "ml.c5.xlarge", "Accelerators": 2}, sharing={"Strategy": "DontLend"})

    assert (found.code, found.subject) == ("no-accelerators", "teams[0].quota.ComputeQuotaResources[0].Accelerators")


def test_a_partition_that_the_type_does_not_have_is_found() -> None:
    wrong = {"InstanceType": "ml.g5.8xlarge", "AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 1}}
    right = {"InstanceType": "ml.p4d.24xlarge", "AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 7}}

    [found] = warnings(wrong, right, sharing={"Strategy": "DontLend"})

    assert found.code == "unsupported-partition"
    assert "it has: none" in found.because


def test_a_team_without_a_promise_is_found() -> None:
    [found] = warnings(teams=[{"name": "a"}])

    assert (found.code, found.subject) == ("team-without-quota", "teams[0]")


def test_a_document_without_teams_is_found() -> None:
    [found] = warnings(teams=[])

    assert (found.code, found.subject) == ("no-teams", "teams")


def test_a_team_that_cannot_be_read_is_a_violation_and_not_missed_as_a_team() -> None:
    document = {"apiVersion": "taskgov/v1", "cluster": CLUSTER, "teams": [{"name": "a", "tier": "high"}]}
    result = parse_policy(yaml.safe_dump(document))

    assert [one.path for one in result.violations] == ["teams[0].tier"]
    assert "no-teams" not in [one.code for one in result.warnings]


def test_a_native_pool_that_hyperpod_does_not_keep_is_found() -> None:
    off = {"IdleResourceSharing": "Disabled"}

    assert [one.code for one in warnings(G5, sharedPool={"native": True}, schedulerConfig=off)] == [
        "nobody-keeps-remainder"
    ]
    assert warnings(G5, sharedPool={"native": True}) == []


def test_a_promise_that_demand_can_never_move_is_found() -> None:
    demand = {"enabled": True, "maxMovePercent": 49.9}
    big, parts = {"InstanceType": "ml.g5.8xlarge", "Count": 3}, {"InstanceType": "ml.p5.48xlarge", "Accelerators": 1}

    small = {"InstanceType": "ml.g6.8xlarge", "Count": 2}
    [found] = warnings(small, big, parts, sharing={"Strategy": "DontLend"}, demand=demand)

    assert (found.code, found.subject) == ("demand-never-moves", "teams[0].quota.ComputeQuotaResources[0].Count")
    assert found.because == "Demand never moves any of 2 ml.g6.8xlarge: 49.9 % is less than one."
    assert found.remedy == "set demand.maxMovePercent to 50 or more"
    assert found.evidence == {"instanceType": "ml.g6.8xlarge", "promised": 2}


@pytest.mark.parametrize(
    "demand", [{"enabled": False}, {"enabled": True, "maxMovePercent": 0}, {"enabled": True, "maxMovePercent": 50}]
)
def test_where_demand_is_not_to_move_anything_or_can_it_is_quiet(demand: dict[str, Any]) -> None:
    small = [{"InstanceType": "ml.g6.8xlarge", "Count": 1}, {"InstanceType": "ml.g6e.8xlarge", "Count": 0}]
    assert warnings(G5, *small, sharing={"Strategy": "DontLend"}, demand=demand) == []
