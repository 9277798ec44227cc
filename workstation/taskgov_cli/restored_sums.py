"""Whether a rollback would guarantee more than there is at any step: what a plan freed may be another team's by now.

The capacity is that of the newest snapshot on record, so that a rollback needs no access to Kubernetes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from taskgov.allocation.changes import quota_sums
from taskgov.allocation.plan import POLICY_KINDS
from taskgov.allocation.snapshot_capacity import capacities_of
from taskgov.allocation.wording import said_number
from taskgov.contracts.steps import Pointer
from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.model import ComputeQuota, ComputeQuotaConfig
from taskgov.snapshot.codec import snapshot_from_json
from taskgov_cli.deployed import RefusedError
from taskgov_cli.history import runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov.allocation.capacity import TypeCapacity
    from taskgov.allocation.parts import Vector
    from taskgov.allocation.plan import Change
    from taskgov.snapshot.model import Snapshot
    from taskgov_cli.deployed import Deployed

Quotas = tuple[ComputeQuota, ...]


@dataclass(frozen=True, slots=True)
class RestoredSums:
    """The sums of all quotas of a cluster while changes are taken back, and what they may be at most."""

    snapshot: Snapshot
    steps: tuple[Quotas, ...]
    """All quotas now, and after each change that is taken back."""

    def excess(self) -> str | None:
        """Return on which instance types a step would guarantee more than the capacity, and more than now; or None."""
        every = tuple(quota for step in self.steps for quota in step)
        capacities = capacities_of(replace(self.snapshot, quotas=every))
        policy = self.snapshot.policy
        unbound = policy is not None and policy.capacity.overcommit_percent > 0
        now, *after = (quota_sums(step, capacities) for step in self.steps)
        found: dict[str, str] = {}
        for sums in after:
            for name, taken in sums.items():
                capacity = capacities[name]
                if (capacity.has_nodes or not unbound) and (said := _excess(capacity, taken, now.get(name, {}))):
                    found[name] = said
        return ", ".join(found[name] for name in sorted(found)) or None


def restored_sums(place: Deployed, cluster_arn: str, changes: Iterable[Change]) -> RestoredSums:
    """Return the sums while these changes are taken back, in this order.

    Raises RefusedError when no snapshot says how many nodes there are; GovernanceError.
    """
    quotas = tuple(place.backends.quotas(cluster_arn))
    return RestoredSums(_newest_snapshot(place, cluster_arn), (quotas, *_steps(quotas, changes)))


def _steps(quotas: Quotas, changes: Iterable[Change]) -> Iterator[Quotas]:
    for change in changes:
        if change.kind not in POLICY_KINDS:
            quotas = tuple(_restored(quotas, change))
            yield quotas


def _restored(quotas: Quotas, change: Change) -> Iterator[ComputeQuota]:
    """Yield all quotas, that of the change as it was before."""
    config = change.before if isinstance(change.before, ComputeQuotaConfig) else None
    its = [quota for quota in quotas if quota.compute_quota_id == change.resource_id or quota.name == change.name]
    yield from (quota for quota in quotas if quota not in its)
    if config is None:  # the plan created it
        return
    if its:
        yield from (quota.model_copy(update={"compute_quota_config": config}) for quota in its)
    elif change.target_before is not None:  # the plan deleted it, and it is created again
        yield ComputeQuota(
            compute_quota_id=change.resource_id or "",
            compute_quota_arn="",
            name=change.name,
            compute_quota_version=1,
            status="Creating",
            compute_quota_config=config,
            compute_quota_target=change.target_before,
        )


def _excess(capacity: TypeCapacity, taken: Vector, now: Mapping[str, int]) -> str | None:
    """Return `5 of 4 TYPE`, by the resource that is exceeded most; None where none is."""
    total, per_instance = capacity.total, capacity.per_instance
    over = {
        resource: (Fraction(amount, unit), Fraction(total.get(resource, 0), unit))
        for resource, amount in taken.items()
        if amount > max(total.get(resource, 0), now.get(resource, 0))
        for unit in [per_instance.get(resource) or 1]
    }
    if not over:
        return None
    would, limit = max(over.values())
    return f"{said_number(would)} of {said_number(limit)} {capacity.line.instance_type}"


def _newest_snapshot(place: Deployed, cluster_arn: str) -> Snapshot:
    pointer = next((run["snapshot"] for run in runs(place, cluster_arn) if "snapshot" in run), None)
    if pointer is None:
        raise RefusedError(f"no run on record read {cluster_arn}; first: taskgov reconcile {cluster_arn}")
    stored = Pointer.model_validate_json(pointer)
    try:
        return snapshot_from_json(place.documents.get(stored))
    except ValueError as error:
        raise InvalidRequestError(f"{stored.key} is not a snapshot that this version can read") from error
