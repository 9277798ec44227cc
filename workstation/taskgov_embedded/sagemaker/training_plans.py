"""Answer DescribeTrainingPlan out of the plans that are registered: reserved machines, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskgov_embedded.aws_api.wire import AwsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call


@dataclass(slots=True)
class TrainingPlan:
    """One plan with one reserved capacity; an extension moves `ends_at`."""

    arn: str
    instance_type: str
    count: int
    starts_at: datetime
    ends_at: datetime

    @property
    def name(self) -> str:
        """What it was named at its purchase."""
        return self.arn.rpartition("/")[2]

    def describe(self, now: datetime) -> dict[str, Any]:
        """Return the DescribeTrainingPlan answer; the status goes by the clock."""
        status = "Scheduled" if now < self.starts_at else "Active" if now < self.ends_at else "Expired"
        times: dict[str, Any] = {
            "Status": status,
            "StartTime": self.starts_at,
            "EndTime": self.ends_at,
            "TotalInstanceCount": self.count,
        }
        capacity = {
            "ReservedCapacityArn": self.arn.replace(":training-plan/", ":reserved-capacity/"),
            "InstanceType": self.instance_type,
        }
        return {
            "TrainingPlanArn": self.arn,
            "TrainingPlanName": self.name,
            "TargetResources": ["hyperpod-cluster"],
            "ReservedCapacitySummaries": [capacity | times],
        } | times


class TrainingPlans:
    """All training plans of the account."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._plans: dict[str, TrainingPlan] = {}

    def buy(self, name: str, instance_type: str, count: int, starts_at: datetime, ends_at: datetime) -> TrainingPlan:
        """Make a plan known."""
        plan = TrainingPlan(
            self._account.place.arn("sagemaker", f"training-plan/{name}"), instance_type, count, starts_at, ends_at
        )
        self._plans[name] = plan
        return plan

    def extend(self, name: str, ends_at: datetime) -> None:
        """Let a plan end later. Raises KeyError when there is none of this name."""
        self._plans[name].ends_at = ends_at

    def operations(self) -> dict[str, Callable[[Call], Mapping[str, Any]]]:
        """Return the handlers by operation."""
        return {"DescribeTrainingPlan": self._describe}

    def _describe(self, call: Call) -> Mapping[str, Any]:
        name = call.params["TrainingPlanName"].rpartition("/")[2]
        if name not in self._plans:
            raise AwsError("ResourceNotFound", f"Training plan {name} not found.")
        return self._plans[name].describe(self._account.clock.now)
