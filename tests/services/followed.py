"""A cluster whose API server really answers over HTTP, looked at by two who publish: one follows, one lists all."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import yaml
from kubernetes import client

from taskgov.adapters.kubernetes import KubernetesReader
from taskgov.adapters.kubernetes.following import KueueFollower
from taskgov.contracts.steps import PublishUsageRequest
from taskgov.scheduling.reasons import preempted_message
from taskgov.services.follow_workloads import KEY, FollowWorkloads
from taskgov.work import memory as work_memory
from tests.support.clusters import G5, GPU, GovernedCluster, _at, _condition, _workload
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    FixedClock,
    InMemoryDocuments,
    InMemoryState,
    RecordingBus,
    RecordingFailures,
    RecordingMeter,
    RecordingTopics,
)

if TYPE_CHECKING:
    from taskgov.ports import ClusterAccess
    from taskgov_embedded.cluster.api_server import ClusterApiServer
    from taskgov_embedded.cluster.objects import ObjectStore

MEMORY = KEY.format("ml-cluster")
TEAMS = ("team-a", "team-b", "team-c")
TYPES = (G5, "ml.g5.8xlarge")
TOPIC = "arn:aws:sns:us-east-1:111122223333:taskgov-team-"


@dataclass
class Connections:
    """Opens the API server, whatever the cluster is called."""

    url: str

    def open(self, cluster: ClusterAccess) -> client.ApiClient:
        configuration = client.Configuration(host=self.url)
        configuration.proxy = None
        return client.ApiClient(configuration)


class Follower(KueueFollower):
    """It follows few workloads too, and none."""

    list_up_to = -1


@dataclass
class Publisher:
    """Somebody who publishes each minute, with a bucket, a table and a bus of its own."""

    world: World
    follows: bool
    documents: InMemoryDocuments = field(default_factory=InMemoryDocuments)
    state: InMemoryState = field(default_factory=InMemoryState)
    bus: RecordingBus = field(default_factory=RecordingBus)
    topics: RecordingTopics = field(default_factory=RecordingTopics)
    meter: RecordingMeter = field(default_factory=RecordingMeter)
    failures: RecordingFailures = field(default_factory=RecordingFailures)
    follow: FollowWorkloads | None = None
    """What follows the workloads in this process; None in a new one."""

    def publish(self) -> None:
        """Publish a minute."""
        cluster = replace(self.world.cluster, documents=self.documents, state=self.state, clock=self.world.clock)
        recorders = {"bus": self.bus, "topics": self.topics, "meter": self.meter, "failures": self.failures}
        use_case = cluster.publish_usage(**recorders)
        connections: Any = Connections(self.world.server.url)
        taken = replace(use_case.take_snapshot, kubernetes=KubernetesReader(connections))
        if self.follow is None and self.follows:
            self.follow = FollowWorkloads(Follower(connections), self.documents, self.meter, self.world.clock)
        replace(use_case, take_snapshot=taken, follow_workloads=self.follow)(PublishUsageRequest())
        assert self.failures.reported == []

    def drained(self) -> tuple[Any, ...]:
        """Return what was published since it was asked last, but how it was read."""
        measured = [value for value in self.meter.recorded if value[1].name != "WorkloadsRelisted"]
        found = (measured, [*self.bus.published], [*self.topics.sent], self.stored())
        self.meter.recorded.clear()
        self.bus.published.clear()
        self.topics.sent.clear()
        return found

    def stored(self) -> dict[str, bytes]:
        """Return what it remembers, but of workloads and of work: who follows also sees what was between two looks."""
        kept = self.documents.stored.items()
        own = (MEMORY, work_memory.KEY.format("ml-cluster"))
        return {key: body for key, body in kept if key not in own and not key.startswith("work/")}

    def relisted(self) -> list[str]:
        """Return why it had to list all, for each minute that was to follow; "" where it followed."""
        return [
            str(value.properties.get("why", ""))
            for _, value in self.meter.recorded
            if value.name == "WorkloadsRelisted"
        ]

    def objects_read(self) -> list[float]:
        """Return how many workloads each minute read that followed."""
        return [
            float(value.properties["objectsRead"])
            for _, value in self.meter.recorded
            if value.name == "WorkloadsRelisted" and not value.value
        ]


class World:
    """The cluster, and what happens to its work."""

    def __init__(self, server: ClusterApiServer, store: ObjectStore, clock: FixedClock, seed: int = 0) -> None:
        self.server, self.store, self.clock = server, store, clock
        self.chance = random.Random(seed)  # noqa: S311 - what happens, not a secret
        self.cluster = GovernedCluster().with_fair_share().with_nodes(3)
        for team in TEAMS:
            self.cluster.with_team(team, used={GPU: "6" if team == "team-a" else "1"})
        self.cluster.take_snapshot()  # which renders Kueue's objects
        for item in self.cluster.kubernetes.node_objects:
            store.apply({"kind": "Node", "apiVersion": "v1", **item})
        kueue: Any = self.cluster.kubernetes.kueue
        for item in (*kueue.resource_flavors, *kueue.cluster_queues, *kueue.local_queues, *kueue.priority_classes):
            store.apply(item)
        self._serial = 0

    def publisher(self, *, follows: bool) -> Publisher:
        """Return somebody who publishes."""
        made = Publisher(self, follows)
        made.documents.stored["policies/ml-cluster.yaml"] = yaml.safe_dump(_document()).encode()
        return made

    # What happens to work.

    def create(self) -> dict[str, Any]:
        self._serial += 1
        return self.write(self._new(f"job-{self._serial}"))

    def write(self, item: dict[str, Any]) -> dict[str, Any]:
        return dict(self.store.apply({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", **item}))

    def _new(self, name: str) -> dict[str, Any]:
        created = self.clock.at - timedelta(minutes=self.chance.randrange(40))
        item = _workload(name, self.chance.choice(TEAMS), self.chance.choice((0, 1, 4, 8)), created)
        item["metadata"]["uid"] = f"uid-{name}-{self.chance.randrange(10**6)}"
        item["metadata"]["labels"] = {"kueue.x-k8s.io/job-uid": f"job-{name}"}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{name}-owner", "uid": "u", "controller": True}
        item["metadata"]["ownerReferences"] = self.chance.choice(([owner], []))
        pods = item["spec"]["podSets"][0]
        pods["count"] = self.chance.randrange(1, 4)
        selected = self.chance.choice((*TYPES, None))
        if selected:
            pods["template"]["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": selected}
        item["spec"]["priority"] = self.chance.randrange(3) * 10
        return item

    def some(self) -> dict[str, Any] | None:
        """Return a copy of some workload."""
        found = self.store.list("workloads")
        return yaml.safe_load(yaml.safe_dump(self.chance.choice(found))) if found else None

    def change(self) -> None:
        """Let something happen to some workload, or a new one come."""
        item = self.some()
        happens = self.chance.choice(HAPPENINGS)
        if item is None or happens is World.create:
            self.create()
        elif isinstance(item["spec"], dict) or happens in (World.delete, World.replace):
            happens(self, item)
        else:
            self.write(self._new(item["metadata"]["name"]))

    def reserve(self, item: dict[str, Any]) -> None:
        self._conditions(item, "QuotaReserved", "Admitted", without=("Evicted", "Preempted"))

    def preempt(self, item: dict[str, Any]) -> None:
        by = self.some() or item
        at = self.clock.at - timedelta(minutes=self.chance.randrange(30))
        paths = (f"/shared-pool/hyperpod-ns-{team}-clusterqueue" for team in ("team-b", "team-a"))
        message = preempted_message("InCohortReclamation", by["metadata"]["uid"], "job-uid", *paths)
        kept = [c for c in item["status"].get("conditions", ()) if c["type"] not in {"Preempted", "Evicted"}]
        new = [
            _condition("Evicted", at, "Preempted", message),
            _condition("Preempted", at, "InCohortReclamation", message),
        ]
        stats = {"evictions": [{"reason": "Preempted", "count": self.chance.choice((1, 1, 2))}]}
        status = {"conditions": [*kept, *new], "schedulingStats": stats, "accumulatedPastExecutionTimeSeconds": 90}
        self.write({**item, "status": status})

    def requeue(self, item: dict[str, Any]) -> None:
        self._conditions(item, without=("QuotaReserved", "Admitted"))

    def finish(self, item: dict[str, Any]) -> None:
        self._conditions(item, "Finished")

    def deactivate(self, item: dict[str, Any]) -> None:
        self.write({**item, "spec": {**item["spec"], "active": not item["spec"].get("active", True)}})

    def touch(self, item: dict[str, Any]) -> None:
        note = {"example.com/note": str(self.chance.random())}
        self.write({**item, "metadata": {**item["metadata"], "annotations": note}})

    def damage(self, item: dict[str, Any]) -> None:
        self.write(
            {**item, "spec": self.chance.choice(({"podSets": "none"}, {"podSets": [{"count": "many"}]}, "none"))}
        )

    def delete(self, item: dict[str, Any]) -> None:
        self.store.delete("workloads", item["metadata"]["name"], item["metadata"]["namespace"])

    def replace(self, item: dict[str, Any]) -> None:
        self.delete(item)
        self.write(self._new(item["metadata"]["name"]))

    def _conditions(self, item: dict[str, Any], *kinds: str, without: tuple[str, ...] = ()) -> None:
        kept = [c for c in (item.get("status") or {}).get("conditions", ()) if c["type"] not in {*kinds, *without}]
        new = [_condition(kind, self.clock.at, kind) for kind in kinds]
        self.write({**item, "status": {"conditions": [*kept, *new]}})


HAPPENINGS: Any = (
    *(World.create,) * 3,
    World.reserve,
    World.preempt,
    World.requeue,
    World.finish,
    World.deactivate,
    World.touch,
    World.damage,
    World.delete,
    World.replace,
)


def _document() -> dict[str, Any]:
    lease = {
        "from": "team-b",
        "to": "team-a",
        "instanceType": G5,
        "count": 1,
        "start": _at(NOON - timedelta(hours=1)),
        "end": _at(NOON + timedelta(days=1)),
        "reason": "a deadline",
    }
    return {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml-cluster", "arn": CLUSTER_ARN},
        "teams": [
            {"name": name, "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 1}]}} for name in TEAMS
        ],
        "leases": [lease],
        "demand": {"enabled": True},
        "notices": {"everyTeam": f"{TOPIC}{{team}}", "pendingMinutes": 10, "starvedMinutes": 1},
    }
