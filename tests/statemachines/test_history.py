"""Histories stay below what Step Functions allows, for a thousand teams and whatever is tried again."""

import json
from typing import Any

import pytest

from taskgov_embedded.stepfunctions.host import TaskFailedError
from tests.statemachines.conftest import World, looked, planned
from tests.statemachines.machines import definition

pytestmark = pytest.mark.long

TEAMS = 1_000
MOST_EVENTS = 25_000
"""Step Functions ends an execution whose history reaches it (Developer Guide, "Service quotas")."""
MOST_BYTES = 256 * 1024
"""What a task, a state or an execution may take in or give (the same page)."""
PER_CALL = 25
"""Changes in one call, the template's default; a test of the template holds it."""
PASSING = {"ThrottledError", "UpstreamError", "States.TaskFailed"}


class Weary:
    """Lets every task fail as often as it is tried again, before it answers."""

    def __init__(self, world: World) -> None:
        states = definition("reconcile")["States"]
        self._errors = {name: _errors(state) for name, state in states.items() if state["Type"] == "Task"}
        self._world, self._entered, self._left = world, 0, list[str]()

    def __call__(self, name: str) -> None:
        if self._entered != len(self._world.execution.trace):
            self._entered, self._left = len(self._world.execution.trace), list(self._errors[name])
        if self._left:
            raise TaskFailedError(self._left.pop(), "again")


def _errors(state: dict[str, Any]) -> list[str]:
    found = []
    for retrier in state["Retry"]:
        if PASSING & set(retrier["ErrorEquals"]):
            name = retrier["ErrorEquals"][0]
            found += ["Some.Throttling" if name == "States.TaskFailed" else name] * retrier["MaxAttempts"]
    return found


