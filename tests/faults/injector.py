"""Watch every call that goes out, and let each fault strike at its site.

AWS calls and deliveries come by `Faults.chooser`; calls of Kubernetes by urllib3, which nothing else uses here.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Self

from botocore.exceptions import ReadTimeoutError
from urllib3 import HTTPResponse
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import ReadTimeoutError as KubernetesTimeoutError

from taskgov_embedded.aws_api.faults import Fault, FunctionCrash
from taskgov_embedded.functions import process
from tests.faults.scenario import OUTAGE_SECONDS
from tests.faults.sites import KUBERNETES, MACHINE, STATES, Call, Cell, Kind, conflict_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from taskgov_embedded.stack import Stack
    from taskgov_embedded.timeline import Moment

TIMES_UNTIL_A_CLIENT_GIVES_UP: Final = 4
"""As many tries as the functions' clients make: a fault that lasts so long reaches the function."""
TRIES_OF_A_STATE: Final = 4
"""As often as a state calls a function that runs out of time: the state fails."""
FOR_EVER: Final = 10**9
LATE_SECONDS: Final = 200.0
"""Later than a function may run (120 s) and a Task waits (90 or 180 s), so that a retry overtakes the call."""
THROTTLED: Final = {
    "dynamodb": "ProvisionedThroughputExceededException",
    "lambda": "TooManyRequestsException",
    "s3": "SlowDown",
    "sns": "Throttled",
}
REFUSED: Final = {
    Kind.LIMIT_REACHED: "ResourceLimitExceeded",
    Kind.INVALID: "ValidationException",
    Kind.NOT_FOUND: "ResourceNotFound",
    Kind.DENIED: "AccessDeniedException",
}
SETTLING_SECONDS: Final = {Kind.SETTLES_SLOWLY: 300.0, Kind.SETTLES_VERY_SLOWLY: 1200.0}
LIST_SECONDS: Final = {Kind.LATE_LISTS: 30.0, Kind.VERY_LATE_LISTS: 300.0}
"""From the call on that is struck, until the fault is over."""
FAILED: Final = {"lambda": "ServiceException", "dynamodb": "InternalServerError", "s3": "InternalError"}
MARK: Final = Call("PublishUsageRole", "dynamodb", "PutItem", conditional=True)
_RUN_OF_MARK: Final = re.compile(r"\bend-of-run/([^/]+)/")
_MARK_OF_PREEMPTION: Final = re.compile(r"ONCE#[0-9a-f]{8}-[0-9a-f-]{27}#")
"""Of the workload's uid and the moment (`Preemption.identity`)."""
_ROLE = re.compile(r"^.*?-(\w+Role)-\w+$")
_PLUMBING = frozenset({"sqs", "logs"})
"""What Lambda does by itself to poll queues and keep logs: no function or state machine makes these calls."""

Edit = "Callable[[], None]"


