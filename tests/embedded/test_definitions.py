from __future__ import annotations

from typing import Any

import pytest

from taskgov_embedded.stepfunctions.definitions import InvalidDefinitionError, check

PASS = {"Type": "Pass", "End": True}


def machine(**states: dict[str, Any]) -> dict[str, Any]:
    return {"StartAt": next(iter(states)), "States": states}


def in_jsonata(**states: dict[str, Any]) -> dict[str, Any]:
    return {"QueryLanguage": "JSONata", **machine(**states)}


def test_a_good_machine_passes() -> None:
    choice = {"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "B"}], "Default": "C"}
    check("m", in_jsonata(A=choice, B=PASS, C={"Type": "Succeed"}))


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (machine(A={"Type": "Pass", "Next": "Gone"}), "no state 'Gone'"),
        (machine(A={"Type": "Pass", "Catch": [{"Next": "Gone"}], "End": True}), "no state 'Gone'"),
        (machine(A=PASS, B=PASS), "'B' is never reached"),
        (machine(A={"Type": "Pass"}), "needs either Next or End"),
        (machine(A={"Type": "Pass", "Next": "A", "End": True}), "needs either Next or End"),
        (machine(A={"Type": "Choice"}), "has no Choices"),
        (machine(A={"Type": "Map", "ItemProcessor": machine(B=PASS, C=PASS), "End": True}), "'C' is never reached"),
        (
            machine(
                A={
                    "Type": "Task",
                    "Resource": "arn:aws:states:::athena:startQueryExecution.waitForTaskToken",
                    "End": True,
                }
            ),
            "use aws-sdk:athena:startQueryExecution.waitForTaskToken",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_machine_is_refused(definition: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidDefinitionError, match=message.replace("(", r"\(")):
        check("m", definition)


def test_an_sdk_integration_may_wait_for_a_token() -> None:
    resource = "arn:aws:states:::aws-sdk:dynamodb:putItem.waitForTaskToken"
    check("m", in_jsonata(A={"Type": "Task", "Resource": resource, "End": True}))


TASK = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (machine(A=PASS), "the QueryLanguage has to be JSONata"),
        ({**in_jsonata(A=PASS), "ProcessorConfig": {}}, "the machine: .* does not know 'ProcessorConfig'"),
        (in_jsonata(A={**PASS, "QueryLanguage": "JSONPath"}), "supports JSONata only"),
        (in_jsonata(A={**PASS, "ResultPath": "$.a"}), "state 'A': .* does not know 'ResultPath'"),
        (in_jsonata(A={"Type": "Chioce"}), "no states of type 'Chioce'"),
        (in_jsonata(A={**TASK, "Credentials": {}}), "does not know 'Credentials'"),
        (in_jsonata(A={**TASK, "Retry": [{"ErrorEquals": [], "Backoff": 2}]}), "Retry: .* does not know 'Backoff'"),
        (in_jsonata(A={**TASK, "Resource": "arn:aws:lambda:us-east-1:1:function:f"}), "supports integrations of Step"),
        (in_jsonata(A={**TASK, "Resource": "arn:aws:states:::glue:startJobRun"}), "no optimized glue:startJobRun"),
        (
            in_jsonata(A={**TASK, "Resource": "arn:aws:states:::aws-sdk:eks:createCluster.sync"}),
            r"does not know \.sync",
        ),
        (in_jsonata(A={"Type": "Wait", "End": True}), "needs either Seconds or Timestamp"),
        (in_jsonata(A={"Type": "Map", "End": True}), "has no ItemProcessor"),
        (in_jsonata(A={**PASS, "Output": "{% $count( %}"}), "state 'A'"),
        (in_jsonata(A={**PASS, "Output": "{% $count() "}), "does not end with %}"),
        (
            in_jsonata(
                A={
                    "Type": "Map",
                    "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED"}, **machine(B=PASS)},
                    "End": True,
                }
            ),
            "no distributed Map",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_interpreter_does_not_know_is_refused_when_a_machine_is_made(
    definition: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidDefinitionError, match=message):
        check("m", definition)


WAIT = {"Type": "Wait", "End": True}
INNER = machine(B=PASS)
MAP = {"Type": "Map", "Items": [], "ItemProcessor": INNER, "End": True}


def retrying(*rules: dict[str, Any]) -> dict[str, Any]:
    return in_jsonata(A={**TASK, "Retry": list(rules)})


def catching(*rules: dict[str, Any]) -> dict[str, Any]:
    return in_jsonata(A={**TASK, "Catch": list(rules)}, B=PASS)


def choosing(**rule: Any) -> dict[str, Any]:
    return in_jsonata(A={"Type": "Choice", "Choices": [rule], "Default": "B"}, B=PASS)


ALL, SOME = {"ErrorEquals": ["States.ALL"], "Next": "B"}, {"ErrorEquals": ["Some"], "Next": "B"}


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (retrying({"ErrorEquals": ["States.ALL", "Some"]}), "Retry: States.ALL has to stand alone, in the last rule"),
        (retrying({"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["Some"]}), "Retry: States.ALL has to stand alone"),
        (catching(ALL, SOME), "Catch: States.ALL has to stand alone"),
        (retrying({"ErrorEquals": []}), "Retry: ErrorEquals has to be a list of names"),
        (retrying({"MaxAttempts": 1}), "Retry: ErrorEquals has to be a list of names"),
        (retrying({"ErrorEquals": ["Some"], "MaxAttempts": -1}), "MaxAttempts is -1, not a whole number"),
        (retrying({"ErrorEquals": ["Some"], "MaxAttempts": "{% 1 %}"}), "MaxAttempts is '{% 1 %}', not a whole number"),
        (retrying({"ErrorEquals": ["Some"], "IntervalSeconds": 0}), "IntervalSeconds is 0, not a whole number from 1"),
        (retrying({"ErrorEquals": ["Some"], "BackoffRate": 0.5}), "BackoffRate is 0.5, not a number of at least 1"),
        (retrying({"ErrorEquals": ["Some"], "MaxDelaySeconds": 31_622_400}), "MaxDelaySeconds is 31622400"),
        (retrying({"ErrorEquals": ["Some"], "JitterStrategy": "HALF"}), "JitterStrategy is 'HALF'"),
        (catching(SOME, {"ErrorEquals": ["Other"]}), "Catch: a rule needs Next"),
        (choosing(Condition="true", Next="B"), "a rule of Choices needs a Condition"),
        (choosing(Condition="{% true %}"), "a rule of Choices needs Next"),
        ({"QueryLanguage": "JSONata", "States": {"A": PASS}}, "the machine has no StartAt"),
        ({"QueryLanguage": "JSONata", "StartAt": "A"}, "the machine has no States"),
        (in_jsonata(A={"End": True}), "no states of type ''"),
        ({**in_jsonata(A=PASS), "Version": "2.0"}, "the Version has to be 1.0"),
        ({**in_jsonata(A=PASS), "TimeoutSeconds": 0}, "the machine: TimeoutSeconds is 0"),
        (in_jsonata(A={**TASK, "TimeoutSeconds": 5, "HeartbeatSeconds": 5}), "HeartbeatSeconds is 5, not less than"),
        (in_jsonata(A={**MAP, "MaxConcurrency": -1}), "MaxConcurrency is -1"),
        (in_jsonata(A={**WAIT, "Seconds": "10"}), "Seconds is '10', not a whole number"),
        (in_jsonata(A={**WAIT, "Timestamp": "2026-11-20"}), "is not a time as in RFC 3339"),
        (in_jsonata(A={"Type": "Parallel", "Branches": [], "End": True}), "has no Branches"),
        (in_jsonata(B={**MAP, "ItemProcessor": INNER}), "state 'B': a name is given once"),
        (in_jsonata(**{"x" * 81: PASS}), "at most 80 characters"),
        (in_jsonata(A={**PASS, "Assign": {"states": 1}}), "'states' cannot be the name of a variable"),
        (in_jsonata(A={**PASS, "Assign": {"$x": 1}}), r"'\$x' cannot be the name of a variable"),
        (in_jsonata(A={**PASS, "Assign": "{% {} %}"}), "Assign has to be an object"),
        (
            in_jsonata(A={**MAP, "Assign": {"x": 1}, "ItemProcessor": machine(B={**PASS, "Assign": {"x": 2}})}),
            "state 'B': 'x' is assigned outside too",
        ),
        (in_jsonata(A=PASS, B={"Type": "Pass", "Next": "C"}, C={"Type": "Pass", "Next": "B"}), "'B' is never reached"),
        (in_jsonata(A={**PASS, "Output": "{% $eval('1') %}"}), r"\$eval is not part of JSONata in Step Functions"),
        (in_jsonata(A={**PASS, "Output": ["{% $random() %}"]}), r"\$random is not in the embedded stack"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_that_a_field_cannot_have_is_refused_when_a_machine_is_made(
    definition: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidDefinitionError, match=message):
        check("m", definition)


def test_the_values_at_the_edge_pass() -> None:
    rule = {"ErrorEquals": ["Some"], "MaxAttempts": 0, "IntervalSeconds": 1, "BackoffRate": 1, "JitterStrategy": "NONE"}
    task = {**TASK, "Retry": [rule, {"ErrorEquals": ["States.ALL"]}], "Catch": [SOME, ALL]}
    until = {"Type": "Wait", "Timestamp": "2026-11-20T09:10:00Z", "Next": "W"}
    check("m", in_jsonata(A=task, B=until, W={**WAIT, "Seconds": 0}))
    check("m", in_jsonata(A={**MAP, "Assign": {"x": 1}, "MaxConcurrency": "{% 2 %}"}))
