"""`taskgov advise`: a diff of the document with its proof, or nothing; and what it cannot be asked."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from taskgov.advice.candidates import Candidate, terms_of
from taskgov.advice.past import Past, Use
from taskgov.advice.rules import Rule
from taskgov.policy.parse import parse_policy
from taskgov.quantities import GPU
from taskgov.work.attempt import Held
from taskgov.work.day import Day, from_bytes, to_bytes
from taskgov.work.measured import Span
from taskgov_cli.advise_policy import Ground, changed, ground_of, planned
from taskgov_cli.main import app
from tests.advice.synthetic import MONDAY, by_clock, history, recorded, steady, written
from tests.support.memory import CLUSTER_ARN

if TYPE_CHECKING:
    from pathlib import Path


HEAD = f'apiVersion: taskgov/v1\ncluster: {{name: ml-cluster, arn: "{CLUSTER_ARN}"}}\n'
DOCUMENT = (
    HEAD
    + """teams:
  - name: burst  # comes in the morning
    quota:
      ComputeQuotaResources: [{InstanceType: ml.g5.8xlarge, Count: 2}]  # two
      ResourceSharingConfig: {Strategy: LendAndBorrow, BorrowLimit: 50}
  - name: calm
    quota: {ComputeQuotaResources: [{InstanceType: ml.g5.8xlarge, Count: 8}]}
