"""Rules, queues, schedules and buckets: what is delivered, to whom, with whose permission, and what is lost to whom."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def edited(app: Path, tmp_path: Path) -> Iterator[Callable[..., Stack]]:
    """Open a stack whose template has these texts replaced, and these resources added."""
    opened: list[Stack] = []

    def open_edited(
        *replacements: tuple[str, str], resources: str = "", parameters: dict[str, str] | None = None
    ) -> Stack:
        shutil.copytree(app.parent, tmp_path / "app")
        path = tmp_path / "app" / "template.yaml"
        text = path.read_text().replace("\nOutputs:\n", f"\n{resources}\nOutputs:\n")
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
        opened.append(Stack(path, parameters).open())
        return opened[0]

    yield open_edited
    for stack in opened:
        stack.close()


def received(stack: Stack) -> list[list[dict[str, Any]]]:
    return [one.event["Records"] for one in stack.results if one.function == "ReceiveFunction"]


def messages(stack: Stack, queue: str) -> list[dict[str, Any]]:
    answer = stack.client("sqs").receive_message(
        QueueUrl=stack.physical(queue), MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )
    found: list[dict[str, Any]] = answer.get("Messages", [])
    return found


def test_an_event_arrives_with_its_whole_envelope(stack: Stack) -> None:
    event_id = stack.bus.publish("fixture", "Change", {"name": "x"}, ["arn:one"])
    stack.run_until_quiet()
    body = json.loads(received(stack)[0][0]["body"])
    assert body == {
        "version": "0",
        "id": event_id,
        "detail-type": "Change",
        "source": "fixture",
        "account": "111122223333",
        "time": "2026-11-20T09:00:00Z",
        "region": "us-east-1",
        "resources": ["arn:one"],
        "detail": {"name": "x"},
    }


def test_put_events_refuses_what_it_must(stack: Stack) -> None:
    entries = [
        {"Source": "aws.sagemaker", "DetailType": "Change", "Detail": "{}"},
        {"Source": "fixture", "DetailType": "Change", "Detail": "{"},
        {"Source": "fixture", "DetailType": "Change", "Detail": '{"name": "x"}'},
    ]
    answer = stack.client("events").put_events(Entries=entries)
    assert answer["FailedEntryCount"] == 2
    assert [one.get("ErrorCode") for one in answer["Entries"]] == ["NotAuthorizedForSource", "MalformedDetail", None]
    stack.run_until_quiet()
    assert len(received(stack)) == 1


def test_a_queue_that_lets_the_rule_not_in_gets_nothing(edited: Callable[..., Stack]) -> None:
    stack = edited(("Principal: {Service: events.amazonaws.com}", "Principal: {Service: s3.amazonaws.com}"))
    stack.bus.publish("fixture", "Change", {"name": "x"})
    stack.run_until_quiet()
    assert received(stack) == []
    assert any("NO_PERMISSIONS" in one.what for one in stack.timeline.of("delivery"))
    assert any(
        "is lost" in one.what for one in stack.timeline.of("delivery")
    )  # the dead-letter queue lets it not in either


def test_what_cannot_be_delivered_goes_to_the_dead_letter_queue_of_the_target(edited: Callable[..., Stack]) -> None:
    stack = edited(("Queues: [!Ref Requests, !Ref DeadLetters]", "Queues: [!Ref DeadLetters]"))
    stack.bus.publish("fixture", "Change", {"name": "x"})
    stack.run_until_quiet()
    (message,) = messages(stack, "DeadLetters")
    assert json.loads(message["Body"])["detail"] == {"name": "x"}
    assert message["MessageAttributes"]["ERROR_CODE"]["StringValue"] == "NO_PERMISSIONS"


TARGETS = """
  DirectRule:
    Type: AWS::Events::Rule
    Properties:
      EventPattern: {source: [direct]}
      Targets:
        - {Id: machine, Arn: !Ref Machine, RoleArn: !GetAtt DirectRole.Arn, InputPath: $.detail}
        - {Id: function, Arn: !GetAtt AuditFunction.Arn, InputPath: $.detail}
        - {Id: bus, Arn: !GetAtt OtherBus.Arn, RoleArn: !GetAtt DirectRole.Arn}
  AuditPermission:
    Type: AWS::Lambda::Permission
    Properties:
      Action: lambda:InvokeFunction
      FunctionName: !Ref AuditFunction
      Principal: events.amazonaws.com
      SourceArn: !GetAtt DirectRule.Arn
  OtherBus:
    Type: AWS::Events::EventBus
    Properties: {Name: other}
  OtherRule:
    Type: AWS::Events::Rule
    Properties:
      EventBusName: !Ref OtherBus
      EventPattern: {source: [direct]}
      Targets: [{Id: queue, Arn: !GetAtt Approvals.Arn}]
  ApprovalsPolicy:
    Type: AWS::SQS::QueuePolicy
    Properties:
      Queues: [!Ref Approvals]
      PolicyDocument:
        Statement: {Effect: Allow, Principal: {Service: events.amazonaws.com}, Action: "sqs:*", Resource: "*"}
  DirectRole:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Statement: [{Effect: Allow, Principal: {Service: events.amazonaws.com}, Action: "sts:AssumeRole"}]
      Policies:
        - PolicyName: Targets
          PolicyDocument:
            Statement:
              - {Effect: Allow, Action: "states:StartExecution", Resource: !Ref Machine}
              - {Effect: Allow, Action: "events:PutEvents", Resource: !GetAtt OtherBus.Arn}
