"""Run a state machine in JSONata: which state comes next, with which input and which variables.

The only interpreter of Amazon States Language here. A `Host` provides what it needs: the time, a wait,
the answer to a task, iterations side by side. The embedded stack is one host (`executions`); a test that answers tasks
itself is another. It is strict as Step Functions is: an expression that gives nothing fails the state, and so does data
that is too large. What it does not know is refused when a machine is made (`definitions`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from taskgov_embedded.stepfunctions.expressions import ExpressionError, evaluate, inside, timestamp
from taskgov_embedded.stepfunctions.host import Position, Task, TaskFailedError
from taskgov_embedded.stepfunctions.values import moment, problem_of_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from taskgov_embedded.stepfunctions.host import Host

MOST_BYTES = 256 * 1024
"""What a task, a state or an Assign may take or give (Developer Guide, "Service quotas")."""
TIMEOUT = "States.Timeout"
TOO_LARGE = "States.DataLimitExceeded"
RUNTIME = "States.Runtime"
TERMINAL = frozenset({TOO_LARGE, RUNTIME})
"""Errors that no wildcard matches (Developer Guide, "Handling errors", States.ALL)."""

Scope = dict[str, Any]
"""Variables by name."""
State = dict[str, Any]
"""A state as the definition has it."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One execution, or one branch of it. `about` is what its context says beside the state and the task."""

    host: Host
    about: Mapping[str, Any]
    entered: Callable[[Position], None] | None = None
    """Called with each state of the outermost level."""

    def run(self, machine: Mapping[str, Any], start: Position | None = None, given: Any = None) -> Any:
        """Run a machine, from its first state or another, to its end; return its output. Raises TaskFailedError."""
        at = start or Position(machine["StartAt"], given)
        name: str | None = at.state
        given, scope = at.given, dict(at.variables)
        while name is not None:
            if self.entered is not None:
                self.entered(Position(name, given, dict(scope)))
            name, given = self._enter(name, machine["States"][name], given, scope)
        return given

    def _enter(self, name: str, state: State, given: Any, scope: Scope) -> tuple[str | None, Any]:
        seen = {"input": given, "context": self.context(name)}
        self.host.note(f"{state['Type']}StateEntered", name=name, input=given)
        following, output = self.step(name, state, scope, seen)
        _check_size(output, f"state {name!r}")
        self.host.note(f"{state['Type']}StateExited", name=name, output=output)
        return following, output

    def step(self, name: str, state: State, scope: Scope, seen: Scope) -> tuple[str | None, Any]:
        """Return the next state's name (None at an end) and its input; assign what the state assigns."""
        match state["Type"]:
            case "Choice":
                return self._choose(name, state, scope, seen)
            case "Fail":
                raise TaskFailedError(
                    self.value(state.get("Error", ""), scope, seen), self.value(state.get("Cause", ""), scope, seen)
                )
            case "Task" | "Map" | "Parallel":
                return self._work_with_retries(name, state, scope, seen)
            case "Wait":
                self.host.wait(self._seconds(state, scope, seen))
            case _:
                pass
        return self.done(state, scope, seen, seen["input"])

    def done(self, state: State, scope: Scope, seen: Scope, result: Any) -> tuple[str | None, Any]:
        """Return the next state and its input after a state that gave a result; assign what it assigns."""
        return state.get("Next"), self._leave(state, scope, {**seen, "result": result}, result)

    def caught(self, state: State, scope: Scope, seen: Scope, failure: TaskFailedError) -> tuple[str | None, Any]:
        """Return the next state and its input after a failure that the state catches; raises the failure otherwise."""
        found = matching(state.get("Catch", ()), failure)
        if found is None:
            raise failure
        catcher = state["Catch"][found]
        error = {"Error": failure.error, "Cause": failure.cause}
        return catcher["Next"], self._leave(catcher, scope, {**seen, "errorOutput": error}, error)

    def _leave(self, holder: State, scope: Scope, seen: Scope, default: Any) -> Any:
        """Return the output of a state, a catcher or a rule, and assign what it assigns."""
        output = self.value(holder["Output"], scope, seen) if "Output" in holder else default
        self.assign(holder, scope, seen)
        return output

    def assign(self, holder: State, scope: Scope, seen: Scope) -> None:
        """Assign all at once: every expression sees the values from before."""
        assigned = self.value(holder.get("Assign", {}), scope, seen)
        _check_size(assigned, "an Assign")
        scope.update(assigned)

    def _choose(self, name: str, state: State, scope: Scope, seen: Scope) -> tuple[str, Any]:
        for rule in state["Choices"]:
            met = self.value(rule["Condition"], scope, seen)
            if not isinstance(met, bool):
                self._evaluation_failed(f"the condition {rule['Condition']} of {name!r} is {met!r}, not true or false")
            if met:
                return rule["Next"], self._leave(rule, scope, seen, seen["input"])
        if "Default" not in state:
            raise TaskFailedError(
                "States.NoChoiceMatched", f"Failed to transition out of the state '{name}': no choice matched."
            )
        return state["Default"], self._leave(state, scope, seen, seen["input"])

    def _seconds(self, state: State, scope: Scope, seen: Scope) -> float:
        if "Seconds" in state:
            return self._whole_number("Seconds", state, scope, seen) or 0
        until = self.value(state["Timestamp"], scope, seen)
        found = moment(until)
        if found is None:
            self._evaluation_failed(f"the Timestamp {until!r} is not a time as in RFC 3339, in capitals")
        return max(0.0, (found - self.host.now()).total_seconds())

    def _whole_number(self, field: str, state: State, scope: Scope, seen: Scope) -> int | None:
        """Return a number of a state; None where it has none. Raises TaskFailedError."""
        number = self.value(state.get(field), scope, seen)
        problem = None if field not in state else problem_of_number(field, number)
        if problem is not None:
            self._evaluation_failed(problem)
        return None if number is None else int(number)

    def _work_with_retries(self, name: str, state: State, scope: Scope, seen: Scope) -> tuple[str | None, Any]:
        tries = [0] * len(state.get("Retry", ()))
        while True:
            seen = {**seen, "context": self._context_of_try(seen["context"], state, sum(tries))}
            try:
                result = self._work(name, state, scope, seen)
                return self.done(state, scope, seen, result)
            except TaskFailedError as failure:
                found = matching(state.get("Retry", ()), failure)
                if found is None or tries[found] >= state["Retry"][found].get("MaxAttempts", 3):
                    if state["Type"] != "Task":
                        self.host.note(f"{state['Type']}StateFailed")
                    return self.caught(state, scope, seen, failure)
            self.host.wait(self._back_off(state["Retry"][found], tries[found]))
            tries[found] += 1

    def _context_of_try(self, context: Scope, state: State, retries: int) -> Scope:
        """Return the context of a try; that of a task that waits for an answer has a new token each time."""
        about = {**context, "State": {**context["State"], "RetryCount": retries}}
        return about | ({"Task": {"Token": self.host.token()}} if waits_for_token(state) else {})

    def _back_off(self, retrier: State, tries: int) -> float:
        seconds: float = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2.0) ** tries
        seconds = min(seconds, retrier.get("MaxDelaySeconds", seconds))
        return self.host.jittered(seconds) if retrier.get("JitterStrategy") == "FULL" else seconds

    def _work(self, name: str, state: State, scope: Scope, seen: Scope) -> Any:
        match state["Type"]:
            case "Task":
                return self._task(name, state, scope, seen)
            case "Map":
                return self._map(name, state, scope, seen)
            case _:
                return self._parallel(state, scope, seen)

    def _task(self, name: str, state: State, scope: Scope, seen: Scope) -> Any:
        task = Task(
            name,
            state["Resource"],
            self.value(state.get("Arguments", {}), scope, seen),
            seen["context"].get("Task", {}).get("Token"),
            self._whole_number("TimeoutSeconds", state, scope, seen),
            self._whole_number("HeartbeatSeconds", state, scope, seen),
        )
        _check_size(task.arguments, f"the arguments of {name!r}")
        self.host.note("TaskScheduled", **task.about, parameters=task.arguments)
        self.host.note("TaskStarted", **task.about)
        try:
            result = self.host.work(task)
            _check_size(result, f"task {name!r}")
        except TaskFailedError as failure:
            kind = "TaskTimedOut" if failure.error == TIMEOUT else "TaskFailed"
            self.host.note(kind, **task.about, error=failure.error, cause=failure.cause)
            raise
        self.host.note("TaskSucceeded", **task.about, output=result)
        return result

    def _map(self, name: str, state: State, scope: Scope, seen: Scope) -> list[Any]:
        items = self.value(state.get("Items", seen["input"]), scope, seen)
        if not isinstance(items, list):
            self._evaluation_failed(f"the items of {name!r} are {items!r}, not an array")

        def iteration(index: int, item: Any) -> Callable[[Host], Any]:
            about = {**self.about, "Map": {"Item": {"Index": index, "Value": item}}}
            return lambda host: _iterate(Interpreter(host, about), name, index, state["ItemProcessor"], item, scope)

        at_most = self._whole_number("MaxConcurrency", state, scope, seen) or 0
        self.host.note("MapStateStarted", length=len(items))
        results = self.host.side_by_side([iteration(*numbered) for numbered in enumerate(items)], at_most)
        self.host.note("MapStateSucceeded")
        return results

    def _parallel(self, state: State, scope: Scope, seen: Scope) -> list[Any]:
        given = self.value(state.get("Arguments", seen["input"]), scope, seen)

        def branch(machine: State) -> Callable[[Host], Any]:
            start = Position(machine["StartAt"], given, scope)
            return lambda host: Interpreter(host, self.about).run(machine, start)

        self.host.note("ParallelStateStarted")
        results = self.host.side_by_side([branch(machine) for machine in state["Branches"]], 0)
        self.host.note("ParallelStateSucceeded")
        return results

    def context(self, name: str) -> dict[str, Any]:
        """Return what `$states.context` is in a state that is entered now."""
        return {**self.about, "State": {"Name": name, "EnteredTime": timestamp(self.host.now()), "RetryCount": 0}}

    def value(self, template: Any, scope: Scope, seen: Scope) -> Any:
        """Return a field of the definition with its expressions evaluated. Raises TaskFailedError."""
        match template:
            case str() if template.startswith("{%"):
                try:
                    return evaluate(inside(template), {**scope, "states": seen}, self.host.numbers)
                except ExpressionError as error:
                    self._evaluation_failed(str(error))
            case dict():
                return {key: self.value(value, scope, seen) for key, value in template.items()}
            case list():
                return [self.value(value, scope, seen) for value in template]
            case _:
                return template

    def _evaluation_failed(self, cause: str) -> NoReturn:
        error = "States.QueryEvaluationError"
        self.host.note("EvaluationFailed", error=error, cause=cause)
        raise TaskFailedError(error, cause)


