"""The lists of nodes and quotas are read as they were sent, with what botocore's own parser makes of them."""

import json
from collections.abc import Mapping
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from taskgov.backends.hyperpod_eks.sagemaker import HyperPodEks
from taskgov.errors import ThrottledError, UpstreamError
from tests.support.memory import CLUSTER_ARN

NODE = {
    "InstanceGroupName": "workers",
    "InstanceId": "i-0aaaaaaaaaaaaaaaa",
    "InstanceType": "ml.g5.8xlarge",
    "LaunchTime": 1_762_000_000,
    "InstanceStatus": {"Status": "Running"},
}


def client_that_gets(*answers: object, status: int = 200) -> Any:
    """A real client of botocore, which is given these answers in turn."""
    left = [json.dumps(answer).encode() for answer in answers]

    class Raw:
        def stream(self, **_: Any) -> list[bytes]:
            return [left.pop(0)]

    client = boto3.client("sagemaker", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    events: Any = client.meta.events
    events.register("before-send", lambda request, **_: AWSResponse(request.url, status, HTTPHeaders(), Raw()))
    return client


def listed(*answers: object) -> list[Mapping[str, Any]]:
    return HyperPodEks(client_that_gets(*answers)).cluster_nodes(CLUSTER_ARN)


def test_all_pages_are_read() -> None:
    pages = [{"ClusterNodeSummaries": [NODE], "NextToken": "1"}, {"ClusterNodeSummaries": [NODE, NODE]}]
    assert listed(*pages) == [NODE] * 3


def test_a_launch_time_that_cannot_be_read_holds_nothing_up() -> None:
    assert [node["InstanceId"] for node in listed({"ClusterNodeSummaries": [{**NODE, "LaunchTime": "soon"}]})] == [
        NODE["InstanceId"]
    ]


def test_a_launch_time_that_cannot_be_read_holds_nothing_up_beside_members_that_are_null() -> None:
    odd = {
        **NODE,
        "LaunchTime": "soon",
        "PrivateDnsHostname": None,
        "InstanceStatus": {"Status": "Running", "Message": None},
    }
    assert listed({"ClusterNodeSummaries": [odd], "NextToken": None}) == [{**NODE, "LaunchTime": "soon"}]


def test_members_that_are_null_are_left_out_as_by_botocore() -> None:
    node = {name: value for name, value in NODE.items() if name != "LaunchTime"}  # a time stays a number here
    page = {
        "ClusterNodeSummaries": [
            {**node, "PrivateDnsHostname": None, "InstanceStatus": {"Status": "Running", "Message": None}}
        ]
    }
    assert listed(page) == client_that_gets(page).list_cluster_nodes(ClusterName=CLUSTER_ARN)["ClusterNodeSummaries"]


@pytest.mark.parametrize("summaries", [None, "none", [7], [{**NODE, "InstanceStatus": "Running"}]])
def test_an_answer_of_another_form_is_an_error(summaries: object) -> None:
    with pytest.raises(UpstreamError, match="list cluster nodes"):
        listed({"ClusterNodeSummaries": summaries})


def test_an_error_stays_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)  # before it asks again
    client = client_that_gets(*[{"__type": "ThrottlingException", "message": "slow down"}] * 20, status=400)
    with pytest.raises(ThrottledError, match="slow down"):
        HyperPodEks(client).cluster_nodes(CLUSTER_ARN)


def test_quotas_are_those_that_are_described() -> None:
    quota = {
        "ComputeQuotaId": "quota0000001",
        "Name": "ant-quota",
        "ComputeQuotaVersion": 3,
        "Status": "Created",
        "ClusterArn": CLUSTER_ARN,
        "CreationTime": 1_790_000_000.25,
        "ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "VCpu": 2.5}]},
        "ComputeQuotaTarget": {"TeamName": "ant", "FairShareWeight": 1},
    }
    [listed] = HyperPodEks(client_that_gets({"ComputeQuotaSummaries": [quota]})).quotas(CLUSTER_ARN)
    assert listed == HyperPodEks(client_that_gets(quota)).quota("quota0000001")
