"""What does the status of a Workload say? Its admission, conditions, and when it may be queued again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from taskgov.quantities import parse
from taskgov.scheduling.instants import NEVER_AGAIN, Instant, instant
from taskgov.scheduling.objects import RESTARTS, Admission, Condition, PodSetAdmission
from taskgov.scheduling.shapes import KNOWN, shape_of, value_of

Object = Mapping[str, Any]


def read_admission(status: Object) -> Admission | None:
    """Read `status.admission`: what the workload holds, or `None`."""
    admission = status.get("admission")
    if not admission:
        return None
    assigned = admission.get("podSetAssignments") or ()
    shape = shape_of(assigned)
    return Admission(admission["clusterQueue"], _held(assigned) if shape is None else _held_by(shape))


@lru_cache(maxsize=KNOWN)
def _held_by(shape: bytes) -> tuple[PodSetAdmission, ...]:
    """Read the assignments of this shape: workloads that hold the same share what was read."""
    return _held(value_of(shape))


def _held(assigned: Iterable[Object]) -> tuple[PodSetAdmission, ...]:
    return tuple(
        PodSetAdmission(
            name=p["name"],
            count=p.get("count", 1) if p.get("count") is not None else 1,
            flavors=dict(p.get("flavors") or {}),
            usage={r: parse(r, q) for r, q in (p.get("resourceUsage") or {}).items()},
        )
        for p in assigned
    )


def read_conditions(status: Object) -> dict[str, Condition]:
    """Read `status.conditions`, by type."""
    return {
        c["type"]: Condition(
            c["status"] == "True", c.get("reason") or "", c.get("message") or "", instant(c.get("lastTransitionTime"))
        )
        for c in status.get("conditions") or ()
    }


def true_conditions(status: Object) -> dict[str, Object]:
    """Return those of `status.conditions` that are true, by type, as they are written."""
    last = {c["type"]: c for c in status.get("conditions") or ()}
    return {kind: c for kind, c in last.items() if c["status"] == "True"}


def read_requeue_state(status: Object) -> tuple[int, Instant | None]:
    """Read `status.requeueState`: how often it was put back, and until when it has to stay out (`None`: it may come).

    `Requeued=False` without a moment keeps a workload out until somebody says otherwise; where its queue was stopped,
    that is when the queue runs again.
    """
    state = status.get("requeueState") or {}
    requeued = [c for c in status.get("conditions") or () if c["type"] == "Requeued"]
    if not requeued or requeued[-1]["status"] == "True" or (requeued[-1].get("reason") or "") in RESTARTS:
        return state.get("count") or 0, None
    back = state.get("requeueAt")
    return state.get("count") or 0, instant(back) if back else NEVER_AGAIN
