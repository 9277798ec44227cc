"""Removing the stack leaves what people decided, and touches no quota."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import all_files, load
from taskgov_embedded.walkthrough.step_result import StepResult
from taskgov_embedded.walkthrough.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long

WALKTHROUGH = load(next(file for file in all_files() if "quotas-follow" in file.stem))


class Removed:
    """A world whose stack was deleted after its first quotas were applied."""

    def __init__(self, world: World) -> None:
        self.world, self.stack = world, world.stack
        actor = Actor(world)
        for action in WALKTHROUGH.steps[0].do:
            actor.do(action, StepResult("", {}))
        self.stack.run_until_quiet()
        self.table = self.stack.physical("GovernanceTable")
        self.bucket = self.stack.physical("GovernanceBucket")
        self.items = self.scan()
        self.quotas = world.quotas()
        self.config = world.scheduler_config()
        self.calls = len(self.stack.calls)
        self.retained = self.stack.uninstall()

    def scan(self) -> list[dict[str, Any]]:
        return list(self.stack.client("dynamodb").scan(TableName=self.table)["Items"])


@pytest.fixture(scope="module")
def removed() -> Iterator[Removed]:
    with World(WALKTHROUGH) as world:
        yield Removed(world)


def test_the_table_and_the_bucket_stay_with_everything_in_them(removed: Removed) -> None:
    stored = [one for one in removed.retained if "Version" not in one]
    assert sorted(stored) == ["GovernanceBucket", "GovernanceTable"]
    assert removed.items != []
    assert removed.scan() == removed.items
    objects = removed.stack.client("s3").list_objects_v2(Bucket=removed.bucket)["Contents"]
    assert {one["Key"].partition("/")[0] for one in objects} >= {"policies", "plans"}


def test_no_quota_and_no_cluster_policy_changes(removed: Removed) -> None:
    assert removed.quotas != {}
    assert removed.world.quotas() == removed.quotas
    assert removed.world.scheduler_config() == removed.config
    services = {call.service for call in removed.stack.calls[removed.calls :] if call.operation.startswith("Delete")}
    assert "sagemaker" not in services


def test_nothing_listens_and_nothing_is_scheduled_any_more(removed: Removed) -> None:
    stack, before = removed.stack, len(removed.stack.results)
    (cluster,) = stack.sagemaker.clusters
    stack.sagemaker.emit_cluster_state_change(cluster)
    stack.advance(2 * 3600)
    assert len(stack.results) == before
    assert stack.client("events").list_rules()["Rules"] == []
    groups = [one["Name"] for one in stack.client("scheduler").list_schedule_groups()["ScheduleGroups"]]
    assert groups == ["default"]


def test_nothing_that_costs_money_is_left_running(removed: Removed) -> None:
    stack = removed.stack
    assert "QueueUrls" not in stack.client("sqs").list_queues()
    assert stack.client("sns").list_topics()["Topics"] == []
    assert stack.client("cloudwatch").describe_alarms()["MetricAlarms"] == []
    assert stack.client("stepfunctions").list_state_machines()["stateMachines"] == []
    assert stack.client("logs").describe_log_groups()["logGroups"] == []
    assert stack.client("iam").list_roles()["Roles"] == []
