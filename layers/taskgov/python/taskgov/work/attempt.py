"""One attempt of a workload: from when it begins to wait until it finishes, is evicted or is gone.

A workload that is evicted waits again: that is its next attempt. Of the job only the stem of its name is kept, its kind
and what it requests; no command, no environment, no image.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from taskgov.quantities import ResourceName, is_accelerator


class End(StrEnum):
    """How an attempt ended: stable tokens."""

    FINISHED = "finished"
    """The job ended, with success or without."""
    EVICTED = "evicted"
    """It lost its quota: preempted, deactivated, its pods were not ready in time, ..."""
    GONE = "gone"
    """The Workload was deleted before it ended: when is known to a look."""
    UNSEEN = "unseen"
    """It began and ended between two looks: only that there was one is known."""


@dataclass(frozen=True, slots=True)
class Held:
    """What an attempt holds of one instance type (what it requests, while it waits), in base units."""

    instance_type: str
    """"" where it waits and names none."""
    resource: ResourceName
    amount: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt. Moments are aware, in UTC, to the second as Kueue writes them."""

    uid: str
    """Of the Workload."""
    number: int
    """1 for the first; counts on with each eviction. Too low where evictions were never seen and Kueue counts none."""
    team: str
    owner: str | None
    """Whose it is by the job's label or annotation: a name, a hash of it, or None (`taskgov.work.owners`)."""
    stem: str
    """The job's name without what counts its runs (`taskgov.work.stems`)."""
    kind: str
    """The kind of the job; `Workload` where nothing owns it."""
    priority_class: str | None
    priority: int
    held: tuple[Held, ...]
    """Accelerators; cpu where it has none."""
    max_seconds: int | None
    """`spec.maximumExecutionTimeSeconds` of the Workload."""
    created: datetime
    """When the Workload was created."""
    queued: datetime
    """Since when this attempt waits: since its creation, or the end of the attempt before."""
    admitted: datetime | None = None
    """None: it never was, or nobody saw it."""
    ended: datetime | None = None
    """None while it waits or runs."""
    end: End | None = None
    reason: str = ""
    """Why, in Kueue's words: `Preempted/InCohortReclamation`, `Deactivated`, `Succeeded`, `Failed`, ..."""
    inferred: tuple[str, ...] = ()
    """Fields that no condition says: they are concluded, and off by one look at most."""

    @property
    def identity(self) -> tuple[str, str, int]:
        """What makes an ended attempt this one, for every writer: its Workload and its end.

        Where the end is concluded, several may have the same: then its number says which it is.
        """
        ended = "" if self.ended is None else self.ended.isoformat()
        return self.uid, ended, self.number if "ended" in self.inferred else 0

    @property
    def accelerators(self) -> int:
        """How many it holds or requests; a partition (MIG) counts as one."""
        return sum(held.amount for held in self.held if is_accelerator(held.resource))

    @property
    def instance_type(self) -> str:
        """The type of which it holds most; "" where it names none."""
        most = max(self.held, key=lambda held: (held.amount, held.instance_type), default=None)
        return most.instance_type if most else ""

    @property
    def run_seconds(self) -> int | None:
        """How long it ran; None where it has not ended, or is not known to have run."""
        if self.ended is None or self.admitted is None:
            return None
        return max(0, int((self.ended - self.admitted).total_seconds()))
