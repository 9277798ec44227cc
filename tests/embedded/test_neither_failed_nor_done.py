"""The records `stopped` and `unlocked`: what is told of them counts as no failure of a plan, and as no success."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args

import boto3
import pytest

from taskgov.services.end_of_run import RunOutcome
from taskgov_cli.applying.command import WELL
from taskgov_cli.history import STYLES
from tests.support.forked import in_a_fork
from tests.support.operating import AFTER, APPLIED, a_run_with_the_lock, counts, data, opened, played, stop_at, taskgov

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.walkthrough.world import World

pytestmark = pytest.mark.long

NEITHER = ("stopped", "unlocked")
DAY = 24 * 3600


@pytest.fixture(scope="module")
def governed() -> Iterator[World]:
    with opened(*APPLIED[:2]) as world:
        yield played(world)


class Told:
    """What metrics, the bus and notices say from now on."""

    def __init__(self, world: World) -> None:
        self._stack = world.stack
        self._calls, self._results = len(world.stack.calls), len(world.stack.results)

    def metric(self, name: str) -> list[float]:
        """Return the values of a metric that are not 0."""
        results = self._stack.results[self._results :]
        values = (each for one in results for datum in one.metrics if datum.name == name for each in datum.values)
        return [value for value in values if value]

    def events(self) -> list[str]:
        """Return the detail types of what the stack put on the bus."""
        calls = (call for call in self._stack.calls[self._calls :] if call.operation == "PutEvents")
        return [entry["DetailType"] for call in calls for entry in call.params["Entries"]]

    def notices(self) -> list[str]:
        calls = self._stack.calls[self._calls :]
        return [call.params["Subject"] for call in calls if (call.service, call.operation) == ("sns", "Publish")]


def break_off(world: World) -> str:
    """Stop a run between its waves, and let the next one do the rest; return the id of the plan that was broken off."""
    client, bucket = boto3.client("s3"), world.stack.outputs["BucketName"]
    text = client.get_object(Bucket=bucket, Key="policies/ml-cluster.yaml")["Body"].read().decode()
    client.put_object(Bucket=bucket, Key="policies/ml-cluster.yaml", Body=text.replace("Count: 2", "Count: 1").encode())
    stop_at(world, "Wait to settle")
    world.stack.run_until_quiet()
    assert counts(world) == AFTER
    return str(_records("stopped")[0]["planId"])


def free_by_hand(world: World) -> None:
    with a_run_with_the_lock(world):
        assert data("unlock", "ml-cluster", "--yes", "--reason", "its execution was deleted")["freed"]
        world.stack.run_until_quiet(300)


def _records(outcome: str) -> list[dict[str, Any]]:
    return [run for run in data("history", "ml-cluster") if run["outcome"] == outcome]


@in_a_fork
def test_metrics_events_and_notices_leave_a_run_that_was_stopped_to_the_run_that_follows(governed: World) -> None:
    told = Told(governed)
    break_off(governed)
    (stopped,), (applied, _) = _records("stopped"), _records("applied")
    assert (stopped["applied"], applied["applied"]) == (1, 1)
    assert told.metric("RunsFailed") == told.metric("RunsUnfinished") == told.metric("ChangesBlocked") == []
    assert told.metric("ChangesApplied") == [1]  # of the run that came to its end
    assert len(told.metric("EventToAppliedSeconds")) == 1
    assert told.events() == ["Quota Changes Applied"]
    assert told.notices() == []


@in_a_fork
def test_metrics_events_and_notices_say_nothing_of_a_lock_that_was_freed_by_hand(governed: World) -> None:
    told = Told(governed)
    free_by_hand(governed)
    assert [run["outcome"] for run in data("history", "ml-cluster")[:2]] == ["nothing-to-do", "unlocked"]
    names = ("RunsFailed", "RunsUnfinished", "ChangesBlocked", "ChangesApplied", "EventToAppliedSeconds")
    assert {name: told.metric(name) for name in names} == {name: [] for name in names}
    assert told.events() == ["Quota Plan Computed"]  # by the run that followed
    assert told.notices() == []


@in_a_fork
def test_the_history_shows_them_as_what_they_are(governed: World) -> None:
    break_off(governed)
    free_by_hand(governed)
    assert not {STYLES[name] for name in NEITHER} & {STYLES["applied"], STYLES["progressing"]}
    assert not (WELL | set(get_args(RunOutcome))) & set(NEITHER)  # nothing is published for them
    (unlocked,), (stopped,) = _records("unlocked"), _records("stopped")
    assert (unlocked["applied"], "plan" in unlocked, "error" in unlocked) == (0, False, False)
    assert (stopped["applied"], "plan" in stopped) == (1, True)
    shown = " ".join(taskgov("history", "ml-cluster").stdout.split())
    assert "stopped" in shown
    assert "unlocked" in shown


def audited(world: World) -> tuple[Any, list[Any]]:
    """Let the next nightly audit come; return what the plan of its report is, and its findings."""
    world.stack.advance(DAY, schedules=[])
    seen = len(world.stack.results)
    world.stack.fire("AuditAllSchedule")
    world.stack.run_until_quiet()
    (result,) = [one for one in world.stack.results[seen:] if one.function == "AuditClusterFunction"]
    pointer = result.value["report"]["json"]
    report = json.loads(boto3.client("s3").get_object(Bucket=pointer["bucket"], Key=pointer["key"])["Body"].read())
    return report["header"]["planOutcome"], [(each["code"], each["because"]) for each in report["findings"]]


@in_a_fork
def test_the_audit_reports_the_same_with_and_without_them(governed: World) -> None:
    break_off(governed)
    free_by_hand(governed)
    reported = audited(governed)
    table = boto3.resource("dynamodb").Table(governed.stack.outputs["TableName"])
    theirs = [item for item in table.scan()["Items"] if item.get("outcome") in NEITHER]
    assert len(theirs) == len(NEITHER)
    for item in theirs:
        table.delete_item(Key={"pk": item["pk"], "sk": item["sk"]})
    assert audited(governed) == reported
    assert reported[0] == "nothing-to-do"


@in_a_fork
def test_a_plan_that_was_broken_off_is_neither_written_anew_nor_lost(governed: World) -> None:
    """Its record leads to it, so that what it wrote can be taken back; to write it again is the next run's."""
    plan = break_off(governed)
    again = taskgov("apply", plan)
    assert (again.exit_code, f"the run of plan {plan} ended `stopped`" in again.stderr) == (1, True)
    back = data("rollback", plan, "--cluster", "ml-cluster")
    assert (back["planId"], [each["name"] for each in back["changes"]] != []) == (plan, True)
