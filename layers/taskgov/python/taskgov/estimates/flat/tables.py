"""What futures of one tree have in common, as lists of numbers (or arrays): it is read, never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Terms(NamedTuple):
    """The queues of a tree, by place in Kueue's order of names, and its rules."""

    nominal: Sequence[int]
    most: Sequence[int]
    """Quota and borrow limit together."""
    weight: Sequence[float]
    door: Sequence[int]
    """Place of the queue's namespace in the order of job keys."""
    within: Sequence[int]
    """1 where a job may preempt jobs of lower priority of its own queue."""
    first_kind: Sequence[int]
    """Place of the first kind of each queue; one more at the end."""
    kind_queue: Sequence[int]
    kind_amount: Sequence[int]
    kind_priority: Sequence[int]
    kind_never: Sequence[int]
    """1 for what the queue can never give."""
    capacity: int
    lendable: int
    batch: int
    """Microseconds."""
    alone: bool
    final: bool
    """Whether the first strategy compares with the share that the other queue has afterwards."""
    second: bool
    """Whether there is a second strategy."""


class Here(NamedTuple):
    """The jobs that are there, in Kueue's order of a queue (priority, age, UID)."""

    kind: Sequence[int]
    prospect: Sequence[int]
    created: Sequence[int]
    place: Sequence[int]
    """Place by UID."""
    since: Sequence[int]
    """When it was admitted, in microseconds; -1 for one that waits."""
    watched: Sequence[int]


class Lasting(NamedTuple):
    """Laws of run times, one after the other, and prospects that mix them."""

    first: Sequence[int]
    """Where each law begins; one more at the end."""
    times: Sequence[float]
    gone: Sequence[float]
    job_part: Sequence[float]
    """What one job is of each step."""
    last: Sequence[float]
    """The longest time that is known of each law."""
    mix: Sequence[int]
    """Where the laws of each prospect begin; one more at the end."""
    weight: Sequence[float]
    """Sums of weights that end at 1."""
    law: Sequence[int]
    age: Sequence[float]
    limit: Sequence[float]
    fixed: Sequence[float]
    """The run time, where it is known; else -1."""
    team: Sequence[int]
    teams: int
    shared: float
    """What all jobs of a team have in common, and what each has of its own, on the normal scale."""
    own: float


class Came(NamedTuple):
    """Arrivals of the past, by moment, and which blocks of it may come again."""

    at: Sequence[float]
    request: Sequence[int]
    """What came each time: a place in `kind` and `prospect`."""
    kind: Sequence[int]
    """-1 for what cannot come again."""
    prospect: Sequence[int]
    first: Sequence[int]
    """Where the sources of each block of a future begin; one more at the end."""
    source: Sequence[float]
    block: float
    spread: float


class Play(NamedTuple):
    """How far a future goes: moments in microseconds."""

    now: int
    until: int
