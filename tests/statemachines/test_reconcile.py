"""Every way through the reconcile state machine."""

import json
from datetime import datetime
from typing import Any

import pytest

from taskgov.contracts.events import Hint, Subject, parse_event
from taskgov.services.receive_event import execution_name
from taskgov_embedded.stepfunctions.expressions import evaluate
from taskgov_embedded.stepfunctions.host import TaskFailedError
from tests.statemachines.conftest import (
    CLUSTER,
    DIGEST,
    PENDING,
    Failing,
    World,
    in_turn,
    looked,
    one_change,
    planned,
    pointer,
)
from tests.statemachines.machines import definition

ANOTHER = "arn:aws:states:us-east-1:111122223333:execution:reconcile:another"
NOW = 1795165200
"""2026-11-20T09:00:00Z, where the interpreter's clock starts."""


def approve(**answer: Any) -> Any:
    return in_turn({"approved": True, "by": "ana", "person": "user/ana", **answer})


def test_a_run_without_changes_publishes_and_leaves_the_lock_free(world: World) -> None:
    world.set_state(generation={"N": "3"})
    ended = world.run()
    assert ended.output == {"outcome": "nothing-to-do", "applied": 0, "runId": "ml-cluster-1-1"}
    assert world.published() == [("nothing-to-do", 0)]
    assert world.state()["fencingToken"] == {"N": "1"}
    assert not world.state().keys() & {"lockOwner", "lockExpires"}


@pytest.mark.parametrize("outcome", ["nothing-to-do", "planned", "blocked"])
def test_what_is_not_to_be_applied_is_published_and_writes_nothing(world: World, outcome: str) -> None:
    world.steps["PlanQuotas"] = in_turn(planned(outcome, changes=2))
    assert world.run().output["outcome"] == outcome
    assert world.published() == [(outcome, 0)]
    assert world.payloads("ApplyChange") == []


def test_a_first_run_needs_no_state_in_the_table(world: World) -> None:
    assert world.run().error is None


def test_a_run_leaves_a_cluster_to_the_run_that_holds_the_lock(world: World) -> None:
    held = {"lockOwner": {"S": ANOTHER}, "lockExpires": {"N": str(NOW + 60)}}
    world.set_state(**held)
    assert world.run().output == {"outcome": "left-to-the-run-that-holds-the-lock"}
    assert world.calls == []
    assert {name: world.state()[name] for name in held} == held


def test_an_expired_lock_is_taken_over_with_a_higher_fencing_token(world: World) -> None:
    world.set_state(lockOwner={"S": ANOTHER}, lockExpires={"N": str(NOW - 1)}, fencingToken={"N": "7"})
    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=1))
    assert world.run().error is None
    assert world.payloads("ApplyChange")[0]["fencingToken"] == 8


def test_a_lock_without_an_end_is_taken_over_as_an_expired_one_is(world: World) -> None:
    world.set_state(lockOwner={"S": ANOTHER}, fencingToken={"N": "7"})
    assert world.run().output["outcome"] == "nothing-to-do"
    assert world.state()["fencingToken"] == {"N": "8"}
    assert "lockOwner" not in world.state()


def test_changes_are_applied_one_by_one_in_plan_order_with_the_lock(world: World) -> None:
    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=3))
    assert world.run().output["applied"] == 3
    assert world.payloads("ApplyChange") == [
        {
            "clusterArn": CLUSTER,
            "plan": pointer("plans"),
            "index": index,
            "count": 25,
            "lockOwner": world.execution.arn,
            "fencingToken": 1,
        }
        for index in range(3)
    ]
    assert world.published() == [("applied", 3)]


def test_a_change_that_was_written_already_is_not_counted(world: World) -> None:
    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=2))
    world.steps["ApplyChange"] = in_turn({"next": 1, "written": 0}, {"next": 2, "written": 1})
    assert world.run().output["applied"] == 1


def test_hints_that_come_during_a_run_cause_one_more_run_and_not_more(world: World) -> None:
    hints = [3]

    def hint_while_planning(name: str) -> None:
        if name == "Plan quotas":
            for _ in range(hints.pop() if hints else 0):
                world.hint()

    world.before_task = hint_while_planning
    ended = world.run()
    assert ended.error is None
    assert [payload["runId"] for payload in world.payloads("PublishUsage")] == ["ml-cluster-1-1", "ml-cluster-1-2"]
    assert "lockOwner" not in world.state()


