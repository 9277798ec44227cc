"""What SageMaker and EC2 say of machines that were bought for a time; whatever fails says why, and stops nothing."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import boto3
import pytest
from botocore.stub import Stubber

from taskgov.backends.hyperpod_eks.training_plans import training_plans_of
from taskgov.backends.plain_eks.capacity_blocks import capacity_blocks
from taskgov.snapshot.reservations import CAPACITY_BLOCK, TRAINING_PLAN, Period, Reservation

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
EKS = "arn:aws:eks:us-east-1:111122223333:cluster/plain"
START, MIDDLE, END = (datetime(2026, 11, day, 11, 30, tzinfo=UTC) for day in (1, 15, 25))
IN_BLOCKS = {"Filters": [{"Name": "instance-lifecycle", "Values": ["capacity-block"]}]}


def client(service: Literal["ec2", "sagemaker"]) -> Any:
    return boto3.client(service, "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")


def described(**more: Any) -> Mapping[str, Any]:
    return {"TrainingPlanArn": PLAN, "TrainingPlanName": "spring", "Status": "Active", **more}


def part(start: datetime, end: datetime, status: str = "Active", instance_type: str = "ml.p5.48xlarge") -> Any:
    return {
        "ReservedCapacityArn": "arn:aws:sagemaker:us-east-1:111122223333:reserved-capacity/part-1",
        "InstanceType": instance_type,
        "TotalInstanceCount": 2,
        "Status": status,
        "StartTime": start,
        "EndTime": end,
    }


def plan_of(answer: Mapping[str, Any]) -> Reservation:
    sagemaker = client("sagemaker")
    with Stubber(sagemaker) as stub:
        stub.add_response("describe_training_plan", dict(answer), {"TrainingPlanName": PLAN})
        [found] = training_plans_of(sagemaker, [PLAN, PLAN]).reservations
    return found


def test_the_parts_of_a_training_plan_are_its_periods() -> None:
    found = plan_of(
        described(
            StartTime=START,
            EndTime=END,
            ReservedCapacitySummaries=[
                part(START, MIDDLE),
                part(MIDDLE, END, "Failed"),
                part(MIDDLE, END, "Scheduled"),
            ],
        )
    )
    periods = tuple(Period(start, end, "ml.p5.48xlarge") for start, end in ((START, MIDDLE), (MIDDLE, END)))
    assert found == Reservation(PLAN, TRAINING_PLAN, "Active", periods)


def test_a_plan_without_parts_has_its_own_times() -> None:
    found = plan_of(described(StartTime=START, EndTime=END, Status="Expired"))
    assert found == Reservation(PLAN, TRAINING_PLAN, "Expired", (Period(START, END),))


def test_a_plan_without_an_end_says_so_unless_it_failed() -> None:
    assert plan_of(described()).silence == "describe training plan: it is Active and has no EndTime"
    assert plan_of(described(Status="Failed")) == Reservation(PLAN, TRAINING_PLAN, "Failed")


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "ThrottlingException", "ResourceNotFound", "InternalFailure"]
)
def test_a_plan_that_cannot_be_read_leaves_the_others(code: str) -> None:
    sagemaker, other = client("sagemaker"), f"{PLAN}-2"
    with Stubber(sagemaker) as stub:
        stub.add_client_error("describe_training_plan", code, "no")
        answer = {**described(EndTime=END, StartTime=START), "TrainingPlanArn": other}
        stub.add_response("describe_training_plan", answer, {"TrainingPlanName": other})
        silent, found = training_plans_of(sagemaker, [other, PLAN]).reservations
    assert (silent.id, silent.silence) == (PLAN, f"describe training plan: {code}: no")
    assert (found.id, found.silence) == (other, "")


def instances(blocks: Mapping[str, str], token: str | None = None) -> dict[str, Any]:
    made = [{"InstanceId": its_id, "CapacityReservationId": block} for its_id, block in blocks.items()]
    return {"Reservations": [{"Instances": made}], **({"NextToken": token} if token else {})}


def listed(*blocks: tuple[str, str]) -> dict[str, Any]:
    return {
        "CapacityReservations": [
            {
                "CapacityReservationId": its_id,
                "State": state,
                "StartDate": START,
                "EndDate": END,
                "ReservationType": "capacity-block",
            }
            for its_id, state in blocks
        ]
    }


def test_instances_in_blocks_are_listed_to_the_end_and_their_blocks_looked_up() -> None:
    ec2 = client("ec2")
    with Stubber(ec2) as stub:
        stub.add_response("describe_instances", instances({"i-1": "cr-1"}, "next"), IN_BLOCKS)
        stub.add_response("describe_instances", instances({"i-2": "cr-2"}), {**IN_BLOCKS, "NextToken": "next"})
        stub.add_response("describe_capacity_reservations", listed(("cr-1", "active"), ("cr-9", "active")), {})
        found = capacity_blocks(lambda: ec2, EKS)
    assert found.by_machine == {"i-1": "cr-1", "i-2": "cr-2"}
    first, second = found.reservations
    assert first == Reservation("cr-1", CAPACITY_BLOCK, "active", (Period(START, END),))
    assert second.silence == "describe capacity reservations: cr-2 is not listed"


def test_an_account_without_blocks_is_asked_one_thing() -> None:
    ec2 = client("ec2")
    with Stubber(ec2) as stub:
        stub.add_response("describe_instances", {"Reservations": []}, IN_BLOCKS)
        found = capacity_blocks(lambda: ec2, EKS)
        stub.assert_no_pending_responses()
    assert (found.reservations, found.by_machine) == ((), {})


@pytest.mark.parametrize("refused", ["describe_instances", "describe_capacity_reservations"])
def test_what_ec2_refuses_is_said(refused: str) -> None:
    ec2 = client("ec2")
    with Stubber(ec2) as stub:
        if refused != "describe_instances":
            stub.add_response("describe_instances", instances({"i-1": "cr-1"}), IN_BLOCKS)
        stub.add_client_error(refused, "UnauthorizedOperation", "no")
        [silent] = capacity_blocks(lambda: ec2, EKS).reservations
    assert (silent.id, silent.silence) == ("", f"{refused.replace('_', ' ')}: UnauthorizedOperation: no")


def test_a_list_without_an_end_is_said() -> None:
    ec2 = client("ec2")
    with Stubber(ec2) as stub:
        stub.add_response("describe_instances", instances({"i-1": "cr-1"}, "a"), IN_BLOCKS)
        stub.add_response("describe_instances", instances({}, "b"), {**IN_BLOCKS, "NextToken": "a"})
        stub.add_response("describe_instances", instances({}, "a"), {**IN_BLOCKS, "NextToken": "b"})
        [silent] = capacity_blocks(lambda: ec2, EKS).reservations
    assert "the list does not end" in silent.silence


def test_a_cluster_in_another_region_is_not_asked_about() -> None:
    [silent] = capacity_blocks(lambda: client("ec2"), EKS.replace("us-east-1", "eu-west-1")).reservations
    assert "the cluster is in eu-west-1, but the EC2 client is in us-east-1" in silent.silence


class OddAnswers:
    """A client whose answers have a form that no model knows: botocore's stub would not give them."""

    meta = client("ec2").meta

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def describe_training_plan(self, **asked: str) -> Any:
        return self._answer

    def get_paginator(self, operation: str) -> Any:
        return self

    def paginate(self, **asked: Any) -> list[Any]:
        return [self._answer]


ODD = [
    {},
    None,
    {"Status": "Active", "EndTime": "soon", "Reservations": [{"Instances": [{"CapacityReservationId": "cr-1"}]}]},
    {"Status": "Active", "EndTime": datetime(2026, 11, 25), "Reservations": 3},  # noqa: DTZ001 - no time zone
]


@pytest.mark.parametrize("answer", ODD)
def test_an_answer_of_another_form_is_said_and_raises_nothing(answer: Any) -> None:
    odd: Any = OddAnswers(answer)
    for reserved in (training_plans_of(odd, [PLAN]), capacity_blocks(lambda: odd, EKS)):
        [silent] = reserved.reservations
        assert "cannot be read" in silent.silence
