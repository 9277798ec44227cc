"""`taskgov apply PLAN_ID`: one plan that a stack in `plan` mode left unwritten, under the cluster's lock."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from taskgov.contracts.steps import ApplyChangeRequest, ApplyChangeResult
from taskgov.services.apply_change import ApplyChange
from taskgov_embedded.aws_api.aws_requests import Call
from taskgov_embedded.walkthrough.world import World
from tests.support.forked import in_a_fork
from tests.support.operating import (
    AFTER,
    DOCUMENT,
    HALF,
    a_run_with_the_lock,
    counts,
    data,
    file_of,
    last_plan,
    opened,
    played,
    state,
    taskgov,
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def planned() -> Iterator[World]:
    """A stack in `plan` mode, with a plan that nobody wrote; only the last test has it written."""
    with opened({"policy": DOCUMENT}, {"waitMinutes": 2}, mode="plan") as world:
        yield played(world)


@pytest.fixture(scope="module")
def plan(planned: World) -> str:
    return last_plan()


def test_a_plan_is_not_written_while_a_run_holds_the_lock(planned: World, plan: str) -> None:
    with a_run_with_the_lock(planned):
        result = taskgov("apply", plan, "--yes")
    assert (result.exit_code, "a run holds the lock" in result.stderr, planned.quotas()) == (1, True, {})


def test_a_snapshot_file_is_planned_on_and_never_applied_to(planned: World, plan: str, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    taskgov("snapshot", "ml-cluster", "-o", str(file))
    policy = file_of(planned, tmp_path)
    shown = taskgov("apply", "--policy", policy, "--snapshot", str(file))
    assert (shown.exit_code, "Changes, in this order" in shown.stdout) == (0, True)
    assert "To apply it, give --yes, and leave out --snapshot" in shown.stdout
    told = taskgov("apply", "--policy", policy, "--snapshot", str(file), "--yes")
    assert (told.exit_code, "nothing can be applied to a snapshot file" in told.stderr) == (1, True)
    by_id = taskgov("apply", plan, "--snapshot", str(file))
    assert (by_id.exit_code, "not to a snapshot file" in by_id.stderr) == (1, True)


def test_a_plan_whose_second_write_is_refused_stands_as_far_as_it_went_and_says_so(planned: World, plan: str) -> None:
    seen: list[str] = []

    def second(params: Mapping[str, Any]) -> bool:
        seen.append(params["Name"])
        return len(seen) == 2

    full = "ResourceLimitExceeded"
    planned.stack.faults.fail("sagemaker", "CreateComputeQuota", code=full, message="no more quotas", when=second)
    answer = data("apply", plan, "--yes")
    assert (answer["ended"]["outcome"], len(planned.quotas())) == ("unfinished", 1)
    assert "(limit-reached)" in answer["ended"]["error"]
    assert "no more quotas" in answer["ended"]["error"]
    last = data("history", "ml-cluster")[0]
    assert (last["outcome"], last["planId"], answer["ended"]["planId"]) == ("unfinished", plan, plan)
    assert last["applied"] == 1
    assert data("rollback", plan, "--yes")["written"] == 1
    assert planned.quotas() == {}
    assert taskgov("reconcile", "ml-cluster", "--retry-refused").exit_code == 0
    planned.stack.run_until_quiet(300)
    assert last_plan() == plan  # without the refusal it is the plan of before


@in_a_fork
def test_a_plan_that_ctrl_c_ends_leaves_a_record_and_frees_its_lock(planned: World) -> None:
    own, written, plan = ApplyChange.__call__, [], last_plan()

    def interrupted(use_case: ApplyChange, request: ApplyChangeRequest) -> ApplyChangeResult:
        result = own(use_case, request)
        written.append(state(planned)["lockOwner"])
        os.kill(os.getpid(), signal.SIGINT)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ApplyChange, "__call__", interrupted)
        result = taskgov("apply", plan, "--yes")
    assert (result.exit_code, len(written)) == (1, 1), "nothing is written after the signal"
    assert "lockOwner" not in state(planned)
    last = data("history", "ml-cluster")[0]
    assert (last["outcome"], last["planId"], last["applied"]) == ("stopped", plan, 1)
    assert "SIGINT ended the command" in last["error"]
    planned.stack.run_until_quiet(300)
    assert data("history", "ml-cluster")[0]["outcome"] == "planned"  # a run followed; the mode is `plan`


def test_a_plan_has_one_id_wherever_it_is_shown(planned: World, plan: str, tmp_path: Path) -> None:
    file = str(tmp_path / "s.json")
    taskgov("snapshot", "ml-cluster", "--stack", "taskgov", "-o", file)
    shown = taskgov("apply", plan).stdout
    assert f"Plan {plan} for cluster ml-cluster" in shown
    assert f"Plan {plan} for cluster ml-cluster" in taskgov("plan", "--snapshot", file).stdout
    assert data("audit", "--snapshot", file)["header"]["planId"] == plan
    assert data("what-if", "--snapshot", file)["plan"]["planId"] == plan
    assert planned.quotas() == {}


def test_a_plan_is_not_written_when_the_world_moved(planned: World, plan: str) -> None:
    node = planned.cluster.nodes()[0].instance_id
    planned.cluster.fail_node(node)
    result = taskgov("apply", plan, "--yes")
    planned.cluster.recover_node(node)
    assert (result.exit_code, "taskgov reconcile ml-cluster" in result.stderr) == (1, True)
    assert planned.quotas() == {}


def test_a_plan_that_another_person_has_to_approve_is_left_to_the_runs_that_ask_for_it(
    planned: World, plan: str, tmp_path: Path
) -> None:
    taskgov("apply", "--policy", file_of(planned, tmp_path, guardrails={"approveAbove": {"changedGpus": 0}}), "--yes")
    assert last_plan() == plan  # who has to be asked is no part of what it changes
    shown = taskgov("apply", plan)
    assert (shown.exit_code, "It needs approval, which only runs of a stack in apply mode" in shown.stdout) == (1, True)
    result = taskgov("apply", plan, "--yes")
    assert (result.exit_code, "ApplyMode=apply" in result.stderr, planned.quotas()) == (1, True, {})


def test_a_stack_in_plan_mode_writes_nothing_and_says_how_to_continue(
    planned: World, plan: str, tmp_path: Path
) -> None:
    result = taskgov("apply", "--policy", file_of(planned, tmp_path, teams=HALF), "--yes")
    assert (result.exit_code, planned.quotas()) == (1, {})
    assert "taskgov apply plan-" in result.stdout
    assert "ApplyMode=apply" in result.stdout


def test_a_plan_that_was_left_unwritten_is_written_under_the_lock_and_recorded(planned: World) -> None:
    plan = last_plan()
    assert "Nothing was written" in taskgov("apply", plan).stdout
    assert planned.quotas() == {}
    before = len(planned.stack.calls)
    answer = data("apply", plan, "--yes")
    assert (answer["ended"]["outcome"], counts(planned)) == ("applied", AFTER)
    assert_on_record_before_the_first_write(planned.stack.calls[before:], "apply", plan)
    run = next(run for run in data("history", "ml-cluster") if run["outcome"] == "applied")
    assert (run["applied"], run["cause"]["what"]) == (2, f"plan {plan} applied by hand")
    assert (run["planId"], answer["ended"]["planId"], answer["plan"]["planId"]) == (plan, plan, plan)
    assert run["cause"]["by"] == "arn:aws:iam::111122223333:user/operator"
    planned.stack.run_until_quiet()
    assert data("history", "ml-cluster")[0]["outcome"] == "nothing-to-do"  # the stack sees what it would have done
    before = len(planned.stack.calls)
    rolled = data("rollback", plan, "--yes")
    assert (rolled["written"], rolled["error"]) == (2, None)
    assert_on_record_before_the_first_write(planned.stack.calls[before:], "rollback", plan)


def assert_on_record_before_the_first_write(calls: Sequence[Call], action: str, plan: str) -> None:
    """Check that the function that AWS tells the caller kept the order before anything was written."""
    kinds = ("sagemaker:Create", "sagemaker:Update", "sagemaker:Delete")
    first_write = next(number for number, call in enumerate(calls) if call.action.startswith(kinds))
    orders = [
        call
        for call in calls[:first_write]
        if call.action in {"dynamodb:PutItem", "dynamodb:UpdateItem"} and f"'{action}'" in str(call.params)
    ]
    assert orders, f"no order to {action} was kept before the first write"
    assert all("TakeOrder" in call.principal.name and plan in str(call.params) for call in orders)


def test_a_plan_that_was_taken_back_is_written_again_under_the_same_name(planned: World) -> None:
    """Nobody is promised anything now, as before the plan, so that it is the same plan."""
    taken_back = last_plan()
    again = data("apply", taken_back, "--yes")
    assert (again["ended"], counts(planned)) == (
        {"outcome": "applied", "planId": taken_back, "error": None},
        AFTER,
    )
