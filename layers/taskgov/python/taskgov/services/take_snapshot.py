"""Read everything that decisions about one cluster need, once, and put it into one value.

Used by `read_snapshot` at the start of a run, and by `publish_usage` and `audit_cluster`, which only read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from taskgov.allocation.mass_loss import settled
from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.names import kubernetes_node_of
from taskgov.policy.parse import ParsedPolicy, of_cluster, parse_stored
from taskgov.ports import (
    Clock,
    ClusterAccess,
    ClusterBackend,
    DocumentStore,
    KubernetesApi,
    OnUnreadableObject,
    StateStore,
)
from taskgov.services.fresh_quotas import fresh_quotas
from taskgov.services.lost_machines import with_lost_machines
from taskgov.services.nothing_to_read import describing, reading_of
from taskgov.services.reading import reading
from taskgov.services.state_identity import StateIdentity
from taskgov.services.use_history import UseHistory, with_use
from taskgov.snapshot.identity import Claim
from taskgov.snapshot.leaving import marked
from taskgov.snapshot.model import ClusterFacts, GroupInstanceType, InstanceGroup, KueueObjects, Snapshot
from taskgov.snapshot.nodes import NodeMemory, nodes_from_kubernetes, remember_nodes
from taskgov.snapshot.readable import readable_groups, readable_kueue, readable_nodes, readable_summaries
from taskgov.snapshot.unreadable import UnreadableObject

if TYPE_CHECKING:
    from taskgov.snapshot.unreadable import UnreadableItem

MEMORY_KEY = "memory/{}/nodes.json"
ReadableKueue = tuple[KueueObjects, tuple[UnreadableObject, ...]]
"""Kueue's objects that can be read, and the others."""
ReadKueue = Callable[[str, ClusterAccess], ReadableKueue]
"""Reads Kueue's objects of a cluster, given by its name and its API."""


@dataclass(frozen=True, slots=True)
class TakeSnapshot:
    """Reads one cluster whole. Its fields are the ports it uses."""

    backends: ClusterBackend
    kubernetes: KubernetesApi
    documents: DocumentStore
    state: StateStore
    clock: Clock

    def __call__(
        self,
        cluster: str,
        *,
        remember: bool = False,
        claims: tuple[Claim, ...] = (),
        described: Mapping[str, Any] | None = None,
        read_kueue: ReadKueue | None = None,
    ) -> Snapshot:
        """Return the snapshot of a cluster, given by name or ARN.

        With `remember`, since when each node is healthy is written back once everything has been read, and records that
        a restored table lacks: only a run that holds the lock does so. `claims` are the stacks that have tagged the
        cluster. `described` is DescribeCluster's answer, if the caller has it. `read_kueue` reads Kueue's objects in
        another way (`taskgov.services.follow_workloads`).
        Raises InvalidRequestError for a cluster that EKS does not orchestrate, NothingToReadError for one that is gone,
        or has no Kueue and is not governed (`taskgov.services.nothing_to_read`). What fails because the cluster cannot
        be read says so (`GovernanceError.cluster_unreadable`).
        """
        odd: list[UnreadableObject] = []
        with describing(cluster):
            facts = cluster_facts(described or self.backends.describe_cluster(cluster), odd.append)
            access = ClusterAccess(_eks_arn(facts))
        parsed, version, reviewed = self._policy(facts)
        unreadable: list[UnreadableItem] = []
        looked = self.identity.look(facts, claims, unreadable.append) if remember else None
        # The records first: a list that is read after them lacks no write of taskgov but those within its own delay.
        applied = self.state.applied_quotas(facts.arn, unreadable.append)
        taken_at = self.clock.now()
        with reading_of(facts, "list nodes"):
            items, odd_nodes = readable_nodes(self.kubernetes.nodes(access))
        with reading("list cluster nodes"):
            summaries, odd_machines = readable_summaries(self.backends.cluster_nodes(facts.arn))
        seen = nodes_from_kubernetes(items, summaries, odd_nodes)
        plans = [group.training_plan for group in facts.instance_groups if group.training_plan]
        reserved = self.backends.reserved(facts.arn, plans)
        key = MEMORY_KEY.format(facts.name)
        stored = self.documents.find(key)
        found = _memory(stored, key, facts.arn)
        if looked is not None and looked.table is not None and (found is None or looked.node_memory_is_lost):
            found = NodeMemory(lost=True)
        known = replace(found or NodeMemory(), cluster=facts.arn)
        is_partial = any(not unreadable_object.name for unreadable_object in (*odd_nodes, *odd_machines))
        unread = {name for machine in odd_machines for name in (machine.name, kubernetes_node_of(machine.name))}
        now = self.clock.now()
        seen = marked(seen, reserved, facts.instance_groups, now, known)
        memory, nodes = remember_nodes(known, seen, now, is_partial=is_partial, unread=unread)
        with reading_of(facts, "list Kueue's objects", lambda: version is not None or self._has_quotas(facts.arn)):
            kueue, odd_objects = (read_kueue or self._kueue)(facts.name, access)
        with reading("get the configuration of Kueue's manager", throttled=True):
            manager = self.kubernetes.manager_settings(access)
        with reading("list compute quotas", throttled=self.backends.keeps_quotas_in_cluster(facts.arn)):
            listed = self.backends.quotas(facts.arn, odd.append)
            quotas = fresh_quotas(self.backends, listed, applied, self.clock.now(), odd.append).quotas
            scheduler_config = self.backends.scheduler_config(facts.arn, odd.append)
        snapshot = Snapshot(
            cluster=facts,
            taken_at=taken_at,
            nodes=nodes,
            gone=memory.gone,
            quotas=quotas,
            scheduler_config=scheduler_config,
            kueue=kueue,
            unreadable_objects=tuple(dict.fromkeys((*odd_nodes, *odd_objects, *odd_machines, *odd))),
            policy=parsed.document,
            policy_version=version,
            policy_reviewed=reviewed,
            policy_violations=parsed.violations,
            policy_findings=parsed.warnings,
            applied=applied,
            edits=self.state.edits(facts.arn, unreadable.append),
            stopped=self.state.stop_switch(),
            applied_policy=self.state.applied_policy(facts.arn, unreadable.append),
            refusals=self.state.refusals(facts.arn, unreadable.append),
            manager=manager,
            reservations=reserved.of(nodes),
        )
        state = self.state.stamp(facts.arn, unreadable.append) if looked is None else None
        snapshot = replace(snapshot, claims=claims, state=state, unreadable=tuple(unreadable))
        snapshot = with_lost_machines(snapshot, self.backends)
        memory = memory.without(settled(snapshot))
        kept = {node.name for node in memory.gone}
        snapshot = replace(snapshot, gone=tuple(node for node in snapshot.gone if node.name in kept))
        if looked is not None:
            if memory.to_json() != stored:
                self.documents.put(key, memory.to_json(), "application/json")
            snapshot = self.identity.stamped(looked, snapshot)
        return with_use(snapshot, UseHistory(self.documents).read(facts.name))

    @property
    def identity(self) -> StateIdentity:
        """The state that these records belong to."""
        return StateIdentity(self.documents, self.state)

    def _kueue(self, _cluster_name: str, access: ClusterAccess) -> ReadableKueue:
        return readable_kueue(self.kubernetes.kueue_objects(access))

    def _has_quotas(self, cluster_arn: str) -> bool:
        """Return whether SageMaker keeps quotas of the cluster: those that Kueue keeps are not there without it."""
        if self.backends.keeps_quotas_in_cluster(cluster_arn):
            return False
        odd: list[UnreadableObject] = []
        return bool(self.backends.quotas(cluster_arn, odd.append) or odd)

    def _policy(self, facts: ClusterFacts) -> tuple[ParsedPolicy, str | None, str]:
        stored = self.documents.policy(facts.name)
        if stored is None:
            return ParsedPolicy(document=None, violations=(), warnings=()), None, ""
        return of_cluster(parse_stored(stored.body), facts.name, facts.arn), stored.version, stored.reviewed


