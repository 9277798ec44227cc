"""What holds of every backend: the clauses of `ClusterBackend`, each a sentence.

A rig is a cluster of one backend with its world: how its writes settle, what its service refuses, what it cannot read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.backends.registry import BACKENDS
from taskgov.errors import ConflictError, InvalidRequestError, NotFoundError, ThrottledError, UpstreamError
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov.hyperpod.model import ComputeQuota
    from taskgov.policy.backends import Backend
    from taskgov.ports import ClusterBackend, Written
    from taskgov.snapshot.unreadable import UnreadableObject

G5 = "ml.g5.8xlarge"
TEAM = ComputeQuotaTarget(team_name="team-a", fair_share_weight=10)
SETTLED = {"Created", "Updated"}


@dataclass(frozen=True, slots=True)
class Rig:
    """A cluster of one backend, and what its world does to it."""

    name: Backend
    backend: ClusterBackend
    arn: str
    other_arn: str
    """Of the same kind, and of no cluster."""
    settle: Callable[[], None]
    """Let writes settle."""
    answer: Callable[[int], None]
    """Let the next call to the service fail: throttled (429), refused access (403), or an outage (500)."""
    refuse_writes: Callable[[], None]
    """Let the service refuse the next write for good."""
    spoil: Callable[[], None]
    """Make the quota of team-a one that cannot be read."""

    def create(self, count: int = 2, team: ComputeQuotaTarget = TEAM) -> Written:
        """Create a team's quota, settled."""
        written = self.backend.create_quota(self.arn, f"{team.team_name}-quota", instances(count), team)
        self.settle()
        return written

    def update(self, quota_id: str, version: int, count: int) -> Written:
        """Update it, settled."""
        written = self.backend.update_quota(quota_id, version, instances(count), TEAM)
        self.settle()
        return written

    def only_quota(self) -> ComputeQuota:
        """Return the one quota that there is."""
        (quota,) = self.backend.quotas(self.arn)
        return quota


def instances(count: int, instance_type: str = G5) -> ComputeQuotaConfig:
    """Return a quota of whole instances."""
    return ComputeQuotaConfig.model_validate(
        {"ComputeQuotaResources": [{"InstanceType": instance_type, "Count": count}]}
    )


def ranks(**weights: int) -> SchedulerConfig:
    """Return a cluster policy with these priority classes."""
    classes: list[dict[str, Any]] = [{"Name": name, "Weight": weight} for name, weight in weights.items()]
    return SchedulerConfig.model_validate({"PriorityClasses": classes, "FairShare": "Enabled"})


