"""Waves of writes: each settles before the next begins, and the way back is the same way."""

from typing import Any

import pytest

from tests.statemachines.conftest import World, in_turn, one_change, planned
from tests.statemachines.interpreter import TaskFailedError
from tests.statemachines.test_reconcile import ANOTHER, NOW, approve

WAVES = (2, 3, 5)
"""Three waves of two, one and two changes."""
SETTLED = {"settled": True, "matches": True, "pending": 0, "standing": 0, "problems": []}
WRONG = {"settled": True, "matches": False, "pending": 0, "standing": 3, "problems": ["team-a: UpdateFailed"]}


@pytest.fixture
def waves(world: World) -> World:
    world.steps["PlanQuotas"] = lambda _: planned("apply", changes=5, waves=WAVES)
    return world


def steps(world: World) -> list[tuple[str, str, int]]:
    """Return what was written, restored and verified, in order: step, direction, index (or what is due next)."""
    return [
        (name, payload["direction"], payload["index"] if name == "ApplyChange" else payload["next"])
        for name, payload in world.calls
        if name in {"ApplyChange", "VerifyPlan"}
    ]


def written(*indexes: int) -> list[tuple[str, str, int]]:
    return [("ApplyChange", "apply", index) for index in indexes]


def restored(*indexes: int) -> list[tuple[str, str, int]]:
    return [("ApplyChange", "restore", index) for index in indexes]


def verified(following: int, direction: str = "apply") -> tuple[str, str, int]:
    return ("VerifyPlan", direction, following)


def fail_at(index: int, error: str = "NotFoundError") -> Any:
    def apply(payload: dict[str, Any]) -> dict[str, Any]:
        if (payload["direction"], payload["index"]) == ("apply", index):
            raise TaskFailedError(error, "as the test says")
        return one_change(payload)

    return apply


def test_each_wave_has_settled_before_the_next_begins(waves: World) -> None:
    assert waves.run().output == {"outcome": "applied", "applied": 5, "runId": "ml-cluster-1-1"}
    assert steps(waves) == [*written(0, 1), verified(2), *written(2), verified(3), *written(3, 4), verified(5)]


def test_a_wave_is_waited_for_as_often_as_it_takes(waves: World) -> None:
    pending = {"settled": False, "matches": False, "pending": 1, "standing": 0, "problems": []}
    waves.steps["VerifyPlan"] = in_turn(*[pending] * 17, SETTLED, *[pending] * 17, SETTLED)
    assert waves.run().output["outcome"] == "applied"
    assert steps(waves)[1:20] == [*written(1), *[verified(2)] * 18]


def test_waves_that_settle_slowly_one_after_the_other_end_after_sixty_looks(waves: World) -> None:
    waves.steps["PlanQuotas"] = lambda _: planned("apply", changes=12, waves=tuple(range(1, 13)))
    pending = {"settled": False, "matches": False, "pending": 1, "standing": 0, "problems": []}
    looks = [0]

    def verify(payload: dict[str, Any]) -> dict[str, Any]:
        looks[0] += 1
        return SETTLED if payload["direction"] == "restore" or looks[0] % 11 == 0 else pending

    waves.steps["VerifyPlan"] = verify
    assert waves.run().error == "rolled-back"
    assert sum(step == "VerifyPlan" and way == "apply" for step, way, _ in steps(waves)) == 60


def test_the_lock_is_renewed_for_each_wave(waves: World) -> None:
    seen = []

    def apply(payload: dict[str, Any]) -> dict[str, Any]:
        seen.append(int(waves.state()["lockExpires"]["N"]))
        return one_change(payload)

    waves.steps["ApplyChange"] = apply
    waves.run()
    assert sorted({each - 3600 - 5 * 15 - NOW for each in seen}) == [0, 10, 20]


@pytest.mark.parametrize(
    ("index", "begun", "back"),
    [
        (1, [*written(0, 1)], [*restored(1, 0), verified(-1, "restore")]),
        (
            2,
            [*written(0, 1), verified(2), *written(2)],
            [*restored(2), verified(1, "restore"), *restored(1, 0), verified(-1, "restore")],
        ),
        (
            3,
            [*written(0, 1), verified(2), *written(2), verified(3), *written(3)],
            [
                *restored(4, 3),
                verified(2, "restore"),
                *restored(2),
                verified(1, "restore"),
                *restored(1, 0),
                verified(-1, "restore"),
            ],
        ),
    ],
    ids=["the first", "the second", "the third"],
)
def test_a_failure_in_a_wave_is_rolled_back_wave_by_wave(waves: World, index: int, begun: Any, back: Any) -> None:
    waves.steps["ApplyChange"] = fail_at(index)
    ended = waves.run()
    assert ended.error == "rolled-back"
    assert steps(waves) == begun + back
    assert waves.published() == [("rolled-back", 0)]


