from typing import Any

import pytest

from tests.hyperpod.requests import check_request

CLUSTER = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"


def a_request(**changes: Any) -> dict[str, Any]:
    return {
        "Name": "team-a-quota",
        "ClusterArn": CLUSTER,
        "ComputeQuotaConfig": {
            "ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "Count": 2}],
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
            "PreemptTeamTasks": "LowerPriority",
        },
        "ComputeQuotaTarget": {"TeamName": "team-a", "FairShareWeight": 0},
        "ActivationState": "Enabled",
        "Tags": [{"Key": "owner", "Value": "größe 1"}],
    } | changes


def broken(**changes: Any) -> list[str]:
    return [one.path for one in check_request("CreateComputeQuota", a_request(**changes))]


def test_a_good_request_breaks_nothing() -> None:
    assert broken() == []


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"Name": "-a"}, ["Name"]),
        ({"Name": ""}, ["Name"]),
        ({"Name": "a" * 64}, ["Name"]),
        ({"ClusterArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/sample-cluster"}, ["ClusterArn"]),
        ({"Description": "bell\x07"}, ["Description"]),
        ({"Description": "x" * 1025}, ["Description"]),
        ({"ActivationState": "On"}, ["ActivationState"]),
        ({"ComputeQuotaTarget": {"TeamName": "Team_A"}}, ["ComputeQuotaTarget.TeamName"]),
        (
            {"ComputeQuotaTarget": {"TeamName": "a", "FairShareWeight": 500}},
            ["ComputeQuotaTarget.FairShareWeight"],
        ),
        ({"Tags": [{"Key": "a", "Value": ""}, {"Key": "a", "Value": "b"}]}, ["Tags[1].Key"]),
        ({"Tags": [{"Key": "", "Value": "?"}]}, ["Tags[0].Key", "Tags[0].Value"]),
        ({"ClientToken": "x"}, ["ClientToken"]),
    ],
)
def test_each_limit_is_named_with_its_place(changes: dict[str, Any], want: list[str]) -> None:
    assert sorted(set(broken(**changes))) == want


def test_what_botocore_lets_pass_is_found_all_at_once() -> None:
    config = {
        "ComputeQuotaResources": [{"InstanceType": "bogus", "Count": -1}] * 16,
        "ResourceSharingConfig": {"Strategy": "Borrow", "BorrowLimit": 99_999},
        "PreemptTeamTasks": "Always",
    }

    violations = check_request("CreateComputeQuota", a_request(ComputeQuotaConfig=config))

    by_path = {one.path.removeprefix("ComputeQuotaConfig."): one.rule for one in violations}
    assert by_path["ComputeQuotaResources[15].InstanceType"] == "must be an instance type such as ml.g5.8xlarge"
    assert by_path["ComputeQuotaResources[0].Count"] == "must be from 0 to 10,000,000"
    assert by_path["ResourceSharingConfig.Strategy"].startswith("must be 'Lend', 'DontLend' or 'LendAndBorrow'; ")
    assert by_path["ResourceSharingConfig.BorrowLimit"] == "must be from 0 to 10,000"
    assert by_path["PreemptTeamTasks"] == "must be 'Never' or 'LowerPriority'"


def test_more_than_fifteen_instance_types_are_too_many() -> None:
    config = {"ComputeQuotaResources": [{"InstanceType": "ml.g5.xlarge", "Count": 1}] * 16}

    [violation] = check_request("CreateComputeQuota", a_request(ComputeQuotaConfig=config))

    assert violation.rule == "must have 0 to 15 entries; it has 16"


def test_an_update_needs_the_version_it_is_for() -> None:
    [violation] = check_request("UpdateComputeQuota", {"ComputeQuotaId": "abcdefghijkl"})

    assert (violation.path, violation.value, violation.rule) == ("TargetVersion", "(missing)", "is required")


def test_a_cluster_policy_has_at_most_ten_priority_classes() -> None:
    classes = [{"Name": f"class-{n}", "Weight": n} for n in range(11)]

    violations = check_request(
        "UpdateClusterSchedulerConfig",
        {
            "ClusterSchedulerConfigId": "abcdefghijkl",
            "TargetVersion": 1,
            "SchedulerConfig": {"PriorityClasses": classes, "FairShare": "On", "IdleResourceSharing": "Maybe"},
        },
    )

    assert [one.path for one in violations] == [
        "SchedulerConfig.PriorityClasses",
        "SchedulerConfig.FairShare",
        "SchedulerConfig.IdleResourceSharing",
    ]
