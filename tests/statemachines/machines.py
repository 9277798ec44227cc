"""The product's state machines, and executions of them whose tasks a test answers: one path in milliseconds."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from taskgov_embedded.stepfunctions.expressions import timestamp
from taskgov_embedded.stepfunctions.host import Ended, Host, Position, Task, TaskFailedError
from taskgov_embedded.stepfunctions.interpreter import Interpreter

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
    "ClustersWithoutDocument": "*",
    "AccountId": "111122223333",
    "Region": "us-east-1",
    "ScheduleGroup": "schedules",
    "ScheduleRoleArn": "arn:aws:iam::111122223333:role/schedule",
    "IntakeQueueArn": "arn:aws:sqs:us-east-1:111122223333:intake",
    "IntakeQueueUrl": "https://sqs.us-east-1.amazonaws.com/111122223333/intake",
    "AuditStateMachineArn": "arn:aws:states:us-east-1:111122223333:stateMachine:audit",
    "DeliveryDeadLetterQueueArn": "arn:aws:sqs:us-east-1:111122223333:dead-letters",
    **{
        f"{name}Function": f"arn:aws:lambda:us-east-1:111122223333:function:{name}"
        for name in (
            "ReadSnapshot",
            "PlanQuotas",
            "ApplyChange",
            "VerifyPlan",
            "PublishUsage",
            "EstimateStarts",
            "AuditCluster",
        )
    },
}
"""What the template supplies; a test holds the names together."""


def definition(name: str) -> dict[str, Any]:
    """Return a state machine with its substitutions made, as CloudFormation makes them: in the text."""
    loaded: dict[str, Any] = json.loads(written(name))
    return loaded


@cache
def written(name: str) -> str:
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


Answer = Callable[[str, str, Any], Any]
"""Answers a task: state name, resource, arguments."""


@dataclass(slots=True)
class Execution(Host):
    """One run of a machine; time passes only by waits and retries, and all of a back-off does.

    An expression that cannot be evaluated ends the test: a Catch would hide it. `events` counts the history.
    """

    answer: Answer
    moment: datetime = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
    arn: str = "arn:aws:states:us-east-1:111122223333:execution:reconcile:ml-cluster-1"
    trace: list[str] = field(default_factory=list)
    """The states in the order in which they were entered."""
    events: int = 0
    largest: int = 0
    """Bytes of the largest input or output of a task so far."""
    position: Position | None = None
    """The state that was entered last, with the variables at that moment."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def scope(self) -> Mapping[str, Any]:
        """The variables."""
        return self.position.variables if self.position else {}

    @property
    def interpreter(self) -> Interpreter:
        """The interpreter of this execution."""
        about = {"Id": self.arn, "Name": self.arn.rsplit(":", 1)[-1], "StartTime": timestamp(self.moment)}
        return Interpreter(self, {"Execution": about}, self._entered)

    def run(self, machine: Mapping[str, Any], given: Any) -> Ended:
        """Run the machine from its first state to its end."""
        self.events, self.position = 2, None  # its start and its end
        try:
            return Ended(self.interpreter.run(machine, given=given))
        except TaskFailedError as failure:
            return Ended(None, failure.error, failure.cause)

    def _entered(self, position: Position) -> None:
        self.position = position

    def now(self) -> datetime:
        return self.moment

    def wait(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    def jittered(self, seconds: float) -> float:
        return seconds

    def token(self) -> str:
        return f"token-{len(self.trace)}"

    def work(self, task: Task) -> Any:
        if task.token:
            self.note("TaskSubmitted")
        answer = self.answer(task.state, task.resource, task.arguments)
        self.largest = max(self.largest, *(len(json.dumps(data, default=str)) for data in (task.arguments, answer)))
        return answer

    def side_by_side(self, branches: Sequence[Callable[[Host], Any]], at_most: int) -> list[Any]:
        """Run one after the other, whatever may run at a time."""
        assert at_most > 0, "a Map of the product says how many iterations may run at a time"
        return [branch(self) for branch in branches]

    def note(self, kind: str, **details: Any) -> None:
        self.events += 1
        if kind == "EvaluationFailed":
            raise AssertionError(f"{details['error']}: {details['cause']}")
        if kind.endswith("StateEntered"):
            self.trace.append(details["name"])
            assert len(self.trace) <= 10_000, f"does not end: {self.trace[-20:]}"
