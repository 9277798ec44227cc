"""Write some changes of a plan in its order: as many in one call as time allows.

One call for each change would fill the history of a run of a thousand teams. Nothing else differs: every change is
written under the lock and at its version, and an error names the change that is due next. A call never leaves its
wave: what was written has to settle before the next wave begins. A write that is refused for good does not keep the
others of its wave from being made: every part of a wave is safe.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from taskgov.allocation.plan import Plan
from taskgov.contracts.steps import ApplyChangeRequest, ApplyChangesResult
from taskgov.errors import GovernanceError
from taskgov.services.apply_change import ApplyChange
from taskgov.services.claim_cluster import ClaimCluster
from taskgov.services.failures import left_out
from taskgov.services.plan_path import first_writes
from taskgov.services.wording import cut


@dataclass(frozen=True, slots=True)
class ApplyChanges:
    """The use case over the one for a single change."""

    apply_change: ApplyChange
    claim: ClaimCluster

    def __call__(self, request: ApplyChangeRequest, is_late: Callable[[], bool] = lambda: False) -> ApplyChangesResult:
        """Go through at most `count` changes of one wave from `index` on; `is_late` ends the call before the next one.

        Raises what the first change raises. An error of a later one ends the call, so that the next call begins there
        and meets it alone.
        """
        plan = self.apply_change.plan(request)
        self.claim(plan.cluster_arn)
        refused_before = self.apply_change.state.refusals(plan.cluster_arn, left_out)
        counted = first_writes(plan.changes)
        done = 0
        written: list[int] = []
        refused: list[str] = []
        for index in _indexes(request, plan):
            if done and is_late():
                break
            try:
                result = self.apply_change.one(plan, request, index, refused_before)
            except GovernanceError:
                if not done:
                    raise
                break
            if result.refused is not None:
                refused.append(result.refused)
            if result.written and index in counted:
                written.append(index)
            done += 1
        following = request.index + done
        return ApplyChangesResult(
            next=following,
            written=len(written),
            changes=tuple(written),
            wave_ends=_wave(plan, following) != _wave(plan, request.index),
            refused=cut(refused),
        )


def _indexes(request: ApplyChangeRequest, plan: Plan) -> Iterable[int]:
    # The first one even beyond the plan: that is refused with its number.
    for index in range(request.index, request.index + request.count):
        if index != request.index and _wave(plan, index) != _wave(plan, request.index):
            return
        yield index


def _wave(plan: Plan, index: int) -> int | None:
    """Return the wave of a change; None beyond the plan."""
    return plan.changes[index].wave if 0 <= index < len(plan.changes) else None
