"""Refuse state machine definitions that Step Functions would refuse, and those that the interpreter does not know.

Every field has to be one that is known for its kind of state, with a value that it may have (`values`), and every
expression JSONata. Each transition leads to a state and each state is reached, every Choice has a way out, and an
integration has the required pattern.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from taskgov_embedded.stepfunctions.expressions import ExpressionError, inside
from taskgov_embedded.stepfunctions.expressions import check as check_expression
from taskgov_embedded.stepfunctions.tasks import OPTIMIZED, SDK
from taskgov_embedded.stepfunctions.values import LONGEST_NAME, problem_of_number, problems_of_names, problems_of_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ANY_STATE = {"Type", "Comment", "Output", "QueryLanguage"}
_GOES_ON = {"Next", "End", "Assign"}
_HANDLES_ERRORS = {"Retry", "Catch"}
STATES: Mapping[str, set[str]] = {
    "Pass": _ANY_STATE | _GOES_ON,
    "Task": _ANY_STATE | _GOES_ON | _HANDLES_ERRORS | {"Resource", "Arguments", "TimeoutSeconds", "HeartbeatSeconds"},
    "Map": _ANY_STATE | _GOES_ON | _HANDLES_ERRORS | {"Items", "ItemProcessor", "MaxConcurrency"},
    "Parallel": _ANY_STATE | _GOES_ON | _HANDLES_ERRORS | {"Branches", "Arguments"},
    "Wait": _ANY_STATE | _GOES_ON | {"Seconds", "Timestamp"},
    "Choice": _ANY_STATE | {"Assign", "Choices", "Default"},
    "Succeed": _ANY_STATE,
    "Fail": {"Type", "Comment", "QueryLanguage", "Error", "Cause"},
}
"""The fields of each kind of state that the interpreter supports."""
_MACHINE = {"Comment", "QueryLanguage", "Version", "TimeoutSeconds", "StartAt", "States"}
_PROCESSOR = {"Comment", "ProcessorConfig", "StartAt", "States"}
_RULES: Mapping[str, set[str]] = {
    "Choices": {"Comment", "Condition", "Next", "Assign", "Output"},
    "Catch": {"Comment", "ErrorEquals", "Next", "Assign", "Output"},
    "Retry": {
        *("Comment", "ErrorEquals", "IntervalSeconds", "BackoffRate"),
        *("MaxAttempts", "MaxDelaySeconds", "JitterStrategy"),
    },
}
_PARTS: Mapping[str, str] = {"Choice": "Choices", "Map": "ItemProcessor", "Parallel": "Branches"}
"""What a kind of state has to have."""

WAITS_FOR_TOKEN = frozenset(
    {"apigateway", "aws-sdk", "bedrock", "ecs", "eks", "events", "lambda", "sns", "sqs", "states"}
)
"""Integrations with `.waitForTaskToken`, from the table of optimized integrations; an SDK integration has it always."""

_INTEGRATION = re.compile(r"arn:[^:]+:states:::(?P<service>[a-z0-9-]+):(?P<action>.+?)(?P<pattern>\.[a-zA-Z:0-9]+)?$")


class InvalidDefinitionError(ValueError):
    """A definition that CreateStateMachine would refuse."""


def check(name: str, definition: Mapping[str, Any]) -> None:
    """Raise `InvalidDefinitionError` with everything that is wrong with a definition."""
    found = sorted(_problems(definition, _MACHINE))
    if definition.get("QueryLanguage") != "JSONata":
        found.append("the QueryLanguage has to be JSONata")
    if found:
        raise InvalidDefinitionError(f"{name}: {'; '.join(found)}")


def _problems(
    machine: Mapping[str, Any], fields: set[str], outside: frozenset[str] = frozenset(), seen: list[str] | None = None
) -> Iterator[str]:
    """Yield what is wrong with a machine: `outside` are variables of those around it, `seen` the names so far."""
    missing = [field for field in ("StartAt", "States") if field not in machine]
    if missing:
        yield f"the machine has no {' and no '.join(missing)}"
        return
    yield from _unknown("the machine", machine, fields)
    if machine.get("Version", "1.0") != "1.0":
        yield "the Version has to be 1.0"
    if "TimeoutSeconds" in machine:
        problem = problem_of_number("TimeoutSeconds", machine["TimeoutSeconds"])
        yield from () if problem is None else (f"the machine: {problem}",)
    states, names = machine["States"], [] if seen is None else seen
    assigned = {name: _assigned(state) for name, state in states.items()}
    own = frozenset(variable for found in assigned.values() for variable in found)
    for name, state in states.items():
        if name in names or len(name) > LONGEST_NAME:
            yield f"state {name!r}: a name is given once in a machine, and has at most {LONGEST_NAME} characters"
        names.append(name)
        yield from (f"state {name!r}: {variable!r} is assigned outside too" for variable in assigned[name] & outside)
        yield from _problems_of_state(name, state)
        for inner in _inner_machines(state):
            yield from _problems(inner, _PROCESSOR, outside | own, names)
    targets = {target for state in states.values() for target in _targets(state)} | {machine["StartAt"]}
    yield from (f"no state {target!r}" for target in targets - states.keys())
    yield from (f"state {name!r} is never reached" for name in states.keys() - _reached(machine))


def _reached(machine: Mapping[str, Any]) -> set[str]:
    """Return the states that lie on some way from the start."""
    reached: set[str] = set()
    left = [machine["StartAt"]]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += _targets(machine["States"].get(name, {}))
    return reached


def _assigned(state: Mapping[str, Any]) -> set[str]:
    """Return the variables that a state, its rules or its catchers assign."""
    holders = [state, *state.get("Choices", ()), *state.get("Catch", ())]
    return {name for holder in holders if isinstance(holder.get("Assign"), dict) for name in holder["Assign"]}


def _unknown(whose: str, found: Mapping[str, Any], fields: set[str]) -> Iterator[str]:
    yield from (f"{whose}: the embedded stack does not know {field!r}" for field in found.keys() - fields)


def _targets(state: Mapping[str, Any]) -> list[str]:
    followed = [state, *state.get("Choices", []), *state.get("Catch", [])]
    named = [rule["Next"] for rule in followed if "Next" in rule]
    return named + ([state["Default"]] if "Default" in state else [])


def _inner_machines(state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*state.get("Branches", []), *([state["ItemProcessor"]] if "ItemProcessor" in state else [])]


def _problems_of_state(name: str, state: Mapping[str, Any]) -> Iterator[str]:
    whose, kind = f"state {name!r}", str(state.get("Type", ""))
    if kind not in STATES:
        yield f"{whose}: the embedded stack has no states of type {kind!r}"
        return
    yield from _unknown(whose, state, STATES[kind])
    for field, fields in _RULES.items():
        for rule in state.get(field, []):
            yield from _unknown(f"{whose}, {field}", rule, fields)
    if state.get("QueryLanguage", "JSONata") != "JSONata":
        yield f"{whose}: the embedded stack supports JSONata only"
    if kind not in {"Choice", "Succeed", "Fail"} and ("Next" in state) == (state.get("End") is True):
        yield f"{whose} needs either Next or End"
    if kind in _PARTS and not state.get(_PARTS[kind]):
        yield f"{whose} has no {_PARTS[kind]}"
    if kind == "Wait" and ("Seconds" in state) == ("Timestamp" in state):
        yield f"{whose} needs either Seconds or Timestamp"
    for holder in (state, *state.get("Choices", ()), *state.get("Catch", ())):
        yield from (f"{whose}: {problem}" for problem in problems_of_names(holder.get("Assign", {})))
    yield from (f"{whose}: {problem}" for problem in problems_of_state(state))
    if state.get("ItemProcessor", {}).get("ProcessorConfig", {}).get("Mode", "INLINE") != "INLINE":
        yield f"{whose}: the embedded stack has no distributed Map"
    if kind == "Task":
        yield from _problems_of_integration(whose, str(state.get("Resource", "")))
    for expression in _expressions(state):
        yield from _problems_of_expression(whose, expression)


def _problems_of_integration(whose: str, resource: str) -> Iterator[str]:
    integration = _INTEGRATION.match(resource)
    if integration is None:
        yield f"{whose}: the embedded stack supports integrations of Step Functions only, not {resource!r}"
        return
    service, action, pattern = integration["service"], integration["action"], integration["pattern"]
    if pattern == ".waitForTaskToken" and service not in WAITS_FOR_TOKEN:
        yield (
            f"{whose}: {service} has no .waitForTaskToken of its own, use aws-sdk:{service}:{action}.waitForTaskToken"
        )
    elif pattern not in {None, ".waitForTaskToken"}:
        yield f"{whose}: the embedded stack does not know {pattern}"
    if service != SDK and action not in OPTIMIZED.get(service, ()):
        yield f"{whose}: the embedded stack has no optimized {service}:{action}"


def _expressions(value: Any) -> Iterator[str]:
    """Yield the expressions of a state, without those of machines inside it."""
    match value:
        case str() if value.startswith("{%"):
            yield value
        case dict():
            for field, inner in value.items():
                if field not in {"States", "Branches"}:
                    yield from _expressions(inner)
        case list():
            for inner in value:
                yield from _expressions(inner)
        case _:
            return


def _problems_of_expression(whose: str, expression: str) -> Iterator[str]:
    if not expression.endswith("%}"):
        yield f"{whose}: {expression!r} does not end with %}}"
        return
    try:
        check_expression(inside(expression))
    except ExpressionError as error:
        yield f"{whose}: {error}"


def text_of(name: str, properties: Mapping[str, Any]) -> str:
    """Return the definition of a state machine as the template gives it, checked, with its placeholders filled."""
    definition = properties.get("DefinitionString") or json.dumps(properties["Definition"])
    text = substitute(definition, properties.get("DefinitionSubstitutions", {}))
    check(name, json.loads(text))
    return text


def substitute(definition: str, values: Mapping[str, Any]) -> str:
    """Put DefinitionSubstitutions into the text of a state machine; every placeholder needs a value.

    >>> substitute('{"Resource": "${PlanArn}"}', {"PlanArn": "arn:x"})
    '{"Resource": "arn:x"}'
    """
    missing = set(re.findall(r"\$\{([A-Za-z0-9_]+)\}", definition)) - set(values)
    if missing:
        raise ValueError(f"no DefinitionSubstitutions for {', '.join(sorted(missing))}")
    for key, value in values.items():
        definition = definition.replace("${" + key + "}", json.dumps(str(value))[1:-1])
    return definition
