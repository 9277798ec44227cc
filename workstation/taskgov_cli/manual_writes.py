"""The writes of a plan, made by a person's command under the cluster's lock: the services of the runs, one by one.

`taskgov rollback` takes a plan back with it, `taskgov apply` applies one; both go wave by wave, as runs do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.adapters.clock import SystemClock
from taskgov.contracts.steps import ApplyChangeRequest, VerifyPlanRequest
from taskgov.errors import ConflictError
from taskgov.hyperpod.inferred import COMMAND_PATIENCE, SETTLE_SECONDS
from taskgov.services.apply_change import ApplyChange
from taskgov.services.plan_path import Direction, waves
from taskgov.services.verify_plan import VerifyPlan

if TYPE_CHECKING:
    from collections.abc import Collection

    from taskgov.allocation.plan import Plan
    from taskgov.contracts.steps import Pointer
    from taskgov_cli.deployed import Deployed
    from taskgov_cli.manual_lock import Held

SETTLE_TRIES: Final = COMMAND_PATIENCE // SETTLE_SECONDS


@dataclass(frozen=True, slots=True)
class ManualWrites:
    """A stored plan and the lock under which it is written."""

    place: Deployed
    cluster_arn: str
    pointer: Pointer
    held: Held

    def apply(self, plan: Plan, tried: list[int]) -> str | None:
        """Write a plan wave by wave; return what was refused, or did not take effect. Raises GovernanceError.

        Indexes are added to `tried` before they are written: a write that fails may have been made. Nothing is taken
        back: each part of a wave is safe, and the waves after it are not begun.
        """
        for wave in waves(plan.changes):
            refused: list[str] = []
            for change in wave:
                self.held.interruption.check()
                tried.append(change.index)
                result = self._use_case()(self._request(change.index))
                if result.refused is not None:
                    refused.append(result.refused)
            trouble = self.unsettled(Direction.APPLY, wave[-1].index + 1)
            if refused or trouble is not None:
                return "; ".join(filter(None, (*refused, trouble)))
        return None

    def restore(self, plan: Plan, indexes: Collection[int], written: list[int]) -> str | None:
        """Take these changes back wave by wave, last first; return what is not back. Raises GovernanceError.

        Indexes of what was written are added to `written`. What is not back keeps the waves before it from being taken
        back: together they could promise more than there is.
        """
        for wave in reversed(waves(plan.changes)):
            mine = [change for change in reversed(wave) if change.index in indexes]
            for change in mine:
                self.held.interruption.check()
                if self._restore(change.index):
                    written.append(change.index)
            trouble = self.unsettled(Direction.RESTORE, wave[0].index - 1) if mine else None
            if trouble is not None:
                return trouble
        return None

    def _restore(self, index: int) -> bool:
        """Take one change back; say whether anything was written. What is still settling is waited for."""
        for _ in range(SETTLE_TRIES):
            result = self._use_case().restore(self._request(index))
            if not result.in_flight:
                return result.written
            time.sleep(SETTLE_SECONDS)
            self.held.interruption.check()  # nothing was written: it is still settling
        raise ConflictError(f"change {index + 1} was still settling after {SETTLE_TRIES * SETTLE_SECONDS} s")

    def _use_case(self) -> ApplyChange:
        return ApplyChange(self.place.backends, self.place.documents, self.place.state, SystemClock())

    def _request(self, index: int) -> ApplyChangeRequest:
        return ApplyChangeRequest(
            cluster_arn=self.cluster_arn,
            plan=self.pointer,
            index=index,
            lock_owner=self.held.owner,
            fencing_token=self.held.token,
        )

    def unsettled(self, direction: Direction, following: int) -> str | None:
        """Wait until what was gone over has settled; return what has not, or differs from the plan.

        `following` is the change that is due next. Raises GovernanceError.
        """
        verify = VerifyPlan(self.place.backends, self.place.documents, self.place.state, SystemClock())
        request = VerifyPlanRequest(
            cluster_arn=self.cluster_arn,
            plan=self.pointer,
            next=following,
            lock_owner=self.held.owner,
            fencing_token=self.held.token,
        )
        result = verify(request, direction)
        for _ in range(SETTLE_TRIES):
            if result.settled:
                return "; ".join((*result.refused, *result.edited, *result.problems)) or None
            self.held.interruption.check()
            time.sleep(SETTLE_SECONDS)
            result = verify(request, direction)
        return f"after {SETTLE_TRIES * SETTLE_SECONDS} s still settling: {'; '.join(result.pending)}"
