"""Answer the calls of Step Functions that start, end, redrive and describe executions, and say on the bus how they end.

State machines themselves are moto's; their definitions are checked when they are made or changed. Of an execution of an
Express machine no trace is left afterwards: no call describes it, and EventBridge has no event of it.
"""

from __future__ import annotations

import json
import random
import re
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

from moto.core.exceptions import ServiceException
from moto.stepfunctions.models import stepfunctions_backends

from taskgov_embedded.aws_api.wire import AwsError
from taskgov_embedded.iam.conditions import OF_MACHINE
from taskgov_embedded.stepfunctions import definitions
from taskgov_embedded.stepfunctions.execution import (
    ABORTED,
    FAILED,
    MOST_EXPRESS_SECONDS,
    RUNNING,
    SUCCEEDED,
    TIMED_OUT,
    Execution,
    Machine,
    Run,
    Shared,
)
from taskgov_embedded.stepfunctions.host import TaskFailedError
from taskgov_embedded.stepfunctions.interpreter import TIMEOUT
from taskgov_embedded.stepfunctions.machine_roles import ENCRYPTION
from taskgov_embedded.stepfunctions.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.eventbridge.bus import Bus
    from taskgov_embedded.stepfunctions.host import Position
    from taskgov_embedded.virtual_time.clock import Timer

SOURCE = "aws.states"
DETAIL_TYPE = "Step Functions Execution Status Change"
EXPRESS = "EXPRESS"
WITHOUT_DATA = {"included": False}
_JITTER_SEED = 20261120
_NOT_IN_NAME = re.compile(r"[\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]")
"""What the name of an execution cannot have (API reference, StartExecution)."""


