"""What would end a preemption loop? Settings of queues with which everything comes to rest, each tried in the model.

A loop is proved, not guessed: a state of the whole model came back (`settling`). So is a remedy: on copies of the
model, from the current state and from a state within the loop, the queues come to rest with it.

Sorts of settings are tried in the order of `Setting`: the first two keep nobody from running, a lower borrowing limit
may. Within a sort one queue's setting comes before that of all queues of the loop, and a small change before a greater
one. Only if no sort ends it are sorts put together. All by name, so that the same model gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from taskgov.scheduling.objects import NEVER, ClusterQueue
from taskgov.scheduling.settling import settle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskgov.scheduling.instants import Now
    from taskgov.scheduling.kueue_model import KueueModel
    from taskgov.scheduling.settling import Budget, FixedPoint

MOST_TRIALS: Final = 60
"""Remedies that are tried at most."""

MOST_QUEUES: Final = 6
"""Queues of a loop whose settings are tried."""

PERCENTAGES: Final = (200, 100, 50, 25, 10, 0)
"""Borrowing limits that are tried, in percent of the nominal quota."""


class Setting(StrEnum):
    """A setting of a queue that may end a loop, in the order in which they are tried."""

    WEIGHT = "weight"
    """`fairSharing.weight`, raised to the highest of the loop's queues; only with fair sharing."""
    WITHIN_QUEUE = "withinClusterQueue"
    """`preemption.withinClusterQueue`, set to `Never`."""
    BORROWING_LIMIT = "borrowingLimit"
    """Every `borrowingLimit`, lowered to a percentage of the nominal quota."""


@dataclass(frozen=True, slots=True)
class QueueSetting:
    """One setting of one ClusterQueue as it would have to be: a weight, `Never`, or a percentage."""

    queue: str
    setting: Setting
    value: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """Settings that, together, end a loop in the model; `waiting` are those of the loop who then wait."""

    settings: tuple[QueueSetting, ...]
    waiting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreemptionLoop:
    """Workloads that preempt one another forever, and what would end it.

    Parameters
    ----------
    workloads
        Those who are preempted and come back again and again, by name.
    preemptors
        Those for whom they are preempted, by name; may be the same.
    queues
        The ClusterQueues of both, by name.
    remedies
        At most one of each sort of setting, the simplest first; none where no trial came to rest.
    trials
        How many remedies were tried.
    searched
        Whether all were tried that could be: the budget was enough.

    """

    workloads: tuple[str, ...]
    preemptors: tuple[str, ...]
    queues: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    trials: int
    searched: bool


class OutOfStepsError(Exception):
    """The budget ended before the queues were at rest, or in a loop: whether there is one is not known."""


def loop_of(models: tuple[KueueModel, KueueModel], rest: FixedPoint, now: Now, budget: Budget) -> PreemptionLoop | None:
    """Return the loop that `rest` is, with what ends it; `models` is the cluster before and after, which stay.

    Raises OutOfStepsError where the budget ended before it is known whether there is one.
    """
    if not rest.loop:
        if not rest.settled:
            raise OutOfStepsError
        return None
    turns = [loss for loss in rest.preempted if loss.workload in rest.loop]
    queues = tuple(sorted({name for loss in turns for name in (loss.cluster_queue, loss.preemptor_queue)}))
    preemptors = tuple(sorted({loss.preemptor for loss in turns}))
    search = _Search(models, now, budget, sorted({*rest.loop, *preemptors}))
    remedies = tuple(search.remedies(queues[:MOST_QUEUES]))
    return PreemptionLoop(rest.loop, preemptors, queues, remedies, search.trials, not search.is_over)


