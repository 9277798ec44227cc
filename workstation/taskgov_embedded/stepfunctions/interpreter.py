"""Mend moto's Step Functions interpreter, so that it runs real ASL files on the stack's clock.

Each mend is one small function below, named after what was wrong, and has its own test. They patch private names of
moto: the version is pinned, and a test asserts it. `Interpreter.install` puts them all in, `uninstall` takes them out.
"""

from __future__ import annotations

import inspect
import itertools
import json
import logging
import random
import threading
import types
import uuid
from datetime import datetime
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEvent, FailureEventException
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import StatesErrorNameType
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction
from moto.stepfunctions.parser.asl.eval.event.event_manager import EventManager
from moto.stepfunctions.parser.asl.jsonata import jsonata as moto_jsonata
from moto.stepfunctions.parser.asl.utils.encoding import to_json_str
from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication
from moto.stepfunctions.parser.models import StepFunctionsParserBackend
from moto.stepfunctions.parser.utils import TMP_THREADS

from taskgov_embedded.stepfunctions.expressions import (
    Bound,
    compose,
    declare,
    evaluate_jsonata,
    timestamp,
    with_times_as_text,
)
from taskgov_embedded.virtual_time.cooperative import CooperativeEvent, CooperativeThread, Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov_embedded.aws_api.clients import Clients
    from taskgov_embedded.timeline import Timeline

_ASL = "moto.stepfunctions.parser.asl"
_TASK = f"{_ASL}.component.state.exec.state_task"

MODULES_WITH_THREADS = (
    f"{_ASL}.component.program.program",
    f"{_ASL}.component.state.exec.execute_state",
    f"{_ASL}.component.state.exec.state_map.iteration.inline_iteration_component",
    f"{_ASL}.component.state.exec.state_map.iteration.job",
    f"{_ASL}.component.state.exec.state_parallel.branch_worker",
    f"{_ASL}.component.state.exec.state_parallel.branches_decl",
    f"{_TASK}.service.state_task_service_callback",
    f"{_ASL}.eval.environment",
)
MODULES_WITH_TIME = (f"{_ASL}.component.common.retry.retrier_decl", f"{_TASK}.service.state_task_service_callback")
MODULES_WITH_CLIENTS = (
    f"{_TASK}.lambda_eval_utils",
    f"{_TASK}.service.state_task_service_aws_sdk",
    f"{_TASK}.service.state_task_service_dynamodb",
    f"{_TASK}.service.state_task_service_events",
    f"{_TASK}.service.state_task_service_sfn",
    f"{_TASK}.service.state_task_service_sns",
    f"{_TASK}.service.state_task_service_sqs",
)
SERVICE_ERROR_NAMES = {
    "sagemaker": "SageMaker",
    "eks": "Eks",
    "s3": "S3",
    "sns": "Sns",
    "sqs": "Sqs",
    "eventbridge": "EventBridge",
    "scheduler": "Scheduler",
    "ec2": "Ec2",
    "ssm": "Ssm",
    "lambda": "Lambda",
    "cloudwatch": "CloudWatch",
}
"""How an error of an `aws-sdk` task names its service; moto knows DynamoDb and Sfn only."""


