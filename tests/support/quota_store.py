"""What holds of the `kueue` backend on any cluster: the contract that the embedded and a real API server both keep."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from taskgov.errors import ConflictError, InvalidRequestError, NotFoundError
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig
from taskgov.kueue.ownership import MADE
from taskgov.kueue.record import FOREIGN
from taskgov_embedded.cluster.manifests import job_manifest

if TYPE_CHECKING:
    from taskgov.backends.plain_eks.quotas import KueueQuotas

ARN = "arn:aws:eks:us-east-1:111122223333:cluster/ml"
ID, POLICY_ID = f"{ARN}/quota/team-a", f"{ARN}/policy"
G5 = "ml.g5.8xlarge"
NAMESPACE = "hyperpod-ns-team-a"
TARGET = ComputeQuotaTarget(team_name="team-a")
Object = dict[str, Any]
Edit = Callable[[Object], Object]


@dataclass(frozen=True, slots=True)
class Rig:
    """A cluster, and what somebody else does to it."""

    queue: ClassVar[str] = "hyperpod-ns-team-a-clusterqueue"
    quotas: KueueQuotas
    edit: Callable[[Edit], None]
    """Somebody changes the team's ClusterQueue."""
    put: Callable[..., None]
    """Somebody applies objects."""
    find: Callable[..., Object | None]
    delete: Callable[..., None]
    submit: Callable[[Object], Any]
    settle: Callable[[], None]

    def quota(self) -> ComputeQuota:
        """Return the quota once Kueue has seen the queue."""
        self.settle()
        [found] = self.quotas.quotas(ARN)
        return found


def instances(count: int, **more: Any) -> ComputeQuotaConfig:
    rows = [{"InstanceType": G5, "Count": count}]
    return ComputeQuotaConfig.model_validate({"ComputeQuotaResources": rows, **more})


def ranks(**weights: int) -> SchedulerConfig:
    classes = [{"Name": name, "Weight": weight} for name, weight in weights.items()]
    return SchedulerConfig.model_validate({"PriorityClasses": classes, "FairShare": "Enabled"})


