"""The state machine of `statemachines/reconcile.asl.yaml`, from one task to the next.

The definition is the file's, read and evaluated by the interpreter of the embedded stack. What is left out is worked
out from the file: a variable that no condition, no argument of the protocol and no outcome depends on is not kept.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any, NamedTuple

from taskgov_embedded.stepfunctions.host import TaskFailedError
from taskgov_embedded.stepfunctions.interpreter import Interpreter, Scope, matching
from tests.protocol.functions import EPOCH
from tests.protocol.table import SORT_KEY, text
from tests.statemachines.machines import Execution

NAME = re.compile(r"\$([A-Za-z_]\w*)")
PAYLOADS = {
    "ReadSnapshot": {"clusterArn", "lockOwner", "fencingToken"},
    "PlanQuotas": {"snapshot", "approvedChanges"},
    "ApplyChange": None,
    "VerifyPlan": None,
    "PublishUsage": {"outcome"},
}
"""What of a function's payload the protocol depends on; None is all of it."""
UNSEEN = {"ReadSnapshot": {"runId": "run"}}
"""What stands in for the rest, where a function asks for it."""


class Standing(NamedTuple):
    """Where an execution is: about to do a task (or waiting in it), entered at a time, with its variables."""

    state: str
    given: str
    variables: str
    entered: int


class Ended(NamedTuple):
    """How an execution ended."""

    outcome: str
    failed: bool
    variables: str


class Failure(NamedTuple):
    """How a task failed, by the name that Catch matches."""

    error: str


