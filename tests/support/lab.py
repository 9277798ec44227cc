"""A governed cluster whose scheduler really decided: submit work, let time pass, take the snapshot.

Quotas become queues by the rendering, the scheduling model admits, borrows and preempts; what its API server would show
goes into the snapshot, so that status, conditions and usage agree with one another.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    PriorityClass,
    SchedulerConfig,
    Switch,
)
from taskgov.hyperpod.names import NAMESPACE_NAME_LABEL, local_queue_of, namespace_of
from taskgov.kueue.render import manager_configuration, render
from taskgov.scheduling import KueueModel, ManagerConfig, settle
from taskgov.snapshot.model import ClusterFacts, KueueObjects, Node, Snapshot
from tests.support.memory import CLUSTER_ARN, NOON

if TYPE_CHECKING:
    from taskgov.policy.document import PolicyDocument

GPU = "nvidia.com/gpu"
G5 = "ml.g5.8xlarge"
"""1 GPU, 32 vCPU, 128 GiB."""
P5 = "ml.p5.48xlarge"
"""8 GPUs, 192 vCPU, 2,048 GiB."""

Objects = list[dict[str, Any]]


class Lab:
    """Say which teams there are and what they submit, in order; `snapshot` is taken at noon."""

    def __init__(self, *, fair_share: bool = True, instance_type: str = G5) -> None:
        self.scheduler = SchedulerConfig(
            fair_share=Switch.ENABLED if fair_share else Switch.DISABLED,
            priority_classes=(
                PriorityClass(name="inference", weight=90),
                PriorityClass(name="training", weight=50),
            ),
        )
        self.instance_type = instance_type
        self.quotas: list[ComputeQuota] = []
        self.nodes: list[Node] = []
        self.policy: PolicyDocument | None = None
        self._world: KueueModel | None = None
        self._sources: dict[str, dict[str, Any]] = {}

    def team(
        self,
        name: str,
        count: int,
        *,
        borrow: int = 100,
        weight: int = 10,
        strategy: str = "LendAndBorrow",
        **more: Any,
    ) -> "Lab":
        """Add a team with a quota of whole instances."""
        limit = {"BorrowLimit": borrow} if strategy == "LendAndBorrow" else {}
        quota = {
            "ComputeQuotaId": f"quota{len(self.quotas):07}",
            "Name": f"quota-{name}",
            "ComputeQuotaVersion": 1,
            "Status": "Created",
            "ClusterArn": CLUSTER_ARN,
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": [{"InstanceType": self.instance_type, "Count": count}],
                "ResourceSharingConfig": {"Strategy": strategy} | limit,
                "PreemptTeamTasks": "LowerPriority",
            },
            "ComputeQuotaTarget": {"TeamName": name, "FairShareWeight": weight},
        }
        self.quotas.append(ComputeQuota.model_validate(quota | more))
        return self

    def machines(self, count: int, instance_type: str | None = None, **fields: Any) -> "Lab":
        """Add nodes that offer all that their type has."""
        kind = instance_type or self.instance_type
        first = len(self.nodes)
        usual: dict[str, Any] = {"found_healthy": True, "allocatable": InstanceTypeTable().require(kind).amounts()}
        self.nodes += [Node(f"hyperpod-i-{n:017x}", kind, **usual | fields) for n in range(first, first + count)]
        return self

    def submit(
        self,
        team: str,
        job: str,
        gpus: int = 1,
        *,
        pods: int = 1,
        priority: str = "training",
        ago: float = 60,
        **spec: Any,
    ) -> "Lab":
        """Let a team submit a job `ago` minutes before noon, and the scheduler decide."""
        now = NOON - timedelta(minutes=ago)
        self.put(workload(team, job, gpus, pods=pods, priority=priority, created=now, **spec))
        settle(self.world, now)
        return self

    def put(self, item: dict[str, Any]) -> "Lab":
        """Add any object, as it is."""
        self.world.apply(item)
        if item["kind"] == "Workload":
            self._sources[f"{item['metadata']['namespace']}/{item['metadata']['name']}"] = item
        return self

    @property
    def world(self) -> KueueModel:
        """The scheduler; from its first use on, the teams are fixed."""
        if self._world is None:
            self._world = KueueModel(ManagerConfig(fair_sharing=manager_configuration(self.scheduler).fair_sharing))
            self._world.load(self._rendered())
        return self._world

    def snapshot(self) -> Snapshot:
        """Return what a snapshot at noon holds."""
        objects = self._rendered()
        return Snapshot(
            cluster=ClusterFacts("ml-cluster", CLUSTER_ARN),
            taken_at=NOON,
            nodes=tuple(self.nodes),
            quotas=tuple(self.quotas),
            scheduler_config=ClusterSchedulerConfig(
                cluster_scheduler_config_id="schedconf001",
                name="cluster-policy",
                cluster_scheduler_config_version=1,
                status="Created",
                cluster_arn=CLUSTER_ARN,
                scheduler_config=self.scheduler,
            ),
            kueue=KueueObjects(
                resource_flavors=_of(objects, "ResourceFlavor"),
                cluster_queues=tuple(
                    {**each, "status": self.world.cluster_queue(each["metadata"]["name"])["status"]}
                    for each in _of(objects, "ClusterQueue")
                ),
                local_queues=_of(objects, "LocalQueue"),
                priority_classes=_of(objects, "WorkloadPriorityClass"),
                workloads=tuple({**self._sources[key], **self.world.workload(key)} for key in sorted(self._sources)),
            ),
            policy=self.policy,
            policy_version=None if self.policy is None else "v1",
        )

    def _rendered(self) -> Objects:
        rendered = render(self.quotas, self.scheduler, InstanceTypeTable())
        spaces = [
            {**each, "metadata": {**each["metadata"], "labels": {NAMESPACE_NAME_LABEL: each["metadata"]["name"]}}}
            for each in rendered.namespaces
        ]
        return [*spaces, *rendered.in_order()[len(spaces) :]]


def workload(
    team: str, job: str, gpus: int, *, pods: int = 1, priority: str = "training", created: datetime = NOON, **spec: Any
) -> dict[str, Any]:
    """Return the Workload of a PyTorchJob of `pods` pods with `gpus` each; `spec` adds to the pods' spec."""
    container = {"name": "main", "resources": {"requests": {GPU: str(gpus), "cpu": "4"}}}
    labels = {"kueue.x-k8s.io/priority-class": f"{priority}-priority"}
    owner = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "name": job,
        "uid": f"job-{job}",
        "controller": True,
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": f"pytorchjob-{job}-a1b2c",
            "namespace": namespace_of(team),
            "uid": f"uid-{job}",
            "creationTimestamp": f"{created:%Y-%m-%dT%H:%M:%SZ}",
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {
            "queueName": local_queue_of(team),
            "podSets": [{"name": "worker", "count": pods, "template": {"spec": {"containers": [container], **spec}}}],
        },
    }


def _of(objects: Objects, kind: str) -> tuple[dict[str, Any], ...]:
    return tuple(each for each in objects if each["kind"] == kind)
