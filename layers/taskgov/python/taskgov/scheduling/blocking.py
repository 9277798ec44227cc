"""Whose pods does admission wait for? With `blockAdmission` one workload starts after the other.

Kueue's scheduler stands still in the middle of a cycle until the pods of everybody who is admitted are ready, and goes
on then as it had decided before (`waitForPodsReadyIfNeeded` in `pkg/scheduler/scheduler.go`, `WaitForPodsReady` in
`pkg/cache/scheduler/cache.go`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from taskgov.scheduling.candidates import Victim
from taskgov.scheduling.state import PODS_READY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov.scheduling.nomination import Entry
    from taskgov.scheduling.objects import FlavorResource
    from taskgov.scheduling.state import QueueState, Record


@dataclass(frozen=True, slots=True)
class HeldCycle:
    """What is left of a cycle that is held up.

    Parameters
    ----------
    entries
        The one that would be admitted, then those that were not considered yet.
    victims
        Who was preempted before.
    holds
        What is kept for whom until the cycle ends, by cluster queue.

    """

    number: int
    entries: tuple[Entry, ...]
    victims: tuple[Victim, ...]
    holds: tuple[tuple[str, Mapping[FlavorResource, int]], ...]

    def copy(self, twins: Mapping[Record, Record], queues: Mapping[str, QueueState]) -> HeldCycle:
        """Return the same with the given copies of its workloads and queues."""
        entries = (
            replace(
                entry,
                record=twins[entry.record],
                queue=queues[entry.queue.spec.name],
                victims=_copies(entry.victims, twins),
            )
            for entry in self.entries
            if entry.record in twins and entry.queue.spec.name in queues
        )
        return replace(self, entries=tuple(entries), victims=tuple(_copies(self.victims, twins)))

    def still_there(self) -> list[Entry]:
        """Return the entries that nothing has happened to meanwhile; who was changed has its place in line."""
        return [entry for entry in self.entries if entry.record.key in entry.queue.pending.kept]


def not_ready(queues: Iterable[QueueState]) -> Iterator[Record]:
    """Give the workloads that hold quota and whose pods are not ready; deactivated ones count no more."""
    for queue in queues:
        for record in queue.running_records():
            condition = record.conditions.get(PODS_READY)
            if record.workload.active and (condition is None or not condition.status):
                yield record


def _copies(victims: Iterable[Victim], twins: Mapping[Record, Record]) -> list[Victim]:
    return [Victim(twins[victim.record], victim.reason) for victim in victims if victim.record in twins]
