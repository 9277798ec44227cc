"""Who may do what: no role holds more than its work needs, and what a role needs is there."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from moto.iam.aws_managed_policies import aws_managed_policies_data

from taskgov_cli.doctor.permissions import NEEDED
from taskgov_embedded.cloudformation import updates
from taskgov_embedded.cloudformation.template import Translated
from taskgov_embedded.iam import reference
from tests.template.conftest import ALIAS, Properties, definition_of, load, references, role_of, statements

ROLES = load().resources_of("AWS::IAM::Role")

WILDCARDS = {
    "sagemaker:ListClusters": "SageMaker's List calls name no resource",
    "sagemaker:ListComputeQuotas": "SageMaker's List calls name no resource",
    "sagemaker:ListClusterSchedulerConfigs": "SageMaker's List calls name no resource",
    "autoscaling:DescribeAutoScalingInstances": "Auto Scaling's Describe calls name no resource",
    "ec2:DescribeCapacityReservations": "EC2's Describe calls name no resource",
    "ec2:DescribeInstances": "EC2's Describe calls name no resource",
    "xray:PutTraceSegments": "X-Ray names no resource",
    "xray:PutTelemetryRecords": "X-Ray names no resource",
    "xray:GetSamplingRules": "X-Ray names no resource",
    "xray:GetSamplingTargets": "X-Ray names no resource",
    "logs:CreateLogDelivery": "log deliveries are no resource",
    "logs:GetLogDelivery": "log deliveries are no resource",
    "logs:UpdateLogDelivery": "log deliveries are no resource",
    "logs:DeleteLogDelivery": "log deliveries are no resource",
    "logs:ListLogDeliveries": "log deliveries are no resource",
    "logs:PutResourcePolicy": "resource policies are the account's",
    "logs:DescribeResourcePolicies": "resource policies are the account's",
    "logs:DescribeLogGroups": "what Step Functions asks before it logs",
    "states:SendTaskSuccess": "a task token is the only thing that names the run, and is not a resource",
    "cloudwatch:PutMetricData": "CloudWatch names no resource; the namespace is a condition",
    "cloudwatch:DescribeAlarms": "CodeDeploy asks for all alarms of a deployment in one call",
}
"""Actions that may have any resource, and why."""

TELLS_A_TOPIC = {"kms:Decrypt", "kms:GenerateDataKey"}
SEES_MACHINES = {
    "autoscaling:DescribeAutoScalingInstances",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeInstances",
}
NOT_ASKED = {
    "ReadSnapshotRole": SEES_MACHINES,
    "PublishUsageRole": SEES_MACHINES | TELLS_A_TOPIC,
    "AuditClusterRole": SEES_MACHINES | TELLS_A_TOPIC,
}
"""What `taskgov doctor` does not ask IAM: the key of the topic, and what only stacks that watch plain EKS have."""
GRANTED = {
    role: {action for actions in needed.values() for action in actions} | NOT_ASKED.get(role, set())
    for role, needed in NEEDED.items()
}
"""What each function may do besides logging and tracing, by the one list (`taskgov_cli.doctor.permissions`)."""

OF_EVERY_FUNCTION = {
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
}
OF_EVERY_MACHINE = {action for action in WILDCARDS if action.startswith(("xray:", "logs:"))}


def actions(role: Properties) -> set[str]:
    return {action for statement in statements(role) for action in statement["Action"]}


roles = pytest.mark.parametrize("role", sorted(ROLES))


@roles
def test_no_action_is_a_wildcard(role: str) -> None:
    assert [action for action in actions(ROLES[role]) if "*" in action] == []


@roles
def test_any_resource_is_granted_only_where_the_service_names_none(role: str) -> None:
    for statement in statements(ROLES[role]):
        if "*" in statement["Resource"]:
            assert statement["Resource"] == ["*"]
            assert set(statement["Action"]) <= set(WILDCARDS)


@roles
def test_every_action_is_granted_on_the_kinds_of_resources_that_the_reference_lists(role: str) -> None:
    for statement in statements(ROLES[role]):
        for action in statement["Action"]:
            forms = reference.resource_forms(action)
            assert forms is not None, f"make iam-reference: {action} is not in the reference"
            assert forms or statement["Resource"] == ["*"]


@roles
def test_every_other_resource_is_this_stacks_or_of_one_kind_in_this_account_and_region(role: str) -> None:
    kinds = (
        r"sagemaker:.*:(cluster|compute-quota|cluster-scheduler-config|training-plan)/\*|eks:.*:(cluster|access-entry)/\*"
        r"|states:.*:execution:\$\{ReconcileStateMachine\.Name\}:\*"
        r"|scheduler:.*:schedule/\$\{Schedules\}/recheck-\*|sns:.*:\$\{TeamTopicPrefix\}\*|ssm:.*:parameter/\$\{OrderRights\}"
    )
    for statement in statements(ROLES[role]):
        for resource in statement["Resource"]:
            if resource != "*" and "AWS::AccountId" in references(resource):
                assert re.fullmatch(
                    rf"arn:\$\{{AWS::Partition\}}:({kinds})", resource["Fn::Sub"].replace("${AWS::Region}", "")
                )
            elif resource != "*":
                assert references(resource) <= set(load().cfn["Resources"])


@roles
def test_a_boundary_is_set_when_one_is_given(role: str) -> None:
    bounded = {"Fn::If": ["IsBounded", {"Ref": "PermissionsBoundaryArn"}, {"Ref": "AWS::NoValue"}]}
    assert ROLES[role]["PermissionsBoundary"] == bounded


@roles
def test_one_service_may_assume_it_and_only_for_this_account_where_the_service_says_so(role: str) -> None:
    (trust,) = ROLES[role]["AssumeRolePolicyDocument"]["Statement"]
    service = trust["Principal"]["Service"]
    if service == "lambda.amazonaws.com":
        return  # Lambda tells no source account
    assert service in {"states.amazonaws.com", "scheduler.amazonaws.com", "codedeploy.amazonaws.com"}
    assert trust["Condition"]["StringEquals"]["aws:SourceAccount"] == {"Ref": "AWS::AccountId"}


@roles
def test_the_only_managed_policy_is_for_network_interfaces_in_a_vpc(role: str) -> None:
    managed = ROLES[role].get("ManagedPolicyArns")
    if managed is not None:
        condition, policies, otherwise = managed["Fn::If"]
        assert condition == "RunsInVpc"
        assert [policy["Fn::Sub"].rsplit("/", 1)[-1] for policy in policies] == ["AWSLambdaVPCAccessExecutionRole"]
        assert otherwise == {"Ref": "AWS::NoValue"}


def test_the_list_has_every_function(stack: Translated) -> None:
    functions = stack.resources_of("AWS::Lambda::Function").values()
    assert set(GRANTED) == {name for function in functions for name in references(function["Role"])}


@pytest.mark.parametrize("role", sorted(GRANTED))
def test_a_function_may_do_what_its_work_needs_and_nothing_else(role: str) -> None:
    assert actions(ROLES[role]) - OF_EVERY_FUNCTION == GRANTED[role]
    assert actions(ROLES[role]) >= OF_EVERY_FUNCTION


def prefixes(role: str, action: str) -> set[str]:
    return {
        resource["Fn::Sub"].split("/", 1)[1]
        for statement in statements(ROLES[role])
        if action in statement["Action"]
        for resource in statement["Resource"]
    }


def test_documents_are_read_by_the_functions_that_need_them() -> None:
    assert {role: prefixes(role, "s3:GetObject") for role in ROLES if prefixes(role, "s3:GetObject")} == {
        "ReadSnapshotRole": {"policies/*", "memory/*", "snapshots/*"},
        "PlanQuotasRole": {"snapshots/*"},
        "ReceiveEventRole": {"policies/*"},
        "ApplyChangeRole": {"plans/*", "policies/*"},
        "VerifyPlanRole": {"plans/*", "policies/*"},
        "PublishUsageRole": {"plans/*", "policies/*", "memory/*", "work/*", "starts/*/estimates.json.gz"},
        "EstimateStartsRole": {
            "policies/*",
            "work/*",
            "memory/*/work.json.gz",
            "memory/*/workloads.json.gz",
            "starts/*",
        },
        "AuditClusterRole": {"policies/*", "memory/*", "work/*", "starts/*/estimates.json.gz"},
        "TakeOrderRole": {"plans/*", "policies/*"},
    }


def items(role: str, *wanted: str) -> set[str]:
    """Return the kinds of items on which a role may do any of the given things to the table."""
    return {
        key
        for statement in statements(ROLES[role])
        if set(wanted) & set(statement["Action"])
        for key in statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    }


def test_items_are_written_by_the_functions_that_own_them_and_one_alone_turns_the_stop_switch() -> None:
    writing = {role: items(role, "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem") for role in ROLES}
    assert {role: keys for role, keys in writing.items() if keys} == {
        "ReceiveEventRole": {"CLUSTER#*"},
        "ReadSnapshotRole": {"CLUSTER#*", "QUOTA#*"},
        "ApplyChangeRole": {"CLUSTER#*", "QUOTA#*"},
        "VerifyPlanRole": {"CLUSTER#*"},
        "PublishUsageRole": {"CLUSTER#*"},
        "AuditClusterRole": {"CLUSTER#*"},
        "ReconcileRole": {"CLUSTER#*", "APPROVAL#*"},
        "TakeOrderRole": {"APPROVAL#*", "CLUSTER#*", "DOCUMENT#*", "ORDER#*", "SWITCH"},
    }
    assert items("ReconcileRole", "dynamodb:UpdateItem") == {"CLUSTER#*"}
    assert items("ReadSnapshotRole", "dynamodb:PutItem") == {"CLUSTER#*", "QUOTA#*"}


def test_items_are_read_by_the_functions_that_need_them() -> None:
    reading = {role: items(role, "dynamodb:GetItem", "dynamodb:Query") for role in ROLES}
    assert {role: keys for role, keys in reading.items() if keys} == {
        "ReceiveEventRole": {"CLUSTER#*", "QUOTA#*"},
        "ReadSnapshotRole": {"CLUSTER#*", "DOCUMENT#*", "QUOTA#*", "SWITCH"},
        "TakeOrderRole": {"APPROVAL#*", "DOCUMENT#*"},
        "ApplyChangeRole": {"CLUSTER#*", "QUOTA#*"},
        "VerifyPlanRole": {"CLUSTER#*"},
        "PublishUsageRole": {"CLUSTER#*", "SWITCH"},
        "AuditClusterRole": {"CLUSTER#*", "SWITCH"},
    }


def test_documents_are_written_by_the_one_function_that_makes_them() -> None:
    assert {role: prefixes(role, "s3:PutObject") for role in ROLES if prefixes(role, "s3:PutObject")} == {
        "ReadSnapshotRole": {"snapshots/*", "memory/*/nodes.json", "memory/*/state.json"},
        "PlanQuotasRole": {"plans/*"},
        "PublishUsageRole": {
            "memory/*/use.json.gz",
            "memory/*/told.json",
            "memory/*/work.json.gz",
            "memory/*/workloads.json.gz",
            "memory/*/series.json.gz",
            "memory/owners.key",
            "work/*",
            "reports/*/teams/*",
        },
        "EstimateStartsRole": {"starts/*"},
        "AuditClusterRole": {"reports/*", "memory/*/advice.json", "memory/*/audits.json"},
        "TakeOrderRole": {"policies/*"},
    }


def test_nobody_but_the_one_function_writes_quotas() -> None:
    writers = {
        role
        for role in ROLES
        for action in actions(ROLES[role])
        if re.match(r"sagemaker:(Create|Update|Delete|Batch)", action)
    }
    assert writers == {"ApplyChangeRole"}


def test_the_one_function_that_writes_tags_sets_the_mark_of_a_stack_and_no_other_tag() -> None:
    tagging = {"sagemaker:AddTags", "sagemaker:DeleteTags", "eks:TagResource", "eks:UntagResource"}
    found = [(role, each) for role in ROLES for each in statements(ROLES[role]) if tagging & set(each["Action"])]
    assert {role for role, _ in found} == {"ApplyChangeRole"}
    for _, statement in found:
        assert statement["Condition"] == {"ForAllValues:StringLike": {"aws:TagKeys": ["taskgov:stack:*"]}}


def machines() -> list[Any]:
    return [
        pytest.param(name, one, id=name)
        for name, one in load().resources_of("AWS::StepFunctions::StateMachine").items()
    ]


def used_by(node: Any, substitutions: Properties) -> Iterator[tuple[str, str]]:
    """Yield (action, logical id or '*') for each task of a machine."""
    match node:
        case {"Type": "Task", "Resource": str(resource), "Arguments": arguments}:
            kind = resource.split(":::", 1)[1].removeprefix("aws-sdk:").removesuffix(".waitForTaskToken")
            service, call = kind.split(":")
            match service:
                case "lambda":
                    (function,) = references(substitutions[arguments["FunctionName"].strip("${}")])
                    yield "lambda:InvokeFunction", function
                case "sns":
                    yield "sns:Publish", "NoticeTopic"
                    yield "kms:Decrypt", "NoticeKey"
                    yield "kms:GenerateDataKey", "NoticeKey"
                case "sqs":
                    yield "sqs:SendMessage", "IntakeQueue"
                case "sfn":
                    yield "states:StartExecution", "AuditStateMachine"
                case "s3":
                    yield "s3:ListBucket", "GovernanceBucket"  # what ListObjectsV2 asks for
                case _:
                    target = {"dynamodb": "GovernanceTable", "scheduler": "Schedules"}.get(service, "*")
                    yield f"{service}:{call[0].upper()}{call[1:]}", target
                    if service == "scheduler":
                        yield "iam:PassRole", "ScheduleRole"
        case dict():
            for value in node.values():
                yield from used_by(value, substitutions)
        case _:
            return


def own_resources(resource: Any) -> set[str]:
    """Return the resources of this template that a policy's resource names, without `AWS::Partition` and its like."""
    return {one for one in references(resource) if not one.startswith("AWS::")}


