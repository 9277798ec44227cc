"""A run that is stopped while it asks for approval, or waits with one, asks again; what was rejected stays so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tests.support.operating import (
    ASKS,
    DOCUMENT,
    a_run_with_the_lock,
    data,
    opened,
    pending_plan,
    played,
    state,
    stop_at,
    taskgov,
    waiting,
)

if TYPE_CHECKING:
    from taskgov_embedded.walkthrough.world import World

pytestmark = pytest.mark.long

SOON = 180
"""Seconds from the event to the next run, at most."""


def asked(world: World) -> list[Any]:
    return [moment for moment in world.stack.timeline.of("state") if moment.what == "Ask for approval"]


def test_an_approved_run_that_is_stopped_while_it_waits_for_the_lock_is_asked_for_again() -> None:
    with opened({"policy": DOCUMENT | ASKS}, {"waitMinutes": 2}) as world:
        played(world)
        (first,) = waiting(world)
        with a_run_with_the_lock(world):
            assert taskgov("approve", str(first["planId"])).exit_code == 0
            stop_at(world, "Wait for the lock")
        world.stack.advance(SOON, schedules=[])
        assert len(asked(world)) == 2


@pytest.mark.parametrize("event", [True, False], ids=["by the event", "by a hint"])
def test_a_run_that_is_stopped_while_it_waits_for_approval_is_asked_again(*, event: bool) -> None:
    with opened({"policy": DOCUMENT | ASKS}, {"waitMinutes": 2}) as world:
        played(world)
        world.stack.executions.sends_events = event
        (first,) = waiting(world)
        boto3.client("stepfunctions").stop_execution(executionArn=first["executionArn"])
        if not event:
            data("reconcile", "ml-cluster")
        world.stack.advance(SOON, schedules=[])
        assert len(asked(world)) == 2
        (again,) = [item for item in waiting(world) if item["taskToken"] != first["taskToken"]]
        assert again["executionArn"] != first["executionArn"]
        assert state(world)["askedBy"] == again["executionArn"]


def test_what_was_rejected_is_not_asked_for_again_by_the_next_run() -> None:
    with opened({"policy": DOCUMENT | ASKS}, {"waitMinutes": 2}) as world:
        played(world)
        assert taskgov("reject", pending_plan(world)).exit_code == 0
        world.stack.run_until_quiet()
        data("reconcile", "ml-cluster")
        world.stack.advance(SOON, schedules=[])
        assert [run["outcome"] for run in data("history", "ml-cluster")] == ["needs-approval", "rejected"]
        assert len(asked(world)) == 1
