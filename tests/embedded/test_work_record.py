"""An hour of jobs on the embedded stack, looked at each minute: the record of work against what really happened."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.adapters.s3 import Bucket
from taskgov.services.work_record import RecordedWork
from taskgov.work.attempt import Attempt, End
from taskgov_cli.usage.hours import usage_of
from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import Action
from taskgov_embedded.walkthrough.step_result import StepResult
from tests.support.operating import CLUSTER, G5, opened, played, taskgov

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskgov.ports.work import WorkDone
    from taskgov_embedded.walkthrough.world import World

pytestmark = pytest.mark.long

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


def test_hours_add_up_to_what_jobs_held(hour: World) -> None:
    """A look stands for the minute that follows: what a job held is known to a minute."""
    done = record(hour)
    usage = usage_of(done)
    used = {
        team: sum(n.used for (_, place), n in usage.spent.items() if place[0] == team) for team in ("team-a", "team-b")
    }
    for team, seconds in used.items():
        runs = [attempt for attempt in done.ended if attempt.team == team and attempt.admitted]
        held = sum(attempt.accelerators * (attempt.run_seconds or 0) for attempt in runs)
        slack = sum(attempt.accelerators * 120 for attempt in runs)
        assert abs(seconds - held) <= slack
    assert sum(n.borrowed for n in usage.spent.values()) > 0
    for (start, kind), offered in usage.offered.items():
        spent = [n for (at, place), n in usage.spent.items() if (at, place[1:]) == (start, kind)]
        assert sum(n.used + n.idle for n in spent) + offered.not_promised == offered.capacity + offered.overcommitted
    (preempted,) = {n.preempted for n in usage.spent.values() if n.preempted}
    assert preempted == 3 * next(a.run_seconds or 0 for a in done.ended if a.end is End.EVICTED)


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


def test_people_read_hours_and_prices(hour: World, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(f"currency: EUR\nacceleratorHour: {{{G5}: 1.5}}\n")
    month = f"{hour.clock.now:%Y-%m}"
    shown = taskgov("usage", "ml-cluster", "--month", month, "--prices", str(prices), "--format", "csv")
    assert shown.exit_code == 0, shown.output
    rows = list(csv.DictReader(io.StringIO(shown.stdout)))
    teams = [row for row in rows if row["team"] in {"team-a", "team-b"}]
    assert {row["of"] for row in teams} == {GPU}
    assert sum(Decimal(row["borrowed"]) for row in teams) == sum(Decimal(row["lent"]) for row in teams) > 0
    assert all(Decimal(row["used EUR"]) == Decimal(row["used"]) * Decimal("1.5") for row in teams)
    table = taskgov("usage", "ml-cluster", "--month", month)
    assert "(not measured)" in table.stdout  # the month began before the stack
    assert "hours were not measured" in table.stdout
    data = json.loads(taskgov("usage", "ml-cluster", "--month", month, "--by", "day", "--json").stdout)
    assert sum(each["capacitySeconds"] for each in data["capacity"]) > 4 * 3600


def test_finance_reads_focus(hour: World, tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(f"instanceType,acceleratorHour,currency\n{G5},1.5,EUR\n")
    command = (
        "usage",
        "ml-cluster",
        "--from",
        f"{hour.clock.now:%Y-%m-%d}",
        "--to",
        "2027-01-01",
        "--focus",
        "--prices",
    )
    shown = taskgov(*command, str(prices))
    assert shown.exit_code == 0, shown.output
    charges = list(csv.DictReader(io.StringIO(shown.stdout)))
    used = sum(Decimal(charge["ConsumedQuantity"]) for charge in charges if charge["x_Use"] == "used")
    assert used > 1
    assert sum(Decimal(charge["BilledCost"]) for charge in charges if charge["x_Use"] == "used") == used * Decimal(
        "1.5"
    )
    assert {charge["SubAccountName"] for charge in charges} >= {"team-a", "team-b"}
    prices.write_text("instanceType,acceleratorHour,currency\nml.p5.48xlarge,1.5,EUR\n")
    refused = taskgov(*command, str(prices))
    assert refused.exit_code == 2
    assert f"there is no price of {G5}; there are prices of: ml.p5.48xlarge" in " ".join(
        re.findall(r"[^\s│]+", refused.stderr)
    )


def test_a_cluster_that_nobody_looked_at_has_no_hours(hour: World) -> None:
    client = hour.stack.client("s3")
    bucket = hour.stack.outputs["BucketName"]
    key = "memory/ml-cluster/work.json.gz"
    body = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    client.delete_object(Bucket=bucket, Key=key)
    try:
        found = taskgov("usage", "ml-cluster")
        assert (found.exit_code, "ml-cluster has no recorded measurement yet" in found.stderr) == (1, True)
        assert "taskgov doctor ml-cluster" in found.stderr
        assert "taskgov doctor ml-cluster" in taskgov("history", "ml-cluster", "--work").stdout
    finally:
        client.put_object(Bucket=bucket, Key=key, Body=body)


@pytest.mark.parametrize("command", [("usage", "ml-cluster"), ("history", "ml-cluster", "--work")])
@pytest.mark.parametrize("damaged", ["memory/ml-cluster/work.json.gz", "work/ml-cluster/{:%Y-%m-%d}.jsonl.gz"])
def test_a_damaged_file_is_named_in_a_sentence(hour: World, command: tuple[str, ...], damaged: str) -> None:
    client, key = hour.stack.client("s3"), damaged.format(hour.clock.now)
    bucket = hour.stack.outputs["BucketName"]
    body = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    client.put_object(Bucket=bucket, Key=key, Body=body[:40])
    try:
        found = taskgov(*command)
    finally:
        client.put_object(Bucket=bucket, Key=key, Body=body)
    assert found.exit_code == 3
    assert f"{key} cannot be read" in " ".join(re.findall(r"[^\s│]+", found.stderr))
    assert "Traceback" not in found.output


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