@pytest.mark.parametrize(("name", "machine"), machines())
def test_a_state_machine_may_do_what_its_tasks_do_and_nothing_else(
    stack: Translated, name: str, machine: Properties
) -> None:
    granted = {
        (action, next(iter(references(resource) & set(stack.cfn["Resources"])), "*"))
        for statement in statements(role_of(stack, machine, "RoleArn"))
        for action in statement["Action"]
        for resource in statement["Resource"]
        if action not in OF_EVERY_MACHINE
    }
    encrypts = {("kms:Decrypt", "ExecutionKey"), ("kms:GenerateDataKey", "ExecutionKey")} if name in KEYED else set()
    assert granted == set(used_by(definition_of(machine), machine["DefinitionSubstitutions"])) | encrypts


KEYED = {"ReconcileStateMachine", "AuditStateMachine"}
"""Machines whose data has a key of the stack; that of the fan-out is names of clusters."""


@pytest.mark.parametrize("name", sorted(KEYED))
def test_a_state_machine_uses_the_key_for_its_own_data_and_for_the_logs_of_this_account(
    stack: Translated, name: str
) -> None:
    machine = stack.resources_of("AWS::StepFunctions::StateMachine")[name]
    here = "${AWS::Partition}:%s:${AWS::Region}:${AWS::AccountId}:"
    own = {"Fn::Sub": f"arn:{here % 'states'}stateMachine:*{name}-*"}
    logs = {"Fn::Sub": f"arn:{here % 'logs'}*"}
    found = {
        tuple(one["Action"]): one["Condition"]
        for one in statements(role_of(stack, machine, "RoleArn"))
        if any(references(each) == {"ExecutionKey"} for each in one["Resource"])
    }
    assert found == {
        ("kms:Decrypt", "kms:GenerateDataKey"): {
            "StringLike": {"kms:EncryptionContext:aws:states:stateMachineArn": own}
        },
        ("kms:GenerateDataKey",): {"StringEquals": {"kms:EncryptionContext:SourceArn": logs}},
    }


