"""Send changes through the API to the default bus, in the form of CloudTrail's events.

The form of the envelope is documented; that of the governance calls is inferred (`taskgov.hyperpod.inferred`).
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

from taskgov.hyperpod.inferred import POLICY_CALLS, QUOTA_CALLS, TRAIL_CODES, spellings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.eventbridge.bus import Bus

TRAILED = QUOTA_CALLS | POLICY_CALLS | {"UpdateCluster", "BatchAddClusterNodes", "BatchDeleteClusterNodes"}


class Trail:
    """A trail that logs management events, with a rule's view of it."""

    def __init__(self, account: Account, bus: Bus) -> None:
        self.delay_seconds: float = 5.0
        self.user_agents: dict[str, str] = {}
        """Person -> what the calls of that person are made with, where it is not boto3: Terraform, for example."""
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
            "userAgent": self.user_agents.get(call.principal.name, "Boto3"),
            "requestParameters": in_trail(call.params),
            "responseElements": in_trail(call.result) if call.result else None,
            "requestID": str(uuid.uuid5(uuid.NAMESPACE_URL, f"request/{number}")),
            "eventID": str(uuid.uuid5(uuid.NAMESPACE_URL, f"trail/{number}")),
            "readOnly": False,
            "eventType": "AwsApiCall",
            "managementEvent": True,
            "recipientAccountId": self._account.place.account,
            "eventCategory": "Management",
        }
        if call.error:
            detail |= {"errorCode": TRAIL_CODES.get(call.error, call.error), "errorMessage": call.error}
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


def in_trail(value: Any) -> Any:
    """Return API data as CloudTrail writes it, at every depth.

    >>> in_trail({"ComputeQuotaConfig": {"PreemptTeamTasks": "Never"}})
    {'computeQuotaConfig': {'preemptTeamTasks': 'Never'}}
    """
    if isinstance(value, dict):
        return {spellings(name)[0]: in_trail(item) for name, item in value.items()}
    return [in_trail(item) for item in value] if isinstance(value, list) else value
