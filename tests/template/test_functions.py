"""Every function of the template: traced, logged, bounded, with its own role, and with the variables that it reads."""

import json
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from taskgov.config import Settings
from taskgov.ports import TURN_SECONDS
from taskgov_embedded.cloudformation import updates
from taskgov_embedded.cloudformation.template import Translated, translate
from taskgov_embedded.functions.deployments import steps
from tests.deployment.releases import older_release
from tests.template.conftest import ALIAS, ROOT, load, references, role_of, statements

FUNCTIONS = load().resources_of("AWS::Lambda::Function")
OF_EVERY_FUNCTION = {"LOG_LEVEL", "POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE"}
"""Read by Powertools, not by the project's own code."""
NOT_SET = {"Ref": "AWS::NoValue"}
"""A variable that CloudFormation leaves out: named for `sam local invoke`, which sets only what is named."""
RUNTIME = {"boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3"}
"""What the Lambda runtime brings along: boto3 and what it stands on."""

functions = pytest.mark.parametrize("name", sorted(FUNCTIONS))


def folder(name: str) -> str:
    return str(FUNCTIONS[name]["Code"]["S3Key"]).removeprefix("functions/")


def test_there_are_the_nine_functions_and_each_has_its_folder() -> None:
    folders = {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}
    assert {folder(name) for name in FUNCTIONS} == folders
    assert len(FUNCTIONS) == 9


@functions
def test_it_is_traced_and_logs_json_into_a_group_of_its_own_with_retention(stack: Translated, name: str) -> None:
    function = FUNCTIONS[name]
    assert function["TracingConfig"] == {"Mode": {"Fn::If": ["TracesFunctions", "Active", "PassThrough"]}}
    assert function["LoggingConfig"]["LogFormat"] == {"Fn::If": ["HasJsonLogs", "JSON", "Text"]}
    (group,) = references(function["LoggingConfig"]["LogGroup"])
    assert stack.resources_of("AWS::Logs::LogGroup")[group]["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    assert [other for other in FUNCTIONS if group in references(FUNCTIONS[other])] == [name]


@functions
def test_it_has_a_role_of_its_own_that_may_write_to_its_own_log_only(stack: Translated, name: str) -> None:
    (role,) = references(FUNCTIONS[name]["Role"])
    assert [other for other in FUNCTIONS if role in references(FUNCTIONS[other]["Role"])] == [name]
    (log,) = [one for one in statements(role_of(stack, FUNCTIONS[name])) if one["Sid"] == "Log"]
    assert references(log["Resource"]) == references(FUNCTIONS[name]["LoggingConfig"]["LogGroup"])


@functions
def test_it_runs_python_3_13_on_the_chosen_processor_with_handler_and_bounds(name: str) -> None:
    function = FUNCTIONS[name]
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == [{"Ref": "Architecture"}]
    assert function["Handler"] == "app.handler"
    assert function["Timeout"] <= 240
    assert function["MemorySize"] >= 512


@functions
def test_it_has_the_variables_that_it_reads_and_no_other(name: str) -> None:
    module = import_module(f"taskgov.bootstrap.{folder(name)}")
    (settings,) = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Settings) and value is not Settings
    ]
    read = {str(field.alias) for field in settings.model_fields.values()}
    variables = FUNCTIONS[name]["Environment"]["Variables"]
    assert {one for one, value in variables.items() if value != NOT_SET} == read | OF_EVERY_FUNCTION


@functions
def test_nothing_can_turn_its_calls_to_another_endpoint_once_it_is_deployed(name: str) -> None:
    assert FUNCTIONS[name]["Environment"]["Variables"]["AWS_ENDPOINT_URL"] == NOT_SET


def packages_of(layer: str) -> set[str]:
    """Return the modules that a layer brings: the taskgov package, or what its requirements install."""
    path = ROOT / load().resources_of("AWS::Lambda::LayerVersion")[layer]["Content"]["S3Key"]
    if not (path / "requirements.txt").exists():
        return {"taskgov"}
    pins = [line.split("==")[0] for line in (path / "requirements.txt").read_text().splitlines() if "==" in line]
    installed = packages_distributions().items()
    return {module for module, brought_by in installed if {normal(one) for one in brought_by} & set(pins)}


