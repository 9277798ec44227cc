"""A cluster to try things on: its clock moves when told to, quotas are given directly."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from taskgov.hyperpod.model import (
    ComputeQuota,
    ComputeQuotaConfig,
    ComputeQuotaResource,
    ComputeQuotaTarget,
    PriorityClass,
    SchedulerConfig,
    Switch,
)
from taskgov.hyperpod.names import cluster_queue_of, namespace_of
from taskgov_embedded.cluster.manifests import JobKind, job_manifest
from taskgov_embedded.cluster.simulated import Pace, SimulatedCluster
from taskgov_embedded.cluster.states import job_state
from taskgov_embedded.sagemaker.cluster_port import GroupFact
from tests.support.kubectl_tables import Views

GPU = "nvidia.com/gpu"
RANKS = {"inference": 90, "experimentation": 80, "training": 70, "fine-tuning": 50}


def quota(
    team: str,
    *resources: dict[str, Any],
    strategy: str = "LendAndBorrow",
    limit: int | None = 50,
    weight: int = 0,
    preempt: str = "LowerPriority",
) -> ComputeQuota:
    """A compute quota as SageMaker describes it; `resources` in the API's own names."""
    sharing = {"Strategy": strategy, **({"BorrowLimit": limit} if strategy == "LendAndBorrow" else {})}
    return ComputeQuota(
        compute_quota_id=f"{team:0>12}",
        name=f"{team}-quota",
        compute_quota_version=1,
        status="Created",
        compute_quota_config=ComputeQuotaConfig.model_validate(
            {
                "ComputeQuotaResources": [ComputeQuotaResource.model_validate(one) for one in resources],
                "ResourceSharingConfig": sharing,
                "PreemptTeamTasks": preempt,
            }
        ),
        compute_quota_target=ComputeQuotaTarget(team_name=team, fair_share_weight=weight),
    )


def policy(ranks: dict[str, int] | None = None, *, fair: bool = True) -> SchedulerConfig:
    """A cluster policy; without `ranks` it has no priority classes."""
    classes = tuple(PriorityClass(name=name, weight=weight) for name, weight in (ranks or {}).items())
    return SchedulerConfig(priority_classes=classes, fair_share=Switch.ENABLED if fair else Switch.DISABLED)


@dataclass
class Lab:
    """One cluster, its clock, and short ways to do and see things."""

    pace: Pace = field(default_factory=Pace)
    moment: datetime = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)

    def __post_init__(self) -> None:
        self.cluster = SimulatedCluster("ml-cluster", lambda: self.moment, pace=self.pace)
        self.views = Views(self.cluster.store, lambda: self.moment)

    def nodes(self, instance_type: str, count: int, group: str = "workers") -> Lab:
        self.cluster.set_target(GroupFact(group, instance_type, count))
        return self

    def submit(
        self,
        team: str,
        name: str,
        *,
        pods: int = 1,
        priority: str | None = None,
        kind: JobKind = "PyTorchJob",
        run_seconds: int | None = None,
        **requests: str | int,
    ) -> None:
        """Submit a job and let ten seconds pass: enough for evictions, and submissions keep their order."""
        asked = {{"gpu": GPU}.get(resource, resource): amount for resource, amount in requests.items()}
        manifest = job_manifest(team, name, asked, kind=kind, pods=pods, priority=priority)
        self.cluster.submit(manifest, run_seconds=run_seconds)
        self.advance(10)

    def delete(self, team: str, name: str, kind: str = "PyTorchJob") -> None:
        self.cluster.delete_job(kind, namespace_of(team), name)
        self.advance(10)

    def advance(self, seconds: float) -> None:
        """Let time pass, stopping at each moment at which something happens."""
        end = self.moment + timedelta(seconds=seconds)
        while (due := self.cluster.next_due()) is not None and due <= end:
            self.moment = max(due, self.moment)
            self.cluster.settle()
        self.moment = end
        self.cluster.settle()

    def states(self) -> dict[str, str]:
        """Job name to what it is doing."""
        store = self.cluster.store
        plurals = ("pytorchjobs", "hyperpodpytorchjobs", "jobs")
        jobs = [job for plural in plurals for job in store.list(plural)]
        return {job["metadata"]["name"]: job_state(store, job) for job in jobs}

    def workload(self, team: str, name: str) -> dict[str, Any]:
        """The workload of a team whose name contains this."""
        [found] = [
            one for one in self.cluster.store.list("workloads", namespace_of(team)) if name in one["metadata"]["name"]
        ]
        return found

    def condition(self, team: str, name: str, kind: str) -> dict[str, str]:
        [found] = [one for one in self.workload(team, name)["status"]["conditions"] if one["type"] == kind]
        return dict(found)

    def used(self, team: str, resource: str = GPU, flavor: int = 0) -> tuple[str, str]:
        """Total and borrowed of a resource, as the team's ClusterQueue says."""
        status = self.cluster.store.get("clusterqueues", cluster_queue_of(team))["status"]
        [usage] = [one for one in status["flavorsUsage"][flavor]["resources"] if one["name"] == resource]
        return usage["total"], usage["borrowed"]

    def quotas_of(self, team: str, flavor: int = 0) -> dict[str, dict[str, str]]:
        """Resource name to nominal quota and borrowing limit."""
        spec = self.cluster.store.get("clusterqueues", cluster_queue_of(team))["spec"]
        resources = spec["resourceGroups"][0]["flavors"][flavor]["resources"]
        return {one["name"]: {name: value for name, value in one.items() if name != "name"} for one in resources}

    def not_governed(self) -> list[str]:
        """The jobs (`namespace/name`) whose queue is named where Kueue does not look."""
        warnings = [event for event in self.cluster.store.list("events") if event["reason"] == "NotGoverned"]
        return [f"{event['metadata']['namespace']}/{event['involvedObject']['name']}" for event in warnings]

    def pods(self, team: str) -> dict[str, str]:
        """Pod name to phase."""
        return {
            pod["metadata"]["name"]: pod["status"]["phase"]
            for pod in self.cluster.store.list("pods", namespace_of(team))
        }

    def preemptions(self) -> list[tuple[str, str]]:
        """Who was preempted and why, in order: `(workload without its hash, reason)`."""
        return [
            (one.workload.rpartition("/")[2].rpartition("-")[0], one.reason)
            for result in self.cluster.cycles
            for one in result.preempted
        ]
