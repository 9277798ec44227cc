"""The writes of a plan, made by a person's command under the cluster's lock: the services of the runs, one by one.

`taskgov rollback` takes a plan back with it, `taskgov apply` applies one; both go wave by wave, as runs do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.adapters.clock import SystemClock
from taskgov.contracts.steps import ApplyChangeRequest, Direction, VerifyPlanRequest
from taskgov.errors import ConflictError
from taskgov.services.apply_change import ApplyChange
from taskgov.services.plan_path import waves
from taskgov.services.verify_plan import VerifyPlan

if TYPE_CHECKING:
    from collections.abc import Collection

    from taskgov.allocation.plan import Plan
    from taskgov.contracts.steps import Pointer
    from taskgov_cli.deployed import Deployed
    from taskgov_cli.manual_lock import Held

SETTLE_SECONDS: Final = 5
SETTLE_TRIES: Final = 60
"""Five minutes for a wave."""


@dataclass(frozen=True, slots=True)
class ManualWrites:
    """A stored plan and the lock under which it is written."""

    place: Deployed
    cluster_arn: str
    pointer: Pointer
    held: Held

    def write(self, index: int, direction: Direction) -> bool:
        """Write one change, or take it back; say whether anything was written.

        What is still settling is waited for before it is taken back. Raises GovernanceError.
        """
        apply = ApplyChange(self.place.hyperpod, self.place.documents, self.place.state, SystemClock())
        request = ApplyChangeRequest(
            cluster_arn=self.cluster_arn,
            plan=self.pointer,
            index=index,
            direction=direction,
            lock_owner=self.held.owner,
            fencing_token=self.held.token,
        )
        for _ in range(SETTLE_TRIES):
            result = apply(request)
            if not result.in_flight:
                return result.written
            time.sleep(SETTLE_SECONDS)
        raise ConflictError(f"change {index + 1} was still settling after {SETTLE_TRIES * SETTLE_SECONDS} s")

    def apply(self, plan: Plan, tried: list[int]) -> str | None:
        """Write a plan wave by wave; return what did not take effect. Raises GovernanceError.

        Indexes are added to `tried` before they are written: a write that fails may have been made.
        """
        for wave in waves(plan.changes):
            for change in wave:
                tried.append(change.index)
                self.write(change.index, Direction.APPLY)
            trouble = self.unsettled(Direction.APPLY, wave[-1].index + 1)
            if trouble is not None:
                return trouble
        return None

    def restore(self, plan: Plan, indexes: Collection[int], written: list[int]) -> str | None:
        """Take these changes back wave by wave, last first; return what is not back. Raises GovernanceError.

        Indexes of what was written are added to `written`. What is not back keeps the waves before it from being taken
        back: together they could promise more than there is.
        """
        for wave in reversed(waves(plan.changes)):
            mine = [change for change in reversed(wave) if change.index in indexes]
            for change in mine:
                if self.write(change.index, Direction.RESTORE):
                    written.append(change.index)  # noqa: PERF401 - it is known what was written when one fails
            trouble = self.unsettled(Direction.RESTORE, wave[0].index - 1) if mine else None
            if trouble is not None:
                return trouble
        return None

    def unsettled(self, direction: Direction, following: int) -> str | None:
        """Wait until what was gone over has settled; return what has not, or is not as it was to be.

        `following` is the change that is due next. Raises GovernanceError.
        """
        verify = VerifyPlan(self.place.hyperpod, self.place.documents, self.place.state, SystemClock())
        request = VerifyPlanRequest(
            cluster_arn=self.cluster_arn,
            plan=self.pointer,
            direction=direction,
            next=following,
            lock_owner=self.held.owner,
            fencing_token=self.held.token,
        )
        for _ in range(SETTLE_TRIES):
            result = verify(request)
            if result.settled:
                return "; ".join(result.problems) or None
            time.sleep(SETTLE_SECONDS)
        return f"some quotas had not settled after {SETTLE_TRIES * SETTLE_SECONDS} s"
