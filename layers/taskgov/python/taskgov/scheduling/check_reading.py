"""What do Kubernetes objects say of admission checks? Those of a queue, and the answer of each.

Called by `reading` and by the modules that keep what was answered. Rules: `pkg/util/admissioncheck` of Kueue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskgov.scheduling.instants import instant, timestamp
from taskgov.scheduling.objects import CheckState

if TYPE_CHECKING:
    from collections.abc import Mapping

Object = dict[str, Any]


def read_checks(spec: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Read the checks of a ClusterQueue by name, with their flavors (none: all of the queue).

    v1beta1 has a plain list of checks for all flavors besides (`admissionChecks`).
    """
    found: dict[str, tuple[str, ...]] = dict.fromkeys(spec.get("admissionChecks") or (), ())
    for check in (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ():
        found[check["name"]] = tuple(check.get("onFlavors") or ())
    return tuple(sorted(found.items()))


def read_check_states(status: Mapping[str, Any]) -> dict[str, CheckState]:
    """Read `status.admissionChecks` of a Workload, by name."""
    return {
        check["name"]: CheckState(
            state=check["state"],
            message=check.get("message") or "",
            since=instant(check.get("lastTransitionTime")),
            requeue_after=check.get("requeueAfterSeconds"),
            retries=check.get("retryCount"),
        )
        for check in status.get("admissionChecks") or ()
    }


def is_active_check(obj: Mapping[str, Any]) -> bool:
    """Return whether an AdmissionCheck may be asked: its controller has said so in the condition `Active`."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Active" and c["status"] == "True" for c in conditions)


def check_list(checks: Mapping[str, CheckState]) -> list[Object]:
    """Write `status.admissionChecks`, in the order of names."""
    return [_check(name, state) for name, state in sorted(checks.items())]


def _check(name: str, state: CheckState) -> Object:
    written: Object = {
        "name": name,
        "state": state.state,
        "message": state.message,
        "lastTransitionTime": timestamp(state.since),
    }
    if state.requeue_after is not None:
        written["requeueAfterSeconds"] = state.requeue_after
    if state.retries is not None:
        written["retryCount"] = state.retries
    return written
