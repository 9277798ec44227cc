"""Collect the policies of the template's roles: inline, attached, and AWS's own managed ones."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from moto.iam.aws_managed_policies import aws_managed_policies_data

from taskgov_embedded.iam import evaluation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.cloudformation.resources import Resolved, Resources
    from taskgov_embedded.place import Place


class Policies:
    """The statements of each role, read once."""

    def __init__(self, resources: Resources, place: Place) -> None:
        self._resources = resources
        self._place = place
        self._by_role: dict[str, tuple[evaluation.Statement, ...]] = {}
        self._inline: dict[str, dict[str, Any]] = {}
        """What people changed of a role's inline policies: role's name -> policy's name -> document."""

    def put(self, role_name: str, policy_name: str, document: Mapping[str, Any] | None) -> None:
        """Replace an inline policy of a role, or remove it (None). Raises LookupError for an unknown role."""
        role = next((known for known in self._resources.of("AWS::IAM::Role") if known.physical_id == role_name), None)
        if role is None:
            raise LookupError(f"The role with name {role_name} cannot be found.")
        inline = self._inline.setdefault(role_name, _inline_of(role))
        if document is None and policy_name not in inline:
            raise LookupError(f"The role policy with name {policy_name} cannot be found.")
        if document is None:
            del inline[policy_name]
        else:
            inline[policy_name] = dict(document)
        self._by_role.pop(self._arn(role), None)

    def of_role(self, role_arn: str) -> tuple[evaluation.Statement, ...]:
        """Return the statements of a role of the template; a role that is not in it may do nothing."""
        if role_arn not in self._by_role:
            role = self._role(role_arn)
            self._by_role[role_arn] = () if role is None else tuple(self._statements(role, role_arn))
        return self._by_role[role_arn]

    def trusts(self, role_arn: str, service: str, context: Mapping[str, str]) -> bool:
        """Return whether a service may assume a role of the template, with the condition keys that it gives."""
        role = self._role(role_arn)
        if role is None:
            return False
        trust = evaluation.statements(role_arn, "trust", _document(role.properties["AssumeRolePolicyDocument"]))
        return evaluation.evaluate(trust, "sts:AssumeRole", role_arn, context, principal=service).allowed

    def forget(self) -> None:
        """Read the policies again: the template has changed."""
        self._by_role.clear()

    def role_arns(self) -> tuple[str, ...]:
        """Return every role of the template."""
        return tuple(self._arn(role) for role in self._resources.of("AWS::IAM::Role"))

    def granted(self) -> tuple[evaluation.Grant, ...]:
        """Return everything that the template's roles are allowed."""
        return tuple(grant for role in self.role_arns() for grant in evaluation.grants_of(self.of_role(role)))

    def _arn(self, role: Resolved) -> str:
        path = role.properties.get("Path", "/")
        return f"arn:{self._place.partition}:iam::{self._place.account}:role{path}{role.physical_id}"

    def _role(self, role_arn: str) -> Resolved | None:
        return next((role for role in self._resources.of("AWS::IAM::Role") if self._arn(role) == role_arn), None)

    def _statements(self, role: Resolved, role_arn: str) -> list[evaluation.Statement]:
        found: list[evaluation.Statement] = []
        inline = self._inline.get(role.physical_id, _inline_of(role))
        for name, document in inline.items():
            found += evaluation.statements(role_arn, name, document)
        for arn in role.properties.get("ManagedPolicyArns", []):
            found += evaluation.statements(role_arn, arn.rpartition("/")[2], self._managed(arn))
        for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
            for policy in self._resources.of(kind):
                if role.physical_id in policy.properties.get("Roles", []):
                    found += evaluation.statements(
                        role_arn, policy.logical_id, _document(policy.properties["PolicyDocument"])
                    )
        return found

    def _managed(self, arn: str) -> dict[str, Any]:
        for policy in self._resources.of("AWS::IAM::ManagedPolicy"):
            if policy.physical_id == arn:
                return _document(policy.properties["PolicyDocument"])
        document: dict[str, Any] = _aws_managed()[arn.rpartition("/")[2]]["Document"]
        return document


def _inline_of(role: Resolved) -> dict[str, Any]:
    return {policy["PolicyName"]: _document(policy["PolicyDocument"]) for policy in role.properties.get("Policies", [])}


def _document(document: Any) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(document) if isinstance(document, str) else document
    return read


@cache
def _aws_managed() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(aws_managed_policies_data)
    return read
