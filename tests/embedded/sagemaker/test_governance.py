"""Compute quotas and scheduler configs: versions, conflicts, statuses, lists."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from taskgov_embedded.sagemaker.clusters import HyperPodCluster
    from taskgov_embedded.stack import Stack

CONFIG = {
    "ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "Count": 2}],
    "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
    "PreemptTeamTasks": "LowerPriority",
}
SCHEDULER = {"FairShare": "Enabled", "PriorityClasses": [{"Name": "inference", "Weight": 90}]}


def create(stack: Stack, cluster: HyperPodCluster, name: str = "quota", **more: Any) -> str:
    answer = stack.client("sagemaker").create_compute_quota(
        Name=name,
        ClusterArn=cluster.arn,
        ComputeQuotaConfig=CONFIG,
        ComputeQuotaTarget={"TeamName": f"team-{name}", "FairShareWeight": 10},
        **more,
    )
    made: str = answer["ComputeQuotaId"]
    return made


def describe(stack: Stack, quota: str, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = stack.client("sagemaker").describe_compute_quota(ComputeQuotaId=quota, **more)
    return answer


def code(caught: pytest.ExceptionInfo[ClientError]) -> str:
    return caught.value.response["Error"]["Code"]


def test_a_quota_is_creating_until_it_settles(stack: Stack, cluster: HyperPodCluster) -> None:
    quota = create(stack, cluster)
    assert describe(stack, quota)["Status"] == "Creating"
    stack.run_until_quiet()
    described = describe(stack, quota)
    assert (described["Status"], described["ComputeQuotaVersion"]) == ("Created", 1)
    assert described["ComputeQuotaConfig"] == CONFIG
    assert described["ActivationState"] == "Enabled"
    assert described["ComputeQuotaArn"].endswith(f":compute-quota/{quota}")


def test_an_update_makes_a_version_and_the_old_one_stays_readable(stack: Stack, cluster: HyperPodCluster) -> None:
    quota = create(stack, cluster)
    stack.run_until_quiet()
    more = CONFIG | {"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "Count": 3}]}
    answer = stack.client("sagemaker").update_compute_quota(
        ComputeQuotaId=quota, TargetVersion=1, ComputeQuotaConfig=more
    )
    assert answer["ComputeQuotaVersion"] == 2
    assert describe(stack, quota)["Status"] == "Updating"
    stack.run_until_quiet()
    assert describe(stack, quota)["Status"] == "Updated"
    assert describe(stack, quota)["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"] == 3
    assert describe(stack, quota, ComputeQuotaVersion=1)["ComputeQuotaConfig"] == CONFIG
    with pytest.raises(ClientError) as caught:
        describe(stack, quota, ComputeQuotaVersion=3)
    assert code(caught) == "ResourceNotFound"


def test_an_update_leaves_what_it_does_not_give(stack: Stack, cluster: HyperPodCluster) -> None:
    quota = create(stack, cluster, Description="first")
    stack.run_until_quiet()
    stack.client("sagemaker").update_compute_quota(ComputeQuotaId=quota, TargetVersion=1, ActivationState="Disabled")
    described = describe(stack, quota)
    assert (described["Description"], described["ActivationState"]) == ("first", "Disabled")
    assert described["ComputeQuotaTarget"]["TeamName"] == "team-quota"


@pytest.mark.parametrize("version", [0, 2, 7])
def test_a_stale_version_is_a_conflict(stack: Stack, cluster: HyperPodCluster, version: int) -> None:
    quota = create(stack, cluster)
    stack.run_until_quiet()
    with pytest.raises(ClientError) as caught:
        stack.client("sagemaker").update_compute_quota(ComputeQuotaId=quota, TargetVersion=version)
    assert code(caught) == "ConflictException"
    assert describe(stack, quota)["ComputeQuotaVersion"] == 1


def test_a_write_while_another_settles_is_a_conflict(stack: Stack, cluster: HyperPodCluster) -> None:
    quota = create(stack, cluster)
    client = stack.client("sagemaker")
    with pytest.raises(client.exceptions.ConflictException):
        client.update_compute_quota(ComputeQuotaId=quota, TargetVersion=1)
    with pytest.raises(client.exceptions.ConflictException):
        client.delete_compute_quota(ComputeQuotaId=quota)


def test_a_second_quota_of_the_name_is_a_conflict(stack: Stack, cluster: HyperPodCluster) -> None:
    create(stack, cluster)
    with pytest.raises(ClientError) as caught:
        create(stack, cluster)
    assert code(caught) == "ConflictException"


def test_a_cluster_has_one_scheduler_config(stack: Stack, cluster: HyperPodCluster) -> None:
    client = stack.client("sagemaker")
    made = client.create_cluster_scheduler_config(Name="one", ClusterArn=cluster.arn, SchedulerConfig=SCHEDULER)
    with pytest.raises(ClientError) as caught:
        client.create_cluster_scheduler_config(Name="two", ClusterArn=cluster.arn, SchedulerConfig=SCHEDULER)
    assert code(caught) == "ConflictException"
    stack.run_until_quiet()
    one_id = made["ClusterSchedulerConfigId"]
    described = client.describe_cluster_scheduler_config(ClusterSchedulerConfigId=one_id)
    assert described["SchedulerConfig"] == SCHEDULER
    assert described["StatusDetails"] == {"FairShare": "Created", "PriorityClasses": "Created"}
    (summary,) = client.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"]
    assert "SchedulerConfig" not in summary
    client.update_cluster_scheduler_config(
        ClusterSchedulerConfigId=one_id, TargetVersion=1, SchedulerConfig={"FairShare": "Disabled"}
    )
    stack.run_until_quiet()
    assert (
        client.describe_cluster_scheduler_config(ClusterSchedulerConfigId=one_id)["ClusterSchedulerConfigVersion"] == 2
    )
    client.delete_cluster_scheduler_config(ClusterSchedulerConfigId=one_id)
    stack.run_until_quiet()
    assert client.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"] == []


def test_a_deleted_quota_is_gone_when_it_has_settled(stack: Stack, cluster: HyperPodCluster) -> None:
    quota = create(stack, cluster)
    stack.run_until_quiet()
    stack.client("sagemaker").delete_compute_quota(ComputeQuotaId=quota)
    assert describe(stack, quota)["Status"] == "Deleting"
    stack.run_until_quiet()
    for call in ("describe_compute_quota", "delete_compute_quota"):
        with pytest.raises(ClientError) as caught:
            getattr(stack.client("sagemaker"), call)(ComputeQuotaId=quota)
        assert code(caught) == "ResourceNotFound"


def test_limits_are_refused_all_at_once(stack: Stack, cluster: HyperPodCluster) -> None:
    with pytest.raises(ClientError) as caught:
        stack.client("sagemaker").create_compute_quota(
            Name="a b",
            ClusterArn=cluster.arn,
            ComputeQuotaConfig={"ResourceSharingConfig": {"Strategy": "Borrow", "BorrowLimit": 10001}},
            ComputeQuotaTarget={"TeamName": "Team A", "FairShareWeight": 101},
        )
    assert code(caught) == "ValidationException"
    assert caught.value.response["Error"]["Message"].startswith("5 validation errors detected: Value 'a b' at 'name'")


def test_a_cluster_that_is_not_there_is_refused(stack: Stack, cluster: HyperPodCluster) -> None:
    with pytest.raises(ClientError) as caught:
        stack.client("sagemaker").create_compute_quota(
            Name="q",
            ClusterArn=cluster.arn[:-3] + "zzz",
            ComputeQuotaConfig=CONFIG,
            ComputeQuotaTarget={"TeamName": "t"},
        )
    assert code(caught) == "ValidationException"


@pytest.mark.parametrize("operation", ["Create", "Update", "Delete"])
def test_a_write_can_be_made_to_fail_when_it_settles(stack: Stack, cluster: HyperPodCluster, operation: str) -> None:
    stack.sagemaker.governance.fail_next(f"{operation}ComputeQuota", "the add-on is not ready")
    quota = create(stack, cluster)
    stack.run_until_quiet()
    client = stack.client("sagemaker")
    if operation == "Update":
        client.update_compute_quota(ComputeQuotaId=quota, TargetVersion=1)
    if operation == "Delete":
        client.delete_compute_quota(ComputeQuotaId=quota)
    stack.run_until_quiet()
    described = describe(stack, quota)
    assert (described["Status"], described["FailureReason"]) == (f"{operation}Failed", "the add-on is not ready")


def test_lists_are_paged_filtered_and_sorted(stack: Stack, cluster: HyperPodCluster) -> None:
    names = [f"q{number:02d}" for number in range(13)]
    for name in reversed(names):
        create(stack, cluster, name)
        stack.advance(60, [])
    client = stack.client("sagemaker")
    first = client.list_compute_quotas()
    assert len(first["ComputeQuotaSummaries"]) == 10
    assert "NextToken" in first
    pages = client.get_paginator("list_compute_quotas").paginate(SortBy="Name")
    assert [one["Name"] for page in pages for one in page["ComputeQuotaSummaries"]] == names
    newest = client.list_compute_quotas(SortBy="CreationTime", SortOrder="Descending", MaxResults=2)
    assert [one["Name"] for one in newest["ComputeQuotaSummaries"]] == ["q00", "q01"]
    assert len(client.list_compute_quotas(NameContains="q1")["ComputeQuotaSummaries"]) == 3
    assert client.list_compute_quotas(Status="Creating")["ComputeQuotaSummaries"] == []
    after = stack.clock.now - timedelta(minutes=2, seconds=30)
    assert len(client.list_compute_quotas(CreatedAfter=after)["ComputeQuotaSummaries"]) == 2
    other = cluster.arn[:-3] + "zzz"
    assert client.list_compute_quotas(ClusterArn=other)["ComputeQuotaSummaries"] == []
    with pytest.raises(ClientError) as caught:
        client.list_compute_quotas(NextToken="%%%")
    assert code(caught) == "ValidationException"


def test_hooks_are_called_for_what_settles(stack: Stack, cluster: HyperPodCluster) -> None:
    heard: list[tuple[str, str, int]] = []
    stack.sagemaker.on_quota_settled(
        lambda quota: heard.append((quota["Name"], quota["Status"], quota["ComputeQuotaVersion"]))
    )
    quota = create(stack, cluster)
    stack.run_until_quiet()
    stack.client("sagemaker").update_compute_quota(ComputeQuotaId=quota, TargetVersion=1)
    stack.run_until_quiet()
    stack.client("sagemaker").delete_compute_quota(ComputeQuotaId=quota)
    stack.run_until_quiet()
    assert heard == [("quota", "Created", 1), ("quota", "Updated", 2), ("quota", "Deleted", 2)]
    assert stack.sagemaker.quotas(cluster.arn) == []


def test_a_cluster_has_room_for_so_many_quotas(stack: Stack, cluster: HyperPodCluster) -> None:
    stack.sagemaker.governance.limit_per_cluster = 1
    create(stack, cluster, "one")
    with pytest.raises(ClientError) as caught:
        create(stack, cluster, "two")
    assert code(caught) == "ResourceLimitExceeded"
