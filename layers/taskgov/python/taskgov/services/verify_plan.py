"""See whether the world is as the plan wants it: every written change settled, and holding what was written."""

from dataclasses import dataclass

from taskgov.allocation.codec import plan_from_json
from taskgov.allocation.plan import DELETIONS, POLICY_KINDS, Change, Plan
from taskgov.allocation.wording import said_config
from taskgov.contracts.steps import Direction, VerifyPlanRequest, VerifyPlanResult
from taskgov.hyperpod.equality import is_same_config, is_same_scheduler_config
from taskgov.hyperpod.model import (
    ClusterSchedulerConfig,
    ComputeQuota,
    ComputeQuotaConfig,
    SchedulerConfig,
)
from taskgov.ports import DocumentStore, HyperPodApi

IN_FLIGHT = frozenset({"Creating", "Updating", "Deleting"})
SETTLED = frozenset({"Created", "Updated"})
PENDING = "pending"
FINE = "fine"
MOST_PROBLEMS = 50
MOST_LETTERS = 500


@dataclass(frozen=True, slots=True)
class VerifyPlan:
    """The use case with what it needs from the world."""

    hyperpod: HyperPodApi
    documents: DocumentStore

    def __call__(self, request: VerifyPlanRequest) -> VerifyPlanResult:
        """Compare desired with actual; `settled` is False while a status is still in flight."""
        plan = plan_from_json(self.documents.get(request.plan))
        pairs = self._pairs(plan)
        verdicts = [self._verdict(actual, change, request.direction) for change, actual in pairs]
        pending = verdicts.count(PENDING)
        problems = [verdict for verdict in verdicts if verdict not in {PENDING, FINE}]
        return VerifyPlanResult(
            settled=not pending,
            matches=not pending and not problems,
            pending=pending,
            standing=sum(_stands(actual, change) for change, actual in pairs),
            problems=_told(problems),
        )

    def _pairs(self, plan: Plan) -> list[tuple[Change, ComputeQuota | ClusterSchedulerConfig | None]]:
        """Return each change with what stands now, in two or three calls whatever the number of changes."""
        quotas = self.hyperpod.quotas(plan.cluster_arn)
        by_id = {quota.compute_quota_id: quota for quota in quotas}
        by_name = {quota.name: quota for quota in quotas}
        changes_policy = any(change.kind in POLICY_KINDS for change in plan.changes)
        config = self.hyperpod.scheduler_config(plan.cluster_arn) if changes_policy else None
        return [
            (change, config)
            if change.kind in POLICY_KINDS
            else (change, by_id.get(change.resource_id) if change.resource_id else by_name.get(change.name))
            for change in plan.changes
        ]

    @staticmethod
    def _verdict(actual: ComputeQuota | ClusterSchedulerConfig | None, change: Change, direction: Direction) -> str:
        wanted = change.after if direction is Direction.APPLY else change.before
        if change.kind in DELETIONS:
            return _verdict_of_deletion(actual, direction)
        if actual is None:
            return FINE if wanted is None else f"{change.name}: it does not exist"
        if actual.status in IN_FLIGHT:
            return PENDING
        if actual.status not in SETTLED:
            reason = actual.failure_reason or "no reason given"
            return f"{actual.name}: status {actual.status}: {reason}; {actual.name} holds {_content(actual)}"
        return FINE if _holds(actual, wanted) else f"{actual.name} holds {_content(actual)}, and not what it should"


def _verdict_of_deletion(actual: ComputeQuota | ClusterSchedulerConfig | None, direction: Direction) -> str:
    """Judge the deletion of what had failed: it is not made again by restoring, there was nothing good in it."""
    if actual is None:
        return FINE
    if actual.status in IN_FLIGHT:
        return PENDING
    if direction is Direction.RESTORE:
        return FINE
    return f"{actual.name}: it is not deleted: status {actual.status}: {actual.failure_reason or 'no reason given'}"


def _stands(actual: ComputeQuota | ClusterSchedulerConfig | None, change: Change) -> bool:
    if change.kind in DELETIONS:
        return actual is None
    return actual is not None and _holds(actual, change.after)


def _content(actual: ComputeQuota | ClusterSchedulerConfig) -> str:
    """Say what a quota or cluster policy holds, for the record of a run that could not be taken back."""
    config = actual.scheduler_config if isinstance(actual, ClusterSchedulerConfig) else actual.compute_quota_config
    return said_config(config)


def _told(problems: list[str]) -> tuple[str, ...]:
    """Return the problems as far as a state of Step Functions can carry them (256 KiB), and how many more there are."""
    shown = [problem if len(problem) <= MOST_LETTERS else f"{problem[:MOST_LETTERS]} ..." for problem in problems]
    more = len(shown) - MOST_PROBLEMS
    return (*shown[:MOST_PROBLEMS], *([f"and {more} more"] if more > 0 else ()))


def _holds(actual: ComputeQuota | ClusterSchedulerConfig, wanted: ComputeQuotaConfig | SchedulerConfig | None) -> bool:
    match actual, wanted:
        case ComputeQuota(), ComputeQuotaConfig():
            return is_same_config(actual.compute_quota_config, wanted)
        case ClusterSchedulerConfig(), SchedulerConfig():
            return is_same_scheduler_config(actual.scheduler_config, wanted)
        case _:
            return False
