"""How long ago was a governed cluster read without an error? `publish_usage` measures it each minute.

A governed cluster is one that exists, is run by EKS and has a policy document. One that was never read counts from the
first time that it is seen here, so that a new cluster has as long for its first read as any other for its next one.
"""

from dataclasses import dataclass
from datetime import datetime

from taskgov.ports import Clock, DocumentStore, Meter, StateStore
from taskgov.services import metric_catalogue as metric
from taskgov.services.failures import Failures
from taskgov.services.kept_look import keep_look
from taskgov.services.metric_catalogue import ALL_CLUSTERS
from taskgov.services.nothing_to_read import DELETING
from taskgov.snapshot.model import ClusterFacts


@dataclass(frozen=True, slots=True)
class LookAges:
    """Measures how long ago each cluster was last read. The alarm watches the longest time over all clusters.

    Each measurement publishes the time of its own cluster there, and CloudWatch takes the maximum. It is 0 for a
    cluster that is not governed, so that the alarm ends when the last stale cluster is gone.
    """

    documents: DocumentStore
    state: StateStore
    meter: Meter
    clock: Clock
    failures: Failures

    def publish(self, cluster: ClusterFacts) -> None:
        """Publish how long ago a cluster was last read. If that is not known, report it and publish no value."""
        try:
            governed = _exists(cluster) and self.documents.policy(cluster.name) is not None
            age = self._age(cluster) if governed else None
        except Exception as error:  # noqa: BLE001 - usage is measured anyway; it is reported
            self.failures.report(cluster.name, "read when it was last looked at", error)
            return
        if age is not None:
            self.meter.record(cluster.name, [metric.SECONDS_SINCE_LOOK.of(age)])
        self.none_older_than(age or 0)

    def publish_undescribed(self, cluster: str) -> None:
        """Measure the age of a cluster (ARN or name) that could not be described: it was governed when it was read.

        One that was never read has no age: no value is published, because 0 would say that it was just read.
        """
        try:
            last = self.state.last_look(cluster)
        except Exception as error:  # noqa: BLE001 - the cluster is reported already; so is this
            self.failures.report(cluster.rpartition("/")[2], "read when it was last looked at", error)
            return
        if last is not None:
            self.none_older_than(self._since(last))

    def none_older_than(self, age: float) -> None:
        """Publish an age for all clusters together."""
        self.meter.record(ALL_CLUSTERS, [metric.SECONDS_SINCE_LOOK.of(age)])

    def _age(self, cluster: ClusterFacts) -> float:
        last = self.state.last_look(cluster.arn)
        if last is None:
            last = self.clock.now()
            keep_look(self.state, cluster, last)
        return self._since(last)

    def _since(self, last: datetime) -> float:
        return max(0.0, (self.clock.now() - last).total_seconds())


def _exists(cluster: ClusterFacts) -> bool:
    return cluster.eks_arn is not None and cluster.status != DELETING
