"""SageMaker throttles the writes of 1,000 quotas: the runs take longer, and none of them fails.

The state machine is the real one, and so is the use case behind `apply_change`.
"""

from itertools import count
from typing import Any

import pytest

from taskgov.contracts.steps import ApplyChangeRequest
from taskgov.errors import ThrottledError
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaTarget
from taskgov_embedded.stepfunctions.host import TaskFailedError
from tests.statemachines.conftest import World, planned
from tests.statemachines.machines import Execution
from tests.support.memory import CLUSTER_ARN, InMemoryHyperPod
from tests.support.writing import CHANGES, Writing

pytestmark = pytest.mark.long

MOST_EVENTS = 25_000


class Throttled(InMemoryHyperPod):
    """Takes one of so many writes; each is one that the client has given up."""

    def __init__(self, one_of: int) -> None:
        super().__init__()
        self._one_of, self._tries = one_of, count(1)

    def update_quota(
        self, quota_id: str, target_version: int, config: ComputeQuotaConfig, target: ComputeQuotaTarget
    ) -> Any:
        if next(self._tries) % self._one_of:
            raise ThrottledError("UpdateComputeQuota: ThrottlingException: Rate exceeded")
        return super().update_quota(quota_id, target_version, config, target)


@pytest.mark.parametrize("one_of", [2, 7])
def test_a_thousand_throttled_writes_take_some_runs_and_each_quota_is_written_once(world: World, one_of: int) -> None:
    """One write in two ends each call after one change; with one in seven, each call is tried again five times."""
    hyperpod = Throttled(one_of)
    writing = Writing(CHANGES, hyperpod)
    hyperpod.writes.clear()
    process, plan = writing.process(), writing.plan
    errors = 0

    def apply(payload: dict[str, Any]) -> dict[str, Any]:
        nonlocal errors
        names = {"clusterArn": CLUSTER_ARN, "plan": plan.to_json(), "lockOwner": "run-1", "fencingToken": 5}
        try:
            return process(ApplyChangeRequest.parse(payload | names)).to_json()
        except ThrottledError as error:
            errors += 1
            raise TaskFailedError("ThrottledError", str(error)) from error

    def left() -> list[str]:
        known = ((team, hyperpod.quota(quota_id)) for team, quota_id in writing.quotas.items())
        return [team for team, quota in known if quota.compute_quota_version == 1]

    def plan_quotas(_: dict[str, Any]) -> dict[str, Any]:
        nonlocal plan
        plan = writing.planned(left())
        return planned("apply", changes=len(left()))

    world.steps |= {"ApplyChange": apply, "PlanQuotas": plan_quotas}
    outcomes = []
    while left():
        world.execution = Execution(world._answer)
        outcomes.append(world.run().output["outcome"])
        assert world.execution.events < MOST_EVENTS
    assert outcomes == ["progressing", "progressing", "applied"]
    assert len(world.schedules) == 2, "after each that could not write all, another is due"
    assert sorted(hyperpod.writes) == [f"update {team}" for team in sorted(writing.quotas)], "each is written once"
    assert CHANGES * (one_of - 2) <= errors <= CHANGES * (one_of - 2) + one_of
