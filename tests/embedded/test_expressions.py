"""JSONata as Step Functions has it, in a state machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from taskgov_embedded.stack import Stack


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("{% $sum($states.input.list) %}", 6),
        ("{% $states.input.list[$ > 1] %}", [2, 3]),
        ("{% $states.input.nothing %}", None),
        ("{% [$reverse([0..$states.input.n])] %}", [2, 1, 0]),
        ("{% $join($append([], $states.input.one), '; ') %}", "x"),
        ("{% $merge([$states.input.o, {'b': 2}]) %}", {"a": 1, "b": 2}),
        ("{% $string($floor($toMillis($states.context.State.EnteredTime) / 1000)) %}", "1795165200"),
        ("{% $states.context.State.EnteredTime %}", "2026-11-20T09:00:00.000Z"),
        ("{% $states.context.Execution.StartTime %}", "2026-11-20T09:00:00.000Z"),
        ("{% $now() %}", "2026-11-20T09:00:00.000Z"),
        ("{% $millis() %}", 1795165200000),
        ("{% $partition([1, 2, 3], 2) %}", [[1, 2], [3]]),
        ("{% $parse('{\"a\": 1}') %}", {"a": 1}),
        ("{% $length($uuid()) %}", 36),
        ("{% $hash('a', 'SHA-256') %}", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
        ('{% $states.input.quoted & "\\"" %}', 'say "hi"\n"'),
        ("plain 'text' and \"quotes\" \\ too", "plain 'text' and \"quotes\" \\ too"),
    ],
)
def test_an_expression(shared_stack: Stack, expression: str, want: object) -> None:
    data = {"list": [1, 2, 3], "nothing": None, "n": 2, "one": ["x"], "o": {"a": 1}, "quoted": 'say "hi"\n'}
    client = shared_stack.client("stepfunctions")
    state = {"Type": "Pass", "Output": {"got": expression}, "End": True}
    machine = {"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": state}}
    role = shared_stack.resolved("Machine").properties["RoleArn"]
    name = f"m{len(client.list_state_machines()['stateMachines'])}"
    arn = client.create_state_machine(name=name, definition=json.dumps(machine), roleArn=role)["stateMachineArn"]
    execution = client.start_execution(stateMachineArn=arn, input=json.dumps(data))["executionArn"]
    shared_stack.run_until_quiet()
    assert json.loads(client.describe_execution(executionArn=execution)["output"]) == {"got": want}
