"""What have LocalQueues used so far? Their accounts, kept while workloads come and go.

Between `workload_store` and `store`; `fair_admission` has the arithmetic. Nothing here costs anything where the manager
has no `admissionFairSharing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling.activity import RUN
from taskgov.scheduling.fair_admission import Consumed, Ledger, in_billionths, sum_of
from taskgov.scheduling.state import ADMITTED
from taskgov.scheduling.workload_store import WorkloadStore

if TYPE_CHECKING:
    from taskgov.scheduling.config import ManagerConfig
    from taskgov.scheduling.fair_admission import QueueKey
    from taskgov.scheduling.instants import Instant
    from taskgov.scheduling.state import QueueState, Record


class AccountStore(WorkloadStore):
    """Records and queues, and the accounts of LocalQueues."""

    def __init__(self, config: ManagerConfig) -> None:
        super().__init__(config)
        self.ledger = Ledger(config.admission_fair_sharing if config.gate("AdmissionFairSharing") else None)

    @property
    def takes_turns(self) -> bool:
        """Whether LocalQueues take turns anywhere."""
        return self.ledger.settings is not None

    def usage_of(self, key: QueueKey) -> float:
        """Return the usage that orders a LocalQueue; one that is gone has a weight of 1."""
        local = self.local_queues.get(key)
        return self.ledger.usage(key, 1.0 if local is None else local.weight)

    def sample_accounts(self, now: Instant) -> None:
        """Bring all accounts up to date that are due; of queues that are stopped or inactive none is.

        Kueue: `Reconcile` in `pkg/controller/core/localqueue_controller.go`.
        """
        if not self.takes_turns:
            return
        used: dict[str, dict[QueueKey, Consumed]] = {}
        for key, local in self.local_queues.items():
            state = self.queues.get(local.cluster_queue)
            if local.stop_policy != RUN or state is None or not self.ledger.is_due(key, now):
                continue
            if self.is_active(state):
                if local.cluster_queue not in used:
                    used[local.cluster_queue] = _used_by_door(state)
                self.ledger.sample(key, used[local.cluster_queue].get(key, {}), now)

    def charge(self, record: Record, now: Instant) -> None:
        """Book the entry penalty of a workload that has got quota, and settle it if it is admitted with that.

        Kueue: `updateEntryPenalty` in `pkg/scheduler/scheduler.go`; it is of all that the workload requests.
        """
        if self.takes_turns and record.queue is not None and record.queue.spec.fair_admission:
            requests: dict[str, int] = sum_of([pod_set.requests for pod_set in record.demand.pod_sets])
            self.ledger.charge(_door(record), record.key, requests)
            if _is_admitted(record):
                self.settle_charge(record, now)

    def settle_charge(self, record: Record, now: Instant) -> None:
        """Turn the entry penalty of a workload that becomes admitted into consumption of its LocalQueue.

        Kueue: `updateAfsConsumedUsage` in `pkg/controller/core/workload_controller.go`.
        """
        if self.takes_turns and record.queue is not None and record.queue.spec.fair_admission:
            key = _door(record)
            self.ledger.settle(key, record.key, _used_by_door(record.queue).get(key, {}), now)

    def drop_workload(self, record: Record) -> None:
        """Forget a workload and its entry penalty."""
        self.ledger.release(_door(record), record.key)
        super().drop_workload(record)


def _door(record: Record) -> QueueKey:
    return record.workload.namespace, record.workload.queue


def _used_by_door(state: QueueState) -> dict[QueueKey, Consumed]:
    """Sum, by LocalQueue, what the admitted workloads of a cluster queue hold, whatever the flavor."""
    used: dict[QueueKey, list[Consumed]] = {}
    for record in state.running_records():
        if _is_admitted(record):
            held = sum_of([{fr.partition("/")[2]: amount} for fr, amount in record.usage.items()])
            used.setdefault(_door(record), []).append(in_billionths(held))
    return {key: sum_of(parts) for key, parts in used.items()}


def _is_admitted(record: Record) -> bool:
    condition = record.conditions.get(ADMITTED)
    return condition is not None and condition.status
