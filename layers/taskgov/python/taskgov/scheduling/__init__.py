"""The scheduling model: what Kueue 0.19 would admit, borrow and preempt.

The door is `World`; see its docstring for an example. Everything else here is what goes in (`ManagerConfig`,
`Workload`) and what comes out.
"""

from taskgov.scheduling.config import GATE_DEFAULTS, ManagerConfig, RequeueBackoff, Strategy
from taskgov.scheduling.instants import instant, moment, timestamp
from taskgov.scheduling.objects import Admission, PodSet, PodSetAdmission, Workload
from taskgov.scheduling.pending import Requeue
from taskgov.scheduling.results import Admitted, CycleResult, Event, Preempted, Waiting, events
from taskgov.scheduling.settling import Settlement
from taskgov.scheduling.shares import Share
from taskgov.scheduling.simulation import Happening, PreemptionLoop, Simulation, Timeline
from taskgov.scheduling.unmodelled import NotModelled
from taskgov.scheduling.view import QuotaView, WorldView
from taskgov.scheduling.world import World

__all__ = [
    "GATE_DEFAULTS",
    "Admission",
    "Admitted",
    "CycleResult",
    "Event",
    "Happening",
    "ManagerConfig",
    "NotModelled",
    "PodSet",
    "PodSetAdmission",
    "Preempted",
    "PreemptionLoop",
    "QuotaView",
    "Requeue",
    "RequeueBackoff",
    "Settlement",
    "Share",
    "Simulation",
    "Strategy",
    "Timeline",
    "Waiting",
    "Workload",
    "World",
    "WorldView",
    "events",
    "instant",
    "moment",
    "timestamp",
]
