"""Take the snapshot of a run and store it, so that only a pointer travels on."""

from dataclasses import dataclass, replace
from hashlib import sha256

from taskgov.collector import collector_paused
from taskgov.contracts.steps import ClusterUnreadable, ReadSnapshotRequest, ReadSnapshotResult
from taskgov.errors import GovernanceError
from taskgov.ports import DocumentStore, StateStore
from taskgov.services.kept_look import keep_look
from taskgov.services.reading import reading, unreadable
from taskgov.services.step_inputs import renew_lock
from taskgov.services.take_snapshot import TakeSnapshot
from taskgov.snapshot.codec import snapshot_to_store
from taskgov.snapshot.identity import claims_of
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import Authorship

KEY = "snapshots/{cluster}/{run}-{generation}.json"


@dataclass(frozen=True, slots=True)
class ReadSnapshot:
    """Takes and stores the snapshot of a run. Its fields are the ports it uses."""

    take_snapshot: TakeSnapshot
    documents: DocumentStore
    state: StateStore

    @collector_paused()
    def __call__(self, request: ReadSnapshotRequest) -> ReadSnapshotResult | ClusterUnreadable:
        """Return where the snapshot is, or why the cluster cannot be read.

        Raises LockLostError when the request names a lock that is another's by now.
        """
        try:
            return self._read(request)
        except GovernanceError as error:
            return unreadable(error)

    def _read(self, request: ReadSnapshotRequest) -> ReadSnapshotResult:
        """Read the generation first, then the world: a change that comes in between makes the cluster dirty again."""
        self._renew(request)
        generation = self.state.generation(request.cluster_arn)
        with reading("read the cluster's tags"):
            claims = claims_of(self.take_snapshot.backends.tags(request.cluster_arn))
        snapshot = self.take_snapshot(request.cluster_arn, remember=True, claims=claims)
        if snapshot.policy_version is not None:
            known = self.state.authorship(snapshot.cluster.name, snapshot.policy_version)
            snapshot = replace(snapshot, authorship=known or Authorship())
        snapshot = self._owned(snapshot)
        self._renew(request)
        key = KEY.format(cluster=snapshot.cluster.name, run=request.run_id, generation=generation)
        stored = self.documents.put(key, snapshot_to_store(snapshot), "application/json")
        self.take_snapshot.identity.keep(snapshot, stored)
        # Last: a read that did not succeed completely does not count.
        keep_look(self.state, snapshot.cluster, snapshot.taken_at)
        return ReadSnapshotResult(
            snapshot=stored,
            generation=generation,
            cluster_name=snapshot.cluster.name,
            taken_at=snapshot.taken_at,
        )

    def _owned(self, snapshot: Snapshot) -> Snapshot:
        """Keep which quotas and policy are the cluster's, and return the snapshot with the stamp that says so.

        The table's stamp, which was read before, says whether these are on record: then nothing is read or written.
        The day is part of it, so that a record that was lost is back within a day; until then, the API says it.
        """
        quotas = [quota.compute_quota_id for quota in snapshot.quotas]
        config = snapshot.scheduler_config
        policy = [config.cluster_scheduler_config_id] if config else []
        known = "\n".join((snapshot.taken_at.date().isoformat(), *sorted(quotas), "", *policy))
        digest = sha256(known.encode()).hexdigest()
        if snapshot.state is not None and snapshot.state.owned == digest:
            return snapshot
        for ids in (quotas, policy):  # apart: with the policy, 1,000 quotas would take an eleventh request
            self.state.remember_resources(snapshot.cluster.arn, ids)
        if snapshot.state is None:
            return snapshot
        return replace(snapshot, state=replace(snapshot.state, owned=digest))

    def _renew(self, request: ReadSnapshotRequest) -> None:
        renew_lock(self.state, self.take_snapshot.clock, request.cluster_arn, request)
