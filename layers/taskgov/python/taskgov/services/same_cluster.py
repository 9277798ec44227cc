"""Do plan, lock and target of a write name the same cluster? Asked before each write: the lock is one cluster's."""

from taskgov.allocation.plan import POLICY_KINDS, Change, Plan
from taskgov.errors import InvalidRequestError, NotFoundError
from taskgov.ports import ClusterBackend, StateStore


def require_cluster_of_plan(plan: Plan, cluster_arn: str) -> None:
    """Return if the plan is of the cluster that is locked. Raises InvalidRequestError."""
    if plan.cluster_arn != cluster_arn:
        raise InvalidRequestError(f"plan {plan.plan_id} is of {plan.cluster_arn}, the lock is of {cluster_arn}")


def require_cluster_of_target(backends: ClusterBackend, state: StateStore, plan: Plan, change: Change) -> None:
    """Return if what the change writes belongs to the plan's cluster; a quota that is created belongs to none yet.

    The table has it since the snapshot; what it lacks is read from the API. Raises InvalidRequestError.
    """
    if change.resource_id is None:
        return
    owner = state.cluster_of(change.resource_id) or _asked(
        backends, change.resource_id, is_policy=change.kind in POLICY_KINDS
    )
    if owner not in {None, plan.cluster_arn}:
        raise InvalidRequestError(
            f"change {change.index} of plan {plan.plan_id} names {change.resource_id} of {owner}, "
            f"the plan is of {plan.cluster_arn}"
        )


def _asked(backends: ClusterBackend, resource_id: str, *, is_policy: bool) -> str | None:
    try:
        found = backends.scheduler_config_by_id(resource_id) if is_policy else backends.quota(resource_id)
    except NotFoundError:
        return None  # the write itself meets that, and decides whether a deletion was wanted
    return found.cluster_arn
