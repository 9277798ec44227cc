"""What failed in the service comes right by itself: played on the whole stack."""

from collections.abc import Iterator

import pytest

from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.world import World

pytestmark = pytest.mark.long

TYPE = "ml.g5.8xlarge"
CONFIG = {"ComputeQuotaResources": [{"InstanceType": TYPE, "Count": 1}]}
CLASSES = [{"Name": "training", "Weight": 70}]


@pytest.fixture
def world() -> Iterator[World]:
    walkthrough = {
        "name": "recovery",
        "source": "HyperPod developer guide, Troubleshoot",
        "about": "failed statuses",
        "mode": "apply",
        "starts": "2026-11-20T09:00:00Z",
        "cluster": {"groups": [{"instanceType": TYPE, "count": 4}]},
        "steps": [{"title": "failed statuses"}],
    }
    with World(Walkthrough.model_validate(walkthrough)) as opened:
        yield opened


def govern(world: World, count: int = 2) -> None:
    quota = {"ComputeQuotaResources": [{"InstanceType": TYPE, "Count": count}]}
    document = {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml-cluster", "arn": "${clusterArn}"},
        "schedulerConfig": {"PriorityClasses": CLASSES},
        "teams": [{"name": "team-a", "quota": quota}],
        "guardrails": {"maxDecreasePercent": 100, "maxPreemptedGpus": 100},
    }
    Actor(world)._policy(document)  # the verb of a walkthrough
    world.stack.run_until_quiet(1800)


def state(world: World) -> list[tuple[str, str, int]]:
    return [
        (quota["ComputeQuotaTarget"]["TeamName"], quota["Status"], _count(quota))
        for quota in world.stack.sagemaker.quotas(world.cluster_arn)
    ]


def _count(quota: dict[str, object]) -> int:
    rows = quota["ComputeQuotaConfig"]["ComputeQuotaResources"]  # type: ignore[index]
    return sum(int(each["Count"]) for each in rows)


def calls(world: World, role: str) -> list[str]:
    found = [call for call in world.stack.calls if call.service == "sagemaker" and role in call.principal.name]
    return [call.operation for call in found if call.operation.startswith(("Create", "Update", "Delete"))]


def test_a_quota_and_a_cluster_policy_that_could_not_be_created_are_deleted_and_created_again(world: World) -> None:
    governance = world.stack.sagemaker.governance
    governance.fail_next("CreateComputeQuota", "the add-on is not ready")
    governance.fail_next("CreateClusterSchedulerConfig", "the add-on is not ready")
    person = world.stack.client("sagemaker", person="ana")
    person.create_compute_quota(
        Name="team-a",
        ClusterArn=world.cluster_arn,
        ComputeQuotaConfig=CONFIG,
        ComputeQuotaTarget={"TeamName": "team-a"},
    )
    person.create_cluster_scheduler_config(
        Name="policy", ClusterArn=world.cluster_arn, SchedulerConfig={"PriorityClasses": CLASSES}
    )
    world.stack.run_until_quiet()
    assert state(world) == [("team-a", "CreateFailed", 1)]
    govern(world)
    assert calls(world, "ApplyChangeRole") == [
        "DeleteClusterSchedulerConfig",
        "DeleteComputeQuota",
        "CreateClusterSchedulerConfig",
        "CreateComputeQuota",
    ]
    assert state(world) == [("team-a", "Created", 2)]
    assert world.scheduler_config()["Status"] == "Created"
    assert world.stack.timeline.of("denied") == []


def test_an_update_that_failed_is_made_again_by_the_next_resync(world: World) -> None:
    govern(world)
    world.stack.sagemaker.governance.fail_next("UpdateComputeQuota", "the add-on did not answer")
    govern(world, count=3)
    assert state(world) == [("team-a", "UpdateFailed", 3)]
    world.stack.advance(3600, schedules=["ResyncAllSchedule"])
    world.stack.run_until_quiet(1800)
    assert state(world) == [("team-a", "Updated", 3)]


def test_a_deletion_that_failed_is_tried_again_and_what_is_promised_made_anew(world: World) -> None:
    govern(world)
    world.stack.sagemaker.governance.fail_next("DeleteComputeQuota", "jobs are running")
    (quota,) = world.stack.sagemaker.quotas(world.cluster_arn)
    person = world.stack.client("sagemaker", person="ana")
    person.delete_compute_quota(ComputeQuotaId=quota["ComputeQuotaId"])
    world.stack.run_until_quiet(1800)
    settled = [moment.what for moment in world.stack.timeline.of("settled") if "ComputeQuota" in moment.what]
    assert any("DeleteFailed" in what for what in settled)
    assert calls(world, "ApplyChangeRole")[-2:] == ["DeleteComputeQuota", "CreateComputeQuota"]
    assert state(world) == [("team-a", "Created", 2)]
