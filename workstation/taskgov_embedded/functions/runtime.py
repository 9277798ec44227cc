"""Run the real handlers in this process, as Lambda would run them.

A function is what the template says: its directory and layers are importable, it sees its own environment and nothing
else, calls AWS with its role, and has a deadline on the stack's clock. What it prints goes to its log group, embedded
metrics to CloudWatch. `Runtime.invoke` is called for each Invoke of any caller.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import traceback
import uuid
import warnings
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from moto.logs.models import logs_backends

from taskgov_embedded.aws_api.faults import FunctionCrash
from taskgov_embedded.cloudwatch import emf
from taskgov_embedded.functions.process import entered
from taskgov_embedded.functions.versions import Versions, qualifier_of
from taskgov_embedded.functions.warm import LATEST, LambdaContext, Warm, started

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov_embedded.account import Account
    from taskgov_embedded.functions.warm import FunctionSpec

MAX_PAYLOAD = 6 * 1024 * 1024
"""Bytes of a synchronous request or response."""


@dataclass(frozen=True, slots=True)
class Result:
    """What an invocation answered: JSON text, the error flag, and the lines it printed."""

    function: str
    request_id: str
    event: Any
    payload: str
    is_error: bool
    log: tuple[str, ...]
    metrics: tuple[emf.Datum, ...]
    version: str = LATEST

    @property
    def value(self) -> Any:
        """The payload as data."""
        return json.loads(self.payload)


class Runtime:
    """All functions of a stack."""

    def __init__(self, account: Account, shared_packages: tuple[str, ...]) -> None:
        self.results: list[Result] = []
        self._account = account
        self._clock = account.clock
        self._place = account.place
        self._requests = account.requests
        self._shared = shared_packages
        self.versions = Versions(self._start)
        self._invoked: dict[str, int] = {}
        self._holds_up = False

    def _start(self, spec: FunctionSpec, version: str) -> Warm:
        credentials = self._account.identities.assume(spec.role_arn, spec.name)
        return started(spec, version, credentials, self._clock.now, self._place.region, self._shared)

    def hold_up_next(self) -> None:
        """Let the time of the next invocation run out after its handler has done its work, before it answers."""
        self._holds_up = True

    def invoke(self, name_or_arn: str, event: Any) -> Result:
        """Run a handler with an event (data, not text), and keep what it printed."""
        warm = self.versions.reached(name_or_arn)
        warm.count += 1
        number = self._invoked[warm.spec.name] = self._invoked.get(warm.spec.name, 0) + 1
        request_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{warm.spec.name}/{number}"))
        started = self._clock.now
        with entered(warm.sandbox) as invocation:
            payload, is_error = self._run(warm, event, request_id)
            if self._holds_up:
                self._holds_up = False
                time.sleep(warm.spec.timeout_seconds + 1)
        if warm.crashed:
            warm.start_cold()
        if self._clock.now - started > timedelta(seconds=warm.spec.timeout_seconds):
            payload, is_error = _timed_out(warm.spec, request_id), True
        lines = tuple(invocation.output.getvalue().splitlines())
        kept = self._keep(warm, lines)
        result = Result(warm.spec.logical_id, request_id, event, payload, is_error, lines, kept, warm.version)
        self.results.append(result)
        qualifier = None if qualifier_of(name_or_arn) == LATEST else qualifier_of(name_or_arn)
        self._account.metrics.invoked(warm.spec.name, qualifier, warm.version, started, failed=is_error)
        outcome = f"failed: {result.value['errorType']}" if is_error else "ok"
        self._account.timeline.add("invocation", f"{warm.spec.logical_id} {outcome}", result=result)
        return result

    def _run(self, warm: Warm, event: Any, request_id: str) -> tuple[str, bool]:
        # A handler gets its own copy, as over the wire; the answer is text for the same reason.
        text = json.dumps(event)
        if len(text) > MAX_PAYLOAD:
            return _error("RequestTooLarge", f"the event has {len(text)} bytes", request_id), True
        try:
            with warnings.catch_warnings():
                # A warning is a line in the function's log, whatever the process makes of it elsewhere.
                warnings.simplefilter("default")
                warnings.showwarning = _print_warning  # type: ignore[assignment]  # its last two are never given
                answer = self._handler(warm)(json.loads(text), self._context(warm, request_id))
            payload = json.dumps(answer)
        except FunctionCrash:
            warm.crashed = True
            return _crashed(request_id), True
        except Exception as error:  # noqa: BLE001 whatever a handler raises is the function's error
            return _error(type(error).__name__, str(error), request_id, error), True
        if len(payload) > MAX_PAYLOAD:
            message = f"Response payload size exceeded maximum allowed payload size ({MAX_PAYLOAD} bytes)."
            return _error("Function.ResponseSizeTooLarge", message, request_id), True
        return payload, False

    def _handler(self, warm: Warm) -> Callable[[Any, LambdaContext], Any]:
        if warm.handler is None:
            _begin_cold()
            module, _, name = warm.spec.handler.rpartition(".")
            warm.handler = getattr(importlib.import_module(module.replace("/", ".")), name)
        assert warm.handler is not None
        return warm.handler

    def _context(self, warm: Warm, request_id: str) -> LambdaContext:
        return LambdaContext(
            function_name=warm.spec.name,
            function_version=warm.version,
            invoked_function_arn=warm.spec.arn if warm.version == LATEST else f"{warm.spec.arn}:{warm.version}",
            memory_limit_in_mb=str(warm.spec.memory_mb),
            aws_request_id=request_id,
            log_group_name=warm.spec.log_group,
            log_stream_name=warm.log_stream,
            _deadline=self._clock.now + timedelta(seconds=warm.spec.timeout_seconds),
            _clock=self._clock,
        )

    def _keep(self, warm: Warm, lines: tuple[str, ...]) -> tuple[emf.Datum, ...]:
        """Write the lines to the log group if the role may, and the metrics in them to CloudWatch."""
        if warm.spec.traced:
            for action in ("xray:PutTraceSegments", "xray:PutTelemetryRecords"):
                self._requests.allows(warm.spec.role_arn, action, "*")
        if not lines or not self._may_log(warm):
            return ()
        backend = logs_backends[self._place.account][self._place.region]
        backend.ensure_log_group(warm.spec.log_group)
        backend.ensure_log_stream(warm.spec.log_group, warm.log_stream)
        at = int(self._clock.now.timestamp() * 1000)
        events = [{"timestamp": at, "message": line} for line in lines]
        backend.put_log_events(warm.spec.log_group, warm.log_stream, events)
        metrics = tuple(datum for line in lines for datum in emf.parse(line))
        emf.put(metrics, self._place)
        return metrics

    def _may_log(self, warm: Warm) -> bool:
        stream = self._stream_arn(warm)
        creates = warm.count > 1 or self._requests.allows(warm.spec.role_arn, "logs:CreateLogStream", stream)
        return creates and self._requests.allows(warm.spec.role_arn, "logs:PutLogEvents", stream)

    def _stream_arn(self, warm: Warm) -> str:
        return self._place.arn("logs", f"log-group:{warm.spec.log_group}:log-stream:{warm.log_stream}")


def _begin_cold() -> None:
    """Let Powertools, which all functions share here, log the next invocation as the first of its process."""
    powertools = sys.modules.get("aws_lambda_powertools.logging.logger")
    if powertools is not None:
        powertools.is_cold_start = True  # type: ignore[attr-defined]  # of that module


def _print_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_file_and_line: object
) -> None:
    sys.stderr.write(f"{filename}:{lineno}: {category.__name__}: {message}\n")


def _error(kind: str, message: str, request_id: str, error: BaseException | None = None) -> str:
    trace = traceback.format_tb(error.__traceback__) if error else []
    return json.dumps({"errorMessage": message, "errorType": kind, "requestId": request_id, "stackTrace": trace})


def _crashed(request_id: str) -> str:
    message = f"RequestId: {request_id} Error: Runtime exited with error: exit status 1"
    return _error("Runtime.ExitError", message, request_id)


def _timed_out(spec: FunctionSpec, request_id: str) -> str:
    return _error(
        "Sandbox.Timedout",
        f"RequestId: {request_id} Error: Task timed out after {spec.timeout_seconds:.2f} seconds",
        request_id,
    )
