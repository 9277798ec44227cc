"""What quotas, cluster policy and queues are once changes have been written."""

from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation.plan import Change, ChangeKind, Reason
from taskgov.allocation.written import WrittenCluster, quota_after
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota, ComputeQuotaConfig, SchedulerConfig
from taskgov.snapshot.model import Snapshot
from tests.allocation.work import SCHEDULER, queues
from tests.allocation.world import quota, row, snapshot
from tests.support.plans import creation, deletion, low_write, policy, policy_change, second_write, update


def world(*quotas: ComputeQuota, scheduler: ClusterSchedulerConfig | None = SCHEDULER) -> Snapshot:
    return snapshot(quotas=quotas, kueue=queues(list(quotas)), scheduler_config=scheduler)


def counts(cluster: WrittenCluster) -> dict[str, int | None]:
    return {key: each.compute_quota_config.compute_quota_resources[0].count for key, each in cluster.quotas.items()}


def nominal(spec: Any) -> list[str]:
    """The GPUs of a queue by instance type."""
    flavors = [flavor for group in spec["resourceGroups"] for flavor in group["flavors"]]
    return [one["nominalQuota"] for each in flavors for one in each["resources"] if one["name"] == "nvidia.com/gpu"]


def test_changed_quotas_are_changed_new_ones_are_there_and_the_others_stay() -> None:
    cluster = WrittenCluster(world(quota("a", row(Count=2)), quota("b", row(Count=2))))
    cluster.write([update(0, "a", "id-a", 2, 1), creation(1, "c", 3)])
    assert counts(cluster) == {"id-a": 1, "id-b": 2, "new-c": 3}
    assert [each.status for each in cluster.quotas.values()] == ["Updated", "Created", "Created"]
    assert [each.compute_quota_version for each in cluster.quotas.values()] == [2, 1, 1]


def test_only_the_queues_that_a_write_concerns_are_rendered() -> None:
    cluster = WrittenCluster(world(quota("a", row(Count=2)), quota("b", row(Count=2))))
    made = cluster.write([update(0, "a", "id-a", 2, 1)])
    assert [each["kind"] for each in made] == ["Namespace", "ResourceFlavor", "ClusterQueue", "LocalQueue"]
    assert nominal(made[2]["spec"]) == ["1"]


def test_a_quota_that_is_written_twice_is_at_last_as_the_second_write_says() -> None:
    cluster = WrittenCluster(world(quota("a", row(Count=4))))
    cluster.write([low_write(0, "a", "id-a", 4, 1)])
    assert counts(cluster) == {"id-a": 1}
    cluster.write([second_write(1, "a", "id-a", 1, 3)])
    assert counts(cluster) == {"id-a": 3}
    assert cluster.quotas["id-a"].compute_quota_version == 3


def test_of_two_writes_at_once_the_last_counts() -> None:
    cluster = WrittenCluster(world(quota("a", row(Count=4))))
    made = cluster.write([low_write(0, "a", "id-a", 4, 1), second_write(1, "a", "id-a", 1, 3)])
    assert [nominal(each["spec"]) for each in made if each["kind"] == "ClusterQueue"] == [["3"]]


def test_a_quota_of_this_plan_that_has_no_id_yet_is_found_by_its_name() -> None:
    cluster = WrittenCluster(world())
    cluster.write([creation(0, "c", 3)])
    cluster.write([replace(second_write(1, "c", "", 3, 5), resource_id=None)])
    assert counts(cluster) == {"new-c": 5}


def test_what_is_deleted_leaves_a_queue_that_has_nothing_to_give_until_it_is_created_again() -> None:
    cluster = WrittenCluster(world(quota("a", row(Count=2), status="DeleteFailed")))
    cluster.write([deletion(0, "a", "id-a", 2)])
    assert cluster.quotas == {}
    [queue] = cluster.snapshot().kueue.cluster_queues
    assert queue["spec"]["resourceGroups"] == []
    cluster.write([creation(1, "a", 2)])
    [queue] = cluster.snapshot().kueue.cluster_queues
    assert (counts(cluster), nominal(queue["spec"])) == ({"new-a": 2}, ["2"])


@pytest.mark.parametrize(
    ("status", "told"), [("CreateFailed", True), ("CreateRollbackFailed", True), ("DeleteFailed", False)]
)
def test_to_delete_what_never_was_in_force_changes_no_queue(status: str, told: bool) -> None:
    """Either the status says so, or the change has nothing before it."""
    cluster = WrittenCluster(snapshot(quotas=(quota("a", row(Count=2), status=status),)))
    change = deletion(0, "a", "id-a", 2)
    assert cluster.write([change if told else replace(change, before=None)]) == ()
    assert cluster.quotas == {}


