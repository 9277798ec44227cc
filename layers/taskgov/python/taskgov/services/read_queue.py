"""Read of a cluster what decides who starts next: Kueue's objects, its configuration and the cluster policy."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskgov.errors import InvalidRequestError
from taskgov.ports import Clock, ClusterAccess, ClusterBackend, DocumentStore, KubernetesApi
from taskgov.services.nothing_to_read import describing, reading_of
from taskgov.services.reading import reading
from taskgov.services.take_snapshot import cluster_facts
from taskgov.snapshot.model import ClusterFacts, Snapshot
from taskgov.snapshot.readable import readable_kueue

if TYPE_CHECKING:
    from taskgov.snapshot.unreadable import UnreadableObject


@dataclass(frozen=True, slots=True)
class ReadQueue:
    """Reads the queue of one cluster. Its fields are the ports it uses."""

    backends: ClusterBackend
    kubernetes: KubernetesApi
    clock: Clock
    documents: DocumentStore

    def describe(self, cluster: str) -> ClusterFacts:
        """Return what a cluster (ARN, or the name of a document) is. Raises NothingToReadError, GovernanceError."""
        with describing(cluster):
            return cluster_facts(self.backends.describe_cluster(cluster))

    def __call__(self, facts: ClusterFacts) -> Snapshot:
        """Return a snapshot without nodes, quotas and records. Raises InvalidRequestError without EKS, GovernanceError.

        What cannot be read of it is left out, and named.
        """
        odd: list[UnreadableObject] = []
        if facts.eks_arn is None:
            raise InvalidRequestError(f"cluster {facts.name} is not orchestrated by EKS: it has no queue of Kueue")
        access, taken_at = ClusterAccess(facts.eks_arn), self.clock.now()
        with reading_of(facts, "list Kueue's objects", lambda: self.documents.policy(facts.name) is not None):
            kueue, unread = readable_kueue(self.kubernetes.kueue_objects(access))
        with reading("get the configuration of Kueue's manager", throttled=True):
            manager = self.kubernetes.manager_settings(access)
        with reading("get the cluster policy"):
            policy = self.backends.scheduler_config(facts.arn, odd.append)
        return Snapshot(
            cluster=facts,
            taken_at=taken_at,
            kueue=kueue,
            manager=manager,
            scheduler_config=policy,
            unreadable_objects=(*unread, *odd),
        )
