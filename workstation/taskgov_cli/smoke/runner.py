"""Run the steps one after the other, and undo what they made, however they end."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec

from taskgov_cli.smoke.model import Came, Result, StepError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from taskgov_cli.smoke.model import Sandbox, Step

INTERRUPTED = "it was interrupted"
Told = ParamSpec("Told")


@dataclass(slots=True)
class Played:
    """The results of all steps, and of cleaning up."""

    steps: list[Came] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """What could not be removed, and why: a person has to."""
    interrupted: bool = False

    @property
    def passed(self) -> bool:
        """Whether no step failed, all were reached, and nothing was left."""
        bad = {Result.FAILED, Result.NOT_REACHED}
        return not (self.interrupted or self.left or any(came.result in bad for came in self.steps))


@dataclass(frozen=True, slots=True)
class Telling:
    """The observer of a run: a step begins, a step ended, something is removed."""

    begins: Callable[[int, int, Step], None]
    ended: Callable[[Came], None]
    cleans: Callable[[str, str | None], None]

    def to_whom_it_reaches(self) -> Telling:
        """Return the same without errors: of a pipe or a terminal that is closed."""
        return Telling(_quietly(self.begins), _quietly(self.ended), _quietly(self.cleans))


def _quietly(tell: Callable[Told, None]) -> Callable[Told, None]:
    def told(*about: Told.args, **more: Told.kwargs) -> None:
        with suppress(OSError, SystemExit):  # rich ends the program where a pipe is closed
            tell(*about, **more)

    return told


def play(steps: Sequence[Step], sandbox: Sandbox, telling: Telling) -> Played:
    """Take the steps until one fails, then clean up after each that was begun, last first.

    Ctrl-C, SIGTERM and SIGHUP end the step under way and lead to the cleaning up; while that continues, they are put
    off. Output that nobody takes any more ends nothing.
    """
    telling = telling.to_whom_it_reaches()
    played = Played()
    begun: list[Step] = []
    with _interruptible() as put_off:
        with suppress(KeyboardInterrupt):
            _take(steps, sandbox, telling, played, begun)
        played.interrupted = put_off()
        reached = {came.name for came in played.steps}
        for step in steps:
            if step.name not in reached:
                why = INTERRUPTED if played.interrupted and step in begun else "a step before it failed"
                result = Result.FAILED if step in begun else Result.NOT_REACHED
                played.steps.append(Came(step.name, step.expects, result, why))
                telling.ended(played.steps[-1])
        for step in reversed(begun) if not sandbox.is_clean else ():
            _clean(step, sandbox, telling, played)
    return played


def _take(steps: Sequence[Step], sandbox: Sandbox, telling: Telling, played: Played, begun: list[Step]) -> None:
    for number, step in enumerate(steps, 1):
        telling.begins(number, len(steps), step)
        begun.append(step)
        began = time.time()
        result, came = _outcome(step, sandbox)
        played.steps.append(Came(step.name, step.expects, result, came, round(time.time() - began, 1)))
        telling.ended(played.steps[-1])
        if result is Result.FAILED:
            return


def _outcome(step: Step, sandbox: Sandbox) -> tuple[Result, str]:
    try:
        return Result.PASSED, step.do(sandbox)
    except StepError as error:
        return Result.FAILED, str(error)
    except Exception as error:  # noqa: BLE001 - whatever a step meets, what was made is removed
        return Result.FAILED, f"{type(error).__name__}: {error}"


def _clean(step: Step, sandbox: Sandbox, telling: Telling, played: Played) -> None:
    if step.clean_up is None:
        return
    try:
        step.clean_up(sandbox)
    except Exception as error:  # noqa: BLE001 - one thing that stays does not keep the others
        why = f"{type(error).__name__}: {error}" if not isinstance(error, StepError) else str(error)
        played.left.append(f"{step.cleans}: {why}")
        telling.cleans(step.cleans, why)
    else:
        telling.cleans(step.cleans, None)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM, and the end of the terminal, end a step as Ctrl-C does.

    The function that is yielded puts them off from then on, and says whether there was one: a command that a step types
    ends by it too, and the step has another reason then.
    """
    came: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before: dict[signal.Signals, Any] = {number: signal.signal(number, interrupt) for number in numbers}

    def put_off() -> bool:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        return bool(came)

    try:
        yield put_off
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
