"""The steps of a smoke test are taken in order, and what was begun is taken back, however it ends."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from taskgov_cli.smoke.model import Came, Sandbox, Step, StepError
from taskgov_cli.smoke.runner import Played, Telling, play


class Account:
    """What three steps do and take back, in order; `does` says what else happens in a step or its cleaning up."""

    def __init__(self, **does: Any) -> None:
        self.log: list[str] = []
        self.told: list[str] = []
        self.does = does

    def steps(self) -> list[Step]:
        return [self.step(name) for name in ("one", "two", "three")]

    def step(self, name: str) -> Step:
        def do(_sandbox: Sandbox) -> str:
            self.log.append(name)
            return str(self.act(name) or "fine")

        def clean_up(_sandbox: Sandbox) -> None:
            self.log.append(f"clean {name}")
            self.act(f"clean_{name}")

        return Step(name, "all is well", do, clean_up, f"what {name} made")

    def act(self, name: str) -> object:
        does = self.does.get(name)
        if isinstance(does, BaseException):
            raise does
        if isinstance(does, signal.Signals):
            os.kill(os.getpid(), does)
        return None

    def play(self, *, is_clean: bool = False, telling: Telling | None = None) -> Played:
        none: Any = None
        place: dict[str, Any] = dict.fromkeys(
            ("account", "cluster", "cluster_arn", "eks", "instance_type", "folder"), ""
        )
        sandbox = Sandbox(run_id="r", deployer=none, type_=none, is_clean=is_clean, **place)
        told = Telling(lambda *_: None, self.ended, lambda what, _: self.told.append(what))
        return play(self.steps(), sandbox, telling or told)

    def ended(self, came: Came) -> None:
        self.told.append(f"{came.name} {came.result}")


def results(played: Played) -> list[str]:
    return [came.result.value for came in played.steps]


CLEANED = ["clean three", "clean two", "clean one"]


def test_what_was_made_is_taken_back_last_first() -> None:
    account = Account()
    played = account.play()
    assert (played.passed, account.log) == (True, ["one", "two", "three", *CLEANED])
    assert account.told[:3] == ["one passed", "two passed", "three passed"]


def test_what_a_step_has_removed_already_is_not_removed_again() -> None:
    account = Account()
    assert account.play(is_clean=True).passed
    assert account.log == ["one", "two", "three"]


@pytest.mark.parametrize("error", [StepError("other than expected"), RuntimeError("no such bucket"), KeyError("x")])
def test_after_a_step_that_failed_none_follows_and_it_is_taken_back_too(error: Exception) -> None:
    account = Account(two=error)
    played = account.play()
    assert results(played) == ["passed", "failed", "not-reached"]
    assert account.log == ["one", "two", "clean two", "clean one"]
    assert not played.passed


def test_one_thing_that_stays_does_not_keep_the_others_and_is_named() -> None:
    account = Account(clean_two=StepError("it is in use"))
    played = account.play()
    assert (account.log[3:], played.left, played.passed) == (CLEANED, ["what two made: it is in use"], False)


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(5, "the terminal is gone"), SystemExit(1)])
@pytest.mark.parametrize("which", ["begins", "ended", "cleans"])
def test_output_that_nobody_takes_any_more_keeps_nothing_from_being_removed(which: str, error: BaseException) -> None:
    def closed(*_about: object) -> None:
        raise error

    account = Account()
    quiet: dict[str, Any] = dict.fromkeys(("begins", "ended", "cleans"), lambda *_: None)
    assert account.play(telling=Telling(**{**quiet, which: closed})).passed
    assert account.log == ["one", "two", "three", *CLEANED]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_sigterm_lead_to_cleaning_up(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    account = Account(two=number)
    played = account.play()
    assert (results(played), played.interrupted, played.passed) == (["passed", "failed", "not-reached"], True, False)
    assert account.log == ["one", "two", "clean two", "clean one"]
    assert signal.getsignal(number) is before


def test_a_command_that_swallows_ctrl_c_does_not_hide_it() -> None:
    class Swallowing(Account):
        def act(self, name: str) -> object:
            try:
                return super().act(name)
            except KeyboardInterrupt:
                raise StepError("exit code 1: Aborted!") from None

    played = Swallowing(two=signal.SIGINT).play()
    assert (results(played), played.interrupted) == (["passed", "failed", "not-reached"], True)


def test_ctrl_c_while_it_cleans_up_is_put_off() -> None:
    account = Account(clean_three=signal.SIGINT)
    played = account.play()
    assert (account.log[3:], played.left) == (CLEANED, [])
