"""One execution of a state machine in the embedded stack: a host of the interpreter whose time is the stack's.

An execution runs in a cooperative thread, each branch of a Map or a Parallel in one of its own, and each call of a task
too, because it may take longer than the task may. What is ended while it waits goes no further.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from taskgov_embedded.stepfunctions import tasks
from taskgov_embedded.stepfunctions.expressions import timestamp
from taskgov_embedded.stepfunctions.history import History
from taskgov_embedded.stepfunctions.host import Host, Task, TaskFailedError
from taskgov_embedded.stepfunctions.interpreter import RUNTIME, TIMEOUT, Interpreter
from taskgov_embedded.stepfunctions.tokens import Token
from taskgov_embedded.virtual_time.cooperative import CooperativeEvent, TaskCancelledError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from taskgov_embedded.account import Account
    from taskgov_embedded.stepfunctions.host import Position
    from taskgov_embedded.stepfunctions.tokens import Tokens

RUNNING, SUCCEEDED, FAILED = "RUNNING", "SUCCEEDED", "FAILED"
ABORTED, TIMED_OUT = "ABORTED", "TIMED_OUT"
MOST_EVENTS = 25_000
"""So many events the history of an execution can have (Developer Guide, "Service quotas")."""
MOST_EXPRESS_SECONDS = 300
"""So long an execution of an Express machine may last; its history has no limit (the same page)."""
REDRIVABLE_DAYS = 14
"""So long after its end an execution can be redriven."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A state machine as it was when an execution began."""

    arn: str
    name: str
    role_arn: str
    definition: Mapping[str, Any]
    is_express: bool = False


@dataclass(slots=True, eq=False)
class Execution:
    """What the API returns of an execution."""

    arn: str
    name: str
    machine: Machine
    given: str
    """Its input, as JSON."""
    started: datetime
    status: str = RUNNING
    stopped: datetime | None = None
    output: str | None = None
    error: str | None = None
    cause: str | None = None
    history: History = field(default_factory=History)
    redrives: int = 0
    redriven: datetime | None = None
    position: Position | None = None
    """The state that was entered last: a redriven execution continues there."""

    def context(self) -> dict[str, Any]:
        """Return what `$states.context` says of an execution in all of its states."""
        again = {"RedriveCount": self.redrives, "RedriveTime": timestamp(self.redriven)} if self.redriven else {}
        own = {
            "Id": self.arn,
            "Name": self.name,
            "Input": json.loads(self.given),
            "RoleArn": self.machine.role_arn,
            "StartTime": timestamp(self.started),
        }
        return {"Execution": own | again, "StateMachine": {"Id": self.machine.arn, "Name": self.machine.name}}

    def listed(self) -> dict[str, Any]:
        """Return what ListExecutions says of it."""
        ended = {} if self.stopped is None else {"stopDate": self.stopped}
        return {
            "executionArn": self.arn,
            "stateMachineArn": self.machine.arn,
            "name": self.name,
            "status": self.status,
            "startDate": self.started,
            "redriveCount": self.redrives,
        } | ended

    def not_redrivable(self, now: datetime) -> str | None:
        """Return why an execution cannot be redriven, in the words of the API's reference; None when it can."""
        if self.status in {RUNNING, SUCCEEDED}:
            return f"Execution is {self.status} and cannot be redriven"
        if self.stopped is not None and now - self.stopped >= timedelta(days=REDRIVABLE_DAYS):
            return "Execution redrivable period exceeded"
        return None


@dataclass(slots=True)
class Shared:
    """What all executions of a stack share: each run of the same stack draws the same numbers."""

    account: Account
    tokens: Tokens
    jitter: random.Random
    numbers: Iterator[int] = field(default_factory=itertools.count)


