"""Who may call what, what is recorded of each call, and what goes wrong on purpose."""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from taskgov_embedded.stack import Stack

if TYPE_CHECKING:
    from pathlib import Path


def run(stack: Stack, *parts: str) -> dict[str, Any]:
    arn = stack.start_execution("Machine", {"name": "one", "parts": list(parts)})
    stack.run_until_quiet()
    described: dict[str, Any] = stack.client("stepfunctions").describe_execution(executionArn=arn)
    return described


@pytest.mark.parametrize(
    ("taken", "action", "caller"),
    [
        ("s3:PutObject", "s3:PutObject", "WorkFunctionRole"),
        ("sns:Publish", "sns:Publish", "WorkFunctionRole"),
        ("dynamodb:UpdateItem", "dynamodb:UpdateItem", "MachineRole"),
        ("sagemaker:ListClusters", "sagemaker:ListClusters", "MachineRole"),
        ("lambda:InvokeFunction", "lambda:InvokeFunction", "MachineRole"),
    ],
)
def test_each_permission_that_is_taken_away_is_missed(
    app: Path, tmp_path: Path, taken: str, action: str, caller: str
) -> None:
    shutil.copytree(app.parent, tmp_path / "app")
    template = tmp_path / "app" / "template.yaml"
    text = template.read_text()
    if taken == "lambda:InvokeFunction":
        text = text.replace("        - LambdaInvokePolicy: {FunctionName: !Ref WorkFunction}\n", "")
    template.write_text(text.replace(f"Action: {taken}\n", "Action: nothing:AtAll\n"))
    with Stack(template) as stack:
        assert run(stack, "a")["status"] == "FAILED"
        (denied, *_) = stack.timeline.of("denied")
        assert f"is not authorized to perform: {action} on resource: " in denied.what
        assert f"taskgov-{caller}-" in denied.what
        assert any(
            (call.error and "AccessDenied" in call.error) or call.error == "AuthorizationError" for call in stack.calls
        )


def test_with_all_permissions_nothing_is_denied(stack: Stack) -> None:
    assert run(stack, "a")["status"] == "SUCCEEDED"
    assert stack.timeline.of("denied") == []
    assert stack.requests.unknown_condition_keys == set()


def test_a_denied_call_names_role_action_and_resource(stack: Stack) -> None:
    with pytest.raises(ClientError) as caught:
        stack.client_of("WorkFunctionRole", "dynamodb").get_item(
            TableName=stack.physical("Table"), Key={"pk": {"S": "x"}}
        )
    error = caught.value.response["Error"]
    assert error["Code"] == "AccessDeniedException"
    assert "assumed-role/taskgov-WorkFunctionRole-" in error["Message"]
    assert (
        f"dynamodb:GetItem on resource: arn:aws:dynamodb:us-east-1:111122223333:table/{stack.physical('Table')}"
        in error["Message"]
    )


@pytest.mark.parametrize(
    ("service", "operation", "params", "code"),
    [
        ("sns", "publish", {"TopicArn": "arn:aws:sns:us-east-1:111122223333:t", "Message": "m"}, "AuthorizationError"),
        ("sqs", "list_queues", {}, "AccessDenied"),
        ("s3", "list_buckets", {}, "AccessDenied"),
        ("cloudwatch", "list_metrics", {}, "AccessDenied"),
        ("sagemaker", "list_clusters", {}, "AccessDeniedException"),
        ("eks", "describe_cluster", {"name": "x"}, "AccessDeniedException"),
        ("events", "list_rules", {}, "AccessDeniedException"),
        ("lambda", "list_functions", {}, "AccessDeniedException"),
    ],
)
def test_each_protocol_says_access_denied_in_its_own_words(
    stack: Stack, service: str, operation: str, params: dict[str, Any], code: str
) -> None:
    client = stack.client_of("ScheduleRole", service)
    with pytest.raises(ClientError) as caught:
        getattr(client, operation)(**params)
    assert caught.value.response["Error"]["Code"] == code


def test_calls_are_recorded_with_who_what_and_where(stack: Stack) -> None:
    run(stack, "a")
    (put,) = [call for call in stack.calls if call.action == "s3:PutObject"]
    assert put.principal.role_arn is not None
    assert "WorkFunctionRole" in put.principal.role_arn
    assert put.resources == (f"arn:aws:s3:::{stack.physical('Bucket')}/results/one/a",)
    assert (put.time, put.error) == (stack.clock.now, None)
    failed = [call for call in stack.calls if call.error]
    assert failed == []


def test_an_error_of_the_service_is_recorded_with_its_code(stack: Stack) -> None:
    with pytest.raises(ClientError):
        stack.client("s3").get_object(Bucket=stack.physical("Bucket"), Key="no")
    assert stack.calls[-1].error == "NoSuchKey"
    with pytest.raises(ClientError):
        stack.client("dynamodb").describe_table(TableName="no")
    assert stack.calls[-1].error == "ResourceNotFoundException"


