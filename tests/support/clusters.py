"""A governed cluster as the world shows it: quotas in SageMaker, queues and workloads in Kueue, nodes in both."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from taskgov.hyperpod.instance_types import KNOWN_TYPES, InstanceTypeTable
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota, SchedulerConfig, Switch
from taskgov.kueue.render import render
from taskgov.scheduling.reasons import preempted_message
from taskgov.services.failures import Raised
from taskgov.services.keep_work import KeepWork
from taskgov.services.publish_usage import PublishUsage
from taskgov.services.series_cap import DEFAULT_LIMIT, SeriesCap
from taskgov.services.take_snapshot import TakeSnapshot
from taskgov.services.team_pages import TeamPages
from taskgov.services.tell_teams import TellTeams
from taskgov.snapshot.model import KueueObjects, Snapshot
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    FixedClock,
    FixedKubernetes,
    InMemoryDocuments,
    InMemoryHyperPod,
    InMemoryState,
    RecordingBus,
    RecordingMeter,
    RecordingNotices,
    RecordingTopics,
)

GPU = "nvidia.com/gpu"
G5 = "ml.g5.12xlarge"
"""48 vCPU, 192 GiB, 4 GPUs, 1 EFA interface."""


@dataclass
class GovernedCluster:
    """Say what there is, then take its snapshot or give it to a use case."""

    hyperpod: InMemoryHyperPod = field(default_factory=InMemoryHyperPod)
    documents: InMemoryDocuments = field(default_factory=InMemoryDocuments)
    state: InMemoryState = field(default_factory=InMemoryState)
    clock: FixedClock = field(default_factory=FixedClock)
    kubernetes: FixedKubernetes = field(default_factory=FixedKubernetes)
    used: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    workloads: list[dict[str, Any]] = field(default_factory=list)

    def with_fair_share(self, switch: Switch = Switch.ENABLED) -> "GovernedCluster":
        self.hyperpod.config = ClusterSchedulerConfig(
            cluster_scheduler_config_id="schedconf001",
            name="cluster-policy",
            cluster_scheduler_config_version=1,
            status="Created",
            cluster_arn=CLUSTER_ARN,
            scheduler_config=SchedulerConfig(fair_share=switch),
        )
        return self

    def with_team(
        self,
        team: str,
        count: int = 1,
        *,
        weight: int = 10,
        borrow_limit: int = 100,
        strategy: str = "LendAndBorrow",
        instance_type: str = G5,
        used: dict[str, str] | None = None,
    ) -> "GovernedCluster":
        """Add a team with a quota of whole instances; `used` is resource -> quantity."""
        quota = ComputeQuota.model_validate(
            {
                "ComputeQuotaId": f"quota{len(self.hyperpod.stored):07}",
                "Name": f"quota-{team}",
                "ComputeQuotaVersion": 1,
                "Status": "Created",
                "ClusterArn": CLUSTER_ARN,
                "ComputeQuotaConfig": {
                    "ComputeQuotaResources": [{"InstanceType": instance_type, "Count": count}],
                    "ResourceSharingConfig": {"Strategy": strategy, "BorrowLimit": borrow_limit},
                },
                "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": weight},
            }
        )
        self.hyperpod.stored[quota.compute_quota_id] = quota
        self.used[team] = {instance_type: used or {}}
        return self

    def with_nodes(self, count: int, *, ready: bool = True, instance_type: str = G5) -> "GovernedCluster":
        first = len(self.kubernetes.node_objects)
        for number in range(first, first + count):
            instance_id = f"i-{number:017x}"
            self.kubernetes.node_objects.append(_node(instance_id, instance_type, ready=ready))
            summary = {
                "InstanceGroupName": "workers",
                "InstanceId": instance_id,
                "InstanceType": instance_type,
                "InstanceStatus": {"Status": "Running"},
                "LaunchTime": NOON - timedelta(days=1),
            }
            self.hyperpod.nodes.append(summary)
        return self

    def with_waiting(self, name: str, team: str, *, gpus: int, minutes: int = 10) -> "GovernedCluster":
        self.workloads.append(_workload(name, team, gpus, NOON - timedelta(minutes=minutes)))
        return self

    def with_preempted(
        self,
        name: str,
        team: str,
        *,
        by: str,
        gpus: int,
        reason: str = "InCohortReclamation",
        minutes: int = 5,
        ran_minutes: int | None = 60,
    ) -> "GovernedCluster":
        """Add a workload that was preempted; `ran_minutes` is None once it has released its quota."""
        at = NOON - timedelta(minutes=minutes)
        paths = (f"/shared-pool/hyperpod-ns-{one}-clusterqueue" for one in (by, team))
        workload = _workload(name, team, gpus, at - timedelta(days=1))
        message = preempted_message(reason, "uid-preemptor", "job-preemptor", *paths)
        conditions = [
            _condition("Evicted", at, "Preempted", message),
            _condition("Preempted", at, reason, message),
        ]
        if ran_minutes is not None:
            since = at - timedelta(minutes=ran_minutes)
            conditions += [
                _condition("QuotaReserved", since, "QuotaReserved"),
                _condition("Admitted", since, "Admitted"),
            ]
        workload["status"]["conditions"] = conditions
        self.workloads.append(workload)
        return self

    def take_snapshot(self) -> TakeSnapshot:
        """Return the use case over this world."""
        self.kubernetes.kueue = self._kueue()
        return TakeSnapshot(self.hyperpod, self.kubernetes, self.documents, self.state, self.clock)

    def publish_usage(self, **recorders: Any) -> PublishUsage:
        """Return the use case over this world: it records what it tells, and raises what it reports as a failure."""
        told: dict[str, Any] = {
            "bus": RecordingBus(),
            "notices": RecordingNotices(),
            "meter": RecordingMeter(),
            "failures": Raised(),
            "governed": lambda: lambda _: True,
            "follow_workloads": None,
            "keep_work": KeepWork(self.documents, Raised(), timedelta(minutes=1)),
        } | recorders
        told.setdefault("write_pages", TeamPages(self.documents, told["failures"]).write)
        limit = told.pop("max_series", DEFAULT_LIMIT)
        topics = told.pop("topics", RecordingTopics())
        return PublishUsage(
            take_snapshot=self.take_snapshot(),
            backends=self.hyperpod,
            documents=self.documents,
            state=self.state,
            clock=self.clock,
            tell_teams=TellTeams(self.documents, self.state, told["bus"], topics, self.clock),
            cap=SeriesCap(self.documents, told["failures"], limit),
            **told,
        )

    def snapshot(self) -> Snapshot:
        return self.take_snapshot()(CLUSTER_ARN)

    def _kueue(self) -> KueueObjects:
        config = self.hyperpod.config.scheduler_config if self.hyperpod.config else None
        rendered = render(self.hyperpod.stored.values(), config, InstanceTypeTable())
        by_name = {f"hyperpod-ns-{team}-clusterqueue": used for team, used in self.used.items()}
        queues = tuple(
            {**queue, "status": _status(by_name.get(queue["metadata"]["name"], {}))}
            for queue in rendered.cluster_queues
        )
        return KueueObjects(
            resource_flavors=rendered.resource_flavors,
            cluster_queues=tuple(queues),
            local_queues=rendered.local_queues,
            priority_classes=rendered.priority_classes,
            workloads=tuple(self.workloads),
        )


def _status(used: dict[str, dict[str, str]]) -> dict[str, Any]:
    def resources(some: dict[str, str]) -> list[dict[str, str]]:
        return [{"name": name, "total": total, "borrowed": "0"} for name, total in some.items()]

    return {"flavorsReservation": [{"name": flavor, "resources": resources(some)} for flavor, some in used.items()]}


def _node(instance_id: str, instance_type: str, *, ready: bool) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"hyperpod-{instance_id}",
            "creationTimestamp": "2026-11-20T08:00:00Z",
            "labels": {
                "node.kubernetes.io/instance-type": instance_type,
                "sagemaker.amazonaws.com/node-health-status": "Schedulable",
            },
        },
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "allocatable": _allocatable(instance_type) if ready else {},
        },
    }


def _allocatable(instance_type: str) -> dict[str, str]:
    """Return what a node of the type offers: Kubernetes keeps a little of the cpu and the memory for itself."""
    numbers = KNOWN_TYPES[instance_type]
    kept = {"cpu": f"{numbers.vcpu * 1000 - 190}m", "memory": f"{int(numbers.memory_gib) - 2}Gi"}
    return kept | ({GPU: str(numbers.gpu)} if numbers.gpu else {})


def _workload(name: str, team: str, gpus: int, created: datetime) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {GPU: str(gpus), "cpu": "4"}, "limits": {GPU: str(gpus)}}}
    return {
        "metadata": {
            "name": name,
            "namespace": f"hyperpod-ns-{team}",
            "uid": f"uid-{name}",
            "creationTimestamp": _at(created),
        },
        "spec": {
            "queueName": f"hyperpod-ns-{team}-localqueue",
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}],
        },
        "status": {"conditions": []},
    }


def _condition(kind: str, since: datetime, reason: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": _at(since)}


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