class Injector:
    """Put it on with `with`; `seen` has every call so far, `struck` says how often each fault has struck.

    `counted_again` has the ids of runs whose function ended when it had printed the run's metrics, and before it could
    keep that it has: nobody can know then that they were counted. `counted_elsewhere` is how many preemptions another
    function counted first, as a conflict of their marks says.
    """

    def __init__(self, stack: Stack, cells: Iterable[Cell] = (), edit: Callable[[], None] | None = None) -> None:
        self.seen: list[Call] = []
        self.struck: Counter[Cell] = Counter()
        self.counted_again: set[str] = set()
        self.counted_elsewhere = 0
        self._stack = stack
        self._cells = tuple(cells)
        self._edit = edit
        self._counted: Counter[Call] = Counter()
        self._since: dict[Cell, float] = {}
        self._busy = False
        self._own: Any = None

    def __enter__(self) -> Self:
        self._stack.faults.chooser = self._choose
        self._stack.timeline.listeners.append(self._enter_state)
        self._own = own = HTTPConnectionPool._make_request

        def make_request(pool: Any, conn: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
            answer = self._ask_kubernetes(pool, method, url)
            return own(pool, conn, method, url, *args, **kwargs) if answer is None else answer

        HTTPConnectionPool._make_request = make_request  # type: ignore[method-assign, assignment]
        return self

    def __exit__(self, *_about: object) -> None:
        self._stack.faults.chooser = None
        self._stack.timeline.listeners.remove(self._enter_state)
        HTTPConnectionPool._make_request = self._own  # type: ignore[method-assign]

    def _choose(self, service: str, operation: str, params: Mapping[str, Any], caller: str) -> Fault | None:
        role = "EventBridge" if (service, operation) == ("events", "Deliver") else _role(caller)
        if role is None or service in _PLUMBING or self._busy:
            return None
        call = Call(role, service, operation, "ConditionExpression" in params)
        kind = self._strikes(call)
        if kind in {Kind.CRASH_BEFORE, Kind.LATE} and call == MARK:
            self.counted_again.update(_RUN_OF_MARK.findall(str(params["Item"]["sk"])))
        if kind is Kind.CONFLICT and call == MARK and _MARK_OF_PREEMPTION.match(str(params["Item"]["sk"]["S"])):
            self.counted_elsewhere += 1
        return None if kind is None else self._fault(call, kind)

    def _enter_state(self, moment: Moment) -> None:
        """End an execution when it comes to a state, before the state does anything."""
        if moment.kind != "state":
            return
        execution = str(moment.detail["execution"])
        kind = self._strikes(Call(MACHINE, STATES, moment.what))
        if kind is Kind.STOPPED:
            self._stack.client("stepfunctions").stop_execution(executionArn=execution)
        elif kind is Kind.TIMED_OUT:
            self._stack.executions.time_out(execution)

    def _strikes(self, call: Call) -> Kind | None:
        """Count a call and say which fault it meets: the first that is due, one fault a call."""
        self.seen.append(call)
        self._counted[call] += 1
        for cell in self._cells:
            is_due = cell.site.call == call and self._counted[call] >= cell.site.number
            if is_due and self.struck[cell] < _times(cell.kind) and not self._is_over(cell):
                self.struck[cell] += 1
                return cell.kind
        return None

    def _is_over(self, cell: Cell) -> bool:
        """Say whether a fault has lasted as long as it may since it struck first."""
        now = self._stack.clock.now.timestamp()
        return now - self._since.setdefault(cell, now) > OUTAGE_SECONDS

    def _fault(self, call: Call, kind: Kind) -> Fault | None:
        match kind:
            case Kind.EDIT:
                self._let_a_person_edit()
                return None
            case Kind.NEVER_ANSWERS:
                self._stack.runtime.hold_up_next()
                return None
            case Kind.SETTLES_FAILED:
                self._stack.sagemaker.governance.fail_next(call.operation, "the add-on in the cluster did not answer")
                return None
            case Kind.SETTLES_SLOWLY | Kind.SETTLES_VERY_SLOWLY:
                self._stack.sagemaker.governance.delay_next(call.operation, SETTLING_SECONDS[kind])
                return None
            case Kind.LATE_LISTS | Kind.VERY_LATE_LISTS:
                self._stack.sagemaker.governance.late_seconds = LIST_SECONDS[kind]
                return None
            case _:
                return fault_of(call, kind)

    def _let_a_person_edit(self) -> None:
        assert self._edit is not None
        self._busy = True
        try:
            self._edit()
        finally:
            self._busy = False

    def _ask_kubernetes(self, pool: Any, method: str, url: str) -> HTTPResponse | None:
        """Return an answer that does not come from the server, or None; raise what a client would see."""
        invocation = process.current()
        role = "person" if invocation is None else _role_of_function(invocation.sandbox.environment)
        kind = self._strikes(Call(role, KUBERNETES, f"{method} {url.partition('?')[0]}"))
        match kind:
            case None:
                return None
            case Kind.THROTTLE_ONCE | Kind.THROTTLE_EVER:
                return _status(429, "TooManyRequests")
            case Kind.SERVER_ERROR:
                return _status(500, "InternalError")
            case Kind.TIMEOUT_BEFORE:
                raise KubernetesTimeoutError(pool, url, "Read timed out.")
            case Kind.LATE:
                self._stack.account.turns.sleep(LATE_SECONDS)
                raise FunctionCrash
            case Kind.CRASH_BEFORE:
                raise FunctionCrash
            case _:
                raise NotImplementedError(f"{kind} says nothing about a read")


def fault_of(call: Call, kind: Kind) -> Fault:  # noqa: PLR0911 one for each kind
    """Return the fault of the embedded account that this kind is, for this call."""
    service, operation = call.service, call.operation
    match kind:
        case Kind.SERVER_ERROR:
            return Fault(service, operation, "fail", 1, FAILED.get(service, "InternalFailure"), status=500)
        case _ if code := _code(call, kind):
            return Fault(service, operation, "fail", 1, code)
        case Kind.TIMEOUT_BEFORE:
            return _timeout(call, after=False)
        case Kind.TIMEOUT_AFTER:
            return _timeout(call, after=True)
        case Kind.CRASH_BEFORE:
            return Fault(service, operation, "raise", 1, error=FunctionCrash)
        case Kind.CRASH_AFTER:
            return Fault(service, operation, "raise_after", 1, error=FunctionCrash)
        case Kind.DUPLICATE:
            return Fault(service, operation, "duplicate", 1)
        case Kind.LATE if call.is_of_function:
            # The call arrives anyway, when Lambda has ended the function that made it.
            return Fault(service, operation, "raise_after", 1, seconds=LATE_SECONDS, error=FunctionCrash)
        case Kind.LATE:
            return Fault(service, operation, "delay", 1, seconds=LATE_SECONDS)
        case Kind.LOST:
            return Fault(service, operation, "fail", 1, "ThrottlingException", "no try reached the queue")
        case _:
            raise NotImplementedError(f"{kind} is no fault of a call")


def _code(call: Call, kind: Kind) -> str | None:
    """Return the error of the service that this kind is, None for a fault of another sort."""
    if kind in {Kind.THROTTLE_ONCE, Kind.THROTTLE_EVER}:
        return THROTTLED.get(call.service, "ThrottlingException")
    return conflict_code(call) if kind is Kind.CONFLICT else REFUSED.get(kind)


def _timeout(call: Call, *, after: bool) -> Fault:
    """Return a time-out as its caller sees it: an exception in a function, an error name in the state machine."""
    if not call.is_of_function:
        return Fault(call.service, call.operation, "fail_after" if after else "fail", 1, "SdkClientException")
    error = ReadTimeoutError(endpoint_url=f"https://{call.service}.us-east-1.amazonaws.com/")
    return Fault(call.service, call.operation, "raise_after" if after else "raise", 1, error=lambda: error)


def _times(kind: Kind) -> int:
    if kind is Kind.THROTTLE_EVER:
        return FOR_EVER
    if kind is Kind.NEVER_ANSWERS:
        return TRIES_OF_A_STATE
    return TIMES_UNTIL_A_CLIENT_GIVES_UP if kind in {Kind.SERVER_ERROR, Kind.TIMEOUT_BEFORE} else 1


def _role(caller: str) -> str | None:
    """Return a role's logical id, or None for a person.

    >>> _role("taskgov-ReadSnapshotRole-AC2EDE8E2C4F"), _role("operator")
    ('ReadSnapshotRole', None)
    """
    found = _ROLE.match(caller)
    return found[1] if found else None


def _role_of_function(environment: Mapping[str, str]) -> str:
    return environment["AWS_LAMBDA_FUNCTION_NAME"].split("-")[1].removesuffix("Function") + "Role"


def _status(code: int, reason: str) -> HTTPResponse:
    body = json.dumps({"kind": "Status", "status": "Failure", "message": "injected fault", "reason": reason})
    headers = {"Content-Type": "application/json"}
    return HTTPResponse(io.BytesIO(body.encode()), headers=headers, status=code, preload_content=False)
