"""Is the stored state the one that the last run left? If not, take over what exists.

`take_snapshot` calls it during a run, which holds the lock. Rules and words are in `taskgov.snapshot.identity`.
"""

from dataclasses import dataclass, replace
from hashlib import sha256

from taskgov.allocation.doubts import still_restored
from taskgov.allocation.recovered import Recovered, recovered
from taskgov.contracts.steps import Pointer
from taskgov.ports import DocumentStore, OnUnreadable, StateStore
from taskgov.snapshot.codec import snapshot_from_json
from taskgov.snapshot.identity import (
    SILENT,
    STAMP_KEY,
    BucketStamp,
    Claim,
    Loss,
    RestoredState,
    StateStamp,
    both_behind,
    loss_of,
    next_stamp,
)
from taskgov.snapshot.model import ClusterFacts, Snapshot


@dataclass(frozen=True, slots=True)
class Looked:
    """The identity as it was found, before anything else was read."""

    table: StateStamp | None
    bucket: BucketStamp | None
    loss: tuple[Loss, str] | None

    @property
    def node_memory_is_lost(self) -> bool:
        """Whether the bucket's memory of nodes is gone or too old to use."""
        return self.loss is not None and self.loss[0].is_of_documents


@dataclass(frozen=True, slots=True)
class StateIdentity:
    """Recognises a table or bucket that was restored, or belongs to another stack. Its fields are the ports it uses."""

    documents: DocumentStore
    state: StateStore

    def look(self, cluster: ClusterFacts, claims: tuple[Claim, ...], on_unreadable: OnUnreadable) -> Looked:
        """Compare table and bucket. A stamp that cannot be read is none: what stands is taken over.

        The table has its stamp by the cluster's ARN, the bucket by its name: one of an earlier cluster of this name
        is none either.
        """
        table = self.state.stamp(cluster.arn, on_unreadable)
        stored = self.documents.find(STAMP_KEY.format(cluster.name))
        try:
            bucket = None if stored is None else BucketStamp.from_json(stored)
        except ValueError:
            bucket = None
        if bucket is not None and bucket.cluster not in {None, cluster.arn}:
            bucket = None
        return Looked(table, bucket, loss_of(table, bucket.stamp if bucket else None, claims))

    def stamped(self, looked: Looked, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with its stamp, and, after a loss, with the records that were recovered.

        Records are stored before the stamp: after a read that is cut short, the next one finds the loss again.
        """
        now, bucket = snapshot.taken_at, looked.bucket
        stamp = next_stamp(looked.table, bucket.stamp if bucket else None, self.state.new_lineage(), now)
        loss = looked.loss or self._both_behind(looked, snapshot)
        if loss is None:
            restored = still_restored(looked.table.restored if looked.table else None, snapshot)
            return replace(snapshot, state=replace(stamp, restored=restored))
        restored = RestoredState(loss[0], now, loss[1], snapshot.policy_version)
        before = looked.table.restored if looked.table else None
        earlier: set[str] = set()
        if before is not None and before.loss is restored.loss is Loss.NEW_STACK:
            restored, earlier = replace(restored, at=before.at), _taken_over(snapshot)
        if restored.loss.is_of_records:
            found = self._recovered(restored.loss, bucket, snapshot)
            self._keep(snapshot, found)
            restored = restored.having_taken_over({*earlier, *found.taken_over})
            snapshot = replace(snapshot, applied=found.applied, edits=found.edits, applied_policy=found.applied_policy)
        return replace(snapshot, state=replace(stamp, restored=restored, owned=""))

    def _recovered(self, loss: Loss, bucket: BucketStamp | None, snapshot: Snapshot) -> Recovered:
        """Return what is known. What another stack writes looks like somebody's edits to one that does not govern."""
        if loss is Loss.NEW_STACK:
            return replace(recovered(replace(snapshot, edits=()), None, snapshot.taken_at), edits=snapshot.edits)
        return recovered(snapshot, self._last(bucket), snapshot.taken_at)

    def _both_behind(self, looked: Looked, snapshot: Snapshot) -> tuple[Loss, str] | None:
        table, now = looked.table, snapshot.taken_at
        if table is None or now - table.at <= SILENT:  # the last snapshot is read only where it matters
            return None
        return both_behind(table, recovered(snapshot, self._last(looked.bucket), now).taken_over, now)

    def keep(self, snapshot: Snapshot, stored: Pointer) -> None:
        """Raise the serial of both, the table's first; `stored` is where this snapshot is."""
        if snapshot.state is None:
            return
        self.state.record_stamp(snapshot.cluster.arn, snapshot.state)
        stamp = BucketStamp(snapshot.state, stored.key, stored.sha256, snapshot.cluster.arn)
        self.documents.put(STAMP_KEY.format(snapshot.cluster.name), stamp.to_json(), "application/json")

    def _last(self, bucket: BucketStamp | None) -> Snapshot | None:
        """Return the last snapshot; None if it is gone (after 30 days) or cannot be read as a snapshot any more."""
        text = self.documents.find(bucket.snapshot_key) if bucket else None
        if bucket is None or text is None or sha256(text).hexdigest() != bucket.snapshot_sha256:
            return None
        try:
            return snapshot_from_json(text)
        except ValueError:
            return None

    def _keep(self, snapshot: Snapshot, found: Recovered) -> None:
        arn, before = snapshot.cluster.arn, set(snapshot.edits)
        known = {record.compute_quota_id: record for record in snapshot.applied}
        for record in found.applied:
            if known.get(record.compute_quota_id) != record:
                self.state.record_applied(arn, record)
        for edit in found.edits:
            if edit not in before:
                self.state.record_edit(arn, edit)
        if found.applied_policy is not None and found.applied_policy != snapshot.applied_policy:
            self.state.record_policy(arn, found.applied_policy)


def _taken_over(snapshot: Snapshot) -> set[str]:
    """Return the names of quotas whose record, as it was found, is one of what stood."""
    taken_over = {record.compute_quota_id for record in snapshot.applied if record.taken_over}
    return {quota.name for quota in snapshot.quotas if quota.compute_quota_id in taken_over}
