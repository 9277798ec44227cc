"""Records of refused writes, and whether a record still blocks a write.

The code that makes and verifies writes records refusals (`refused_write`). The planner reads them from the snapshot.
"""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from taskgov.allocation.plan import Change, Plan
from taskgov.hyperpod.equality import spelled_out
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaTarget, SchedulerConfig
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import RefusalError, RefusedWrite

STANDS_FOR: Final = timedelta(hours=24)
"""How long a refused write is not tried again, unless the planned value changes or an operator requests it."""
UNSETTLED_STANDS_FOR: Final = timedelta(minutes=50)
"""The same for a write that was accepted and settled as failed. It may be temporary, so the hourly resync retries."""


def refused_write(plan: Plan, change: Change, *, error: RefusalError, because: str, at: datetime) -> RefusedWrite:
    """Return the record of a change of `plan` that was refused at `at`."""
    return RefusedWrite(
        subject=change.subject,
        name=change.name,
        team=change.team,
        kind=change.kind.value,
        resource_id=change.resource_id,
        version=change.target_version,
        wanted=wanted_of(change, plan.changes),
        error=error,
        because=because,
        plan_id=plan.plan_id,
        at=at,
    )


def wanted_of(change: Change, changes: Sequence[Change]) -> str:
    """Return the digest of what a plan makes the subject of one of its `changes` to be in the end.

    The low write of a quota, and the deletion of one that is created again, stand for the last write of the subject:
    the way there may differ from plan to plan, what is wanted does not.
    """
    last = [write for write in changes if write.subject == change.subject][-1]
    return last.wanted or wanted_digest(last.after, last.target_after)


def standing_refusals(snapshot: Snapshot) -> tuple[RefusedWrite, ...]:
    """Return the refusals that have not expired."""
    return tuple(refusal for refusal in snapshot.refusals if snapshot.taken_at < asked_again_at(refusal))


def asked_again_at(refused: RefusedWrite) -> datetime:
    """Return when a refused write is tried again by itself."""
    is_unsettled = refused.error is RefusalError.FAILED_TO_SETTLE
    return refused.at + (UNSETTLED_STANDS_FOR if is_unsettled else STANDS_FOR)


def wanted_digest(config: ComputeQuotaConfig | SchedulerConfig, target: ComputeQuotaTarget | None) -> str:
    """Return the digest (SHA-256, hexadecimal) of a planned value.

    The order of rows and priority classes makes no difference. Omitted defaults make none either.
    """
    whole = spelled_out(config) if isinstance(config, ComputeQuotaConfig) else config
    data: dict[str, Any] = {"config": whole.model_dump(mode="json", by_alias=True, exclude_none=True)}
    if classes := data["config"].get("PriorityClasses"):
        data["config"]["PriorityClasses"] = sorted(classes, key=_text)
    if target is not None:
        data["target"] = [target.team_name, target.fair_share_weight or 0]
    return hashlib.sha256(_text(data).encode()).hexdigest()


def _text(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
