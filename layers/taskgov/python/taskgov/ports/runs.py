"""A run of `reconcile`: its execution, its lock, its record."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from taskgov.contracts.steps import Cause, Pointer

ENDED: Final = frozenset({"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"})

LOOKS_OLD_SECONDS: Final = 120
"""A living run renews its lock more often than that: the execution of one that has not is described."""

LOCK_SECONDS: Final = 300
"""The lease of a cluster's lock. It is renewed before each write and in each wait, so a dead run blocks no longer."""

TURN_SECONDS: Final = 180
"""Longer than the function that sends notices may run: a turn that has timed out is free."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of a cluster and its request for approval, as the table has them; None where there is nothing."""

    owner: str | None = None
    """The execution that holds it, or who wrote by hand."""
    fencing_token: int = 0
    expires: int | None = None
    """Epoch seconds; runs may take it after that. A lock without an end counts as run out."""
    asked_by: str | None = None
    """The execution that waits for an approval; it holds no lock meanwhile."""
    asked_until: int | None = None
    plan: Pointer | None = None
    """The plan that its holder began to write last."""

    def is_held(self, now: datetime) -> bool:
        """Return whether the lease still runs."""
        return self.owner is not None and self.expires is not None and self.expires > now.timestamp()

    def looks_old(self, now: datetime) -> bool:
        """Return whether its owner has not renewed it for longer than a living one does, or never said until when."""
        if self.owner is None:
            return False
        return self.expires is None or self.expires - LOCK_SECONDS + LOOKS_OLD_SECONDS <= now.timestamp()


@dataclass(frozen=True, slots=True)
class Dirty:
    """The state of a cluster after a hint was marked."""

    generation: int
    locked: bool
    lock: Lock = Lock()


@dataclass(frozen=True, slots=True)
class Execution:
    """What Step Functions says of an execution: `status` is RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED, ..."""

    arn: str
    status: str
    started_at: datetime

    @property
    def name(self) -> str:
        """The name, which is the last part of the ARN."""
        return self.arn.rpartition(":")[2]

    @property
    def is_over(self) -> bool:
        """Whether it has ended; one that was redriven runs again."""
        return self.status in ENDED

    @property
    def was_broken_off(self) -> bool:
        """Whether it was ended from outside: stopped, or by a time limit. One that failed came to its own end."""
        return self.status in {"ABORTED", "TIMED_OUT"}


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a run leaves behind."""

    cluster_arn: str
    run_id: str
    started_at: datetime
    ended_at: datetime
    outcome: str
    cause: Cause | None
    plan: Pointer | None
    plan_id: str | None
    applied: int
    error: str | None
    snapshot: Pointer | None = None
    """What the run saw; absent when it failed before it had read the cluster, or was requested by a person."""
    written: tuple[str, ...] = ()
    """The first names of what it wrote (`Change.subject`), by all of its plans; `applied` counts all."""


class Workflow(Protocol):
    """Starts `reconcile`."""

    def start(self, cluster_arn: str, cause: Cause, name: str) -> bool:
        """Start a run; False when one of this name exists already. Raises ThrottledError, UpstreamError."""
        ...

    def execution(self, arn: str) -> Execution | None:
        """Return what is known of an execution of `reconcile`; None when there is none of this ARN, or no more."""
        ...
