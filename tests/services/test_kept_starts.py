"""How good estimates were, as metrics and in reports."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import nan

import pytest

from taskgov.contracts.steps import PublishUsageRequest
from taskgov.estimates.kept import ALL_TEAMS, KEY, KeptEstimates, TeamScore, Waiting
from taskgov.services.kept_starts import measure_starts, task_starts
from taskgov.services.metric_catalogue import START_ESTIMATE_COVERAGE
from taskgov.services.series_rule import bounded, sorted_out
from tests.support.clusters import GovernedCluster
from tests.support.lab import Lab
from tests.support.memory import CLUSTER_ARN, NOON, InMemoryDocuments, RecordingFailures, RecordingMeter

SCORES = {
    "team-a": TeamScore(100, 0.52, 0.91),
    "team-b": TeamScore(19, 0.5, 0.9),
    "team-c": TeamScore(20, 0.4, nan),
    ALL_TEAMS: TeamScore(100, 0.5, 0.9),
}
KEPT = KeptEstimates(NOON, NOON, scores=SCORES)


def test_teams_with_enough_outcomes_and_all_together_have_both_parts() -> None:
    found = {
        (value.dimensions["Team"], value.dimensions["Quantile"]): value.value for value in measure_starts(KEPT, NOON)
    }
    assert found == {
        ("team-a", "P50"): 52,
        ("team-a", "P90"): 91,
        ("team-c", "P50"): 40,
        (ALL_TEAMS, "P50"): 50,
        (ALL_TEAMS, "P90"): 90,
    }


def test_what_nobody_estimates_any_longer_is_not_measured() -> None:
    assert list(measure_starts(KEPT, NOON + timedelta(hours=1))) == list(measure_starts(None, NOON)) == []


def test_the_minutes_look_publishes_it() -> None:
    cluster = GovernedCluster().with_nodes(2).with_team("team-a").with_team("team-b")
    cluster.documents.stored[KEY.format("ml-cluster")] = KEPT.to_bytes()
    meter = RecordingMeter()
    cluster.publish_usage(meter=meter)(PublishUsageRequest(cluster_arn=CLUSTER_ARN))
    values = [value for _, value in meter.recorded if value.name == START_ESTIMATE_COVERAGE.name]
    assert len(values) == 5


def test_estimates_that_cannot_be_read_are_reported_and_usage_is_published() -> None:
    cluster = GovernedCluster().with_nodes(2).with_team("team-a").with_team("team-b")
    cluster.documents.stored[KEY.format("ml-cluster")] = b"damaged"
    failures = RecordingFailures()
    publish = cluster.publish_usage(failures=failures)
    assert publish(PublishUsageRequest(cluster_arn=CLUSTER_ARN)).published > 0
    assert failures.reported == [("ml-cluster", "measure the estimates of starts", "InvalidRequestError")]


def test_the_limit_of_series_counts_teams_and_never_cuts_all_of_them_together() -> None:
    many = replace(
        KEPT, scores={f"team-{n:03}": TeamScore(30, 0.5, 0.9) for n in range(400)} | {ALL_TEAMS: SCORES[ALL_TEAMS]}
    )
    measured = list(measure_starts(many, NOON))
    published, memory = bounded(sorted_out(measured), None, 500, NOON)
    teams = {value.dimensions["Team"] for value in published}
    assert ALL_TEAMS in teams
    assert len(teams) < 300  # the others are left out: a part of several teams is no part of one
    assert "other" not in teams
    assert memory.wanted > 800


@pytest.mark.parametrize("body", [b"damaged", None])
def test_a_report_does_without_what_cannot_be_read(body: bytes | None) -> None:
    documents = InMemoryDocuments({} if body is None else {KEY.format("ml-cluster"): body})
    assert task_starts(documents, Lab().team("team-a", 1).snapshot()) == {}


def test_a_report_has_the_estimate_of_each_task_that_waits() -> None:
    snapshot = Lab().team("team-a", 1).machines(1).submit("team-a", "runs").submit("team-a", "waits", ago=30).snapshot()
    waiting = Waiting("uid-waits", "team-a", NOON, 60.0, 600.0, 1200.0, calibrated=True)
    documents = InMemoryDocuments({KEY.format("ml-cluster"): replace(KEPT, waiting=(waiting,)).to_bytes()})
    (found,) = task_starts(documents, snapshot).items()
    assert (found[0], found[1].cell(NOON)) == (("team-a", "waits"), "12:10 / 12:20")
