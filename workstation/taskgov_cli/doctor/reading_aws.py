"""Read what the doctor examines in AWS: one function a thing, each raising GovernanceError where it cannot be read."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import boto3

from taskgov.adapters.errors import translated
from taskgov.adapters.s3 import POLICY_KEY, Bucket
from taskgov.bootstrap.aws import CONFIG
from taskgov.errors import GovernanceError, NotFoundError
from taskgov.hyperpod.cluster_arn import EKS_ARN
from taskgov.hyperpod.names import ADD_ON
from taskgov_cli.doctor.facts import (
    AccessEntry,
    AddOn,
    Cluster,
    DeployedStack,
    EksCluster,
    Permission,
    PolicyFile,
    Subscription,
    Trail,
    Unknown,
)
from taskgov_cli.doctor.permissions import HYPERPOD_ACCESS, resources_of
from taskgov_cli.failures import sentence_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from taskgov_cli.doctor.facts import Read

T = TypeVar("T")
PENDING: Final = "PendingConfirmation"


def client(service: str) -> Any:
    """Return a client with the environment's credentials; the stubs type each service apart."""
    return boto3.client(service, config=CONFIG)  # type: ignore[call-overload]


def cluster(name: str) -> Cluster:
    """Return the cluster of this name or ARN: HyperPod's, else the EKS cluster. Raises NotFoundError, UpstreamError."""
    if EKS_ARN.fullmatch(name):
        return _plain_eks(name)
    try:
        return _hyperpod(name)
    except NotFoundError:
        arn = None if name.startswith("arn:") else eks_arn_of(name)
        if arn is None:
            raise
        return _plain_eks(arn)


def eks_arn_of(name: str) -> str | None:
    """Return the ARN of the EKS cluster of this name, None where there is none."""
    try:
        with translated(f"describe EKS cluster {name}"):
            return str(client("eks").describe_cluster(name=name)["cluster"]["arn"])
    except NotFoundError:
        return None


def _plain_eks(arn: str) -> Cluster:
    return Cluster(arn.rpartition("/")[2], arn, "InService", arn)


def _hyperpod(name: str) -> Cluster:
    with translated(f"describe cluster {name}"):
        found = client("sagemaker").describe_cluster(ClusterName=name)
        eks_arn = found.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn")
        return Cluster(found["ClusterName"], found["ClusterArn"], found["ClusterStatus"], eks_arn)


def eks_cluster(name: str) -> EksCluster:
    """Return the EKS cluster of this name."""
    with translated(f"describe EKS cluster {name}"):
        found = client("eks").describe_cluster(name=name)["cluster"]
        mode = found.get("accessConfig", {}).get("authenticationMode", "CONFIG_MAP")
        public = found.get("resourcesVpcConfig", {}).get("endpointPublicAccess", True)
        return EksCluster(found["name"], found["version"], mode, found.get("status", "ACTIVE"), public)


def add_on(eks: EksCluster) -> AddOn | None:
    """Return the task governance add-on, None where it is not installed."""
    try:
        with translated(f"describe add-on {ADD_ON}"):
            found = client("eks").describe_addon(clusterName=eks.name, addonName=ADD_ON)["addon"]
            issues = tuple(
                f"{issue['code']}: {issue['message']}" for issue in found.get("health", {}).get("issues", ())
            )
            return AddOn(found["addonVersion"], found["status"], issues, read(lambda: _newest(eks.version)))
    except NotFoundError:
        return None


def _newest(kubernetes: str) -> str:
    """Return the newest version of the add-on for a Kubernetes version: EKS lists the newest first."""
    with translated(f"list versions of {ADD_ON}"):
        answer = client("eks").describe_addon_versions(addonName=ADD_ON, kubernetesVersion=kubernetes)
        versions = [version["addonVersion"] for addon in answer["addons"] for version in addon["addonVersions"]]
    if not versions:
        raise NotFoundError(f"EKS offers no {ADD_ON} for Kubernetes {kubernetes}")
    return str(versions[0])


