"""A step of the smoke test, its result, and what it works on.

Steps are data (`taskgov_cli.smoke.steps`). They call AWS through boto3's default session and wait with
`time.sleep`: on the embedded account both are the emulated account's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PREFIX: Final = "taskgov-smoke-"
"""How the name of everything begins that the test makes; the id of the run follows."""


class Result(StrEnum):
    """How a step came out."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_REACHED = "not-reached"


class StepError(Exception):
    """What came is not what was expected; the message says what came."""


class Deployer(Protocol):
    """Who deploys the stack: SAM on a real account, the embedded account itself on that one."""

    stack: str
    """Name of the stack."""

    def deploy(
        self, parameters: Mapping[str, str], revision: str | None = None, watch: Callable[[], None] | None = None
    ) -> None:
        """Deploy the template with these parameters; another `revision` makes new versions of all functions.

        `watch` is called every few seconds meanwhile. Raises StepError.
        """
        ...

    def is_there(self) -> bool:
        """Return whether there is a stack of this name that this run made. Raises StepError if another made it."""
        ...

    def settle(self) -> None:
        """Let the stack that this run made come to rest: an update is broken off. Raises StepError."""
        ...

    def delete(self) -> None:
        """Delete the stack that this run made. Raises StepError."""
        ...


@dataclass(frozen=True, slots=True)
class Typed:
    """A command that was typed: its exit code, what it printed, and that as data where it is JSON."""

    code: int
    output: str
    data: Any = None


@dataclass(frozen=True, slots=True)
class Inferred:
    """Something that the product takes for true without a source: what it takes it to be, and what came."""

    name: str
    """As `taskgov.hyperpod.inferred` calls it."""
    about: str
    assumed: str
    came: str
    agrees: bool


@dataclass(slots=True)
class Observed:
    """Raw forms of what AWS does; the report has them redacted."""

    heard: list[dict[str, Any]] = field(default_factory=list)
    """CloudTrail's events as EventBridge delivered them, for any quota."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """Those of quotas of this run."""
    errors: list[dict[str, str]] = field(default_factory=list)
    """Errors as boto3 shows them: `case`, `operation`, `code`, `message`."""
    settled: list[dict[str, Any]] = field(default_factory=list)
    """Writes and how long they took to settle: `operation`, `status`, `seconds`."""
    inferred: list[Inferred] = field(default_factory=list)


@dataclass(slots=True)
class Sandbox:
    """On what a run works, and what it has made so far. Nothing else is ever touched."""

    run_id: str
    account: str
    cluster: str
    cluster_arn: str
    eks: str
    instance_type: str
    deployer: Deployer
    type_: Callable[[Sequence[str]], Typed]
    """Runs a command of `taskgov` as a person types it."""
    folder: str
    """Where files of the run may be written."""
    observed: Observed = field(default_factory=Observed)
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the template that the caller of the test gave, for what the account requires."""
    outputs: dict[str, str] = field(default_factory=dict)
    retained: dict[str, str] = field(default_factory=dict)
    """What the stack leaves behind when it is deleted: logical id -> name."""
    entries: list[str] = field(default_factory=list)
    """Principals of the access entries that this run made."""
    mark: str = ""
    """Key of the tag with which the run's stack marks a cluster as its own; empty where it never made one."""
    quota_ids: list[str] = field(default_factory=list)
    """Quotas that were made by hand: an event of a deletion names nothing else."""
    queue_url: str = ""
    """Queue of this run to which CloudTrail's events are copied."""
    is_clean: bool = False
    """Whether everything was removed already."""
    plans: dict[str, str] = field(default_factory=dict)
    """Plans by the step that made them."""

    @property
    def team(self) -> str:
        """The team of this run, whose quota the stack makes."""
        return f"{PREFIX}{self.run_id}"

    @property
    def probe(self) -> str:
        """The team of the quota that is made by hand, to see what the API does."""
        return f"{PREFIX}{self.run_id}-hand"

    @property
    def stack(self) -> str:
        """Name of the stack."""
        return self.deployer.stack

    def taskgov(self, *words: str) -> Typed:
        """Run a command of `taskgov`."""
        return self.type_(words)


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what it expects in a sentence, what it does, and what takes it back.

    `do` returns what came in a sentence. It raises StepError where that is not what was expected, and whatever AWS
    raises. `clean_up` is run at the end for each step that was begun, also when it failed half way: it looks for what
    is there.
    """

    name: str
    expects: str
    do: Callable[[Sandbox], str]
    clean_up: Callable[[Sandbox], None] | None = None
    cleans: str = ""
    """What `clean_up` removes, in a few words."""


@dataclass(frozen=True, slots=True)
class Came:
    """The result of a step."""

    name: str
    expects: str
    result: Result
    came: str
    seconds: float = 0.0
