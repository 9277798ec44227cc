"""Whether the functions that run in a VPC reach the services that they call, and the cluster's endpoint.

Which services these are follows from what their roles have to be allowed (`permissions.NEEDED`). Lambda itself writes
their logs and traces, invokes them and sends what failed to its queue, and the token for Kubernetes is signed and not
fetched: Logs, X-Ray, Lambda, SQS, STS and KMS need no endpoint for them. The other functions run outside the VPC.

IPv6 alone and HTTP proxies are not supported: the template sets neither `Ipv6AllowedForDualStack` nor `HTTPS_PROXY`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from taskgov.adapters.errors import translated
from taskgov_cli.doctor.diagnosis import Diagnosis, failed, ok, unknown
from taskgov_cli.doctor.facts import Network, Unknown
from taskgov_cli.doctor.permissions import NEEDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov_cli.doctor.facts import DeployedStack, EksCluster, Names, Read

CHECK: Final = "network"
IN_VPC: Final = (
    "ReadSnapshotRole",
    "ApplyChangeRole",
    "VerifyPlanRole",
    "PublishUsageRole",
    "EstimateStartsRole",
    "AuditClusterRole",
)
"""Roles of the functions that get `VpcConfig` in the template: those that read Kubernetes."""
_WITH_PLAIN_EKS: Final = frozenset({"autoscaling", "ec2"})
"""What is called with `WatchPlainEks=yes` only."""
_BY_LAMBDA: Final = frozenset({"sqs"})
"""What Lambda calls in a role's name: it sends failed invocations to their queue."""


@dataclass(frozen=True, slots=True)
class EndpointService:
    """A service as PrivateLink names it, without `com.amazonaws.REGION.`; a gateway costs nothing."""

    name: str
    gateway: bool = False


PRIVATE_LINK: Final[Mapping[str, EndpointService]] = {
    "autoscaling": EndpointService("autoscaling"),
    "dynamodb": EndpointService("dynamodb", gateway=True),
    "ec2": EndpointService("ec2"),
    "eks": EndpointService("eks"),
    "events": EndpointService("events"),
    "s3": EndpointService("s3", gateway=True),
    "sagemaker": EndpointService("sagemaker.api"),
    "sns": EndpointService("sns"),
}
"""IAM's prefix of a service -> its endpoint service.

Source: https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html and, for gateways,
https://docs.aws.amazon.com/vpc/latest/privatelink/gateway-endpoints.html
"""


def called(*, watches_ec2: bool) -> tuple[str, ...]:
    """Return the services that functions in the VPC call, by IAM's prefixes.

    >>> called(watches_ec2=False)
    ('dynamodb', 'eks', 'events', 's3', 'sagemaker', 'sns')
    """
    actions = {action for role in IN_VPC for of in NEEDED[role].values() for action in of}
    prefixes = {action.partition(":")[0] for action in actions} - _BY_LAMBDA
    return tuple(sorted(prefixes | (_WITH_PLAIN_EKS if watches_ec2 else frozenset())))


def endpoint_names(region: str, *, watches_ec2: bool) -> dict[str, EndpointService]:
    """Return the endpoint services that a private VPC needs, by their full names.

    In China they begin with `cn.`; S3 and DynamoDB do not.
    """
    needed = [PRIVATE_LINK[prefix] for prefix in called(watches_ec2=watches_ec2)]
    cn = "cn." if region.startswith("cn-") else ""
    return {f"{'' if service.gateway else cn}com.amazonaws.{region}.{service.name}": service for service in needed}


def endpoints_table() -> str:
    """Return the table of the documentation."""
    rows = [
        f"| `com.amazonaws.REGION.{service.name}` | {'gateway' if service.gateway else 'interface, with private DNS'} "
        f"| {_callers(prefix)} |"
        for prefix, service in PRIVATE_LINK.items()
    ]
    return "\n".join(("| endpoint service | kind | called by |", "| --- | --- | --- |", *rows))


def _callers(prefix: str) -> str:
    if prefix in _WITH_PLAIN_EKS:
        return "with `WatchPlainEks=yes`: `read_snapshot`, `publish_usage`, `audit_cluster`"
    roles = [role for role in IN_VPC if any(act.startswith(f"{prefix}:") for of in NEEDED[role].values() for act in of)]
    if len(roles) == len(IN_VPC):
        return "every function in the VPC"
    return ", ".join(f"`{re.sub('(?<!^)(?=[A-Z])', '_', role.removesuffix('Role')).lower()}`" for role in roles)


