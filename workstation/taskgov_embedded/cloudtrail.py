"""Fix CloudTrail's answer for a trail that was created without event selectors.

moto says that it records nothing; by the service's documentation (PutEventSelectors) it records all management events,
reads and writes, and GetEventSelectors says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moto.cloudtrail.exceptions import TrailNotFoundException
from moto.cloudtrail.models import cloudtrail_backends

from taskgov_embedded.aws_api.wire import AwsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call

DEFAULT: Final = {
    "ReadWriteType": "All",
    "IncludeManagementEvents": True,
    "DataResources": [],
    "ExcludeManagementEventSources": [],
}


class CloudTrail:
    """The trails of the account, as moto keeps them."""

    def __init__(self, account: Account) -> None:
        self._place = account.place
        account.requests.answer("cloudtrail", "GetEventSelectors", self._get_event_selectors)

    def _get_event_selectors(self, call: Call) -> Mapping[str, Any]:
        backend = cloudtrail_backends[self._place.account][self._place.region]
        try:
            arn, basic, advanced = backend.get_event_selectors(call.params["TrailName"])
        except TrailNotFoundException as error:
            raise AwsError("TrailNotFoundException", error.message) from error
        if advanced:
            return {"TrailARN": arn, "AdvancedEventSelectors": advanced}
        return {"TrailARN": arn, "EventSelectors": basic or [DEFAULT]}