class BackendContract:
    """The clauses; a subclass gives the fixture `rig`."""

    def test_exactly_one_row_of_the_registry_recognises_a_cluster_and_the_ids_of_what_it_keeps(self, rig: Rig) -> None:
        policy = rig.backend.create_scheduler_config(rig.arn, "policy", ranks(training=70))
        for arn_or_id in (rig.arn, rig.create().resource_id, policy.resource_id):
            assert [row.name for row in BACKENDS if row.recognises(arn_or_id)] == [rig.name]

    def test_it_lists_its_cluster_and_recognizes_it_and_no_other(self, rig: Rig) -> None:
        assert rig.backend.clusters() == [rig.arn]
        assert (rig.backend.knows(rig.arn), rig.backend.knows(rig.other_arn)) == (True, False)

    def test_a_cluster_is_described_by_name_and_by_arn_with_the_eks_cluster_that_orchestrates_it(
        self, rig: Rig
    ) -> None:
        described = rig.backend.describe_cluster(rig.arn)
        assert rig.backend.describe_cluster(described["ClusterName"])["ClusterArn"] == rig.arn
        assert described["ClusterStatus"] == "InService"
        assert described["Orchestrator"]["Eks"]["ClusterArn"].startswith("arn:aws:eks:")

    def test_a_name_that_no_cluster_has_is_not_found(self, rig: Rig) -> None:
        with pytest.raises(NotFoundError):
            rig.backend.describe_cluster("nobody")

    def test_a_cluster_without_quotas_has_none_and_no_policy(self, rig: Rig) -> None:
        assert rig.backend.quotas(rig.arn) == ()
        assert rig.backend.scheduler_config(rig.arn) is None

    def test_a_created_quota_is_version_one_and_is_read_back_as_asked(self, rig: Rig) -> None:
        written = rig.create(2)
        assert written.version == 1
        quota = rig.only_quota()
        assert quota == rig.backend.quota(written.resource_id)
        assert (quota.compute_quota_id, quota.compute_quota_version) == (written.resource_id, 1)
        assert (quota.name, quota.cluster_arn, quota.status) == ("team-a-quota", rig.arn, "Created")
        assert quota.compute_quota_config.compute_quota_resources == instances(2).compute_quota_resources
        assert quota.compute_quota_target == TEAM

    def test_quotas_are_listed_by_name(self, rig: Rig) -> None:
        for team in ("team-c", "team-b"):
            rig.create(1, ComputeQuotaTarget(team_name=team, fair_share_weight=0))
        assert [quota.name for quota in rig.backend.quotas(rig.arn)] == ["team-b-quota", "team-c-quota"]

    def test_a_second_quota_of_a_team_is_a_conflict_and_changes_nothing(self, rig: Rig) -> None:
        rig.create(2)
        with pytest.raises(ConflictError):
            rig.create(1)
        assert rig.only_quota().compute_quota_config.compute_quota_resources == instances(2).compute_quota_resources

    def test_each_update_is_a_greater_version_that_the_quota_then_has(self, rig: Rig) -> None:
        written = rig.create(2)
        versions = [written.version]
        for count in (1, 3):
            versions.append(rig.update(written.resource_id, versions[-1], count).version)
            quota = rig.only_quota()
            assert (quota.compute_quota_version, quota.status) == (versions[-1], "Updated")
            assert quota.compute_quota_config.compute_quota_resources == instances(count).compute_quota_resources
        assert versions == sorted(set(versions))

    def test_an_update_at_a_stale_version_is_a_conflict_and_changes_nothing(self, rig: Rig) -> None:
        written = rig.create(2)
        rig.update(written.resource_id, 1, 1)
        with pytest.raises(ConflictError):
            rig.update(written.resource_id, 1, 3)
        assert rig.only_quota().compute_quota_config.compute_quota_resources == instances(1).compute_quota_resources

    def test_a_deleted_quota_is_gone_from_the_list_and_not_found(self, rig: Rig) -> None:
        written = rig.create(2)
        rig.backend.delete_quota(written.resource_id)
        rig.settle()
        assert rig.backend.quotas(rig.arn) == ()
        with pytest.raises(NotFoundError):
            rig.backend.quota(written.resource_id)

    def test_an_update_of_a_quota_that_is_gone_is_not_found(self, rig: Rig) -> None:
        written = rig.create(2)
        rig.backend.delete_quota(written.resource_id)
        rig.settle()
        with pytest.raises(NotFoundError):
            rig.update(written.resource_id, 1, 1)

    def test_the_cluster_policy_is_written_read_and_replaced_only_at_its_version(self, rig: Rig) -> None:
        written = rig.backend.create_scheduler_config(rig.arn, "policy", ranks(training=70, tuning=50))
        rig.settle()
        found = rig.backend.scheduler_config(rig.arn)
        assert found is not None
        assert found == rig.backend.scheduler_config_by_id(written.resource_id)
        assert (found.scheduler_config, found.cluster_scheduler_config_version) == (ranks(training=70, tuning=50), 1)
        again = rig.backend.update_scheduler_config(written.resource_id, 1, ranks(training=80))
        rig.settle()
        with pytest.raises(ConflictError):
            rig.backend.update_scheduler_config(written.resource_id, 1, ranks(training=10))
        found = rig.backend.scheduler_config(rig.arn)
        assert found is not None
        assert (found.scheduler_config, found.cluster_scheduler_config_version) == (ranks(training=80), again.version)
        assert again.version > 1

    def test_a_second_cluster_policy_is_a_conflict(self, rig: Rig) -> None:
        rig.backend.create_scheduler_config(rig.arn, "policy", ranks(training=70))
        rig.settle()
        with pytest.raises(ConflictError):
            rig.backend.create_scheduler_config(rig.arn, "policy", ranks(training=70))

    def test_a_deleted_cluster_policy_is_none_and_not_found(self, rig: Rig) -> None:
        written = rig.backend.create_scheduler_config(rig.arn, "policy", ranks(training=70))
        rig.settle()
        rig.backend.delete_scheduler_config(written.resource_id)
        rig.settle()
        assert rig.backend.scheduler_config(rig.arn) is None
        with pytest.raises(NotFoundError):
            rig.backend.scheduler_config_by_id(written.resource_id)

    @pytest.mark.parametrize(("code", "error"), [(429, ThrottledError), (500, UpstreamError)])
    def test_a_list_that_is_throttled_or_fails_says_which(self, code: int, error: type[Exception], rig: Rig) -> None:
        rig.answer(code)
        with pytest.raises(error):
            rig.backend.quotas(rig.arn)

    def test_access_that_is_refused_is_an_upstream_error_that_says_so(self, rig: Rig) -> None:
        rig.answer(403)
        with pytest.raises(UpstreamError) as caught:
            rig.backend.quotas(rig.arn)
        assert caught.value.refusal == "access-denied"

    def test_a_write_that_the_service_refuses_for_good_is_an_invalid_request_and_changes_nothing(
        self, rig: Rig
    ) -> None:
        rig.refuse_writes()
        with pytest.raises(InvalidRequestError):
            rig.backend.create_quota(rig.arn, "team-a-quota", instances(1, "ml.x9.huge"), TEAM)
        assert rig.backend.quotas(rig.arn) == ()

    def test_a_quota_that_cannot_be_read_is_handed_over_and_the_others_are_listed(self, rig: Rig) -> None:
        rig.create(2)
        rig.create(1, ComputeQuotaTarget(team_name="team-b", fair_share_weight=0))
        rig.spoil()
        unreadable: list[UnreadableObject] = []
        assert [quota.name for quota in rig.backend.quotas(rig.arn, unreadable.append)] == ["team-b-quota"]
        assert [found.kind for found in unreadable] == ["ComputeQuota"]
        with pytest.raises(UpstreamError, match="ComputeQuota"):
            rig.backend.quotas(rig.arn)

    def test_a_tag_is_set_read_and_taken_away_beside_the_others(self, rig: Rig) -> None:
        rig.backend.put_tag(rig.arn, "owner", "ml-platform")
        rig.backend.put_tag(rig.arn, "taskgov:stack:a", "2026-11-20T12:00:00+00:00")
        rig.backend.remove_tag(rig.arn, "owner")
        rig.backend.remove_tag(rig.arn, "owner")  # gone is fine
        assert rig.backend.tags(rig.arn) == {"taskgov:stack:a": "2026-11-20T12:00:00+00:00"}

    def test_lost_machines_are_listed_with_the_nodes_or_asked_about(self, rig: Rig) -> None:
        assert rig.backend.asks_about_machines(rig.arn) == (rig.backend.cluster_nodes(rig.arn) == [])
