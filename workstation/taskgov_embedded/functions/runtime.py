"""Run the real handlers in this process, as Lambda would run them.

A function is what the template says: its directory and layers are importable, it sees its own environment and nothing
else, calls AWS with its role, and has a deadline on the stack's clock. What it prints goes to its log group, embedded
metrics to CloudWatch. `Runtime.invoke` is called for each Invoke, whoever makes it.
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
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from moto.logs.models import logs_backends

from taskgov_embedded.aws_api.faults import FunctionCrash
from taskgov_embedded.cloudwatch import emf
from taskgov_embedded.functions.process import NO_FILES, Sandbox, entered
from taskgov_embedded.functions.versions import LATEST, Alias, name_of, qualifier_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import ModuleType

    from taskgov_embedded.aws_api.aws_requests import AwsRequests
    from taskgov_embedded.iam.identity import Identities
    from taskgov_embedded.place import Place
    from taskgov_embedded.timeline import Timeline
    from taskgov_embedded.virtual_time.clock import VirtualClock

MAX_PAYLOAD = 6 * 1024 * 1024
"""Bytes of a synchronous request or response."""

PURE_PACKAGES = (
    "taskgov.quantities",
    "taskgov.violations",
    "taskgov.errors",
    "taskgov.findings",
    "taskgov.hyperpod",
    "taskgov.policy",
    "taskgov.scheduling",
    "taskgov.snapshot",
    "taskgov.allocation",
    "taskgov.kueue",
    "taskgov.audit",
    "taskgov.contracts",
    "taskgov.ports",
    "taskgov.services",
)
"""Packages of the layer that hold no state of a function (they read no environment): one copy serves all functions."""


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A function as the template makes it; `log_group` is where its output goes."""

    logical_id: str
    name: str
    arn: str
    role_arn: str
    handler: str
    directory: Path
    layers: tuple[Path, ...]
    environment: Mapping[str, str]
    timeout_seconds: int
    memory_mb: int
    log_group: str
    traced: bool


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


