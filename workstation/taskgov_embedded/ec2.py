"""Answer for EC2 what moto does not: Capacity Blocks, and which instances run in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moto.core.utils import get_service_model

from taskgov_embedded.aws_api import model_checks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call


@dataclass(slots=True)
class CapacityBlock:
    """One block: the id of its Capacity Reservation, its instances, and when it ends."""

    id: str
    instance_type: str
    instance_ids: tuple[str, ...]
    starts_at: datetime
    ends_at: datetime

    def describe(self, now: datetime) -> dict[str, Any]:
        """Return its part of the DescribeCapacityReservations answer; the state goes by the clock."""
        return {
            "CapacityReservationId": self.id,
            "InstanceType": self.instance_type,
            "TotalInstanceCount": len(self.instance_ids),
            "State": "active" if now < self.ends_at else "expired",
            "StartDate": self.starts_at,
            "EndDate": self.ends_at,
            "EndDateType": "limited",
            "ReservationType": "capacity-block",
        }


class Ec2:
    """The Capacity Blocks of the account. Everything else of EC2 is moto's."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.blocks: list[CapacityBlock] = []
        answers = {"DescribeCapacityReservations": self._reservations, "DescribeInstances": self._in_blocks}
        for operation, handler in answers.items():
            account.requests.answer("ec2", operation, _checked(operation, handler))

    def _reservations(self, _call: Call) -> Mapping[str, Any]:
        return {"CapacityReservations": [block.describe(self._account.clock.now) for block in self.blocks]}

    def _in_blocks(self, call: Call) -> Mapping[str, Any] | None:
        """List the instances in blocks; None for any other question, which moto answers."""
        asked = {asked["Name"]: asked["Values"] for asked in call.params.get("Filters", ())}
        if asked != {"instance-lifecycle": ["capacity-block"]}:
            return None
        found = [
            {"InstanceId": its_id, "InstanceLifecycle": "capacity-block", "CapacityReservationId": block.id}
            for block in self.blocks
            for its_id in block.instance_ids
        ]
        return {"Reservations": [{"Instances": found}] if found else []}


def _checked(
    operation: str, handler: Callable[[Call], Mapping[str, Any] | None]
) -> Callable[[Call], Mapping[str, Any] | None]:
    """Make sure that an answer fits the model of the API."""
    shape = get_service_model("ec2").operation_model(operation).output_shape

    def answer(call: Call) -> Mapping[str, Any] | None:
        result = handler(call)
        if result is not None:
            model_checks.check_answer(operation, shape, result)
        return result

    return answer
