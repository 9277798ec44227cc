"""Answer for IAM what this account decides itself: what a role may do, and inline policies that people add or remove.

SimulatePrincipalPolicy uses the same evaluation as every call of a role (`iam`, `policies`): it cannot say yes to what
`aws_requests` would refuse. Everything else of IAM is moto's.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from taskgov_embedded.aws_api.wire import AwsError
from taskgov_embedded.iam import evaluation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call


class IamService:
    """The calls of IAM that concern the template's roles."""

    def __init__(self, account: Account) -> None:
        self._policies = account.policies
        account.requests.answer("iam", "SimulatePrincipalPolicy", self._simulate)
        account.requests.answer("iam", "PutRolePolicy", self._put)
        account.requests.answer("iam", "DeleteRolePolicy", self._delete)

    def _simulate(self, call: Call) -> Mapping[str, Any]:
        role = call.params["PolicySourceArn"]
        if role not in self._policies.role_arns():
            raise AwsError("NoSuchEntity", f"No such entity exists: {role}")
        policy = self._policies.of_role(role)
        context = {
            entry["ContextKeyName"]: list(entry["ContextKeyValues"]) for entry in call.params.get("ContextEntries", ())
        }
        results = [
            _result(evaluation.evaluate(policy, action, resource, context), action, resource)
            for action in call.params["ActionNames"]
            for resource in call.params.get("ResourceArns") or ["*"]
        ]
        return {"EvaluationResults": results, "IsTruncated": False}

    def _put(self, call: Call) -> Mapping[str, Any]:
        document = json.loads(call.params["PolicyDocument"])
        self._policies.put(call.params["RoleName"], call.params["PolicyName"], document)
        return {}

    def _delete(self, call: Call) -> Mapping[str, Any]:
        try:
            self._policies.put(call.params["RoleName"], call.params["PolicyName"], None)
        except LookupError as error:
            raise AwsError("NoSuchEntity", str(error)) from error
        return {}


def _result(verdict: evaluation.Verdict, action: str, resource: str) -> Mapping[str, Any]:
    denied = "explicitDeny" if verdict.denied_by else "implicitDeny"
    return {
        "EvalActionName": action,
        "EvalResourceName": resource,
        "EvalDecision": "allowed" if verdict.allowed else denied,
        "MatchedStatements": [],
        "MissingContextValues": sorted(verdict.unknown_keys),
    }
