"""Renew the lock of the run that a function works for."""

from taskgov.contracts.steps import LockedRequest
from taskgov.ports import Clock, StateStore


def renew_lock(state: StateStore, clock: Clock, cluster_arn: str, request: LockedRequest) -> None:
    """Extend the lease that the request names; without an owner nothing is locked. Raises LockLostError."""
    if request.lock_owner is not None and request.fencing_token is not None:
        state.hold_lock(cluster_arn, request.lock_owner, request.fencing_token, clock.now())