class Executions:
    """All executions of one account."""

    def __init__(self, account: Account, bus: Bus) -> None:
        self._account = account
        self._bus = bus
        self.sends_events = True
        """Off: EventBridge delivers these events best effort, so a test may lose all of them."""
        self.includes_data = True
        """Off: as of data that is large. The events of a machine whose data has a key of the customer have none."""
        self._executions: dict[str, Execution] = {}
        self._runs: dict[str, tuple[Run, Timer | None]] = {}
        self._shared = Shared(account, Tokens(account.requests), random.Random(_JITTER_SEED))  # noqa: S311 no secret
        self._names: dict[str, int] = {}
        for operation, handler in {
            "CreateStateMachine": _checked,
            "UpdateStateMachine": _checked,
            "StartExecution": self._start,
            "StopExecution": self._stop,
            "RedriveExecution": self._redrive,
            "DescribeExecution": self._describe,
            "ListExecutions": self._list,
            "GetExecutionHistory": self._history,
        }.items():
            account.requests.answer("stepfunctions", operation, handler)

    def time_out(self, execution_arn: str) -> None:
        """End an execution as Step Functions does when its time (`TimeoutSeconds`) is over."""
        self._interrupt(self._execution(execution_arn), TIMED_OUT, TIMEOUT, None)

    def running(self, machine_arn: str) -> int:
        """Return how many executions of a machine have not ended."""
        return sum(found.status == RUNNING for found in self._executions.values() if found.machine.arn == machine_arn)

    def _start(self, call: Call) -> Mapping[str, Any]:
        machine = self._machine(call.params["stateMachineArn"])
        self._may_use_its_key(machine)
        name, given = call.params.get("name") or self._next_name(machine), call.params.get("input") or "{}"
        if _NOT_IN_NAME.search(name):
            raise AwsError("InvalidName", f"Invalid Name: '{name}'")
        try:
            json.loads(given)
        except json.JSONDecodeError as error:
            raise AwsError("InvalidExecutionInput", f"Invalid State Machine Execution Input: '{error}'") from error
        arn = f"{machine.arn.replace(':stateMachine:', ':execution:')}:{name}"
        if machine.is_express:  # each start is an execution of its own, whatever its name
            arn = f"{machine.arn.replace(':stateMachine:', ':express:')}:{name}:{self._next_name(machine)}"
        known = self._executions.get(arn)
        if known is not None and (known.status, known.given) != (RUNNING, given):
            raise AwsError("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'")
        if known is None:
            known = self._executions[arn] = Execution(arn, name, machine, given, self._now())
            known.history.add(
                known.started, "ExecutionStarted", {"input": json.loads(given), "roleArn": machine.role_arn}
            )
            self._account.timeline.add("execution", f"{machine.name} started", arn=arn)
            self._count("Started", machine)
            self._run(known, None)
        return {"executionArn": arn, "startDate": known.started}

    def _stop(self, call: Call) -> Mapping[str, Any]:
        execution = self._execution(call.params["executionArn"])
        self._interrupt(execution, ABORTED, call.params.get("error"), call.params.get("cause"))
        return {"stopDate": execution.stopped}

    def _redrive(self, call: Call) -> Mapping[str, Any]:
        """Continue at the state that did not succeed, with its input and variables; retries start again.

        Inside Map and Parallel nothing is redriven by itself: the whole state is entered again.
        """
        execution = self._execution(call.params["executionArn"])
        reason = execution.not_redrivable(self._now())
        if reason is not None:
            raise AwsError("ExecutionNotRedrivable", f"Execution is not redrivable: {reason}")
        execution.redrives, execution.redriven = execution.redrives + 1, self._now()
        execution.status, execution.stopped = RUNNING, None
        execution.error = execution.cause = None
        execution.history.add(self._now(), "ExecutionRedriven", {"redriveCount": execution.redrives})
        self._run(execution, execution.position)
        return {"redriveDate": execution.redriven}

    def _describe(self, call: Call) -> Mapping[str, Any]:
        execution = self._execution(call.params["executionArn"])
        reason = execution.not_redrivable(self._now())
        more = {
            "error": execution.error,
            "cause": execution.cause,
            "output": execution.output,
            "redriveDate": execution.redriven,
            "redriveStatusReason": reason,
        }
        return {
            **execution.listed(),
            "input": execution.given,
            "redriveStatus": "NOT_REDRIVABLE" if reason else "REDRIVABLE",
        } | {name: value for name, value in more.items() if value is not None}

    def _list(self, call: Call) -> Mapping[str, Any]:
        """List a machine's executions, newest first."""
        machine = self._machine(call.params["stateMachineArn"])
        if machine.is_express:
            raise AwsError("StateMachineTypeNotSupported", "No list of executions for this type")
        wanted = call.params.get("statusFilter")
        found = [
            execution
            for execution in self._executions.values()
            if execution.machine.arn == machine.arn and wanted in {None, execution.status}
        ]
        found.sort(key=lambda execution: execution.started, reverse=True)
        start, size = int(call.params.get("nextToken", 0)), int(call.params.get("maxResults", 0)) or 100
        more = {"nextToken": str(start + size)} if start + size < len(found) else {}
        return {"executions": [execution.listed() for execution in found[start : start + size]]} | more

    def _history(self, call: Call) -> Mapping[str, Any]:
        """Give the whole history at once."""
        events = self._execution(call.params["executionArn"]).history.written()
        return {"events": events[::-1] if call.params.get("reverseOrder") else events}

    # What they work on

    def _now(self) -> datetime:
        return self._account.clock.now

    def _execution(self, arn: str) -> Execution:
        if ":express:" in arn:
            raise AwsError("InvalidArn", f"Invalid Arn: 'Resource type not valid in this context: {arn}'")
        if arn not in self._executions:
            raise AwsError("ExecutionDoesNotExist", f"Execution Does Not Exist: '{arn}'")
        return self._executions[arn]

    def _machine(self, arn: str) -> Machine:
        place = self._account.place
        try:
            found = stepfunctions_backends[place.account][place.region].describe_state_machine(arn)
        except ServiceException as error:
            raise AwsError(error.code, error.message) from error
        is_express = found.type == EXPRESS
        return Machine(found.arn, found.name, found.roleArn, json.loads(found.definition), is_express)

    def _next_name(self, machine: Machine) -> str:
        """Name an execution that is started without a name, alike in each run of a stack."""
        number = self._names[machine.arn] = self._names.get(machine.arn, 0) + 1
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{machine.arn}/{number}"))

    def _may_use_its_key(self, machine: Machine) -> None:
        """Refuse an execution whose data has a key that the machine's role may not use. Raises AwsError."""
        key = self._account.place.kms_keys.get(machine.arn)
        for action in ENCRYPTION if key else ():
            if not self._account.requests.allows(machine.role_arn, action, str(key), {OF_MACHINE: machine.arn}):
                raise AwsError("KmsAccessDeniedException", f"{machine.role_arn} may not {action} on {key}")

    # How they run and end

    def _run(self, execution: Execution, start: Position | None) -> None:
        run, timer = Run(execution, self._shared), None
        seconds = execution.machine.definition.get("TimeoutSeconds")
        if execution.machine.is_express:
            seconds = min(seconds or MOST_EXPRESS_SECONDS, MOST_EXPRESS_SECONDS)
        if seconds is not None:
            timer = self._account.clock.after(seconds, partial(self._interrupt, execution, TIMED_OUT, TIMEOUT, None))
        self._runs[execution.arn] = (run, timer)

        def go() -> None:
            try:
                output = json.dumps(run.interpret(start))
            except TaskFailedError as failure:
                self._end(execution, FAILED, failure.error, failure.cause)
            else:
                execution.output = output
                self._end(execution, SUCCEEDED, None, None)

        self._account.turns.spawn(go, execution.arn)

    def _interrupt(self, execution: Execution, status: str, error: str | None, cause: str | None) -> None:
        """End an execution at once, if it still runs: what it waits for is nobody's concern any more."""
        if execution.status == RUNNING:
            self._runs[execution.arn][0].end()
            self._end(execution, status, error, cause)

    def _end(self, execution: Execution, status: str, error: str | None, cause: str | None) -> None:
        timer = self._runs.pop(execution.arn)[1]
        if timer is not None:
            timer.cancel()
        execution.status, execution.stopped = status, self._now()
        execution.error, execution.cause = error, cause
        succeeded = {"output": json.loads(execution.output or "null")}
        about = succeeded if status == SUCCEEDED else {"error": error, "cause": cause}
        execution.history.add(self._now(), f"Execution{_EVENTS[status]}", about)
        told = f"{execution.machine.name} {status}" + (f": {error}" if error and status == FAILED else "")
        self._account.timeline.add("execution", told, arn=execution.arn, cause=cause)
        self._count(_EVENTS[status], execution.machine)
        if self.sends_events and not execution.machine.is_express:
            self._bus.publish_if_asked_for(SOURCE, DETAIL_TYPE, self._detail(execution), [execution.arn])

    def _count(self, ended: str, machine: Machine) -> None:
        self._account.metrics.count("AWS/States", f"Executions{ended}", StateMachineArn=machine.arn)

    def _detail(self, execution: Execution) -> dict[str, Any]:
        """Return the detail as the developer guide has it: times in milliseconds, absent data as null."""
        detail = {
            "executionArn": execution.arn,
            "stateMachineArn": execution.machine.arn,
            "name": execution.name,
            "status": execution.status,
            "startDate": _milliseconds(execution.started),
            "stopDate": _milliseconds(execution.stopped),
            "redriveCount": execution.redrives,
            "redriveDate": _milliseconds(execution.redriven),
            "input": None,
            "inputDetails": WITHOUT_DATA,
            "output": None,
            "outputDetails": None,
            "error": None,
            "cause": None,
        }
        if self.includes_data and execution.machine.arn not in self._account.place.kms_keys:
            included = {"included": True}
            detail |= {"input": execution.given, "error": execution.error, "cause": execution.cause}
            detail |= {"inputDetails": included}
            if execution.status == SUCCEEDED:
                detail |= {"output": execution.output, "outputDetails": included}
        return detail


_EVENTS = {SUCCEEDED: "Succeeded", FAILED: "Failed", ABORTED: "Aborted", TIMED_OUT: "TimedOut"}


def _checked(call: Call) -> None:
    """Refuse a definition that Step Functions would refuse, or that is not run here; all else of the call is moto's."""
    if "definition" not in call.params:
        return
    text = call.params["definition"]
    if call.params.get("type") == EXPRESS and ".waitForTaskToken" in text:
        raise AwsError("InvalidDefinition", "Invalid State Machine Definition: 'Express waits for no task token'")
    try:
        definitions.check(call.params.get("name", "the definition"), json.loads(text))
    except ValueError as error:
        raise AwsError("InvalidDefinition", f"Invalid State Machine Definition: '{error}'") from error


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)
