"""`taskgov preflight`: what the stack needs is counted in the template, and every lack of an account is a row."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from taskgov.policy.backends import Backend
from taskgov_cli.doctor.diagnosis import Status
from taskgov_cli.preflight import regions
from taskgov_cli.preflight.built import Built, machine_of, read_built
from taskgov_cli.preflight.checks import Asked, Row, rows
from taskgov_cli.preflight.facts import Account, Concurrency
from taskgov_cli.preflight.needs import needs_of
from taskgov_cli.preflight.partitions import CHINA, GOVCLOUD, features_table
from taskgov_cli.preflight.reading import RIGHTS, RIGHTS_IN_VPC, RIGHTS_OF, rights_table
from taskgov_cli.preflight.template import Place, Template, read_template
from taskgov_embedded.iam import evaluation, reference
from taskgov_embedded.walkthrough.world import World
from tests.support.golden import assert_section
from tests.support.operating import opened, played, taskgov

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "deploy.md"
HERE = Place("aws", "us-east-1", "111122223333")
ARM, X86 = 183, 62
STACK = {"stack"}
"""The account of these tests has the stack already: that is a warning of its own."""


@pytest.fixture(scope="module")
def one_world() -> Iterator[World]:
    with opened() as world:
        yield played(world)


@pytest.fixture
def world(one_world: World) -> Iterator[World]:
    boto3.setup_default_session()  # without the identity of the test before
    limits = one_world.stack.limits
    before = dict(vars(limits))
    limits.applied, limits.unknown_integrations = {}, set()
    yield one_world
    vars(limits).update(before)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    return build(tmp_path, X86)


def build(folder: Path, machine: int) -> Path:
    """Leave what `sam build` leaves: a template, and layers with compiled modules."""
    (folder / "template.yaml").write_text("Resources: {}\n")
    for layer in ("TaskgovLayer", "CoreLayer"):
        (folder / layer / "python").mkdir(parents=True)
    module = folder / "CoreLayer" / "python" / "_module.cpython-313-linux-gnu.so"
    module.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little") + machine.to_bytes(2, "little"))
    return folder


def examined(*options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    result = taskgov("preflight", *options, "--json")
    return result.exit_code, {row["what"]: row for row in json.loads(result.stdout)["rows"]}


def not_ok(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {what: row["status"] for what, row in found.items() if row["status"] != "ok"}


@pytest.mark.parametrize("backend", Backend)
def test_an_account_with_the_usual_limits_takes_the_stack(world: World, built: Path, backend: Backend) -> None:
    code, found = examined("--backend", backend, "--built", str(built))
    assert (code, set(not_ok(found))) == (0, STACK)
    assert {"services", "orders", "clusters", "architecture", "lambda-concurrency", "eventbridge-rules"} <= set(found)
    assert {f"definition of {one}" for one in MACHINES} | {"schedules"} <= set(found)
    shown = taskgov("preflight", "--backend", backend, "--built", str(built))
    assert "preflight: " in shown.stdout


def test_it_writes_nothing(world: World) -> None:
    before = len(world.stack.calls)
    taskgov("preflight")
    verbs = {call.operation for call in world.stack.calls[before:]}
    assert verbs
    assert all(verb.startswith(("Get", "List", "Describe", "Validate")) for verb in verbs)


def test_every_problem_is_a_row_and_all_are_reported_at_once(world: World, tmp_path: Path) -> None:
    limits = world.stack.limits
    limits.concurrency, limits.applied = 5, {"L-244521F2": 10.0, "L-658A4FD9": 2.0, "L-00000003": 2.0}
    limits.unknown_integrations = {"aws-sdk:sagemaker:listClusters"}
    code, found = examined("--built", str(build(tmp_path, ARM)), "-p", "ApplyConcurrency=2")
    assert code == 1
    assert {what for what, status in not_ok(found).items() if status == "failed"} == {
        "architecture",
        "definition of FanOutStateMachine",
        "lambda-concurrency",
        "lambda-reserved",
        "eventbridge-rules",
        "eventbridge-buses",
        "schedule-groups",
    }
    for what in not_ok(found):
        assert found[what]["remedy"], what
    assert "CoreLayer is built for arm64" in found["architecture"]["found"]
    assert found["architecture"]["remedy"] == "sam build --parameter-overrides Architecture=x86_64"
    assert "--quota-code L-244521F2 --desired-value 14" in found["eventbridge-rules"]["remedy"]
    assert "listClusters" in found["definition of FanOutStateMachine"]["found"]


def test_a_template_that_is_refused_is_reported_with_every_parameter_that_does_not_fit(world: World) -> None:
    result = taskgov("preflight", "-p", "Nonsense=yes", "-p", "ApplyMode=perhaps ApplyConcurrency=99")
    assert result.exit_code == 2
    for name in ("Nonsense", "ApplyMode", "ApplyConcurrency"):
        assert name in result.output
    assert taskgov("preflight", "-p", "ApplyMode").exit_code == 2


@pytest.mark.parametrize("form", ["{}", "'{}'", '"{}"'])
def test_the_value_of_a_parameter_may_have_spaces(form: str) -> None:
    result = taskgov(
        "preflight", "-p", f"ApplyMode=apply PublishSchedule={form.format('every now')} ApplyConcurrency=2"
    )
    assert result.exit_code == 2
    assert "every now" in result.output.replace("\n", " ")
    assert "NAME=VALUE" not in result.output


MACHINES = ("ReconcileStateMachine", "AuditStateMachine", "FanOutStateMachine")


def test_every_action_that_is_called_is_in_the_service_authorization_reference() -> None:
    called = {*RIGHTS, *RIGHTS_IN_VPC, *(action for of in RIGHTS_OF.values() for action in of)}
    assert {action for action in called if reference.resource_forms(action) is None} == set()


def allowed(world: World, monkeypatch: pytest.MonkeyPatch, *actions: str) -> None:
    """Be somebody with these rights and no others."""
    arn = f"arn:aws:iam::{world.stack.place.account}:role/Newcomer"
    document = {"Statement": [{"Effect": "Allow", "Action": list(actions) or ["none:None"], "Resource": "*"}]}
    world.stack.account.policies._by_role[arn] = evaluation.statements(arn, "own", document)
    credentials = world.stack.account.identities.assume(arn, "ana")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", credentials.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", credentials.secret_key)
    monkeypatch.setenv("AWS_SESSION_TOKEN", credentials.token)
    boto3.setup_default_session()


ASKED = {
    "cloudformation:DescribeStacks": {"stack"},
    "states:ValidateStateMachineDefinition": {f"definition of {one}" for one in MACHINES},
    "lambda:GetAccountSettings": {"lambda-concurrency"},
    "servicequotas:ListServiceQuotas": {
        *("eventbridge-rules", "eventbridge-buses", "state-machines", "schedules", "schedule-groups"),
    },
    "servicequotas:ListAWSDefaultServiceQuotas": {
        *("eventbridge-rules", "eventbridge-buses", "state-machines", "schedules", "schedule-groups"),
    },
    "events:ListRules": {"eventbridge-rules"},
    "events:ListEventBuses": {"eventbridge-buses"},
    "scheduler:ListScheduleGroups": {"schedule-groups"},
    "sagemaker:ListClusters": {"clusters"},
}


@pytest.mark.parametrize("missing", ASKED)
def test_a_right_that_the_caller_lacks_leaves_its_rows_unknown_and_names_the_action(
    world: World, monkeypatch: pytest.MonkeyPatch, built: Path, missing: str
) -> None:
    allowed(world, monkeypatch, *(set(ASKED) - {missing}))
    code, found = examined("--built", str(built))
    unknown = {what for what, row in found.items() if row["status"] == "unknown"}
    assert (code, unknown) == (3, ASKED[missing])
    assert all(missing in found[what]["found"] for what in unknown)


@pytest.mark.parametrize("backend", Backend)
def test_the_rights_of_the_page_are_enough_and_none_is_too_much(
    world: World, monkeypatch: pytest.MonkeyPatch, built: Path, backend: Backend
) -> None:
    listed = {*RIGHTS, *RIGHTS_OF[backend]} - {"sts:GetCallerIdentity"}
    if backend is Backend.SAGEMAKER:
        assert listed == set(ASKED)
    allowed(world, monkeypatch, *listed)
    world.stack.requests.grants_used.clear()
    code, found = examined("--backend", backend, "--built", str(built))
    assert (code, set(not_ok(found))) == (0, STACK)
    assert {grant.action for grant in world.stack.requests.grants_used} == listed


def test_without_any_right_there_is_a_table_and_no_traceback(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed(world, monkeypatch)
    code, found = examined()
    assert code == 3
    assert found["services"]["status"] == "ok"
    result = taskgov("preflight")
    assert isinstance(result.exception, SystemExit)


def test_a_private_vpc_is_examined_before_functions_run_in_it(world: World) -> None:
    ec2 = boto3.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24")["Subnet"]["SubnetId"]
    code, found = examined("-p", f"VpcSubnetIds={subnet}", "-p", "VpcSecurityGroupIds=sg-1")
    assert (code, found["network"]["status"]) == (1, "failed")
    assert "com.amazonaws.us-east-1.sagemaker.api is missing" in found["network"]["found"]
    assert "create-vpc-endpoint" in found["network"]["remedy"]


def template(place: Place = HERE, **parameters: str) -> Template:
    return read_template(ROOT / "template.yaml", parameters, place)


def test_what_the_stack_needs_is_counted_in_the_template() -> None:
    needs, watching = needs_of(template(), 1), needs_of(template(WatchPlainEks="yes"), 1)
    assert watching.rules == needs.rules + 3
    assert (needs.buses, needs.state_machines, needs.schedule_groups, needs.reserved) == (1, 3, 1, 0)
    more, most = needs_of(template(), 5), needs_of(template(), 200)
    # A run, an audit and a look of each; looks go 20 at a time.
    assert (more.schedules, more.concurrency) == (needs.schedules + 4, needs.concurrency + 3 * 4)
    assert most.concurrency == needs.concurrency + 2 * 199 + 19
    assert needs_of(template(VpcSubnetIds="subnet-1,subnet-2", VpcSecurityGroupIds="sg-1"), 1).in_vpc == (
        "subnet-1",
        "subnet-2",
    )


def test_a_rule_more_in_the_template_is_a_rule_more_that_is_needed() -> None:
    more = template()
    rules = {"AnotherRule": {"Type": "AWS::Events::Rule", "Properties": {"EventPattern": {}}}}
    raw = {**more.raw, "Resources": {**more.raw["Resources"], **rules}}
    assert needs_of(replace(more, raw=raw), 1).rules == needs_of(template(), 1).rules + 1


def test_definitions_are_those_that_are_deployed_with_nothing_left_open() -> None:
    machines = template(Place(GOVCLOUD, "us-gov-west-1", "111122223333")).machines()
    assert set(machines) == set(MACHINES)
    text = json.dumps(machines)
    assert "${" not in text
    assert "arn:aws-us-gov:states:::lambda:invoke" in text
    assert "arn:aws-us-gov:lambda:us-gov-west-1:111122223333:function:ReadSnapshotFunction:live" in text


@pytest.mark.parametrize("backend", Backend)
def test_every_service_of_the_template_has_endpoints_in_every_partition_that_is_known(backend: Backend) -> None:
    services = regions.services(template(OrdersThrough="api-gateway"), backend)
    assert {"dynamodb", "scheduler", "stepfunctions", "apigatewayv2", "codedeploy"} <= set(services)
    for region in ("us-east-1", "us-gov-west-1", "us-gov-east-1", "cn-north-1", "cn-northwest-1"):
        assert regions.without_endpoint(services, regions.partition_of(region), region) == ()


BUSY = Concurrency(2000, 10, 9**9, 0)
FINE = Account(
    identity="111122223333",
    stack=None,
    clusters=1,
    definitions={},
    concurrency=Concurrency(1000, 1000, 80_530_636_800, 0),
    quotas={},
    network=None,
)


def judged(place: Place, account: Account = FINE, built: Built | None = None, **parameters: str) -> dict[str, Row]:
    found = template(place, **parameters)
    services = regions.services(found, Backend.SAGEMAKER)
    lacking = regions.without_endpoint(services, place.partition, place.region)
    asked = Asked(found, needs_of(found, 1), "taskgov", services, lacking, built)
    return {row.what: row for row in rows(asked, account)}


@pytest.mark.parametrize(
    ("found", "reserved", "wanted"),
    [(Concurrency(5, 5, 9**9, 0), "0", 1000), (Concurrency(2000, 4, 9**9, 0), "0", 2000), (BUSY, "2", 2092)],
    ids=["a new account", "all of a raised limit is reserved", "too little is left to reserve of"],
)
def test_the_limit_that_is_asked_for_is_enough_and_never_less_than_there_is(
    found: Concurrency, reserved: str, wanted: int
) -> None:
    given = judged(HERE, replace(FINE, concurrency=found), ApplyConcurrency=reserved)
    asked = [
        int(row.remedy.rpartition(" ")[2]) for what, row in given.items() if what.startswith("lambda-") and row.remedy
    ]
    needed = needs_of(template(), 1).concurrency
    assert asked
    assert all(limit >= max(wanted, found.limit - found.unreserved + needed) for limit in asked)


def test_a_template_of_another_encoding_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "template.yaml"
    file.write_bytes("Beschreibung: für alle".encode("utf-16"))
    result = taskgov("preflight", "--template", str(file))
    assert (result.exit_code, "cannot be read" in " ".join(result.output.split())) == (2, True)


@pytest.mark.parametrize(("partition", "region"), [(GOVCLOUD, "us-gov-west-1"), (CHINA, "cn-north-1")])
def test_another_partition_is_reported_and_wants_orders_through_api_gateway(partition: str, region: str) -> None:
    place = Place(partition, region, "111122223333")
    assert judged(place)["partition"].status is Status.WARNING
    assert judged(place)["orders"].status is Status.FAILED
    assert judged(place, OrdersThrough="api-gateway")["orders"].status is Status.OK


def test_a_region_without_one_of_the_services_is_refused() -> None:
    row = judged(Place("aws-iso", "us-iso-west-1", "111122223333"))["services"]
    assert row.status is Status.FAILED
    assert "sagemaker" in row.found


@pytest.mark.parametrize(("machine", "name"), [(ARM, "arm64"), (X86, "x86_64"), (40, "machine 40")])
def test_the_processor_is_read_in_the_modules_that_were_built(tmp_path: Path, machine: int, name: str) -> None:
    found = read_built(build(tmp_path, machine))
    assert found is not None
    assert found.layers == {"CoreLayer": frozenset({name}), "TaskgovLayer": frozenset()}
    for wanted in ("arm64", "x86_64"):
        status = judged(HERE, built=found, Architecture=wanted)["architecture"].status
        assert status is (Status.OK if wanted == name else Status.FAILED)


def test_what_is_no_module_and_no_build_says_nothing(tmp_path: Path) -> None:
    assert read_built(tmp_path) is None
    text = tmp_path / "text.so"
    text.write_text("not one")
    assert machine_of(text) is None


def test_the_page_lists_the_rights_of_the_caller_and_what_each_partition_has() -> None:
    assert_section(PAGE, "preflight-rights", rights_table())
    assert_section(PAGE, "partitions", features_table())
    assert set(RIGHTS_IN_VPC) == {"ec2:DescribeSubnets", "ec2:DescribeVpcEndpoints", "ec2:DescribeRouteTables"}
