"""The table: generations, locks, what was applied, who edited, records of runs."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol

from taskgov.contracts.steps import Cause, Pointer
from taskgov.ports.runs import Dirty, Lock, RunRecord
from taskgov.snapshot.identity import StateStamp
from taskgov.snapshot.records import AppliedPolicy, AppliedQuota, Authorship, QuotaEdit, RefusedWrite
from taskgov.snapshot.unreadable import UnreadableItem

OnUnreadable = Callable[[UnreadableItem], None]
"""Takes note of an item that cannot be read."""


class StateStore(Protocol):
    """The table: generations, locks, what was applied, who edited, records. Raises ThrottledError, UpstreamError."""

    def mark_dirty(self, cluster_arn: str, cluster_name: str, cause: Cause, now: datetime) -> Dirty:
        """Add one to the cluster's generation and return whether a run holds the lock."""
        ...

    def generation(self, cluster_arn: str) -> int:
        """Return the generation, 0 for a cluster that was never marked (strongly consistent)."""
        ...

    def hold_lock(
        self, cluster_arn: str, owner: str, fencing_token: int, now: datetime, plan: Pointer | None = None
    ) -> None:
        """Extend the lease to LOCK_SECONDS from `now` if `owner` still holds the lock with this token.

        `plan` is kept beside the lock: the record of a run that is broken off points to it.

        One conditional write checks and extends; a lease that was ended is not extended. Raises LockLostError.
        """
        ...

    def lock_of(self, cluster_arn: str) -> Lock:
        """Return who holds the cluster's lock, strongly consistent."""
        ...

    def end_lease(self, cluster_arn: str, lock: Lock) -> bool:
        """Let the lease of this owner and token run out now; False when the lock is another's by now.

        The owner stays on the item until a run takes the lock over, so that ending it again finds the same.
        """
        ...

    def withdraw_request(self, cluster_arn: str, asked_by: str) -> bool:
        """Let the request for approval of this execution end now; False when another one requests approval by now."""
        ...

    def last_run(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[str, datetime] | None:
        """Return the id and the end of the run whose record is the newest, or None."""
        ...

    def stamp(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> StateStamp | None:
        """Return the identity of the cluster's records, or None before a run first reads the cluster."""
        ...

    def record_stamp(self, cluster_arn: str, stamp: StateStamp) -> None:
        """Keep the identity of the cluster's records; one of the same lineage that arrives late changes nothing."""
        ...

    def new_lineage(self) -> str:
        """Return a lineage that no other state has."""
        ...

    def stop_switch(self) -> bool | None:
        """Return whether the stop switch is on; None when it cannot be read."""
        ...

    def authorship(self, cluster_name: str, version: str) -> Authorship | None:
        """Return who put this version of the policy document into force, and who accepted it; None: not known."""
        ...

    def cluster_of(self, resource_id: str) -> str | None:
        """Return the ARN of the cluster that a quota or scheduler config belongs to, if it is known."""
        ...

    def remember_resources(self, cluster_arn: str, resource_ids: Iterable[str]) -> None:
        """Keep which cluster these quotas and scheduler configs belong to."""
        ...

    def applied_quotas(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[AppliedQuota, ...]:
        """Return what was last applied to each quota.

        Here and below, an item that cannot be read is handed to `on_unreadable` and left out; without that it raises
        UpstreamError, which names the item.
        """
        ...

    def applied_quota(self, cluster_arn: str, quota_id: str) -> AppliedQuota | None:
        """Return what was last applied to one quota, or None when nothing was."""
        ...

    def record_applied(self, cluster_arn: str, applied: AppliedQuota) -> None:
        """Keep what was applied to a quota."""
        ...

    def applied_policy(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> AppliedPolicy | None:
        """Return what was last written to the cluster policy, or None when nothing was."""
        ...

    def record_policy(self, cluster_arn: str, applied: AppliedPolicy) -> None:
        """Keep what was written to the cluster policy."""
        ...

    def edits(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[QuotaEdit, ...]:
        """Return who last changed each quota by hand."""
        ...

    def record_edit(self, cluster_arn: str, edit: QuotaEdit) -> None:
        """Keep who changed a quota by hand."""
        ...

    def refusals(self, cluster_arn: str, on_unreadable: OnUnreadable | None = None) -> tuple[RefusedWrite, ...]:
        """Return the writes that were refused, by subject."""
        ...

    def record_refusal(self, cluster_arn: str, refused: RefusedWrite) -> None:
        """Keep a write that was refused, in place of an earlier one of its subject."""
        ...

    def forget_refusal(self, cluster_arn: str, subject: str) -> None:
        """Let the writes of a subject be tried again; nothing happens when none was refused."""
        ...

    def last_look(self, cluster: str) -> datetime | None:
        """Return when the cluster was last read without an error, or first waited for that; None if never.

        It is given by its ARN; an EKS cluster also by the name of its document.
        """
        ...

    def record_look(self, cluster: str, at: datetime) -> None:
        """Keep when the cluster was read without an error, or since when that is waited for."""
        ...

    def record_run(self, record: RunRecord) -> None:
        """Keep the record of a run."""
        ...

    def count_once(self, cluster_arn: str, identity: str, now: datetime, *, by: str | None = None) -> bool:
        """Return True the first time an identity is seen, False ever after (for as long as records are kept).

        The first caller (`by`) gets True again: an answer may be lost, or its function with it.
        """
        ...

    def confirm_once(self, cluster_arn: str, identity: str, now: datetime) -> None:
        """Keep that what was counted is done: from now on `count_once` is False to who asked first, too."""
        ...

    def reopen_once(self, cluster_arn: str, identity: str, now: datetime) -> None:
        """Keep that what was counted was not done: `count_once` is True to the next caller."""
        ...

    def was_counted(self, cluster_arn: str, identity: str) -> bool:
        """Return whether an identity was counted (strongly consistent)."""
        ...

    def all_counted(self, cluster_arn: str, beginning: str) -> frozenset[str]:
        """Return the identities that were counted and begin so, of the last thirty days (strongly consistent)."""
        ...

    def take_turn(self, cluster_arn: str, now: datetime) -> str | None:
        """Return a token when no other process notifies teams of this cluster, None while one does.

        A turn that is not ended (its function died) ends by itself after TURN_SECONDS.
        """
        ...

    def end_turn(self, cluster_arn: str, turn: str) -> None:
        """Release the turn; nothing happens when another process has it by now."""
        ...

    def forget_once(self, cluster_arn: str, identity: str) -> None:
        """Forget that an identity was counted, because the work it was counted for was not done."""
        ...
