"""What do jobs run under? Queues with their quotas, limits, weights and rules, and how the manager is configured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from taskgov.scheduling.config import DEFAULTS, ManagerConfig
from taskgov.scheduling.instants import SECOND, Instant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.scheduling.objects import ClusterQueue, Cohort, LocalQueue, ResourceFlavor


@dataclass(frozen=True, slots=True)
class Setting:
    """A Kueue installation as far as it decides who starts when, in the values of `taskgov.scheduling.objects`.

    Parameters
    ----------
    queues
        The ClusterQueues: quotas by `flavor/resource`, borrowing and lending limits, weight, preemption rules.
    doors
        The LocalQueues, by which jobs find their ClusterQueue.
    flavors
        The ResourceFlavors. A queue that names another one is inactive.
    cohorts
        The Cohort objects; a cohort that a queue only names needs none.
    namespaces
        Labels of namespaces, for the queues' namespace selectors.
    config
        How the manager is configured: fair sharing, its strategies, feature gates.
    batch
        How long freed quota is gathered before waiting jobs are reconsidered, in microseconds; 0 is at once.

    """

    queues: tuple[ClusterQueue, ...]
    doors: tuple[LocalQueue, ...]
    flavors: tuple[ResourceFlavor, ...]
    cohorts: tuple[Cohort, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    config: ManagerConfig = DEFAULTS
    batch: int = SECOND


class Change(NamedTuple):
    """From a moment on, ClusterQueues with other quotas, limits, weights or rules; those not named stay."""

    at: Instant
    queues: tuple[ClusterQueue, ...]
