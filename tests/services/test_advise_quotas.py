"""Advice of the audit: once a week from the record of work, in the report, within the time of an audit."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.audit.report import report_json
from taskgov.audit.report_build import audit_report
from taskgov.audit.report_html import report_html
from taskgov.services.advise_quotas import KEY, NO_TIME, SECONDS, UNFINISHED, AdviseQuotas, kept_advice
from tests.advice.synthetic import by_clock, history, steady, with_record
from tests.support.clusters import GovernedCluster
from tests.support.memory import CLUSTER_ARN, NOON, RecordingFailures
from tests.support.reports import report_from_json

if TYPE_CHECKING:
    from taskgov.advice.past import Past
    from taskgov.audit.quota_advice import QuotaAdvice

DAY = timedelta(days=1)
TYPE = "ml.g5.8xlarge"
"""One GPU."""
STORED = KEY.format("ml-cluster")


@dataclass
class Week:
    """A cluster with six weeks of work on record, and its advice."""

    cluster: GovernedCluster
    failures: RecordingFailures = field(default_factory=RecordingFailures)
    seconds: float = 0.0
    took: float = 0.0
    """Seconds that each look at the clock takes."""

    def clock(self) -> float:
        self.seconds += self.took
        return self.seconds

    def advise(self) -> tuple[QuotaAdvice, ...]:
        return AdviseQuotas(self.cluster.documents, self.failures, self.clock)(self.snapshot())

    def snapshot(self) -> Any:
        return self.cluster.take_snapshot()(CLUSTER_ARN)


@pytest.fixture(scope="module")
def past() -> Past:
    """Return work of which a team needs more than its limit in the mornings."""
    return history(lambda chance: [*by_clock(chance, "team-a", 6, 8, 14), *steady(chance, "team-b", 0.5)])


def team(name: str, count: int, limit: int) -> dict[str, Any]:
    sharing = {"Strategy": "LendAndBorrow", "BorrowLimit": limit}
    return {
        "name": name,
        "quota": {
            "ComputeQuotaResources": [{"InstanceType": TYPE, "Count": count}],
            "ResourceSharingConfig": sharing,
        },
    }


@pytest.fixture
def week(past: Past) -> Week:
    cluster = GovernedCluster().with_fair_share().with_nodes(10, instance_type=TYPE)
    cluster.with_team("team-a", 2, instance_type=TYPE).with_team("team-b", 8, instance_type=TYPE)
    cluster.documents.stored |= with_record(past, NOON - 42 * DAY, TYPE)
    documented(cluster, team("team-a", 2, 50), team("team-b", 8, 50))
    return Week(cluster)


def documented(cluster: GovernedCluster, *teams: dict[str, Any]) -> None:
    document = {"apiVersion": "taskgov/v1", "cluster": {"name": "ml-cluster", "arn": CLUSTER_ARN}, "teams": teams}
    cluster.documents.stored["policies/ml-cluster.yaml"] = json.dumps(document).encode()


def test_the_report_says_what_would_have_served_the_work_better_with_its_proof(week: Week) -> None:
    [advice] = week.advise()
    assert (advice.instance_type, advice.made_at, advice.advised) == (TYPE, NOON, "today's quotas, limit 200 %")
    assert advice.proof is not None
    assert advice.proof.won == advice.proof.splits > 0
    assert advice.proof.advised_mean_wait < advice.proof.mean_wait
    assert [(own.team, own.quota, own.advised_quota) for own in advice.teams] == [("team-a", 2, 2), ("team-b", 8, 8)]
    assert [(own.may_borrow, own.advised_may_borrow) for own in advice.teams] == [(1, 4), (4, 16)]
    report = audit_report(week.snapshot(), advice=[advice])
    [found] = [finding for finding in report.findings if finding.code == "quotas-advised"]
    assert found.subject == TYPE
    assert "today's quotas, limit 200 % would have served the recorded work better: the mean wait is" in found.because
    assert [command.line for command in found.commands] == ["taskgov history --work ml-cluster"]
    page = report_html(report).decode()
    for part in ('id="advice"', 'id="advised-quotas"', "limit 200 %", "Nothing is applied by it"):
        assert part in page
    assert report_from_json(report_json(report)) == report
    assert week.failures.reported == []


def test_it_is_found_out_once_a_week_and_shown_until_then(week: Week) -> None:
    first = week.advise()
    for _ in range(6):
        week.cluster.clock.advance(days=1)
        week.took = SECONDS * 2  # a replay now has no time for it
        assert week.advise() == first
    week.took = 0.0
    week.cluster.clock.advance(days=1)
    [later] = week.advise()
    assert later.made_at == NOON + 7 * DAY


def test_another_document_gets_advice_of_its_own(week: Week) -> None:
    week.advise()
    week.cluster.clock.advance(days=1)
    documented(week.cluster, team("team-a", 2, 200), team("team-b", 8, 200))
    [advice] = week.advise()
    assert (advice.made_at, advice.advised) == (NOON + DAY, "")
    assert advice.teams == ()


def test_limits_that_the_document_does_not_name_are_those_of_the_cluster(week: Week) -> None:
    teams = [team("team-a", 2, 50), team("team-b", 8, 50)]
    for one in teams:
        del one["quota"]["ResourceSharingConfig"]
    documented(week.cluster, *teams)
    [advice] = week.advise()  # each borrow limit on the cluster is 100 percent
    assert [(own.may_borrow, own.advised_may_borrow) for own in advice.teams] == [(2, 4), (8, 16)]


def test_where_nothing_is_better_the_report_says_so_without_a_finding(week: Week) -> None:
    documented(week.cluster, team("team-a", 2, 200), team("team-b", 8, 200))
    [advice] = week.advise()
    report = audit_report(week.snapshot(), advice=[advice])
    assert not any(finding.code == "quotas-advised" for finding in report.findings)
    assert "no change" in report_html(report).decode()


def test_advice_takes_no_more_than_its_part_of_the_time_of_an_audit(week: Week) -> None:
    week.took = SECONDS / 5
    [advice] = week.advise()
    assert (advice.advised, advice.because, advice.proof) == ("", NO_TIME, None)
    assert week.seconds < SECONDS * 1.5
    assert advice.jobs > 100


def test_an_audit_that_ended_on_the_way_does_not_begin_again(week: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr("taskgov.services.advise_quotas.Adviser", killed)
        with pytest.raises(SystemExit):
            week.advise()
    [advice] = week.advise()
    assert (advice.because, advice.advised) == (UNFINISHED, "")


def test_without_a_document_or_a_record_there_is_none(week: Week) -> None:
    for key in [key for key in week.cluster.documents.stored if key.startswith("work/")]:
        del week.cluster.documents.stored[key]
    [advice] = week.advise()
    assert advice.because == "the history is too short for a proof: it needs 4 weeks of work"
    assert (advice.jobs, advice.unmeasured_hours) == (0, 8 * 7 * 24)
    del week.cluster.documents.stored["policies/ml-cluster.yaml"]
    assert week.advise() == ()


def test_a_damaged_day_is_reported_and_the_audit_continues(week: Week) -> None:
    day = next(key for key in sorted(week.cluster.documents.stored) if key.startswith("work/"))
    week.cluster.documents.stored[day] = b"{"
    assert week.advise() == ()
    assert week.failures.reported == [("ml-cluster", "advise on quotas", "InvalidRequestError")]


def test_a_memory_that_cannot_be_read_is_made_again(week: Week) -> None:
    week.cluster.documents.stored[STORED] = b"{"
    assert kept_advice(week.cluster.documents, week.snapshot()) is None
    [advice] = week.advise()
    assert advice.advised
    kept = kept_advice(week.cluster.documents, week.snapshot())
    assert kept is not None
    assert kept.advice == (advice,)
