"""Waves of writes: each settles before the next begins; what fails ends there, and nothing is taken back."""

from typing import Any

import pytest

from taskgov_embedded.stepfunctions.host import TaskFailedError
from tests.statemachines.conftest import PENDING, World, in_turn, looked, one_change, one_refusal, planned
from tests.statemachines.test_reconcile import ANOTHER, NOW, approve

WAVES = (2, 3, 5)
"""Three waves of two, one and two changes."""
FAILED = looked(refused=["team-a has status UpdateFailed: no answer"])
OTHER = "b" * 64


@pytest.fixture
def waves(world: World) -> World:
    world.steps["PlanQuotas"] = lambda _: planned("apply", changes=5, waves=WAVES)
    return world


def steps(world: World) -> list[tuple[str, int]]:
    """Return what was written and verified, in order: step, index (or what is due next)."""
    return [
        (name, payload["index"] if name == "ApplyChange" else payload["next"])
        for name, payload in world.calls
        if name in {"ApplyChange", "VerifyPlan"}
    ]


def written(*indexes: int) -> list[tuple[str, int]]:
    return [("ApplyChange", index) for index in indexes]


def verified(following: int) -> tuple[str, int]:
    return ("VerifyPlan", following)


def planned_around(world: World, changes: int = 1) -> None:
    """Let the first plan be the one of three waves, and the next one another."""
    first, then = planned("apply", changes=5, waves=WAVES), planned("apply", changes=changes, digest=OTHER)
    world.steps["PlanQuotas"] = in_turn(first, first, then)


def answer_at(index: int, answer: Any) -> Any:
    """Answer once otherwise when this change is due."""
    left = [index]

    def apply(payload: dict[str, Any]) -> dict[str, Any]:
        if payload["index"] in left:
            left.clear()
            if isinstance(answer, Exception):
                raise answer
            return answer(payload)  # type: ignore[no-any-return]
        return one_change(payload)

    return apply


def test_each_wave_has_settled_before_the_next_begins(waves: World) -> None:
    assert waves.run().output == {"outcome": "applied", "applied": 5, "runId": "ml-cluster-1-1"}
    assert steps(waves) == [*written(0, 1), verified(2), *written(2), verified(3), *written(3, 4), verified(5)]


def test_a_wave_is_waited_for_as_often_as_it_takes(waves: World) -> None:
    waves.steps["VerifyPlan"] = in_turn(*[PENDING] * 17, looked(), *[PENDING] * 17, looked())
    assert waves.run().output["outcome"] == "applied"
    assert steps(waves)[1:20] == [*written(1), *[verified(2)] * 18]


def test_a_wave_that_is_slow_to_settle_is_progressing_and_looked_at_again_in_five_minutes(waves: World) -> None:
    waves.steps["VerifyPlan"] = in_turn(PENDING)
    start = waves.execution.moment
    ended = waves.run()
    assert ended.error is None
    assert ended.output["outcome"] == "progressing"
    assert steps(waves) == [*written(0, 1), *[verified(2)] * 18]
    minutes = (waves.execution.moment - start).total_seconds() / 60
    assert 12 < minutes < 14
    assert waves.payloads("PublishUsage")[0]["error"] == "still settling: team-a has status Updating at version 2"
    assert waves.published() == [("progressing", 2)]
    # 13.5 minutes of waiting after nine o'clock, and five more.
    assert [each["ScheduleExpression"] for each in waves.schedules] == ["at(2026-11-20T09:18:30)"]
    assert "lockOwner" not in waves.state()


def test_waves_that_settle_slowly_one_after_the_other_end_after_sixty_looks(waves: World) -> None:
    waves.steps["PlanQuotas"] = lambda _: planned("apply", changes=12, waves=tuple(range(1, 13)))
    looks = iter(range(1, 1000))
    waves.steps["VerifyPlan"] = lambda _: looked() if next(looks) % 11 == 0 else PENDING
    assert waves.run().output["outcome"] == "progressing"
    assert sum(step == "VerifyPlan" for step, _ in steps(waves)) == 60


def test_the_lease_is_five_minutes_when_writing_begins(waves: World) -> None:
    """The functions renew it from then on: before each write, and in each check."""
    seen = []

    def apply(payload: dict[str, Any]) -> dict[str, Any]:
        seen.append(int(waves.state()["lockExpires"]["N"]) - NOW)
        return one_change(payload)

    waves.steps["ApplyChange"] = apply
    waves.run()
    assert set(seen) == {300}


