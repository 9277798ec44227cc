"""What holds for every state machine without running it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from jsonata import jsonata

from taskgov import errors
from taskgov_embedded.stepfunctions.expressions import check
from tests.statemachines.machines import STATEMACHINES, SUBSTITUTIONS, definition, every_state

MACHINES = sorted(path.name.removesuffix(".asl.yaml") for path in STATEMACHINES.glob("*.asl.yaml"))
ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
States = dict[str, dict[str, Any]]
ALL_STATES = [(machine, name, state) for machine in MACHINES for name, state in every_state(definition(machine))]


def of_type(*kinds: str) -> list[Any]:
    """Return every state of these types as a test parameter with its name as id."""
    return [
        pytest.param(machine, state, id=f"{machine}: {name}")
        for machine, name, state in ALL_STATES
        if state["Type"] in kinds
    ]


def levels(machine: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the machine and the machines inside its Maps: a transition stays on its level."""
    yield machine
    for state in machine["States"].values():
        if "ItemProcessor" in state:
            yield from levels(state["ItemProcessor"])


def transitions(state: dict[str, Any]) -> set[str]:
    rules = [state, *state.get("Choices", ()), *state.get("Catch", ())]
    return {rule["Next"] for rule in rules if "Next" in rule} | ({state["Default"]} if "Default" in state else set())


def expressions(node: Any) -> Iterator[str]:
    match node:
        case str() if node.startswith("{%"):
            yield node.removeprefix("{%").removesuffix("%}")
        case dict():
            for value in node.values():
                yield from expressions(value)
        case list():
            for value in node:
                yield from expressions(value)
        case _:
            return


def named_errors(state: dict[str, Any], where: str) -> set[str]:
    return {name for rule in state.get(where, ()) for name in rule["ErrorEquals"]}


def raised_by_function() -> dict[str, set[str]]:
    """Return what each function raises, from the table of `docs/architecture.md`."""
    raised: dict[str, set[str]] = {}
    for line in ARCHITECTURE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("`") and cells[0].endswith("Function`"):
            folder, logical_id = re.findall(r"`(\w+)`", cells[0])
            other = re.match(r"as `(\w+)`", cells[4])
            raised[folder] = raised[other[1]] if other else set(re.findall(r"\w+Error", cells[4]))
            raised[logical_id] = raised[folder]
    return raised


def function_of(state: dict[str, Any]) -> str:
    return str(state["Arguments"]["FunctionName"].rsplit(":", 1)[-1]) + "Function"


