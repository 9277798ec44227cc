"""How long ago was each governed cluster read without an error? `publish_usage` measures it each minute.

A governed cluster is one that exists, is run by EKS and has a policy document. One that was never read counts from the
first time that it is seen here, so that a new cluster has as long for its first look as any other for its next one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from taskgov.ports import Clock, DocumentStore, Meter, StateStore
from taskgov.services import metric_catalogue as metric
from taskgov.services.failures import Failures
from taskgov.services.metric_catalogue import ALL_CLUSTERS
from taskgov.snapshot.model import ClusterFacts


@dataclass(frozen=True, slots=True)
class LookAges:
    """Measures how old the last look at each cluster is. Its fields are the ports it uses."""

    documents: DocumentStore
    state: StateStore
    meter: Meter
    clock: Clock
    failures: Failures

    def publish(self, clusters: Iterable[ClusterFacts], undescribed: Iterable[str]) -> None:
        """Measure the age of each governed cluster's last look, and the greatest age.

        `undescribed` are the ARNs of clusters that could not be described now. The greatest age is left out when an
        age, or which clusters are governed, cannot be found out: without a value the alarm stays as it was.
        """
        try:
            governed = frozenset(self.documents.policy_names())
        except Exception as error:  # noqa: BLE001 - usage is measured anyway; it is reported
            self.failures.report(ALL_CLUSTERS, "list the policy documents", error)
            return
        ages = [self._age(cluster) for cluster in clusters if _exists(cluster) and cluster.name in governed]
        ages += [self._age_of_undescribed(arn) for arn in undescribed]
        known = [age for age in ages if age is not None]
        if len(known) == len(ages):
            self.meter.record(ALL_CLUSTERS, [metric.SECONDS_SINCE_LOOK.of(max(known, default=0))])

    def _age(self, cluster: ClusterFacts) -> float | None:
        """Measure the age of one look; None, after it was reported, when the table does not answer."""
        try:
            last = self.state.last_look(cluster.arn)
            if last is None:
                last = self.clock.now()
                self.state.record_look(cluster.arn, last)
            age = self._since(last)
        except Exception as error:  # noqa: BLE001 - whatever one cluster does, the others are measured; it is reported
            self.failures.report(cluster.name, "read when it was last looked at", error)
            return None
        self.meter.record(cluster.name, [metric.SECONDS_SINCE_LOOK.of(age)])
        return age

    def _age_of_undescribed(self, arn: str) -> float | None:
        """Return the age; whether such a cluster is governed is not known now, but it was when it was looked at."""
        try:
            last = self.state.last_look(arn)
            return self._since(last) if last else 0.0
        except Exception as error:  # noqa: BLE001 - as above
            self.failures.report(arn.rpartition("/")[2], "read when it was last looked at", error)
            return None

    def _since(self, last: datetime) -> float:
        return max(0.0, (self.clock.now() - last).total_seconds())


def _exists(cluster: ClusterFacts) -> bool:
    return cluster.eks_arn is not None and cluster.status != "Deleting"
