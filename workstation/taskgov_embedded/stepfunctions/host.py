"""The calls of an execution of a state machine, and their answers.

The interpreter handles the language, and its host the time, the services and the history.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime


class TaskFailedError(Exception):
    """A failure, by the name that ErrorEquals matches."""

    def __init__(self, error: str, cause: str = "") -> None:
        super().__init__(error, cause)
        self.error = error
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Ended:
    """How an execution ended: `error` is None when it succeeded."""

    output: Any
    error: str | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """What a Task state requests. `token` is that of a task that waits for it, None for any other."""

    state: str
    resource: str
    arguments: Any
    token: str | None = None
    timeout_seconds: float | None = None
    heartbeat_seconds: float | None = None

    @property
    def about(self) -> dict[str, str]:
        """Name the integration as the history does: `aws-sdk:dynamodb` and `putItem.waitForTaskToken`."""
        kind, _, action = self.resource.partition(":::")[2].rpartition(":")
        return {"resourceType": kind, "resource": action}


@dataclass(frozen=True, slots=True)
class Position:
    """Where an execution is: the state that it has entered, with which input and variables."""

    state: str
    given: Any
    variables: Mapping[str, Any] = field(default_factory=dict)


class Host(Protocol):
    """The calls of an execution, or of one branch of it."""

    numbers: Iterator[int]
    """What `$uuid` counts with."""

    def now(self) -> datetime:
        """Return the present moment."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""

    def jittered(self, seconds: float) -> float:
        """Return a back-off between none and this one."""

    def token(self) -> str:
        """Make a token for a task that waits for its answer."""

    def work(self, task: Task) -> Any:
        """Answer a task. Raises TaskFailedError."""

    def side_by_side(self, branches: Sequence[Callable[[Host], Any]], at_most: int) -> list[Any]:
        """Run branches, `at_most` at a time (0: all), each with a host of its own; raise the first one's failure."""

    def note(self, kind: str, **details: Any) -> None:
        """Keep an event for the history; `details` are those of the event type, with data instead of JSON."""
