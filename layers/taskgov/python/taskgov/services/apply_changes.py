"""Write some changes of a plan in its order, or take them back in reverse: as many in one call as time allows.

One call for each change would fill the history of a run of a thousand teams. Nothing else differs: every change is
written under the lock and at its version, and an error names the change that is due next.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from taskgov.allocation.plan import Plan
from taskgov.contracts.steps import ApplyChangeRequest, ApplyChangesResult, Direction
from taskgov.errors import ConflictError, GovernanceError, InvalidRequestError, NotFoundError
from taskgov.services.apply_change import ApplyChange

STAND_IN_THE_WAY = (ConflictError, NotFoundError, InvalidRequestError)
"""What keeps one change from being restored and says nothing of the others."""


@dataclass(frozen=True, slots=True)
class ApplyChanges:
    """The use case over the one for a single change."""

    apply_change: ApplyChange

    def __call__(self, request: ApplyChangeRequest, is_late: Callable[[], bool] = lambda: False) -> ApplyChangesResult:
        """Go through at most `count` changes from `index` on; `is_late` ends the call before the next one.

        Raises what the first change raises. An error of a later one ends the call, so that the next call begins there
        and meets it alone; restoring, what stands in the way of one change is counted and the others go on.
        """
        plan = self.apply_change.plan(request)
        done = written = left = 0
        for index in _indexes(request, plan):
            if done and is_late():
                break
            try:
                written += self.apply_change.one(plan, request, index).written
            except STAND_IN_THE_WAY:
                if request.direction is Direction.APPLY and not done:
                    raise
                if request.direction is Direction.APPLY:
                    break
                left += 1
            except GovernanceError:
                if not done:
                    raise
                break
            done += 1
        step = 1 if request.direction is Direction.APPLY else -1
        return ApplyChangesResult(next=request.index + step * done, written=written, left=left)


def _indexes(request: ApplyChangeRequest, plan: Plan) -> Iterable[int]:
    if request.direction is Direction.RESTORE:
        return range(request.index, max(request.index - request.count, -1), -1)
    # The first one even beyond the plan: that is refused with its number.
    return range(request.index, max(min(request.index + request.count, len(plan.changes)), request.index + 1))