def test_a_cluster_that_never_keeps_still_is_let_go_after_twenty_rounds_and_another_execution_is_due(
    world: World,
) -> None:
    world.before_task = lambda name: world.hint() if name == "Plan quotas" else None
    ended = world.run()
    assert ended.error is None
    assert len(world.payloads("ReadSnapshot")) == 20
    assert world.execution.trace[-5:] == [
        "Let go of the lock",
        "Look again then",
        "Holds the lock?",
        "How did it end?",
        "Run is over",
    ]
    assert [each["ScheduleExpression"] for each in world.schedules] == ["at(2026-11-20T09:01:00)"]
    assert "lockOwner" not in world.state()


def test_a_conflict_leads_to_a_new_snapshot_and_nothing_is_taken_back(world: World) -> None:
    both = planned("apply", changes=2)
    world.steps["PlanQuotas"] = in_turn(both, both, planned("apply", changes=1))
    world.steps["ApplyChange"] = in_turn(one_change, TaskFailedError("ConflictError"), one_change)
    ended = world.run()
    assert [payload["index"] for payload in world.payloads("ApplyChange")] == [0, 1, 0]
    assert [payload["fencingToken"] for payload in world.payloads("ApplyChange")] == [1, 1, 2]
    assert ended.output["applied"] == 2
    assert world.published() == [("applied", 2)]


def test_conflicts_without_end_fail_the_run(world: World) -> None:
    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=1))
    world.steps["ApplyChange"] = in_turn(TaskFailedError("ConflictError"))
    ended = world.run()
    assert ended.error == "failed"
    assert ended.cause.startswith("ConflictError")
    assert len(world.payloads("ReadSnapshot")) == 21  # twice before the first write
    assert "Exchange the request for the lock" not in world.execution.trace
    assert world.published() == [("failed", 0)]
    # Nothing is forgotten: another execution is due in a minute.
    assert len(world.schedules) == 1


@pytest.mark.parametrize("then", ["LockLostError", "ConflictError"])
def test_a_run_whose_first_call_may_have_written_is_not_one_that_wrote_nothing(world: World, then: str) -> None:
    world.steps["PlanQuotas"] = lambda _: planned("apply", changes=5, waves=(2, 3, 5))
    world.steps["ApplyChange"] = in_turn(TaskFailedError("Lambda.Unknown"), TaskFailedError(then))
    read = world.steps["ReadSnapshot"]
    world.steps["ReadSnapshot"] = in_turn(read, read, TaskFailedError("NotFoundError"))
    ended = world.run()
    assert len(world.payloads("ApplyChange")) == 2
    assert ended.error == "unfinished"
    assert world.published()[0][0] == "unfinished"


def test_a_run_that_lost_its_lock_writes_nothing_more_and_leaves_the_cluster_to_the_other(world: World) -> None:
    def lose(_: dict[str, Any]) -> None:
        world.set_state(lockOwner={"S": ANOTHER}, lockExpires={"N": str(NOW + 600)}, fencingToken={"N": "9"})
        raise TaskFailedError("LockLostError")

    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=2))
    world.steps["ApplyChange"] = lose
    assert world.run().output == {"outcome": "left-to-the-run-that-holds-the-lock"}
    assert len(world.payloads("ApplyChange")) == 1
    assert world.published() == [("failed", 0)]
    assert world.payloads("PublishUsage")[0]["error"].startswith("LockLostError")
    assert world.state()["lockOwner"] == {"S": ANOTHER}


class TestLookingTwice:
    """Nothing is written that a fresh snapshot, read right before, does not ask for too."""

    def test_a_plan_is_made_again_from_a_fresh_snapshot_right_before_the_first_write(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("apply", changes=1))
        world.run()
        assert [name for name, _ in world.calls] == [
            *["ReadSnapshot", "PlanQuotas"] * 2,
            "ApplyChange",
            "VerifyPlan",
            "PublishUsage",
        ]

    def test_a_world_that_moved_gets_another_plan_and_the_stale_one_is_never_written(self, world: World) -> None:
        stale, fresh = (planned("apply", changes=1, digest=digest * 64) for digest in "bc")
        fresh["plan"] = pointer("fresh")
        world.steps["PlanQuotas"] = in_turn(stale, fresh)
        assert world.run().output["outcome"] == "applied"
        assert len(world.payloads("PlanQuotas")) == 3
        assert [payload["plan"] for payload in world.payloads("ApplyChange")] == [pointer("fresh")]

    @pytest.mark.parametrize("outcome", ["nothing-to-do", "blocked", "needs-approval"])
    def test_a_world_that_moved_may_leave_nothing_to_write(self, world: World, outcome: str) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("apply", changes=1), planned(outcome, changes=1, digest="b" * 64))
        world.run()
        assert world.payloads("ApplyChange") == []

    def test_a_world_that_never_keeps_still_is_not_written_to(self, world: World) -> None:
        digests = iter(range(10**6))
        world.steps["PlanQuotas"] = lambda _: planned("apply", changes=1, digest=f"{next(digests):064x}")
        ended = world.run()
        assert ended.error == "failed"
        assert "each of six snapshots asked for other changes" in ended.cause
        assert world.payloads("ApplyChange") == []
        assert "lockOwner" not in world.state()

    def test_what_was_approved_is_compared_with_one_fresh_snapshot(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1), planned("apply", changes=1))
        world.integrations["Ask for approval"] = approve()
        assert world.run().output["outcome"] == "applied"
        assert len(world.payloads("ReadSnapshot")) == 2

    def test_other_changes_than_the_approved_ones_are_not_written_in_their_name(self, world: World) -> None:
        moved = planned("apply", changes=3, digest="b" * 64)
        other = planned("apply", changes=4, digest="c" * 64)
        world.steps["PlanQuotas"] = in_turn(
            planned("needs-approval", changes=2), moved, other, planned("nothing-to-do")
        )
        world.integrations["Ask for approval"] = approve()
        world.run()
        assert world.payloads("ApplyChange") == []


