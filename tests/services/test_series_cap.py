"""The limit of metric series: what publishing remembers, and the finding of the audit."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from taskgov.contracts.steps import PublishUsageRequest
from taskgov.errors import UpstreamError
from taskgov.services.series_cap import KEY, SeriesCap, memory_in, series_findings
from taskgov.services.series_rule import FIXED, OTHER
from tests.services.test_audit_cluster import Audited
from tests.services.test_series_rule import a_look, limit_for, own_teams
from tests.support.clusters import GPU, GovernedCluster
from tests.support.memory import CLUSTER_ARN, NOON, InMemoryDocuments, RecordingFailures, RecordingMeter

if TYPE_CHECKING:
    from taskgov.ports import Measurement

PLACE = KEY.format("ml-cluster")
LIMIT = limit_for(10)


def a_cap(documents: InMemoryDocuments, limit: int = LIMIT) -> tuple[SeriesCap, RecordingFailures]:
    failures = RecordingFailures()
    return SeriesCap(documents, failures, limit), failures


def test_a_cluster_with_few_series_has_no_memory_and_no_finding() -> None:
    documents = InMemoryDocuments()
    cap, _ = a_cap(documents, 100_000)
    look = a_look(40)
    assert cap("ml-cluster", look, NOON) == look
    assert documents.stored == {}
    assert series_findings(documents, "ml-cluster", NOON) == ()


def test_the_memory_is_written_when_it_changes_only() -> None:
    documents = InMemoryDocuments()
    cap, failures = a_cap(documents)
    cap("ml-cluster", a_look(40, ["team-0030"]), NOON)
    first = documents.stored.pop(PLACE)
    documents.stored[PLACE] = first
    writes = []
    documents.put = lambda *written: writes.append(written)  # type: ignore[method-assign,assignment]
    cap("ml-cluster", a_look(40, ["team-0030"]), NOON + timedelta(minutes=1))
    assert writes == []
    cap("ml-cluster", a_look(40, ["team-0031"]), NOON + timedelta(minutes=2))
    assert len(writes) == 1
    assert failures.reported == []


def test_a_damaged_memory_is_made_anew() -> None:
    documents = InMemoryDocuments()
    documents.put(PLACE, b"damaged", "application/gzip")
    cap, failures = a_cap(documents)
    assert "team-0030" in own_teams(cap("ml-cluster", a_look(40, ["team-0030"]), NOON))
    assert failures.reported == []
    assert memory_in(documents, "ml-cluster") is not None


@pytest.mark.parametrize("broken", ["find", "put"])
def test_metrics_are_published_although_the_memory_fails(broken: str) -> None:
    documents = InMemoryDocuments()

    def fail(*_: object) -> None:
        raise UpstreamError("S3 is down")

    setattr(documents, broken, fail)
    cap, failures = a_cap(documents)
    assert "team-0030" in own_teams(cap("ml-cluster", a_look(40, ["team-0030"]), NOON))
    assert failures.reported == [("ml-cluster", "remember which metric series there are", "UpstreamError")]


def test_the_finding_names_how_many_are_cut_and_what_would_be_enough() -> None:
    documents = InMemoryDocuments()
    cap, _ = a_cap(documents)
    cap("ml-cluster", a_look(40), NOON)
    (finding,) = series_findings(documents, "ml-cluster", NOON + timedelta(minutes=59))
    cut, enough = finding.evidence["cut"], limit_for(40)
    assert finding.evidence == {"cut": cut, "series": enough, "maxSeries": LIMIT}
    assert isinstance(cut, int)
    assert 30 <= cut <= 32
    assert finding.because == (
        f"{cut} of 40 teams have no metrics of their own and are published together, as Team={OTHER}: with all of them "
        f"the cluster would have {enough} metric series, and MaxSeries is {LIMIT}."
    )
    assert f"MaxSeries of {enough} or more" in finding.remedy
    raised, _ = a_cap(documents, enough)
    raised("ml-cluster", a_look(40), NOON + timedelta(hours=1))
    assert series_findings(documents, "ml-cluster", NOON + timedelta(hours=1)) == ()


def test_a_memory_of_earlier_says_nothing_of_now() -> None:
    documents = InMemoryDocuments()
    cap, _ = a_cap(documents)
    cap("ml-cluster", a_look(40), NOON)
    assert series_findings(documents, "ml-cluster", NOON + timedelta(hours=2)) == ()


def a_cluster(teams: int = 6) -> GovernedCluster:
    cluster = GovernedCluster().with_fair_share().with_nodes(2)
    for number in range(teams):
        cluster.with_team(f"team-{number}", used={GPU: "2"} if number == teams - 1 else {})
    return cluster


def test_publishing_keeps_the_limit_and_the_audit_reports_it() -> None:
    cluster, meter = a_cluster(), RecordingMeter()
    limit = FIXED + 60
    publish = cluster.publish_usage(meter=meter, max_series=limit)
    publish(PublishUsageRequest(cluster_arn=CLUSTER_ARN))
    values: list[Measurement] = [one for _, one in meter.recorded]
    assert "team-5" in own_teams(values)
    assert "team-4" not in own_teams(values)
    assert sum(one.value for one in values if one.name == "QuotaUsed") == 2
    assert len({(one.name, *one.dimensions.values()) for one in values if one.dimensions}) + FIXED <= limit
    audited = Audited(cluster)
    (finding,) = [one for one in audited.report(audited.audit()).findings if one.code == "metric-series-cut"]
    assert (finding.subject, finding.teams) == ("metrics", ())
    assert finding.plan is None  # no plan changes what is published