def test_grants_that_nothing_used_are_reported(stack: Stack) -> None:
    run(stack, "a")
    used = {(grant.sid, grant.action) for grant in stack.requests.grants_used}
    assert ("Write", "s3:PutObject") in used
    granted = {(grant.sid, grant.action) for grant in stack.account.policies.granted()}
    assert ("Write", "s3:PutObject") in granted
    assert ("Never", "s3:DeleteObject") in granted - used


def test_a_person_is_not_checked(stack: Stack) -> None:
    stack.client("s3").put_object(Bucket=stack.physical("Bucket"), Key="by/hand", Body=b"1")
    assert stack.calls[-1].principal.arn == "arn:aws:iam::111122223333:user/operator"


def test_a_call_that_fails_on_purpose_is_retried_by_the_client_of_the_handler(stack: Stack) -> None:
    stack.faults.fail("s3", "PutObject", code="SlowDown", status=503)
    execution = run(stack, "a")
    assert execution["status"] == "SUCCEEDED"
    assert [call.error for call in stack.calls if call.operation == "PutObject"] == ["SlowDown", None]
    assert stack.faults.pending() == ()


def test_a_fault_after_the_effect_leaves_the_effect(stack: Stack) -> None:
    stack.faults.fail("dynamodb", "PutItem", code="InternalServerError", after=True)
    table = stack.physical("Table")
    with pytest.raises(ClientError):
        stack.client("dynamodb").put_item(TableName=table, Item={"pk": {"S": "x"}})
    assert "Item" in stack.client("dynamodb").get_item(TableName=table, Key={"pk": {"S": "x"}})


def test_a_delayed_call_takes_time_on_the_clock(stack: Stack) -> None:
    stack.faults.delay("sns", "Publish", seconds=7)
    run(stack, "a")
    (published,) = [call for call in stack.calls if call.operation == "Publish"]
    (put,) = [call for call in stack.calls if call.operation == "PutObject"]
    assert (published.time - put.time).total_seconds() == 7


def test_a_fault_can_be_narrowed_by_parameters(stack: Stack) -> None:
    stack.faults.fail("s3", "PutObject", code="AccessDenied", times=5, when=lambda params: params["Key"].endswith("/b"))
    run(stack, "a", "b")
    errors = {call.params["Key"][-1]: call.error for call in stack.calls if call.operation == "PutObject"}
    assert errors == {"a": None, "b": "AccessDenied"}


def test_a_doubled_delivery_runs_the_function_twice(stack: Stack) -> None:
    stack.faults.duplicate("events", "Deliver")
    stack.bus.publish("fixture", "Change", {"name": "one"})
    stack.run_until_quiet()
    received = [one.event["Records"] for one in stack.results if one.function == "ReceiveFunction"]
    assert sum(map(len, received)) == 2


def test_a_call_that_comes_twice_has_its_body_twice(stack: Stack) -> None:
    stack.faults.duplicate("s3", "PutObject")
    bucket, s3 = stack.physical("Bucket"), stack.client("s3")
    s3.put_object(Bucket=bucket, Key="twice", Body=io.BytesIO(b"whole"))
    assert s3.get_object(Bucket=bucket, Key="twice")["Body"].read() == b"whole"


def test_a_policy_with_a_condition_that_cannot_be_evaluated_is_listed(app: Path, tmp_path: Path) -> None:
    shutil.copytree(app.parent, tmp_path / "app")
    path = tmp_path / "app" / "template.yaml"
    path.write_text(
        path.read_text().replace(
            "Action: sns:Publish\n",
            'Action: sns:Publish\n              Condition: {StringEquals: {"aws:Unheard": "x"}}\n',
        )
    )
    with Stack(path) as stack:
        assert run(stack, "a")["status"] == "FAILED"
        assert stack.requests.unknown_condition_keys == {"aws:Unheard"}


def test_a_second_stack_at_the_same_time_is_refused(stack: Stack, app: Path) -> None:
    with pytest.raises(RuntimeError, match="one stack at a time"):
        Stack(app).open()


def test_moto_gets_the_request_that_was_read_here_unless_reading_used_it_up(stack: Stack) -> None:
    """A form is read once; what is no form comes to moto whole, twice too."""
    stack.client("s3").create_bucket(Bucket="kept")
    stack.faults.duplicate("s3", "PutObject")
    stack.client("s3").put_object(Bucket="kept", Key="a b/ä", Body=b"x" * 100_000)
    assert stack.client("s3").get_object(Bucket="kept", Key="a b/ä")["Body"].read() == b"x" * 100_000
    topic = stack.client("sns").create_topic(Name="one")["TopicArn"]
    stack.faults.duplicate("sns", "SetTopicAttributes")
    stack.client("sns").set_topic_attributes(TopicArn=topic, AttributeName="DisplayName", AttributeValue="a & b = c")
    assert stack.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]["DisplayName"] == "a & b = c"
