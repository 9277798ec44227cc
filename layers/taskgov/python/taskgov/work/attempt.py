"""One attempt of a workload: from the time it begins to wait until it finishes, is evicted or is deleted.

After an eviction the workload waits again: that is its next attempt. Of the job, only the stem of its name, its kind
and its requests are recorded; no command, environment or image.

A *measurement* is what `publish_usage` does each minute (`docs/work.md`).
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from taskgov.quantities import ResourceName, is_accelerator


class End(StrEnum):
    """How an attempt ended: stable tokens."""

    FINISHED = "finished"
    """The job ended, successfully or not."""
    EVICTED = "evicted"
    """It lost its quota: it was preempted or deactivated, its pods were not ready in time, ..."""
    GONE = "gone"
    """The Workload was deleted before it ended. The time is that of the first measurement without it."""
    UNSEEN = "unseen"
    """It began and ended between two measurements. Nothing else about it is known."""


@dataclass(frozen=True, slots=True)
class Held:
    """What an attempt holds of one instance type (while it waits: what it requests), in base units."""

    instance_type: str
    """Empty if it waits and names none."""
    resource: ResourceName
    amount: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt. Times are timezone-aware, in UTC, with whole seconds as Kueue writes them."""

    uid: str
    """UID of the Workload."""
    number: int
    """1 for the first, plus 1 for each eviction. Too low if evictions were missed and Kueue does not count them."""
    team: str
    owner: str | None
    """The owner named by the job's label or annotation: a name, its hash, or None (`taskgov.work.owners`)."""
    stem: str
    """The job's name without run numbers and the like (`taskgov.work.stems`)."""
    kind: str
    """The kind of the job; `Workload` if the Workload has no owner."""
    priority_class: str | None
    priority: int
    held: tuple[Held, ...]
    """Accelerators; CPU if it has none."""
    max_seconds: int | None
    """`spec.maximumExecutionTimeSeconds` of the Workload."""
    created: datetime
    """When the Workload was created."""
    queued: datetime
    """When this attempt began to wait: at the creation, or at the end of the previous attempt."""
    admitted: datetime | None = None
    """None if it was never admitted, or the admission was not seen."""
    ended: datetime | None = None
    """None while it waits or runs."""
    end: End | None = None
    reason: str = ""
    """Kueue's reason of the end: `Preempted/InCohortReclamation`, `Deactivated`, `Succeeded`, `Failed`, ..."""
    inferred: tuple[str, ...] = ()
    """Fields that no condition states. They are inferred, and off by at most one measurement."""

    @property
    def identity(self) -> tuple[str, str, int]:
        """The identity of an ended attempt, the same for every writer: its Workload and its end.

        Several attempts may share an inferred end. The number then distinguishes them.
        """
        ended = "" if self.ended is None else self.ended.isoformat()
        return self.uid, ended, self.number if "ended" in self.inferred else 0

    @property
    def accelerators(self) -> int:
        """Number of accelerators that it holds or requests. A partition (MIG) counts as one."""
        return sum(held.amount for held in self.held if is_accelerator(held.resource))

    @property
    def instance_type(self) -> str:
        """The type of which it holds most; empty if it names none."""
        most = max(self.held, key=lambda held: (held.amount, held.instance_type), default=None)
        return most.instance_type if most else ""

    @property
    def run_seconds(self) -> int | None:
        """How long it ran; None if it has not ended, or no admission is known."""
        if self.ended is None or self.admitted is None:
            return None
        return max(0, int((self.ended - self.admitted).total_seconds()))