def trails(region: str) -> tuple[Trail, ...]:
    """Return the trails that cover the Region, those of other Regions and of the organization included."""
    with translated("describe trails"):
        found = client("cloudtrail").describe_trails(includeShadowTrails=True)["trailList"]
        return tuple(
            _trail(trail) for trail in found if trail.get("IsMultiRegionTrail") or trail["HomeRegion"] == region
        )


def _trail(found: Mapping[str, Any]) -> Trail:
    arn, name = found["TrailARN"], found["Name"]
    return Trail(name, read(lambda: _is_logging(arn)), read(lambda: _records_writes(arn)))


def _is_logging(arn: str) -> bool:
    with translated(f"get the status of trail {arn}"):
        return bool(client("cloudtrail").get_trail_status(Name=arn)["IsLogging"])


def _records_writes(arn: str) -> bool:
    with translated(f"get the event selectors of trail {arn}"):
        found = client("cloudtrail").get_event_selectors(TrailName=arn)
        basic = any(_selects_writes(selector) for selector in found.get("EventSelectors", ()))
        return basic or any(_selects_writes_by_fields(selector) for selector in found.get("AdvancedEventSelectors", ()))


def _selects_writes(selector: Mapping[str, Any]) -> bool:
    """Return whether a basic selector takes management events that write (the defaults do)."""
    kind, takes = selector.get("ReadWriteType", "All"), selector.get("IncludeManagementEvents", True)
    return takes and kind in {"All", "WriteOnly"} and "sagemaker.amazonaws.com" not in _excluded(selector)


def _excluded(selector: Mapping[str, Any]) -> Iterable[str]:
    return selector.get("ExcludeManagementEventSources") or ()


def _selects_writes_by_fields(selector: Mapping[str, Any]) -> bool:
    """Return whether an advanced selector takes them: its category, not only reads, not another source only."""
    fields = {field["Field"]: field for field in selector["FieldSelectors"]}
    if "Management" not in fields.get("eventCategory", {}).get("Equals", ()):
        return False
    only = fields.get("readOnly", {}).get("Equals", ["false"])
    source = fields.get("eventSource", {})
    excluded = "sagemaker.amazonaws.com" in (source.get("NotEquals") or ())
    elsewhere = source.get("Equals") and "sagemaker.amazonaws.com" not in source["Equals"]
    return "false" in only and not excluded and not elsewhere


