"""The SageMaker adapter, with every request checked against botocore's service model."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
from botocore.stub import Stubber

from taskgov.backends.hyperpod_eks.sagemaker import HyperPodEks
from taskgov.errors import ConflictError, InvalidRequestError, NotFoundError, ThrottledError, UpstreamError
from taskgov.hyperpod.model import (
    ComputeQuotaConfig,
    ComputeQuotaResource,
    ComputeQuotaTarget,
    PriorityClass,
    SchedulerConfig,
)
from taskgov.ports import Written
from taskgov.services.take_snapshot import cluster_facts
from tests.support.memory import CLUSTER_ARN

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

    from taskgov.snapshot.unreadable import UnreadableObject

CONFIG = ComputeQuotaConfig(compute_quota_resources=(ComputeQuotaResource(instance_type="ml.g5.8xlarge", count=2),))
TARGET = ComputeQuotaTarget(team_name="team-a", fair_share_weight=10)
API_CONFIG = {"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "Count": 2}]}
API_TARGET = {"TeamName": "team-a", "FairShareWeight": 10}
QUOTA_ARN = "arn:aws:sagemaker:us-east-1:111122223333:compute-quota/quota0000001"


@pytest.fixture
def stub() -> Iterator[Stubber]:
    stubber = Stubber(boto3.client("sagemaker"))
    with stubber:
        yield stubber
    stubber.assert_no_pending_responses()


@pytest.fixture
def sagemaker(stub: Stubber) -> HyperPodEks:
    return HyperPodEks(cast("SageMakerClient", stub.client))


@pytest.mark.parametrize("name", ["ml_cluster", "ml-", "x" * 64, "notes.v2"])
def test_a_name_that_only_other_clusters_can_have_is_not_found_without_a_call(
    sagemaker: HyperPodEks, name: str
) -> None:
    with pytest.raises(NotFoundError, match=f"^cluster {name}: a HyperPod cluster cannot have this name$"):
        sagemaker.describe_cluster(name)


def group(name: str, **more: Any) -> dict[str, Any]:
    return {"InstanceGroupName": name, "CurrentCount": 2, "TargetCount": 2, **more}


def test_threads_per_core_come_from_every_kind_of_instance_group(stub: Stubber, sagemaker: HyperPodEks) -> None:
    """The stub holds the answer to the service model: a member that the API does not have is refused."""
    flexible = [
        {"InstanceType": "ml.m5.xlarge", "CurrentCount": 1, "ThreadsPerCore": 1},
        {"InstanceType": "ml.c5.xlarge", "CurrentCount": 1, "ThreadsPerCore": 2},
    ]
    answer = {
        "ClusterArn": CLUSTER_ARN,
        "ClusterName": "ml-cluster",
        "ClusterStatus": "InService",
        "InstanceGroups": [
            group("workers", InstanceType="ml.g5.8xlarge", ThreadsPerCore=1),
            group("flexible", InstanceTypeDetails=flexible, InstanceRequirements={}),
            group("silent", InstanceType="ml.m5.xlarge"),
            group("empty", InstanceRequirements={"CurrentInstanceTypes": ["ml.m5.xlarge"]}),
        ],
        "RestrictedInstanceGroups": [group("nova", InstanceType="ml.p5.48xlarge", ThreadsPerCore=2)],
    }
    stub.add_response("describe_cluster", answer, {"ClusterName": CLUSTER_ARN})

    groups = cluster_facts(sagemaker.describe_cluster(CLUSTER_ARN)).instance_groups

    assert {each.name: {one.instance_type: one.threads_per_core for one in each.instance_types} for each in groups} == {
        "empty": {},
        "flexible": {"ml.c5.xlarge": 2, "ml.m5.xlarge": 1},
        "nova": {"ml.p5.48xlarge": 2},
        "silent": {"ml.m5.xlarge": None},
        "workers": {"ml.g5.8xlarge": 1},
    }


def summary(name: str, quota_id: str = "quota0000001", **more: Any) -> dict[str, Any]:
    return {
        "ComputeQuotaArn": QUOTA_ARN,
        "ComputeQuotaId": quota_id,
        "Name": name,
        "ComputeQuotaVersion": 1,
        "Status": "Created",
        "ClusterArn": CLUSTER_ARN,
        "ComputeQuotaConfig": API_CONFIG,
        "ComputeQuotaTarget": API_TARGET,
        "CreationTime": datetime(2026, 11, 20, tzinfo=UTC),
        **more,
    }


def test_quotas_come_by_name_from_all_pages_without_deleted_ones(stub: Stubber, sagemaker: HyperPodEks) -> None:
    asked = {"ClusterArn": CLUSTER_ARN, "MaxResults": 100}
    first = [summary("b"), summary("gone", "quota0000009", Status="Deleted")]
    stub.add_response("list_compute_quotas", {"ComputeQuotaSummaries": first, "NextToken": "more"}, asked)
    second = {"ComputeQuotaSummaries": [summary("a", "quota0000002")]}
    stub.add_response("list_compute_quotas", second, {**asked, "NextToken": "more"})
    quotas = sagemaker.quotas(CLUSTER_ARN)
    assert [quota.name for quota in quotas] == ["a", "b"]
    assert quotas[0].compute_quota_config == CONFIG


def test_a_summary_without_its_configuration_is_described(stub: Stubber, sagemaker: HyperPodEks) -> None:
    bare = summary("a")
    del bare["ComputeQuotaConfig"]
    stub.add_response("list_compute_quotas", {"ComputeQuotaSummaries": [bare]})
    stub.add_response("describe_compute_quota", summary("a"), {"ComputeQuotaId": "quota0000001"})
    (quota,) = sagemaker.quotas(CLUSTER_ARN)
    assert quota.compute_quota_config == CONFIG


def test_an_update_sends_the_whole_configuration_at_the_version_that_was_seen(
    stub: Stubber, sagemaker: HyperPodEks
) -> None:
    stub.add_response(
        "update_compute_quota",
        {"ComputeQuotaArn": QUOTA_ARN, "ComputeQuotaVersion": 5},
        {
            "ComputeQuotaId": "quota0000001",
            "TargetVersion": 4,
            "ComputeQuotaConfig": API_CONFIG,
            "ComputeQuotaTarget": API_TARGET,
        },
    )
    assert sagemaker.update_quota("quota0000001", 4, CONFIG, TARGET) == Written("quota0000001", 5)


def test_a_created_quota_is_at_version_one(stub: Stubber, sagemaker: HyperPodEks) -> None:
    stub.add_response(
        "create_compute_quota",
        {"ComputeQuotaArn": QUOTA_ARN, "ComputeQuotaId": "quota0000001"},
        {
            "Name": "team-a",
            "ClusterArn": CLUSTER_ARN,
            "ComputeQuotaConfig": API_CONFIG,
            "ComputeQuotaTarget": API_TARGET,
            "ActivationState": "Enabled",
        },
    )
    assert sagemaker.create_quota(CLUSTER_ARN, "team-a", CONFIG, TARGET) == Written("quota0000001", 1)


def test_a_cluster_without_a_cluster_policy_has_none(stub: Stubber, sagemaker: HyperPodEks) -> None:
    stub.add_response("list_cluster_scheduler_configs", {"ClusterSchedulerConfigSummaries": []})
    assert sagemaker.scheduler_config(CLUSTER_ARN) is None


def test_a_cluster_policy_that_is_listed_and_gone_by_then_is_none(stub: Stubber, sagemaker: HyperPodEks) -> None:
    summary = {
        "ClusterSchedulerConfigArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster-scheduler-config/config000001",
        "ClusterSchedulerConfigId": "config000001",
        "Name": "policy",
        "CreationTime": datetime(2026, 11, 20, tzinfo=UTC),
        "Status": "Deleting",
    }
    stub.add_response("list_cluster_scheduler_configs", {"ClusterSchedulerConfigSummaries": [summary]})
    stub.add_client_error("describe_cluster_scheduler_config", "ResourceNotFound")
    assert sagemaker.scheduler_config(CLUSTER_ARN) is None


def test_the_cluster_policy_is_updated_at_its_version(stub: Stubber, sagemaker: HyperPodEks) -> None:
    arn = "arn:aws:sagemaker:us-east-1:111122223333:cluster-scheduler-config/config000001"
    stub.add_response(
        "update_cluster_scheduler_config",
        {"ClusterSchedulerConfigArn": arn, "ClusterSchedulerConfigVersion": 3},
        {
            "ClusterSchedulerConfigId": "config000001",
            "TargetVersion": 2,
            "SchedulerConfig": {"PriorityClasses": [{"Name": "training", "Weight": 70}]},
        },
    )
    config = SchedulerConfig(priority_classes=(PriorityClass(name="training", weight=70),))
    assert sagemaker.update_scheduler_config("config000001", 2, config) == Written("config000001", 3)


@pytest.mark.parametrize(
    ("code", "want"),
    [
        ("ConflictException", ConflictError),
        ("ResourceNotFound", NotFoundError),
        ("ThrottlingException", ThrottledError),
        ("ResourceLimitExceeded", InvalidRequestError),
        ("ValidationException", InvalidRequestError),
        ("InternalFailure", UpstreamError),
        ("AccessDeniedException", UpstreamError),
    ],
)
def test_a_service_error_becomes_the_error_that_the_state_machine_catches(
    code: str, want: type[Exception], stub: Stubber, sagemaker: HyperPodEks
) -> None:
    stub.add_client_error("update_compute_quota", code, "the service's own words")
    with pytest.raises(want, match="the service's own words"):
        sagemaker.update_quota("quota0000001", 4, CONFIG, TARGET)


def test_a_request_that_botocore_refuses_is_an_invalid_request() -> None:
    with pytest.raises(InvalidRequestError, match="TargetVersion"):
        HyperPodEks(boto3.client("sagemaker")).update_quota("quota0000001", "four", CONFIG, TARGET)  # type: ignore[arg-type]


class Listing(HyperPodEks):
    """Lists what no service would list: the stub, which knows the service's model, refuses it."""

    def __init__(self, stub: Stubber, *rows: Any, **settings: Any) -> None:
        super().__init__(cast("SageMakerClient", stub.client), **settings)
        self.rows = rows

    def _pages(self, operation: str, member: str, **arguments: str) -> list[Any]:
        return list(self.rows)


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