"""
)


def advise(*words: object) -> Result:
    return CliRunner().invoke(app, ["advise", *map(str, words)])


@pytest.fixture(scope="module")
def past() -> Past:
    return history(lambda chance: [*by_clock(chance, "burst", 6, 8, 14), *steady(chance, "calm", 0.5)])


@pytest.fixture(scope="module")
def trace(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(past, tmp_path_factory.mktemp("trace") / "trace.csv")


@pytest.fixture
def document(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(DOCUMENT)
    return file


def test_the_answer_is_a_diff_that_is_applied_like_any_other(trace: Path, document: Path, tmp_path: Path) -> None:
    output = tmp_path / "advised.yaml"
    result = advise(trace, "--policy", document, "-o", output, "--no-exact")
    assert result.exit_code == 0, result.output
    assert document.read_text() == DOCUMENT
    assert output.read_text() == DOCUMENT.replace("BorrowLimit: 50", "BorrowLimit: 200").replace(
        "Count: 8}]}", "Count: 8}], ResourceSharingConfig: {BorrowLimit: 200}}"
    )
    assert parse_policy(output.read_bytes()).document is not None
    for said in ("+      ResourceSharingConfig: {Strategy: LendAndBorrow, BorrowLimit: 200}", "Not simulated:"):
        assert said in result.output
    assert f"taskgov apply --policy {output}" in result.output


def test_programs_get_the_proof_and_the_exact_model_agrees(trace: Path, document: Path) -> None:
    result = advise(trace, "--policy", document, "--json")
    data = json.loads(result.stdout)
    assert data["advice"] == {"rule": "today", "limit": 200, "fair": True, "never": None}
    assert data["terms"]["burst"]["advised"] == {"quota": 2, "limit": 4, "weight": 0, "never": False}
    assert data["won"] == len(data["proofs"]) > 0
    last = data["proofs"][-1]
    assert data["exact"] == {"today": last["today"], "advised": last["advised"]}
    assert data["document"].startswith(HEAD)


def test_the_record_of_work_gives_the_advice_that_a_trace_of_it_gives(
    past: Past, trace: Path, document: Path, tmp_path: Path
) -> None:
    days = tmp_path / "work"
    days.mkdir()
    recorded(past, days, "ml.g5.8xlarge")
    found = [
        json.loads(advise(source, "--policy", document, "--no-exact", "--json").stdout) for source in (trace, days)
    ]
    assert found[0] == found[1]
    assert found[1]["advice"] is not None


def test_what_the_record_does_not_cover_is_said(past: Past, document: Path, tmp_path: Path) -> None:
    days = tmp_path / "work"
    days.mkdir()
    recorded(past, days, "ml.g5.8xlarge")
    monday, tuesday, friday = (MONDAY + timedelta(days=number) for number in (0, 1, 4))
    spans = Day(measured=(Span(monday, tuesday), Span(friday, friday + timedelta(days=1))))
    (days / "measured.jsonl.gz").write_bytes(to_bytes(spans, monday.date()))
    result = advise(days, "--policy", document, "--no-exact")
    said = "The record of work leaves out 72 hours; jobs that ended in them are missing."
    assert said in " ".join(result.output.split())


def test_work_on_another_instance_type_is_no_history_of_this_one(past: Past, document: Path, tmp_path: Path) -> None:
    days = tmp_path / "work"
    days.mkdir()
    recorded(past, days, "ml.p5.48xlarge")
    result = advise(days, "--policy", document)
    assert (result.exit_code, "the trace has no GPU jobs" in " ".join(result.output.split())) == (2, True)


def test_teams_of_the_record_that_the_document_does_not_have_are_left_out(
    past: Past, document: Path, tmp_path: Path
) -> None:
    days = tmp_path / "work"
    days.mkdir()
    recorded(past, days, "ml.g5.8xlarge")
    text = document.read_text()
    document.write_text(text[: text.index("  - name: calm")])
    result = advise(days, "--policy", document, "--no-exact")
    assert result.exit_code == 0, result.output
    said = "Left out, because the document does not have these teams: calm."
    assert said in " ".join(result.output.split())
    data = json.loads(advise(days, "--policy", document, "--no-exact", "--json").stdout)
    assert (data["leftOut"], [*data["terms"]]) == (["calm"], ["burst"])


def test_without_a_document_the_type_is_chosen_where_the_record_has_several(past: Past, tmp_path: Path) -> None:
    days = tmp_path / "work"
    days.mkdir()
    recorded(past, days, "ml.g5.8xlarge")
    for file in sorted(days.iterdir())[:1]:
        attempts = from_bytes(file.read_bytes()).attempts
        elsewhere = [replace(own, uid=f"p{own.uid}", held=(Held("ml.p5.48xlarge", GPU, 8),)) for own in attempts]
        (days / "elsewhere.jsonl.gz").write_bytes(to_bytes(Day(attempts=tuple(elsewhere)), MONDAY.date()))
    refused = advise(days, "--gpus", 8)
    assert refused.exit_code == 2
    said = "the record has jobs on several types: ml.g5.8xlarge, ml.p5.48xlarge"
    assert said in " ".join(refused.output.replace("│", " ").split())
    chosen = advise(days, "--gpus", 8, "--instance-type", "ml.p5.48xlarge")
    assert "it needs 4 weeks of work" in " ".join(chosen.output.split())


def test_without_a_document_today_is_in_proportion_to_past_use(trace: Path) -> None:
    result = advise(trace, "--gpus", 40, "--format", "markdown", "--no-exact")
    assert result.exit_code == 0, result.output
    assert "Change nothing" in result.output
    assert "+++" not in result.output


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (None, ["-o", "x.yaml"], "there is no document to change"),
        ("teams: 1", [], "not a valid policy document"),
        (DOCUMENT.replace("calm", "quiet"), [], "has no team calm"),
        (DOCUMENT, ["--instance-type", "ml.p5.48xlarge"], "must be a type with GPUs in the document"),
        (HEAD, [], "--instance-type is missing"),
        (DOCUMENT.replace("ml.g5.8xlarge", "ml.p5.48xlarge"), ["--gpus", "12"], "must be a multiple of 8"),
        (
            HEAD + "teams: [{name: calm, share: [{instanceType: ml.g5.8xlarge, percent: 50}]}, {name: burst}]",
            [],
            "--gpus is missing",
        ),
    ],
)
def test_what_cannot_be_asked_is_said(
    trace: Path, tmp_path: Path, text: str | None, words: list[str], said: str
) -> None:
    given = [trace, *words]
    if text is not None:
        (tmp_path / "odd.yaml").write_text(text)
        given += ["--policy", tmp_path / "odd.yaml"]
    result = advise(*given)
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())


def ground(teams: str, more: str = "", gpus: int | None = None) -> Ground:
    return ground_of(f"{HEAD}{more}teams:\n{teams}".encode(), None, gpus)


KEPT = """
  - {name: frozen, quota: {ComputeQuotaResources: [{InstanceType: ml.p5.48xlarge, Count: 2}]}}
  - name: strict
    quota:
      ComputeQuotaResources: [{InstanceType: ml.p5.48xlarge, Count: 1}]
      ResourceSharingConfig: {Strategy: DontLend}
  - {name: parts, quota: {ComputeQuotaResources: [{InstanceType: ml.p5.48xlarge, Accelerators: 8, VCpu: 96}]}}
  - {name: small, quota: {ComputeQuotaResources: [{InstanceType: ml.p5.48xlarge, Count: 4}]}}
  - {name: large, quota: {ComputeQuotaResources: [{InstanceType: ml.p5.48xlarge, Count: 4}]}}
