"""The account is made from the template and from nothing else."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from taskgov_embedded.cloudformation.resources import UnsupportedResourceError, physical_name
from taskgov_embedded.cloudformation.template import translate
from taskgov_embedded.stack import Stack
from taskgov_embedded.stepfunctions.definitions import substitute

if TYPE_CHECKING:
    from pathlib import Path


def test_an_unknown_resource_type_is_refused(app: Path, tmp_path: Path) -> None:
    shutil.copytree(app.parent, tmp_path / "app")
    path = tmp_path / "app" / "template.yaml"
    path.write_text(
        path.read_text().replace("\nOutputs:\n", "\n  Strange:\n    Type: AWS::Quantum::Leap\n\nOutputs:\n")
    )
    with pytest.raises(UnsupportedResourceError, match="AWS::Quantum::Leap"):
        Stack(path).open()
    with Stack(app):
        pass  # the failed one has left nothing behind


def test_conditions_and_parameters_take_effect(app: Path) -> None:
    with Stack(app, {"Stage": "prod"}) as stack:
        with pytest.raises(KeyError):
            stack.physical("AuditFunction")
        with pytest.raises(KeyError):
            stack.physical("AuditSchedule")
        assert stack.parameters == {"Stage": "prod"}


def test_a_resource_is_described_by_its_logical_id(stack: Stack) -> None:
    client = stack.client("cloudformation")
    detail = client.describe_stack_resource(StackName="taskgov", LogicalResourceId="Table")["StackResourceDetail"]
    assert (detail["PhysicalResourceId"], detail["ResourceType"]) == (stack.physical("Table"), "AWS::DynamoDB::Table")
    with pytest.raises(ClientError, match="Resource Nothing does not exist for stack taskgov"):
        client.describe_stack_resource(StackName="taskgov", LogicalResourceId="Nothing")


def test_everything_of_the_template_is_there(stack: Stack) -> None:
    assert (
        stack.client("dynamodb").describe_table(TableName=stack.physical("Table"))["Table"]["TableStatus"] == "ACTIVE"
    )
    versioning = stack.client("s3").get_bucket_versioning(Bucket=stack.physical("Bucket"))
    assert versioning["Status"] == "Enabled"
    attributes = stack.client("sqs").get_queue_attributes(
        QueueUrl=stack.physical("Requests"), AttributeNames=["DelaySeconds", "VisibilityTimeout", "RedrivePolicy"]
    )["Attributes"]
    assert (attributes["DelaySeconds"], attributes["VisibilityTimeout"]) == ("5", "60")
    assert json.loads(attributes["RedrivePolicy"])["maxReceiveCount"] == 2
    assert len(stack.client("events").list_rules()["Rules"]) == 2
    assert len(stack.client("scheduler").list_schedules()["Schedules"]) == 2
    machines = stack.client("stepfunctions").list_state_machines()["stateMachines"]
    assert [one["stateMachineArn"] for one in machines] == [stack.outputs["MachineArn"]]


def test_what_moto_drops_is_readable_on_the_translated_template(stack: Stack) -> None:
    (table,) = stack.translated.resources_of("AWS::DynamoDB::Table").values()
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    functions = stack.translated.resources_of("AWS::Lambda::Function")
    assert all(one["TracingConfig"] == {"Mode": "Active"} for one in functions.values())
    assert stack.resolved("WorkFunction").properties["Environment"]["Variables"]["TOPIC_ARN"] == stack.physical("Topic")


def test_names_are_the_same_in_every_run() -> None:
    first = physical_name("AWS::Lambda::Function", "taskgov", "Plan")
    assert first == physical_name("AWS::Lambda::Function", "taskgov", "Plan")
    assert first != physical_name("AWS::Lambda::Function", "taskgov", "Apply")
    assert len(physical_name("AWS::IAM::Role", "taskgov", "R" * 100)) <= 64
    assert physical_name("AWS::S3::Bucket", "taskgov", "Reports").islower()


def test_every_placeholder_of_a_definition_needs_a_value() -> None:
    with pytest.raises(ValueError, match="no DefinitionSubstitutions for TableName"):
        substitute('{"a": "${TableName}"}', {"Other": 1})
    assert substitute('{"a": "${N} ${N}"}', {"N": 5}) == '{"a": "5 5"}'


def test_a_missing_attribute_is_an_error_and_no_guess(app: Path, tmp_path: Path) -> None:
    shutil.copytree(app.parent, tmp_path / "app")
    path = tmp_path / "app" / "template.yaml"
    path.write_text(path.read_text().replace("!GetAtt WorkFunction.Arn", "!GetAtt WorkFunction.Anr"))
    with pytest.raises(Exception, match="does not support attribute type Anr"):
        Stack(path).open()


def test_a_template_is_read_again_when_it_has_changed(app: Path, tmp_path: Path) -> None:
    shutil.copytree(app.parent, tmp_path / "app")
    path = tmp_path / "app" / "template.yaml"
    before = translate(path, {})
    path.write_text(path.read_text().replace("DelaySeconds: 5", "DelaySeconds: 6"))
    after = translate(path, {})
    delays = [one.resources_of("AWS::SQS::Queue")["Requests"]["DelaySeconds"] for one in (before, after)]
    assert delays == [5, 6]