def deployed_stack(name: str) -> DeployedStack:
    """Return the stack with its outputs and the names of its resources."""
    cloudformation = client("cloudformation")
    with translated(f"describe stack {name}"):
        found = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
        resources = [resource for page in pages for resource in page["StackResourceSummaries"]]
        return DeployedStack(
            name,
            found["StackStatus"],
            {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", ())},
            {
                resource["LogicalResourceId"]: resource["PhysicalResourceId"]
                for resource in resources
                if "PhysicalResourceId" in resource
            },
            found.get("DriftInformation", {}).get("StackDriftStatus", "NOT_CHECKED"),
        )


def function_subnets(function: str) -> tuple[str, ...]:
    """Return the subnets that a function runs in, none where it runs outside a VPC."""
    with translated(f"get the configuration of function {function}"):
        found = client("lambda").get_function_configuration(FunctionName=function)
    return tuple(found.get("VpcConfig", {}).get("SubnetIds", ()))


def access_entries(eks: str, roles: Iterable[tuple[str, str]]) -> tuple[AccessEntry, ...]:
    """Return what the access entry says of each role (its ARN, and the group that it needs)."""
    return tuple(AccessEntry(role, wanted, read(partial(_groups, eks, role))) for role, wanted in roles)


def _groups(eks: str, role: str) -> tuple[str, ...] | None:
    try:
        with translated(f"describe the access entry of {role}"):
            found = client("eks").describe_access_entry(clusterName=eks, principalArn=role)["accessEntry"]
    except NotFoundError:
        return None
    return tuple(found.get("kubernetesGroups", ()))


def permissions(
    cluster: Cluster, stack: DeployedStack, needed: Mapping[str, Mapping[str, tuple[str, ...]]]
) -> tuple[Permission, ...]:
    """Return what IAM says of everything that each function's role needs. Writes nothing: it is a simulation."""
    arns, iam = resources_of(cluster, stack), client("iam")
    roles = {role: (stack.resources[role], resources) for role, resources in needed.items()}
    return tuple(
        _permission(role, name, arns[resource], result)
        for role, (name, resources) in roles.items()
        for resource, actions in resources.items()
        for result in _simulated(iam, role_arn(cluster, name), actions, arns[resource], cluster.region)
    )


def role_arn(cluster: Cluster, name: str) -> str:
    """Return the ARN of a role of the stack: CloudFormation makes them without a path."""
    return f"arn:{cluster.partition}:iam::{cluster.account}:role/{name}"


def _simulated(iam: Any, role: str, actions: tuple[str, ...], resource: str, region: str) -> list[Mapping[str, Any]]:
    partition = role.split(":")[1]
    known = {"aws:RequestedRegion": region, "eks:policyArn": HYPERPOD_ACCESS.format(partition=partition)}
    asked_in = [
        {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"} for key, value in known.items()
    ]
    with translated(f"simulate the policies of {role}"):
        answer = iam.simulate_principal_policy(
            PolicySourceArn=role, ActionNames=list(actions), ResourceArns=[resource], ContextEntries=asked_in
        )
        found: list[Mapping[str, Any]] = answer["EvaluationResults"]
        return found


def _permission(role: str, role_name: str, resource: str, result: Mapping[str, Any]) -> Permission:
    boundary = result.get("PermissionsBoundaryDecisionDetail", {})
    organization = result.get("OrganizationsDecisionDetail", {})
    return Permission(
        role=role,
        role_name=role_name,
        action=result["EvalActionName"],
        resource=resource,
        decision=result["EvalDecision"],
        stopped_by_boundary=not boundary.get("AllowedByPermissionsBoundary", True),
        stopped_by_organization=not organization.get("AllowedByOrganizations", True),
    )


def subscriptions(topic: str) -> tuple[Subscription, ...]:
    """Return who is subscribed to the topic."""
    with translated(f"list the subscriptions of {topic}"):
        pages = client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
        return tuple(
            Subscription(subscription["Protocol"], subscription["Endpoint"], subscription["SubscriptionArn"] != PENDING)
            for page in pages
            for subscription in page["Subscriptions"]
        )


def policy_file(bucket: str, cluster: str) -> PolicyFile:
    """Return the cluster's policy document."""
    stored = Bucket(client("s3"), bucket).policy(cluster)
    return PolicyFile(POLICY_KEY.format(cluster), None if stored is None else stored.body)


def put_test_event(bus: str, token: str) -> None:
    """Ask, as an operator would, for a run on a cluster that does not exist: it is taken in, and starts nothing."""
    entry = {
        "Source": "taskgov.operator",
        "DetailType": "Reconcile Requested",
        "Detail": json.dumps({"clusterName": token}),
        "EventBusName": bus,
    }
    with translated("put a test event on the bus"):
        answer = client("events").put_events(Entries=[entry])
        if not answer["FailedEntryCount"]:
            return
        refused = answer["Entries"][0]
        raise GovernanceError(f"the test event was refused: {refused.get('ErrorCode')}: {refused.get('ErrorMessage')}")


def was_taken_in(log_group: str, token: str, since_millis: int) -> bool:
    """Return whether the function that takes events in has spoken of the test event."""
    with translated(f"read {log_group}"):
        pages = (
            client("logs")
            .get_paginator("filter_log_events")
            .paginate(logGroupName=log_group, startTime=since_millis, filterPattern=f'"{token}"')
        )
        return any(token in event["message"] for page in pages for event in page["events"])


def read(reading: Callable[[], T]) -> Read[T]:
    """Return what was read, or why it could not be."""
    try:
        return reading()
    except GovernanceError as error:
        return Unknown(f"{type(error).__name__}: {sentence_of(error)}")