def test_a_hint_that_the_snapshot_has_seen_causes_no_other_run(world: World) -> None:
    world.before_task = lambda name: world.hint() if name == "Read snapshot" else None
    world.run()
    assert len(world.payloads("ReadSnapshot")) == 1


def test_functions_that_nobody_can_invoke_any_more_leave_the_count_on_record(world: World) -> None:
    def apply(payload: dict[str, Any]) -> dict[str, Any]:
        if payload["index"] == 2:
            raise TaskFailedError("Lambda.TooManyRequestsException", "Rate Exceeded")
        return one_change(payload)

    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=3))
    world.steps["ApplyChange"] = apply
    world.steps["PublishUsage"] = in_turn(TaskFailedError("Lambda.TooManyRequestsException", "Rate Exceeded"))
    ended = world.run()
    assert ended.cause == (
        "ended unfinished, and no answer says that it was published (writes whose calls did not answer are not "
        "counted): Lambda.TooManyRequestsException: Rate Exceeded; "
        "what went wrong before: Lambda.TooManyRequestsException: Rate Exceeded"
    )
    (record,) = [item for item in world.items() if item["sk"]["S"].startswith("RUN#")]
    assert (record["outcome"]["S"], record["applied"]["N"]) == ("unfinished", "2")
    assert record["planId"]["S"] == "plan-1"
    assert len(world.schedules) == 1
    assert "lockOwner" not in world.state()


def test_verifying_waits_until_the_statuses_have_settled(world: World) -> None:
    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=1))
    world.steps["VerifyPlan"] = in_turn(PENDING, PENDING, looked())
    start = world.execution.moment
    assert world.run().output["outcome"] == "applied"
    assert (world.execution.moment - start).total_seconds() == 30


@pytest.mark.parametrize(
    ("error", "calls"), [("ThrottledError", 7), ("UpstreamError", 4), ("NotFoundError", 1), ("KeyError", 1)]
)
def test_a_plan_that_cannot_be_verified_is_unfinished_and_nothing_is_taken_back(
    world: World, error: str, calls: int
) -> None:
    failing = Failing(error, calls, world.steps["VerifyPlan"])
    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=1))
    world.steps["VerifyPlan"] = in_turn(PENDING, failing)
    ended = world.run()
    assert failing.times == 0
    assert (ended.error, ended.cause) == ("unfinished", f"{error}: as the test says")
    assert len(world.payloads("ApplyChange")) == 1
    assert world.published() == [("unfinished", 1)]
    assert len(world.schedules) == 1


@pytest.mark.parametrize("step", ["ReadSnapshot", "PlanQuotas", "ApplyChange", "VerifyPlan", "PublishUsage"])
@pytest.mark.parametrize(
    ("error", "times"),
    [
        ("ThrottledError", 6),
        ("UpstreamError", 3),
        ("Lambda.TooManyRequestsException", 6),
        ("Lambda.Unknown", 3),
        ("States.Timeout", 3),
    ],
)
def test_a_passing_fault_is_retried_until_it_passes(world: World, step: str, error: str, times: int) -> None:
    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=1))
    world.steps[step] = Failing(error, times, world.steps[step])
    assert world.run().output["outcome"] == "applied"


