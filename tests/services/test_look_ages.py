"""How long ago each governed cluster was read: what the alarm on stale clusters watches."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from taskgov.errors import ThrottledError, UpstreamError
from taskgov.ports import PolicyText
from taskgov.services.kept_look import keep_look
from taskgov.services.look_ages import LookAges
from taskgov.services.metric_catalogue import ALL_CLUSTERS
from taskgov.services.take_snapshot import cluster_facts
from taskgov.snapshot.model import ClusterFacts
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    FixedClock,
    InMemoryDocuments,
    InMemoryState,
    RecordingFailures,
    RecordingMeter,
    cluster_description,
)

OTHER_ARN = CLUSTER_ARN[:-1] + "m"
EKS = "arn:aws:eks:us-east-1:111122223333:cluster/plain"


class World:
    def __init__(self) -> None:
        self.clusters = [facts(), facts(name="other", arn=OTHER_ARN)]
        self.undescribed: list[str] = []
        self.documents = InMemoryDocuments()
        self.state = InMemoryState()
        self.clock = FixedClock()
        self.failures = RecordingFailures()
        for name in ("ml-cluster", "other"):
            self.documents.put(f"policies/{name}.yaml", b"", "application/yaml")

    def ages(self) -> dict[str, float]:
        """Look at each cluster; return the greatest of what was measured under each name, as the alarm does."""
        meter = RecordingMeter()
        ages = LookAges(self.documents, self.state, meter, self.clock, self.failures)
        for cluster in self.clusters:
            ages.publish(cluster)
        for arn in self.undescribed:
            ages.publish_undescribed(arn)
        found: dict[str, float] = {}
        for cluster_name, each in meter.recorded:
            found[cluster_name] = max(each.value, found.get(cluster_name, 0))
        return found

    def look_after(self, cluster_arn: str = CLUSTER_ARN, *, hours: int = 3) -> None:
        """See both clusters, and look at one again some hours later."""
        self.ages()
        self.clock.advance(hours=hours)
        self.state.record_look(cluster_arn, self.clock.now())


def facts(name: str = "ml-cluster", arn: str = CLUSTER_ARN, **changes: Any) -> ClusterFacts:
    return replace(cluster_facts(cluster_description(name, arn)), **changes)


@pytest.fixture
def world() -> World:
    return World()


def test_the_oldest_look_of_all_clusters_is_measured_beside_that_of_each(world: World) -> None:
    world.state.record_look(CLUSTER_ARN, NOON)
    world.clock.advance(hours=2)
    world.state.record_look(OTHER_ARN, world.clock.now())
    world.clock.advance(seconds=1)
    assert world.ages() == {"ml-cluster": 7201, "other": 1, ALL_CLUSTERS: 7201}
    world.state.record_look(CLUSTER_ARN, world.clock.now())
    assert world.ages()[ALL_CLUSTERS] == 1


def test_a_cluster_that_was_never_looked_at_counts_from_the_first_time_it_is_seen(world: World) -> None:
    assert world.ages()[ALL_CLUSTERS] == 0
    world.clock.advance(hours=3)
    assert world.ages()[ALL_CLUSTERS] == 3 * 3600


def test_the_last_cluster_that_is_not_governed_any_more_ends_the_alarm(world: World) -> None:
    world.clusters = [facts(eks_arn=None)]
    assert world.ages() == {ALL_CLUSTERS: 0}


@pytest.mark.parametrize("how", ["gone", "being deleted", "without a document", "without EKS"])
def test_a_cluster_that_is_not_governed_any_more_does_not_count(world: World, how: str) -> None:
    world.look_after()
    match how:
        case "gone":
            del world.clusters[1]
        case "being deleted":
            world.clusters[1] = facts("other", OTHER_ARN, status="Deleting")
        case "without a document":
            del world.documents.stored["policies/other.yaml"]
        case _:
            world.clusters[1] = facts("other", OTHER_ARN, eks_arn=None)
    assert world.ages() == {"ml-cluster": 0, ALL_CLUSTERS: 0}


def test_a_cluster_that_cannot_be_described_continues_ageing(world: World) -> None:
    world.look_after()
    world.undescribed.append(world.clusters.pop().arn)
    assert world.ages() == {"ml-cluster": 0, ALL_CLUSTERS: 3 * 3600}


@pytest.mark.parametrize("named", ["plain", EKS])
def test_an_eks_cluster_that_cannot_be_described_continues_ageing_by_the_name_of_its_document(
    world: World, named: str
) -> None:
    """The fan-out has no ARN of it."""
    world.clusters = [facts("plain", EKS, eks_arn=EKS)]
    world.documents.put("policies/plain.yaml", b"", "application/yaml")
    world.ages()
    world.clock.advance(hours=1)
    keep_look(world.state, world.clusters.pop(), world.clock.now())
    world.undescribed.append(named)
    world.clock.advance(hours=3)
    assert world.ages() == {ALL_CLUSTERS: 3 * 3600}


def test_an_eks_cluster_that_no_run_has_read_continues_ageing_from_the_first_time_it_was_seen(world: World) -> None:
    world.clusters = [facts("plain", EKS, eks_arn=EKS)]
    world.documents.put("policies/plain.yaml", b"", "application/yaml")
    world.ages()
    world.clock.advance(hours=3)
    world.clusters = []
    world.undescribed.append("plain")
    assert world.ages() == {ALL_CLUSTERS: 3 * 3600}


def test_no_look_at_a_hyperpod_cluster_is_kept_by_name(world: World) -> None:
    """Its document may outlast it, and names a cluster then that is looked at no more."""
    keep_look(world.state, facts(), NOON)
    assert (world.state.last_look(CLUSTER_ARN), world.state.last_look("ml-cluster")) == (NOON, None)


def test_a_cluster_of_unknown_age_leaves_the_alarm_without_a_value(world: World) -> None:
    world.clusters, world.undescribed = [], ["plain"]
    assert world.ages() == {}


def test_a_cluster_that_was_never_described_is_not_known_to_be_governed(world: World) -> None:
    world.undescribed.append(world.clusters.pop().arn)
    world.ages()
    world.clock.advance(hours=3)
    world.state.record_look(CLUSTER_ARN, world.clock.now())
    assert world.ages() == {"ml-cluster": 0, ALL_CLUSTERS: 0}


@pytest.mark.parametrize("described", [True, False])
@pytest.mark.parametrize("error", [UpstreamError("the table: down"), KeyError("at")])
def test_an_age_that_cannot_be_found_out_is_reported_and_hides_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception, described: bool
) -> None:
    world.look_after(OTHER_ARN, hours=1)
    real = world.state.last_look

    def last_look(arn: str) -> datetime | None:
        if arn == CLUSTER_ARN:
            raise error
        return real(arn)

    monkeypatch.setattr(world.state, "last_look", last_look)
    if not described:
        world.undescribed.append(world.clusters.pop(0).arn)
    assert world.ages() == {"other": 0, ALL_CLUSTERS: 0}
    assert [what for _, *what in world.failures.reported] == [["read when it was last looked at", type(error).__name__]]


def test_a_document_that_cannot_be_read_leaves_the_alarm_without_a_value(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(_: str) -> PolicyText | None:
        raise ThrottledError("read policies/ml-cluster.yaml")

    world.clusters = [facts()]
    monkeypatch.setattr(world.documents, "policy", down)
    assert world.ages() == {}
    assert world.failures.reported == [("ml-cluster", "read when it was last looked at", "ThrottledError")]
