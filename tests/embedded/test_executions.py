"""How executions end: stopped, timed out, and with which event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from taskgov_embedded.stepfunctions import execution
from taskgov_embedded.stepfunctions.executions import DETAIL_TYPE, SOURCE

if TYPE_CHECKING:
    from taskgov_embedded.stack import Stack

WAITS = {"Wait": {"Type": "Wait", "Seconds": 3600, "End": True}}
FAILS = {"Fail": {"Type": "Fail", "Error": "Broken", "Cause": "for the test"}}
PASSES = {"Pass": {"Type": "Pass", "Output": {"fine": True}, "End": True}}


def asks(queue_url: str) -> dict[str, Any]:
    arguments = {"QueueUrl": queue_url, "MessageBody": {"token": "{% $states.context.Task.Token %}"}}
    resource = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
    return {"Ask": {"Type": "Task", "Resource": resource, "Arguments": arguments, "End": True}}


def start(stack: Stack, states: dict[str, Any], *, timeout: int | None = None, kind: str = "STANDARD") -> str:
    """Start a machine and let a minute pass; every change of status of an execution goes to a queue."""
    client = stack.client("stepfunctions")
    definition: dict[str, Any] = {"QueryLanguage": "JSONata", "StartAt": next(iter(states)), "States": states}
    if timeout is not None:
        definition["TimeoutSeconds"] = timeout
    role = stack.resolved("Machine").properties["RoleArn"]
    made = client.create_state_machine(name="m", definition=json.dumps(definition), roleArn=role, type=kind)
    events = stack.client("events")
    events.put_rule(Name="ends", EventPattern=json.dumps({"source": [SOURCE]}), State="ENABLED")
    arn: str = client.start_execution(stateMachineArn=made["stateMachineArn"], name="e", input='{"a": 1}')[
        "executionArn"
    ]
    stack.advance(60, schedules=[])
    return arn


def stop(stack: Stack, arn: str) -> None:
    stack.client("stepfunctions").stop_execution(executionArn=arn, error="Stopped", cause="by hand")


def described(stack: Stack, arn: str) -> dict[str, Any]:
    found: dict[str, Any] = stack.client("stepfunctions").describe_execution(executionArn=arn)
    return found


def events(stack: Stack) -> list[dict[str, Any]]:
    found = [moment.detail["event"] for moment in stack.timeline.of("event")]
    return [event for event in found if (event["source"], event["detail-type"]) == (SOURCE, DETAIL_TYPE)]


def test_an_execution_that_is_stopped_is_aborted_at_once_and_its_event_says_so(stack: Stack) -> None:
    arn = start(stack, WAITS)
    before = int(stack.clock.now.timestamp() * 1000)
    stop(stack, arn)
    found = described(stack, arn)
    assert (found["status"], found["error"], found["cause"]) == ("ABORTED", "Stopped", "by hand")
    (event,) = events(stack)
    assert event["resources"] == [arn]
    assert event["detail"] == {
        "executionArn": arn,
        "stateMachineArn": arn.replace(":execution:", ":stateMachine:").removesuffix(":e"),
        "name": "e",
        "status": "ABORTED",
        "startDate": before - 60_000,
        "stopDate": before,
        "redriveCount": 0,
        "redriveDate": None,
        "input": '{"a": 1}',
        "inputDetails": {"included": True},
        "output": None,
        "outputDetails": None,
        "error": "Stopped",
        "cause": "by hand",
    }


def test_an_execution_whose_time_is_let_run_out_ends_as_one_whose_time_ran_out(stack: Stack) -> None:
    arn = start(stack, WAITS)
    stack.executions.time_out(arn)
    found = described(stack, arn)
    assert (found["status"], found["error"]) == ("TIMED_OUT", "States.Timeout")
    assert [event["detail"]["status"] for event in events(stack)] == ["TIMED_OUT"]
    stop(stack, arn)
    assert described(stack, arn)["status"] == "TIMED_OUT"


def test_what_is_stopped_enters_no_further_state_and_ends_once(stack: Stack) -> None:
    states = {"Wait": {"Type": "Wait", "Seconds": 100, "Next": "After"}, "After": {"Type": "Pass", "End": True}}
    arn = start(stack, states)
    stop(stack, arn)
    stop(stack, arn)
    stack.run_until_quiet()
    assert described(stack, arn)["status"] == "ABORTED"
    assert [moment.what for moment in stack.timeline.of("state")] == ["Wait"]
    assert len(events(stack)) == 1


@pytest.mark.parametrize("answer", ["success", "failure", "heartbeat"])
def test_the_token_of_a_stopped_execution_is_refused(stack: Stack, answer: str) -> None:
    arn = start(stack, asks(stack.physical("Approvals")))
    token = token_in(stack, arn)
    client = stack.client("stepfunctions")
    assert described(stack, arn)["status"] == "RUNNING"
    stop(stack, arn)
    assert described(stack, arn)["status"] == "ABORTED"
    more = {"success": {"output": "{}"}, "failure": {"error": "No"}, "heartbeat": {}}[answer]
    with pytest.raises(ClientError, match="TaskTimedOut"):
        getattr(client, f"send_task_{answer}")(taskToken=token, **more)
    with pytest.raises(ClientError, match="InvalidToken"):
        client.send_task_success(taskToken="never given", output="{}")


def token_in(stack: Stack, arn: str) -> str:
    history = stack.client("stepfunctions").get_execution_history(executionArn=arn)["events"]
    scheduled = next(event["taskScheduledEventDetails"] for event in history if event["type"] == "TaskScheduled")
    token: str = json.loads(scheduled["parameters"])["MessageBody"]["token"]
    return token


def test_an_execution_times_out_by_the_time_of_its_machine(stack: Stack) -> None:
    arn = start(stack, WAITS, timeout=30)
    assert described(stack, arn)["status"] == "TIMED_OUT"
    (event,) = events(stack)
    assert event["detail"]["status"] == "TIMED_OUT"
    assert event["detail"]["stopDate"] - event["detail"]["startDate"] == 30_000


@pytest.mark.parametrize(("states", "status"), [(FAILS, "FAILED"), (PASSES, "SUCCEEDED")])
def test_every_end_of_an_execution_has_its_event(stack: Stack, states: dict[str, Any], status: str) -> None:
    start(stack, states)
    (event,) = events(stack)
    detail = event["detail"]
    assert (detail["status"], detail["error"]) == (status, "Broken" if status == "FAILED" else None)
    assert (detail["output"] is None) == (status == "FAILED")


KEY = "arn:aws:kms:us-east-1:111122223333:key/of-executions"
MACHINE = "arn:aws:states:us-east-1:111122223333:stateMachine:m"


def test_a_machine_whose_role_may_not_use_its_key_starts_nothing(stack: Stack) -> None:
    stack.place.kms_keys[MACHINE] = KEY
    with pytest.raises(ClientError) as refused:
        start(stack, PASSES)
    assert refused.value.response["Error"]["Code"] == "KmsAccessDeniedException"
    assert stack.client("stepfunctions").list_executions(stateMachineArn=MACHINE)["executions"] == []


def test_an_event_of_a_machine_with_a_key_has_no_data(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack.account.requests, "allows", lambda *_: True)
    stack.place.kms_keys[MACHINE] = KEY
    start(stack, FAILS)
    (event,) = events(stack)
    detail = event["detail"]
    assert (detail["status"], detail["input"], detail["error"], detail["cause"]) == ("FAILED", None, None, None)


def test_an_event_without_its_data_says_that_it_has_none(stack: Stack) -> None:
    stack.executions.includes_data = False
    start(stack, FAILS)
    (event,) = events(stack)
    assert (event["detail"]["input"], event["detail"]["inputDetails"]) == (None, {"included": False})


def redrive(stack: Stack, arn: str) -> None:
    stack.client("stepfunctions").redrive_execution(executionArn=arn)


def passes_then(states: dict[str, Any]) -> dict[str, Any]:
    """Return a machine that keeps two numbers before it comes to the first of these states."""
    first = next(iter(states))
    kept = {"Type": "Pass", "Assign": {"n": 1}, "Output": {"from": "before"}, "Next": first}
    return {"Before": kept} | states


def test_a_redriven_execution_continues_where_it_was_stopped_with_what_it_had(stack: Stack) -> None:
    times = "{% $states.context.Execution.RedriveCount %}"
    output = {"n": "{% $n %}", "given": "{% $states.input.from %}", "times": times}
    waits = {"Type": "Wait", "Seconds": 3600, "Output": output, "End": True}
    arn = start(stack, passes_then({"Wait": waits}))
    stop(stack, arn)
    stack.advance(60, schedules=[])
    assert described(stack, arn)["redriveStatus"] == "REDRIVABLE"
    redrive(stack, arn)
    found = described(stack, arn)
    assert (found["status"], found["redriveCount"], "stopDate" in found) == ("RUNNING", 1, False)
    assert found["redriveDate"] == stack.clock.now
    stack.advance(3600, schedules=[])
    found = described(stack, arn)
    assert found["status"] == "SUCCEEDED"
    assert json.loads(found["output"]) == {"n": 1, "given": "before", "times": 1}
    assert (found["redriveStatus"], found["redriveStatusReason"]) == (
        "NOT_REDRIVABLE",
        "Execution is SUCCEEDED and cannot be redriven",
    )
    assert [moment.what for moment in stack.timeline.of("state")] == ["Before", "Wait", "Wait"]
    history = stack.client("stepfunctions").get_execution_history(executionArn=arn)["events"]
    kinds = [event["type"] for event in history]
    assert [kind for kind in kinds if kind.startswith("Execution")] == [
        "ExecutionStarted",
        "ExecutionAborted",
        "ExecutionRedriven",
        "ExecutionSucceeded",
    ]
    assert [event["id"] for event in history] == list(range(1, len(history) + 1))
    aborted, succeeded = events(stack)
    assert (aborted["detail"]["redriveCount"], succeeded["detail"]["redriveCount"]) == (0, 1)
    assert aborted["detail"]["redriveDate"] is None
    assert succeeded["detail"]["redriveDate"] is not None


def test_a_state_that_failed_is_tried_anew_as_often_as_at_first(stack: Stack) -> None:
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:sqs:sendMessage",
        "Arguments": {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/111122223333/none", "MessageBody": "x"},
        "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 2}],
        "End": True,
    }
    arn = start(stack, passes_then({"Ask": task}))
    assert described(stack, arn)["status"] == "FAILED"
    redrive(stack, arn)
    stack.run_until_quiet()
    found = described(stack, arn)
    assert (found["status"], found["redriveCount"]) == ("FAILED", 1)
    history = stack.client("stepfunctions").get_execution_history(executionArn=arn)["events"]
    assert sum(event["type"] == "TaskFailed" for event in history) == 6
    assert [event["detail"]["status"] for event in events(stack)] == ["FAILED", "FAILED"]


@pytest.mark.parametrize("states", [WAITS, PASSES], ids=["running", "succeeded"])
def test_what_runs_or_has_succeeded_cannot_be_redriven(stack: Stack, states: dict[str, Any]) -> None:
    arn = start(stack, states)
    with pytest.raises(ClientError, match="ExecutionNotRedrivable"):
        redrive(stack, arn)
    with pytest.raises(ClientError, match="ExecutionDoesNotExist"):
        redrive(stack, arn + "x")


def test_after_fourteen_days_an_execution_cannot_be_redriven(stack: Stack) -> None:
    arn = start(stack, FAILS)
    stack.advance(14 * 86400, schedules=[])
    with pytest.raises(ClientError, match="redrivable period"):
        redrive(stack, arn)


def test_a_task_that_answers_after_its_execution_was_redriven_does_not_end_it(stack: Stack) -> None:
    arn = start(stack, asks(stack.physical("Approvals")))
    first = token_in(stack, arn)
    stop(stack, arn)
    redrive(stack, arn)
    stack.advance(1, schedules=[])
    assert described(stack, arn)["status"] == "RUNNING"
    client = stack.client("stepfunctions")
    with pytest.raises(ClientError, match=r"TaskTimedOut|InvalidToken"):
        client.send_task_success(taskToken=first, output="{}")
    history = client.get_execution_history(executionArn=arn)["events"]
    tokens = [
        json.loads(event["taskScheduledEventDetails"]["parameters"])["MessageBody"]["token"]
        for event in history
        if event["type"] == "TaskScheduled"
    ]
    client.send_task_success(taskToken=tokens[1], output='{"fine": true}')
    stack.run_until_quiet()
    assert described(stack, arn)["status"] == "SUCCEEDED"


def test_a_name_that_an_execution_cannot_have_is_refused(stack: Stack) -> None:
    for name in ("a b", "a:b", "a/b", "a#b", "a?"):
        with pytest.raises(ClientError, match="InvalidName"):
            stack.start_execution("Machine", name=name)


def test_an_execution_ends_when_its_history_is_full_whatever_it_catches(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "MOST_EVENTS", 21)
    branch = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "Next": "A"}}}
    caught = [{"ErrorEquals": ["States.ALL"], "Next": "End"}]
    states = {
        "Round": {"Type": "Parallel", "Branches": [branch], "Catch": caught, "Next": "End"},
        "End": {"Type": "Succeed"},
    }
    arn = start(stack, states)
    assert (described(stack, arn)["status"], described(stack, arn)["error"]) == ("FAILED", "States.Runtime")


class TestExpress:
    """Nobody is told of an execution afterwards; its time is five minutes, and a name may come again."""

    def test_it_ends_after_five_minutes_without_an_event_and_is_counted(self, stack: Stack) -> None:
        arn = start(stack, WAITS, kind="EXPRESS")
        stack.advance(300, schedules=[])
        told = [moment for moment in stack.timeline.of("execution") if moment.detail["arn"] == arn]
        assert [moment.what for moment in told] == ["m started", "m TIMED_OUT"]
        assert (told[1].time - told[0].time).total_seconds() == 300
        assert events(stack) == []
        metrics = stack.client("cloudwatch").list_metrics(Namespace="AWS/States")["Metrics"]
        assert {metric["MetricName"] for metric in metrics} == {"ExecutionsStarted", "ExecutionsTimedOut"}

    def test_no_call_describes_or_lists_it(self, stack: Stack) -> None:
        arn = start(stack, PASSES, kind="EXPRESS")
        machine = arn.rsplit(":", 2)[0].replace(":express:", ":stateMachine:")
        client = stack.client("stepfunctions")
        with pytest.raises(client.exceptions.InvalidArn):
            client.describe_execution(executionArn=arn)
        with pytest.raises(client.exceptions.StateMachineTypeNotSupported):
            client.list_executions(stateMachineArn=machine)

    def test_a_name_that_comes_again_begins_another_execution(self, stack: Stack) -> None:
        arn = start(stack, PASSES, kind="EXPRESS")
        machine = arn.rsplit(":", 2)[0].replace(":express:", ":stateMachine:")
        again = stack.client("stepfunctions").start_execution(stateMachineArn=machine, name="e", input="{}")
        assert again["executionArn"] != arn

    def test_it_waits_for_no_task_token(self, stack: Stack) -> None:
        client = stack.client("stepfunctions")
        with pytest.raises(client.exceptions.InvalidDefinition):
            start(stack, asks("https://queue"), kind="EXPRESS")
