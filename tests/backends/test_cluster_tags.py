"""Tags of clusters: HyperPod's through SageMaker, the others through EKS. Requests are checked by botocore's model."""

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from taskgov.backends.registry import Reach, backends
from taskgov.errors import NotFoundError
from tests.support.memory import CLUSTER_ARN

EKS = "arn:aws:eks:us-east-1:111122223333:cluster/ml"
KEY, VALUE = "taskgov:stack:a", "2026-11-20T12:00:00+00:00"


class Stubbed:
    def __init__(self) -> None:
        self.sagemaker, self.eks = boto3.client("sagemaker"), boto3.client("eks")
        nobody: Any = None
        self.backends = backends(Reach(nobody, nobody, lambda: self.sagemaker, lambda: self.eks, nobody, nobody))

    def expect(self, client: Any, operation: str, asked: dict[str, Any], answer: dict[str, Any]) -> Stubber:
        stubber = Stubber(client)
        stubber.add_response(operation, answer, asked)
        stubber.activate()
        return stubber


@pytest.fixture
def stubbed() -> Stubbed:
    return Stubbed()


def test_the_tags_of_a_hyperpod_cluster_are_sagemaker_s(stubbed: Stubbed) -> None:
    answer = {"Tags": [{"Key": KEY, "Value": VALUE}]}
    stubbed.expect(stubbed.sagemaker, "list_tags", {"ResourceArn": CLUSTER_ARN, "MaxResults": 100}, answer)
    assert stubbed.backends.tags(CLUSTER_ARN) == {KEY: VALUE}


def test_the_tags_of_an_eks_cluster_are_in_its_description(stubbed: Stubbed) -> None:
    stubbed.expect(stubbed.eks, "describe_cluster", {"name": "ml"}, {"cluster": {"tags": {KEY: VALUE}}})
    assert stubbed.backends.tags(EKS) == {KEY: VALUE}


def test_an_eks_cluster_without_tags_has_none(stubbed: Stubbed) -> None:
    stubbed.expect(stubbed.eks, "describe_cluster", {"name": "ml"}, {"cluster": {}})
    assert stubbed.backends.tags(EKS) == {}


@pytest.mark.parametrize(
    ("service", "operation", "asked"),
    [
        ("sagemaker", "add_tags", {"ResourceArn": CLUSTER_ARN, "Tags": [{"Key": KEY, "Value": VALUE}]}),
        ("eks", "tag_resource", {"resourceArn": EKS, "tags": {KEY: VALUE}}),
    ],
)
def test_one_tag_is_set(stubbed: Stubbed, service: str, operation: str, asked: dict[str, Any]) -> None:
    stubber = stubbed.expect(getattr(stubbed, service), operation, asked, {})
    stubbed.backends.put_tag(EKS if service == "eks" else CLUSTER_ARN, KEY, VALUE)
    stubber.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("service", "operation", "asked"),
    [
        ("sagemaker", "delete_tags", {"ResourceArn": CLUSTER_ARN, "TagKeys": [KEY]}),
        ("eks", "untag_resource", {"resourceArn": EKS, "tagKeys": [KEY]}),
    ],
)
def test_one_tag_is_taken_away(stubbed: Stubbed, service: str, operation: str, asked: dict[str, Any]) -> None:
    stubber = stubbed.expect(getattr(stubbed, service), operation, asked, {})
    stubbed.backends.remove_tag(EKS if service == "eks" else CLUSTER_ARN, KEY)
    stubber.assert_no_pending_responses()


def test_a_cluster_that_is_gone_is_not_found(stubbed: Stubbed) -> None:
    stubber = Stubber(stubbed.sagemaker)
    stubber.add_client_error("list_tags", "ResourceNotFound")
    stubber.activate()
    with pytest.raises(NotFoundError):
        stubbed.backends.tags(CLUSTER_ARN)
