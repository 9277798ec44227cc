"""What did a simulation bring about? Values that `simulation` makes and others read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.unmodelled import NotModelled


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a workload: `admitted`, `preempted`, `evicted` or `finished`."""

    at: Instant
    cycle: int
    kind: str
    workload: str
    uid: str


@dataclass(frozen=True, slots=True)
class PreemptionLoop:
    """Proof that the rules as configured move these workloads in and out forever: a state came back, nothing new."""

    at: Instant
    workloads: tuple[str, ...]


@dataclass(slots=True)
class Timeline:
    """What a simulation brought about.

    `end` is the moment of the last thing that happened. `loop` is set when the simulation was stopped because nothing
    new could ever happen again; `unfinished` are workloads that arrived and never finished.
    """

    happenings: list[Happening] = field(default_factory=list)
    cycles: int = 0
    idle_cycles: int = 0
    instants: int = 0
    end: Instant = 0
    loop: PreemptionLoop | None = None
    unfinished: tuple[str, ...] = ()
    not_modelled: tuple[NotModelled, ...] = ()