"""


def test_a_rule_delivers_to_machine_function_and_other_bus(edited: Callable[..., Stack]) -> None:
    stack = edited(resources=TARGETS)
    event_id = stack.bus.publish("direct", "Any", {"name": "x", "parts": [], "at": "noon"})
    stack.run_until_quiet()
    listed = stack.client("stepfunctions").list_executions(stateMachineArn=stack.physical("Machine"))["executions"]
    assert [(one["name"], one["status"]) for one in listed] == [(event_id, "SUCCEEDED")]
    assert stack.logs("AuditFunction") == ["audit at noon"]
    assert [json.loads(one["Body"])["source"] for one in messages(stack, "Approvals")] == ["direct"]


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ('Action: "states:StartExecution"', 'Action: "states:Nothing"', "DirectRule"),
        ("Principal: events.amazonaws.com\n", "Principal: s3.amazonaws.com\n", "DirectRule"),
        ('Action: "events:PutEvents"', 'Action: "events:Nothing"', "DirectRule"),
    ],
    ids=["the role may not start the machine", "the function has no permission", "the role may not put events"],
)
def test_a_target_without_permission_is_not_reached(
    edited: Callable[..., Stack], old: str, new: str, missing: str
) -> None:
    stack = edited(resources=TARGETS.replace(old, new))
    stack.bus.publish("direct", "Any", {"name": "x", "parts": [], "at": "noon"})
    stack.run_until_quiet()
    failed = [one for one in stack.timeline.of("delivery") if "NO_PERMISSIONS" in one.what]
    assert len(failed) == 1
    assert missing in failed[0].what


def test_messages_wait_for_their_batch(edited: Callable[..., Stack]) -> None:
    stack = edited(parameters={"BatchSeconds": "20"})
    for number in range(3):
        stack.bus.publish("fixture", "Change", {"name": f"n{number}"})
        stack.advance(4, [])
    start = stack.clock.now
    stack.run_until_quiet()
    batches = received(stack)
    assert [len(one) for one in batches] == [3]
    first = next(one for one in stack.timeline.of("delivery") if "ReceiveFunction" in one.what)
    assert first.time - start == timedelta(seconds=13)  # 5 of delay and 20 of window, 12 gone by


def test_a_full_batch_does_not_wait(edited: Callable[..., Stack]) -> None:
    stack = edited(("DelaySeconds: 5", "DelaySeconds: 0"), parameters={"BatchSeconds": "200"})
    for number in range(6):
        stack.bus.publish("fixture", "Change", {"name": f"n{number}"})
    stack.run_until_quiet(max_virtual_seconds=1)
    assert [len(one) for one in received(stack)] == [5]
    stack.run_until_quiet()
    assert [len(one) for one in received(stack)] == [5, 1]


def test_a_failing_function_gets_a_message_as_often_as_the_queue_says(edited: Callable[..., Stack]) -> None:
    stack = edited(
        (
            "Handler: app.handler\n      Environment:\n        Variables:\n          STATE_MACHINE_ARN",
            "Handler: rules.name_of\n      Environment:\n        Variables:\n          STATE_MACHINE_ARN",
        )
    )
    stack.bus.publish("fixture", "Change", {"name": "x"})
    start = stack.clock.now
    stack.run_until_quiet()
    tries = [one for one in stack.results if one.function == "ReceiveFunction"]
    assert [one.is_error for one in tries] == [True, True]
    assert stack.clock.now - start == timedelta(seconds=5 + 60 + 60)
    assert len(messages(stack, "DeadLetters")) == 1


def test_filters_of_a_mapping_drop_what_they_do_not_want(edited: Callable[..., Stack]) -> None:
    wanted = """            FilterCriteria: {Filters: [{Pattern: '{"body": {"detail": {"name": ["x"]}}}'}]}\n"""
    stack = edited(("            BatchSize: 5\n", "            BatchSize: 5\n" + wanted))
    for name in "xy":
        stack.bus.publish("fixture", "Change", {"name": name})
    stack.run_until_quiet()
    assert [json.loads(record["body"])["detail"]["name"] for batch in received(stack) for record in batch] == ["x"]
    assert messages(stack, "Requests") == []


def test_a_schedule_made_at_run_time_fires_once_and_goes(stack: Stack) -> None:
    client = stack.client("scheduler")
    client.create_schedule(
        Name="later",
        ScheduleExpression="at(2026-11-20T09:05:00)",
        FlexibleTimeWindow={"Mode": "OFF"},
        ActionAfterCompletion="DELETE",
        Target={
            "Arn": f"arn:aws:lambda:us-east-1:111122223333:function:{stack.physical('AuditFunction')}",
            "RoleArn": f"arn:aws:iam::111122223333:role/{stack.physical('ScheduleRole')}",
            "Input": '{"at": "<aws.scheduler.scheduled-time>"}',
        },
    )
    stack.run_until_quiet()
    assert stack.logs("AuditFunction") == ["audit at 2026-11-20T09:05:00Z"]
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.get_schedule(Name="later")


def test_a_schedule_that_is_set_to_another_time_without_a_state_fires_then(stack: Stack) -> None:
    """What UpdateSchedule is not given has its default afterwards, and the default is ENABLED."""
    client = stack.client("scheduler")
    arn = f"arn:aws:lambda:us-east-1:111122223333:function:{stack.physical('AuditFunction')}"
    role = f"arn:aws:iam::111122223333:role/{stack.physical('ScheduleRole')}"
    target = {"Arn": arn, "RoleArn": role, "Input": '{"at": "<aws.scheduler.scheduled-time>"}'}
    given = {"Name": "later", "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": target}
    client.create_schedule(ScheduleExpression="at(2026-11-20T09:05:00)", **given)
    client.update_schedule(ScheduleExpression="at(2026-11-20T09:07:00)", **given)
    stack.run_until_quiet()
    assert stack.logs("AuditFunction") == ["audit at 2026-11-20T09:07:00Z"]


def test_a_schedule_that_is_disabled_or_deleted_does_not_fire(stack: Stack) -> None:
    client = stack.client("scheduler")
    name = stack.physical("EveryMinute")
    described = client.get_schedule(Name=name)
    kept = {key: described[key] for key in ("ScheduleExpression", "FlexibleTimeWindow", "Target")}
    client.update_schedule(Name=name, State="DISABLED", **kept)
    stack.advance(180)
    assert received(stack) == []
    client.update_schedule(Name=name, State="ENABLED", **kept)
    stack.advance(60, ["EveryMinute"])
    client.delete_schedule(Name=name)
    stack.advance(180)
    assert len([one for one in stack.timeline.of("delivery") if "schedule" in one.what]) == 1


def test_a_schedule_fires_by_hand_with_its_role(stack: Stack) -> None:
    stack.fire("AuditSchedule")
    stack.run_until_quiet()
    assert stack.logs("AuditFunction") == ["audit at 2026-11-20T09:00:00Z"]


def test_a_schedule_without_permission_does_not_reach_its_target(edited: Callable[..., Stack]) -> None:
    stack = edited(
        (
            "Action: lambda:InvokeFunction\n                Resource: !If",
            "Action: lambda:Nothing\n                Resource: !If",
        )
    )
    stack.fire("AuditSchedule")
    stack.run_until_quiet()
    assert stack.logs("AuditFunction") == []
    assert any("AccessDenied" in one.what for one in stack.timeline.of("delivery"))


def test_an_older_rule_with_a_schedule_fires_too(edited: Callable[..., Stack]) -> None:
    rule = """
  OldSchedule:
    Type: AWS::Events::Rule
    Properties:
      ScheduleExpression: rate(10 minutes)
      Targets: [{Id: queue, Arn: !GetAtt Requests.Arn, Input: '{"detail": {"name": "old"}}'}]