def _memory(stored: bytes | None, key: str, cluster_arn: str) -> NodeMemory | None:
    """Read what is known of nodes; None where nothing is, or of an earlier cluster of this name only.

    Raises InvalidRequestError for a document that somebody damaged.
    """
    if stored is None:
        return None
    try:
        memory = NodeMemory.from_json(stored)
    except ValueError as error:
        raise InvalidRequestError(f"{key} cannot be read ({error}); delete it, and nodes are judged again") from error
    return memory if memory.cluster in {None, cluster_arn} else None


def cluster_facts(description: Any, on_unreadable: OnUnreadableObject | None = None) -> ClusterFacts:
    """Return what decisions use of DescribeCluster's answer, without the instance groups that cannot be read."""
    orchestrator = description.get("Orchestrator", {})
    tiered = description.get("TieredStorageConfig", {})
    return ClusterFacts(
        name=description["ClusterName"],
        arn=description["ClusterArn"],
        status=description["ClusterStatus"],
        eks_arn=orchestrator.get("Eks", {}).get("ClusterArn"),
        node_recovery=description.get("NodeRecovery"),
        memory_reserved_percent=tiered.get("InstanceMemoryAllocationPercentage", 0),
        instance_groups=_instance_groups(description, on_unreadable),
    )


def _instance_groups(description: Any, on_unreadable: OnUnreadableObject | None) -> tuple[InstanceGroup, ...]:
    """Return all groups by name. A flexible group says the threads of each of its types, any other those of its one."""
    every = (*description.get("InstanceGroups", ()), *description.get("RestrictedInstanceGroups", ()))
    groups, odd = readable_groups(every)
    for group in odd:
        if on_unreadable is not None:
            on_unreadable(group)
    return tuple(sorted((_instance_group(group) for group in groups), key=attrgetter("name")))


def _instance_group(group: Any) -> InstanceGroup:
    details = group.get("InstanceTypeDetails") or [group]
    types = (
        GroupInstanceType(detail["InstanceType"], detail.get("ThreadsPerCore", group.get("ThreadsPerCore")))
        for detail in details
        if detail.get("InstanceType")
    )
    return InstanceGroup(
        name=group["InstanceGroupName"],
        instance_types=tuple(sorted(types, key=attrgetter("instance_type"))),
        current_count=group.get("CurrentCount"),
        target_count=group.get("TargetCount"),
        training_plan=group.get("TrainingPlanArn"),
    )


def _eks_arn(facts: ClusterFacts) -> str:
    if facts.eks_arn is None:
        raise InvalidRequestError(f"cluster {facts.name} is not orchestrated by EKS: task governance needs Kueue")
    return facts.eks_arn
