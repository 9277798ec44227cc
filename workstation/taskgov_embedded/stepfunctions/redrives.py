"""Redrive executions as Step Functions does; moto has no RedriveExecution.

A redriven execution keeps its ARN, its history and its variables, and goes on at the state that did not succeed, with
the input and the variables that this state was entered with. Retries begin anew. Inside Map and Parallel nothing is
redriven by itself: the whole state is entered again.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.stepfunctions.parser.api import ExecutionStatus, HistoryEventType, ServiceException
from moto.stepfunctions.parser.asl.component.common.flow.start_at import StartAt
from moto.stepfunctions.parser.asl.eval.event.event_manager import EventHistoryContext

from taskgov_embedded.stepfunctions.expressions import timestamp

if TYPE_CHECKING:
    from datetime import datetime

    from moto.stepfunctions.parser.backend.execution import Execution

DAYS = 14
"""So long after its end an execution can be redriven."""


@dataclass(slots=True)
class Redrives:
    """How often an execution was redriven, when last, and where it goes on if it is redriven again."""

    count: int = 0
    date: datetime | None = None
    state: str | None = None
    """None before the first state was entered."""
    given: Any = None
    variables: dict[str, Any] = field(default_factory=dict)


def redrives_of(execution: Execution) -> Redrives:
    """Return what is known of an execution's redrives; kept with it, as it ends with it."""
    known: Redrives = vars(execution).setdefault("redrives", Redrives())
    return known


def keep_position(execution: Execution) -> None:
    """Keep where an execution is that is about to be stopped, or that did not succeed."""
    env = execution.exec_worker.env if execution.exec_worker else None
    if env is None:
        return
    redrives = redrives_of(execution)
    entered = env.states.context_object.context_object_data.get("State") or {}
    redrives.state = env.next_state_name or entered.get("Name")  # the former while the program still runs
    redrives.given = env.states.get_input()
    redrives.variables = copy.deepcopy(env.variable_store._inner_scope)  # noqa: SLF001 as in `interpreter`


def redrive_execution(response: Any) -> Any:
    """Answer RedriveExecution. Raises ServiceException: ExecutionDoesNotExist, ExecutionNotRedrivable."""
    execution = response.stepfunction_backend.describe_execution(response._get_param("executionArn"))  # noqa: SLF001 as above
    reason = not_redrivable(execution)
    if reason is not None:
        raise ServiceException(f"Execution is not redrivable: {reason}", "ExecutionNotRedrivable", 400)
    redrives, when = redrives_of(execution), utcnow()
    redrives.count, redrives.date = redrives.count + 1, when
    worker = execution._get_start_execution_worker()  # noqa: SLF001 as above
    worker._execution_logic = partial(_go_on, worker, execution.exec_worker, redrives, when)  # noqa: SLF001 as above
    execution.exec_worker = worker
    execution.exec_status, execution.stop_date = ExecutionStatus.RUNNING, None
    execution.error = execution.cause = None
    worker.start()
    return ActionResult({"redriveDate": when})


def not_redrivable(execution: Execution) -> str | None:
    """Return why an execution cannot be redriven, in the words of the API's reference; None when it can."""
    if execution.exec_status in {ExecutionStatus.RUNNING, ExecutionStatus.SUCCEEDED}:
        return f"Execution is {execution.status} and cannot be redriven"
    if execution.stop_date is not None and (utcnow() - execution.stop_date.replace(tzinfo=None)).days >= DAYS:
        return "Execution redrivable period exceeded"
    return None


def described(execution: Execution) -> dict[str, Any]:
    """Return what DescribeExecution says of redrives."""
    redrives, reason = redrives_of(execution), not_redrivable(execution)
    said: dict[str, Any] = {"redriveCount": redrives.count}
    if redrives.date is not None:
        said["redriveDate"] = redrives.date
    if reason is None:
        return said | {"redriveStatus": "REDRIVABLE"}
    return said | {"redriveStatus": "NOT_REDRIVABLE", "redriveStatusReason": reason}


def _go_on(worker: Any, before: Any, redrives: Redrives, when: datetime) -> None:
    """Do what a worker does that starts an execution, from where the one before it ended."""
    program = copy.copy(worker._get_evaluation_entrypoint())  # noqa: SLF001 as above
    env = worker.env = worker._get_evaluation_environment()  # noqa: SLF001 as above
    if before is not None and before.env is not None:
        env.event_manager = before.env.event_manager
        env.event_history_context = EventHistoryContext(before.env.event_history_context.last_published_event_id)
    again = {"RedriveCount": redrives.count, "RedriveTime": timestamp(when)}
    env.states.context_object.context_object_data["Execution"] |= again
    env.event_manager.add_event(
        context=env.event_history_context,
        event_type=HistoryEventType.ExecutionRedriven,
        event_details={"executionRedrivenEventDetails": {"redriveCount": redrives.count}},
    )
    if redrives.state is not None:
        program.start_at = StartAt(redrives.state)
        env.states.reset(redrives.given)
        env.variable_store._inner_scope.update(copy.deepcopy(redrives.variables))  # noqa: SLF001 as above
    program.eval(env)
    worker._execution_communication.terminated()  # noqa: SLF001 as above
