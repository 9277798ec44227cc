"""The scheduling model: what Kueue 0.19 would admit, borrow and preempt.

The entry is `KueueModel`; see its docstring for an example. Everything else here is what goes in (`ManagerConfig`,
`Workload`) and what comes out. Each name is imported when it is first asked for: functions that only read Kueue's
objects (`taskgov.scheduling.reading`) start without the model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from taskgov.scheduling.config import (
        GATE_DEFAULTS,
        AdmissionFairSharing,
        ManagerConfig,
        RequeueBackoff,
        ResourceTransformation,
        Strategy,
    )
    from taskgov.scheduling.instants import instant, moment, timestamp
    from taskgov.scheduling.kueue_model import KueueModel
    from taskgov.scheduling.objects import Admission, PodSet, PodSetAdmission, Workload
    from taskgov.scheduling.results import Admitted, CycleResult, Event, Preempted, Requeue, Waiting, events
    from taskgov.scheduling.settling import Budget, FixedPoint, settle
    from taskgov.scheduling.shares import Share
    from taskgov.scheduling.unmodelled import NotModelled
    from taskgov.scheduling.view import KueueModelView, QuotaView

__all__ = [
    "GATE_DEFAULTS",
    "Admission",
    "AdmissionFairSharing",
    "Admitted",
    "Budget",
    "CycleResult",
    "Event",
    "FixedPoint",
    "KueueModel",
    "KueueModelView",
    "ManagerConfig",
    "NotModelled",
    "PodSet",
    "PodSetAdmission",
    "Preempted",
    "QuotaView",
    "Requeue",
    "RequeueBackoff",
    "ResourceTransformation",
    "Share",
    "Strategy",
    "Waiting",
    "Workload",
    "events",
    "instant",
    "moment",
    "settle",
    "timestamp",
]

_HOMES: Final = {
    "Admission": "objects",
    "AdmissionFairSharing": "config",
    "Admitted": "results",
    "Budget": "settling",
    "CycleResult": "results",
    "Event": "results",
    "GATE_DEFAULTS": "config",
    "ManagerConfig": "config",
    "NotModelled": "unmodelled",
    "PodSet": "objects",
    "PodSetAdmission": "objects",
    "Preempted": "results",
    "QuotaView": "view",
    "Requeue": "results",
    "RequeueBackoff": "config",
    "ResourceTransformation": "config",
    "FixedPoint": "settling",
    "Share": "shares",
    "Strategy": "config",
    "Waiting": "results",
    "Workload": "objects",
    "KueueModel": "kueue_model",
    "KueueModelView": "view",
    "events": "results",
    "instant": "instants",
    "moment": "instants",
    "settle": "settling",
    "timestamp": "instants",
}


def __getattr__(name: str) -> Any:
    """Import a name from the module that it is at home in (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
