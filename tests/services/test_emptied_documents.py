"""The document of an EKS cluster is emptied or damaged: that is said, and the cluster is not taken for deleted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from taskgov.backends.registry import BACKENDS, Reach, backends
from taskgov.contracts.events import Ignored
from taskgov.contracts.steps import AuditClusterRequest, ClusterUnreadable, PublishUsageRequest
from taskgov.services.advise_quotas import AdviseQuotas
from taskgov.services.audit_cluster import AuditCluster
from taskgov.services.metric_catalogue import ALL_CLUSTERS, SECONDS_SINCE_LOOK
from taskgov.services.receive_event import Hinted, ReceiveEvent
from tests.support.clusters import GovernedCluster
from tests.support.memory import (
    NOON,
    InMemoryWorkflow,
    RecordingFailures,
    RecordingMeter,
    RecordingNotices,
    RecordingTopics,
)

EKS = "arn:aws:eks:us-east-1:111122223333:cluster/plain"
GOOD = f"cluster: {{name: plain, arn: '{EKS}', backend: kueue}}\n"


class World:
    """An EKS cluster that a run read at noon, five hours later."""

    def __init__(self, document: str) -> None:
        self.cluster, self.failures, self.meter = GovernedCluster(), RecordingFailures(), RecordingMeter()
        self.cluster.documents.put("policies/plain.yaml", document.encode(), "application/yaml")
        nobody: Any = None
        hyperpod = replace(BACKENDS[0], build=lambda _reach, _above: self.cluster.hyperpod)
        reach = Reach(self.cluster.documents, nobody, nobody, nobody, nobody, nobody, self.failures)
        self.backends = backends(reach, (hyperpod, *BACKENDS[1:]))
        for name in ("plain", EKS):
            self.cluster.state.record_look(name, NOON)
        self.cluster.clock.advance(hours=5)

    def measure(self) -> list[float]:
        """Measure the cluster, as the fan-out names it; return the ages over all clusters that were published."""
        use = replace(self.cluster.publish_usage(failures=self.failures, meter=self.meter), backends=self.backends)
        use(PublishUsageRequest(cluster_arn="plain"))
        ages = (found for name, found in self.meter.recorded if name == ALL_CLUSTERS)
        return [found.value for found in ages if found.name == SECONDS_SINCE_LOOK.name]

    def receive(self) -> Hinted | Ignored:
        state, clock = self.cluster.state, self.cluster.clock
        event = {
            "version": "0",
            "id": "e-1",
            "source": "aws.s3",
            "detail-type": "Object Created",
            "account": "111122223333",
            "time": "2026-11-20T12:00:00Z",
            "region": "us-east-1",
            "resources": [],
            "detail": {"bucket": {"name": "bucket"}, "object": {"key": "policies/plain.yaml"}, "requester": "x"},
        }
        return ReceiveEvent(self.backends, state, InMemoryWorkflow(), clock, "arn:aws:iam::111122223333:role/x")(event)

    def audit(self) -> Any:
        take = replace(self.cluster.take_snapshot(), backends=self.backends)
        documents = self.cluster.documents
        advise = AdviseQuotas(documents, self.failures, lambda: 0.0)
        told = (RecordingNotices(), RecordingTopics(), self.meter, advise)
        return AuditCluster(take, documents, self.cluster.state, *told)(
            AuditClusterRequest(cluster_arn="plain", run_id="audit-1")
        )


EMPTIED = pytest.mark.parametrize("document", ["", "# truncated\n", "teams: []\n", "cluster: {name: plain}", "["])


@EMPTIED
def test_it_is_a_failure_of_its_measurement_and_continues_ageing(document: str) -> None:
    world = World(document)
    assert world.measure() == [5 * 3600]
    assert world.failures.reported == [("plain", "describe the cluster", "NoClusterNamedError")]


@EMPTIED
def test_its_audit_says_which_document_is_at_fault(document: str) -> None:
    answer = World(document).audit()
    assert isinstance(answer, ClusterUnreadable)
    assert answer.unreadable.startswith("NoClusterNamedError: the document policies/plain.yaml names no cluster")


@EMPTIED
def test_its_event_is_not_tried_again_since_each_measurement_reports_it(document: str) -> None:
    assert isinstance(World(document).receive(), Ignored)


def test_the_event_of_a_document_that_is_right_starts_a_run() -> None:
    assert isinstance(World(GOOD).receive(), Hinted)


def test_a_document_that_was_removed_ends_the_age_and_is_no_failure() -> None:
    world = World(GOOD)
    del world.cluster.documents.stored["policies/plain.yaml"]
    assert (world.measure(), world.failures.reported) == ([0], [])