@pytest.mark.parametrize("step", ["ReadSnapshot", "PlanQuotas"])
@pytest.mark.parametrize(
    ("error", "calls"),
    [("ThrottledError", 7), ("UpstreamError", 4), ("InvalidRequestError", 1), ("KeyError", 1), ("States.Timeout", 4)],
)
def test_a_fault_before_the_first_write_fails_the_run_and_frees_the_lock(
    world: World, step: str, error: str, calls: int
) -> None:
    world.hint()
    cause = '{"errorMessage":"as the \\\\"test\\\\" says","errorType":"any","stackTrace":["File"]}'
    world.steps[step] = in_turn(TaskFailedError(error, cause))
    ended = world.run()
    assert (ended.error, ended.cause) == ("failed", f'{error}: as the \\\\"test\\\\" says')
    assert len(world.payloads(step)) == calls
    assert world.published() == [("failed", 0)]
    assert world.payloads("PublishUsage")[0]["error"] == ended.cause
    assert "lockOwner" not in world.state()


UNREADABLE = {"unreadable": "UpstreamError: list nodes: 403 Forbidden"}


def test_a_cluster_that_cannot_be_read_fails_no_run_and_frees_the_lock(world: World) -> None:
    world.hint()
    world.steps["ReadSnapshot"] = lambda _: UNREADABLE
    ended = world.run()
    assert (ended.error, ended.output["outcome"]) == (None, "unreadable")
    assert len(world.payloads("ReadSnapshot")) == 4
    assert world.published() == [("unreadable", 0)]
    assert world.payloads("PublishUsage")[0]["error"] == UNREADABLE["unreadable"]
    assert "lockOwner" not in world.state()
    assert world.schedules == []


def test_a_cluster_that_can_be_read_again_soon_is_planned_for(world: World) -> None:
    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=1))
    world.steps["ReadSnapshot"] = in_turn(UNREADABLE, UNREADABLE, world.steps["ReadSnapshot"])
    assert world.run().output["outcome"] == "applied"


def test_a_run_that_began_to_write_and_then_cannot_read_is_unfinished(world: World) -> None:
    """What a call wrote before it met the conflict is counted from the records: the machine does not know of it."""
    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=2))
    world.steps["ApplyChange"] = in_turn(TaskFailedError("ConflictError", "somebody was faster"))
    read = world.steps["ReadSnapshot"]
    world.steps["ReadSnapshot"] = in_turn(read, read, UNREADABLE)
    ended = world.run()
    assert (ended.error, ended.cause) == ("unfinished", UNREADABLE["unreadable"])
    assert world.published() == [("unfinished", 0)]
    assert len(world.schedules) == 1, "another run is due in a minute"


def test_a_run_that_cannot_be_published_frees_the_lock_and_fails(world: World) -> None:
    world.steps["PublishUsage"] = in_turn(TaskFailedError("UpstreamError", "bus down"))
    ended = world.run()
    assert ended.error == "failed"
    assert ended.cause == "ended nothing-to-do, and no answer says that it was published: UpstreamError: bus down"
    assert "lockOwner" not in world.state()


def test_a_run_that_cannot_be_published_is_on_record_all_the_same(world: World) -> None:
    world.steps["PlanQuotas"] = in_turn(planned("apply", changes=2))
    world.steps["PublishUsage"] = in_turn(TaskFailedError("UpstreamError", "bus down"))
    world.run()
    (record,) = [item for item in world.items() if item["sk"]["S"].startswith("RUN#")]
    assert record["sk"]["S"].endswith("+00:00#ml-cluster-1-1")
    assert (record["outcome"]["S"], record["applied"]["N"]) == ("unfinished", "2")
    assert record["error"]["S"] == (
        "ended applied, and no answer says that it was published (writes whose calls did not answer are not counted): "
        "UpstreamError: bus down"
    )
    assert record["planId"]["S"] == "plan-1"
    assert json.loads(record["snapshot"]["S"]) == pointer("snapshots")


def test_a_record_that_publishing_left_stays_and_says_what_was_not_published(world: World) -> None:
    def publish(payload: dict[str, Any]) -> dict[str, Any]:
        began = datetime.fromisoformat(payload["startedAt"]).isoformat()
        key = {"pk": {"S": f"CLUSTER#{CLUSTER}"}, "sk": {"S": f"RUN#{began}#{payload['runId']}"}}
        world.put(key | {"outcome": {"S": "nothing-to-do"}})
        raise TaskFailedError("UpstreamError", "bus down")

    world.steps["PublishUsage"] = publish
    assert world.run().error == "failed"
    records = [item for item in world.items() if item["sk"]["S"].startswith("RUN#")]
    assert [record["outcome"]["S"] for record in records] == ["nothing-to-do"]
    assert records[0]["error"]["S"].endswith("no answer says that it was published: UpstreamError: bus down")


