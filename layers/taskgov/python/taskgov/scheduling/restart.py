"""What is left of the manager's state when Kueue is started again with another configuration? What the API server has.

Called through `KueueModel.restarted`: a switch of fair sharing is part of the manager's configuration.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from taskgov.scheduling.state import Record
from taskgov.scheduling.store import Store

if TYPE_CHECKING:
    from taskgov.scheduling.config import ManagerConfig


def restarted(store: Store, config: ManagerConfig) -> Store:
    """Return a new store with the objects of `store`, and its workloads as their conditions and admissions say."""
    twin = Store(config)
    twin.namespaces = {name: dict(labels) for name, labels in store.namespaces.items()}
    twin.flavors = store.flavors.copy()
    twin.priorities = dict(store.priorities)
    twin.pod_rules.take_objects_of(store.pod_rules)
    twin.cohorts = dict(store.cohorts)
    twin.known_checks = dict(store.known_checks)
    for state in store.queues.values():
        twin.put_queue(state.spec)
    for queue in store.local_queues.values():
        twin.put_local_queue(queue)
    twin.ledger.take_accounts_of(store.ledger)
    for account in twin.ledger.accounts.values():
        account.penalties.clear()
    for before in store.records.values():
        _take(twin, before)
    return twin


def _take(store: Store, before: Record) -> None:
    source = before.workload.source
    workload = before.workload if source is None else replace(store.read(source), active=before.workload.active)
    record = Record(workload, store.config)
    record.conditions, record.checks = dict(before.conditions), dict(before.checks)
    record.requeue_count, record.requeue_at = before.requeue_count, before.requeue_at
    store.records[record.key] = record
    if workload.replaces:
        store.slices[record.key] = record
    if before.admission is not None:
        record.hold(before.admission)
    if record.finished:
        return
    if before.admission is not None:
        store.start(record, before.admission.cluster_queue)
    else:
        store.enqueue(record)