"""


def test_floors_strategies_and_frozen_teams_of_the_document_are_kept() -> None:
    kept = ground(KEPT, "guardrails: {freeze: [frozen], minimumQuota: {small: 16}}\n")
    assert kept.today.unit == 8
    terms = terms_of(Candidate(Rule.USE, 100), {"large": Use(1e6, 10)}, kept.today)
    assert {team: own.quota for team, own in terms.teams} == {
        "frozen": 16,
        "strict": 8,
        "parts": 8,
        "small": 16,
        "large": 48,
    }
    text = changed(kept, Candidate(Rule.USE, 100), terms)
    document = parse_policy(text).document
    assert document is not None
    assert planned(kept, document) == {team: own.quota for team, own in terms.teams}
    limits = [line.strip() for line in text.splitlines() if "BorrowLimit" in line]
    assert [line.split(",")[0] for line in limits] == ["- {name: parts", "- {name: small", "- {name: large"]


@pytest.mark.parametrize(
    "shares",
    [
        "{instanceType: ml.g5.8xlarge, percent: 50}",
        "{instanceType: ml.g5.8xlarge, weight: 3}",
        "{instanceType: ml.g5.8xlarge, weight: 3, unit: accelerators, ceiling: 9}",
    ],
)
def test_shares_are_changed_in_their_own_words(shares: str) -> None:
    begun = ground("".join(f"  - {{name: {team}, share: [{shares}]}}\n" for team in "ab"), gpus=16)
    assert [team.quota for team in begun.today.teams] == [8, 8]
    candidate = Candidate(Rule.USE)
    terms = terms_of(candidate, {"a": Use(3e6, 1), "b": Use(1e6, 1)}, begun.today)
    document = parse_policy(changed(begun, candidate, terms)).document
    assert document is not None
    assert planned(begun, document) == {team: own.quota for team, own in terms.teams}
    assert terms != terms_of(Candidate(Rule.TODAY), {}, begun.today)


def test_preemption_is_written_where_it_changes() -> None:
    begun = ground(KEPT)
    candidate = Candidate(Rule.TODAY, None, fair=False, never=True)
    text = changed(begun, candidate, terms_of(candidate, {}, begun.today))
    document = parse_policy(text).document
    assert document is not None
    assert document.scheduler_config is not None
    assert document.scheduler_config.fair_share == "Disabled"
    assert [team.quota.preempt_team_tasks for team in document.teams if team.quota] == ["Never"] * 5


LIMITED = """  - name: absolute
    quota:
      ComputeQuotaResources: [{InstanceType: ml.g5.8xlarge, Count: 2}]
      ResourceSharingConfig:
        {Strategy: LendAndBorrow, AbsoluteBorrowLimits: [{InstanceType: ml.g5.8xlarge, Count: 3}]}
  - name: guest
    quota:
      ComputeQuotaResources: []
      ResourceSharingConfig:
        {Strategy: LendAndBorrow, AbsoluteBorrowLimits: [{InstanceType: ml.g5.8xlarge, Count: 1}]}
  - {name: elsewhere, quota: {ComputeQuotaResources: [{InstanceType: ml.p5.48xlarge, Count: 1}]}}
  - {name: other, quota: {ComputeQuotaResources: [{InstanceType: ml.g5.8xlarge, Count: 2}]}}
"""


def test_absolute_limits_are_simulated_and_teams_without_the_type_keep_their_limit() -> None:
    begun = ground_of((HEAD + "teams:\n" + LIMITED).encode(), "ml.g5.8xlarge", 4)
    candidate = Candidate(Rule.TODAY, 500)
    terms = terms_of(candidate, {}, begun.today)
    assert {team: own.limit for team, own in terms.teams} == {"absolute": 3, "elsewhere": 0, "guest": 1, "other": 10}
    document = parse_policy(changed(begun, candidate, terms)).document
    assert document is not None
    limits = {
        team.name: sharing.borrow_limit
        for team in document.teams
        if team.quota and (sharing := team.quota.resource_sharing_config)
    }
    assert limits == {"absolute": None, "guest": None, "other": 500}


def test_the_shared_pool_lends_in_replays_and_keeps_what_it_has() -> None:
    shares = "  - {name: a, share: [{instanceType: ml.g5.8xlarge, percent: 25}]}\n"
    begun = ground(shares, "sharedPool: {team: idle}\n", gpus=16)
    candidate = Candidate(Rule.EQUAL, 200)
    terms = terms_of(candidate, {}, begun.today)
    assert {team: (own.quota, own.limit) for team, own in terms.teams} == {"a": (4, 8), "idle": (12, 0)}
    document = parse_policy(changed(begun, candidate, terms)).document
    assert document is not None
    assert planned(begun, document) == {"a": 4, "idle": 12}