def test_a_table_that_is_down_fails_the_run_and_is_reported(world: World) -> None:
    world.integrations["Take the lock"] = in_turn(TaskFailedError("DynamoDB.InternalServerErrorException", "down"))
    ended = world.run()
    assert (ended.error, ended.cause) == ("failed", "DynamoDB.InternalServerErrorException: down")
    assert world.published() == [("failed", 0)]


def test_a_lock_that_was_taken_by_a_call_without_an_answer_is_known_as_ones_own(world: World) -> None:
    world.set_state(lockOwner={"S": world.execution.arn}, lockExpires={"N": str(NOW + 900)}, fencingToken={"N": "1"})
    assert world.run().output["outcome"] == "nothing-to-do"


APPROVED = ["Keep the request", "Exchange the request for the lock"]


@pytest.mark.parametrize("state", ["Set the lock aside", *APPROVED, "Release the lock"])
def test_a_table_that_goes_down_later_fails_the_run_without_a_write(world: World, state: str) -> None:
    world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
    world.integrations["Ask for approval"] = approve()
    world.integrations[state] = in_turn(TaskFailedError("DynamoDB.InternalServerErrorException", "down"))
    if state == "Release the lock":
        world.steps["PlanQuotas"] = in_turn(planned("nothing-to-do"))
    ended = world.run()
    assert ended.error == "failed"
    assert "DynamoDB.InternalServerErrorException" in ended.cause
    assert world.payloads("ApplyChange") == []


@pytest.mark.parametrize("state", ["Take the lock", "Set the lock aside", *APPROVED, "Release the lock"])
def test_a_table_that_is_down_for_a_moment_does_no_harm(world: World, state: str) -> None:
    faults = [state] * 6

    def fail(name: str) -> None:
        if name in faults:
            faults.remove(name)
            raise TaskFailedError("DynamoDB.ProvisionedThroughputExceededException")

    world.before_task = fail
    world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1), planned("apply", changes=1))
    world.integrations["Ask for approval"] = approve()
    assert world.run().output["outcome"] == "applied"
    assert faults == []


def test_letting_go_of_a_lock_that_fails_does_not_change_the_outcome(world: World) -> None:
    world.before_task = lambda name: world.hint() if name == "Plan quotas" else None
    world.integrations["Let go of the lock"] = in_turn(TaskFailedError("DynamoDB.InternalServerErrorException"))
    assert world.run().output["outcome"] == "nothing-to-do"


