"""Read of a cluster what decides who starts next: Kueue's objects, its configuration and the cluster policy."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from taskgov.errors import InvalidRequestError
from taskgov.estimates.all_waiting import MOST_PRESENT
from taskgov.estimates.scenes import is_present
from taskgov.ports import (
    Clock,
    ClusterAccess,
    ClusterBackend,
    DocumentStore,
    KubernetesApi,
    WorkloadsApi,
    WorkloadsKnown,
)
from taskgov.services.follow_workloads import KEY, stored_memory
from taskgov.services.nothing_to_read import describing, reading_of
from taskgov.services.reading import reading
from taskgov.services.take_snapshot import ReadableKueue, cluster_facts
from taskgov.snapshot.model import ClusterFacts, Snapshot
from taskgov.snapshot.readable import readable_kueue
from taskgov.usage.attempt_facts import nobody
from taskgov.usage.workload_facts import with_facts_alone
from taskgov.usage.workload_memory import WorkloadMemory, record_of

if TYPE_CHECKING:
    from taskgov.snapshot.unreadable import UnreadableObject


@dataclass(frozen=True, slots=True)
class ReadQueue:
    """Reads the queue of one cluster. Its fields are the ports it uses."""

    backends: ClusterBackend
    kubernetes: KubernetesApi
    workloads: WorkloadsApi
    clock: Clock
    documents: DocumentStore

    def describe(self, cluster: str) -> ClusterFacts:
        """Return what a cluster (ARN, or the name of a document) is. Raises NothingToReadError, GovernanceError."""
        with describing(cluster):
            return cluster_facts(self.backends.describe_cluster(cluster))

    def __call__(self, facts: ClusterFacts) -> Snapshot:
        """Return a snapshot without nodes, quotas and records. Raises InvalidRequestError without EKS, GovernanceError.

        What cannot be read of it is left out, and named. If more than `MOST_PRESENT` workloads wait or run, the
        snapshot has facts about them instead (`FollowedKueue`): they are not listed.
        """
        odd: list[UnreadableObject] = []
        if facts.eks_arn is None:
            raise InvalidRequestError(f"cluster {facts.name} is not orchestrated by EKS: it has no queue of Kueue")
        access, taken_at = ClusterAccess(facts.eks_arn), self.clock.now()
        with reading_of(facts, "list Kueue's objects", lambda: self.documents.policy(facts.name) is not None):
            kueue, unread = self._crowd(facts.name, access) or readable_kueue(self.kubernetes.kueue_objects(access))
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

    def _crowd(self, cluster_name: str, access: ClusterAccess) -> ReadableKueue | None:
        """Return Kueue's objects with facts about too many workloads; None if they are not known to be too many.

        The facts are those of the last measurement, with what changed since then. They are not written back, because
        the next measurement records these changes as work.
        """
        known, _ = stored_memory(self.documents.find(KEY.format(cluster_name)))
        if known is None or not known.is_of(access.eks_cluster_arn, self.clock.now()) or not _is_crowd(known):
            return None
        since = WorkloadsKnown(known.api_version, known.resource_version)
        objects, read = self.workloads.kueue_since(access, since, partial(record_of, owner_of=nobody))
        now = (replace(known, records={}) if read.is_whole else known).after(read.resource_version, read.changed)
        if not _is_crowd(now):
            return None
        kueue, odd = readable_kueue(objects)
        return with_facts_alone(kueue, now.facts()), (*odd, *now.unreadable())


def _is_crowd(memory: WorkloadMemory) -> bool:
    return sum(map(is_present, memory.facts())) > MOST_PRESENT
