"""Take every AWS call of the process at the entry of the emulated account.

All requests of botocore that moto intercepts come through `AwsRequests.take`. It reads who calls what with which
parameters, applies faults, checks the caller's policies, answers the operations that the stack implements itself
(`answer`), passes the rest on to moto, and keeps a record of each call (`calls`). Policies are those of the template.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.model import OperationNotFoundError
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.request import normalize_request
from moto.core.routing import NotFound

from taskgov_embedded.aws_api.moto_routes import answer_of_moto
from taskgov_embedded.aws_api.wire import Answer, AwsError, Wire, error_code, parse, rewind, stays_whole
from taskgov_embedded.iam import actions, evaluation, reference
from taskgov_embedded.iam.conditions import conditions
from taskgov_embedded.iam.identity import read_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime

    from taskgov_embedded.aws_api.faults import Fault, Faults
    from taskgov_embedded.aws_api.moto_routes import Answer
    from taskgov_embedded.aws_api.patches import Patches
    from taskgov_embedded.iam.identity import Identities, Principal
    from taskgov_embedded.place import Place
    from taskgov_embedded.timeline import Timeline
    from taskgov_embedded.virtual_time.cooperative import Turns


@dataclass(frozen=True, slots=True)
class Call:
    """One API call. `action` and `resources` are in IAM's words; `error` is the code of an error answer."""

    time: datetime
    principal: Principal
    service: str
    operation: str
    action: str
    resources: tuple[str, ...]
    params: Mapping[str, Any]
    error: str | None = None
    result: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        outcome = f" -> {self.error}" if self.error else ""
        return f"{self.principal.name} {self.action} {', '.join(self.resources)}{outcome}"


