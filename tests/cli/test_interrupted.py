"""A manual command that a signal ends: what it wrote is on record, its lock is free, and a run repairs."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from taskgov.services.apply_change import ApplyChange
from taskgov_cli.manual_lock import noting_signals
from taskgov_embedded.walkthrough.world import World
from tests.support.forked import in_a_fork
from tests.support.operating import AFTER, APPLIED, counts, data, last_plan, opened, played, state, taskgov

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def applied() -> Iterator[World]:
    with opened(*APPLIED) as world:
        yield played(world)


@in_a_fork
def test_a_rollback_that_ctrl_c_ends_leaves_a_record_frees_its_lock_and_is_repaired(applied: World) -> None:
    _interrupt(applied, signal.SIGINT)


@in_a_fork
def test_a_rollback_that_sigterm_ends_does_the_same(applied: World) -> None:
    _interrupt(applied, signal.SIGTERM)


@in_a_fork
def test_a_rollback_whose_terminal_is_closed_does_the_same(applied: World) -> None:
    _interrupt(applied, signal.SIGHUP)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """As `nohup` starts a command."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with noting_signals() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            interruption.check()
    finally:
        signal.signal(signal.SIGHUP, before)


def _interrupt(applied: World, number: signal.Signals) -> None:
    own, leases = ApplyChange.restore, []
    signal.signal(number, signal.SIG_DFL)  # a test that runs in the background may ignore it

    def interrupted(use_case: ApplyChange, request: Any) -> Any:
        result = own(use_case, request)
        leases.append(int(state(applied)["lockExpires"]) - applied.clock.now.timestamp())
        os.kill(os.getpid(), number)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ApplyChange, "restore", interrupted)
        plan = last_plan()
        result = taskgov("rollback", plan, "--yes")
    assert result.exit_code == 1
    assert f"{number.name} ended the command" in result.stdout.replace("\n", " ")
    assert len(leases) == 1, "nothing is written after the signal"
    assert 295 < leases[0] <= 300
    assert "lockOwner" not in state(applied)
    (ours,) = [run for run in data("history", "ml-cluster") if run["outcome"] == "rollback-failed"]
    assert (ours["applied"], ours["planId"]) == (1, plan)
    assert number.name in ours["error"]
    applied.stack.run_until_quiet(300)
    assert counts(applied) == AFTER