def with_gpus(amount: str) -> Edit:
    """Return the edit that sets how many GPUs the queue has."""

    def edit(queue: Object) -> Object:
        changed = copy.deepcopy(queue)
        changed["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = amount
        return changed

    return edit


def stop_searching(queue: Object) -> Object:
    """Change what no quota speaks of."""
    changed = copy.deepcopy(queue)
    changed["spec"]["flavorFungibility"]["whenCanBorrow"] = "MayStopSearch"
    return changed


class QuotaStoreContract:
    """The contract; a subclass gives the fixture `rig`."""

    def test_a_quota_is_made_with_all_its_objects_and_read_back_as_asked(self, rig: Rig) -> None:
        assert rig.quotas.quotas(ARN) == ()
        written = rig.quotas.create_quota(ARN, "a-quota", instances(2), TARGET)
        assert (written.resource_id, written.version) == (ID, 1)
        quota = rig.quota()
        assert (quota.name, quota.status, quota.compute_quota_version) == ("a-quota", "Created", 1)
        assert quota.compute_quota_config == instances(2)
        assert rig.find("namespaces", NAMESPACE) is not None
        for kind, name in (("clusterqueues", Rig.queue), ("resourceflavors", G5), ("cohorts", "shared-pool")):
            found = rig.find(kind, name)
            assert found is not None
            assert found["metadata"]["annotations"][MADE] == "true"
        assert rig.find("validatingadmissionpolicies", "hyperpod-task-governance-admission-policy") is not None

    def test_a_second_creation_is_a_conflict_and_changes_nothing(self, rig: Rig) -> None:
        rig.quotas.create_quota(ARN, "a-quota", instances(2), TARGET)
        with pytest.raises(ConflictError, match="the team has a quota"):
            rig.quotas.create_quota(ARN, "a-quota", instances(1), TARGET)
        assert rig.quota().compute_quota_config == instances(2)

    def test_an_update_is_the_next_version_even_when_the_queue_stays_the_same(self, rig: Rig) -> None:
        rig.quotas.create_quota(ARN, "a-quota", instances(2), TARGET)
        assert rig.quotas.update_quota(ID, 1, instances(1), TARGET).version == 2
        same = instances(1, PreemptTeamTasks="LowerPriority")
        assert rig.quotas.update_quota(ID, 2, same, TARGET).version == 3
        quota = rig.quota()
        assert (quota.compute_quota_version, quota.status) == (3, "Updated")
        assert quota.compute_quota_config == same

    def test_an_update_at_a_stale_version_is_a_conflict(self, rig: Rig) -> None:
        rig.quotas.create_quota(ARN, "a-quota", instances(2), TARGET)
        rig.quotas.update_quota(ID, 1, instances(1), TARGET)
        with pytest.raises(ConflictError, match="at version 2, not 1"):
            rig.quotas.update_quota(ID, 1, instances(3), TARGET)

    def test_an_edit_by_hand_is_a_version_of_its_own_and_is_overwritten_only_at_that_version(self, rig: Rig) -> None:
        rig.quotas.create_quota(ARN, "a-quota", instances(2), TARGET)
        rig.edit(with_gpus("1"))
        quota = rig.quota()
        [row] = quota.compute_quota_config.compute_quota_resources
        assert (quota.compute_quota_version, row.accelerators) == (2, 1)
        with pytest.raises(ConflictError, match="at version 2, not 1"):
            rig.quotas.update_quota(ID, 1, instances(2), TARGET)
        assert rig.quotas.update_quota(ID, 2, instances(2), TARGET).version == 3
        assert rig.quota().compute_quota_config == instances(2)

    def test_what_no_quota_mentions_shows_as_a_failed_update_and_is_fixed_by_one(self, rig: Rig) -> None:
        rig.quotas.create_quota(ARN, "a-quota", instances(2), TARGET)
        rig.edit(stop_searching)
        quota = rig.quota()
        assert (quota.status, quota.compute_quota_config) == ("UpdateFailed", instances(2))
        assert "spec.flavorFungibility" in (quota.failure_reason or "")
        rig.quotas.update_quota(ID, quota.compute_quota_version, instances(2), TARGET)
        assert rig.quota().status == "Updated"

    def test_a_local_queue_that_was_deleted_is_missed_and_made_again(self, rig: Rig) -> None:
        rig.quotas.create_quota(ARN, "a-quota", instances(2), TARGET)
        rig.delete("localqueues", f"{NAMESPACE}-localqueue", NAMESPACE)
        quota = rig.quota()
        assert (quota.status, quota.failure_reason) == ("UpdateFailed", f"LocalQueue {NAMESPACE}-localqueue is missing")
        rig.quotas.update_quota(ID, quota.compute_quota_version, instances(2), TARGET)
        assert rig.quota().status == "Updated"

    def test_what_somebody_else_made_is_read_left_alone_and_adopted_as_it_stands(self, rig: Rig) -> None:
        rig.quotas.create_quota(ARN, "a-quota", instances(2), TARGET)
        made = rig.find("clusterqueues", Rig.queue)
        local = rig.find("localqueues", f"{NAMESPACE}-localqueue", NAMESPACE)
        assert made is not None
        assert local is not None
        rig.quotas.delete_quota(ID)
        rig.settle()
        rig.put(*(bare(one) for one in (made, local)))
        foreign = rig.quota()
        assert (foreign.status, foreign.compute_quota_config.compute_quota_resources) == (
            FOREIGN,
            instances(2).compute_quota_resources,
        )
        with pytest.raises(ConflictError, match="adopt it"):
            rig.quotas.update_quota(ID, foreign.compute_quota_version, instances(1), TARGET)
        with pytest.raises(ConflictError, match="adopt it"):
            rig.quotas.create_quota(ARN, "a-quota", instances(1), TARGET)

        rig.quotas.adopt(foreign)
        adopted = rig.quota()
        assert adopted.status in {"Created", "Updated"}
        assert adopted.compute_quota_config == foreign.compute_quota_config
        rig.quotas.update_quota(ID, adopted.compute_quota_version, instances(1), TARGET)
        assert rig.quota().compute_quota_config.compute_quota_resources == instances(1).compute_quota_resources
        with pytest.raises(ConflictError, match="was not made by taskgov"):
            rig.quotas.delete_quota(ID)

    def test_a_queue_with_running_work_is_not_deleted_and_keeps_its_local_queue(self, rig: Rig) -> None:
        rig.quotas.create_quota(ARN, "a-quota", instances(2), TARGET)
        rig.quota()
        rig.submit(job_manifest("team-a", "job", {"nvidia.com/gpu": 1}, kind="Job"))
        rig.settle()
        with pytest.raises(ConflictError, match="hold quota"):
            rig.quotas.delete_quota(ID)
        assert rig.find("localqueues", f"{NAMESPACE}-localqueue", NAMESPACE) is not None

    def test_deleting_takes_the_queues_and_leaves_the_namespace(self, rig: Rig) -> None:
        rig.quotas.create_quota(ARN, "a-quota", instances(2), TARGET)
        rig.quotas.delete_quota(ID)
        rig.settle()
        assert rig.quotas.quotas(ARN) == ()
        assert rig.find("namespaces", NAMESPACE) is not None
        rig.quotas.delete_quota(ID)  # gone is fine
        with pytest.raises(NotFoundError):
            rig.quotas.quota(ID)

    def test_the_cluster_policy_is_kept_on_the_cohort_and_its_classes_in_the_cluster(self, rig: Rig) -> None:
        assert rig.quotas.scheduler_config(ARN) is None
        rig.quotas.create_scheduler_config(ARN, "policy", ranks(training=70, tuning=50))
        with pytest.raises(ConflictError):
            rig.quotas.create_scheduler_config(ARN, "policy", ranks())
        rig.quotas.create_quota(ARN, "a-quota", instances(1), TARGET)
        found = rig.quotas.scheduler_config(ARN)
        assert found is not None
        assert (found.scheduler_config, found.cluster_scheduler_config_version) == (ranks(training=70, tuning=50), 1)

        rig.quotas.update_scheduler_config(POLICY_ID, 1, ranks(training=80))
        changed = rig.find("workloadpriorityclasses", "training-priority")
        assert changed is not None
        assert changed["value"] == 80
        assert rig.find("workloadpriorityclasses", "tuning-priority") is None
        with pytest.raises(ConflictError, match="version 2, not 1"):
            rig.quotas.update_scheduler_config(POLICY_ID, 1, ranks(training=10))
        rig.delete("workloadpriorityclasses", "training-priority")
        drifted = rig.quotas.scheduler_config(ARN)
        assert drifted is not None
        assert drifted.scheduler_config.priority_classes == ()
        rig.quotas.delete_scheduler_config(POLICY_ID)
        assert rig.quotas.scheduler_config(ARN) is None

    def test_an_instance_type_that_is_unknown_is_refused_with_the_way_out(self, rig: Rig) -> None:
        unknown = ComputeQuotaConfig.model_validate(
            {"ComputeQuotaResources": [{"InstanceType": "ml.x9.huge", "Count": 1}]}
        )
        with pytest.raises(InvalidRequestError, match="instanceTypes"):
            rig.quotas.create_quota(ARN, "a-quota", unknown, TARGET)


def bare(item: Object) -> Object:
    """Return an object as somebody would apply it: without what taskgov or the server wrote on it."""
    metadata = {name: value for name, value in item["metadata"].items() if name in {"name", "namespace", "labels"}}
    return {name: item[name] for name in ("apiVersion", "kind", "spec")} | {"metadata": metadata}