class AwsRequests:
    """The entry of one account."""

    def __init__(
        self,
        place: Place,
        identities: Identities,
        turns: Turns,
        timeline: Timeline,
        faults: Faults,
        policies: Callable[[str], tuple[evaluation.Statement, ...]],
        outside: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.place = place
        self.calls: list[Call] = []
        self.grants_used: dict[evaluation.Grant, int] = {}
        self.unknown_condition_keys: set[str] = set()
        self.listeners: list[Callable[[Call], None]] = []
        self._identities = identities
        self._turns = turns
        self._timeline = timeline
        self._faults = faults
        self._policies = policies
        self._outside = outside
        self._answers: dict[tuple[str, str], Callable[[Call], Mapping[str, Any] | None]] = {}

    def answer(self, service: str, operation: str, handler: Callable[[Call], Mapping[str, Any] | None]) -> None:
        """Let `handler` answer an operation before moto does; it raises `AwsError` for an error answer.

        Moto answers when it returns None: it has only checked the call.
        """
        self._answers[service, operation] = handler

    def install(self, patches: Patches) -> None:
        """Stand between botocore and moto."""
        own = BotocoreStubber.process_request
        why = "every call is checked, recorded and perhaps answered here before moto sees it"
        patches.replace(
            BotocoreStubber,
            "process_request",
            lambda stubber, request: self._enter(request, partial(own, stubber)),
            why,
        )

    def _enter(self, request: Any, own: Callable[[Any], Answer | None]) -> Answer | None:
        # What the account does is not done in the environment of the function that asked for it.
        with self._outside():
            normalized = normalize_request(request)
            read = self._read(normalized)
            whole = stays_whole(normalized)

            def to_moto() -> Any:
                rewind(request.body)  # the call was read before, and may come twice
                again = normalized if whole else normalize_request(request)
                return answer_of_moto(request.url, again) or own(request)

            return own(request) if read is None else self.take(*read, to_moto)

    def take(self, call: Call, wire: Wire, to_moto: Callable[[], Answer]) -> Answer:
        """Handle one call from fault to record."""
        fault = self._faults.take(call.service, call.operation, call.params, call.principal.name)
        if fault is not None:
            self._timeline.add("fault", f"{fault.effect} {call.action} of {call.principal.name}", fault=fault)
            return self._with_fault(fault, call, wire, to_moto)
        return self._handle(call, wire, to_moto)

    def admit(self, call: Call) -> None:
        """Check and record a call that came by another way than botocore's clients. Raises AwsError."""
        try:
            self._authorize(call)
        except AwsError as error:
            self._record(replace(call, error=error.code))
            raise
        self._record(call)

    def _with_fault(self, fault: Fault, call: Call, wire: Wire, to_moto: Callable[[], Answer]) -> Answer:
        if fault.seconds:
            self._turns.sleep(fault.seconds)
            call = replace(call, time=self._turns.clock.now)
        if fault.effect in {"fail_after", "duplicate", "raise_after"}:
            self._handle(call, wire, to_moto)
        if fault.error is not None:
            raise fault.error()
        if fault.effect in {"fail", "fail_after"}:
            self._record(replace(call, error=fault.code))
            _, headers, body = wire.serialize(AwsError(fault.code, fault.message))
            return fault.status, headers, body
        return self._handle(call, wire, to_moto)

    def _handle(self, call: Call, wire: Wire, to_moto: Callable[[], Answer]) -> Answer:
        try:
            self._authorize(call)
            handler = self._answers.get((call.service, call.operation))
            result = handler(call) if handler is not None else None
            if result is not None:
                self._record(replace(call, result=result))
                return wire.serialize(result)
        except AwsError as error:
            self._record(replace(call, error=error.code))
            return wire.serialize(error)
        answer = to_moto()
        self._record(replace(call, error=error_code(answer)))
        return answer

    def _authorize(self, call: Call) -> None:
        """Check the role's policies for everything that the call needs."""
        role = call.principal.role_arn
        if role is None or (call.service, call.operation) == ("sts", "GetCallerIdentity"):
            return
        context = conditions(call.service, call.operation, call.params, self.place)
        context |= {"aws:PrincipalArn": role, "aws:PrincipalAccount": self.place.account}
        context |= {f"aws:PrincipalTag/{key}": value for key, value in call.principal.tags}
        for need in actions.needs(call.service, call.operation, call.params, self.place):
            known: dict[str, Any] = context | dict(need.known)
            verdicts = [
                evaluation.evaluate(self._policies(role), need.action, resource, known) for resource in need.resources
            ]
            self.unknown_condition_keys.update(*(verdict.unknown_keys for verdict in verdicts))
            allowing = [verdict for verdict in verdicts if verdict.allowed]
            if not allowing:
                raise self._denied(call, need, verdicts)
            for grant in allowing[0].grants:
                self.grants_used[grant] = self.grants_used.get(grant, 0) + 1

    def allows(self, role: str, action: str, resource: str, context: Mapping[str, str] | None = None) -> bool:
        """Check (and count) something that a service does in a role's name without a request, e.g. writing logs.

        `context` has the condition keys that the service gives beside the role.
        """
        known = {"aws:PrincipalArn": role, **(context or {})}
        verdict = evaluation.evaluate(self._policies(role), action, resource, known)
        for grant in verdict.grants:
            self.grants_used[grant] = self.grants_used.get(grant, 0) + 1
        if not verdict.allowed:
            self._timeline.add("denied", f"{role} may not {action} on {resource}", role=role)
        return verdict.allowed

    def _denied(self, call: Call, need: actions.Need, verdicts: list[evaluation.Verdict]) -> AwsError:
        explicit = next((verdict.denied_by for verdict in verdicts if verdict.denied_by), None)
        why = (
            f"with an explicit deny in statement {explicit}"
            if explicit
            else f"because no identity-based policy allows the {need.action} action"
        )
        message = (
            f"User: {call.principal.arn} is not authorized to perform: {need.action} "
            f"on resource: {need.resources[0]} {why}"
        )
        self._timeline.add("denied", message, role=call.principal.role_arn, need=need)
        code = {"sns": "AuthorizationError", "sqs": "AccessDenied", "s3": "AccessDenied", "cloudwatch": "AccessDenied"}
        return AwsError(code.get(call.service, "AccessDeniedException"), message)

    def _record(self, call: Call) -> None:
        self.calls.append(call)
        if call.principal.role_arn is not None and _writes(call):
            self._timeline.add("write", str(call), call=call)
        for listener in self.listeners:
            listener(call)

    def _read(self, request: Any) -> tuple[Call, Wire] | None:
        """Read a signed request; None for what is not one (moto answers those as it likes)."""
        signature = read_signature(request.headers.get("Authorization", ""))
        if signature is None:
            return None
        service = actions.SIGNING_TO_SERVICE.get(signature.signing_name, signature.signing_name)
        try:
            operation, params, model = parse(service, request)
        except (NotFound, OperationNotFoundError):
            return None
        needed = actions.needs(service, operation, params, self.place)
        call = Call(
            time=self._turns.clock.now,
            principal=self._identities.principal(signature.access_key),
            service=service,
            operation=operation,
            action=needed[0].action,
            resources=tuple(resource for need in needed if _is_own(need, needed[0]) for resource in need.resources),
            params=params,
        )
        return call, Wire(service, operation, request.content_type or "", model)


def _is_own(need: actions.Need, first: actions.Need) -> bool:
    """Return whether a need is the call's own (a part of a transaction), not of a key, role or dependent action."""
    same_service = need.action.partition(":")[0] == first.action.partition(":")[0]
    return same_service and need.action not in reference.dependents(first.action)


_READS = re.compile(r"(Get|List|Describe|Head|Query|Scan|BatchGet|TransactGet|Receive)")
_PLUMBING = {("sqs", "DeleteMessage"), ("sqs", "DeleteMessageBatch"), ("logs", "PutLogEvents"), ("sts", "AssumeRole")}


def _writes(call: Call) -> bool:
    return not _READS.match(call.operation) and (call.service, call.operation) not in _PLUMBING
