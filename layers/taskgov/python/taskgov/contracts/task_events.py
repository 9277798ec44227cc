"""The events about tasks and teams on the bus: a preemption, a wait that is too long, starvation. One event for each.

`taskgov.services.happenings` makes them; `docs/events-out.md` and `events/schemas/` are made from what stands here.
Members are only ever added.
"""

from datetime import datetime
from typing import Final

from pydantic import Field

from taskgov.contracts.steps import StepModel


class _OfTeam(StepModel):
    id: str = Field(description="The same however often the event is delivered.")
    cluster_arn: str
    cluster_name: str
    team: str


class _OfTask(_OfTeam):
    namespace: str
    task: str = Field(description="The name of the job, which `taskgov explain` takes; of the Workload without.")
    kind: str = Field(description="The kind of the job; `Workload` without one.")
    workload: str = Field(description="The name of its Workload.")
    priority_class: str | None = None
    priority: int
    asks: dict[str, str] = Field(
        description="Resource to quantity, over all pods, as Kubernetes writes it; at most 20."
    )


class TaskPreempted(_OfTask):
    """The `detail` of `Task Preempted`."""

    at: datetime
    reason: str = Field(description="Kueue's reason: `InClusterQueue`, `InCohortReclamation`, ...")
    preempting_team: str | None = Field(default=None, description="Absent where Kueue does not say.")
    preempting_priority_class: str | None = None
    ran_seconds: int | None = Field(default=None, description="Since its admission; absent once that is unknown.")


class TaskWaiting(_OfTask):
    """The `detail` of `Task Waiting Too Long`."""

    since: datetime = Field(description="When it was created, or last evicted.")
    limit_minutes: int = Field(description="`notices.pendingMinutes` of the policy document.")
    evicted: bool = Field(description="Whether it had run before.")


class TeamStarved(_OfTeam):
    """The `detail` of `Team Starved`: it waits, does not use its guarantee, and others borrow. In accelerators."""

    instance_type: str
    resource: str
    guaranteed: int
    used: int = Field(description="What it uses of its guarantee.")
    waiting: int = Field(description="What its waiting work requests.")
    borrowed: int = Field(description="What others borrow.")
    reclaimable: int
    since: datetime = Field(description="When a measurement first found it; measurements are a minute apart.")


TaskEvent = TaskPreempted | TaskWaiting | TeamStarved
DETAIL_TYPES: Final[dict[str, type[TaskEvent]]] = {
    "Task Preempted": TaskPreempted,
    "Task Waiting Too Long": TaskWaiting,
    "Team Starved": TeamStarved,
}
"""Detail type of the event -> what its `detail` is."""
SOURCE: Final = "taskgov"
"""Source of every event that the automation sends, of runs too."""
DETAIL_TYPE_OF: Final = {model: name for name, model in DETAIL_TYPES.items()}