class TestApproval:
    """Changes that a person has to agree to."""

    def test_the_request_names_the_commands_and_keeps_the_token_in_the_table(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        world.run()
        notice = world.notices[0]
        assert "approval needed for ml-cluster" in notice
        assert "\ntaskgov approve plan-1" in notice.replace("Approve: ", "")
        assert 'team-a 2 -> 1, "because"' in notice
        key = {"pk": {"S": f"APPROVAL#{CLUSTER}"}, "sk": {"S": "APPROVAL#plan-1"}}
        item = world.table.get_item(TableName="governance", Key=key)["Item"]
        assert item["taskToken"]["S"].startswith("token-")
        assert item["changesSha256"] == {"S": DIGEST}

    def test_other_runs_continue_while_a_person_thinks(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        held: list[tuple[bool, Any]] = []

        def answer(_: dict[str, Any]) -> dict[str, Any]:
            held.append(("lockOwner" in world.state(), world.state()["askedPlan"]))
            return {"approved": False, "by": "ana"}

        world.integrations["Ask for approval"] = answer
        world.run()
        assert held == [(False, {"S": "plan-1"})]

    def test_approved_changes_are_planned_anew_and_applied(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=2), planned("apply", changes=2))
        world.integrations["Ask for approval"] = approve()
        assert world.run().output == {"outcome": "applied", "applied": 2, "runId": "ml-cluster-1-2"}
        assert [payload["approvedChanges"] for payload in world.payloads("PlanQuotas")] == [None, DIGEST]
        assert [payload["approvedBy"] for payload in world.payloads("PlanQuotas")] == [None, "user/ana"]
        assert len(world.payloads("ReadSnapshot")) == 2
        assert world.payloads("PublishUsage")[0]["cause"]["what"] == "cluster InService; plan plan-1 approved by ana"
        assert not [name for name in world.state() if name.startswith("asked")]

    @pytest.mark.parametrize("error", ["NotFoundError", "KeyError"])
    def test_an_approved_plan_whose_snapshot_fails_is_a_failure(self, world: World, error: str) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        world.steps["ReadSnapshot"] = in_turn(world.steps["ReadSnapshot"], TaskFailedError(error))
        world.integrations["Ask for approval"] = approve()
        assert world.run().error == "failed"
        assert world.published() == [("failed", 0)]

    def test_an_approval_waits_for_the_run_that_holds_the_lock_meanwhile(self, world: World) -> None:
        def approved_while_another_runs(_: dict[str, Any]) -> dict[str, Any]:
            expires = str(int(world.execution.moment.timestamp()) + 100)
            world.set_state(**world.state() | {"lockOwner": {"S": ANOTHER}, "lockExpires": {"N": expires}})
            return {"approved": True, "by": "ana"}

        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1), planned("apply", changes=1))
        world.integrations["Ask for approval"] = approved_while_another_runs
        assert world.run().output["outcome"] == "applied"
        assert world.execution.trace.count("Wait for the lock") == 4

    def test_an_approval_that_waited_for_an_hour_is_on_record_as_not_applied(self, world: World) -> None:
        def approved_while_another_runs(_: dict[str, Any]) -> dict[str, Any]:
            in_a_day = str(int(world.execution.moment.timestamp()) + 86400)
            world.set_state(**world.state() | {"lockOwner": {"S": ANOTHER}, "lockExpires": {"N": in_a_day}})
            return {"approved": True, "by": "ana"}

        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        world.integrations["Ask for approval"] = approved_while_another_runs
        assert world.run().error == "failed"
        assert world.published() == [("failed", 0)]
        assert "approved, and not applied" in world.payloads("PublishUsage")[0]["error"]
        assert world.state()["lockOwner"] == {"S": ANOTHER}

    def test_an_approval_takes_a_free_lock_at_once(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1), planned("apply", changes=1))
        world.integrations["Ask for approval"] = approve()
        assert world.run().output["outcome"] == "applied"
        assert world.execution.trace.count("Wait for the lock") == 0

    def test_what_was_approved_stays_asked_for_until_its_run_has_the_lock(self, world: World) -> None:
        """However late it was approved: the run that has the lock meanwhile asks nobody again."""
        standing: list[tuple[str, bool]] = []

        def approved_in_the_last_second(_: dict[str, Any]) -> dict[str, Any]:
            now = int(world.execution.moment.timestamp())
            of_another = {"lockOwner": {"S": ANOTHER}, "lockExpires": {"N": str(now + 100)}}
            world.set_state(**world.state() | of_another | {"askedUntil": {"N": str(now + 1)}})
            return {"approved": True, "by": "ana"}

        def look(name: str) -> None:
            state = world.state()
            if name == "Exchange the request for the lock":
                until = int(state["askedUntil"]["N"])
                standing.append((state["askedChanges"]["S"], until > world.execution.moment.timestamp() + 3600))
            if name == "Read snapshot" and standing:
                standing.append(("gone", "askedBy" not in state))

        world.before_task = look
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1), planned("apply", changes=1))
        world.integrations["Ask for approval"] = approved_in_the_last_second
        assert world.run().output["outcome"] == "applied"
        assert standing == [(DIGEST, True)] * 5 + [("gone", True)]

    def test_other_changes_than_the_approved_ones_are_asked_for_anew(self, world: World) -> None:
        moved = planned("needs-approval", changes=3, digest="b" * 64)
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=2), moved)
        world.integrations["Ask for approval"] = in_turn(
            {"approved": True, "by": "ana"}, {"approved": False, "by": "bo"}
        )
        ended = world.run()
        assert ended.output["outcome"] == "rejected"
        assert len(world.notices) == 2
        assert world.payloads("ApplyChange") == []

    def test_a_rejected_plan_is_not_applied_and_not_asked_for_again(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        world.integrations["Ask for approval"] = in_turn({"approved": False, "by": "bo"})
        assert world.run().output["outcome"] == "rejected"
        assert world.payloads("PublishUsage")[0]["error"] == "rejected by bo"
        world.execution.arn += "-next"  # a run of its own: this one is over
        assert world.run().output["outcome"] == "needs-approval"
        assert len(world.notices) == 1
        assert world.payloads("ApplyChange") == []

    def test_a_rejected_request_stands_without_an_execution_that_waits(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        world.integrations["Ask for approval"] = in_turn({"approved": False, "by": "bo"})
        assert world.run().output["outcome"] == "rejected"
        assert world.state()["askedChanges"] == {"S": DIGEST}
        assert "askedBy" not in world.state()

    def test_a_rejection_of_an_older_request_leaves_a_newer_one_standing(self, world: World) -> None:
        newer = {"askedChanges": {"S": "c" * 64}, "askedUntil": {"N": str(NOW + 9000)}, "askedBy": {"S": ANOTHER}}

        def rejected_late(_: dict[str, Any]) -> dict[str, Any]:
            world.set_state(**newer)
            return {"approved": False, "by": "bo"}

        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", 1))
        world.integrations["Ask for approval"] = rejected_late
        assert world.run().output["outcome"] == "rejected"
        assert {name: world.state()[name] for name in newer} == newer

    def test_a_request_is_repeated_once_and_then_expires_without_a_write(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        assert world.run().output["outcome"] == "expired"
        assert [notice.split(":")[0] for notice in world.notices] == ["taskgov", "taskgov reminder"]
        assert world.published() == [("expired", 0)]
        assert world.payloads("ApplyChange") == []

    def test_a_request_whose_answer_was_lost_is_made_although_another_run_has_the_lock_by_now(
        self, world: World
    ) -> None:
        def loses_its_answer(arguments: dict[str, Any]) -> None:
            del world.integrations["Set the lock aside"]
            world.table.update_item(**arguments)
            expires = str(int(world.execution.moment.timestamp()) + 100)
            world.set_state(**world.state() | {"lockOwner": {"S": ANOTHER}, "lockExpires": {"N": expires}})
            raise TaskFailedError("States.Timeout")

        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1), planned("apply", changes=1))
        world.integrations["Set the lock aside"] = loses_its_answer
        world.integrations["Ask for approval"] = approve()
        assert world.run().output["outcome"] == "applied"
        assert len(world.notices) == 1
        assert world.execution.trace.count("Wait for the lock") > 0

    def test_an_expired_request_may_be_made_again(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        world.set_state(askedChanges={"S": DIGEST}, askedUntil={"N": str(NOW - 1)}, askedBy={"S": ANOTHER})
        world.run()
        assert len(world.notices) == 2

    def test_changes_that_are_asked_for_already_are_not_asked_for_twice(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        world.set_state(askedChanges={"S": DIGEST}, askedUntil={"N": str(NOW + 600)}, askedBy={"S": ANOTHER})
        assert world.run().output["outcome"] == "needs-approval"
        assert world.notices == []
        assert "lockOwner" not in world.state()

    def test_a_hint_that_comes_before_the_request_is_looked_at_first(self, world: World) -> None:
        hints = [1]

        def hint(name: str) -> None:
            if name == "Set the lock aside" and hints:
                hints.pop()
                world.hint()

        world.before_task = hint
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        world.run()
        assert len(world.payloads("ReadSnapshot")) == 2
        assert world.execution.trace.count("Ask for approval") == 2  # once, and the reminder

    def test_a_notice_that_cannot_be_sent_does_not_end_the_request(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1), planned("apply", changes=1))
        world.integrations["Send the request"] = in_turn(TaskFailedError("SNS.InternalErrorException"))
        world.integrations["Ask for approval"] = approve()
        assert world.run().output["outcome"] == "applied"

    def test_a_request_that_cannot_be_kept_is_made_anew(self, world: World) -> None:
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        failure = TaskFailedError("DynamoDB.InternalServerErrorException")
        world.integrations["Ask for approval"] = in_turn(*[failure] * 5, {"approved": False, "by": "bo"})
        assert world.run().output["outcome"] == "rejected"
        assert [payload["approvedChanges"] for payload in world.payloads("PlanQuotas")] == [None, None]

    def test_a_request_that_cannot_be_kept_leaves_a_newer_one_standing(self, world: World) -> None:
        newer = {"askedChanges": {"S": "c" * 64}, "askedUntil": {"N": str(NOW + 9000)}, "askedBy": {"S": ANOTHER}}
        standing: list[bool] = []

        def look(name: str) -> None:
            if name == "Forget the request":
                world.set_state(**world.state() | newer)
            elif world.execution.trace.count("Forget the request") == 1:
                standing.append(newer.items() <= world.state().items())

        world.before_task = look
        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", changes=1))
        failure = TaskFailedError("DynamoDB.InternalServerErrorException")
        world.integrations["Ask for approval"] = in_turn(*[failure] * 5)
        world.run()
        assert standing[0]

    def test_an_older_request_that_is_approved_leaves_a_newer_one_standing(self, world: World) -> None:
        newer = {"askedChanges": {"S": "c" * 64}, "askedUntil": {"N": str(NOW + 9000)}, "askedBy": {"S": ANOTHER}}

        def approved_late(_: dict[str, Any]) -> dict[str, Any]:
            world.set_state(**newer)
            return {"approved": True, "by": "ana"}

        world.steps["PlanQuotas"] = in_turn(planned("needs-approval", 1), planned("needs-approval", 1, "c" * 64))
        world.integrations["Ask for approval"] = approved_late
        assert world.run().output["outcome"] == "needs-approval"
        assert {name: world.state()[name] for name in newer} == newer
        assert [payload["approvedChanges"] for payload in world.payloads("PlanQuotas")] == [None, DIGEST]
        assert world.payloads("ApplyChange") == []


def test_a_plan_that_time_alone_will_change_is_looked_at_again_then(world: World) -> None:
    world.steps["PlanQuotas"] = in_turn(planned("nothing-to-do", recheckAt="2026-11-20T09:20:00Z"))
    assert world.run().error is None
    (schedule,) = world.schedules
    assert schedule["Name"].startswith("recheck-abcdefghijkl-")
    assert schedule["GroupName"] == "schedules"
    assert schedule["ScheduleExpression"] == "at(2026-11-20T09:20:00)"
    assert schedule["ActionAfterCompletion"] == "DELETE"
    hint = parse_event(json.loads(schedule["Target"]["Input"]), own_role_arn="")
    assert isinstance(hint, Hint)
    assert hint.subject == Subject(cluster_arn=CLUSTER)


SCHEDULING = ("Look again then", "Look again at another time")


@pytest.mark.parametrize("state", SCHEDULING)
def test_clusters_whose_long_names_begin_alike_have_schedules_of_their_own(state: str) -> None:
    long = "arn:aws:eks:us-east-1:111122223333:cluster/" + 90 * "a"
    name = definition("reconcile")["States"][state]["Arguments"]["Name"].removeprefix("{%").removesuffix("%}")
    names = [evaluate(name, {"clusterArn": long + end}) for end in ("-east", "-west")]
    assert len({*names}) == 2
    assert {len(each) for each in names} == {64}, "more is refused"


@pytest.mark.parametrize("state", SCHEDULING)
def test_the_rechecks_of_two_runs_start_executions_of_different_names(state: str) -> None:
    """Also where a restored table counts a generation again: a name that was used starts nothing."""
    given = definition("reconcile")["States"][state]["Arguments"]["Target"]["Input"].strip()
    known = {"clusterArn": CLUSTER, "recheckAt": "2026-11-20T09:20:00Z"}
    names = set()
    for run in ("ml-cluster-7-0d1c2b3a", "ml-cluster-7-8ad3f1c2"):
        event = evaluate(given.removeprefix("{%").removesuffix("%}"), known | {"runId": run})
        hint = parse_event(json.loads(event), own_role_arn="")
        assert isinstance(hint, Hint)
        assert hint.cause.event_id.endswith(run)
        names.add(execution_name("ml-cluster", 8, hint.cause))
    assert len(names) == 2


def test_a_moment_that_has_come_by_now_is_a_minute_away(world: World) -> None:
    world.steps["PlanQuotas"] = in_turn(planned("nothing-to-do", recheckAt="2026-11-20T08:00:00Z"))
    world.run()
    assert [each["ScheduleExpression"] for each in world.schedules] == ["at(2026-11-20T09:01:00)"]


def test_a_plan_that_time_does_not_change_sets_no_schedule(world: World) -> None:
    world.run()
    assert world.schedules == []


def test_a_schedule_that_is_there_already_is_moved(world: World) -> None:
    def there_is_one(_arguments: Any) -> Any:
        raise TaskFailedError("Scheduler.ConflictException", "it exists")

    world.integrations["Look again then"] = there_is_one
    world.steps["PlanQuotas"] = in_turn(planned("nothing-to-do", recheckAt="2026-11-20T09:20:00Z"))
    assert world.run().error is None
    assert [each["ScheduleExpression"] for each in world.schedules] == ["at(2026-11-20T09:20:00)"]


@pytest.mark.parametrize("step", ["Look again then", "Look again at another time"])
def test_a_schedule_that_cannot_be_set_does_not_fail_the_run(world: World, step: str) -> None:
    def refused(_arguments: Any) -> Any:
        raise TaskFailedError("Scheduler.ThrottlingException", "later")

    def there_is_one(_arguments: Any) -> Any:
        raise TaskFailedError("Scheduler.ConflictException", "it exists")

    world.integrations = {"Look again then": there_is_one, step: refused}
    world.steps["PlanQuotas"] = in_turn(planned("nothing-to-do", recheckAt="2026-11-20T09:20:00Z"))
    ended = world.run()
    assert ended.output["outcome"] == "nothing-to-do"
    assert not world.state().keys() & {"lockOwner", "lockExpires"}
