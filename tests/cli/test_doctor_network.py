"""Private clusters: which endpoints the functions need, and what the doctor says of the VPC that they run in."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest

from taskgov_cli.doctor.diagnosis import Status
from taskgov_cli.doctor.facts import DeployedStack, EksCluster, Names, Network, Unknown
from taskgov_cli.doctor.network import (
    IN_VPC,
    called,
    endpoint_names,
    endpoints_table,
    network,
    reachable,
    read_network,
)
from taskgov_embedded.walkthrough.world import World
from tests.support.examined import examined
from tests.support.golden import assert_section
from tests.support.operating import DOCUMENT, opened, played
from tests.support.typed import typed
from tests.template.conftest import load, references

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
HERE = "us-east-1"
NEEDED = tuple(endpoint_names(HERE, watches_ec2=False))
NAMES = Names("ml-cluster", "taskgov", region=HERE)
STACK = DeployedStack("taskgov", "UPDATE_COMPLETE", {}, {})
EKS = EksCluster("ml-eks", "1.33", "API")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with opened({"policy": DOCUMENT}) as opened_world:
        yield played(opened_world)


def test_the_services_are_those_that_the_functions_in_the_vpc_call(world: World) -> None:
    for schedule in ("AuditAllSchedule", "PublishUsageSchedule"):
        world.stack.fire(schedule)
        world.stack.run_until_quiet(300)
    roles = {world.stack.physical(role) for role in IN_VPC}
    calls = [call for call in world.stack.calls if (call.principal.role_arn or "").rpartition("/")[2] in roles]
    assert {call.action.partition(":")[0] for call in calls} == set(called(watches_ec2=False))


def test_the_functions_in_the_vpc_are_those_of_the_template() -> None:
    functions = load().resources_of("AWS::Lambda::Function").values()
    assert {next(iter(references(one["Role"]))) for one in functions if "VpcConfig" in one} == set(IN_VPC)


def test_the_template_sets_nothing_of_what_the_page_says_is_not_supported() -> None:
    text = (PAGE.parents[1] / "template.yaml").read_text()
    assert "Ipv6AllowedForDualStack" not in text
    assert "HTTPS_PROXY" not in text


def test_the_endpoints_have_the_names_of_private_link() -> None:
    assert set(NEEDED) == {
        f"com.amazonaws.us-east-1.{name}" for name in ("dynamodb", "eks", "events", "s3", "sagemaker.api", "sns")
    }
    watching = endpoint_names("cn-north-1", watches_ec2=True)
    assert {"cn.com.amazonaws.cn-north-1.ec2", "com.amazonaws.cn-north-1.s3"} <= set(watching)


def test_the_page_lists_the_endpoints() -> None:
    assert_section(PAGE, "endpoints", endpoints_table())


def a_network(endpoints: Mapping[str, str], **about: Any) -> Network:
    return Network("vpc-1", endpoints, **{"without_way_out": ("subnet-1",), **about})


def test_each_endpoint_that_is_missing_is_named_with_the_command_that_makes_it() -> None:
    found = reachable(a_network(dict.fromkeys(NEEDED[1:], "")), HERE, watches_ec2=False)
    assert (found.status, len(found.fix)) == (Status.FAILED, 1)
    assert f"--service-name {NEEDED[0]}" in found.fix[0]
    assert reachable(a_network(dict.fromkeys(NEEDED, "")), HERE, watches_ec2=False).status is Status.OK
    watching = reachable(a_network(dict.fromkeys(NEEDED, "")), HERE, watches_ec2=True)
    assert "com.amazonaws.us-east-1.ec2 is missing" in watching.because


def test_an_endpoint_that_answers_to_no_name_is_as_good_as_none() -> None:
    endpoints = {**dict.fromkeys(NEEDED, ""), NEEDED[1]: "has no private DNS name"}
    found = reachable(a_network(endpoints), HERE, watches_ec2=False)
    assert (found.status, "has no private DNS name" in found.because) == (Status.FAILED, True)


def test_a_way_out_does_without_endpoints_and_ipv6_alone_is_not_supported() -> None:
    assert reachable(a_network({}, without_way_out=()), HERE, watches_ec2=False).status is Status.OK
    only = a_network(dict.fromkeys(NEEDED, ""), only_ipv6=("subnet-6",))
    assert "subnet-6" in reachable(only, HERE, watches_ec2=False).because


def test_a_private_cluster_needs_functions_in_a_vpc() -> None:
    private = EksCluster("ml-eks", "1.33", "API", public=False)
    assert network(None, private, STACK, NAMES).status is Status.FAILED
    assert "VpcSubnetIds" in network(None, private, STACK, NAMES).fix[0]
    assert network(None, EKS, STACK, NAMES).status is Status.OK
    assert network(Unknown("not allowed"), EKS, STACK, NAMES).status is Status.UNKNOWN


class Vpc:
    """A VPC in the emulated account with one private subnet."""

    def __init__(self, block: str) -> None:
        self.ec2: Any = boto3.client("ec2")
        self.id = self.ec2.create_vpc(CidrBlock=f"{block}.0.0/16")["Vpc"]["VpcId"]
        self.subnet = self.ec2.create_subnet(VpcId=self.id, CidrBlock=f"{block}.1.0/24")["Subnet"]["SubnetId"]
        within: Any = [{"Name": "vpc-id", "Values": [self.id]}]
        self.table = self.ec2.describe_route_tables(Filters=within)["RouteTables"][0]["RouteTableId"]

    def route(self, **target: str) -> None:
        self.ec2.create_route(RouteTableId=self.table, DestinationCidrBlock="0.0.0.0/0", **target)

    def read(self) -> Network:
        return read_network(self.ec2, [self.subnet])


@pytest.fixture
def vpc(world: World) -> Iterator[Vpc]:
    boto3.setup_default_session()
    block = f"10.{sum(1 for call in world.stack.calls if call.operation == 'CreateVpc') + 20}"
    made = Vpc(block)
    properties = world.stack.resolved("ReadSnapshotFunction").properties
    properties["VpcConfig"] = {"SubnetIds": [made.subnet], "SecurityGroupIds": ["sg-1"]}
    yield made
    del properties["VpcConfig"]


def test_the_commands_of_the_doctor_typed_give_the_functions_what_they_need(
    world: World, vpc: Vpc, tmp_path: Path
) -> None:
    before = examined("ml-cluster", "--no-event")["network"]
    assert before["status"] == "failed"
    assert all(name in before["because"] for name in NEEDED)
    group = vpc.ec2.create_security_group(GroupName=vpc.id, Description="all", VpcId=vpc.id)["GroupId"]
    for command in before["fix"]:
        filled = command.replace("SUBNETS", vpc.subnet).replace("GROUP", group).replace("TABLES", vpc.table)
        typed(filled, world, tmp_path)
    after = examined("ml-cluster", "--no-event")["network"]
    assert (after["status"], after["because"]) == ("ok", f"{vpc.id} has the 6 endpoints that the functions need")


def test_a_nat_gateway_leads_out_and_an_internet_gateway_does_not(vpc: Vpc) -> None:
    assert vpc.read().without_way_out == (vpc.subnet,)
    gateway = vpc.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    vpc.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc.id)
    vpc.route(GatewayId=gateway)
    assert vpc.read().without_way_out == (vpc.subnet,)
    vpc.ec2.delete_route(RouteTableId=vpc.table, DestinationCidrBlock="0.0.0.0/0")
    address = vpc.ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = vpc.ec2.create_nat_gateway(SubnetId=vpc.subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    vpc.route(NatGatewayId=nat)
    assert vpc.read().without_way_out == ()
