"""What a state of the protocol is: everything that may still make a difference, and nothing else."""

from collections.abc import Mapping
from typing import NamedTuple

from tests.protocol.functions import EXECUTION, Running
from tests.protocol.machine import Standing


class Execution(NamedTuple):
    """An execution by its name; one that is over is kept, because its name is used up."""

    name: str
    status: str
    """`running`, `stopped` (it may be redriven) or `over`."""
    at: Standing | None

    @property
    def arn(self) -> str:
        return EXECUTION + self.name


class Process(NamedTuple):
    """A function or command under way. `parent` is the execution that waits for it, or the message of a receiver."""

    running: Running
    parent: str
    orphan: bool = False
    """Nobody waits for it any more: its execution was stopped, or has called it again."""


class State(NamedTuple):
    """The world at one moment: what there is, what is under way, and what may still happen."""

    now: int
    item: str
    facts: int
    """What the quota should hold: each hint is of a new fact."""
    version: int
    content: int
    executions: tuple[Execution, ...]
    processes: tuple[Process, ...]
    messages: tuple[str, ...]
    """Events in the intake queue."""
    scheduled: bool
    left: tuple[tuple[str, int], ...]
    """How often each thing that nobody controls may still happen."""
    seen: int = 0
    """The generation of the last run that came to its end."""
    excused: bool = False
    """A fault that only the lease and the next resync repair has happened since the last resync."""
    rejected: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    """The changes (their digests) that a person has agreed to, until the quota has another version."""

    def may(self, what: str) -> bool:
        return dict(self.left).get(what, 0) > 0

    def spent(self, what: str) -> "State":
        """Return the state with one less of something."""
        return self._replace(left=tuple((name, count - (name == what)) for name, count in self.left))

    def execution(self, name: str) -> Execution | None:
        return next((one for one in self.executions if one.name == name), None)

    def with_execution(self, execution: Execution) -> "State":
        others = tuple(one for one in self.executions if one.name != execution.name)
        return self._replace(executions=tuple(sorted((*others, execution))))

    def with_process(self, process: Process) -> "State":
        return self._replace(processes=tuple(sorted((*self.processes, process))))

    def without_process(self, process: Process) -> "State":
        left = list(self.processes)
        left.remove(process)
        return self._replace(processes=tuple(left))

    def with_message(self, message: str) -> "State":
        return self._replace(messages=tuple(sorted((*self.messages, message))))


class Scenario(NamedTuple):
    """What may happen in one exploration: how often each, and what runs find."""

    name: str
    left: Mapping[str, int]
    approval: bool = False
    """Each change needs a person's approval."""
    spent: int = 0
    """Events in an execution's history when it starts: near the bound, it hands over."""
    item: Mapping[str, Mapping[str, str]] = {}
    """What stands on the item at the start, beside its key."""
    repaired: bool = True
    """Whether what stands there is repaired only by the lease and the resync."""
    by_hand: bool = False
    """Whether somebody starts an execution by hand, for a new fact of which no event comes."""
    versions: bool = True
    """Whether the API refuses a write at a version that is not the quota's."""


class Step(NamedTuple):
    """One thing that may happen next."""

    label: str
    after: State
    wrong: str | None = None
    """The invariant that it breaks."""
    certain: bool = True
    """It happens sooner or later, and nobody has to fail for it."""