@pytest.mark.parametrize("after", [2, 3, 5])
def test_a_wave_that_does_not_take_effect_is_rolled_back_with_those_before_it(waves: World, after: int) -> None:
    waves.steps["VerifyPlan"] = lambda payload: (
        WRONG if (payload["direction"], payload["next"]) == ("apply", after) else SETTLED
    )
    ended = waves.run()
    assert (ended.error, ended.cause) == ("rolled-back", "the plan did not take effect: team-a: UpdateFailed")
    assert [step[2] for step in steps(waves) if step[:2] == ("ApplyChange", "restore")] == [*range(after - 1, -1, -1)]


def test_what_is_not_back_keeps_the_waves_before_it_from_being_taken_back(waves: World) -> None:
    waves.steps["ApplyChange"] = fail_at(3)
    waves.steps["VerifyPlan"] = lambda payload: WRONG if payload["direction"] == "restore" else SETTLED
    ended = waves.run()
    assert ended.error == "rollback-failed"
    assert [step for step in steps(waves) if step[1] == "restore"] == [*restored(4, 3), verified(2, "restore")]
    assert waves.published() == [("rollback-failed", 3)]


def test_what_is_still_settling_is_restored_when_it_has(waves: World) -> None:
    settling = [2]

    def apply(payload: dict[str, Any]) -> dict[str, Any]:
        if (payload["direction"], payload["index"]) == ("apply", 1):
            raise TaskFailedError("NotFoundError", "gone")
        if (payload["direction"], payload["index"]) == ("restore", 0) and settling:
            settling.pop()
            return {"next": 0, "written": 0, "left": 0, "inFlight": True, "waveEnds": False}
        return one_change(payload)

    waves.steps["ApplyChange"] = apply
    assert waves.run().error == "rolled-back"
    assert [step for step in steps(waves) if step[1] == "restore"] == [*restored(1, 0, 0), verified(-1, "restore")]
    assert waves.execution.trace.count("Wait to restore") == 1


def test_one_that_cannot_be_reached_ends_its_wave_like_any_other(waves: World) -> None:
    def apply(payload: dict[str, Any]) -> dict[str, Any]:
        if (payload["direction"], payload["index"]) in {("apply", 4), ("restore", 3)}:
            raise TaskFailedError("UpstreamError", "down")
        return one_change(payload)

    waves.steps["ApplyChange"] = apply
    assert waves.run().error == "rolled-back"
    back = [step for step in dict.fromkeys(steps(waves)) if step[1] == "restore"]
    assert back[:4] == [*restored(4, 3), verified(2, "restore"), *restored(2)]


def test_an_edit_between_two_waves_is_a_conflict_and_nothing_is_forced_or_taken_back(waves: World) -> None:
    two = planned("apply", changes=5, waves=WAVES)
    waves.steps["PlanQuotas"] = in_turn(two, two, planned("apply", changes=1))
    waves.steps["ApplyChange"] = in_turn(one_change, one_change, TaskFailedError("ConflictError"), one_change)
    assert waves.run().output["outcome"] == "applied"
    assert steps(waves) == [*written(0, 1), verified(2), *written(2), *written(0), verified(1)]


def test_a_lock_lost_between_two_waves_leaves_the_rest_to_the_other_run(waves: World) -> None:
    def apply(payload: dict[str, Any]) -> dict[str, Any]:
        if payload["index"] == 2:
            waves.set_state(lockOwner={"S": ANOTHER}, lockExpires={"N": str(NOW + 600)}, fencingToken={"N": "9"})
            raise TaskFailedError("LockLostError")
        return one_change(payload)

    waves.steps["ApplyChange"] = apply
    waves.run()
    assert steps(waves) == [*written(0, 1), verified(2), *written(2)]
    assert waves.published() == [("failed", 2)]
    assert waves.state()["lockOwner"] == {"S": ANOTHER}


def test_an_approval_holds_for_all_waves(waves: World) -> None:
    first, again = (planned(outcome, changes=5, waves=WAVES) for outcome in ("needs-approval", "apply"))
    waves.steps["PlanQuotas"] = in_turn(first, again)
    waves.integrations["Ask for approval"] = approve()
    assert waves.run().output["applied"] == 5


def test_a_plan_without_progress_fails_once_writes_nothing_and_is_looked_at_again_when_time_changes_it(
    world: World,
) -> None:
    world.steps["PlanQuotas"] = lambda _: planned("no-progress", changes=2, recheckAt="2026-11-20T09:20:00Z")
    ended = world.run()
    assert ended.error == "failed"
    assert ended.cause.startswith("no-progress: ")
    assert world.published() == [("failed", 0)]
    assert world.payloads("ApplyChange") == []
    assert [each["ScheduleExpression"] for each in world.schedules] == ["at(2026-11-20T09:20:00)"]
    assert len(world.payloads("ReadSnapshot")) == 1
    assert "lockOwner" not in world.state()