MOST_WAVES = 12
"""Waves of a plan at most (`taskgov.allocation`)."""
WAVES = tuple(TEAMS * 2 * number // MOST_WAVES for number in range(1, MOST_WAVES + 1))
"""Two writes for each of the teams, in as many waves as there can be: none is full to the last call."""


def batch(payload: dict[str, Any], ends: tuple[int, ...] = (TEAMS,)) -> dict[str, Any]:
    """Answer as apply_change does when all goes well."""
    index, count = payload["index"], payload["count"]
    following = min(index + count, *(end for end in ends if end > index))
    return {"next": following, "written": following - index}


@pytest.fixture
def thousand(world: World) -> World:
    world.steps["PlanQuotas"] = lambda _: planned("apply", changes=TEAMS) | {"summary": "line\n" * 4_000}
    world.steps["ApplyChange"] = batch
    return world


def test_a_run_that_writes_a_thousand_quotas_takes_few_events(thousand: World) -> None:
    ended = thousand.run()
    assert ended.output["applied"] == TEAMS
    assert len(thousand.payloads("ApplyChange")) == TEAMS / PER_CALL
    assert thousand.execution.events < 400


@pytest.mark.parametrize("is_tried_again", [True, False])
@pytest.mark.parametrize("changes", [TEAMS, 15 * TEAMS])
def test_a_run_whose_calls_write_one_change_each_hands_over_in_time(
    thousand: World, *, is_tried_again: bool, changes: int
) -> None:
    """What SageMaker throttles ends a call of apply_change before it is full, down to one change each."""
    thousand.steps["PlanQuotas"] = lambda _: planned("apply", changes=changes)
    thousand.steps["ApplyChange"] = lambda payload: batch(payload | {"count": 1}, (changes,))
    if is_tried_again:
        thousand.before_task = Weary(thousand)
    ended = thousand.run()
    assert ended.output["outcome"] == "progressing"
    written = len(thousand.payloads("ApplyChange"))
    assert TEAMS / 3 < written < TEAMS
    assert ended.output["applied"] == written
    assert thousand.execution.events < MOST_EVENTS
    assert len(thousand.schedules) == 1, "another execution is due"
    assert f"{written} of {changes} changes of the plan are done" in thousand.payloads("PublishUsage")[0]["error"]


def refusing(payload: dict[str, Any], ends: tuple[int, ...] = (TEAMS,)) -> dict[str, Any]:
    """Answer that every write of the call was refused, in as many words as there may be."""
    return batch(payload, ends) | {"written": 0, "refused": ["x" * 500] * PER_CALL}


def test_a_run_whose_every_call_is_tried_again_and_whose_every_write_is_refused_ends_in_time(thousand: World) -> None:
    """Every task uses up its retries, each round is refused everything, and hints never stop."""
    weary = Weary(thousand)

    def each(name: str) -> None:
        if name == "Plan quotas":
            thousand.hint()
        weary(name)

    thousand.before_task = each
    thousand.steps["ApplyChange"] = refusing
    thousand.steps["VerifyPlan"] = lambda _: looked(refused=["x" * 500] * 51)
    ended = thousand.run()
    assert ended.error == "unfinished"
    assert thousand.execution.scope["events"] > 10_000
    assert thousand.execution.events < MOST_EVENTS
    assert thousand.execution.largest < MOST_BYTES
    assert len(thousand.schedules) > 0, "another execution is due"


class TestTwelveWaves:
    """Every team is written twice, in as many waves as the planner ever makes."""

    @pytest.fixture
    def waves(self, thousand: World) -> World:
        thousand.steps["PlanQuotas"] = lambda _: planned("apply", changes=2 * TEAMS, waves=WAVES)
        thousand.steps["ApplyChange"] = lambda payload: batch(payload, WAVES)
        return thousand

    def test_take_few_events_when_all_goes_well(self, waves: World) -> None:
        assert waves.run().output["outcome"] == "applied"
        assert len(waves.payloads("VerifyPlan")) == MOST_WAVES
        assert waves.execution.events < 900

    def test_end_in_time_after_many_runs_when_each_call_is_tried_again_and_all_looks_are_used(
        self, waves: World
    ) -> None:
        """The costly run comes last: all looks are used, what is written is refused, and hints never stop."""
        weary, looks, costly = Weary(waves), iter(range(1, 1000)), waves.steps["PlanQuotas"]
        began: list[int] = []

        def each(name: str) -> None:
            if name == "Plan quotas":
                waves.hint()
            weary(name)

        def plan(payload: dict[str, Any]) -> Any:
            if waves.execution.scope["events"] < 10_000:
                return planned("nothing-to-do")
            began.append(waves.execution.events)
            return costly(payload)

        def verify(_: dict[str, Any]) -> dict[str, Any]:
            said = ["x" * 500] * 51
            return looked() if next(looks) % 5 == 0 else looked(settled=False, pending=said)

        waves.before_task = each
        waves.steps["PlanQuotas"] = plan
        waves.steps["VerifyPlan"] = verify
        ended = waves.run()
        assert ended.output["outcome"] == "applied"
        assert len(waves.payloads("VerifyPlan")) == 5 * MOST_WAVES
        assert len(waves.payloads("PublishUsage")) == 20
        assert waves.execution.largest < MOST_BYTES
        # The runs before cost less than they are counted: had they not, there would be room anyway.
        assert 10_000 + waves.execution.events - began[0] < MOST_EVENTS


def test_conflicts_whose_every_call_is_tried_again_end_in_time(thousand: World) -> None:
    def conflict(payload: dict[str, Any]) -> dict[str, Any]:
        if payload["index"] >= TEAMS - PER_CALL:
            raise TaskFailedError("ConflictError", "somebody was faster")
        return batch(payload)

    thousand.before_task = Weary(thousand)
    thousand.steps["ApplyChange"] = conflict
    assert thousand.run().error == "unfinished"
    assert thousand.execution.events < MOST_EVENTS


def test_waiting_for_the_lock_with_an_approval_in_hand_ends_in_time(thousand: World) -> None:
    another = "arn:aws:states:us-east-1:111122223333:execution:reconcile:another"

    def approved_and_locked_out(_: dict[str, Any]) -> dict[str, Any]:
        thousand.set_state(lockOwner={"S": another}, lockExpires={"N": str(10**12)})
        return {"approved": True, "by": "ana"}

    thousand.before_task = Weary(thousand)
    thousand.steps["PlanQuotas"] = lambda _: planned("needs-approval", changes=TEAMS)
    thousand.integrations["Ask for approval"] = approved_and_locked_out
    assert thousand.run().error == "failed"
    assert thousand.execution.trace.count("Wait for the lock") == 120
    assert thousand.execution.events < MOST_EVENTS


def test_the_request_for_an_approval_fits_into_an_item_and_a_message(world: World) -> None:
    """The summary is as long as the state has it at most; the request says the approval's commands besides."""
    world.steps["PlanQuotas"] = lambda _: planned("needs-approval", changes=TEAMS) | {"summary": "x" * 64 * 1024}
    asked: list[dict[str, Any]] = []

    def reject(arguments: dict[str, Any]) -> dict[str, Any]:
        asked.append(arguments["Item"])
        return {"approved": False, "by": "ana"}

    world.integrations["Ask for approval"] = reject
    assert world.run().output["outcome"] == "rejected"
    assert len(json.dumps(asked[0])) <= 200_000
    assert 64 * 1024 < max(len(message.encode()) for message in world.notices) <= 128 * 1024


def test_what_is_counted_as_spent_is_at_least_what_the_history_has(thousand: World) -> None:
    """The machine stops in time by its own count; here that count is held against the events."""
    thousand.before_task = Weary(thousand)
    counted: list[tuple[int, int]] = []

    def note(payload: dict[str, Any]) -> dict[str, Any]:
        counted.append((thousand.execution.scope["events"], thousand.execution.events))
        return {"published": len(payload)}

    thousand.steps["PublishUsage"] = note
    thousand.run()
    (spent, written) = counted[0]
    assert written <= spent
