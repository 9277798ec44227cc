"""Answer who somebody is, and lend roles: with the credentials that the stack itself gives out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call


class Sts:
    """The two calls of STS that the stack's roles make."""

    def __init__(self, account: Account) -> None:
        self._account = account
        account.requests.answer("sts", "GetCallerIdentity", self._get_caller_identity)
        account.requests.answer("sts", "AssumeRole", self._assume_role)

    def _get_caller_identity(self, call: Call) -> Mapping[str, Any]:
        return {"UserId": call.principal.name, "Account": self._account.place.account, "Arn": call.principal.arn}

    def _assume_role(self, call: Call) -> Mapping[str, Any]:
        session = call.params["RoleSessionName"]
        credentials = self._account.identities.assume(call.params["RoleArn"], session)
        principal = self._account.identities.principal(credentials.access_key)
        return {
            "Credentials": {
                "AccessKeyId": credentials.access_key,
                "SecretAccessKey": credentials.secret_key,
                "SessionToken": credentials.token,
                "Expiration": self._account.clock.now + timedelta(seconds=call.params.get("DurationSeconds", 3600)),
            },
            "AssumedRoleUser": {"AssumedRoleId": f"AROAEXAMPLE:{session}", "Arn": principal.arn},
        }
