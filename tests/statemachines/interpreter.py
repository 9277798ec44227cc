"""A small interpreter of JSONata state machines, for tests that walk one path after another in milliseconds.

The embedded stack runs the same files in moto's interpreter. This one is strict where moto is lenient: a JSONata
expression that gives nothing is an error, as it is for Step Functions. Tasks are answered by a function of the test;
time passes only by waits and retries.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from taskgov_embedded.stepfunctions.expressions import compose, declare, evaluate_jsonata

STATEMACHINES = Path(__file__).parents[2] / "statemachines"
SUBSTITUTIONS = {
    "GovernanceBucket": "governance-bucket",
    "Partition": "aws",
    "TableName": "governance",
    "NoticeTopicArn": "arn:aws:sns:us-east-1:111122223333:notices",
    "ApplyMode": "apply",
    "NeedsApprover": "false",
    "ApprovalHours": "24",
    "ChangesPerCall": "25",
    "AccountId": "111122223333",
    "Region": "us-east-1",
    "ScheduleGroup": "schedules",
    "ScheduleRoleArn": "arn:aws:iam::111122223333:role/schedule",
    "IntakeQueueArn": "arn:aws:sqs:us-east-1:111122223333:intake",
    "DeliveryDeadLetterQueueArn": "arn:aws:sqs:us-east-1:111122223333:dead-letters",
    **{
        f"{name}Function": f"arn:aws:lambda:us-east-1:111122223333:function:{name}"
        for name in ("ReadSnapshot", "PlanQuotas", "ApplyChange", "VerifyPlan", "PublishUsage", "AuditCluster")
    },
}
"""What the template supplies; a test holds the names together."""


def definition(name: str) -> dict[str, Any]:
    """Return a state machine with its substitutions made, as CloudFormation makes them: in the text."""
    loaded: dict[str, Any] = json.loads(_definition(name))
    return loaded


@cache
def _definition(name: str) -> str:
    """Return it as JSON: a copy of its own is read from that in no time."""
    text = (STATEMACHINES / f"{name}.asl.yaml").read_text()
    for key, value in SUBSTITUTIONS.items():
        text = text.replace(f"${{{key}}}", value)
    return json.dumps(yaml.safe_load(text))


def every_state(machine: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every state with its name, those inside Maps too."""
    for name, state in machine["States"].items():
        yield name, state
        if "ItemProcessor" in state:
            yield from every_state(state["ItemProcessor"])


class TaskFailedError(Exception):
    """A task's failure, by the name that ErrorEquals matches."""

    def __init__(self, error: str, cause: str = "") -> None:
        super().__init__(error, cause)
        self.error = error
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Ended:
    """How an execution ended: `error` is None when it succeeded."""

    output: Any
    error: str | None = None
    cause: str = ""


Scope = dict[str, Any]
Answer = Callable[[str, str, Any], Any]
"""Answers a task: state name, resource, arguments."""


