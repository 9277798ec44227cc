"""The writes of the cluster policy (ClusterSchedulerConfig), if the document differs from the applied one.

Settings that the document leaves out stay unchanged.
"""

from collections.abc import Iterable
from typing import Final

from taskgov.allocation.governed import TO_DELETE
from taskgov.allocation.plan import Change, ChangeKind, Reason
from taskgov.allocation.refusals import standing_refusals, wanted_of
from taskgov.allocation.wording import said_setting
from taskgov.allocation.written import NEVER_IN_FORCE
from taskgov.hyperpod.equality import is_same_scheduler_config
from taskgov.hyperpod.model import ClusterSchedulerConfig, SchedulerConfig
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import RefusedWrite

NEEDS_RETRY: Final = "UpdateFailed"
"""The status that is fixed by another update, according to the documentation."""


def scheduler_changes(snapshot: Snapshot) -> tuple[Change, ...]:
    """Return the writes of the cluster policy. A failed policy is deleted, and then created again.

    Returns no writes while one of them is refused.
    """
    return () if refused_policy(snapshot) else tuple(_wanted_changes(snapshot))


def refused_policy(snapshot: Snapshot) -> RefusedWrite | None:
    """Return the refusal that blocks the writes of the cluster policy, or None."""
    changes = tuple(_wanted_changes(snapshot))
    kinds = {(change.subject, change.kind.value, wanted_of(change, changes)) for change in changes}
    found = (
        refusal for refusal in standing_refusals(snapshot) if (refusal.subject, refusal.kind, refusal.wanted) in kinds
    )
    return next(found, None)


def _wanted_changes(snapshot: Snapshot) -> Iterable[Change]:
    wanted = None if snapshot.policy is None else snapshot.policy.scheduler_config
    actual = snapshot.scheduler_config
    if wanted is None:
        return
    if actual is not None and actual.status in TO_DELETE:
        yield _deletion(actual)
        yield _write(snapshot.cluster.name, None, _merged(actual.scheduler_config, wanted), name=actual.name)
        return
    after = wanted if actual is None else _merged(actual.scheduler_config, wanted)
    if actual is not None and is_same_scheduler_config(actual.scheduler_config, after) and actual.status != NEEDS_RETRY:
        return
    yield _write(snapshot.cluster.name, actual, after)


def _write(
    cluster: str, actual: ClusterSchedulerConfig | None, after: SchedulerConfig, *, name: str | None = None
) -> Change:
    retried = actual is not None and actual.status == NEEDS_RETRY
    return Change(
        index=0,
        kind=ChangeKind.CREATE_SCHEDULER_CONFIG if actual is None else ChangeKind.UPDATE_SCHEDULER_CONFIG,
        team="",
        resource_id=None if actual is None else actual.cluster_scheduler_config_id,
        name=(name or _new_name(cluster)) if actual is None else actual.name,
        target_version=None if actual is None else actual.cluster_scheduler_config_version,
        before=None if actual is None else actual.scheduler_config,
        after=after,
        target_before=None,
        target_after=None,
        gpus_before=0,
        gpus_after=0,
        reason=Reason.RECOVERY if retried else Reason.POLICY_CHANGED,
        because=f"cluster policy: {said_setting(after)}",
    )


def _deletion(policy: ClusterSchedulerConfig) -> Change:
    why = f"status {policy.status}: {policy.failure_reason or 'no reason given'}"
    return Change(
        index=0,
        kind=ChangeKind.DELETE_SCHEDULER_CONFIG,
        team="",
        resource_id=policy.cluster_scheduler_config_id,
        name=policy.name,
        target_version=policy.cluster_scheduler_config_version,
        before=None if policy.status in NEVER_IN_FORCE else policy.scheduler_config,
        after=SchedulerConfig(),
        target_before=None,
        target_after=None,
        gpus_before=0,
        gpus_after=0,
        reason=Reason.RECOVERY,
        because=f"cluster policy: {why}; it is deleted, and created again once it is gone",
    )


def _new_name(cluster: str) -> str:
    """Return the name of a new cluster policy, within the API's 63 characters."""
    return f"{cluster[:56].rstrip('-')}-policy"


def _merged(actual: SchedulerConfig, wanted: SchedulerConfig) -> SchedulerConfig:
    said = {name: value for name in SchedulerConfig.model_fields if (value := getattr(wanted, name)) is not None}
    return actual.model_copy(update=said)