class Machine:
    """One definition, and what of it matters. `constants` are variables that keep a value whatever is assigned."""

    def __init__(self, definition: dict[str, Any], constants: Mapping[str, Any] | None = None) -> None:
        self.states: dict[str, dict[str, Any]] = definition["States"]
        self._start = definition["StartAt"]
        self._constants = dict(constants or {})
        self.visited: set[str] = set()
        self._asked: dict[Any, Any] = {}
        self._gone: dict[Any, Standing | Ended] = {}

    def begin(self, arn: str, given: str, now: int) -> Standing | Ended:
        """Start an execution."""
        return self._walk(arn, self._start, json.loads(given), {}, now)

    def resource(self, state: str) -> str:
        """Return what a task calls: `lambda:NAME`, or the integration with its action."""
        resource = str(self.states[state]["Resource"]).rsplit(":::", 1)[-1]
        if resource == "lambda:invoke":
            return "lambda:" + str(self.states[state]["Arguments"]["FunctionName"]).rsplit(":", 1)[-1]
        return resource

    def is_of_the_protocol(self, state: str) -> bool:
        """Say whether a task works on the state of the cluster."""
        return _is_of_the_state(self.states[state].get("Arguments"))

    def arguments(self, arn: str, at: Standing) -> dict[str, Any]:
        """Return the arguments of the task, evaluated: of a function its payload."""
        key = (arn, at)
        if key not in self._asked:
            interpreter, scope, seen = self._at(arn, at)
            wanted = _wanted(self.states[at.state], self.resource(at.state))
            self._asked[key] = text(interpreter.value(wanted, scope, seen))
        return json.loads(self._asked[key])  # type: ignore[no-any-return]

    def go_on(self, arn: str, at: Standing, result: Any, now: int) -> Standing | Ended:
        """Return where the execution is after a task has answered, or failed for good (a `Failure`)."""
        key = (arn, at, text(result), now)
        if key not in self._gone:
            self._gone[key] = self._after(arn, at, result, now)
        return self._gone[key]

    def is_tried_again(self, state: str, error: str) -> bool:
        """Say whether the task is tried again after an error."""
        retriers = self.states[state].get("Retry", ())
        found = matching(retriers, TaskFailedError(error))
        return found is not None and retriers[found].get("MaxAttempts", 3) > 0

    def _after(self, arn: str, at: Standing, result: Any, now: int) -> Standing | Ended:
        interpreter, scope, seen = self._at(arn, at)
        state = self._cut[at.state]
        if isinstance(result, Failure):
            following, given = interpreter.caught(state, scope, seen, TaskFailedError(result.error, ""))
        else:
            following, given = interpreter.done(state, scope, seen, result)
        return self._walk(arn, following, given, scope, now)

    def _at(self, arn: str, at: Standing) -> tuple[Interpreter, Scope, Scope]:
        interpreter = _interpreter(arn, at.entered)
        seen = {"input": json.loads(at.given), "context": interpreter.context(at.state)}
        return interpreter, {**json.loads(at.variables), **self._constants}, seen

    def _walk(self, arn: str, name: str | None, given: Any, scope: Scope, now: int) -> Standing | Ended:
        """Go on from a state to the next task; what lies between is local and takes no time."""
        interpreter = _interpreter(arn, now)
        scope.update(self._constants)
        while name is not None:
            state = self._cut[name]
            self.visited.add(name)
            match state["Type"]:
                case "Task":
                    kept = {key: scope[key] for key in sorted(self._live[name]) if key in scope}
                    return Standing(name, text(given), text(kept), now)
                case "Succeed" | "Fail":
                    return Ended(str(scope.get("outcome", "")), state["Type"] == "Fail", text(scope))
                case "Wait":
                    interpreter.assign(state, scope, {"input": given, "context": interpreter.context(name)})
                    name = state["Next"]
                case _:
                    seen = {"input": given, "context": interpreter.context(name)}
                    name, given = interpreter.step(name, state, scope, seen)
            scope.update(self._constants)
        return Ended(str(scope.get("outcome", "")), failed=False, variables=text(scope))

    @cached_property
    def _cut(self) -> dict[str, dict[str, Any]]:
        """The states without the assignments of variables that nothing depends on."""
        needed = set().union(*self._live.values())

        def cut(value: Any) -> Any:
            if isinstance(value, list):
                return [cut(one) for one in value]
            if not isinstance(value, dict):
                return value
            made = {key: cut(one) for key, one in value.items() if key != "Assign"}
            if "Assign" in value:
                made["Assign"] = {name: one for name, one in value["Assign"].items() if name in needed}
            return made

        return {name: cut(state) for name, state in self.states.items()}

    @cached_property
    def _live(self) -> dict[str, set[str]]:
        """The variables that matter from each state on: a fixed point over all ways out of it."""
        live: dict[str, set[str]] = {name: self._used(name) for name in self.states}
        changed = True
        while changed:
            changed = False
            for name, state in self.states.items():
                now = self._used(name)
                for following, assigned in _ways(state):
                    after = live[following]
                    now |= after - set(assigned)
                    now |= _names(assigned[one] for one in after & set(assigned))
                now -= set(self._constants)
                if now != live[name]:
                    live[name], changed = now, True
        return live

    def _used(self, name: str) -> set[str]:
        """The variables that a state itself asks for."""
        state = self.states[name]
        match state["Type"]:
            case "Choice":
                return _names(rule["Condition"] for rule in state["Choices"])
            case "Task":
                return _names([_wanted(state, self.resource(name))])
            case "Fail":
                return {"outcome"}
            case "Succeed":
                return {"outcome"}
            case _:
                return set()


def _ways(state: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, str]]]:
    for way in (*state.get("Choices", ()), *state.get("Catch", ()), state):
        if "Next" in way:
            yield way["Next"], way.get("Assign", {})
    if "Default" in state:
        yield state["Default"], state.get("Assign", {})


def _names(values: Iterable[Any]) -> set[str]:
    return {name for value in values for name in NAME.findall(text(value))} - {"states"}


def _wanted(state: Mapping[str, Any], resource: str) -> Any:
    """Return what of a task's arguments is evaluated: what the protocol depends on."""
    arguments = state["Arguments"]
    if resource.startswith("lambda:"):
        kept = PAYLOADS[resource.removeprefix("lambda:")]
        payload = {key: value for key, value in arguments["Payload"].items() if kept is None or key in kept}
        return payload | UNSEEN.get(resource.removeprefix("lambda:"), {})
    if _is_of_the_state(arguments):
        return {key: value for key, value in arguments.items() if key not in {"TableName", "ReturnValues"}}
    return {}


def _is_of_the_state(arguments: Any) -> bool:
    return isinstance(arguments, dict) and arguments.get("Key", {}).get("sk") in ({"S": SORT_KEY}, SORT_KEY)


def _interpreter(arn: str, now: int) -> Interpreter:
    return Execution(lambda *_: None, EPOCH + timedelta(seconds=now), arn).interpreter
