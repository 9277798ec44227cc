"""The memory of how much teams used: one document for each cluster, in the bucket.

Only the measurement of each minute (`publish_usage`) writes it; the end of a run does not. If two calls overlap, the
later write counts. Both have the time since the same measurement, so none is counted twice.
"""

from dataclasses import dataclass, replace

from taskgov.allocation.use import use_now, waiting_places
from taskgov.errors import InvalidRequestError
from taskgov.policy.document import DemandRules
from taskgov.ports import DocumentStore
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.use_memory import UseMemory, budget_use, observed_use, remember_use

KEY = "memory/{}/use.json.gz"
KEY_BEFORE = "memory/{}/use.json"
"""Where earlier releases kept it, as plain JSON: read as long as there is no other."""


@dataclass(frozen=True, slots=True)
class UseHistory:
    """Keeps what teams used, for budgets and demand. Its fields are the ports it uses."""

    documents: DocumentStore

    def read(self, cluster_name: str) -> UseMemory:
        """Return the memory of use. Raises InvalidRequestError for a document that somebody damaged."""
        key = KEY.format(cluster_name)
        stored = self.documents.find(key)
        if stored is None:
            key = KEY_BEFORE.format(cluster_name)
            stored = self.documents.find(key)
        try:
            return UseMemory.from_bytes(stored)
        except ValueError as error:
            raise InvalidRequestError(
                f"{key} cannot be read ({error}); delete it, and use is measured again"
            ) from error

    def keep(self, snapshot: Snapshot) -> None:
        """Record what is used at the moment of the snapshot."""
        before = self.read(snapshot.cluster.name)
        after = remember_use(before, use_now(snapshot), snapshot.taken_at)
        if after != before:
            self.documents.put(KEY.format(snapshot.cluster.name), after.to_bytes(), "application/gzip")


def with_use(snapshot: Snapshot, memory: UseMemory) -> Snapshot:
    """Return the snapshot with what was used in the window of demand, and in the period of each budget."""
    now, policy = snapshot.taken_at, snapshot.policy
    rules = policy.demand if policy and policy.demand.enabled else DemandRules()
    use = use_now(snapshot)
    budgets = policy.budgets if policy else ()
    spent = (budget_use(memory, budget.team, budget.period, now) for budget in budgets)
    return replace(
        snapshot,
        observed_use=observed_use(memory, use, waiting_places(snapshot, use), now, rules.window_hours),
        budget_use=tuple(use for use in spent if use is not None),
    )