NO_QUOTA = summary("odd", "quota0000007")
ODD_ROWS = {
    "no object": 7,
    "null": None,
    "no id": without(NO_QUOTA, "ComputeQuotaId"),
    "no target": without(without(NO_QUOTA, "ComputeQuotaId"), "ComputeQuotaTarget"),
    "a version that is text": without(NO_QUOTA, "ComputeQuotaId") | {"ComputeQuotaVersion": "many"},
    "resources that are text": without(NO_QUOTA, "ComputeQuotaId") | {"ComputeQuotaConfig": "all"},
}


@pytest.mark.parametrize("case", ODD_ROWS)
def test_an_odd_summary_of_a_quota_is_left_out_and_named_and_the_others_are_read(stub: Stubber, case: str) -> None:
    listing = Listing(stub, summary("a"), ODD_ROWS[case], summary("b", "quota0000002"))
    told: list[UnreadableObject] = []
    assert [quota.name for quota in listing.quotas(CLUSTER_ARN, told.append)] == ["a", "b"]
    assert [each.kind for each in told] == ["ComputeQuota"]
    with pytest.raises(UpstreamError, match="ComputeQuota"):
        listing.quotas(CLUSTER_ARN)


def test_an_odd_summary_of_a_quota_that_can_be_described_is_read_that_way(stub: Stubber) -> None:
    stub.add_response("describe_compute_quota", summary("odd", "quota0000007"), {"ComputeQuotaId": "quota0000007"})
    (quota,) = Listing(stub, without(NO_QUOTA, "ComputeQuotaTarget")).quotas(CLUSTER_ARN)
    assert quota.name == "odd"


