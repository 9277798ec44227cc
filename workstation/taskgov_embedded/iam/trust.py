"""Check that each service may assume the role that the template gives it: AWS refuses the resource where it may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskgov_embedded.cloudformation.resources import Resolved, Resources
    from taskgov_embedded.iam.policies import Policies
    from taskgov_embedded.place import Place

_ASSUMED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "AWS::Lambda::Function": (("Role",), "lambda.amazonaws.com"),
    "AWS::StepFunctions::StateMachine": (("RoleArn",), "states.amazonaws.com"),
    "AWS::Scheduler::Schedule": (("Target", "RoleArn"), "scheduler.amazonaws.com"),
    "AWS::CodeDeploy::DeploymentGroup": (("ServiceRoleArn",), "codedeploy.amazonaws.com"),
}
"""Kind of resource -> where its role stands, and which service assumes it."""


class CannotBeAssumedError(Exception):
    """A resource whose service its role does not trust."""


def check(resources: Resources, policies: Policies, place: Place) -> None:
    """Raise CannotBeAssumedError that names each resource of the template whose service may not assume its role."""
    wrong = [
        f"{logical_id}: the role {role} cannot be assumed by {service}"
        for logical_id, role, service, source in _assumed(resources, place)
        if not policies.trusts(role, service, {"aws:SourceAccount": place.account, **source})
    ]
    if wrong:
        raise CannotBeAssumedError("; ".join(wrong))


def _assumed(resources: Resources, place: Place) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    for kind, (path, service) in _ASSUMED.items():
        for resource in resources.of(kind):
            role: Any = resource.properties
            for name in path:
                role = role.get(name, {})
            yield resource.logical_id, str(role), service, _source(resource, place)


def _source(resource: Resolved, place: Place) -> Mapping[str, str]:
    """Return for what the service acts, where it says so: EventBridge Scheduler names the group of a schedule."""
    group = resource.properties.get("GroupName")
    return {"aws:SourceArn": place.arn("scheduler", f"schedule-group/{group}")} if group else {}
