"""What comes of playing a sequence: what was compared, what differed, and what is compared of a workload."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.cluster.differential.sequence import Apply, Submit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.scheduling.results import CycleResult
    from tests.cluster.differential.sequence import Sequence, Step
    from tests.cluster.kube import Object


@dataclass(frozen=True, slots=True)
class Difference:
    """A step after which Kueue and the model do not say the same of a workload."""

    seed: int
    step: int
    what: str
    workload: str
    kueue: object
    model: object
    keys: tuple[str, str, str | None]
    """By what it is ordered among equals: UID, creation, reservation."""

    def __str__(self) -> str:
        told = f"seed {self.seed}, step {self.step} ({self.what}), {self.workload}, {self.keys}"
        return f"{told}\n  kueue: {self.kueue}\n  model: {self.model}"


@dataclass(slots=True)
class Played:
    """What came of playing a sequence."""

    sequence: Sequence
    differences: list[Difference] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    """What Kueue's log says of the step that differs."""
    compared: int = 0
    going_round: int = 0
    """Steps after which Kueue goes round among several states without an end."""
    equals: int = 0
    """Steps in which workloads of different queues were equal in everything, and Kueue took another one first."""
    started_doors: int = 0
    """Steps in which a door was started, and a workload behind it was looked at once more."""
    late_ends: int = 0
    """Steps in which a slice that was replaced was still in use when Kueue decided about others."""
    late_returns: int = 0
    """Steps in which quota was free for one cycle before the workload that gave it back was in line."""
    hurried: int = 0
    """Steps in which the second before reconsideration was over early, and Kueue decided as it does then."""
    words_of_an_earlier_look: int = 0
    """Steps after which a status has the words of an attempt that was not the last one."""
    steps: list[tuple[Step, tuple[CycleResult, ...]]] = field(default_factory=list)
    over_quota: bool = False
    """Whether a queue was seen holding more than a changed quota gives it."""
    reached: set[str] = field(default_factory=set)
    """What was seen that cycles do not tell (`coverage`)."""
    ties: bool = False
    """Whether several workloads were seen whose quota was reserved in the same second."""


def state_of(workload: Mapping[str, Any]) -> Object:
    """Read all that is said of a workload, but not when: what it holds, and every condition."""
    status = workload.get("status") or {}
    admission = status.get("admission") or {}
    return {
        "queue": admission.get("clusterQueue"),
        "holds": {
            one["name"]: (one.get("count"), one.get("flavors") or {}, one.get("resourceUsage") or {})
            for one in admission.get("podSetAssignments") or ()
        },
        "conditions": {
            one["type"]: (one["status"], one["reason"], one["message"]) for one in status.get("conditions") or ()
        },
    }


def told(step: Step) -> str:
    """Say in few words what a step does."""
    match step:
        case Submit(workload):
            return f"submit {workload['metadata']['namespace']}/{workload['metadata']['name']}"
        case Apply(manifest):
            return f"change {manifest['kind']} {manifest['metadata']['name']}"
        case _:
            return repr(step)
