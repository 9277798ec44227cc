"""What a deployed stack keeps of starts, as people with few and many rights read it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from math import nan
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from taskgov.estimates.given import GivenStart
from taskgov.estimates.kept import ALL_TEAMS, KEY, TEAM_KEY, Before, Kept, KeptEstimates, TeamScore, Waiting
from taskgov.estimates.quantiles import Estimate
from taskgov.hyperpod.names import namespace_of
from taskgov.snapshot.unseen import Part, Unseen
from taskgov_cli.kept_starts import kept_in, next_starts
from taskgov_cli.when_estimate import score_words
from taskgov_embedded.cluster.access import VIEWERS
from taskgov_embedded.cluster.manifests import job_manifest
from tests.support.lab import Lab
from tests.support.members import LEADS, SCIENTISTS, become, let_in, team_cluster
from tests.support.memory import NOON, InMemoryDocuments
from tests.support.operating import taskgov

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskgov_embedded.walkthrough.world import World

pytestmark = pytest.mark.long

LIVE = ("--cluster", "ml-cluster", "--stack", "taskgov")
MINE = "team-a/a-waits"


def uid_of(world: World, job: str) -> str:
    workloads = world.cluster.store.list("workloads")
    return next(
        str(item["metadata"]["uid"])
        for item in workloads
        if any(owner["name"] == job for owner in item["metadata"].get("ownerReferences", ()))
    )


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with team_cluster() as made:
        for team, name, pods in (("team-a", "a-runs", 2), ("team-b", "b-runs", 2), ("team-a", "a-waits", 2)):
            made.cluster.submit(job_manifest(team, name, {"nvidia.com/gpu": "1"}, pods=pods))
            made.stack.run_until_quiet(60)
        made.cluster.submit(job_manifest("team-b", "b-waits", {"nvidia.com/gpu": "1"}, pods=1))
        made.stack.run_until_quiet(60)
        let_in(made, "team-a")
        yield made


def keep(
    world: World, *, calibrated: bool = True, ago: timedelta = timedelta(minutes=2), futures: int = 100
) -> KeptEstimates:
    """Keep estimates as `estimate_starts` does."""
    made = (world.clock.now - ago).replace(microsecond=0)
    seconds = int(made.timestamp())
    after = (
        Before(uid_of(world, "b-runs"), "team-b", futures * 3 // 5),
        Before(uid_of(world, "a-runs"), "team-a", futures * 2 // 5),
    )
    kept = KeptEstimates(
        at=made,
        estimated_at=made,
        futures=100,
        waiting=(
            Waiting(uid_of(world, "a-waits"), "team-a", made, 1800.0, 3600.0, 7200.0, calibrated, after, futures),
            Waiting(uid_of(world, "b-waits"), "team-b", made, 60.0, 120.0, None, calibrated, after),
        ),
        waits=2,
        scores={
            "team-a": TeamScore(100, 0.52, 0.91),
            "team-b": TeamScore(30, 0.4, 0.8),
            ALL_TEAMS: TeamScore(100, 0.5, 0.9),
        },
        outcomes=(Kept("gone", "team-a", seconds - 7200, Estimate(60, 90), Estimate(60, 90), seconds - 7000),),
    )
    bucket = world.stack.physical("GovernanceBucket")
    documents = {KEY.format("ml-cluster"): kept}
    documents |= {TEAM_KEY.format("ml-cluster", team): kept.of_team(team) for team in ("team-a", "team-b")}
    for key, document in documents.items():
        world.stack.client("s3").put_object(Bucket=bucket, Key=key, Body=document.to_bytes())
    return kept


@pytest.fixture
def member(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    return become(world, monkeypatch, SCIENTISTS, "TeamMemberPolicy", "taskgov-team-a", team="team-a")


@pytest.fixture
def lead(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    return become(world, monkeypatch, LEADS, "TeamLeadPolicy", VIEWERS)


def text(*words: str) -> str:
    result = taskgov(*words)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def data(*words: str) -> Any:
    result = taskgov(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_a_lead_reads_the_kept_estimate_what_it_waits_for_and_how_good_such_were(world: World, lead: str) -> None:
    keep(world)
    shown = text("when", MINE, *LIVE)
    assert "half of the time by" in shown
    assert "nine times of ten by" in shown
    assert "of 100 futures, it starts in 60 when team-b/b-runs ends, in 40 when team-a/a-runs ends" in shown
    assert "last 100 estimates for team-a: 52 % had started by the median estimate, 91 % by the 90 % estimate" in shown
    found = data("when", MINE, *LIVE)
    assert (found["kept"], found["calibrated"], found["futures"]) == (True, True, 100)


def test_an_estimate_says_how_many_futures_it_is_from(world: World, lead: str) -> None:
    keep(world, futures=25)
    shown = text("when", MINE, *LIVE)
    assert "of 25 futures, it starts in 15 when team-b/b-runs ends, in 10 when team-a/a-runs ends" in shown
    assert "from 25 futures of the queue, corrected by the outcomes of earlier estimates" in shown


def test_a_member_reads_the_own_team_and_nothing_of_others(world: World, member: str) -> None:
    keep(world)
    shown = text("when", MINE, *LIVE)
    assert "half of the time by" in shown
    assert "in 60 when jobs of other teams end" in shown
    assert "last 100 estimates for team-a: 52 %" in shown
    for theirs in ("team-b", "b-runs", "b-waits"):
        assert theirs not in shown


def test_a_member_is_refused_the_estimates_of_another_team_by_aws(world: World, member: str) -> None:
    keep(world)
    bucket = world.stack.physical("GovernanceBucket")
    for key in (KEY.format("ml-cluster"), TEAM_KEY.format("ml-cluster", "team-b")):
        with pytest.raises(ClientError, match="AccessDenied"):
            boto3.client("s3").get_object(Bucket=bucket, Key=key)


def test_a_member_without_kept_estimates_is_shown_where_to_ask(world: World, member: str) -> None:
    keep(world, ago=timedelta(hours=3))
    assert "no estimate: the last estimates, of" in text("when", MINE, *LIVE)
    for words in (("--runs", f"{MINE}=2h"), ("--futures", "20", "--history", "README.md")):
        result = taskgov("when", MINE, *LIVE, *words)
        assert result.exit_code == 2
        assert "--stack NAME, without" in " ".join(result.output.replace("│", " ").split())


def test_what_is_not_calibrated_says_no_earlier_than(world: World, lead: str) -> None:
    keep(world, calibrated=False)
    shown = text("when", MINE, *LIVE)
    assert "no earlier than" in shown
    assert "Not calibrated" in shown


@pytest.mark.parametrize("person", ["member", "lead"])
def test_status_jobs_and_explain_show_the_kept_estimate(
    world: World, request: pytest.FixtureRequest, person: str
) -> None:
    request.getfixturevalue(person)
    kept = keep(world)
    half = (kept.at + timedelta(hours=1)).isoformat()
    status = data("status", *LIVE, "--team", "team-a")
    assert status["nextStarts"]["team-a"]["halfBy"].replace("Z", "+00:00") == half
    tasks = {task["job"]: task.get("start") for task in data("jobs", *LIVE, "--team", "team-a")["tasks"]}
    assert tasks["a-waits"]["halfBy"].replace("Z", "+00:00") == half
    assert tasks["a-runs"] is None
    explained = data("explain", MINE, *LIVE)
    assert explained["start"]["halfBy"].replace("Z", "+00:00") == half
    assert "Starts half of the time by" in text("explain", MINE, *LIVE)
    assert "starts" in text("status", *LIVE, "--team", "team-a")
    assert "starts by, half / 9 of 10 (UTC)" in text("jobs", *LIVE, "--team", "team-a")
    assert f"{kept.at + timedelta(hours=1):%H:%M} / {kept.at + timedelta(hours=2):%H:%M}" in text(
        "jobs", *LIVE, "--team", "team-a", "--format", "csv"
    )


def test_without_a_stack_there_is_no_column(world: World, lead: str) -> None:
    keep(world)
    live = (*LIVE[:2], "--stack", "")
    assert "nextStarts" not in data("status", *live)
    assert "starts by" not in text("jobs", *live)
    assert data("explain", MINE, *live)["start"] is None


def test_a_job_that_is_not_submitted_yet_is_estimated_by_the_record(world: World, lead: str, tmp_path: Path) -> None:
    keep(world)
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(job_manifest("team-a", "new", {"nvidia.com/gpu": "1"})))
    shown = text("when", "--submit", str(file), *LIVE)
    assert shown.startswith("team-a/new: no estimate")
    assert "it takes 20" in shown or "no measured time" in shown
    file.write_text("kind: Service")
    assert taskgov("when", "--submit", str(file), *LIVE).exit_code == 2


def test_the_form_of_every_answer_is_one_of_all(world: World, lead: str) -> None:
    keep(world)
    for form in ("table", "wide", "csv", "markdown", "yaml"):
        assert taskgov("when", MINE, *LIVE, "--format", form).exit_code == 0, form


def test_of_a_team_the_first_start_is_the_next() -> None:
    early = GivenStart(NOON, NOON, NOON + timedelta(minutes=1), NOON + timedelta(hours=1), calibrated=True)
    starts = {
        "a": replace(early, half_by=NOON + timedelta(hours=1)),
        "b": early,
        "c": replace(early, half_by=None),
        "d": early,
    }
    assert next_starts(starts, {"a": "t", "b": "t", "c": "t"}) == {"t": early}


def test_how_good_estimates_were_in_words() -> None:
    assert (
        score_words(TeamScore(100, 0.52, 0.91), "a")
        == "last 100 estimates for a: 52 % had started by the median estimate, 91 % by the 90 % estimate"
    )
    assert (
        score_words(TeamScore(20, 0.5, nan), "a") == "last 20 estimates for a: 50 % had started by the median estimate"
    )
    assert score_words(None, "a") == "no estimate for a can be checked yet"


def test_the_old_document_of_one_team_does_not_hide_the_estimates_of_another() -> None:
    documents = InMemoryDocuments()
    waits = Waiting("u1", "team-a", NOON, 300.0, 600.0, 1200.0, calibrated=True)
    fresh = KeptEstimates(NOON, NOON, waiting=(waits,), waits=1)
    old = KeptEstimates(NOON - timedelta(hours=1), notes=("nothing",))
    for team, part in (("team-a", fresh), ("team-c", old)):
        documents.stored[TEAM_KEY.format("ml-cluster", team)] = part.to_bytes()
    seen = tuple(map(namespace_of, ("team-a", "team-c")))
    known = replace(Lab().snapshot(), unseen=(Unseen(Part.WORKLOADS, "Forbidden", seen),))
    found = kept_in(documents, known)
    assert found is not None
    assert (found.at, found.waiting, found.notes) == (NOON, (waits,), ())
