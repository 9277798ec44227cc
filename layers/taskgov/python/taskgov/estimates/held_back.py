"""Which waiting workloads does no free quota start? They get no estimate: their futures would say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.kueue.named import named
from taskgov.scheduling import instant
from taskgov.scheduling.status_reading import read_requeue_state
from taskgov.usage.never_fits import keys_that_never_fit

if TYPE_CHECKING:
    from taskgov.snapshot.model import Snapshot


def held_back(snapshot: Snapshot) -> frozenset[str]:
    """Return Kueue's keys of workloads that have to stay out of the queue for a while, or fit no node.

    Raises `KeyError` or `ValueError` for workloads that cannot be read.
    """
    now = instant(snapshot.taken_at)
    found = set(keys_that_never_fit(snapshot))
    for item in snapshot.kueue.workloads:
        _, until = read_requeue_state(item.get("status") or {})
        if until is not None and until > now:
            found.add(named(item).key)
    return frozenset(found)