"""
    stack = edited(resources=rule)
    stack.advance(1300, [])
    assert received(stack) == []
    stack.advance(600, ["OldSchedule"])
    assert len(received(stack)) == 1


def test_a_deleted_object_is_delivered(edited: Callable[..., Stack]) -> None:
    stack = edited(("detail-type: [Object Created]", "detail-type: [Object Created, Object Deleted]"))
    s3, bucket = stack.client("s3"), stack.physical("Bucket")
    s3.put_object(Bucket=bucket, Key="policies/a", Body=b"1")
    s3.delete_object(Bucket=bucket, Key="policies/a")
    events = [one.detail["event"] for one in stack.timeline.of("event")]
    assert [one["detail-type"] for one in events] == ["Object Created", "Object Deleted"]
    assert events[0]["detail"]["object"]["version-id"]
    assert events[1]["detail"]["deletion-type"] == "Delete Marker Created"


def test_a_bucket_without_eventbridge_sends_nothing(edited: Callable[..., Stack]) -> None:
    stack = edited(
        ("      NotificationConfiguration:\n        EventBridgeConfiguration: {EventBridgeEnabled: true}\n", "")
    )
    stack.client("s3").put_object(Bucket=stack.physical("Bucket"), Key="policies/a", Body=b"1")
    assert stack.timeline.of("event") == []


def test_a_topic_passes_on_to_its_queue(edited: Callable[..., Stack]) -> None:
    subscription = """
  Subscription:
    Type: AWS::SNS::Subscription
    Properties: {TopicArn: !Ref Topic, Protocol: sqs, Endpoint: !GetAtt Approvals.Arn, RawMessageDelivery: true}
"""
    stack = edited(resources=subscription)
    stack.client("sns").publish(TopicArn=stack.physical("Topic"), Message="hello")
    assert [one["Body"] for one in messages(stack, "Approvals")] == ["hello"]


def test_an_asynchronous_event_that_keeps_failing_goes_to_its_destination(edited: Callable[..., Stack]) -> None:
    settings = """CodeUri: functions/audit/
      EventInvokeConfig:
        MaximumRetryAttempts: 1
        DestinationConfig:
          OnFailure: {Type: SQS, Destination: !GetAtt Approvals.Arn}
"""
    stack = edited(("CodeUri: functions/audit/\n", settings))
    stack.client("lambda").invoke(
        FunctionName=stack.physical("AuditFunction"), InvocationType="Event", Payload=b'{"no": "at"}'
    )
    stack.run_until_quiet()
    assert len(stack.results) == 2
    (message,) = messages(stack, "Approvals")
    record = json.loads(message["Body"])
    assert record["requestContext"]["condition"] == "RetriesExhausted"
    assert record["requestPayload"] == {"no": "at"}
    assert record["responsePayload"]["errorType"] == "KeyError"