class TestRefused:
    """What is refused for good is planned around in the same run."""

    @pytest.mark.parametrize(
        ("index", "begun"),
        [
            (1, [*written(0, 1), verified(2)]),
            (2, [*written(0, 1), verified(2), *written(2), verified(3)]),
            (3, [*written(0, 1), verified(2), *written(2), verified(3), *written(3, 4), verified(5)]),
        ],
        ids=["the first", "the second", "the third"],
    )
    def test_the_rest_of_the_wave_is_written_and_settles_before_another_plan_is_made(
        self, waves: World, index: int, begun: Any
    ) -> None:
        planned_around(waves)
        waves.steps["ApplyChange"] = answer_at(index, one_refusal)
        ended = waves.run()
        assert steps(waves) == [*begun, *written(0), verified(1)]
        assert len(waves.payloads("ReadSnapshot")) == 4  # each plan is asked for by two snapshots
        assert (ended.error, ended.cause) == (
            "unfinished",
            "refused: team-c (limit-reached): the account has no more",
        )

    def test_a_write_that_settles_as_failed_is_planned_around_too(self, waves: World) -> None:
        planned_around(waves)
        waves.steps["VerifyPlan"] = in_turn(FAILED, looked())
        ended = waves.run()
        assert steps(waves) == [*written(0, 1), verified(2), *written(0), verified(1)]
        assert ended.cause == "refused: team-a has status UpdateFailed: no answer"
        assert waves.published() == [("unfinished", 3)]

    def test_a_run_that_may_not_plan_again_because_another_took_the_lock_is_on_record(self, waves: World) -> None:
        def lose(_: dict[str, Any]) -> dict[str, Any]:
            waves.set_state(lockOwner={"S": ANOTHER}, lockExpires={"N": str(NOW + 600)}, fencingToken={"N": "9"})
            return FAILED

        planned_around(waves)
        waves.steps["VerifyPlan"] = lose
        assert waves.run().output == {"outcome": "left-to-the-run-that-holds-the-lock"}
        assert steps(waves) == [*written(0, 1), verified(2)]
        assert waves.published() == [("unfinished", 2)]
        assert waves.payloads("PublishUsage")[0]["error"] == (
            "refused: team-a has status UpdateFailed: no answer; "
            "LockLostError: another run took the lock before this one could plan again"
        )
        assert waves.state()["lockOwner"] == {"S": ANOTHER}

    def test_what_fails_while_others_of_its_wave_settle_waits_for_them(self, waves: World) -> None:
        planned_around(waves)
        waves.steps["VerifyPlan"] = in_turn(FAILED | PENDING | {"refused": FAILED["refused"]}, FAILED, looked())
        assert waves.run().error == "unfinished"
        assert steps(waves) == [*written(0, 1), verified(2), verified(2), *written(0), verified(1)]

    @pytest.mark.parametrize("outcome", ["nothing-to-do", "blocked", "needs-approval"])
    def test_a_run_that_was_refused_a_write_is_unfinished_whatever_the_next_plan_says(
        self, waves: World, outcome: str
    ) -> None:
        first = planned("apply", changes=5, waves=WAVES)
        waves.steps["PlanQuotas"] = in_turn(first, first, planned(outcome, changes=0))
        waves.steps["ApplyChange"] = answer_at(1, one_refusal)
        assert waves.run().error == "unfinished"
        assert waves.published() == [("unfinished", 1)]
        assert waves.notices == []
        assert len(waves.schedules) == (outcome == "needs-approval")  # the next run asks for it, in a minute

    def test_every_refusal_of_every_round_is_named(self, waves: World) -> None:
        first, then = planned("apply", changes=5, waves=WAVES), planned("apply", changes=1, digest=OTHER)
        waves.steps["PlanQuotas"] = in_turn(first, first, then, then, planned("nothing-to-do"))
        refusals = iter(["one", "two"])
        waves.steps["ApplyChange"] = lambda payload: (
            one_change(payload, written=0) | {"refused": [next(refusals)]}
            if payload["index"] == 0
            else one_change(payload)
        )
        assert waves.run().cause == "refused: one; two"

    def test_rounds_are_bounded_and_the_next_run_continues(self, waves: World) -> None:
        digests = iter(range(10**6))
        waves.steps["PlanQuotas"] = lambda _: planned("apply", changes=1, digest=f"{next(digests) // 2:064x}")
        waves.steps["ApplyChange"] = one_refusal
        assert waves.run().error == "unfinished"
        assert len(waves.payloads("ApplyChange")) == 5
        assert len(waves.schedules) == 1
        assert len(waves.payloads("PublishUsage")[0]["begun"]) == 5

    def test_a_snapshot_that_cannot_be_read_afterwards_does_not_hide_the_refusal(self, waves: World) -> None:
        waves.steps["ApplyChange"] = answer_at(0, one_refusal)
        read = waves.steps["ReadSnapshot"]
        waves.steps["ReadSnapshot"] = in_turn(read, read, TaskFailedError("NotFoundError", "gone"))
        ended = waves.run()
        assert ended.error == "unfinished"
        assert ended.cause == "refused: team-c (limit-reached): the account has no more; NotFoundError: gone"
        assert len(waves.schedules) == 1


