"""What the checks know of a world before they look at its plan: numbers of types, capacity, who never was in force."""

from collections.abc import Mapping
from dataclasses import dataclass

from taskgov.allocation.plan import Plan
from taskgov.hyperpod.model import ComputeQuota
from taskgov.snapshot.model import Snapshot
from tests.prove.amounts import Book, Key, Numbers, Vector, numbers_from, numbers_of, sum_of

NEVER_IN_FORCE = frozenset({"CreateFailed", "CreateRollbackFailed"})
"""Statuses of what was asked for and never made: it holds nothing, whatever its configuration says."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One world: its snapshot, its plan, and the numbers that both are judged by."""

    snapshot: Snapshot
    plan: Plan
    known: Book
    """Numbers of the types that the table or the document knows: only those can be rendered."""
    book: Book
    """The same, with the types whose numbers were guessed from their nodes, and with the vCPUs that machines run."""
    capacity: Mapping[Key, int]
    planned_for: frozenset[str]
    """Types without nodes on which over-commitment was declared: promises there are plans for machines to come."""

    @property
    def pool(self) -> str | None:
        """The team of taskgov's shared pool, if there is one."""
        policy = self.snapshot.policy
        return policy.shared_pool.team if policy and policy.shared_pool else None


def facts_of(snapshot: Snapshot, plan: Plan) -> Facts:
    """Gather the facts; which nodes count is taken from the plan's capacity lines, all sums are made anew."""
    policy = snapshot.policy
    known: dict[str, Numbers] = {}
    book: dict[str, Numbers] = {}
    for name in _types(snapshot, plan):
        numbers = numbers_of(name, policy)
        if numbers is not None:
            known[name] = numbers
        line = next((line for line in plan.capacity if line.instance_type == name), None)
        if numbers is None and line is not None:
            left_out = {sentence.split(":")[0] for sentence in line.left_out}
            nodes = [node for node in snapshot.nodes if node.instance_type == name and node.name not in left_out]
            numbers = numbers_from(nodes)
        if numbers is not None:
            half = line is not None and line.one_thread > 0 and numbers.threads > 1
            running = numbers.vcpu // numbers.threads if half else numbers.vcpu
            book[name] = Numbers(
                numbers.vcpu, numbers.memory, numbers.gpu, numbers.neuron, numbers.efa, numbers.threads, running
            )
    capacity = {(line.instance_type, name): amount for line in plan.capacity for name, amount in line.resources.items()}
    overcommitted = policy is not None and policy.capacity.overcommit_percent > 0
    planned_for = {line.instance_type for line in plan.capacity if overcommitted and not line.nodes}
    return Facts(snapshot, plan, known, book, capacity, frozenset(planned_for))


def _types(snapshot: Snapshot, plan: Plan) -> list[str]:
    found = {line.instance_type for line in plan.capacity}
    for quota in snapshot.quotas:
        sharing = quota.compute_quota_config.resource_sharing_config
        absolute = (sharing.absolute_borrow_limits if sharing else None) or ()
        found |= {row.instance_type for row in (*quota.compute_quota_config.compute_quota_resources, *absolute)}
    for team in snapshot.policy.teams if snapshot.policy else ():
        sharing = team.quota.resource_sharing_config if team.quota else None
        found |= {row.instance_type for row in (sharing.absolute_borrow_limits if sharing else None) or ()}
    return sorted(found)


def taken(quota: ComputeQuota, book: Book) -> Vector:
    """Return what a quota takes of the capacity; one that never was in force takes nothing."""
    return {} if quota.status in NEVER_IN_FORCE else sum_of(quota.compute_quota_config, book)
