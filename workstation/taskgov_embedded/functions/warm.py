"""What is a started function? What the template says of it, and the process that waits for its next event."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from taskgov_embedded.functions.process import NO_FILES, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from taskgov_embedded.iam.identity import Credentials
    from taskgov_embedded.virtual_time.clock import VirtualClock

LATEST = "$LATEST"
PURE_PACKAGES = (
    "taskgov.quantities",
    "taskgov.division",
    "taskgov.json_form",
    "taskgov.keys",
    "taskgov.number_text",
    "taskgov.violations",
    "taskgov.errors",
    "taskgov.people",
    "taskgov.findings",
    "taskgov.hyperpod",
    "taskgov.policy",
    "taskgov.scheduling",
    "taskgov.snapshot",
    "taskgov.allocation",
    "taskgov.kueue",
    "taskgov.usage",
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
class Warm:
    """A function that has been started: its sandbox and, once imported, its handler."""

    spec: FunctionSpec
    sandbox: Sandbox
    version: str = LATEST
    handler: Callable[[Any, LambdaContext], Any] | None = None
    count: int = 0
    log_stream: str = ""
    crashed: bool = False

    def start_cold(self) -> None:
        """Drop the state of the process: the next invocation begins with a new one."""
        self.handler, self.sandbox.modules, self.sandbox.session, self.crashed = None, {}, None, False


def started(
    spec: FunctionSpec, version: str, credentials: Credentials, now: datetime, region: str, shared: tuple[str, ...]
) -> Warm:
    """Start a version of a function: with the variables of Lambda and its own, and its role's credentials.

    `shared` are the packages that it takes from the process.
    """
    stream = f"{now:%Y/%m/%d}/[{version}]{uuid.uuid5(uuid.NAMESPACE_URL, spec.name).hex}"
    environment = dict(spec.environment) | {
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
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
    sandbox = Sandbox(environment, (spec.directory, *spec.layers), shared)
    return Warm(spec, sandbox, version, log_stream=stream)
