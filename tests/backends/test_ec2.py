"""What EC2 and Auto Scaling report on machines, queried in batches and to the end of each list."""

from collections.abc import Mapping
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from taskgov.backends.plain_eks.machines import (
    AUTO_SCALING_BATCH,
    BATCH,
    MAX_PAGES,
    removed_by_auto_scaling,
    states_of,
)
from taskgov.errors import ThrottledError, UpstreamError

ARN = "arn:aws:eks:us-east-1:111122223333:cluster/plain"


@pytest.fixture
def ec2() -> Any:
    return boto3.client("ec2", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")


def page(states: Mapping[str, str], token: str | None = None) -> dict[str, Any]:
    made = [{"InstanceId": each, "State": {"Name": state}} for each, state in states.items()]
    return {"Reservations": [{"Instances": made}], **({"NextToken": token} if token else {})}


def ids(count: int) -> list[str]:
    return [f"i-{number:017x}" for number in range(count)]


def test_all_pages_of_all_batches_are_read(ec2: Any) -> None:
    wanted = ids(BATCH + 1)
    filters = [[{"Name": "instance-id", "Values": batch}] for batch in (wanted[:BATCH], wanted[BATCH:])]
    with Stubber(ec2) as stub:
        stub.add_response("describe_instances", page({wanted[0]: "running"}, "next"), {"Filters": filters[0]})
        more = page({wanted[1]: "terminated"})
        stub.add_response("describe_instances", more, {"Filters": filters[0], "NextToken": "next"})
        stub.add_response("describe_instances", page({}), {"Filters": filters[1]})
        found = states_of(ec2, ARN, wanted)
        stub.assert_no_pending_responses()
    assert found == {wanted[0]: "running", wanted[1]: "terminated"}


@pytest.mark.parametrize(
    ("code", "error"), [("UnauthorizedOperation", UpstreamError), ("RequestLimitExceeded", ThrottledError)]
)
def test_an_error_is_no_answer(ec2: Any, code: str, error: type[Exception]) -> None:
    with Stubber(ec2) as stub:
        stub.add_client_error("describe_instances", code, "no")
        with pytest.raises(error, match=f"describe instances: {code}"):
            states_of(ec2, ARN, ids(1))


@pytest.mark.parametrize("tokens", [["a", "b", "a"], [str(n) for n in range(MAX_PAGES + 1)]], ids=["again", "no end"])
def test_a_list_without_an_end_is_an_error(ec2: Any, tokens: list[str]) -> None:
    with Stubber(ec2) as stub:
        for number, token in enumerate(tokens):
            asked = {"Filters": ANY, **({"NextToken": tokens[number - 1]} if number else {})}
            stub.add_response("describe_instances", page({}, token), asked)
        with pytest.raises(UpstreamError, match="does not end"):
            states_of(ec2, ARN, ids(1))


def test_machines_of_another_region_are_not_asked_about(ec2: Any) -> None:
    with pytest.raises(UpstreamError, match="the cluster is in eu-west-1, but the EC2 client is in us-east-1"):
        states_of(ec2, ARN.replace("us-east-1", "eu-west-1"), ids(1))


@pytest.fixture
def auto_scaling() -> Any:
    return boto3.client("autoscaling", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")


def in_group(states: Mapping[str, str]) -> dict[str, Any]:
    rest = {"AutoScalingGroupName": "g", "AvailabilityZone": "us-east-1a", "HealthStatus": "HEALTHY"}
    made = [
        {**rest, "InstanceId": each, "LifecycleState": state, "ProtectedFromScaleIn": False}
        for each, state in states.items()
    ]
    return {"AutoScalingInstances": made}


def test_all_pages_of_all_batches_of_auto_scaling_are_read_for_what_it_terminates(auto_scaling: Any) -> None:
    wanted = ids(AUTO_SCALING_BATCH + 1)
    gone = ["Terminating:Wait", "Terminating:Proceed", "Terminating", "Terminated", "Warmed:Pending:Wait"]
    states = [*gone, "InService", "Standby", "Pending", "Detaching"]
    with Stubber(auto_scaling) as stub:
        first, second = wanted[:AUTO_SCALING_BATCH], wanted[AUTO_SCALING_BATCH:]
        found = list(zip(wanted, states, strict=False))
        short = in_group(dict(found[:3])) | {"NextToken": "next"}
        stub.add_response("describe_auto_scaling_instances", short, {"InstanceIds": first})
        rest = in_group(dict(found[3:]))
        stub.add_response("describe_auto_scaling_instances", rest, {"InstanceIds": first, "NextToken": "next"})
        stub.add_response("describe_auto_scaling_instances", in_group({}), {"InstanceIds": second})
        assert removed_by_auto_scaling(auto_scaling, ARN, wanted) == frozenset(wanted[: len(gone)])
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(("code", "error"), [("AccessDenied", UpstreamError), ("Throttling", ThrottledError)])
def test_an_error_of_auto_scaling_is_no_answer(auto_scaling: Any, code: str, error: type[Exception]) -> None:
    with Stubber(auto_scaling) as stub:
        stub.add_client_error("describe_auto_scaling_instances", code, "no")
        with pytest.raises(error, match=f"describe Auto Scaling instances: {code}"):
            removed_by_auto_scaling(auto_scaling, ARN, ids(1))


def test_auto_scaling_of_another_region_is_not_queried(auto_scaling: Any) -> None:
    with pytest.raises(UpstreamError, match="but the Auto Scaling client is in us-east-1"):
        removed_by_auto_scaling(auto_scaling, ARN.replace("us-east-1", "eu-west-1"), ids(1))


def test_a_list_of_auto_scaling_without_an_end_is_an_error(auto_scaling: Any) -> None:
    with Stubber(auto_scaling) as stub:
        for number, token in enumerate(["a", "b", "a"]):
            asked = {"InstanceIds": ANY, **({"NextToken": "?ab"[number]} if number else {})}
            stub.add_response("describe_auto_scaling_instances", in_group({}) | {"NextToken": token}, asked)
        with pytest.raises(UpstreamError, match="does not end"):
            removed_by_auto_scaling(auto_scaling, ARN, ids(1))
