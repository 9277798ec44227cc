"""Tell the default bus about changes through the API, in the form of CloudTrail's events.

The form of SageMaker's events is documented; that of the governance calls is inferred from it: members with a first
letter in lower case, no cluster in Update and Delete, `errorCode` when the call failed.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.eventbridge.bus import Bus

TRAILED = frozenset(
    f"{verb}{kind}" for verb in ("Create", "Update", "Delete") for kind in ("ComputeQuota", "ClusterSchedulerConfig")
) | {"UpdateCluster", "BatchAddClusterNodes", "BatchDeleteClusterNodes"}

ERROR_CODES = {"AccessDeniedException": "AccessDenied"}
"""CloudTrail's word for an error, where it is another one."""


class Trail:
    """A trail that logs management events, with a rule's view of it."""

    def __init__(self, account: Account, bus: Bus) -> None:
        self.delay_seconds: float = 5.0
        self._account = account
        self._bus = bus
        account.requests.listeners.append(self._on_call)

    def _on_call(self, call: Call) -> None:
        if call.service == "sagemaker" and call.operation in TRAILED:
            detail = self._detail(call)
            self._account.clock.after(self.delay_seconds, partial(self._publish, detail))

    def _publish(self, detail: Mapping[str, Any]) -> None:
        self._bus.publish("aws.sagemaker", "AWS API Call via CloudTrail", detail)

    def _detail(self, call: Call) -> dict[str, Any]:
        number = len(self._account.requests.calls)
        detail = {
            "eventVersion": "1.11",
            "userIdentity": self._identity(call),
            "eventTime": self._account.clock.iso,
            "eventSource": "sagemaker.amazonaws.com",
            "eventName": call.operation,
            "awsRegion": self._account.place.region,
            "sourceIPAddress": "192.0.2.1",
            "userAgent": "Boto3",
            "requestParameters": _lowered(call.params),
            "responseElements": _lowered(call.result) if call.result else None,
            "requestID": str(uuid.uuid5(uuid.NAMESPACE_URL, f"request/{number}")),
            "eventID": str(uuid.uuid5(uuid.NAMESPACE_URL, f"trail/{number}")),
            "readOnly": False,
            "eventType": "AwsApiCall",
            "managementEvent": True,
            "recipientAccountId": self._account.place.account,
            "eventCategory": "Management",
        }
        if call.error:
            detail |= {"errorCode": ERROR_CODES.get(call.error, call.error), "errorMessage": call.error}
        return detail

    def _identity(self, call: Call) -> dict[str, Any]:
        account, principal = self._account.place.account, call.principal
        if principal.role_arn is None:
            return {
                "type": "IAMUser",
                "principalId": "AIDAEXAMPLE",
                "arn": principal.arn,
                "accountId": account,
                "userName": principal.name,
            }
        return {
            "type": "AssumedRole",
            "principalId": f"AROAEXAMPLE:{principal.arn.rpartition('/')[2]}",
            "arn": principal.arn,
            "accountId": account,
            "sessionContext": {
                "sessionIssuer": {
                    "type": "Role",
                    "principalId": "AROAEXAMPLE",
                    "arn": principal.role_arn,
                    "accountId": account,
                    "userName": principal.name,
                },
                "attributes": {"creationDate": self._account.clock.iso, "mfaAuthenticated": "false"},
            },
        }


def _lowered(value: Any) -> Any:
    """Return API data with the first letter of each member in lower case, nested as well.

    >>> _lowered({"ComputeQuotaConfig": {"PreemptTeamTasks": "Never"}})
    {'computeQuotaConfig': {'preemptTeamTasks': 'Never'}}
    """
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _lowered(item) for key, item in value.items()}
    return [_lowered(item) for item in value] if isinstance(value, list) else value
