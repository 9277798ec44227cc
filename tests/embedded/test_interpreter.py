"""State machines on the stack's clock, as Step Functions runs them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from taskgov_embedded.sagemaker.cluster_port import StaticCluster
from taskgov_embedded.stack import Stack

if TYPE_CHECKING:
    from pathlib import Path


def role(stack: Stack) -> str:
    arn: str = stack.resolved("Machine").properties["RoleArn"]
    return arn


def run(stack: Stack, states: dict[str, Any], data: object = None, *, timeout: int | None = None) -> dict[str, Any]:
    """Run a JSONata machine that starts at the first state, to its end."""
    client = stack.client("stepfunctions")
    definition: dict[str, Any] = {"QueryLanguage": "JSONata", "StartAt": next(iter(states)), "States": states}
    if timeout is not None:
        definition["TimeoutSeconds"] = timeout
    name = f"m{len(client.list_state_machines()['stateMachines'])}"
    made = client.create_state_machine(name=name, definition=json.dumps(definition), roleArn=role(stack))
    arn = client.start_execution(stateMachineArn=made["stateMachineArn"], input=json.dumps(data or {}))["executionArn"]
    stack.run_until_quiet()
    described: dict[str, Any] = client.describe_execution(executionArn=arn)
    return described


def output(stack: Stack, states: dict[str, Any], data: object = None) -> Any:
    described = run(stack, states, data)
    assert described["status"] == "SUCCEEDED", described
    return json.loads(described["output"])


def test_an_assigned_string_keeps_its_quotes_and_line_ends(stack: Stack) -> None:
    states = {
        "A": {"Type": "Pass", "Assign": {"x": "{% $states.input.x %}", "y": 'a "b" \\ c'}, "Next": "B"},
        "B": {"Type": "Pass", "Output": ["{% $x %}", "{% $y %}"], "End": True},
    }
    assert output(stack, states, {"x": 'one "two"\n\\three'}) == ['one "two"\n\\three', 'a "b" \\ c']


def test_what_is_undefined_fails_the_state(stack: Stack) -> None:
    described = run(stack, {"A": {"Type": "Pass", "Output": "{% $states.input.no %}", "End": True}})
    assert (described["status"], described["error"]) == ("FAILED", "States.QueryEvaluationError")


def test_a_choice_without_a_match_has_its_own_error(stack: Stack) -> None:
    states = {
        "A": {"Type": "Choice", "Choices": [{"Condition": "{% false %}", "Next": "B"}]},
        "B": {"Type": "Succeed"},
    }
    assert run(stack, states)["error"] == "States.NoChoiceMatched"


def test_a_rule_of_a_choice_can_assign(stack: Stack) -> None:
    rule = {"Condition": "{% $n < 3 %}", "Assign": {"n": "{% $n + 1 %}"}, "Next": "Again"}
    states = {
        "Start": {"Type": "Pass", "Assign": {"n": 0}, "Next": "Again"},
        "Again": {"Type": "Choice", "Choices": [rule], "Default": "End"},
        "End": {"Type": "Pass", "Output": "{% $n %}", "End": True},
    }
    assert output(stack, states) == 3


def test_executions_without_a_name_are_distinguished(stack: Stack) -> None:
    arns = {stack.start_execution("Machine", {"name": name, "parts": []}) for name in "abc"}
    assert len(arns) == 3
    assert not any(arn.endswith("None") for arn in arns)
    stack.run_until_quiet()


def test_times_in_an_sdk_answer_are_text(stack: Stack) -> None:
    stack.sagemaker.register_cluster("ml", StaticCluster([], stack.clock.now))
    states = {
        "A": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sagemaker:listClusters",
            "Arguments": {},
            "Output": "{% $states.result.ClusterSummaries[0].CreationTime %}",
            "End": True,
        }
    }
    assert output(stack, states) == "2026-11-20T09:00:00.000Z"


def test_an_error_of_an_sdk_task_names_its_service(stack: Stack) -> None:
    states = {
        "A": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sagemaker:describeCluster",
            "Arguments": {"ClusterName": "no"},
            "End": True,
        }
    }
    assert run(stack, states)["error"] == "SageMaker.SageMakerException"  # denied: the role may list only


def test_a_machine_times_out_on_the_virtual_clock(stack: Stack) -> None:
    described = run(stack, {"A": {"Type": "Wait", "Seconds": 100, "End": True}}, timeout=60)
    assert described["status"] == "TIMED_OUT"
    assert (described["stopDate"] - described["startDate"]).total_seconds() == 60


def test_a_wait_until_a_timestamp_ends_there(stack: Stack) -> None:
    states = {"A": {"Type": "Wait", "Timestamp": "2026-11-20T09:10:00Z", "End": True}}
    described = run(stack, states)
    assert described["status"] == "SUCCEEDED"
    assert described["stopDate"].timestamp() == 1795165800


def test_a_task_that_takes_too_long_times_out(stack: Stack) -> None:
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": stack.physical("WorkFunction"), "Payload": {"name": "x", "part": "slow"}},
        "TimeoutSeconds": 5,
        "Catch": [{"ErrorEquals": ["States.Timeout"], "Next": "Late"}],
        "End": True,
    }
    described = run(stack, {"A": task, "Late": {"Type": "Succeed", "Output": "late"}})
    assert json.loads(described["output"]) == "late"
    assert (described["stopDate"] - described["startDate"]).total_seconds() == 5


def waiting_task(stack: Stack, **more: object) -> dict[str, Any]:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Arguments": {"QueueUrl": stack.physical("Approvals"), "MessageBody": "{% $states.context.Task.Token %}"},
        "End": True,
        **more,
    }


def token(stack: Stack) -> str:
    (message,) = stack.client("sqs").receive_message(QueueUrl=stack.physical("Approvals"))["Messages"]
    body: str = message["Body"]
    return body


def test_an_sdk_task_waits_for_its_token_too(stack: Stack) -> None:
    table = stack.physical("Table")
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:dynamodb:updateItem.waitForTaskToken",
        "Arguments": {
            "TableName": table,
            "Key": {"pk": {"S": "approval"}},
            "UpdateExpression": "SET held = :t",
            "ExpressionAttributeValues": {":t": {"S": "{% $states.context.Task.Token %}"}},
        },
        "Output": "{% $states.result.approved %}",
        "End": True,
    }
    described = run(stack, {"A": task})
    assert described["status"] == "RUNNING"
    item = stack.client("dynamodb").get_item(TableName=table, Key={"pk": {"S": "approval"}})["Item"]
    client = stack.client("stepfunctions")
    client.send_task_success(taskToken=item["held"]["S"], output='{"approved": true}')
    stack.run_until_quiet()
    assert client.describe_execution(executionArn=described["executionArn"])["output"] == "true"


def test_the_timeline_shows_the_states_of_each_execution(stack: Stack) -> None:
    states = {"A": {"Type": "Wait", "Seconds": 1, "Next": "B"}, "B": {"Type": "Succeed"}}
    first, second = (run(stack, states)["executionArn"] for _ in range(2))
    for arn in (first, second):
        told = [one.what for one in stack.timeline.of("state") if one.detail["execution"] == arn]
        assert told == ["A", "B"]


def test_a_heartbeat_keeps_a_task_alive_and_its_lack_ends_it(stack: Stack) -> None:
    states = {"A": waiting_task(stack, HeartbeatSeconds=60, TimeoutSeconds=3600)}
    client = stack.client("stepfunctions")
    definition = {"QueryLanguage": "JSONata", "StartAt": "A", "States": states}
    made = client.create_state_machine(name="beating", definition=json.dumps(definition), roleArn=role(stack))
    arn = client.start_execution(stateMachineArn=made["stateMachineArn"])["executionArn"]
    stack.run_until_quiet(max_virtual_seconds=30)
    task = token(stack)
    for _ in range(3):
        stack.advance(50, [])
        client.send_task_heartbeat(taskToken=task)
        stack.run_until_quiet(max_virtual_seconds=0)
    assert client.describe_execution(executionArn=arn)["status"] == "RUNNING"
    stack.advance(60, [])
    described = client.describe_execution(executionArn=arn)
    assert described["error"] == "States.Timeout"


def test_a_map_runs_as_many_at_a_time_as_it_may(stack: Stack) -> None:
    def map_of(at_a_time: int) -> dict[str, Any]:
        wait = {"Type": "Wait", "Seconds": 10, "End": True}
        inner = {"StartAt": "W", "States": {"W": wait}}
        processor = {"ProcessorConfig": {"Mode": "INLINE"}, **inner}
        return {
            "Type": "Map",
            "Items": [1, 2, 3, 4],
            "MaxConcurrency": at_a_time,
            "ItemProcessor": processor,
            "End": True,
        }

    for at_a_time, seconds in ((1, 40), (2, 20), (0, 10)):
        described = run(stack, {"A": map_of(at_a_time)})
        assert (described["stopDate"] - described["startDate"]).total_seconds() == seconds


def test_parallel_branches_wait_side_by_side(stack: Stack) -> None:
    branches = [
        {
            "StartAt": f"W{seconds}",
            "States": {f"W{seconds}": {"Type": "Wait", "Seconds": seconds, "Output": seconds, "End": True}},
        }
        for seconds in (30, 10)
    ]
    described = run(stack, {"A": {"Type": "Parallel", "Branches": branches, "End": True}})
    assert json.loads(described["output"]) == [30, 10]
    assert (described["stopDate"] - described["startDate"]).total_seconds() == 30


def test_jitter_is_drawn_alike_in_each_run(app: Path) -> None:
    def taken() -> float:
        with Stack(app) as stack:
            arguments = {"FunctionName": stack.physical("WorkFunction"), "Payload": {"name": "x", "part": "wrong"}}
            retry = {"ErrorEquals": ["ValueError"], "IntervalSeconds": 10, "MaxAttempts": 2, "JitterStrategy": "FULL"}
            resource = "arn:aws:states:::lambda:invoke"
            task = {"Type": "Task", "Resource": resource, "Arguments": arguments, "Retry": [retry], "End": True}
            described = run(stack, {"A": task})
            assert described["error"] == "ValueError"
            return float((described["stopDate"] - described["startDate"]).total_seconds())

    first = taken()
    assert 0 < first < 30
    assert taken() == first
