"""The writes of a plan, made by a person's command under the cluster's lock: the services of the runs, one by one.

`taskgov rollback` takes a plan back with it, `taskgov apply` applies one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.adapters.clock import SystemClock
from taskgov.contracts.steps import ApplyChangeRequest, VerifyPlanRequest
from taskgov.services.apply_change import ApplyChange
from taskgov.services.verify_plan import VerifyPlan

if TYPE_CHECKING:
    from taskgov.contracts.steps import Direction, Pointer
    from taskgov_cli.deployed import Deployed
    from taskgov_cli.manual_lock import Held

SETTLE_SECONDS: Final = 5
SETTLE_TRIES: Final = 60
"""Five minutes in all, as long as a run waits."""


@dataclass(frozen=True, slots=True)
class ManualWrites:
    """A stored plan and the lock under which it is written."""

    place: Deployed
    cluster_arn: str
    pointer: Pointer
    held: Held

    def write(self, index: int, direction: Direction) -> bool:
        """Write one change, or take it back; say whether anything was written. Raises GovernanceError."""
        apply = ApplyChange(self.place.hyperpod, self.place.documents, self.place.state, SystemClock())
        request = ApplyChangeRequest(
            cluster_arn=self.cluster_arn,
            plan=self.pointer,
            index=index,
            direction=direction,
            lock_owner=self.held.owner,
            fencing_token=self.held.token,
        )
        return apply(request).written

    def unsettled(self, direction: Direction) -> str | None:
        """Wait until everything has settled; return what has not, or is not as it was to be. Raises GovernanceError."""
        verify = VerifyPlan(self.place.hyperpod, self.place.documents)
        request = VerifyPlanRequest(cluster_arn=self.cluster_arn, plan=self.pointer, direction=direction)
        for _ in range(SETTLE_TRIES):
            result = verify(request)
            if result.settled:
                return "; ".join(result.problems) or None
            time.sleep(SETTLE_SECONDS)
        return f"some quotas had not settled after {SETTLE_TRIES * SETTLE_SECONDS} s"