def _iterate(interpreter: Interpreter, name: str, index: int, machine: State, item: Any, scope: Scope) -> Any:
    note, about = interpreter.host.note, {"name": name, "index": index}
    note("MapIterationStarted", **about)
    try:
        output = interpreter.run(machine, Position(machine["StartAt"], item, scope))
    except TaskFailedError:
        note("MapIterationFailed", **about)
        raise
    note("MapIterationSucceeded", **about)
    return output


def waits_for_token(state: Mapping[str, Any]) -> bool:
    """Return whether a state is a task that ends when its token comes back."""
    return str(state.get("Resource", "")).endswith(".waitForTaskToken")


def matching(rules: Sequence[Mapping[str, Any]], failure: TaskFailedError) -> int | None:
    """Return the place of the first rule of a Retry or a Catch that names a failure.

    `States.ALL` and `States.TaskFailed` stand for any error but terminal ones, the latter not for a timeout either
    (Developer Guide, "Handling errors").
    """
    for place, rule in enumerate(rules):
        names = rule["ErrorEquals"]
        task_failed = "States.TaskFailed" in names and failure.error != TIMEOUT
        any_error = (task_failed or "States.ALL" in names) and failure.error not in TERMINAL
        if failure.error in names or any_error:
            return place
    return None


def _check_size(value: Any, whose: str) -> None:
    """Raise TaskFailedError for data with more bytes than it may have, as JSON in UTF-8."""
    if len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise TaskFailedError(TOO_LARGE, f"{whose} gave more than {MOST_BYTES} bytes")