@dataclass(slots=True)
class LambdaContext:
    """The second argument of a handler."""

    function_name: str
    function_version: str
    invoked_function_arn: str
    memory_limit_in_mb: str
    aws_request_id: str
    log_group_name: str
    log_stream_name: str
    _deadline: datetime
    _clock: VirtualClock
    identity: None = None
    client_context: None = None
    tenant_id: None = None

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the function may still run."""
        return max(0, int((self._deadline - self._clock.now) / timedelta(milliseconds=1)))


@dataclass(slots=True)
class _Warm:
    """A function that has been started: its sandbox and, once imported, its handler."""

    spec: FunctionSpec
    sandbox: Sandbox
    version: str = LATEST
    handler: Callable[[Any, LambdaContext], Any] | None = None
    count: int = 0
    log_stream: str = ""
    crashed: bool = False

    def start_cold(self) -> None:
        """Forget what the process knew: the next invocation begins with a new one."""
        self.handler, self.sandbox.modules, self.sandbox.session, self.crashed = None, {}, None, False


class Runtime:
    """All functions of a stack."""

    def __init__(
        self,
        place: Place,
        clock: VirtualClock,
        identities: Identities,
        requests: AwsRequests,
        timeline: Timeline,
        shared_packages: tuple[str, ...],
    ) -> None:
        self.results: list[Result] = []
        self._place = place
        self._clock = clock
        self._identities = identities
        self._requests = requests
        self._timeline = timeline
        self._shared = shared_packages
        self._functions: dict[str, _Warm] = {}
        self._published: dict[tuple[str, str], _Warm] = {}
        self._aliases: dict[tuple[str, str], Alias] = {}
        self._invoked: dict[str, int] = {}
        self._holds_up = False

    def add(self, spec: FunctionSpec) -> None:
        """Take a function in, or its new code and settings; published versions stay what they are."""
        self._functions[spec.name] = self._started(spec, LATEST)

    def publish(self, name: str, version: str) -> None:
        """Keep a function as it is now, under a number."""
        if (name, version) not in self._published:
            self._published[name, version] = self._started(self._functions[name].spec, version)

    def alias(self, name: str, alias: str) -> Alias | None:
        """Return where an alias points."""
        return self._aliases.get((name, alias))

    def point(self, name: str, alias: str, version: str, weights: Mapping[str, float] | None = None) -> None:
        """Let an alias point to a version, and a part of its calls to others."""
        for one in (version, *(weights or {})):
            assert (name, one) in self._published, f"{name} has no version {one}"
        self._aliases[name, alias] = Alias(version, dict(weights or {}))

    def remove_all(self) -> None:
        """Forget every function."""
        for known in (self._functions, self._published, self._aliases):
            known.clear()

    def _started(self, spec: FunctionSpec, version: str) -> _Warm:
        credentials = self._identities.assume(spec.role_arn, spec.name)
        stream = f"{self._clock.now:%Y/%m/%d}/[{version}]{uuid.uuid5(uuid.NAMESPACE_URL, spec.name).hex}"
        environment = dict(spec.environment) | {
            "AWS_REGION": self._place.region,
            "AWS_DEFAULT_REGION": self._place.region,
            "AWS_ACCESS_KEY_ID": credentials.access_key,
            "AWS_SECRET_ACCESS_KEY": credentials.secret_key,
            "AWS_SESSION_TOKEN": credentials.token,
            "AWS_LAMBDA_FUNCTION_NAME": spec.name,
            "AWS_LAMBDA_FUNCTION_VERSION": version,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(spec.memory_mb),
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_LAMBDA_LOG_GROUP_NAME": spec.log_group,
            "AWS_LAMBDA_LOG_STREAM_NAME": stream,
            "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
            **NO_FILES,
            "_HANDLER": spec.handler,
            "TZ": ":UTC",
            "LANG": "en_US.UTF-8",
            "PATH": "/var/lang/bin:/usr/local/bin:/usr/bin:/bin",
        }
        sandbox = Sandbox(environment, (spec.directory, *spec.layers), self._shared)
        return _Warm(spec, sandbox, version, log_stream=stream)

    def spec(self, name_or_arn: str) -> FunctionSpec | None:
        """Return the function of a name, an ARN, or either with a qualifier that it has."""
        warm = self._functions.get(name_of(name_or_arn))
        return warm.spec if warm and self._has(name_or_arn) else None

    def _has(self, name_or_arn: str) -> bool:
        key = (name_of(name_or_arn), qualifier_of(name_or_arn))
        return key[1] == LATEST or key in self._published or key in self._aliases

    def _reached(self, name_or_arn: str) -> _Warm:
        """Return the code that a call reaches; an alias that is being moved gives its calls to two versions."""
        name, qualifier = name_of(name_or_arn), qualifier_of(name_or_arn)
        alias = self._aliases.get((name, qualifier))
        version = alias.next_version() if alias else qualifier
        return self._functions[name] if version == LATEST else self._published[name, version]

    def modules(self, logical_id: str, name: str) -> list[ModuleType]:
        """Return a module as each warm version of a function has imported it."""
        every = (*self._functions.values(), *self._published.values())
        mine = [warm.sandbox.modules for warm in every if warm.spec.logical_id == logical_id]
        return [modules[name] for modules in mine if name in modules]

    def specs(self) -> tuple[FunctionSpec, ...]:
        """Return every function, in the template's order."""
        return tuple(warm.spec for warm in self._functions.values())

    def hold_up_next(self) -> None:
        """Let the time of the next invocation run out after its handler has done its work, before it answers."""
        self._holds_up = True

    def invoke(self, name_or_arn: str, event: Any) -> Result:
        """Run a handler with an event (data, not text), and keep what it printed."""
        warm = self._reached(name_or_arn)
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
        outcome = f"failed: {result.value['errorType']}" if is_error else "ok"
        self._timeline.add("invocation", f"{warm.spec.logical_id} {outcome}", result=result)
        return result

    def _run(self, warm: _Warm, event: Any, request_id: str) -> tuple[str, bool]:
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

    def _handler(self, warm: _Warm) -> Callable[[Any, LambdaContext], Any]:
        if warm.handler is None:
            module, _, name = warm.spec.handler.rpartition(".")
            warm.handler = getattr(importlib.import_module(module.replace("/", ".")), name)
        assert warm.handler is not None
        return warm.handler

    def _context(self, warm: _Warm, request_id: str) -> LambdaContext:
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

    def _keep(self, warm: _Warm, lines: tuple[str, ...]) -> tuple[emf.Datum, ...]:
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

    def _may_log(self, warm: _Warm) -> bool:
        group, stream = self._place.arn("logs", f"log-group:{warm.spec.log_group}:*"), self._stream_arn(warm)
        creates = warm.count > 1 or self._requests.allows(warm.spec.role_arn, "logs:CreateLogStream", group)
        return creates and self._requests.allows(warm.spec.role_arn, "logs:PutLogEvents", stream)

    def _stream_arn(self, warm: _Warm) -> str:
        return self._place.arn("logs", f"log-group:{warm.spec.log_group}:log-stream:{warm.log_stream}")


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
