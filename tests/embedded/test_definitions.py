from __future__ import annotations

from typing import Any

import pytest

from taskgov_embedded.stepfunctions.definitions import InvalidDefinitionError, check

PASS = {"Type": "Pass", "End": True}


def machine(**states: dict[str, Any]) -> dict[str, Any]:
    return {"StartAt": next(iter(states)), "States": states}


def test_a_good_machine_passes() -> None:
    choice = {"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "B"}], "Default": "C"}
    check("m", machine(A=choice, B=PASS, C={"Type": "Succeed"}))


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
    check("m", machine(A={"Type": "Task", "Resource": resource, "End": True}))
