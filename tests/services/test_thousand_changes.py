"""Writing 1,000 changes: the plan is parsed once in a process, and requests grow with the changes alone."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from time import process_time
from typing import Any

import pytest

from taskgov.allocation.codec import plan_from_json, plan_to_json
from taskgov.contracts.steps import ApplyChangeRequest, Pointer, VerifyPlanRequest
from taskgov.errors import NotFoundError, UpstreamError
from taskgov.services import step_inputs
from taskgov.services.apply_change import ApplyChange, ApplyChanges
from taskgov.services.claim_cluster import ClaimCluster
from taskgov.services.step_inputs import LastPlan
from taskgov.services.verify_plan import VerifyPlan
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


class World:
    """A plan of so many changes, as a run has it that has read the cluster."""

    def __init__(self, changes: int = CHANGES) -> None:
        self.count = changes
        hyperpod, documents, clock = InMemoryHyperPod(), InMemoryDocuments(), FixedClock()
        state = InMemoryState(lock={CLUSTER_ARN: ("run-1", 5, float("inf"))})
        teams = [f"team-{number:04}" for number in range(self.count)]
        ids = [hyperpod.create_quota(CLUSTER_ARN, team, instances(2), target(team)).resource_id for team in teams]
        state.remember_resources(CLUSTER_ARN, ids)
        for team, quota_id in zip(teams, ids, strict=True):
            stands = AppliedQuota(quota_id, 1, instances(2), target(team), "plan-0", NOON - timedelta(days=1))
            state.record_applied(CLUSTER_ARN, stands)
        updates = [update(index, team, ids[index], 2, 1) for index, team in enumerate(teams)]
        self.plan = documents.put("plans/x.json", plan_to_json(plan_of(*updates)), "application/json")
        state.record_stamp(CLUSTER_ARN, StateStamp("own", 1, NOON))
        self.calls: Counter[str] = Counter()
        self.hyperpod, self.clock = hyperpod, clock
        self.backends, self.documents, self.state = (Counted(port, self.calls) for port in (hyperpod, documents, state))

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


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the plans that are parsed."""
    sizes: list[int] = []

    def counting(body: bytes) -> Any:
        sizes.append(len(body))
        return plan_from_json(body)

    monkeypatch.setattr(step_inputs, "plan_from_json", counting)
    return sizes


def test_one_process_parses_the_plan_once_and_requests_grow_with_the_changes_alone(parsed: list[int]) -> None:
    world = World()
    one, began = world.process(), process_time()
    calls = world.apply(lambda: one)
    assert calls == CHANGES / PER_CALL
    assert process_time() - began < 10
    assert len(parsed) == 1
    assert dict(sorted(world.calls.items())) == {
        "applied_quota": 2 * CHANGES,
        "cluster_of": CHANGES,
        "get": 1,
        "hold_lock": CHANGES,
        "record_applied": 2 * CHANGES,  # announced, and written
        "refusals": calls,
        "remember_resources": CHANGES,
        "stamp": calls,
        "update_quota": CHANGES,
    }

    world.calls.clear()
    parsed.clear()
    look = VerifyPlan(world.backends, world.documents, world.state, world.clock, LastPlan())
    for _ in range(3):
        assert look(VerifyPlanRequest(cluster_arn=CLUSTER_ARN, plan=world.plan, next=CHANGES)).settled
    assert (world.calls["get"], len(parsed)) == (1, 1)
    assert world.calls["quotas"] == 3
    assert sum(world.calls.values()) < 20, "looking asks for lists, and for no change by itself"


def test_a_new_process_for_each_call_parses_it_once_a_call_and_not_once_a_change(parsed: list[int]) -> None:
    world = World(100)
    assert world.apply(world.process) == len(parsed) == world.calls["get"] == 100 / PER_CALL


def test_another_plan_is_read_anew_and_one_that_is_gone_is_no_old_one() -> None:
    documents, read = InMemoryDocuments(), LastPlan()
    bodies = [plan_to_json(plan_of(update(0, team, "quota0000000", 2, 1))) for team in ("team-a", "team-b")]
    first, second = (documents.put("plans/x.json", body, "application/json") for body in bodies)
    assert read(documents, second).changes[0].team == "team-b"
    with pytest.raises(UpstreamError, match="has changed"):
        read(documents, first)  # the place has another plan by now
    documents.put("plans/x.json", bodies[0], "application/json")
    assert read(documents, first).changes[0].team == "team-a"
    with pytest.raises(NotFoundError):
        read(documents, Pointer(bucket=first.bucket, key="plans/gone.json", sha256=first.sha256))
