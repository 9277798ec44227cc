"""Take the answers to tasks that wait for them: SendTaskSuccess, SendTaskFailure and SendTaskHeartbeat."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskgov_embedded.aws_api.wire import AwsError
from taskgov_embedded.stepfunctions.host import TaskFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov_embedded.aws_api.aws_requests import AwsRequests, Call
    from taskgov_embedded.virtual_time.cooperative import CooperativeEvent


@dataclass(slots=True, eq=False)
class Token:
    """A task that waits. `event` happens with each heartbeat and with the answer."""

    event: CooperativeEvent
    waits: Callable[[], bool]
    """Says whether its execution still waits for it."""
    result: Any = None
    failure: TaskFailedError | None = None
    is_answered: bool = False


class Tokens:
    """The tokens of one account, alike in each run of a stack."""

    def __init__(self, requests: AwsRequests) -> None:
        self._tokens: dict[str, Token] = {}
        requests.answer("stepfunctions", "SendTaskSuccess", self._succeed)
        requests.answer("stepfunctions", "SendTaskFailure", self._fail)
        requests.answer("stepfunctions", "SendTaskHeartbeat", self._beat)

    def __getitem__(self, name: str) -> Token:
        return self._tokens[name]

    def add(self, token: Token) -> str:
        """Take in a token; return what the task hands out."""
        name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"task/{len(self._tokens) + 1}"))
        self._tokens[name] = token
        return name

    def _succeed(self, call: Call) -> Mapping[str, Any]:
        token = self._waiting(call)
        try:
            token.result = json.loads(call.params["output"])
        except json.JSONDecodeError as error:
            raise AwsError("InvalidOutput", f"Invalid Output: '{error}'") from error
        return _answered(token)

    def _fail(self, call: Call) -> Mapping[str, Any]:
        token = self._waiting(call)
        token.failure = TaskFailedError(call.params.get("error", ""), call.params.get("cause", ""))
        return _answered(token)

    def _beat(self, call: Call) -> Mapping[str, Any]:
        self._waiting(call).event.set()
        return {}

    def _waiting(self, call: Call) -> Token:
        """Return the token of a call; one whose task has ended is refused. Raises AwsError."""
        token = self._tokens.get(call.params["taskToken"])
        if token is None:
            raise AwsError("InvalidToken", "Invalid Token: 'Invalid token'")
        if token.is_answered or not token.waits():
            raise AwsError("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'")
        return token


def _answered(token: Token) -> Mapping[str, Any]:
    token.is_answered = True
    token.event.set()
    return {}
