"""A plan of 1,000 changes, and the use case that writes it, over ports in memory whose calls are counted."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from taskgov.allocation.codec import plan_to_json
from taskgov.contracts.steps import ApplyChangeRequest, Pointer
from taskgov.services.apply_change import ApplyChange, ApplyChanges
from taskgov.services.claim_cluster import ClaimCluster
from taskgov.services.step_inputs import LastPlan
from taskgov.snapshot.identity import StateStamp
from taskgov.snapshot.records import AppliedQuota
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    FixedClock,
    InMemoryDocuments,
    InMemoryHyperPod,
    InMemoryState,
    InMemoryTags,
)
from tests.support.plans import instances, plan_of, target, update

CHANGES, PER_CALL = 1_000, 25
"""The template's default of `ChangesPerCall`."""


class Counted:
    """Counts the calls of a port."""

    def __init__(self, port: Any, calls: Counter[str]) -> None:
        self._port, self._calls = port, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found

        def call(*given: Any, **named: Any) -> Any:
            self._calls[name] += 1
            return found(*given, **named)

        return call


class Writing:
    """A plan of so many changes, as a run has it that has read the cluster."""

    def __init__(self, changes: int = CHANGES, hyperpod: InMemoryHyperPod | None = None) -> None:
        self.count = changes
        hyperpod, documents, clock = hyperpod or InMemoryHyperPod(), InMemoryDocuments(), FixedClock()
        state = InMemoryState(lock={CLUSTER_ARN: ("run-1", 5, float("inf"))})
        teams = [f"team-{number:04}" for number in range(self.count)]
        ids = [hyperpod.create_quota(CLUSTER_ARN, team, instances(2), target(team)).resource_id for team in teams]
        state.remember_resources(CLUSTER_ARN, ids)
        for team, quota_id in zip(teams, ids, strict=True):
            stands = AppliedQuota(quota_id, 1, instances(2), target(team), "plan-0", NOON - timedelta(days=1))
            state.record_applied(CLUSTER_ARN, stands)
        self.quotas = dict(zip(teams, ids, strict=True))
        state.record_stamp(CLUSTER_ARN, StateStamp("own", 1, NOON))
        self.calls: Counter[str] = Counter()
        self.hyperpod, self.clock = hyperpod, clock
        self.backends, self.documents, self.state = (Counted(port, self.calls) for port in (hyperpod, documents, state))
        self.plan = self.planned(teams)
        self.calls.clear()

    def planned(self, teams: Sequence[str]) -> Pointer:
        """Keep a plan that changes the quotas of these teams."""
        updates = [update(index, team, self.quotas[team], 2, 1) for index, team in enumerate(teams)]
        pointer: Pointer = self.documents.put("plans/x.json", plan_to_json(plan_of(*updates)), "application/json")
        return pointer

    def process(self) -> ApplyChanges:
        """Return the use case as a new process of the function has it."""
        write = ApplyChange(self.backends, self.documents, self.state, self.clock, LastPlan())
        return ApplyChanges(write, ClaimCluster(InMemoryTags(), self.state, self.clock))

    def apply(self, process: Callable[[], ApplyChanges]) -> int:
        """Write all changes as the state machine does, and return how many calls that took."""
        index = calls = 0
        while index < self.count:
            request = ApplyChangeRequest(
                cluster_arn=CLUSTER_ARN,
                plan=self.plan,
                index=index,
                count=PER_CALL,
                lock_owner="run-1",
                fencing_token=5,
            )
            index = process()(request).next
            calls += 1
        return calls