def schema_violations(machine: dict[str, Any]) -> list[str]:
    """Return what cfn-lint's schema of state machines finds."""
    import cfnlint.api
    from cfnlint.config import ManualArgs

    for _, state in every_state(machine):
        if str(state.get("TimeoutSeconds")).startswith("{%"):
            state["TimeoutSeconds"] = 1  # the schema lags behind: Step Functions takes an expression
    properties = {"RoleArn": "arn:aws:iam::111122223333:role/any", "Definition": machine}
    template = {"Resources": {"Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}}}
    found = cfnlint.api.lint(yaml.safe_dump(template), config=ManualArgs(regions=["us-east-1"]))
    return [str(match) for match in found]


INVOCATIONS = [
    pytest.param(state, id=f"{machine}: {name}")
    for machine, name, state in ALL_STATES
    if state["Type"] == "Task" and state["Resource"].endswith(":::lambda:invoke")
]


@pytest.mark.lint
@pytest.mark.parametrize("machine", MACHINES)
def test_the_definition_is_valid_for_step_functions(machine: str) -> None:
    assert schema_violations(definition(machine)) == []


@pytest.mark.lint
def test_the_check_above_refuses_a_state_of_no_known_type() -> None:
    machine = definition("fan_out")
    machine["States"]["More clusters?"]["Type"] = "Chioce"
    assert schema_violations(machine) != []


@pytest.mark.parametrize("machine", MACHINES)
def test_the_query_language_stands_at_the_top_only(machine: str) -> None:
    loaded = definition(machine)
    assert loaded["QueryLanguage"] == "JSONata"
    assert loaded["Comment"]
    assert "QueryLanguage" not in loaded["States"]


@pytest.mark.parametrize("machine", MACHINES)
def test_every_transition_leads_to_a_state_and_every_state_is_reached(machine: str) -> None:
    for level in levels(definition(machine)):
        reached = {level["StartAt"]}
        waiting = [level["StartAt"]]
        while waiting:
            targets = transitions(level["States"][waiting.pop()])
            waiting += targets - reached
            reached |= targets
        assert reached == set(level["States"])


@pytest.mark.parametrize(("machine", "state"), of_type("Pass", "Wait", "Task", "Map"))
def test_every_state_that_works_continues_or_ends(machine: str, state: dict[str, Any]) -> None:
    assert ("Next" in state) != (state.get("End") is True)


@pytest.mark.parametrize(("machine", "state"), of_type("Choice"))
def test_every_choice_has_a_default(machine: str, state: dict[str, Any]) -> None:
    assert state["Default"]


@pytest.mark.parametrize(("machine", "state"), of_type("Task"))
def test_every_task_has_a_timeout_and_retries(machine: str, state: dict[str, Any]) -> None:
    assert state["TimeoutSeconds"]
    assert state["Retry"]


@pytest.mark.parametrize(("machine", "state"), of_type("Task", "Map"))
def test_whatever_can_fail_catches_everything_last(machine: str, state: dict[str, Any]) -> None:
    assert state["Catch"][-1]["ErrorEquals"] == ["States.ALL"]


@pytest.mark.parametrize(("machine", "state"), of_type("Task"))
def test_every_retry_backs_off_with_full_jitter_and_an_end(machine: str, state: dict[str, Any]) -> None:
    for retrier in state["Retry"]:
        if retrier["MaxAttempts"]:
            assert retrier["JitterStrategy"] == "FULL"
            assert retrier["BackoffRate"] > 1
            assert retrier["MaxDelaySeconds"] <= 60


@pytest.mark.parametrize("state", INVOCATIONS)
def test_every_error_that_a_function_raises_is_caught_by_name(state: dict[str, Any]) -> None:
    raised = raised_by_function()[function_of(state)]
    assert raised, f"{function_of(state)} is not in the table of docs/architecture.md"
    assert raised <= named_errors(state, "Catch")


@pytest.mark.parametrize("state", INVOCATIONS)
def test_only_passing_faults_are_retried(state: dict[str, Any]) -> None:
    raised = raised_by_function()[function_of(state)]
    assert named_errors(state, "Retry") & raised == raised & {"ThrottledError", "UpstreamError"}


def test_every_call_of_one_kind_is_tried_again_in_the_same_way() -> None:
    """A definition cannot say it once: CloudFormation knows no aliases there (`tests/template/test_aliases.py`).

    A look of the fan-out is made again within minutes, by the next one, and has no time for many tries.
    """
    ways: dict[str, list[Any]] = {"lambda:invoke": [], "dynamodb:updateItem": []}
    for machine, _, state in ALL_STATES:
        if machine == "fan_out":
            continue
        call = str(state.get("Resource", "")).rpartition(":::")[2]
        # Where a condition may fail, that is said before and not tried again.
        passing = [retrier for retrier in state.get("Retry", ()) if retrier["MaxAttempts"]]
        if call in ways and passing not in ways[call]:
            ways[call].append(passing)
    assert {call: len(different) for call, different in ways.items()} == dict.fromkeys(ways, 1)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_error_of_the_domain_that_is_named_exists(machine: str) -> None:
    of_people = {"RejectedError"}  # sent with the task token, see "Ask for approval"
    named = {
        name
        for _, state in every_state(definition(machine))
        for where in ("Retry", "Catch")
        for name in named_errors(state, where)
        if "." not in name
    }
    assert {
        name for name in named - of_people if not issubclass(getattr(errors, name), errors.GovernanceError)
    } == set()


@pytest.mark.parametrize("machine", MACHINES)
def test_every_expression_is_jsonata_that_the_embedded_stack_has_too(machine: str) -> None:
    loaded = definition(machine)
    found = list(expressions(loaded))
    for expression in found:
        jsonata.Jsonata(expression)
        check(expression)
    assert found


@pytest.mark.parametrize("machine", MACHINES)
def test_every_variable_that_is_read_is_assigned_somewhere(machine: str) -> None:
    loaded = definition(machine)
    assigned = {
        name
        for _, state in every_state(loaded)
        for holder in (state, *state.get("Choices", ()), *state.get("Catch", ()))
        for name in holder.get("Assign", {})
    }
    text = " ".join(re.sub(r"'[^']*'", "''", expression) for expression in expressions(loaded))
    local = set(re.findall(r"\$(\w+) :=", text))
    local |= {
        name for parameters in re.findall(r"function\(([^)]*)\)", text) for name in re.findall(r"\w+", parameters)
    }
    read = {name for name, call in re.findall(r"\$(\w+)(\()?", text) if not call} - {"states"}
    assert read - local == assigned - local
    assert assigned <= read


def test_no_variable_hides_a_function_of_jsonata() -> None:
    """`$error` and `$round` are functions of the language: a variable of that name is read, or called, by mistake."""
    functions = set(jsonata.Jsonata.static_frame.bindings)
    assert {"error", "round", "map"} <= functions
    assigned = {
        name
        for _, _, state in ALL_STATES
        for holder in (state, *state.get("Choices", ()), *state.get("Catch", ()))
        for name in holder.get("Assign", {})
    }
    assert assigned & functions == set()


@pytest.mark.parametrize("machine", MACHINES)
def test_no_placeholder_is_left_without_a_value(machine: str) -> None:
    text = (STATEMACHINES / f"{machine}.asl.yaml").read_text()
    assert set(re.findall(r"\$\{(\w+)\}", text)) <= set(SUBSTITUTIONS)


def of_the_error(state: dict[str, Any]) -> bool:
    """Say whether a state takes its input for an error."""
    return any("$states.input.Error" in expression for expression in expressions(state))


@pytest.mark.parametrize("machine", MACHINES)
def test_what_takes_its_input_for_an_error_is_reached_by_catches_that_hand_the_error_on_and_by_nothing_else(
    machine: str,
) -> None:
    assert any(of_the_error(state) for _, state in every_state(definition(machine)))
    for level in levels(definition(machine)):
        named = {name for name, state in level["States"].items() if of_the_error(state)}
        assert level["StartAt"] not in named
        caught: set[str] = set()
        for state in level["States"].values():
            onward = {name: value for name, value in state.items() if name != "Catch"}
            assert not transitions(onward) & named
            for rule in state.get("Catch", ()):
                if rule["Next"] in named:
                    caught.add(rule["Next"])
                    assert "Output" not in rule, "an Output hides the error"
        assert caught == named


def test_what_may_have_written_ends_unfinished_and_nothing_else_does() -> None:
    states = definition("reconcile")["States"]
    by_target: dict[str, set[str]] = {}
    for name, state in states.items():
        for rule in state.get("Catch", ()):
            by_target.setdefault(rule["Next"], set()).add(name)
    assert by_target["Note what is unfinished"] == {"Apply changes", "Verify plan"}
    assert by_target["Note that it may not be published"] == {"Publish usage"}
    assert by_target["Note the failure"] == {
        "Take the lock",
        "Read snapshot",
        "Plan quotas",
        "Set the lock aside",
        "Is the request kept?",
        "Keep the request",
        "Exchange the request for the lock",
        "Forget the request",
    }
    assert states["Note what is unfinished"]["Assign"]["outcome"] == "unfinished"
    assert states["Note the failure"]["Assign"]["outcome"] == "failed"


PASSING = {
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ResourceNotReadyException",
    "Lambda.ENINotReadyException",
    "Lambda.EC2ThrottledException",
    "Lambda.EC2UnexpectedException",
}
"""What ends by itself: a client's timeout, and a VPC connection that is made (anew); the API reference of Invoke."""
LASTING = {
    "EC2AccessDenied",
    "ENILimitReached",
    "InvalidSecurityGroupID",
    "InvalidSubnetID",
    "SubnetIPAddressLimitReached",
}
"""What a person has to put right first."""


@pytest.mark.parametrize(("machine", "state"), of_type("Task"))
def test_a_function_in_a_vpc_that_is_not_ready_is_called_again(machine: str, state: dict[str, Any]) -> None:
    if state["Resource"].endswith(":lambda:invoke"):
        assert named_errors(state, "Retry") >= PASSING
        assert not named_errors(state, "Retry") & {f"Lambda.{name}Exception" for name in LASTING}


def test_every_error_of_a_vpc_that_lambda_has_is_known_to_pass_or_to_last() -> None:
    shapes = boto3.client("lambda", "us-east-1").meta.service_model.operation_model("Invoke").error_shapes
    of_vpc = {
        shape.name for shape in shapes if shape.name.startswith(("EC2", "ENI", "InvalidS", "Subnet", "ResourceNotR"))
    }
    known = {name.removeprefix("Lambda.") for name in PASSING} | {f"{name}Exception" for name in LASTING}
    assert of_vpc <= known
