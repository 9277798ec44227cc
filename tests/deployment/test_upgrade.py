"""A new release is deployed over a running one: nothing is lost, and what runs goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import Action, all_files, load
from taskgov_embedded.walkthrough.step_result import StepResult
from taskgov_embedded.walkthrough.world import World
from tests.deployment.releases import TEMPLATE, older_release, versions_used

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.stack import Stack

pytestmark = pytest.mark.long

WALKTHROUGH = load(next(file for file in all_files() if "approval" in file.stem))
"""Its first step ends with a run that waits for a person."""


class Upgraded:
    """A world in which a run waited for approval while the older release was replaced, and what was seen before."""

    def __init__(self, world: World) -> None:
        self.world, self.stack = world, world.stack
        self.actor = Actor(world)
        for action in WALKTHROUGH.steps[0].do:
            self.do(action)
        self.running = self.executions("RUNNING")
        self.items_before = items(self.stack)
        self.documents_before = documents(self.stack)
        self.results_before = len(self.stack.results)
        self.old_delay = delay(self.stack)
        self.failed = self.stack.update(TEMPLATE, {**self.stack.parameters})

    def do(self, action: Action | dict[str, Any]) -> None:
        self.actor.do(Action.model_validate(action), StepResult("", {}))

    def executions(self, status: str) -> list[str]:
        client = self.stack.client("stepfunctions")
        machine = self.stack.physical("ReconcileStateMachine")
        found = client.list_executions(stateMachineArn=machine, statusFilter=status)["executions"]
        return [one["executionArn"] for one in found]


def items(stack: Stack) -> list[dict[str, Any]]:
    return list(stack.client("dynamodb").scan(TableName=stack.physical("GovernanceTable"))["Items"])


def documents(stack: Stack) -> dict[str, str]:
    found = stack.client("s3").list_objects_v2(Bucket=stack.physical("GovernanceBucket"))["Contents"]
    return {one["Key"]: one["ETag"] for one in found}


def delay(stack: Stack) -> str:
    url, names = stack.physical("IntakeQueue"), ["DelaySeconds"]
    attributes = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return str(attributes["DelaySeconds"])


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    older = older_release(tmp_path_factory.mktemp("older"))
    with World(WALKTHROUGH, older) as world:
        yield Upgraded(world)


def test_the_upgrade_succeeds_while_a_run_waits_for_approval(upgraded: Upgraded) -> None:
    assert upgraded.failed is None
    assert len(upgraded.running) == 1
    assert upgraded.executions("RUNNING") == upgraded.running


def test_the_table_and_the_documents_are_untouched(upgraded: Upgraded) -> None:
    assert items(upgraded.stack) == upgraded.items_before
    assert documents(upgraded.stack) == upgraded.documents_before


def test_snapshot_and_plan_are_stored_as_functions_of_the_release_before_read_them(upgraded: Upgraded) -> None:
    """Which they do while the next deployment moves the functions, and after it was taken back."""
    s3, bucket = upgraded.stack.client("s3"), upgraded.stack.physical("GovernanceBucket")
    stored = {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in upgraded.documents_before}
    plans = [json.loads(body) for key, body in stored.items() if key.startswith("plans/")]
    snapshots = [json.loads(body) for key, body in stored.items() if key.startswith("snapshots/")]
    assert plans
    assert all("cluster_arn" in plan for plan in plans)
    assert snapshots
    assert all("taken_at" in snapshot for snapshot in snapshots)


def test_resources_come_go_and_change_as_the_template_says(upgraded: Upgraded) -> None:
    stack = upgraded.stack
    names = [url.rpartition("/")[2] for url in stack.client("sqs").list_queues()["QueueUrls"]]
    assert [name for name in names if "OldQueue" in name] == []
    alarms = [one["AlarmName"] for one in stack.client("cloudwatch").describe_alarms()["MetricAlarms"]]
    assert [name for name in alarms if "PublishingStale" in name] != []
    assert upgraded.old_delay == "30"
    role = stack.resolved("ReconcileRole").properties["Policies"][0]["PolicyDocument"]["Statement"]
    assert "scheduler:UpdateSchedule" in json.dumps(role)


def test_every_function_has_a_second_version_because_the_layer_is_another_one(upgraded: Upgraded) -> None:
    for function in upgraded.stack.translated.resources_of("AWS::Lambda::Function"):
        name = upgraded.stack.physical(function)
        alias = upgraded.stack.client("lambda").get_alias(FunctionName=name, Name="live")
        assert (function, alias["FunctionVersion"]) == (function, "2")


def test_the_run_that_waited_ends_well_on_its_own_definition_with_the_new_functions(upgraded: Upgraded) -> None:
    upgraded.do({"approve": True})
    upgraded.do({"waitMinutes": 2})
    client = upgraded.stack.client("stepfunctions")
    assert client.describe_execution(executionArn=upgraded.running[0])["status"] == "SUCCEEDED"
    assert upgraded.world.quotas()["team-a"] == ({"InstanceType": "ml.g5.8xlarge", "Count": 2},)
    assert set(versions_used(upgraded.stack, "ApplyChangeFunction", upgraded.results_before)) == {"2"}
    machine = client.describe_state_machine(stateMachineArn=upgraded.stack.physical("ReconcileStateMachine"))
    assert "The older definition." not in machine["definition"]


def test_the_next_event_is_served_by_the_new_release(upgraded: Upgraded) -> None:
    before = len(upgraded.stack.results)
    upgraded.do({"reconcile": True})
    upgraded.do({"waitMinutes": 2})
    used = {one.function: one.version for one in upgraded.stack.results[before:]}
    assert used["ReceiveEventFunction"] == used["PlanQuotasFunction"] == "2"
    assert upgraded.stack.timeline.of("denied") == []
    assert upgraded.executions("FAILED") == []
