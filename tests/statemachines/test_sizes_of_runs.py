"""A run of 1,000 teams with 15 rows each, to each of its ends: what its states hold stays small.

So does what is kept of an execution that dies in any of its states, where no Catch holds it.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args

import pytest

from taskgov.adapters.dynamodb import Table
from taskgov.allocation.plan import Outcome
from taskgov.contracts.steps import Cause, PlanQuotasResult, VerifyPlanResult
from taskgov.errors import UpstreamError
from taskgov.ports import Execution as EndedExecution
from taskgov.services.end_of_run import RunOutcome
from taskgov.services.ended_owner import EndedOwner
from taskgov.services.plan_quotas import summary
from taskgov.services.reading import unreadable
from taskgov.services.wording import cut
from taskgov.snapshot.records import AnnouncedWrite, AppliedQuota
from taskgov_embedded.stepfunctions.host import TaskFailedError
from tests.services.test_item_sizes import LONG_TEAM, Kept, item_size, rows
from tests.services.test_sizes import KIB, PLANS, POINTER, TEAMS, everybody
from tests.statemachines.conftest import CAUSE, CLUSTER, DIGEST, World, looked, planned
from tests.statemachines.machines import SUBSTITUTIONS
from tests.statemachines.test_history import batch
from tests.support.memory import NOON, FixedClock, InMemoryHyperPod, InMemoryState, InMemoryWorkflow
from tests.support.plans import target

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

STATE, SENT, KEPT = 64 * KIB, 128 * KIB, 200_000
"""The most bytes of what a state is given, of what an execution sends, and of an item."""
SCRIPT = "팀"
SENTENCES = cut([f"team-{number}-quota is not as {everybody(SCRIPT)}" for number in range(TEAMS)])


def answered(outcome: Outcome) -> dict[str, Any]:
    """Answer as plan_quotas does when every guardrail speaks for every row of every team."""
    plan = replace(PLANS[SCRIPT], outcome=outcome)
    result = PlanQuotasResult(
        outcome=outcome,
        plan_id=plan.plan_id,
        plan=POINTER,
        change_count=TEAMS,
        wave_count=1,
        changes_sha256=DIGEST,
        summary=summary(plan),
    )
    return {**result.to_json(), "waves": [TEAMS]}


def approve(_: dict[str, Any]) -> dict[str, Any]:
    return {"approved": True, "by": "ana"}


def wrong_everywhere(_: dict[str, Any]) -> dict[str, Any]:
    return VerifyPlanResult(settled=True, problems=SENTENCES).to_json() | {"pending": [], "refused": [], "edited": []}


def refused_everywhere(payload: dict[str, Any]) -> dict[str, Any]:
    return batch(payload) | {"written": 0, "refused": list(SENTENCES)}


def fails(_: dict[str, Any]) -> Any:
    raise TaskFailedError("UpstreamError", everybody(SCRIPT) * 10)


def never_settles(_: dict[str, Any]) -> dict[str, Any]:
    return looked(settled=False, pending=list(SENTENCES))


def not_read(world: World) -> None:
    error = UpstreamError(everybody(SCRIPT) * 10)
    error.cluster_unreadable = True
    world.steps["ReadSnapshot"] = lambda _: unreadable(error).to_json()


def nothing_to_do(world: World) -> None:
    world.steps["PlanQuotas"] = lambda _: answered(Outcome.NOTHING_TO_DO)


def only_planned(world: World) -> None:
    world.steps["PlanQuotas"] = lambda _: answered(Outcome.PLANNED)


def blocked(world: World) -> None:
    world.steps["PlanQuotas"] = lambda _: answered(Outcome.BLOCKED)


def expired(world: World) -> None:
    world.steps["PlanQuotas"] = lambda _: answered(Outcome.NEEDS_APPROVAL)


def rejected(world: World) -> None:
    expired(world)
    world.integrations["Ask for approval"] = lambda _: {"approved": False, "by": "ana"}


def applied(world: World) -> None:
    world.steps |= {"PlanQuotas": lambda _: answered(Outcome.APPLY), "ApplyChange": batch}


def approved(world: World) -> None:
    applied(world)
    asked = iter([Outcome.NEEDS_APPROVAL])
    world.steps["PlanQuotas"] = lambda _: answered(next(asked, Outcome.APPLY))
    world.integrations["Ask for approval"] = approve


def wrong(world: World) -> None:
    applied(world)
    world.steps["VerifyPlan"] = wrong_everywhere


def refused(world: World) -> None:
    applied(world)
    world.steps["ApplyChange"] = refused_everywhere


def refused_twice_and_wrong(world: World) -> None:
    """The call of a write refuses it, or it settles as failed, or it is not what was written."""
    refused(world)
    said = VerifyPlanResult(settled=True, problems=SENTENCES, refused=SENTENCES, edited=SENTENCES)
    world.steps["VerifyPlan"] = lambda _: said.to_json() | {"pending": []}


def unsettled(world: World) -> None:
    applied(world)
    world.steps["VerifyPlan"] = never_settles


def failed(world: World) -> None:
    applied(world)
    world.steps["ApplyChange"] = fails


def failed_before_it_wrote(world: World) -> None:
    world.steps["PlanQuotas"] = fails


ENDS: dict[str, tuple[Callable[[World], None], str]] = {
    "unreadable": (not_read, "unreadable"),
    "nothing to do": (nothing_to_do, "nothing-to-do"),
    "only planned": (only_planned, "planned"),
    "blocked": (blocked, "blocked"),
    "expired": (expired, "expired"),
    "rejected": (rejected, "rejected"),
    "applied": (applied, "applied"),
    "approved": (approved, "applied"),
    "wrong": (wrong, "unfinished"),
    "refused": (refused, "unfinished"),
    "refused twice and wrong": (refused_twice_and_wrong, "unfinished"),
    "unsettled": (unsettled, "progressing"),
    "failed": (failed, "unfinished"),
    "failed before it wrote": (failed_before_it_wrote, "failed"),
}
"""How a run is brought to its end, and the outcome that is published then."""


def test_every_outcome_of_a_run_is_played() -> None:
    assert {outcome for _, outcome in ENDS.values()} | {"needs-approval"} == set(get_args(RunOutcome))


def size(data: Any) -> int:
    return len(json.dumps(data, ensure_ascii=False).encode())


class Watched:
    """Keeps how large the inputs and variables of an execution are, and what it sends; breaks it in one state."""

    def __init__(self, world: World, dies_in: str | None = None) -> None:
        self.world, self.dies_in = world, dies_in
        self.largest = 0
        """Bytes of the largest input, and of the largest variable."""
        self.states: list[str] = []
        self.items: list[dict[str, Any]] = []
        self.sent: list[Any] = []
        world.before_task = self._look
        for name in ("put_item", "update_item"):
            self._note(name)

    def _note(self, name: str) -> None:
        call = getattr(self.world.table, name)

        def noted(**given: Any) -> Any:
            self.items.append(given)
            return call(**given)

        self.world.table = _With(self.world.table, name, noted)  # type: ignore[assignment]

    def _look(self, name: str) -> None:
        self.states.append(name)
        position = self.world.execution.position
        assert position is not None
        self.largest = max(self.largest, size(position.given), *map(size, position.variables.values()))
        if name == self.dies_in:
            raise TaskFailedError("States.Runtime", "no Catch holds it")


class _With:
    """A client with one method replaced."""

    def __init__(self, client: Any, name: str, method: Callable[..., Any]) -> None:
        self._client, self._name, self._method = client, name, method

    def __getattr__(self, name: str) -> Any:
        return self._method if name == self._name else getattr(self._client, name)


@pytest.mark.parametrize("end", ENDS)
def test_what_states_hold_and_send_is_small(world: World, end: str) -> None:
    ENDS[end][0](world)
    watched = Watched(world)
    world.run()
    assert world.payloads("PublishUsage")[-1]["outcome"] == ENDS[end][1]
    assert 8 * KIB * (end not in {"unreadable", "failed before it wrote"}) < watched.largest <= STATE
    assert world.execution.largest <= SENT
    assert max(map(size, watched.items)) <= KEPT
    assert all(len(notice.encode()) <= SENT for notice in world.notices)
    assert bool(world.notices) is (end in {"expired", "rejected", "approved"})


def test_what_a_run_of_ten_thousand_changes_holds_is_small(world: World) -> None:
    """The first of them are named at its end; the records have the others, as they have what no answer named."""

    def write(payload: dict[str, Any]) -> dict[str, Any]:
        answer = batch(payload, (10 * TEAMS,))
        return answer | {"changes": [*range(payload["index"], answer["next"])]}

    world.steps |= {"PlanQuotas": lambda _: planned("apply", changes=10 * TEAMS), "ApplyChange": write}
    watched = Watched(world)
    assert world.run().output["applied"] == 10 * TEAMS
    assert watched.largest <= STATE
    (end,) = world.payloads("PublishUsage")
    named = [index for call in end["wrote"] for index in call["changes"]]
    assert named == [*range(len(named))]
    assert 5 * TEAMS < len(named) < 10 * TEAMS


@pytest.mark.parametrize("end", ENDS)
def test_the_record_that_the_machine_keeps_when_nothing_can_be_published_is_small(world: World, end: str) -> None:
    ENDS[end][0](world)
    world.steps["PublishUsage"] = fails
    watched = Watched(world)
    world.run()
    assert "Keep the record" in watched.states
    assert watched.largest <= STATE
    assert max(map(size, watched.items)) <= KEPT


@pytest.mark.long
@pytest.mark.parametrize("end", ENDS)
def test_what_is_kept_of_one_that_dies_in_any_state_is_small(world: World, table: "DynamoDBClient", end: str) -> None:
    """Every quota was written by then, or is announced and not known whether written."""
    ENDS[end][0](world)
    passed = Watched(world)
    world.run()
    held = set()
    for state in dict.fromkeys(passed.states):
        empty(table)
        fresh = World(table)
        ENDS[end][0](fresh)
        Watched(fresh, dies_in=state)
        died = fresh.run()
        assert died.error == "States.Runtime", state
        held |= {state for announced in (False, True) if clear_up(fresh, announced=announced)}
    assert {"Read snapshot"} <= held
    assert ("Plan quotas" in held) is (end != "unreadable")
    assert ("Verify plan" in held) is (ENDS[end][1] in {"applied", "progressing", "unfinished"} and end != "failed")


def clear_up(world: World, *, announced: bool) -> bool:
    """Do what `receive_event` does when the execution has ended, and say whether it held the lock.

    The lock is free, its request is withdrawn, and there is a small record where it held the lock.
    """
    item = world.state()
    state, workflow = records(announced=announced), InMemoryWorkflow()
    arn = world.execution.arn
    execution = workflow.executions[arn] = EndedExecution(arn, "FAILED", NOON)
    if item.get("lockOwner", {}).get("S") == arn:
        state.lock[CLUSTER] = (arn, int(item["fencingToken"]["N"]), float(item["lockExpires"]["N"]))
    if item.get("askedBy", {}).get("S") == arn:
        state.asked[CLUSTER] = (arn, 2**40)
    held = state.lock_of(CLUSTER).owner == arn
    owner = EndedOwner(InMemoryHyperPod(), state, workflow, FixedClock())
    owner.of_execution(CLUSTER, execution, Cause.model_validate(CAUSE))
    assert not state.lock_of(CLUSTER).is_held(NOON)
    assert state.asked.get(CLUSTER, ("", 0))[1] == 0
    assert len(state.runs) == held
    for record in state.runs:
        kept = Kept()
        Table(kept).record_run(record)  # type: ignore[arg-type]
        assert item_size(kept.items[0]) <= 20_000
    return held


def records(*, announced: bool) -> InMemoryState:
    """Return the table with a record of each quota, all of them of the execution."""
    state = InMemoryState()
    for number in range(TEAMS):
        name = f"{LONG_TEAM}{number:05}"
        write = AnnouncedWrite(3, FIFTEEN, target(name)) if announced else None
        at = NOON - timedelta(hours=1) if announced else NOON + timedelta(seconds=1)
        state.record_applied(
            CLUSTER, AppliedQuota(f"gone{number:08}", 2, FIFTEEN, target(name), "plan-1", at, announced=write)
        )
    return state


FIFTEEN = rows(1)


def empty(table: "DynamoDBClient") -> None:
    name = SUBSTITUTIONS["TableName"]
    for item in table.scan(TableName=name)["Items"]:
        table.delete_item(TableName=name, Key={"pk": item["pk"], "sk": item["sk"]})