CARRIED = {("PlanQuotasFunction", "pyyaml"): "0.8 MiB of the layer of all functions: the six others read documents"}
"""Libraries that a function has and does not import, and why."""


def brought_by(layer: str) -> dict[str, set[str]]:
    """Return the modules of each library in a layer."""
    path = ROOT / load().resources_of("AWS::Lambda::LayerVersion")[layer]["Content"]["S3Key"] / "requirements.txt"
    pins = (
        {line.split("==")[0]: set[str]() for line in path.read_text().splitlines() if "==" in line}
        if path.exists()
        else {}
    )
    for module, distributions in packages_distributions().items():
        for one in distributions:
            if normal(one) in pins:
                pins[normal(one)].add(module)
    return pins


def normal(distribution: str) -> str:
    return distribution.lower().replace("_", "-")


IMPORT_WITH = """
import ast, importlib, json, sys

allowed = set(sys.argv[1:]) | sys.stdlib_module_names | {"app"}


class Lambda:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in allowed and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"no layer brings {name}")


sys.meta_path.insert(0, Lambda())
import app

rooms = ("taskgov.backends", "taskgov.bootstrap")
composing = [module for name, module in list(sys.modules.items()) if name.startswith(rooms)]
for module in composing:  # what they import inside of functions comes with the first cluster that needs it
    for function in ast.walk(ast.parse(open(module.__file__).read())):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom) and "kubernetes" in allowed:
                    importlib.import_module(node.module)
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


def imported_by(name: str, brought: set[str]) -> set[str]:
    """Return the packages that a function has imported when its handler is ready; only what is brought is there."""
    path = [str(ROOT / "functions" / folder(name)), str(ROOT / "layers/taskgov/python")]
    code = f"import sys; sys.path[:0] = {path!r}\n{IMPORT_WITH}"
    variables = {"LOG_LEVEL": "INFO", "AWS_DEFAULT_REGION": "us-east-1", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", code, *sorted(brought | RUNTIME)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)  # noqa: S603 - our own code
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.long
@functions
def test_its_layers_bring_what_it_imports_and_none_in_vain(name: str) -> None:
    layers = {layer: packages_of(layer) for one in FUNCTIONS[name]["Layers"] for layer in references(one)}
    imported = imported_by(name, set().union(*layers.values()))
    assert {layer for layer, packages in layers.items() if not packages & imported} == set()
    pins = {pin: modules for layer in layers for pin, modules in brought_by(layer).items()}
    assert {(name, pin) for pin, modules in pins.items() if not modules & imported} <= set(CARRIED)


@functions
def test_who_may_find_a_cluster_has_the_client_to_talk_to_it(stack: Translated, name: str) -> None:
    may = {action for one in statements(role_of(stack, FUNCTIONS[name])) for action in one["Action"]}
    has = any(one["Ref"].startswith("KubernetesLayer") for one in FUNCTIONS[name]["Layers"])
    assert has == ("eks:DescribeCluster" in may)


def test_events_that_fail_are_given_back_one_by_one_and_a_storm_stays_a_queue(stack: Translated) -> None:
    (mapping,) = stack.resources_of("AWS::Lambda::EventSourceMapping").values()
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 2}
    assert references(mapping["EventSourceArn"]) == {"IntakeQueue"}


def test_the_queue_hides_an_event_for_six_times_the_time_that_its_function_has(stack: Translated) -> None:
    queue = stack.resources_of("AWS::SQS::Queue")["IntakeQueue"]
    assert queue["VisibilityTimeout"] >= 6 * FUNCTIONS["ReceiveEventFunction"]["Timeout"]
    assert queue["DelaySeconds"] > 0
    assert references(queue["RedrivePolicy"]) == {"IntakeDeadLetterQueue"}


def test_no_function_is_invoked_without_somebody_who_waits_for_its_answer(stack: Translated) -> None:
    """Lambda would try it again twice, and drop it in silence."""
    schedules = stack.resources_of("AWS::Scheduler::Schedule").values()
    assert not any(references(one["Target"]["Arn"]) & set(FUNCTIONS) for one in schedules)
    assert stack.types() & {
        "AWS::Lambda::EventInvokeConfig",
        "AWS::SNS::Subscription",
        "AWS::Logs::SubscriptionFilter",
    } == {"AWS::SNS::Subscription"}
    assert stack.resources_of("AWS::SNS::Subscription")["NoticeSubscription"]["Protocol"] == "email"


def test_only_the_function_that_writes_quotas_reserves_concurrency_and_only_when_asked_to() -> None:
    reserving = {name: one.get("ReservedConcurrentExecutions") for name, one in FUNCTIONS.items()}
    assert reserving.pop("ApplyChangeFunction") == {
        "Fn::If": ["ReservesApplyConcurrency", {"Ref": "ApplyConcurrency"}, {"Ref": "AWS::NoValue"}]
    }
    assert set(reserving.values()) == {None}


def test_the_writer_is_known_to_the_receiver_by_its_role() -> None:
    variables = FUNCTIONS["ReceiveEventFunction"]["Environment"]["Variables"]
    assert references(variables["OWN_ROLE_ARN"]) == references(FUNCTIONS["ApplyChangeFunction"]["Role"])


@pytest.mark.parametrize("layer", ["core", "kubernetes", "report"])
def test_a_layer_pins_what_the_tests_run_with(layer: str) -> None:
    locked = (ROOT / "requirements" / "dev.txt").read_text()
    lines = (ROOT / "layers" / layer / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if "==" in line]
    hashes = [line.strip().removesuffix(" \\") for line in lines if "--hash" in line]
    assert pins
    assert hashes
    assert [pin for pin in pins if f"\n{pin}" not in locked] == []
    assert [one for one in hashes if one not in locked] == []


def test_the_core_layer_keeps_the_models_of_the_services_that_the_functions_call() -> None:
    sources = [path.read_text() for path in (ROOT / "layers" / "taskgov").rglob("*.py")]
    called = {name for source in sources for name in re.findall(r'boto3\.(?:client|resource)\("([\w-]+)"', source)}
    assert (ROOT / "layers" / "core" / "models.txt").read_text().split() == sorted(called)


def test_every_layer_folder_is_a_layer_of_the_template(stack: Translated) -> None:
    layers = stack.resources_of("AWS::Lambda::LayerVersion").values()
    assert {Path(one["Content"]["S3Key"]).name for one in layers} == {
        path.name
        for path in (ROOT / "layers").iterdir()
        if path.is_dir() and not (path / "Makefile").exists() and path.name != "__pycache__"
    }


@functions
def test_a_new_version_takes_over_step_by_step_and_goes_back_when_it_fails(stack: Translated, name: str) -> None:
    alias = stack.cfn["Resources"][f"{name}{ALIAS}"]
    (group,) = updates.references(alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]["DeploymentGroupName"])
    deployment = stack.resources_of("AWS::CodeDeploy::DeploymentGroup")[group]
    condition, watched, unwatched = deployment["AlarmConfiguration"]["Fn::If"]
    alarm = "NewIntakeVersionErrorsAlarm" if name == "ReceiveEventFunction" else "NewVersionErrorsAlarm"
    assert (condition, unwatched) == ("RollsBack", {})
    assert watched == {"Enabled": True, "Alarms": [{"Name": {"Ref": alarm}}]}
    assert "DEPLOYMENT_STOP_ON_ALARM" in deployment["AutoRollbackConfiguration"]["Events"]
    assert references(deployment["ServiceRoleArn"]) == {"DeploymentRole"}
    newest = [one for one in references(stack.resources_of("AWS::CloudWatch::Alarm")[alarm]) if "Version" in one]
    assert [one for one in newest if one.startswith(f"{name}Version")] != []


@pytest.mark.parametrize("preference", load().cfn["Parameters"]["DeploymentPreference"]["AllowedValues"])
def test_the_parameter_says_how_calls_move(preference: str) -> None:
    translated = translate(ROOT / "template.yaml", {"DeploymentPreference": preference})
    groups = translated.resources_of("AWS::CodeDeploy::DeploymentGroup").values()
    names = {one["DeploymentConfigName"]["Fn::Sub"][1]["ConfigName"] for one in groups}
    assert names == {preference}
    assert list(steps(f"CodeDeployDefault.Lambda{preference}"))[-1] == (1.0, 0)


def test_a_change_of_a_layer_alone_makes_a_new_version_of_every_function(tmp_path: Path) -> None:
    older = translate(older_release(tmp_path), {}).resources_of("AWS::Lambda::Version")
    newer = load().resources_of("AWS::Lambda::Version")
    assert len(older) == len(newer) == len(FUNCTIONS)
    assert set(older) & set(newer) == set()


@functions
def test_signed_code_is_asked_for_when_a_configuration_is_given(name: str) -> None:
    given = {"Fn::If": ["ChecksSignatures", {"Ref": "CodeSigningConfigArn"}, {"Ref": "AWS::NoValue"}]}
    assert FUNCTIONS[name]["CodeSigningConfigArn"] == given


def test_one_function_can_be_reached_from_outside_and_only_with_a_signature_that_aws_checks(stack: Translated) -> None:
    closed = {"AWS::Serverless::Api", "AWS::ApiGateway::RestApi", "AWS::ElasticLoadBalancingV2::LoadBalancer"}
    assert stack.types() & closed == set()
    (url,) = stack.resources_of("AWS::Lambda::Url").values()
    (route,) = stack.resources_of("AWS::ApiGatewayV2::Route").values()
    (integration,) = stack.resources_of("AWS::ApiGatewayV2::Integration").values()
    assert url["AuthType"] == route["AuthorizationType"] == "AWS_IAM"
    assert references(url["TargetFunctionArn"]) == references(integration["IntegrationUri"]) == {"TakeOrderFunction"}


def test_a_url_or_an_api_and_never_both(stack: Translated) -> None:
    found = stack.cfn["Resources"].items()
    kinds = {
        name: one.get("Condition") for name, one in found if re.match(r"AWS::(ApiGatewayV2|Lambda::Url)", one["Type"])
    }
    assert kinds.pop("OrderUrl") == "OrdersThroughUrl"
    assert set(kinds.values()) == {"OrdersThroughApi"}
    assert len(kinds) == 4


def test_only_the_api_of_this_stack_may_invoke_the_function_behind_it(stack: Translated) -> None:
    (permission,) = stack.resources_of("AWS::Lambda::Permission").values()
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert references(permission["FunctionName"]) == {"TakeOrderFunction"}
    assert permission["SourceArn"]["Fn::Sub"].endswith("${AWS::AccountId}:${OrderApi}/*/POST/")


VERSIONED = {
    "Architecture": "asks for other layers, which make a new version",
    "ClustersWithoutDocument": "waits for the next version: docs/deploy.md says how to make one",
    "LogLevel": "waits for the next version: docs/deploy.md says how to make one",
    "MaxSeries": "waits for the next version: docs/deploy.md says how to make one",
    "HistoryDays": "waits for the next version: docs/deploy.md says how to make one",
    "PublishSchedule": "waits for the next version: docs/deploy.md says how to make one",
    "WorkOwners": "waits for the next version: docs/deploy.md says how to make one",
    "WorkOwnerLabel": "waits for the next version: docs/deploy.md says how to make one",
    "TeamTopicPrefix": "waits for the next version: docs/deploy.md says how to make one",
    "VpcSubnetIds": "waits for the next version: docs/deploy.md says how to make one",
    "VpcSecurityGroupIds": "waits for the next version: docs/deploy.md says how to make one",
}
"""Parameters in what a version keeps: a change of one of them alone publishes none, and the alias stays where it is."""
NOT_VERSIONED = {"ReservedConcurrentExecutions", "CodeSigningConfigArn", "Tags"}


def test_a_parameter_that_a_version_keeps_is_known_to_wait_for_the_next_one() -> None:
    parameters = set(load().cfn["Parameters"]) - {"AWS::NoValue"}
    kept = {
        name
        for function in FUNCTIONS.values()
        for key, value in function.items()
        if key not in NOT_VERSIONED
        for name in references(value) & parameters
    }
    assert kept == set(VERSIONED)
    page = " ".join((ROOT / "docs" / "deploy.md").read_text().split())
    assert all(f"`{name}`" in page for name in VERSIONED)
    assert "`VpcSubnetIds` or `VpcSecurityGroupIds` *alone* does not publish a new version" in page


def test_a_turn_to_notify_teams_lasts_longer_than_the_function_that_has_it(stack: Translated) -> None:
    """Otherwise another measurement would report the same while the first still does."""
    assert stack.resources_of("AWS::Lambda::Function")["PublishUsageFunction"]["Timeout"] < TURN_SECONDS