def test_no_role_of_the_stack_but_the_machines_may_use_the_key_of_executions() -> None:
    using = {
        role
        for role in ROLES
        for one in statements(ROLES[role])
        if any("ExecutionKey" in references(each) for each in one["Resource"])
    }
    assert using == {"ReconcileRole", "AuditRole"}


@pytest.mark.parametrize(("name", "machine"), machines())
def test_a_state_machine_is_traced_and_logs_without_task_tokens(
    stack: Translated, name: str, machine: Properties
) -> None:
    assert machine["TracingConfiguration"] == {"Enabled": True}
    # An Express execution has no history: the log of one that fails has to say with what. No token is in it.
    express = machine.get("StateMachineType") == "EXPRESS"
    assert (".waitForTaskToken" in machine["DefinitionString"]) == (name == "ReconcileStateMachine")
    assert machine["LoggingConfiguration"]["IncludeExecutionData"] is express
    assert machine["LoggingConfiguration"]["Level"] == ("ERROR" if express else "ALL")
    (group,) = references(machine["LoggingConfiguration"]["Destinations"])
    assert stack.resources_of("AWS::Logs::LogGroup")[group]["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    assert actions(role_of(stack, machine, "RoleArn")) >= OF_EVERY_MACHINE


@pytest.mark.parametrize(("name", "machine"), machines())
def test_every_placeholder_is_supplied_and_everything_supplied_is_used(name: str, machine: Properties) -> None:
    used = set(re.findall(r"\$\{(\w+)\}", yaml.safe_dump(definition_of(machine))))
    assert used == set(machine["DefinitionSubstitutions"])


@pytest.mark.parametrize(("name", "machine"), machines())
def test_a_step_waits_longer_than_its_function_may_take(name: str, machine: Properties) -> None:
    functions = load().resources_of("AWS::Lambda::Function")

    def check(node: Any) -> None:
        if isinstance(node, dict):
            if str(node.get("Resource", "")).endswith("lambda:invoke"):
                key = node["Arguments"]["FunctionName"].strip("${}")
                (function,) = references(machine["DefinitionSubstitutions"][key])
                assert node["TimeoutSeconds"] > functions[function]["Timeout"]
            for value in node.values():
                check(value)

    check(definition_of(machine))


def test_the_schedules_may_start_the_fan_out_and_reach_the_two_queues(stack: Translated) -> None:
    granted = {
        (action, next(iter(references(resource))))
        for statement in statements(ROLES["ScheduleRole"])
        for action in statement["Action"]
        for resource in statement["Resource"]
    }
    assert granted == {
        ("states:StartExecution", "FanOutStateMachine"),
        ("sqs:SendMessage", "IntakeQueue"),
        ("sqs:SendMessage", "DeliveryDeadLetterQueue"),
    }
    (trust,) = ROLES["ScheduleRole"]["AssumeRolePolicyDocument"]["Statement"]
    assert references(trust["Condition"]["StringEquals"]["aws:SourceArn"]) == {"Schedules"}


def called(node: Any) -> Iterator[str]:
    """Yield the logical ids of functions and their aliases that a value refers to, as they stand there."""
    yield from (name for name in updates.references(node) if re.search(rf"Function({ALIAS})?$", name))


def test_every_caller_of_a_function_calls_its_alias(stack: Translated) -> None:
    machines = stack.resources_of("AWS::StepFunctions::StateMachine").values()
    schedules = stack.resources_of("AWS::Scheduler::Schedule").values()
    mappings = stack.resources_of("AWS::Lambda::EventSourceMapping").values()
    granted = [
        statement["Resource"]
        for role in ROLES.values()
        for statement in statements(role)
        if "lambda:InvokeFunction" in statement["Action"]
    ]
    targets = [
        *(one["DefinitionSubstitutions"] for one in machines),
        *(one["Target"]["Arn"] for one in schedules),
        *(one["FunctionName"] for one in mappings),
        *granted,
    ]
    found = [name for target in targets for name in called(target)]
    assert len(found) >= 15
    assert [name for name in found if not name.endswith(ALIAS)] == []


def test_code_deploy_may_move_the_aliases_of_these_functions_and_nothing_else(stack: Translated) -> None:
    own = set(stack.resources_of("AWS::Lambda::Function"))
    on = {
        action: {text for resource in statement["Resource"] for text in updates.references(resource)}
        for statement in statements(ROLES["DeploymentRole"])
        for action in statement["Action"]
        if action.startswith("lambda:")
    }
    assert set(on) == {"lambda:GetAlias", "lambda:UpdateAlias", "lambda:GetProvisionedConcurrencyConfig"}
    managed = json.loads(aws_managed_policies_data)["AWSCodeDeployRoleForLambdaLimited"]["Document"]["Statement"]
    assert actions(ROLES["DeploymentRole"]) == set(managed[0]["Action"])
    (intake,) = stack.resources_of("AWS::IAM::Policy").values()
    assert references(intake["Roles"]) == {"DeploymentRole"}
    everywhere = {
        name
        for statement in statements(ROLES["DeploymentRole"])
        for resource in statement["Resource"]
        for name in references(resource)
    }
    assert everywhere == own


def test_the_list_of_wildcards_holds_no_leftovers() -> None:
    granted = {
        action
        for role in ROLES.values()
        for statement in statements(role)
        if "*" in statement["Resource"]
        for action in statement["Action"]
    }
    assert granted == set(WILDCARDS)


def test_ec2_is_asked_about_plain_eks_only_and_in_the_stacks_own_region() -> None:
    holders = {"ReadSnapshotRole", "PublishUsageRole", "AuditClusterRole"}
    for name, role in ROLES.items():
        found = [
            each
            for policy in role.get("Policies", ())
            for each in policy["PolicyDocument"]["Statement"]
            if "ec2:" in json.dumps(each)
        ]
        assert len(found) == (name in holders)
        for each in found:
            condition, statement, otherwise = each["Fn::If"]
            assert (condition, otherwise) == ("WatchesPlainEks", {"Ref": "AWS::NoValue"})
            assert statement["Condition"] == {"StringEquals": {"aws:RequestedRegion": {"Ref": "AWS::Region"}}}