class _Search:
    """Tries remedies on copies of the same models."""

    def __init__(self, models: tuple[KueueModel, ...], now: Now, budget: Budget, workloads: Sequence[str]) -> None:
        self._models, self._now, self._budget, self._workloads = models, now, budget, workloads
        self.trials = 0

    @property
    def is_over(self) -> bool:
        return self._budget.is_spent or self.trials >= MOST_TRIALS

    def remedies(self, queues: Sequence[str]) -> Iterator[Remedy]:
        """Give the first remedy of each sort that ends the loop; else the first that puts sorts together."""
        specs = [self._models[0].queue_spec(name) for name in queues]
        choices = {setting: list(self._choices(setting, specs)) for setting in Setting}
        found = [remedy for remedy in map(self._first, choices.values()) if remedy is not None]
        if not found:
            greatest = [chosen[-1] for chosen in choices.values() if chosen]
            together = [_together(greatest[:count]) for count in range(2, len(greatest) + 1)]
            found = [remedy for remedy in [self._first(together)] if remedy is not None]
        yield from found

    def _choices(self, setting: Setting, specs: Sequence[ClusterQueue]) -> Iterator[tuple[QueueSetting, ...]]:
        """Give what is tried of a sort: of each queue alone, then of all that it makes a difference to."""
        for value in self._values(setting, specs):
            every = tuple(
                QueueSetting(spec.name, setting, value) for spec in specs if applied(spec, setting, value) != spec
            )
            yield from ((single,) for single in every)
            if len(every) > 1:
                yield every

    def _values(self, setting: Setting, specs: Sequence[ClusterQueue]) -> tuple[str, ...]:
        match setting:
            case Setting.WEIGHT:
                if not self._models[0].config.fair_sharing:
                    return ()
                return (f"{max([1.0, *(spec.weight for spec in specs)]):g}",)
            case Setting.WITHIN_QUEUE:
                return (NEVER,)
            case Setting.BORROWING_LIMIT:
                return tuple(map(str, PERCENTAGES))

    def _first(self, choices: Iterable[tuple[QueueSetting, ...]]) -> Remedy | None:
        for settings in choices:
            if self.is_over:
                return None
            self.trials += 1
            ends = [self._tried(model, settings) for model in self._models]
            if all(rest.settled for _, rest in ends):
                at_rest = ends[0][0]
                waiting = tuple(key for key in self._workloads if at_rest.admission(key) is None)
                return Remedy(settings, waiting)
        return None

    def _tried(self, model: KueueModel, settings: Iterable[QueueSetting]) -> tuple[KueueModel, FixedPoint]:
        twin = model.copy()
        set_queues(twin, settings)
        return twin, settle(twin, self._now, budget=self._budget)


def set_queues(model: KueueModel, settings: Iterable[QueueSetting]) -> None:
    """Let settings take effect on the queues of a model. Raises `KeyError` for a queue that it does not have."""
    for change in settings:
        model.put_queue_spec(applied(model.queue_spec(change.queue), change.setting, change.value))


def applied(spec: ClusterQueue, setting: Setting, value: str) -> ClusterQueue:
    """Return a queue with one setting as it would have to be; a weight or limit that suits it already stays.

    Example:
        >>> applied(ClusterQueue("q", weight=0.0), Setting.WEIGHT, "10").weight
        10.0

    """
    match setting:
        case Setting.WEIGHT:
            return replace(spec, weight=max(spec.weight, float(value)))
        case Setting.WITHIN_QUEUE:
            return replace(spec, preemption=replace(spec.preemption, within_cluster_queue=value))
        case Setting.BORROWING_LIMIT:
            return _lowered(spec, int(value))


def _lowered(spec: ClusterQueue, percent: int) -> ClusterQueue:
    """Lower the borrowing limits; a queue outside a cohort has none (Kueue's webhook refuses one)."""
    if spec.cohort is None:
        return spec
    quotas = {}
    for key, quota in spec.quotas.items():
        limit = quota.nominal * percent // 100
        held = quota.borrowing_limit
        quotas[key] = replace(quota, borrowing_limit=limit if held is None else min(limit, held))
    return replace(spec, quotas=quotas)


def _together(choices: Iterable[tuple[QueueSetting, ...]]) -> tuple[QueueSetting, ...]:
    return tuple(setting for choice in choices for setting in choice)
