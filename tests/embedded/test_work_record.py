"""An hour of jobs on the embedded stack, looked at each minute: the record of work against what really happened."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.adapters.s3 import Bucket
from taskgov.services.work_record import RecordedWork
from taskgov.work.attempt import Attempt, End
from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import Action
from taskgov_embedded.walkthrough.step_result import StepResult
from tests.support.operating import CLUSTER, G5, opened, played, taskgov

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov.ports.work import WorkDone
    from taskgov_embedded.walkthrough.world import World

GPU = "nvidia.com/gpu"
MINUTE = timedelta(minutes=1)
SHARES = {"Strategy": "LendAndBorrow", "BorrowLimit": 100}


def a_team(name: str) -> dict[str, Any]:
    rows = [{"InstanceType": G5, "Count": 2}]
    return {
        "name": name,
        "quota": {"ComputeQuotaResources": rows, "ResourceSharingConfig": SHARES, "PreemptTeamTasks": "LowerPriority"},
    }


def a_job(team: str, name: str, pods: int, minutes: float | None = None, **more: Any) -> dict[str, Any]:
    return {"submit": {"team": team, "name": name, "pods": pods, "request": {GPU: 1}, "runsMinutes": minutes, **more}}


DOCUMENT = {
    "apiVersion": "taskgov/v1",
    "cluster": {"name": "ml-cluster", "arn": "${clusterArn}"},
    "teams": [a_team("team-a"), a_team("team-b")],
    "capacity": {"holdUnhealthyMinutes": 0, "growAfterMinutes": 0},
}
HOUR: tuple[dict[str, Any], ...] = (
    {"policy": DOCUMENT},
    {"waitMinutes": 5},
    a_job("team-a", "borrows-0001", 3, 30),
    {"waitMinutes": 5},
    a_job("team-b", "reclaims-0001", 2, 10),
    {"waitMinutes": 5},
    a_job("team-b", "waits-0001", 4),
    {"waitMinutes": 3.2},
    {"delete": {"team": "team-b", "name": "waits-0001"}},
    a_job("team-b", "short-0002", 1, 0.2),
    {"waitMinutes": 45},
)


@pytest.fixture(scope="module")
def hour() -> Iterator[World]:
    with pytest.MonkeyPatch.context() as environment:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "testing")
        with opened(*HOUR, cluster=CLUSTER) as world:
            yield played(world)


def record(world: World) -> WorkDone:
    bucket = Bucket(world.stack.client("s3"), world.stack.outputs["BucketName"])
    start = world.clock.now.replace(hour=0, minute=0, second=0)
    return RecordedWork(bucket).between("ml-cluster", start, start + timedelta(days=1))


def conditions(item: dict[str, Any]) -> dict[str, datetime]:
    """Return since when which condition of a Workload is true."""
    found = (item.get("status") or {}).get("conditions") or ()
    return {
        each["type"]: datetime.fromisoformat(each["lastTransitionTime"]) for each in found if each["status"] == "True"
    }


def really(world: World) -> set[tuple[str, End, datetime | None, datetime | None]]:
    """Return what ended: which Workload, how, when it was admitted, and when it ended (None: it was deleted)."""
    changes, _ = world.cluster.store.changes_since("workloads", 0)
    ended: set[tuple[str, End, datetime | None, datetime | None]] = set()
    admitted: dict[str, datetime] = {}
    open_since: dict[str, bool] = {}
    for change in changes:
        item: Any = change.after or change.before
        uid = item["metadata"]["uid"]
        true = conditions(item)
        if change.after is None:
            if open_since.pop(uid, False):
                ended.add((uid, End.GONE, admitted.get(uid), None))
            continue
        open_since.setdefault(uid, True)
        if "Evicted" in true:
            if uid in admitted:
                ended.add((uid, End.EVICTED, admitted.pop(uid), true["Evicted"]))
        elif "Admitted" in true:
            admitted[uid] = true["Admitted"]
        if "Finished" in true:
            ended.add((uid, End.FINISHED, true.get("Admitted"), true["Finished"]))
            open_since[uid] = False
    return ended


def as_seen(attempt: Attempt) -> tuple[str, End | None, datetime | None, datetime | None]:
    return attempt.uid, attempt.end, attempt.admitted, None if attempt.end is End.GONE else attempt.ended


def test_the_record_is_what_happened(hour: World) -> None:
    done = record(hour)
    assert {as_seen(attempt) for attempt in done.ended} == really(hour)
    ends = {(attempt.stem, attempt.end) for attempt in done.ended}
    assert ends == {
        ("borrows", End.EVICTED),
        ("borrows", End.FINISHED),
        ("reclaims", End.FINISHED),
        ("waits", End.GONE),
        ("short", End.FINISHED),
    }
    (evicted,) = (attempt for attempt in done.ended if attempt.end is End.EVICTED)
    assert (evicted.number, evicted.team, evicted.accelerators, evicted.instance_type) == (1, "team-a", 3, G5)
    assert evicted.reason.startswith("Preempted/")
    assert done.still == ()


def test_each_minute_is_measured_without_a_gap(hour: World) -> None:
    (span,) = record(hour).measured
    assert span.seconds >= 60 * 60


def test_people_read_attempts(hour: World) -> None:
    shown = taskgov("history", "ml-cluster", "--work", "--format", "csv")
    assert shown.exit_code == 0, shown.output
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    assert [row["job"] for row in rows].count("borrows") == 2
    assert {row["how it stands"] for row in rows if row["job"] == "waits"} == {"gone"}
    data = json.loads(taskgov("history", "ml-cluster", "--work", "--json", "--limit", "2").stdout)
    assert len(data["attempts"]) == 2
    assert data["attempts"][0]["end"] == "finished"
    table = taskgov("history", "ml-cluster", "--work", "--limit", "2", "--format", "wide").stdout
    assert "3 more: --limit shows them." in table


def test_two_looks_at_once_and_a_lost_memory_change_nothing_that_was_seen(hour: World) -> None:
    """The schedule delivers twice; then the memory is lost, and what Workloads still say is written again."""
    before = {as_seen(attempt) for attempt in record(hour).ended}
    for _ in range(2):
        hour.stack.fire("PublishUsageSchedule")
        hour.stack.run_until_quiet(30)
    assert {as_seen(attempt) for attempt in record(hour).ended} == before
    hour.stack.advance(60 * 61, ["PublishUsageSchedule"])  # so that the files of days have everything
    client = hour.stack.client("s3")
    client.delete_object(Bucket=hour.stack.outputs["BucketName"], Key="memory/ml-cluster/work.json.gz")
    Actor(hour).do(Action.model_validate({"waitMinutes": 3}), StepResult("", {}))
    after = record(hour)
    assert {as_seen(attempt) for attempt in after.ended} == before
    assert len(after.ended) == len(before)
