"""An order names a cluster as events and steps do: what an order is taken for can be started."""

import json
from collections.abc import Mapping

import pytest

from taskgov.contracts.orders import order_of
from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.cluster_arn import cluster_arn

SAGEMAKER = "arn:aws:sagemaker:us-east-1:111122223333:cluster/"
EKS = "arn:aws:eks:us-east-1:111122223333:cluster/"
ACTIONS = (
    {"action": "approve", "planId": "plan-1"},
    {"action": "apply", "planId": "plan-1"},
    {"action": "reconcile"},
    {"action": "unlock", "owner": "run-1", "fencingToken": 3, "reason": "deleted"},
    {"action": "put-document", "clusterName": "ml-cluster", "text": "{}"},
)


def body(action: Mapping[str, object], arn: str) -> dict[str, str]:
    return {"body": json.dumps({**action, "clusterArn": arn})}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action["action"])
@pytest.mark.parametrize("arn", [f"{SAGEMAKER}ml-cluster", f"{SAGEMAKER}ABCDEFGHIJKL", f"{EKS}-ml", f"{EKS}ml\n", "ml"])
def test_an_arn_that_is_no_cluster_s_is_refused_in_every_order(action: Mapping[str, object], arn: str) -> None:
    with pytest.raises(ValueError, match="is not the ARN of a HyperPod or EKS cluster"):
        cluster_arn(arn)
    with pytest.raises(InvalidRequestError, match=r"clusterArn: .* is not the ARN of a HyperPod or EKS cluster"):
        order_of(body(action, arn))


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action["action"])
@pytest.mark.parametrize("arn", [f"{SAGEMAKER}abcdefghijkl", f"{EKS}ml-cluster"])
def test_the_arn_of_a_cluster_is_taken(action: Mapping[str, object], arn: str) -> None:
    order = order_of(body(action, arn))
    assert order.to_json()["clusterArn"] == arn


def test_an_arn_that_is_too_long_for_a_key_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"clusterArn: .* at most 200 characters"):
        order_of(body(ACTIONS[2], f"arn:aws:sagemaker:{'a' * 2000}:111122223333:cluster/abcdefghijkl"))