def read_network(ec2: Any, subnets: Iterable[str]) -> Network:
    """Read a VPC by the subnets of its functions. Raises GovernanceError.

    Needs `ec2:DescribeSubnets`, `ec2:DescribeVpcEndpoints` and `ec2:DescribeRouteTables`.
    """
    with translated("describe the subnets of the functions"):
        found = ec2.describe_subnets(SubnetIds=list(subnets))["Subnets"]
    vpc = found[0]["VpcId"]
    within = [{"Name": "vpc-id", "Values": [vpc]}]
    with translated(f"describe the endpoints of {vpc}"):
        pages = ec2.get_paginator("describe_vpc_endpoints").paginate(Filters=within)
        endpoints = [endpoint for page in pages for endpoint in page["VpcEndpoints"]]
    with translated(f"describe the route tables of {vpc}"):
        pages = ec2.get_paginator("describe_route_tables").paginate(Filters=within)
        tables = [table for page in pages for table in page["RouteTables"]]
    return Network(
        vpc=vpc,
        endpoints={endpoint["ServiceName"]: _problem(endpoint) for endpoint in endpoints},
        without_way_out=tuple(subnet["SubnetId"] for subnet in found if not _leads_out(subnet["SubnetId"], tables)),
        only_ipv6=tuple(subnet["SubnetId"] for subnet in found if subnet.get("Ipv6Native")),
    )


def _problem(endpoint: Mapping[str, Any]) -> str:
    if endpoint.get("State", "available").lower() != "available":
        return f"is {endpoint['State']}"
    interface = endpoint.get("VpcEndpointType", "Gateway") == "Interface"
    return "has no private DNS name" if interface and not endpoint.get("PrivateDnsEnabled") else ""


def _leads_out(subnet: str, tables: list[Mapping[str, Any]]) -> bool:
    """Return whether a subnet's route table, its own or else the main one, has a default route that leads anywhere.

    An internet gateway does not count: a function's interface has no public address.
    """
    own = [
        table for table in tables if any(associated.get("SubnetId") == subnet for associated in table["Associations"])
    ]
    main = [table for table in tables if any(associated.get("Main") for associated in table["Associations"])]
    routes = [route for table in (own or main)[:1] for route in table["Routes"]]
    return any(
        route.get("DestinationCidrBlock") == "0.0.0.0/0"
        and route.get("State", "active") == "active"
        and not str(route.get("GatewayId", "")).startswith("igw-")
        for route in routes
    )


def network(found: Read[Network | None], eks: Read[EksCluster], stack: Read[DeployedStack], names: Names) -> Diagnosis:
    """Check that the functions reach what they call, and that a private cluster has its functions in a VPC."""
    if isinstance(found, Unknown):
        return unknown(CHECK, found.reason)
    private = not isinstance(eks, Unknown) and not eks.public
    if found is None:
        if not private:
            return ok(
                CHECK, "the functions run outside a VPC, and reach the services and the cluster's public endpoint"
            )
        because = "the cluster's endpoint is private, and the functions run outside a VPC"
        where = "VpcSubnetIds=SUBNETS VpcSecurityGroupIds=GROUPS"
        deploy = f"sam deploy --stack-name {names.stack} --parameter-overrides {where}"
        return failed(CHECK, because, deploy, note='docs/deploy.md, "Private clusters", says which subnets.')
    watches = not isinstance(stack, Unknown) and "InstanceStateRule" in stack.resources
    return reachable(found, names.region, watches_ec2=watches)


def reachable(found: Network, region: str, *, watches_ec2: bool) -> Diagnosis:
    """Check that every service has an endpoint in the VPC, or every subnet a way out."""
    if found.only_ipv6:
        because = f"{', '.join(found.only_ipv6)} have IPv6 only; the functions use IPv4"
        note = "Lambda needs an IPv4 address in each subnet; the template does not turn IPv6 on."
        return failed(CHECK, because, note=note)
    needed = endpoint_names(region, watches_ec2=watches_ec2)
    if not found.without_way_out:
        return ok(
            CHECK, f"every subnet of the functions in {found.vpc} has a default route, so that no endpoint is needed"
        )
    bad = {name: "is missing" for name in needed if name not in found.endpoints}
    bad |= {name: found.endpoints[name] for name in needed if found.endpoints.get(name)}
    if not bad:
        return ok(CHECK, f"{found.vpc} has the {len(needed)} endpoints that the functions need")
    said = "; ".join(f"{name} {problem}" for name, problem in bad.items())
    because = f"{', '.join(found.without_way_out)} in {found.vpc} lead nowhere, and of the endpoints {said}"
    fix = [_create(found.vpc, name, needed[name], region) for name, problem in bad.items() if problem == "is missing"]
    note = "SUBNETS are the functions', TABLES their route tables; GROUP lets their security group in on port 443."
    return failed(CHECK, because, *fix, note=note)


def _create(vpc: str, name: str, service: EndpointService, region: str) -> str:
    how = (
        "--vpc-endpoint-type Gateway --route-table-ids TABLES"
        if service.gateway
        else "--vpc-endpoint-type Interface --private-dns-enabled --subnet-ids SUBNETS --security-group-ids GROUP"
    )
    return f"aws ec2 create-vpc-endpoint --region {region} --vpc-id {vpc} --service-name {name} {how}"
