"""The whole chain of the small application, from an event to the table and the bucket."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.stack import Stack

if TYPE_CHECKING:
    from pathlib import Path


def change(stack: Stack, name: str, *parts: str) -> None:
    stack.bus.publish("fixture", "Change", {"name": name, "parts": list(parts)})


def executions(stack: Stack) -> list[dict[str, Any]]:
    client = stack.client("stepfunctions")
    listed = client.list_executions(stateMachineArn=stack.physical("Machine"))["executions"]
    return [client.describe_execution(executionArn=one["executionArn"]) for one in listed]


def only_execution(stack: Stack) -> dict[str, Any]:
    (execution,) = executions(stack)
    return execution


NOTHING_RECURRING: list[str] = []


def approval(stack: Stack) -> dict[str, Any]:
    message = stack.client("sqs").receive_message(QueueUrl=stack.physical("Approvals"))["Messages"][0]
    body: dict[str, Any] = json.loads(message["Body"])
    return body


def test_an_event_runs_to_the_end_of_the_chain(stack: Stack) -> None:
    change(stack, "one", "a", "b")
    stack.run_until_quiet()
    execution = only_execution(stack)
    assert execution["status"] == "SUCCEEDED"
    output = json.loads(execution["output"])
    assert [one["part"] for one in output["results"]] == ["a", "b"]
    keys = [one["Key"] for one in stack.client("s3").list_objects_v2(Bucket=stack.physical("Bucket"))["Contents"]]
    assert keys == ["results/one/a", "results/one/b"]


def test_the_queue_delay_and_the_wait_state_pass_on_the_virtual_clock(stack: Stack) -> None:
    start = stack.clock.now
    change(stack, "one")
    assert stack.run_until_quiet() == 35
    execution = only_execution(stack)
    assert execution["startDate"] - start == timedelta(seconds=5)
    assert execution["stopDate"] - start == timedelta(seconds=35)


def test_an_event_that_no_pattern_wants_does_nothing(stack: Stack) -> None:
    stack.bus.publish("fixture", "Something else", {"name": "one"})
    assert stack.run_until_quiet() == 0
    assert executions(stack) == []


def test_a_condition_that_fails_is_caught_by_its_name(stack: Stack) -> None:
    change(stack, "one")
    stack.run_until_quiet()
    change(stack, "one")
    stack.run_until_quiet()
    outputs = [json.loads(one["output"]) for one in executions(stack)]
    assert {"claimed": False} in outputs
    assert all(one["status"] == "SUCCEEDED" for one in executions(stack))


def test_a_retry_waits_its_back_off_on_the_virtual_clock(stack: Stack) -> None:
    change(stack, "one", "busy")
    assert stack.run_until_quiet() == 5 + 30 + 10 + 20
    assert only_execution(stack)["status"] == "SUCCEEDED"


def test_an_error_of_a_handler_is_caught_by_the_name_of_its_class(stack: Stack) -> None:
    change(stack, "one", "wrong")
    stack.run_until_quiet()
    execution = only_execution(stack)
    assert (execution["status"], execution["error"], execution["cause"]) == ("FAILED", "Rejected", "ValueError")


def test_iterations_that_sleep_run_side_by_side_and_in_the_same_order_each_time(stack: Stack) -> None:
    stack.client("stepfunctions").start_execution(
        stateMachineArn=stack.physical("Machine"), input=json.dumps({"name": "x", "parts": ["slow", "a"]})
    )
    stack.run_until_quiet()
    assert [one.event["part"] for one in stack.results if one.function == "WorkFunction"] == ["a", "slow"]
    assert only_execution(stack)["stopDate"] - stack.clock.now == timedelta(0)
    assert only_execution(stack)["stopDate"] - only_execution(stack)["startDate"] == timedelta(seconds=50)


def test_an_approval_lets_the_execution_continue(stack: Stack) -> None:
    change(stack, "one", "a", "b", "c")
    stack.run_until_quiet()
    assert only_execution(stack)["status"] == "RUNNING"
    stack.client("stepfunctions").send_task_success(taskToken=approval(stack)["token"], output="{}")
    stack.run_until_quiet()
    assert only_execution(stack)["status"] == "SUCCEEDED"


def test_a_refusal_fails_the_execution(stack: Stack) -> None:
    change(stack, "one", "a", "b", "c")
    stack.run_until_quiet()
    stack.client("stepfunctions").send_task_failure(taskToken=approval(stack)["token"], error="Refused", cause="no")
    stack.run_until_quiet()
    assert only_execution(stack)["error"] == "Expired"


def test_an_approval_that_nobody_gives_expires_on_the_virtual_clock(stack: Stack) -> None:
    change(stack, "one", "a", "b", "c")
    stack.run_until_quiet()
    stack.advance(3599, NOTHING_RECURRING)
    assert only_execution(stack)["status"] == "RUNNING"
    stack.advance(1, NOTHING_RECURRING)
    assert only_execution(stack)["error"] == "Expired"


def test_an_answer_after_the_expiry_is_refused(stack: Stack) -> None:
    change(stack, "one", "a", "b", "c")
    stack.run_until_quiet()
    token = approval(stack)["token"]
    stack.run_until_quiet(max_virtual_seconds=4000)
    client = stack.client("stepfunctions")
    with pytest.raises(client.exceptions.ClientError):
        client.send_task_success(taskToken=token, output="{}")


def test_a_bad_message_fails_alone_and_ends_in_the_dead_letter_queue(stack: Stack) -> None:
    change(stack, "good")
    stack.bus.publish("fixture", "Change", {"nameless": True})
    stack.run_until_quiet()
    assert only_execution(stack)["status"] == "SUCCEEDED"
    message = stack.client("sqs").receive_message(QueueUrl=stack.physical("DeadLetters"))["Messages"][0]
    assert json.loads(message["Body"])["detail"] == {"nameless": True}
    tries = [one for one in stack.results if one.function == "ReceiveFunction"]
    assert [len(one.event["Records"]) for one in tries] == [2, 1]


def test_a_document_in_the_bucket_comes_through_the_input_transformer(stack: Stack) -> None:
    stack.client("s3").put_object(Bucket=stack.physical("Bucket"), Key="policies/ml.yaml", Body=b"a: 1")
    stack.run_until_quiet()
    (received,) = [one for one in stack.results if one.function == "ReceiveFunction"]
    body = json.loads(received.event["Records"][0]["body"])
    assert body == {"detail": {"name": "policies/ml.yaml", "key": "policies/ml.yaml", "at": "2026-11-20T09:00:00Z"}}


def test_the_same_input_gives_the_same_timeline(app: Path) -> None:
    def story() -> str:
        with Stack(app) as opened:
            change(opened, "one", "a", "slow")
            change(opened, "two", "busy", "b", "wrong", "c")
            opened.run_until_quiet(max_virtual_seconds=5000)
            return str(opened.timeline)

    assert story() == story()


def test_recurring_schedules_fire_only_while_time_is_advanced(stack: Stack) -> None:
    stack.run_until_quiet(max_virtual_seconds=600)
    assert stack.timeline.of("delivery") == []
    stack.advance(150)
    ticks = [one for one in stack.timeline.of("delivery") if "EveryMinute" in one.what]
    assert [one.time.minute for one in ticks] == [1, 2]


def test_a_cron_in_a_time_zone_fires_with_its_role(stack: Stack) -> None:
    stack.advance(17 * 3600, ["AuditSchedule"])
    assert stack.logs("AuditFunction") == ["audit at 2026-11-21T01:00:00Z"]
    assert any(call.principal.name.startswith("taskgov-ScheduleRole") for call in stack.calls)