@dataclass(slots=True)
class Execution:
    """One run of a machine. `trace` lists the states in the order in which they were entered.

    `events` counts what Step Functions would write into the history: a state's entry and exit, and of each try of a
    task that it was scheduled, that it started and how it ended (with a token also that it was submitted).
    """

    answer: Answer
    now: datetime = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
    arn: str = "arn:aws:states:us-east-1:111122223333:execution:reconcile:ml-cluster-1"
    trace: list[str] = field(default_factory=list)
    events: int = 0
    scope: Scope = field(default_factory=dict)
    """The variables."""
    largest: int = 0
    """Bytes of the largest input or output of a task so far."""

    def run(self, machine: Mapping[str, Any], given: Any) -> Ended:
        """Run the machine from its first state to its end."""
        self.scope.clear()
        self.events = 2  # its start and its end
        return self._run(machine, given, self.scope)

    def _run(self, machine: Mapping[str, Any], given: Any, scope: Scope) -> Ended:
        name: str = machine["StartAt"]
        while True:
            self.trace.append(name)
            self.events += 2
            if len(self.trace) > 10_000:
                raise AssertionError(f"does not end: {self.trace[-20:]}")
            state = machine["States"][name]
            seen = {"input": given, "context": self.context(name)}
            match state["Type"]:
                case "Succeed":
                    return Ended(self._output(state, scope, seen, given))
                case "Fail":
                    return Ended(None, self.value(state["Error"], scope, seen), self.value(state["Cause"], scope, seen))
                case _:
                    following, given = self.step(name, state, scope, seen)
            if following is None:
                return Ended(given)
            name = following

    def step(self, name: str, state: Mapping[str, Any], scope: Scope, seen: Scope) -> tuple[str | None, Any]:
        """Return the next state's name (None at an end) and its input; assign what the state assigns."""
        match state["Type"]:
            case "Choice":
                return self._choose(state, scope, seen), seen["input"]
            case "Wait":
                self.now += timedelta(seconds=self.value(state["Seconds"], scope, seen))
                result = seen["input"]
            case "Pass":
                result = seen["input"]
            case "Task" | "Map":
                try:
                    result = self._work_with_retries(name, state, scope, seen)
                except TaskFailedError as failure:
                    return self.caught(state, scope, seen, failure)
            case kind:
                raise AssertionError(f"{name}: no state of type {kind} is expected")
        return self.done(state, scope, seen, result)

    def done(self, state: Mapping[str, Any], scope: Scope, seen: Scope, result: Any) -> tuple[str | None, Any]:
        """Return the next state and its input after a state that gave a result; assign what it assigns."""
        output = self._output(state, scope, {**seen, "result": result}, result)
        self.assign(state, scope, {**seen, "result": result})
        return state.get("Next"), output

    def _choose(self, state: Mapping[str, Any], scope: Scope, seen: Scope) -> str:
        for rule in state["Choices"]:
            if self.value(rule["Condition"], scope, seen) is True:
                self.assign(rule, scope, seen)
                return str(rule["Next"])
        return str(state["Default"])

    def _work_with_retries(self, name: str, state: Mapping[str, Any], scope: Scope, seen: Scope) -> Any:
        tries = [0] * len(state.get("Retry", ()))
        while True:
            try:
                return self._work(name, state, scope, seen)
            except TaskFailedError as failure:
                found = _matching(state.get("Retry", ()), failure)
                if found is None or tries[found] >= state["Retry"][found].get("MaxAttempts", 3):
                    raise
                retrier = state["Retry"][found]
                wait = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2.0) ** tries[found]
                self.now += timedelta(seconds=min(wait, retrier.get("MaxDelaySeconds", wait)))
                tries[found] += 1

    def _work(self, name: str, state: Mapping[str, Any], scope: Scope, seen: Scope) -> Any:
        seen = {**seen, "context": self.context(name)}
        if state["Type"] == "Task":
            self.events += 4 if state["Resource"].endswith("waitForTaskToken") else 3
            arguments = self.value(state["Arguments"], scope, seen)
            answer = self.answer(name, state["Resource"], arguments)
            self.largest = max(self.largest, *(len(json.dumps(one, default=str)) for one in (arguments, answer)))
            return answer
        ends = [
            self._run(state["ItemProcessor"], item, dict(scope)) for item in self.value(state["Items"], scope, seen)
        ]
        for end in ends:
            if end.error is not None:
                raise TaskFailedError(end.error, end.cause)
        return [end.output for end in ends]

    def caught(
        self, state: Mapping[str, Any], scope: Scope, seen: Scope, failure: TaskFailedError
    ) -> tuple[str | None, Any]:
        found = _matching(state.get("Catch", ()), failure)
        if found is None:
            raise failure
        catcher = state["Catch"][found]
        seen = {**seen, "errorOutput": {"Error": failure.error, "Cause": failure.cause}}
        output = self._output(catcher, scope, seen, seen["errorOutput"])
        self.assign(catcher, scope, seen)
        return catcher["Next"], output

    def context(self, name: str) -> dict[str, Any]:
        entered = self.now.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        return {
            "Execution": {"Id": self.arn, "Name": self.arn.rsplit(":", 1)[-1]},
            "State": {"Name": name, "EnteredTime": entered},
            "Task": {"Token": f"token-{len(self.trace)}"},
        }

    def _output(self, holder: Mapping[str, Any], scope: Scope, seen: Scope, default: Any) -> Any:
        return self.value(holder["Output"], scope, seen) if "Output" in holder else default

    def assign(self, holder: Mapping[str, Any], scope: Scope, seen: Scope) -> None:
        """Assign all at once: every expression sees the values from before."""
        scope.update(self.value(holder.get("Assign", {}), scope, seen))

    def value(self, template: Any, scope: Scope, seen: Scope) -> Any:
        match template:
            case str() if template.startswith("{%"):
                return evaluate(template, {**scope, "states": seen})
            case dict():
                return {key: self.value(value, scope, seen) for key, value in template.items()}
            case list():
                return [self.value(value, scope, seen) for value in template]
            case _:
                return template


def evaluate(template: str, variables: Mapping[str, Any]) -> Any:
    """Evaluate `{% expression %}`; an expression that gives nothing is an error."""
    expression = template.strip().removeprefix("{%").removesuffix("%}")
    used = {f"${name}": value for name, value in variables.items() if f"${name}" in expression}
    value = evaluate_jsonata(compose(f'{{"value": ({expression})}}', [declare(used)]), itertools.count())
    if "value" not in value:
        raise AssertionError(f"States.QueryEvaluationError: {template} gives nothing")
    return value["value"]


def _matching(rules: Any, failure: TaskFailedError) -> int | None:
    for place, rule in enumerate(rules):
        names = rule["ErrorEquals"]
        task_failed = "States.TaskFailed" in names and not failure.error.startswith("States.")
        if failure.error in names or task_failed or "States.ALL" in names:
            return place
    return None
