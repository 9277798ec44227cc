"""Find work that would preempt itself forever, and the quota settings that would end such a loop.

The audit calls it for the cluster as it is, what-if for the hypothetical one. `taskgov.scheduling.loops` searches. A
remedy is proposed only if the model then reaches a fixed point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.allocation.predict import steps_for
from taskgov.allocation.projection import Projection
from taskgov.allocation.written import UNREADABLE
from taskgov.kueue.named import named
from taskgov.scheduling import Budget, loops
from taskgov.scheduling.loops import QueueSetting, Setting
from taskgov.usage.quota_usage import team_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.allocation.plan import Change
    from taskgov.snapshot.model import Snapshot

NO_REMEDY: Final = (
    "no weight, preemption of own tasks or borrow limit ends it in the model ({trials} tried): give these workloads "
    "one priority, or stop one of them"
)
NOT_ALL: Final = " (not all settings were tried: the search has an end)"

_IN_QUOTAS: Final[Mapping[Setting, str]] = {
    Setting.WEIGHT: "FairShareWeight of {team}: {value}",
    Setting.WITHIN_QUEUE: "PreemptTeamTasks of {team}: {value}",
    Setting.BORROWING_LIMIT: "BorrowLimit of {team}: {value} %",
}
_IN_QUEUES: Final[Mapping[Setting, str]] = {
    Setting.WEIGHT: "fairSharing.weight of ClusterQueue {queue}: {value}",
    Setting.WITHIN_QUEUE: "preemption.withinClusterQueue of ClusterQueue {queue}: {value}",
    Setting.BORROWING_LIMIT: "every borrowingLimit of ClusterQueue {queue}: {value} % of its nominal quota",
}
_NO_BORROWING: Final = "Strategy of {team}: Lend (it borrows nothing)"


@dataclass(frozen=True, slots=True)
class LoopRemedy:
    """What would end a loop. `waiting` are the loop's workloads, as people call them, that then wait."""

    words: str
    settings: tuple[QueueSetting, ...]
    waiting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """Work that would preempt itself forever if nothing else happened, as people call it (`team/job`).

    `workloads` are preempted again and again, `preemptors` are those for whom. `remedies` are proved by the model, the
    simplest first; none where none of the `trials` came to rest. `searched` says that no more could be tried.
    """

    workloads: tuple[str, ...]
    preemptors: tuple[str, ...]
    teams: tuple[str, ...]
    remedies: tuple[LoopRemedy, ...]
    trials: int
    searched: bool

    @property
    def advice(self) -> str:
        """All remedies in one sentence, or what to do without one."""
        ended = "" if self.searched else NOT_ALL
        if not self.remedies:
            return NO_REMEDY.format(trials=self.trials) + ended
        return f"in the model any of these ends it: {'; or '.join(remedy.words for remedy in self.remedies)}{ended}"


@dataclass(frozen=True, slots=True)
class LoopSearch:
    """What a search for a loop came to. `steps` are the model steps after which it ended without an answer, else 0."""

    loop: Loop | None = None
    steps: int = 0


def loop_in(snapshot: Snapshot, changes: Iterable[Change] = ()) -> Loop | None:
    """Return the loop that the work of a snapshot would get into, once these changes are written at once.

    None without a loop, and where that cannot be said.
    """
    return search_loop(snapshot, changes).loop


def search_loop(snapshot: Snapshot, changes: Iterable[Change] = ()) -> LoopSearch:
    """Search for that loop, within the step budget of a prediction.

    Finds nothing if the cluster cannot be modelled. The plan's prediction then gives the reason for both.
    """
    written = tuple(changes)
    try:
        cluster = Projection.of(snapshot, written)
        if written:
            cluster.write(written)
    except UNREADABLE:
        return LoopSearch()
    if not cluster.model.anybody_waits():
        return LoopSearch()
    budget = Budget(steps_for(cluster.model))
    try:
        turning = cluster.copy()
        rest = turning.settle(budget)
        found = loops.loop_of((cluster.model, turning.model), rest, snapshot.taken_at, budget)
    except loops.OutOfStepsError:
        return LoopSearch(steps=budget.steps)
    return LoopSearch(None if found is None else _told(found, snapshot, cluster))


def _told(found: loops.PreemptionLoop, snapshot: Snapshot, cluster: Projection) -> Loop:
    names = {item.key: item.shown for item in map(named, snapshot.kueue.workloads)}
    teams = {name: team_of(queue) for name, queue in cluster.queues.items()}
    governed = {quota.compute_quota_target.team_name for quota in cluster.quotas.values()}

    def shown(keys: Iterable[str]) -> tuple[str, ...]:
        return tuple(names.get(key, key) for key in keys)

    def words(change: QueueSetting) -> str:
        team = teams.get(change.queue, change.queue)
        form = (_IN_QUOTAS if team in governed else _IN_QUEUES)[change.setting]
        if team in governed and change.setting is Setting.BORROWING_LIMIT and change.value == "0":
            form = _NO_BORROWING
        return form.format(team=team, queue=change.queue, value=change.value)

    return Loop(
        workloads=shown(found.workloads),
        preemptors=shown(found.preemptors),
        teams=tuple(dict.fromkeys(teams.get(queue, queue) for queue in found.queues)),
        remedies=tuple(
            LoopRemedy(" and ".join(map(words, remedy.settings)), remedy.settings, shown(remedy.waiting))
            for remedy in found.remedies
        ),
        trials=found.trials,
        searched=found.searched,
    )
