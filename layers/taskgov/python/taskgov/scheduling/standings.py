"""What does a model hold, as values? Its specs, and how each workload stands: what another replay begins from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from taskgov.scheduling.state import QUOTA_RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.objects import Admission, ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
    from taskgov.scheduling.store import Store


class Specs(NamedTuple):
    """The objects that decide who starts when, without workloads."""

    queues: tuple[ClusterQueue, ...]
    local_queues: tuple[LocalQueue, ...]
    flavors: tuple[ResourceFlavor, ...]
    cohorts: tuple[Cohort, ...]
    namespaces: Mapping[str, Mapping[str, str]]


class Standing(NamedTuple):
    """How a workload stands that is not finished: what it holds and since when, or from when on it is in line."""

    workload: Workload
    admission: Admission | None
    since: Instant | None
    """When its quota was reserved; `None` while it waits, and where its conditions do not say."""
    queued_since: Instant
    evicted: bool
    """It is evicted and still holds quota."""
    barred: bool
    has_checks: bool


def specs_of(store: Store) -> Specs:
    """Return the specs of a store."""
    return Specs(
        tuple(state.spec for state in store.queues.values()),
        tuple(store.local_queues.values()),
        store.flavors.flavors,
        tuple(store.cohorts.values()),
        dict(store.namespaces),
    )


def standings_of(store: Store) -> Iterator[Standing]:
    """Give how each workload of a store stands, those that are finished left out."""
    for record in store.records.values():
        if record.finished:
            continue
        reserved = record.conditions.get(QUOTA_RESERVED)
        holds = record.admission is not None
        yield Standing(
            record.workload,
            record.admission,
            reserved.since if holds and reserved is not None and reserved.status else None,
            record.queued_since,
            evicted=holds and record.evicted,
            barred=not holds and (record.barred or record.requeue_at is not None),
            has_checks=bool(record.checks),
        )
