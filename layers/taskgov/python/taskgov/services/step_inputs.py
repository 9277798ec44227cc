"""What the functions of a run do with what their request names: renew the run's lock, read the plan."""

from collections.abc import Callable

from taskgov.allocation.codec import plan_from_json
from taskgov.allocation.plan import Plan
from taskgov.contracts.steps import LockedRequest, Pointer
from taskgov.errors import InvalidRequestError
from taskgov.ports import Clock, DocumentStore, StateStore


def renew_lock(state: StateStore, clock: Clock, cluster_arn: str, request: LockedRequest) -> None:
    """Extend the lease that the request names; without an owner nothing is locked. Raises LockLostError."""
    if request.lock_owner is not None and request.fencing_token is not None:
        state.hold_lock(cluster_arn, request.lock_owner, request.fencing_token, clock.now())


def stored_plan(documents: DocumentStore, pointer: Pointer) -> Plan:
    """Return the plan that a pointer names.

    Raises InvalidRequestError when it is not a plan that this version can read; NotFoundError, ThrottledError
    and UpstreamError (also for another digest) as the bucket does.
    """
    body = documents.get(pointer)
    try:
        return plan_from_json(body)
    except ValueError as error:  # without pydantic's sentence, which quotes the plan
        raise InvalidRequestError(f"{pointer.key} is not a plan that this version can read") from error


ReadPlan = Callable[[DocumentStore, Pointer], Plan]
"""Reads a plan as `stored_plan` does."""


class LastPlan:
    """Reads plans as `stored_plan` does, and keeps the last one for the calls to come.

    A pointer has the digest of what it names, so that the same pointer is the same plan. A function that writes a
    thousand changes in forty calls reads and parses their plan once, as long as Lambda keeps its process.
    """

    def __init__(self) -> None:
        self._kept: tuple[Pointer, Plan] | None = None

    def __call__(self, documents: DocumentStore, pointer: Pointer) -> Plan:
        """Return the plan that a pointer names; raises as `stored_plan` does."""
        if self._kept is None or self._kept[0] != pointer:
            self._kept = None  # two large plans do not have to fit into memory
            self._kept = pointer, stored_plan(documents, pointer)
        return self._kept[1]