def test_a_quota_that_is_gone_when_it_is_described_is_left_out(stub: Stubber) -> None:
    stub.add_client_error("describe_compute_quota", "ResourceNotFound")
    assert Listing(stub, without(NO_QUOTA, "ComputeQuotaConfig")).quotas(CLUSTER_ARN) == ()


def test_odd_summaries_of_cluster_policies_are_left_out_and_named(stub: Stubber) -> None:
    told: list[UnreadableObject] = []
    listing = Listing(stub, {"Status": "Created"}, {"ClusterSchedulerConfigId": "abcdefghijkl"}, None)
    assert listing.scheduler_config(CLUSTER_ARN, told.append) is None
    assert [(each.kind, each.name) for each in told] == [
        ("ClusterSchedulerConfig", ""),
        ("ClusterSchedulerConfig", "abcdefghijkl"),
        ("ClusterSchedulerConfig", ""),
    ]


def test_an_odd_summary_of_a_cluster_leaves_the_others_in_the_list(stub: Stubber) -> None:
    told: list[UnreadableObject] = []
    listing = Listing(stub, {"ClusterArn": CLUSTER_ARN, "ClusterName": "ml-cluster"}, {"ClusterName": "odd"}, 7)
    assert listing.clusters(told.append) == [CLUSTER_ARN]
    assert [each.name for each in told] == ["odd", ""]


def test_the_list_has_the_clusters_that_are_governed(stub: Stubber) -> None:
    rows = [{"ClusterArn": f"{CLUSTER_ARN}{name}", "ClusterName": name} for name in ("one", "two")]
    listing = Listing(stub, *rows, governed=lambda: lambda name: name == "two")
    assert listing.clusters() == [f"{CLUSTER_ARN}two"]