class Interpreter:
    """The mends of one stack."""

    def __init__(self, turns: Turns, clients: Clients, timeline: Timeline) -> None:
        self._turns = turns
        self._clients = clients
        self._timeline = timeline
        self._names: dict[str, int] = {}
        self._uuid_numbers = itertools.count(1)
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Put the mends in."""
        self._put_on_the_clock()
        self._evaluate_jsonata()
        self._call_with_the_machines_role()
        self._name_executions()
        self._name_service_errors()
        self._read_string_literals()
        self._write_times_as_aws()
        self._describe_whole_executions()
        self._name_a_choice_without_match()
        self._jitter_alike()
        self._parse_each_definition_once()
        self._tell_the_timeline()
        self._be_quiet()

    def uninstall(self) -> None:
        """Take them out, last first."""
        while self._undo:
            self._undo.pop()()
        TMP_THREADS.clear()  # moto keeps every thread of every execution, and each keeps its stack

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        before = inspect.getattr_static(owner, name)
        setattr(owner, name, value)
        self._undo.append(lambda: setattr(owner, name, before))

    def _put_on_the_clock(self) -> None:
        """Give the interpreter threads, events and sleeps of the turns instead of real ones."""
        event, thread = partial(CooperativeEvent, self._turns), partial(CooperativeThread, self._turns)
        cooperative = types.SimpleNamespace(Thread=thread, Event=event, Lock=threading.Lock, RLock=threading.RLock)
        for name in MODULES_WITH_THREADS:
            module = import_module(name)
            self._replace(module, "threading", cooperative)
        for name in MODULES_WITH_TIME:
            self._replace(import_module(name), "time", types.SimpleNamespace(sleep=self._turns.sleep))
        self._replace(import_module(f"{_ASL}.component.state.exec.execute_state"), "Thread", thread)
        self._replace(import_module("moto.stepfunctions.parser.backend.execution_worker"), "Thread", thread)
        self._replace(import_module(f"{_ASL}.eval.callback.callback"), "Event", event)

        # moto waits again for what `int(t1 - t0)` rounded away; waits on the clock are exact.
        def wait_interval(_function: Any, env: Any, wait_seconds: float) -> None:
            if wait_seconds > 0:
                env.program_state_event.wait(wait_seconds)

        self._replace(WaitFunction, "_wait_interval", wait_interval)

    def _evaluate_jsonata(self) -> None:
        """Evaluate JSONata with jsonata-python (moto asks a JVM that is not there), and quote declared strings."""
        self._replace(moto_jsonata, "_eval_jsonata", partial(evaluate_jsonata, numbers=self._uuid_numbers))
        # `$` inside a filter or a function is the item at hand; moto refuses it wherever it stands.
        self._replace(moto_jsonata, "_ILLEGAL_VARIABLE_REFERENCES", frozenset())
        functions = import_module(f"{_ASL}.component.intrinsic.jsonata")
        declared = functions._DECLARATION_BY_VARIABLE_REFERENCE  # noqa: SLF001 see the module's docstring
        kept = {name: text for name, text in declared.items() if name not in {"$uuid", "$hash"}}
        self._replace(functions, "_DECLARATION_BY_VARIABLE_REFERENCE", kept)
        for name in ("jsonata.jsonata", "eval.states", "eval.variable_store"):
            self._replace_if_there(import_module(f"{_ASL}.{name}"), "encode_jsonata_variable_declarations", declare)
        strings = import_module(f"{_ASL}.component.common.string.string_expression")
        self._replace(strings, "compose_jsonata_expression", _compose)
        self._check_results_by_the_parsed_expression()
        store = import_module(f"{_ASL}.eval.variable_store").VariableStore
        self._replace(store, "get_variable_declarations", _declare_variables)

    def _check_results_by_the_parsed_expression(self) -> None:
        """Ask what a result is without parsing all values again: moto writes them into another expression."""
        checks = import_module(f"{_ASL}.jsonata.validations")
        refuse_nothing = checks._validate_null_output  # noqa: SLF001 see the module's docstring

        def validate_null(env: Any, expression: str, rich: str) -> None:
            if not (isinstance(rich, Bound) and evaluate_jsonata(rich.inside("$exists"), self._uuid_numbers)):
                refuse_nothing(env, expression, rich)

        self._replace(checks, "_validate_null_output", validate_null)
        # It is only asked of what is a string in Python; that is one in JSONata.
        self._replace(checks, "_validate_string_output", lambda *_: None)

    def _replace_if_there(self, owner: Any, name: str, value: Any) -> None:
        if hasattr(owner, name):
            self._replace(owner, name, value)

    def _call_with_the_machines_role(self) -> None:
        """Sign the calls of a task with the role of its state machine; moto signs them with a made-up key."""
        for name in MODULES_WITH_CLIENTS:
            self._replace(import_module(name), "boto_client_for", self._client)

    def _client(self, region: str, service: str, state_credentials: Any) -> Any:  # noqa: ARG002 moto's signature
        return self._clients.of_role(service, state_credentials.role_arn, "stepfunctions", validate=False)

    def _name_executions(self) -> None:
        """Give an execution that is started without a name one of its own; moto calls them all None."""
        own_start = StepFunctionsParserBackend.start_execution

        def start_execution(
            backend: Any, state_machine_arn: str, name: str | None = None, *args: Any, **kwargs: Any
        ) -> Any:
            if name is None:
                number = self._names[state_machine_arn] = self._names.get(state_machine_arn, 0) + 1
                name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{state_machine_arn}/{number}"))
            return own_start(backend, state_machine_arn, name, *args, **kwargs)

        self._replace(StepFunctionsParserBackend, "start_execution", start_execution)
        # Task tokens, too, are the same in each run.
        self._replace(import_module(f"{_ASL}.eval.states"), "long_uid", self._task_token)

    def _task_token(self) -> str:
        number = self._names["token"] = self._names.get("token", 0) + 1
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"task/{number}"))

    def _name_service_errors(self) -> None:
        """Name the services in errors of `aws-sdk` tasks as Step Functions does."""
        module = import_module(f"{_TASK}.service.state_task_service_aws_sdk")
        known = module._SERVICE_ERROR_NAMES  # noqa: SLF001 see the module's docstring
        self._replace(module, "_SERVICE_ERROR_NAMES", SERVICE_ERROR_NAMES | known)

    def _read_string_literals(self) -> None:
        """Read a string literal as JSON has it; moto leaves the backslashes in."""
        preprocessor = import_module(f"{_ASL}.parse.preprocessor").Preprocessor
        own = preprocessor._inner_string_of  # noqa: SLF001 see the module's docstring

        def inner_string_of(parser_rule_context: Any) -> str | None:
            text: str | None = own(parser_rule_context)
            return text if text is None or "\\" not in text else json.loads(f'"{text}"')

        self._replace(preprocessor, "_inner_string_of", staticmethod(inner_string_of))

    def _write_times_as_aws(self) -> None:
        """Write the context's times with milliseconds and a Z, and those of SDK answers as text."""
        data = import_module(f"{_ASL}.eval.states")
        own_states = data.States.__init__

        def init(states: Any, context: Any) -> None:
            context["Execution"]["StartTime"] = timestamp(context["Execution"]["StartTime"])
            own_states(states, context)

        self._replace(data.States, "__init__", init)
        state_module = import_module(f"{_ASL}.component.state.state")
        own_data = state_module.StateData

        def state_data(**fields: Any) -> Any:
            entered = timestamp(datetime.fromisoformat(fields.pop("EnteredTime")))
            return own_data(EnteredTime=entered, **fields)

        self._replace(state_module, "StateData", state_data)
        aws_sdk = import_module(f"{_TASK}.service.state_task_service_aws_sdk").StateTaskServiceAwsSdk
        own_task = aws_sdk._eval_service_task  # noqa: SLF001 see the module's docstring

        def eval_service_task(task: Any, env: Any, *args: Any, **kwargs: Any) -> None:
            own_task(task, env, *args, **kwargs)
            env.stack.append(with_times_as_text(env.stack.pop()))

        self._replace(aws_sdk, "_eval_service_task", eval_service_task)

    def _describe_whole_executions(self) -> None:
        """Give each execution its end and its output as JSON; moto leaves out the end of one that timed out."""
        responses = import_module("moto.stepfunctions.responses").StepFunctionResponse
        own_describe = responses.describe_execution

        def describe_execution(response: Any) -> Any:
            described = own_describe(response)
            execution = response.stepfunction_backend.describe_execution(described.result["executionArn"])
            if execution.stop_date is not None:
                described.result["stopDate"] = execution.stop_date
            if str(execution.status) == "SUCCEEDED":
                described.result["output"] = to_json_str(execution.output)
            return described

        self._replace(responses, "describe_execution", describe_execution)

    def _name_a_choice_without_match(self) -> None:
        """Fail with States.NoChoiceMatched when no rule of a Choice matches; moto says States.Runtime."""
        choice = import_module(f"{_ASL}.component.state.choice.state_choice").StateChoice
        own_eval = choice._eval_state  # noqa: SLF001 see the module's docstring

        def eval_state(state: Any, env: Any) -> None:
            try:
                own_eval(state, env)
            except RuntimeError as error:
                raise FailureEventException(_no_choice_matched(state, env)) from error

        self._replace(choice, "_eval_state", eval_state)

    def _jitter_alike(self) -> None:
        """Draw the jitter of retries from a seed, so that each run waits alike."""
        module = import_module(f"{_ASL}.component.common.retry.jitter_strategy_decl")
        self._replace(module, "random", random.Random(20261120))  # noqa: S311 no secret

    def _parse_each_definition_once(self) -> None:
        """Keep what has been parsed: it does not change when it runs, and a large machine takes half a second."""
        parser = import_module(f"{_ASL}.parse.asl_parser").AmazonStateLanguageParser
        self._replace(parser, "parse", staticmethod(_parse))

    def _be_quiet(self) -> None:
        """Keep moto from logging each failed state at length: the timeline and the history tell it."""
        logger = logging.getLogger("moto.stepfunctions")
        level = logger.level
        logger.setLevel(logging.CRITICAL)
        self._undo.append(lambda: logger.setLevel(level))

    def _tell_the_timeline(self) -> None:
        """Note each state that is entered and each execution's start and end."""
        own_add, own_end = EventManager.add_event, BaseExecutionWorkerCommunication.terminated
        own_worker_start = import_module("moto.stepfunctions.parser.backend.execution").Execution.start

        worker = import_module("moto.stepfunctions.parser.backend.execution_worker").ExecutionWorker
        own_environment = worker._get_evaluation_environment  # noqa: SLF001 see the module's docstring

        def environment(execution_worker: Any) -> Any:
            made = own_environment(execution_worker)
            made.event_manager.execution_arn = made.states.context_object.context_object_data["Execution"]["Id"]
            return made

        def add_event(manager: Any, *args: Any, **kwargs: Any) -> Any:
            kind, details = str(kwargs.get("event_type")), kwargs.get("event_details") or {}
            entered = details.get("stateEnteredEventDetails")
            if entered is not None:
                self._timeline.add("state", entered["name"], event=kind, execution=manager.execution_arn)
            return own_add(manager, *args, **kwargs)

        def start(execution: Any) -> None:
            self._timeline.add("execution", f"{execution.state_machine.name} started", arn=execution.exec_arn)
            own_worker_start(execution)

        def terminated(communication: Any) -> None:
            own_end(communication)
            execution = communication.execution
            outcome = f"{execution.state_machine.name} {execution.status}"
            error = f": {execution.error}" if execution.error else ""
            self._timeline.add("execution", outcome + error, arn=execution.exec_arn, cause=execution.cause)

        self._replace(worker, "_get_evaluation_environment", environment)
        self._replace(EventManager, "add_event", add_event)
        self._replace(import_module("moto.stepfunctions.parser.backend.execution").Execution, "start", start)
        self._replace(BaseExecutionWorkerCommunication, "terminated", terminated)


_OWN_PARSE = import_module(f"{_ASL}.parse.asl_parser").AmazonStateLanguageParser.parse


def _declare_variables(store: Any) -> str:
    scopes = store._outer_scope | store._inner_scope  # noqa: SLF001 see the module's docstring
    return declare({f"${name}": value for name, value in scopes.items()})


def _compose(final_jsonata_expression: str, variable_declarations_list: list[str]) -> str:
    return compose(final_jsonata_expression, variable_declarations_list)


@lru_cache(maxsize=256)
def _parse(definition: str) -> Any:
    return _OWN_PARSE(definition)


def _no_choice_matched(state: Any, env: Any) -> Any:
    name = StatesErrorName(typ=StatesErrorNameType.StatesNoChoiceMatched)
    cause = f"Failed to transition out of the state '{state.name}': no choice matched."
    details = {"executionFailedEventDetails": {"error": name.error_name, "cause": cause}}
    return FailureEvent(env=env, error_name=name, event_type="ExecutionFailed", event_details=details)
