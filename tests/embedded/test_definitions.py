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
        (in_jsonata(A={**PASS, "QueryLanguage": "JSONPath"}), "knows JSONata only"),
        (in_jsonata(A={**PASS, "ResultPath": "$.a"}), "state 'A': .* does not know 'ResultPath'"),
        (in_jsonata(A={"Type": "Chioce"}), "no states of type 'Chioce'"),
        (in_jsonata(A={**TASK, "Credentials": {}}), "does not know 'Credentials'"),
        (in_jsonata(A={**TASK, "Retry": [{"ErrorEquals": [], "Backoff": 2}]}), "Retry: .* does not know 'Backoff'"),
        (in_jsonata(A={**TASK, "Resource": "arn:aws:lambda:us-east-1:1:function:f"}), "knows integrations of Step"),
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
