"""Refuse state machine definitions that Step Functions would refuse and moto takes.

moto checks the language's grammar; this checks what the grammar does not know: that each transition leads to a state,
that each state is reached, that every Choice has a way out, and that an integration has the pattern asked of it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WAITS_FOR_TOKEN = frozenset(
    {"apigateway", "aws-sdk", "bedrock", "ecs", "eks", "events", "lambda", "sns", "sqs", "states"}
)
"""Integrations with `.waitForTaskToken`, from the table of optimized integrations; an SDK integration has it always."""

_INTEGRATION = re.compile(r"arn:[^:]+:states:::(?P<service>[a-z0-9-]+):(?P<action>.+?)(?P<pattern>\.[a-zA-Z:0-9]+)?$")


class InvalidDefinitionError(ValueError):
    """A definition that CreateStateMachine would refuse."""


def check(name: str, definition: Mapping[str, Any]) -> None:
    """Raise `InvalidDefinitionError` with everything that is wrong with a definition."""
    found = sorted(_problems(definition))
    if found:
        raise InvalidDefinitionError(f"{name}: {'; '.join(found)}")


def _problems(machine: Mapping[str, Any]) -> Iterator[str]:
    states = machine["States"]
    targets = [machine["StartAt"]]
    for name, state in states.items():
        targets += _targets(state)
        yield from _problems_of_state(name, state)
        for inner in _inner_machines(state):
            yield from _problems(inner)
    yield from (f"no state {one!r}" for one in targets if one not in states)
    yield from (f"state {one!r} is never reached" for one in states if one not in targets)


def _targets(state: Mapping[str, Any]) -> list[str]:
    followed = [state, *state.get("Choices", []), *state.get("Catch", [])]
    named = [one["Next"] for one in followed if "Next" in one]
    return named + ([state["Default"]] if "Default" in state else [])


def _inner_machines(state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    processor = state.get("ItemProcessor") or state.get("Iterator")
    return [*state.get("Branches", []), *([processor] if processor else [])]


def _problems_of_state(name: str, state: Mapping[str, Any]) -> Iterator[str]:
    kind = state["Type"]
    if kind not in {"Choice", "Succeed", "Fail"} and ("Next" in state) == (state.get("End") is True):
        yield f"state {name!r} needs either Next or End"
    if kind == "Choice" and not state.get("Choices"):
        yield f"state {name!r} has no Choices"
    processor = state.get("ItemProcessor", {}).get("ProcessorConfig", {})
    if processor.get("Mode") == "DISTRIBUTED":
        yield f"state {name!r}: the embedded stack has no distributed Map"
    integration = _INTEGRATION.match(str(state.get("Resource", "")))
    if integration is None:
        return
    if integration["pattern"] == ".waitForTaskToken" and integration["service"] not in WAITS_FOR_TOKEN:
        yield (
            f"state {name!r}: {integration['service']} has no .waitForTaskToken of its own, "
            f"use aws-sdk:{integration['service']}:{integration['action']}.waitForTaskToken"
        )


def text_of(name: str, properties: Mapping[str, Any]) -> str:
    """Return the definition of a state machine as the template gives it, checked, with its placeholders filled."""
    definition = properties.get("DefinitionString") or json.dumps(properties["Definition"])
    text = substitute(definition, properties.get("DefinitionSubstitutions", {}))
    check(name, json.loads(text))
    return _with_float_percentages(text)


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


def _with_float_percentages(definition: str) -> str:
    """Write `ToleratedFailurePercentage` as moto's grammar wants it: it refuses `50` and takes `50.0`."""
    return re.sub(r'("ToleratedFailurePercentage"\s*:\s*\d+)(?=\s*[,}])', r"\1.0", definition)