@pytest.mark.parametrize(
    "error", ["NotFoundError", "InvalidRequestError", "ThrottledError", "UpstreamError", "KeyError"]
)
@pytest.mark.parametrize("index", [0, 1, 2, 4])
def test_a_call_that_fails_ends_the_run_where_it_is_and_the_next_is_due_in_a_minute(
    waves: World, index: int, error: str
) -> None:
    def apply(payload: dict[str, Any]) -> dict[str, Any]:
        if payload["index"] == index:
            raise TaskFailedError(error, "as the test says")
        return one_change(payload)

    waves.steps["ApplyChange"] = apply
    ended = waves.run()
    assert (ended.error, ended.cause) == ("unfinished", f"{error}: as the test says")
    assert waves.published() == [("unfinished", index)]
    assert len(waves.schedules) == 1
    assert "lockOwner" not in waves.state()


def test_what_is_not_as_it_was_written_ends_the_run(waves: World) -> None:
    waves.steps["VerifyPlan"] = in_turn(looked(problems=["team-a holds 3 x ml.g5.8xlarge, and not what was written"]))
    ended = waves.run()
    assert ended.error == "unfinished"
    assert ended.cause == "the plan did not take effect: team-a holds 3 x ml.g5.8xlarge, and not what was written"
    assert steps(waves) == [*written(0, 1), verified(2)]


def test_an_edit_after_a_write_has_the_waves_that_are_left_planned_anew(waves: World) -> None:
    planned_around(waves)
    waves.steps["VerifyPlan"] = in_turn(looked(edited=["team-a was changed by somebody since: version 3"]), looked())
    assert waves.run().output["outcome"] == "applied"
    assert steps(waves) == [*written(0, 1), verified(2), *written(0), verified(1)]


def test_an_edit_after_the_last_wave_ends_the_run_with_its_own_writes(waves: World) -> None:
    edited = looked(edited=["team-a was changed by somebody since: version 3"])
    waves.steps["VerifyPlan"] = in_turn(looked(), looked(), edited)
    assert waves.run().output == {"outcome": "applied", "applied": 5, "runId": "ml-cluster-1-1"}


def test_an_edit_between_two_waves_is_a_conflict_and_nothing_is_forced_or_taken_back(waves: World) -> None:
    planned_around(waves)
    waves.steps["ApplyChange"] = answer_at(2, TaskFailedError("ConflictError"))
    assert waves.run().output["outcome"] == "applied"
    assert steps(waves) == [*written(0, 1), verified(2), *written(2), *written(0), verified(1)]
    assert waves.published() == [("applied", 3)]


def test_a_round_that_ends_in_a_conflict_counts_when_a_later_one_fails(waves: World) -> None:
    planned_around(waves)
    fails = TaskFailedError("UpstreamError", "down")
    calls: Any = iter([one_change, one_change, TaskFailedError("ConflictError"), fails, fails, fails, fails])

    def apply(payload: dict[str, Any]) -> dict[str, Any]:
        answer = next(calls)
        if isinstance(answer, Exception):
            raise answer
        return answer(payload)  # type: ignore[no-any-return]

    waves.steps["ApplyChange"] = apply
    assert waves.run().error == "unfinished"
    assert waves.published() == [("unfinished", 2)]
    assert len(waves.payloads("PublishUsage")[0]["begun"]) == 2


def test_a_conflict_that_leaves_nothing_to_do_has_applied_what_was_written(waves: World) -> None:
    first = planned("apply", changes=5, waves=WAVES)
    waves.steps["PlanQuotas"] = in_turn(first, first, planned("nothing-to-do"))
    waves.steps["ApplyChange"] = answer_at(2, TaskFailedError("ConflictError"))
    assert waves.run().output["outcome"] == "applied"
    assert waves.published() == [("applied", 2)]


@pytest.mark.parametrize("step", ["ApplyChange", "VerifyPlan"])
def test_a_lock_lost_while_writing_leaves_the_rest_to_the_other_run(waves: World, step: str) -> None:
    def lose(payload: dict[str, Any]) -> dict[str, Any]:
        if payload.get("index", payload.get("next")) == 2:
            waves.set_state(lockOwner={"S": ANOTHER}, lockExpires={"N": str(NOW + 600)}, fencingToken={"N": "9"})
            raise TaskFailedError("LockLostError")
        return one_change(payload)

    waves.steps[step] = lose
    waves.run()
    assert steps(waves)[-1] == (step, 2)
    assert waves.published() == [("unfinished", 2)]
    assert waves.state()["lockOwner"] == {"S": ANOTHER}


def test_what_the_records_say_was_written_goes_before_the_count_of_the_machine(waves: World) -> None:
    waves.steps["PublishUsage"] = lambda _: {"published": 1, "applied": 4}
    assert waves.run().output["applied"] == 4


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
