"""What is not found while a cluster is read is a failure of it, unless there is nothing to read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from taskgov.contracts.steps import (
    AuditClusterRequest,
    AuditClusterResult,
    ClusterUnreadable,
    EstimateStartsRequest,
    NothingToAudit,
    PublishUsageRequest,
)
from taskgov.errors import GovernanceError, KueueMissingError, NotFoundError, ThrottledError
from taskgov.services.advise_quotas import AdviseQuotas
from taskgov.services.audit_cluster import AuditCluster
from taskgov.services.estimate_starts import EstimateStarts
from taskgov.services.read_queue import ReadQueue
from taskgov.services.work_record import RecordedWork
from tests.support.clusters import GovernedCluster
from tests.support.memory import (
    CLUSTER_ARN,
    RecordingFailures,
    RecordingMeter,
    RecordingNotices,
    RecordingTopics,
    cluster_description,
)

NO_KUEUE = KueueMissingError("the cluster serves none of v1beta2, v1beta1 of kueue.x-k8s.io: is Kueue installed?")
NO_EKS = NotFoundError("describe EKS cluster ml: ResourceNotFoundException: No cluster found for name: ml.")


@dataclass
class Partly:
    """A cluster's API of which one part is not found."""

    inner: Any
    part: str
    error: GovernanceError

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any) -> Any:
            raise self.error

        return fail if name == self.part else getattr(self.inner, name)


@dataclass
class World:
    """A cluster without a document, whose every schedule is played."""

    cluster: GovernedCluster = field(default_factory=lambda: GovernedCluster().with_nodes(2))
    failures: RecordingFailures = field(default_factory=RecordingFailures)
    part: str = ""
    error: GovernanceError = NO_KUEUE

    def with_document(self) -> World:
        self.cluster.documents.put("policies/ml-cluster.yaml", b"teams: []\n", "application/yaml")
        return self

    def lacks(self, part: str, error: GovernanceError) -> World:
        self.part, self.error = part, error
        return self

    @property
    def api(self) -> Any:
        return Partly(self.cluster.kubernetes, self.part, self.error)

    def nothing_to_audit(self) -> str:
        answer = self.audit()
        assert isinstance(answer, NothingToAudit)
        return answer.nothing_to_read

    def audit(self) -> AuditClusterResult | ClusterUnreadable | NothingToAudit:
        cluster = self.cluster
        return AuditCluster(
            take_snapshot=replace(cluster.take_snapshot(), kubernetes=self.api),
            documents=cluster.documents,
            state=cluster.state,
            notices=RecordingNotices(),
            team_topics=RecordingTopics(),
            meter=RecordingMeter(),
            advise=AdviseQuotas(cluster.documents, self.failures, lambda: 0.0),
        )(AuditClusterRequest(cluster_arn=CLUSTER_ARN, run_id="audit-1"))

    def measure(self) -> list[tuple[str, str, str]]:
        """Return what a measurement reports."""
        use = self.cluster.publish_usage(failures=self.failures)
        take = replace(use.take_snapshot, kubernetes=self.api)
        replace(use, take_snapshot=take)(PublishUsageRequest(cluster_arn=CLUSTER_ARN))
        return self.failures.reported

    def estimate(self) -> list[tuple[str, str, str]]:
        """Return what estimating the starts of jobs reports."""
        cluster = self.cluster
        cluster.take_snapshot()
        read = ReadQueue(cluster.hyperpod, self.api, self.api, cluster.clock, cluster.documents)
        record = RecordedWork(cluster.documents)
        use = EstimateStarts(read, cluster.documents, record, self.failures, lambda: 0.0, keep_days=180)
        use(EstimateStartsRequest(cluster_arn=CLUSTER_ARN))
        return self.failures.reported


@pytest.fixture(params=["a document", "a quota"])
def governed(request: pytest.FixtureRequest) -> World:
    if request.param == "a document":
        return World().with_document()
    return World(GovernedCluster().with_nodes(2).with_team("team-a"))


def test_a_governed_cluster_without_kueue_is_not_audited_and_that_is_said(governed: World) -> None:
    answer = governed.lacks("kueue_objects", NO_KUEUE).audit()
    assert isinstance(answer, ClusterUnreadable)
    assert answer.unreadable == f"KueueMissingError: {NO_KUEUE}"


def test_a_governed_cluster_without_kueue_is_reported_by_its_measurement(governed: World) -> None:
    governed.lacks("kueue_objects", NO_KUEUE)
    assert governed.measure() == [("ml-cluster", "measure the usage", "KueueMissingError")]


def test_a_cluster_with_a_document_and_without_kueue_is_reported_by_its_estimates() -> None:
    world = World().with_document().lacks("kueue_objects", NO_KUEUE)
    assert world.estimate() == [("ml-cluster", "estimate when jobs start", "KueueMissingError")]


def test_a_cluster_without_kueue_that_nothing_governs_is_no_failure() -> None:
    """As a parameter of the stack names it, on which task governance was never installed."""
    world = World().lacks("kueue_objects", NO_KUEUE)
    assert (world.measure(), world.estimate()) == ([], [])
    assert "neither a policy document nor quotas, and the cluster serves none" in world.nothing_to_audit()


@pytest.mark.parametrize("part", ["nodes", "kueue_objects"])
def test_what_else_is_not_found_is_a_failure_also_where_nothing_governs(part: str) -> None:
    world = World().lacks(part, NO_EKS)
    assert world.measure() == [("ml-cluster", "measure the usage", "NotFoundError")]
    assert isinstance(world.audit(), ClusterUnreadable)


def test_a_table_that_is_gone_is_a_failure_of_the_audit_and_of_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def gone(*_: Any) -> Any:
        raise NotFoundError("query the table: ResourceNotFoundException")

    monkeypatch.setattr(world.cluster.state, "applied_quotas", gone)
    assert world.measure() == [("ml-cluster", "measure the usage", "NotFoundError")]
    with pytest.raises(NotFoundError):
        world.audit()


@pytest.mark.parametrize(("part", "error"), [("nodes", NO_EKS), ("kueue_objects", NO_EKS), ("kueue_objects", NO_KUEUE)])
def test_what_a_cluster_lacks_that_is_being_deleted_is_no_failure(part: str, error: GovernanceError) -> None:
    world = World().with_document().lacks(part, error)
    world.cluster.hyperpod.descriptions = [cluster_description(ClusterStatus="Deleting")]
    assert world.measure() == []
    assert part == "nodes" or world.estimate() == []
    assert "ml-cluster is being deleted; list " in world.nothing_to_audit()


def test_a_cluster_that_was_deleted_since_it_was_listed_is_no_failure() -> None:
    world = World().with_document()
    world.cluster.hyperpod.descriptions = []
    assert (world.measure(), world.estimate()) == ([], [])
    assert world.nothing_to_audit() == f"cluster {CLUSTER_ARN}"


def test_whether_it_is_governed_is_asked_only_where_kueue_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def asked(*_: Any) -> Any:
        raise ThrottledError("read policies/ml-cluster.yaml")

    monkeypatch.setattr(world.cluster.documents, "policy", asked)
    assert world.estimate() == []
    assert world.lacks("kueue_objects", NO_KUEUE).estimate()[0][2] == "ThrottledError"
