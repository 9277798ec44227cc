"""End executions as Step Functions does: at once when stopped, with an event on the bus, their task tokens gone.

moto lets a stopped execution run until its task is over, publishes no events, and forgets the tokens of what ended.
What did not succeed can be redriven (`redrives`).
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.stepfunctions.parser.api import ExecutionStatus, ServiceException
from moto.stepfunctions.parser.asl.utils.encoding import to_json_str
from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication, Execution
from moto.stepfunctions.parser.models import StepFunctionsParserBackend, stepfunctions_parser_backends
from moto.stepfunctions.responses import StepFunctionResponse

from taskgov_embedded.stepfunctions.machine_roles import starting_with_the_key
from taskgov_embedded.stepfunctions.redrives import described, keep_position, redrive_execution, redrives_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from taskgov_embedded.aws_api.aws_requests import AwsRequests
    from taskgov_embedded.eventbridge.bus import Bus
    from taskgov_embedded.timeline import Timeline
    from taskgov_embedded.virtual_time.clock import VirtualClock

SOURCE = "aws.states"
DETAIL_TYPE = "Step Functions Execution Status Change"
WITHOUT_DATA = {"included": False}


class Executions:
    """How executions end. `install` after the interpreter, whose end of an execution it builds on."""

    def __init__(self, bus: Bus, clock: VirtualClock, timeline: Timeline, requests: AwsRequests) -> None:
        self._bus = bus
        self._requests = requests
        self._clock = clock
        self._timeline = timeline
        self.sends_events = True
        """Off: EventBridge delivers these events best effort, so a test may lose all of them."""
        self.includes_data = True
        """Off: as of data that is large. The events of a machine whose data has a key of the customer have none."""
        self._stops_as = ExecutionStatus.ABORTED
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Put the changes in."""
        self._replace(Execution, "stop", self._stop_of(Execution.stop))
        self._replace(StepFunctionResponse, "stop_execution", _with_error_and_cause)
        self._replace(StepFunctionResponse, "redrive_execution", redrive_execution)
        self._replace(
            StepFunctionResponse, "describe_execution", _with_redrives(StepFunctionResponse.describe_execution)
        )
        self._replace(BaseExecutionWorkerCommunication, "terminated", self._terminated())
        starts = starting_with_the_key(StepFunctionsParserBackend.start_execution, self._requests)
        self._replace(StepFunctionsParserBackend, "start_execution", starts)
        for call in ("send_task_success", "send_task_failure", "send_task_heartbeat"):
            own = getattr(StepFunctionsParserBackend, call)
            self._replace(StepFunctionsParserBackend, call, _refusing_the_ended(own))

    def uninstall(self) -> None:
        """Take them out, last first."""
        while self._undo:
            self._undo.pop()()

    def time_out(self, execution_arn: str) -> None:
        """End an execution as Step Functions does when its time (`TimeoutSeconds`) is over."""
        _, _, _, region, account, *_ = execution_arn.split(":")
        execution = stepfunctions_parser_backends[account][region].describe_execution(execution_arn)
        self._stops_as = ExecutionStatus.TIMED_OUT
        try:
            execution.stop(stop_date=utcnow(), error="States.Timeout", cause=None)
        finally:
            self._stops_as = ExecutionStatus.ABORTED

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        before = inspect.getattr_static(owner, name, None)
        setattr(owner, name, value)
        self._undo.append(lambda: delattr(owner, name) if before is None else setattr(owner, name, before))

    def _stop_of(self, own: Callable[..., None]) -> Callable[..., None]:
        def stop(execution: Execution, stop_date: datetime, error: str | None, cause: str | None) -> None:
            if execution.exec_status != ExecutionStatus.RUNNING:
                return
            keep_position(execution)
            if execution.exec_worker is not None and execution.exec_worker.env is not None:
                own(execution, stop_date, error, cause)
            execution.exec_status, execution.stop_date = self._stops_as, stop_date
            execution.error, execution.cause = error, cause
            name = execution.state_machine.name
            self._timeline.add("execution", f"{name} {self._stops_as.value}", arn=execution.exec_arn)
            self._ended(execution)

        return stop

    def _terminated(self) -> Callable[[Any], None]:
        own = BaseExecutionWorkerCommunication.terminated

        def terminated(communication: Any) -> None:
            execution = communication.execution
            is_its_own = execution.exec_worker._execution_communication is communication  # noqa: SLF001 see the module's docstring
            if execution.exec_status != ExecutionStatus.RUNNING or not is_its_own:
                return  # it was stopped before its task was over, and perhaps redriven
            own(communication)
            if execution.exec_status != ExecutionStatus.SUCCEEDED:
                keep_position(execution)
            self._ended(execution)

        return terminated

    def _ended(self, execution: Execution) -> None:
        """Wake whoever still waits for a token of the execution, and say on the bus how it ended."""
        for endpoint in _endpoints(execution):
            endpoint.interrupt_all()
        if self.sends_events:
            arn = str(execution.exec_arn)
            self._bus.publish_if_asked_for(SOURCE, DETAIL_TYPE, self._detail(execution), [arn])

    def _detail(self, execution: Execution) -> dict[str, Any]:
        """Return the detail as the developer guide has it: times in milliseconds, absent data as null."""
        redrives = redrives_of(execution)
        detail = {
            "executionArn": str(execution.exec_arn),
            "stateMachineArn": str(execution.state_machine.arn),
            "name": execution.name,
            "status": str(execution.status),
            "startDate": _milliseconds(execution.start_date),
            "stopDate": _milliseconds(execution.stop_date),
            "redriveCount": redrives.count,
            "redriveDate": _milliseconds(redrives.date) if redrives.date else None,
            "input": None,
            "inputDetails": WITHOUT_DATA,
            "output": None,
            "outputDetails": None,
            "error": None,
            "cause": None,
        }
        if self.includes_data and str(execution.state_machine.arn) not in self._requests.place.kms_keys:
            included = {"included": True}
            data = {"input": execution.execution_input, "error": execution.error, "cause": execution.cause}
            detail |= {**data, "inputDetails": included}
            if execution.exec_status == ExecutionStatus.SUCCEEDED:
                detail |= {"output": to_json_str(execution.output), "outputDetails": included}
        return detail


