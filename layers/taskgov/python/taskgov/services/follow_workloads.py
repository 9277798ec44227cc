"""Read Kueue's objects for each minute's measurement; of the workloads, only what changed since the last minute.

The memory is one document for each cluster, in the bucket. Without it, or where it cannot be followed from (damaged, of
another form or cluster, an hour old), all workloads are listed, as they are where the server does not keep the changes
any more. Two minutes at once do no harm: each continues from a state that was true, and publishes what is true now.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from taskgov.json_rows import Rows
from taskgov.ports import Clock, ClusterAccess, DocumentStore, Meter, WorkloadsApi, WorkloadsKnown
from taskgov.services import metric_catalogue as metric
from taskgov.snapshot.model import KueueObjects
from taskgov.snapshot.readable import readable_kueue
from taskgov.snapshot.unreadable import UnreadableObject
from taskgov.usage.attempt_facts import OwnerOf, nobody
from taskgov.usage.workload_facts import FollowedKueue, Told, WorkloadFacts
from taskgov.usage.workload_memory import WorkloadMemory, record_of, rows_of_facts

KEY: Final = "memory/{}/workloads.json.gz"
WHY_LETTERS: Final = 200
"""How many letters of the reason are in the metric's log line."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A memory as it was stored. A process that finds the same document again does not parse it."""

    body: bytes
    memory: WorkloadMemory
    rows: Rows[WorkloadFacts]


@dataclass(frozen=True, slots=True)
class FollowWorkloads:
    """Follows the workloads of a cluster from one measurement to the next. Its fields are the ports it uses."""

    kubernetes: WorkloadsApi
    documents: DocumentStore
    meter: Meter
    clock: Clock
    owner_of: OwnerOf = nobody
    """How the owner of a Workload is kept (`taskgov.work.owners`)."""
    last: dict[str, _Written] = field(default_factory=dict, repr=False, compare=False)
    """The memory that this process wrote last, by its key: of one cluster."""

    def __call__(self, cluster_name: str, access: ClusterAccess) -> tuple[KueueObjects, tuple[UnreadableObject, ...]]:
        """Return Kueue's objects that can be read, with what is known of the workloads, and those that cannot be read.

        Raises ThrottledError, UpstreamError, NotFoundError.
        """
        key, now = KEY.format(cluster_name), self.clock.now()
        stored, written = self.documents.find(key), self.last.pop(key, None)
        rows = written.rows if written else rows_of_facts()
        before, damage = (written.memory, "") if written and written.body == stored else stored_memory(stored)
        if before is not None and not before.is_of(access.eks_cluster_arn, now):
            before = None
        known = WorkloadsKnown(before.api_version, before.resource_version) if before else None
        objects, read = self.kubernetes.kueue_since(access, known, partial(record_of, owner_of=self.owner_of))
        if read.is_whole or before is None:
            before = WorkloadMemory(access.eks_cluster_arn, read.api_version, "", now)
        after = before.after(read.resource_version, read.changed)
        if read.resource_version:
            body = after.to_bytes(rows)
            self.documents.put(key, body, "application/gzip")
            self.last.clear()
            self.last[key] = _Written(body, after, rows)
        if why := damage or read.relisted:
            self.meter.record(cluster_name, [metric.WORKLOADS_RELISTED.of(1, why=why[:WHY_LETTERS])])
        elif not read.is_whole:
            self.meter.record(cluster_name, [metric.WORKLOADS_RELISTED.of(0, objectsRead=read.objects_read)])
        kueue, odd = readable_kueue(objects)
        fields = {name: getattr(kueue, name) for name in KueueObjects.__dataclass_fields__}
        told = tuple(Told(record, is_last) for record, is_last in read.told if isinstance(record, WorkloadFacts))
        return FollowedKueue(**fields, facts=after.facts(), told=told), (*odd, *after.unreadable())


def stored_memory(stored: bytes | None) -> tuple[WorkloadMemory | None, str]:
    """Return the memory, or nothing and why it cannot be read: then all workloads are listed."""
    try:
        return None if stored is None else WorkloadMemory.from_bytes(stored), ""
    except ValueError as error:
        return None, f"the memory cannot be read: {error}"
