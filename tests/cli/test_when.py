"""`taskgov when`: moments from a history, what it waits for, and no estimate where the history is bad."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from taskgov.quantities import GPU
from taskgov.snapshot.codec import snapshot_to_json
from taskgov.work.attempt import Attempt, End, Held
from taskgov.work.day import Day, to_bytes
from taskgov.work.measured import Span
from taskgov_cli.main import app
from taskgov_cli.when_estimate import Earlier, WaitsFor
from taskgov_cli.when_history import read_history
from tests.support.lab import G5, Lab
from tests.support.memory import NOON

if TYPE_CHECKING:
    from pathlib import Path

HOUR = timedelta(hours=1)


def when(*words: object) -> Result:
    return CliRunner().invoke(app, ["when", *map(str, words)])


def found(*words: object) -> dict[str, object]:
    result = when(*words, "--json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.output))


def moment(data: dict[str, object], field: str) -> datetime:
    return datetime.fromisoformat(str(data[field]))


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    lab = Lab().team("team-a", 2, borrow=200).team("team-b", 4).machines(6)
    lab.submit("team-b", "b-own", pods=2).submit("team-a", "a-own", pods=4).submit("team-a", "waits", pods=2)
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(lab.snapshot()))
    return file


def attempt(number: int, admitted: datetime, length: timedelta, team: str = "team-a", gpus: int = 4) -> Attempt:
    return Attempt(
        f"uid-{number}",
        1,
        team,
        None,
        "train",
        "PyTorchJob",
        None,
        0,
        (Held(G5, GPU, gpus),),
        None,
        admitted,
        admitted,
        admitted,
        admitted + length,
        End.FINISHED,
    )


def record(folder: Path, count: int = 60, last: datetime = NOON, team: str = "team-a") -> Path:
    """Write a record of jobs that ran for two to four hours each, one every six hours up to a moment."""
    chance = random.Random(1)  # noqa: S311 -- the same each time, no secret
    ran = [
        attempt(n, last - timedelta(hours=6 * n + 5), timedelta(hours=chance.uniform(2, 4)), team) for n in range(count)
    ]
    measured = (Span(last - timedelta(days=30), last),)
    folder.mkdir()
    for day, part in Day(tuple(ran), measured).by_day().items():
        (folder / f"{day}.jsonl.gz").write_bytes(to_bytes(part, day))
    return folder


def test_a_job_waits_for_what_is_left_of_the_one_before_it(snapshot: Path, tmp_path: Path) -> None:
    data = found("waits", "-s", snapshot, "--history", record(tmp_path / "work"))
    assert data["reason"] == "WaitingForQuota"
    assert "borrow" in str(data["because"]) or "quota" in str(data["because"])
    # What runs began an hour ago and takes two to four hours in all.
    assert NOON + 0.3 * HOUR < moment(data, "halfBy") < NOON + 3 * HOUR
    assert moment(data, "noEarlierThan") <= moment(data, "halfBy") <= moment(data, "nineOfTenBy")
    assert (data["calibrated"], data["futures"]) == (False, 100)
    assert found("waits", "-s", snapshot, "--history", tmp_path / "work") == data


def test_people_read_no_earlier_than_and_what_it_waits_for(snapshot: Path, tmp_path: Path) -> None:
    shown = when("waits", "-s", snapshot, "--history", record(tmp_path / "work")).output
    assert shown.startswith("team-a/waits: no earlier than 1")
    assert shown.splitlines()[0].endswith(" (UTC)")
    for text in ("Of 100 futures of the queue, half start it by 1", "Not calibrated", "of team-a counted"):
        assert text in shown


def test_a_run_time_that_somebody_says_wins_over_history(snapshot: Path, tmp_path: Path) -> None:
    history = record(tmp_path / "work")
    said = ("--runs", "team-a/a-own=30h", "--runs", "team-b/b-own=30h")
    data = found("waits", "-s", snapshot, "--history", history, *said)
    assert moment(data, "halfBy") >= NOON + 28 * HOUR


def test_without_history_only_what_is_said_counts(snapshot: Path) -> None:
    data = found("waits", "-s", snapshot, "--runs", "team-a/a-own=2h")
    assert moment(data, "noEarlierThan") == NOON + HOUR
    assert data["halfBy"] is None
    assert "no estimate" in when("waits", "-s", snapshot).output


def test_a_job_that_runs_is_given_no_moment(snapshot: Path, tmp_path: Path) -> None:
    data = found("a-own", "-s", snapshot, "--history", record(tmp_path / "work"))
    assert (data["reason"], data["halfBy"], data["noEarlierThan"]) == ("Admitted", None, None)


@pytest.mark.parametrize(
    ("count", "last", "said"),
    [
        (3, NOON, "no estimate: 3 runs are recorded, and it takes 20"),
        (60, NOON - timedelta(days=9), "no estimate: the history ends 9.0 days before the snapshot"),
    ],
    ids=["records are deleted", "a gap up to now"],
)
def test_a_bad_history_gives_no_estimate(snapshot: Path, tmp_path: Path, count: int, last: datetime, said: str) -> None:
    history = record(tmp_path / "work", count, last)
    data = found("waits", "-s", snapshot, "--history", history)
    assert (data["halfBy"], data["noEarlierThan"]) == (None, None)
    assert said in when("waits", "-s", snapshot, "--history", history).output


def test_a_new_team_is_estimated_by_the_jobs_of_others(snapshot: Path, tmp_path: Path) -> None:
    shown = when("waits", "-s", snapshot, "--history", record(tmp_path / "work", team="team-b")).output
    assert "no earlier than" in shown


def test_the_history_of_another_cluster_gives_no_estimate(snapshot: Path, tmp_path: Path) -> None:
    shown = when("waits", "-s", snapshot, "--history", record(tmp_path / "work", team="team-c")).output
    assert "no team of the history has a queue with accelerators here" in shown
    assert "no earlier than" not in shown


def test_a_trace_is_a_history_that_ends_now(snapshot: Path, tmp_path: Path) -> None:
    rows = [
        f"{datetime(2026, 1, 1, tzinfo=UTC) + n * HOUR:%F %T},{3600 + 60 * (n % 60)},4,0,team-a" for n in range(500)
    ]
    file = tmp_path / "trace.csv"
    file.write_text("\n".join(["timestamp,duration,num_gpus,gpu_time,cluster", *rows]) + "\n")
    assert found("waits", "-s", snapshot, "--history", file, "--futures", 20)["futures"] == 20


def test_jobs_of_a_trace_know_their_batch_and_what_comes_is_of_another(tmp_path: Path) -> None:
    rows = [f"2026-01-0{1 + n // 3} 00:00:{20 * (n % 3):02},3600,4,0,team-a" for n in range(6)]
    file = tmp_path / "trace.csv"
    file.write_text("\n".join(["timestamp,duration,num_gpus,gpu_time,cluster", *rows]) + "\n")
    history = read_history(file, NOON.timestamp())
    assert [run.request.size for run in history.runs] == [3] * 6
    assert sorted(Counter(run.request.batch for run in history.runs).values()) == [3, 3]
    assert {(arrival.request.size, arrival.request.batch) for arrival in history.arrivals} == {(3, 0)}


def test_what_cannot_be_read_is_named(snapshot: Path, tmp_path: Path) -> None:
    record(tmp_path / "work")
    broken = next((tmp_path / "work").iterdir())
    broken.write_bytes(b"no gzip")
    short = tmp_path / "short.csv"
    short.write_text("timestamp,duration,num_gpus,gpu_time,cluster\n2026-01-01 00:00:00,5\n")
    for words, said in (
        (("waits", "--history", tmp_path / "work"), broken.name),
        (("waits", "--history", short), "cannot be read as a history"),
        (("wait",), "did you mean team-a/waits"),
        (("waits", "--runs", "waits=soon"), "not a duration"),
        (("waits", "--runs", "waits=soon", "--runs", "none=1h"), "there is no workload named none"),
        (("waits", "--as", "team-b"), "--as team-b: nothing is submitted; --submit FILE names the job"),
    ):
        result = when(*words, "-s", snapshot)
        assert result.exit_code == 2
        words_only = "".join(result.output.replace("│", "").split())
        assert "".join(said.split()) in words_only


@pytest.mark.parametrize(
    ("half", "nine", "started", "said"),
    [
        (1, 2, 1, "half of the time by 13:00, nine times of ten by 14:00; it started at 13:00, by the median estimate"),
        (1, 2, 2, "it started at 14:00, by the 90 % estimate"),
        (1, 2, 3, "it started at 15:00, later than both"),
        (1, None, 3, "nine times of ten not within 7 days; it started at 15:00, by the 90 % estimate"),
        (None, None, 3, "half of the time not within 7 days, nine times of ten not within 7 days; it started at 15:00"),
        (None, None, 3, "15:00, by the median estimate"),
        (1, None, 169, "later than 7 days after it"),
        (None, None, 169, "later than 7 days after it"),
    ],
)
def test_the_verdict_on_an_earlier_estimate(half: int | None, nine: int | None, started: int, said: str) -> None:
    half_by, nine_by = (None if hours is None else NOON + hours * HOUR for hours in (half, nine))
    assert said in Earlier(NOON, half_by, nine_by, NOON + started * HOUR).words(NOON)


def test_a_job_that_has_ended_since_the_estimate_is_not_one_of_another_team() -> None:
    assert WaitsFor("team-a/x", 3).words == "in 3 when team-a/x ends"
    assert WaitsFor("", 3).words == "in 3 when jobs of other teams end"
    assert WaitsFor("", 3, ended=True).words == "in 3 after jobs that have ended since"


def test_the_history_of_two_clusters_is_refused(snapshot: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for name in ("ml", "research"):
        record(tmp_path / "work" / name)
    result = when("waits", "-s", snapshot, "--history", tmp_path / "work")
    assert result.exit_code == 2
    assert "has the days of 2 clusters or more" in " ".join(result.output.replace("│", " ").split())
    assert when("waits", "-s", snapshot, "--history", tmp_path / "work" / "ml").exit_code == 0