def test_an_update_that_has_settled_has_not_failed() -> None:
    cluster = WrittenCluster(world(quota("a", row(Count=2), status="UpdateFailed", failure_reason="no add-on")))
    cluster.write([update(0, "a", "id-a", 2, 1)])
    [settled] = cluster.quotas.values()
    assert (settled.status, settled.failure_reason) == ("Updated", None)


def test_a_snapshot_has_the_new_specs_and_the_old_statuses() -> None:
    before = world(quota("a", row(Count=2)))
    cluster = WrittenCluster(before)
    cluster.write([update(0, "a", "id-a", 2, 1), creation(1, "c", 3)])
    after = cluster.snapshot()
    old, new = after.kueue.cluster_queues
    assert (nominal(old["spec"]), old["status"]) == (["1"], before.kueue.cluster_queues[0]["status"])
    assert (nominal(new["spec"]), "status" in new) == (["3"], False)
    assert [each["metadata"]["name"] for each in after.kueue.local_queues][1:] == ["hyperpod-ns-c-localqueue"]
    assert len(after.kueue.resource_flavors) == 1


def test_nothing_written_is_the_snapshot() -> None:
    before = world(quota("a", row(Count=2)))
    assert WrittenCluster(before).snapshot() == before


def test_the_cluster_policy_is_as_written_and_its_classes_too() -> None:
    cluster = WrittenCluster(world(quota("a", row(Count=2))))
    cluster.write([policy_change(0, SCHEDULER.scheduler_config, policy(training=70))])
    assert cluster.scheduler_config == policy(training=70)
    after = cluster.snapshot()
    assert after.scheduler_config is not None
    assert (after.scheduler_config.status, after.scheduler_config.cluster_scheduler_config_version) == ("Updated", 2)
    assert [(each["metadata"]["name"], each["value"]) for each in after.kueue.priority_classes] == [
        ("training-priority", 70)
    ]


def test_a_cluster_policy_that_is_deleted_is_gone_until_it_is_created_again() -> None:
    cluster = WrittenCluster(world(quota("a", row(Count=2))))
    cluster.write([_policy_deletion()])
    assert (cluster.scheduler_config, cluster.snapshot().scheduler_config) == (None, None)
    cluster.write([policy_change(1, None, policy(training=70))])
    assert cluster.scheduler_config == policy(training=70)


def test_a_cluster_policy_that_was_never_made_is_not_in_force() -> None:
    failed = SCHEDULER.model_copy(update={"status": "CreateFailed"})
    assert WrittenCluster(world(scheduler=failed)).scheduler_config is None
    assert WrittenCluster(world()).scheduler_config == SCHEDULER.scheduler_config


def test_a_copy_goes_its_own_way() -> None:
    cluster = WrittenCluster(world(quota("a", row(Count=2))))
    twin = cluster.copy()
    twin.write([update(0, "a", "id-a", 2, 1), policy_change(1, SCHEDULER.scheduler_config, policy(training=70))])
    assert (counts(cluster), counts(twin)) == ({"id-a": 2}, {"id-a": 1})
    assert cluster.scheduler_config == SCHEDULER.scheduler_config
    assert cluster.snapshot() == world(quota("a", row(Count=2)))


@pytest.mark.parametrize(
    "change", [update(0, "a", "no-such-quota", 2, 1), replace(update(0, "a", "", 2, 1), resource_id=None)]
)
def test_what_is_not_there_cannot_be_written(change: Change) -> None:
    with pytest.raises(KeyError, match=change.resource_id or change.name):
        WrittenCluster(world()).write([change])


def test_a_change_of_the_cluster_policy_is_no_quota() -> None:
    with pytest.raises(TypeError, match="create-scheduler-config"):
        quota_after(policy_change(0, None, policy(training=70)), {})


def test_a_change_of_a_quota_is_no_cluster_policy() -> None:
    with pytest.raises(TypeError, match="update-scheduler-config"):
        WrittenCluster(world()).write([replace(policy_change(0, policy(), policy()), after=ComputeQuotaConfig())])


def _policy_deletion() -> Change:
    change = policy_change(0, SCHEDULER.scheduler_config, SchedulerConfig())
    return replace(change, kind=ChangeKind.DELETE_SCHEDULER_CONFIG, reason=Reason.RECOVERY)
