"""The training plans of a HyperPod cluster, as SageMaker describes them (DescribeTrainingPlan)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from taskgov.adapters.errors import UNREADABLE, translated
from taskgov.errors import GovernanceError
from taskgov.snapshot.leaving import Reserved
from taskgov.snapshot.reservations import NEVER_DELIVERED, TRAINING_PLAN, Period, Reservation

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient


_WHAT: Final = "describe training plan"


def training_plans_of(sagemaker: "SageMakerClient", arns: Sequence[str]) -> Reserved:
    """Return the plans by ARN, one call for each. What cannot be read of one says why, and leaves the others."""
    return Reserved(tuple(_plan(sagemaker, arn) for arn in sorted(set(arns))))


def _plan(sagemaker: "SageMakerClient", arn: str) -> Reservation:
    try:
        with translated(_WHAT):
            answer = sagemaker.describe_training_plan(TrainingPlanName=arn)
        status, periods = answer["Status"], tuple(_periods(answer))
    except GovernanceError as error:
        return Reservation.silent(arn, TRAINING_PLAN, str(error))
    except UNREADABLE as error:
        return Reservation.silent(arn, TRAINING_PLAN, f"{_WHAT}: the answer cannot be read ({type(error).__name__})")
    if not periods and status not in NEVER_DELIVERED:
        return Reservation.silent(arn, TRAINING_PLAN, f"{_WHAT}: it is {status} and has no EndTime")
    return Reservation(arn, TRAINING_PLAN, status, periods)


def _periods(answer: Mapping[str, Any]) -> Iterator[Period]:
    """Give the reserved capacities of a plan; the plan's own times where it lists none. Failed ones never began."""
    for part in answer.get("ReservedCapacitySummaries") or [answer]:
        if part.get("Status") not in NEVER_DELIVERED and "EndTime" in part:
            ends_at = part["EndTime"]
            yield Period(part.get("StartTime", ends_at), ends_at, part.get("InstanceType"))
