"""Builders of work on the queues of a cluster, as the API server would show both."""

from typing import Any

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota, SchedulerConfig
from taskgov.kueue.render import render
from taskgov.scheduling import KueueModel, settle
from taskgov.snapshot.model import KueueObjects

SCHEDULER = ClusterSchedulerConfig(
    cluster_scheduler_config_id="scheduler0001",
    name="policy",
    cluster_scheduler_config_version=1,
    status="Created",
    scheduler_config=SchedulerConfig.model_validate({"FairShare": "Disabled"}),
)


def job(team: str, name: str, instances: int, *, minute: int = 0, priority: int = 0) -> dict[str, Any]:
    """A workload of pods that take one ml.g5.8xlarge GPU each."""
    requests = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}
    containers = [{"name": "main", "resources": {"requests": requests}}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": f"hyperpod-ns-{team}",
            "uid": f"uid-{name}",
            "creationTimestamp": f"2026-11-20T09:{minute:02}:00Z",
        },
        "spec": {
            "queueName": f"hyperpod-ns-{team}-localqueue",
            "active": True,
            "priority": priority,
            "podSets": [{"name": "main", "count": instances, "template": {"spec": {"containers": containers}}}],
        },
    }


def queues(quotas: list[ComputeQuota], *jobs: dict[str, Any]) -> KueueObjects:
    """Let the jobs run on queues made from the quotas, and return what the API server would then show."""
    rendered = render(quotas, SCHEDULER.scheduler_config, InstanceTypeTable())
    world = KueueModel()
    world.load([*rendered.in_order(), *jobs])
    settle(world, "2026-11-20T10:00:00Z")
    return KueueObjects(
        resource_flavors=rendered.resource_flavors,
        cluster_queues=tuple(
            {**queue, "status": world.cluster_queue(queue["metadata"]["name"])["status"]}
            for queue in rendered.cluster_queues
        ),
        local_queues=rendered.local_queues,
        priority_classes=rendered.priority_classes,
        workloads=tuple(world.workload(key) for key in sorted(world.workloads())),
    )