class Run(Host):
    """One go of an execution, or of one branch: from its start, or a redrive, to its end."""

    def __init__(self, execution: Execution, shared: Shared) -> None:
        self._shared = shared
        self.numbers = shared.numbers
        self._execution = execution
        self._turns = shared.account.turns
        self._is_over = False
        self._waits: set[CooperativeEvent] = set()
        self._branches: list[Run] = []

    def interpret(self, start: Position | None) -> Any:
        """Run the machine; return its output. Raises TaskFailedError."""
        execution = self._execution

        def entered(position: Position) -> None:
            execution.position = position

        interpreter = Interpreter(self, execution.context(), entered)
        return interpreter.run(execution.machine.definition, start, json.loads(execution.given))

    def end(self) -> None:
        """Go no further: waiting callers stop there."""
        self._is_over = True
        for branch in self._branches:
            branch.end()
        for event in self._waits:
            event.set()

    # What the interpreter requests

    def now(self) -> datetime:
        """Return the present moment of the stack."""
        return self._turns.clock.now

    def wait(self, seconds: float) -> None:
        """Let time of the stack pass."""
        self._await(CooperativeEvent(self._turns), seconds)

    def jittered(self, seconds: float) -> float:
        """Draw a back-off, alike in each run of a stack."""
        return self._shared.jitter.uniform(0, seconds)

    def token(self) -> str:
        """Make a token that the API will know."""
        return self._shared.tokens.add(Token(CooperativeEvent(self._turns), lambda: not self._is_over))

    def note(self, kind: str, **details: Any) -> None:
        """Keep an event; a state that is entered is on the timeline, too."""
        self._execution.history.add(self.now(), kind, details)
        if kind.endswith("StateEntered"):
            self._shared.account.timeline.add("state", details["name"], event=kind, execution=self._execution.arn)
            self._go_on_unless_over()
            if len(self._execution.history) >= MOST_EVENTS and not self._execution.machine.is_express:
                raise TaskFailedError(RUNTIME, f"The execution reached {MOST_EVENTS} events of its history.")

    def side_by_side(self, branches: Sequence[Callable[[Host], Any]], at_most: int) -> list[Any]:
        """Run branches in threads of their own; when one fails, the others end where they wait."""
        results: list[Any] = [None] * len(branches)
        failures: list[TaskFailedError] = []
        left = iter(enumerate(branches))
        over = CooperativeEvent(self._turns)
        runs = [Run(self._execution, self._shared) for _ in range(min(at_most or len(branches), len(branches)))]
        working = list(runs)
        self._branches += runs

        def work(run: Run) -> None:
            try:
                for index, branch in left:
                    results[index] = branch(run)
            except TaskFailedError as failure:
                failures.append(failure)
                over.set()
            working.remove(run)
            if not working:
                over.set()

        for run in runs:
            self._turns.spawn(partial(work, run), f"branch of {self._execution.name}")
        if runs:
            self._await(over, None)
        for run in runs:
            run.end()
            self._branches.remove(run)
        if failures:
            raise failures[0]
        return results

    def work(self, task: Task) -> Any:
        """Call a service, and wait for the token of a task that has one. Raises TaskFailedError."""
        started = self.now()
        result = self._call(task)
        if task.token is None:
            return result
        token = self._shared.tokens[task.token]
        self.note("TaskSubmitted", **task.about, output=result)
        try:
            self._await_answer(task, token, started)
        finally:
            token.is_answered = True  # by its failure, if by nothing else
        if token.failure is not None:
            raise token.failure
        return token.result

    def _call(self, task: Task) -> Any:
        done, ended = CooperativeEvent(self._turns), []

        def call() -> None:
            try:
                ended.append(tasks.work(task, self._shared.account.clients, self._execution.machine.role_arn))
            except TaskFailedError as failure:
                ended.append(failure)
            done.set()

        self._turns.spawn(call, f"task {task.state}")
        if not self._await(done, task.timeout_seconds):
            raise TaskFailedError(TIMEOUT)
        if isinstance(ended[0], TaskFailedError):
            raise ended[0]
        return ended[0]

    def _await_answer(self, task: Task, token: Token, started: datetime) -> None:
        """Wait until the token comes back, as long as the task has time and its heart beats."""
        while not token.is_answered:
            seconds = task.heartbeat_seconds
            if task.timeout_seconds is not None:
                left = task.timeout_seconds - (self.now() - started).total_seconds()
                seconds = left if seconds is None else min(seconds, left)
            if not self._await(token.event, seconds):
                raise TaskFailedError(TIMEOUT)
            token.event.clear()

    def _await(self, event: CooperativeEvent, seconds: float | None) -> bool:
        """Wait for an event; False when `seconds` have passed without it."""
        self._go_on_unless_over()
        self._waits.add(event)
        happened = event.wait(seconds)
        self._waits.discard(event)
        self._go_on_unless_over()
        return happened

    def _go_on_unless_over(self) -> None:
        if self._is_over:
            raise TaskCancelledError(self._execution.arn)
