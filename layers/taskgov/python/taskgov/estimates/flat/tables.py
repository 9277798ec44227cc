"""The data that all futures of one tree share, as read-only lists of numbers (or arrays)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Terms:
    """The queues of a tree, in Kueue's order of names, and its rules."""

    nominal: Sequence[int]
    most: Sequence[int]
    """Quota and borrow limit together."""
    weight: Sequence[float]
    door: Sequence[int]
    """Rank of the queue's namespace in the order of job keys."""
    within: Sequence[int]
    """1 if a job may preempt jobs of lower priority in its own queue."""
    first_kind: Sequence[int]
    """Index of the first kind of each queue; one more at the end."""
    kind_queue: Sequence[int]
    kind_amount: Sequence[int]
    kind_priority: Sequence[int]
    kind_never: Sequence[int]
    """1 if the queue can never admit it."""
    capacity: int
    lendable: int
    batch: int
    """Microseconds."""
    alone: bool
    final: bool
    """Whether the first strategy compares with the other queue's share after the preemption."""
    second: bool
    """Whether there is a second strategy."""


@dataclass(frozen=True, slots=True)
class Here:
    """The present jobs, in Kueue's queue order (priority, age, UID)."""

    kind: Sequence[int]
    prospect: Sequence[int]
    created: Sequence[int]
    place: Sequence[int]
    """Rank by UID."""
    since: Sequence[int]
    """When it was admitted, in microseconds; -1 if it waits."""
    watched: Sequence[int]
    batch: Sequence[int]


@dataclass(frozen=True, slots=True)
class Lasting:
    """The laws of run times, concatenated, and the prospects."""

    times: Sequence[float]
    """`POINTS` seconds of each law."""
    law: Sequence[int]
    """The law of each prospect."""
    age: Sequence[float]
    limit: Sequence[float]
    fixed: Sequence[float]
    """The run time if it is known; otherwise -1."""
    below: Sequence[float]
    """The probability of a run time up to the age."""
    group: Sequence[int]
    groups: int
    """Number of groups, each with a number that its run times share."""
    shared: float
    """The shared and the individual part of run times within a group, on the normal scale."""
    own: float
    within: float
    """What remains of the shared number at a start of the same batch, and what is added to it; of another batch."""
    within_adds: float
    between: float
    between_adds: float


@dataclass(frozen=True, slots=True)
class Came:
    """Past arrivals, by time, and the blocks that may be copied."""

    at: Sequence[float]
    request: Sequence[int]
    """The request of each arrival: an index of `kind` and `prospect`."""
    batch: Sequence[int]
    kind: Sequence[int]
    """-1 if it cannot arrive again."""
    prospect: Sequence[int]
    first: Sequence[int]
    """Where the sources of each block of a future begin; one more at the end."""
    source: Sequence[float]
    block: float
    spread: float


@dataclass(frozen=True, slots=True)
class Play:
    """Length of a future, in microseconds."""

    now: int
    until: int