def _with_error_and_cause(response: Any) -> Any:
    """Stop an execution with the error and the cause that the caller gives; moto drops them."""
    arn = response._get_param("executionArn")  # noqa: SLF001 see the module's docstring
    execution = response.stepfunction_backend.describe_execution(arn)
    error, cause = response._get_param("error"), response._get_param("cause")  # noqa: SLF001 as above
    execution.stop(stop_date=utcnow(), error=error, cause=cause)
    return ActionResult({"stopDate": execution.stop_date})


def _with_redrives(own: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Describe an execution with its redrives, of which moto knows nothing."""

    def describe_execution(response: Any) -> Any:
        answer = own(response)
        execution = response.stepfunction_backend.describe_execution(answer.result["executionArn"])
        answer.result.update(described(execution))
        return answer

    return describe_execution


def _refusing_the_ended(own: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse the token of an execution that has ended, as AWS does: the task does not exist any more."""

    def send(backend: Any, task_token: str, *args: Any, **kwargs: Any) -> Any:
        for execution in backend._get_executions():  # noqa: SLF001 see the module's docstring
            if execution.exec_status != ExecutionStatus.RUNNING and task_token in _tokens(execution):
                raise ServiceException("Task Timed Out: 'Provided task does not exist anymore'", "TaskTimedOut", 400)
        return own(backend, task_token, *args, **kwargs)

    return send


def _tokens(execution: Any) -> Any:
    env = execution.exec_worker.env if execution.exec_worker else None
    return env.callback_pool_manager._pool if env is not None else {}  # noqa: SLF001 see the module's docstring


def _endpoints(execution: Any) -> list[Any]:
    return list(_tokens(execution).values())


def _milliseconds(moment: Any) -> int:
    return int(moment.timestamp() * 1000)
