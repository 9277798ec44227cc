"""Write some changes of a plan in its order, or take them back in reverse: as many in one call as time allows.

One call for each change would fill the history of a run of a thousand teams. Nothing else differs: every change is
written under the lock and at its version, and an error names the change that is due next. A call never leaves its
wave: what was written has to settle before the next wave begins.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from taskgov.allocation.plan import Plan
from taskgov.contracts.steps import ApplyChangeRequest, ApplyChangesResult, Direction
from taskgov.errors import ConflictError, GovernanceError, InvalidRequestError, NotFoundError
from taskgov.services.apply_change import ApplyChange
from taskgov.services.claim_cluster import ClaimCluster
from taskgov.services.plan_path import first_writes

STAND_IN_THE_WAY = (ConflictError, NotFoundError, InvalidRequestError)
"""What keeps one change from being restored and says nothing of the others."""


@dataclass(frozen=True, slots=True)
class ApplyChanges:
    """The use case over the one for a single change."""

    apply_change: ApplyChange
    claim: ClaimCluster

    def __call__(self, request: ApplyChangeRequest, is_late: Callable[[], bool] = lambda: False) -> ApplyChangesResult:
        """Go through at most `count` changes of one wave from `index` on; `is_late` ends the call before the next one.

        Raises what the first change raises. An error of a later one ends the call, so that the next call begins there
        and meets it alone; restoring, what stands in the way of one change is counted and the others go on, and one
        that is still settling ends the call.
        """
        plan = self.apply_change.plan(request)
        if request.direction is Direction.APPLY:  # taking back is allowed to a stack that stands down
            self.claim(plan.cluster_arn)
        counted = first_writes(plan.changes)
        done = written = left = 0
        in_flight = False
        for index in _indexes(request, plan):
            if done and is_late():
                break
            try:
                result = self.apply_change.one(plan, request, index)
            except STAND_IN_THE_WAY:
                if request.direction is Direction.APPLY and not done:
                    raise
                if request.direction is Direction.APPLY:
                    break
                left += index in counted
            except GovernanceError:
                if not done:
                    raise
                break
            else:
                in_flight = result.in_flight
                if in_flight:
                    break
                written += result.written and index in counted
            done += 1
        step = 1 if request.direction is Direction.APPLY else -1
        following = request.index + step * done
        return ApplyChangesResult(
            next=following,
            written=written,
            wave_ends=_wave(plan, following) != _wave(plan, request.index),
            left=left,
            in_flight=in_flight,
        )


def _indexes(request: ApplyChangeRequest, plan: Plan) -> Iterable[int]:
    # The first one even beyond the plan: that is refused with its number.
    step = 1 if request.direction is Direction.APPLY else -1
    for index in range(request.index, request.index + step * request.count, step):
        if index != request.index and _wave(plan, index) != _wave(plan, request.index):
            return
        yield index


def _wave(plan: Plan, index: int) -> int | None:
    """Return the wave of a change; None beyond the plan."""
    return plan.changes[index].wave if 0 <= index < len(plan.changes) else None
