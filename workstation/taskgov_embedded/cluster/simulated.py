"""The simulated EKS cluster behind a HyperPod cluster: one object to build, drive and inspect.

Everything is driven by explicit calls; time is whatever `now` says. After each change `settle` lets happen what would:
nodes join, the scheduler runs until nothing moves, jobs start and stop, pods are placed. What needs time (a node that
joins, a job that stops or ends) happens at the first `settle` at or after its moment; `next_due` names that moment, and
`at`, when given, is called with it so that a clock can come back.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov_embedded.cluster.addon import AddOn
from taskgov_embedded.cluster.controllers import JobControllers
from taskgov_embedded.cluster.fleet import Fleet
from taskgov_embedded.cluster.jobs import SUBMITTED
from taskgov_embedded.cluster.manager import KueueManager
from taskgov_embedded.cluster.objects import (
    KUEUE_GROUP,
    RESOURCE_TYPES,
    TYPE_OF_KIND,
    KubeObject,
    ObjectStore,
    ResourceType,
    defaulted,
)
from taskgov_embedded.cluster.server_side_apply import applied, created, updated
from taskgov_embedded.cluster.statuses import write_statuses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
    from taskgov.scheduling import CycleResult
    from taskgov_embedded.sagemaker.cluster_port import GroupFact, NodeFact, NodeStatus

MAX_ROUNDS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things take, in seconds of the cluster's clock."""

    join: int = 0
    """From the launch of an instance until its node is ready."""
    stop: int = 1
    """From an eviction until the job has stopped and its quota is free."""
    requeue: int = 1
    """From a change until those who could not be admitted are considered again: Kueue gathers changes for a second."""


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _in_turn(
    change: Callable[Concatenate[SimulatedCluster, _P], _R],
) -> Callable[Concatenate[SimulatedCluster, _P], _R]:
    """Let one thread at a time change the cluster: requests of its API and its own clock come from several."""

    @wraps(change)
    def changed(cluster: SimulatedCluster, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with cluster.turn:
            return change(cluster, *args, **kwargs)

    return changed


class SimulatedCluster:
    """Nodes, Kueue, jobs and pods of one cluster. It implements `ClusterPort`, the side that SageMaker sees.

    `allocatable` overrides, for an instance type, what nodes offer to pods (base units of `taskgov.quantities`).
    Without `add_on` the cluster has no Kueue until `install_add_on`.
    """

    def __init__(
        self,
        name: str,
        now: Callable[[], datetime],
        *,
        types: InstanceTypeTable | None = None,
        allocatable: Mapping[str, Mapping[str, int]] | None = None,
        pace: Pace | None = None,
        at: Callable[[datetime, Callable[[], None]], object] | None = None,
        add_on: bool = True,
    ) -> None:
        types, pace = types or InstanceTypeTable(), pace or Pace()
        self.name = name
        self.turn = threading.RLock()
        self.store = ObjectStore(now)
        self.fleet = Fleet(self.store, name, now, types, join_seconds=pace.join, allocatable=allocatable)
        self.cycles: list[CycleResult] = []
        self._manager = KueueManager(self.store, now, requeue_seconds=pace.requeue)
        self._add_on = AddOn(self.store, self._manager, types)
        if add_on:
            self._add_on.install()
        self._jobs = JobControllers(self.store, self._manager, now, eviction_seconds=pace.stop)
        self._at = at
        self._called_back_at: datetime | None = None

    # Governance

    @_in_turn
    def install_add_on(self) -> None:
        """Install the task governance add-on on a cluster that was made without it."""
        self._add_on.install()
        self.settle()

    def serves(self, kind: ResourceType) -> bool:
        """Return whether the cluster's API has a type: Kueue's come with the add-on."""
        definition = f"{kind.plural}.{kind.group}"
        return kind.group != KUEUE_GROUP or self.store.find("customresourcedefinitions", definition) is not None

    @_in_turn
    def govern(self, quotas: Iterable[ComputeQuota], scheduler: SchedulerConfig | None) -> None:
        """Let the add-on follow these quotas and this cluster policy."""
        self._add_on.follow(quotas, scheduler)
        self.settle()

    @_in_turn
    def configure_kueue(self, *, fair_sharing: bool) -> None:
        """Run Kueue's manager so, where no add-on does it."""
        self._manager.configure(fair_sharing=fair_sharing)
        self.settle()

    # What writers of the cluster's API do

    @_in_turn
    def apply_object(
        self, body: KubeObject, manager: str, *, force: bool = False, dry_run: bool = False
    ) -> tuple[KubeObject, bool]:
        """Apply an object server-side; return it as stored, and whether it is new. Raises ApplyConflictError."""
        existing = self.store.find(*_place(body))
        after = defaulted(applied(existing, body, manager, force=force))
        if dry_run:
            return self.store.tried(after), existing is None
        return self._write(after), existing is None

    @_in_turn
    def create_object(self, body: KubeObject, manager: str, *, dry_run: bool = False) -> KubeObject:
        """Create an object that is not there yet; return it as stored."""
        after = defaulted(created(body, manager))
        return self.store.tried(after) if dry_run else self._write(after)

    @_in_turn
    def update_object(self, body: KubeObject, manager: str, *, dry_run: bool = False) -> KubeObject:
        """Replace an object's content as `manager`, as `kubectl edit` and patches do."""
        after = updated(self.store.get(*_place(body)), body, manager)
        return self.store.tried(after) if dry_run else self._write(after)

    @_in_turn
    def delete_object(self, plural: str, name: str, namespace: str = "") -> None:
        """Delete an object, with what belongs to it; KeyError when a job is not there."""
        if plural == "namespaces":
            self._empty(name)
        if plural == "pods":
            self._jobs.delete_pod(namespace, name)
        elif RESOURCE_TYPES[plural].kind in SUBMITTED:
            self._jobs.delete(RESOURCE_TYPES[plural].kind, namespace, name)
        elif plural == "workloads":
            self._jobs.delete_workload(namespace, name)
        else:
            self._manager.delete(plural, name, namespace)
        self.settle()

    def _write(self, after: KubeObject) -> KubeObject:
        existing = self.store.find(*_place(after))
        if after["kind"] not in SUBMITTED:
            stored = self._manager.apply(after)
        elif existing is None:
            stored = self._jobs.submit(after, None)
        else:
            stored = self._jobs.change(existing, after)
        self.settle()
        return self.store.find(*_place(stored)) or stored

    def _empty(self, namespace: str) -> None:
        """Delete all that is in a namespace: jobs first, which take their pods and workloads along."""
        kinds = sorted(RESOURCE_TYPES.values(), key=lambda kind: kind.kind not in SUBMITTED or kind.kind == "Pod")
        for plural in (kind.plural for kind in kinds if kind.namespaced):
            for item in self.store.list(plural, namespace):
                name = item["metadata"]["name"]
                if RESOURCE_TYPES[plural].kind in SUBMITTED:
                    self._jobs.delete(RESOURCE_TYPES[plural].kind, namespace, name)
                else:
                    self._manager.delete(plural, name, namespace)

    # Jobs

    @_in_turn
    def submit(self, manifest: Mapping[str, Any], *, run_seconds: int | None = None) -> KubeObject:
        """Create a job from its manifest and return it as stored; with `run_seconds` it ends by itself."""
        job = self._jobs.submit(manifest, run_seconds)
        self.settle()
        return job

    @_in_turn
    def delete_job(self, kind: str, namespace: str, name: str) -> None:
        """Delete a job with its pods and its workload. Raises KeyError when there is none."""
        self._jobs.delete(kind, namespace, name)
        self.settle()

    # Nodes

    def nodes(self) -> Sequence[NodeFact]:
        """Return every instance as SageMaker sees it."""
        return self.fleet.nodes()

    def groups(self) -> Sequence[GroupFact]:
        """Return every instance group."""
        return self.fleet.groups()

    @_in_turn
    def set_target(self, group: GroupFact) -> None:
        """Take a group's target count (a new name is a new group)."""
        self.fleet.set_target(group)
        self.settle()

    @_in_turn
    def delete_nodes(self, instance_ids: Sequence[str]) -> None:
        """Remove these instances and lower their groups' targets."""
        self.fleet.delete_nodes(instance_ids)
        self.settle()

    @_in_turn
    def fail_node(self, node: str, *, ready: bool = False, status: NodeStatus = "Running") -> None:
        """Let a node fail as the health-monitoring agent shows it; `ready=True` keeps the pods that are there."""
        self.fleet.fail(node, ready=ready, status=status)
        self.settle()

    @_in_turn
    def recover_node(self, node: str) -> None:
        """Let a failed node be well again."""
        self.fleet.recover(node)
        self.settle()

    @_in_turn
    def take_back(self, node: str) -> None:
        """Terminate a node whose reservation ends."""
        self.fleet.take_back(node)
        self.settle()

    @_in_turn
    def replace_node(self, node: str) -> str:
        """Terminate a node and launch another in its group; return the new instance id."""
        new = self.fleet.replace_node(node)
        self.settle()
        return new

    @_in_turn
    def cordon_node(self, node: str, *, cordoned: bool = True) -> None:
        """Cordon a node, or uncordon it."""
        self.fleet.cordon(node, cordoned=cordoned)
        self.settle()

    # Time

    @_in_turn
    def settle(self) -> None:
        """Let everything happen that is due now.

        Raises RuntimeError when it never comes to rest: jobs that preempt one another forever and stop in no time.
        """
        for _ in range(MAX_ROUNDS):
            self.fleet.join_due()
            moved = self._jobs.complete_due()
            moved |= self._jobs.stop_due()
            moved |= self._jobs.lose_pods()
            moved |= self._manager.release_inadmissible()
            self.cycles += self._manager.run()
            moved |= self._jobs.follow_workloads()
            if not moved:
                break
        else:
            raise RuntimeError(f"the cluster did not come to rest within {MAX_ROUNDS} rounds")
        self._jobs.run_ungoverned()
        self._jobs.place_pods()
        write_statuses(self.store, self.store.now)
        self._ask_for_a_call_back()

    def next_due(self) -> datetime | None:
        """Return the next moment at which something happens by itself."""
        moments = (self.fleet.next_due(), self._manager.next_due(), self._jobs.next_due())
        return min((moment for moment in moments if moment is not None), default=None)

    def _ask_for_a_call_back(self) -> None:
        due = self.next_due()
        if self._at is not None and due is not None and due != self._called_back_at:
            self._called_back_at = due
            self._at(due, self.settle)


def _place(item: KubeObject) -> tuple[str, str, str]:
    metadata = item["metadata"]
    return TYPE_OF_KIND[item["kind"]].plural, metadata["name"], metadata.get("namespace", "")
