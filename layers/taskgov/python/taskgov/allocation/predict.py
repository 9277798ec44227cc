"""Predict what the scheduler does during a plan: which workloads start, are preempted, or wait longer.

The waves of a plan are simulated one after the other on a copy of the cluster's queues. After each wave the queues
settle, as in a run. HyperPod renders the writes of one wave in an unknown order, so a workload counts as preempted if
any order preempts it:

| writes of a wave | simulated orders |
| --- | --- |
| up to 6, if the budget allows | at once, and one after the other in every order |
| more | at once, forward, and backward, in 3 to 12 portions as the budget allows |

Effects that the cluster would have without the plan are found on a separate copy, and left out. If somebody changed
other fields of a queue (its `stopPolicy`, for example), HyperPod may keep or undo this. Both cases are simulated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from taskgov import scheduling
from taskgov.allocation.effects import Loss, Losses, effects_of, gpus_of
from taskgov.allocation.plan import AT_RISK, Prediction
from taskgov.allocation.projection import Projection
from taskgov.allocation.uncertain import may_be_preempted, not_followed
from taskgov.collector import collect_recent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskgov.allocation.plan import Change
    from taskgov.hyperpod.instance_types import InstanceTypeTable
    from taskgov.scheduling import KueueModel
    from taskgov.snapshot.model import Snapshot

MODEL_STEPS: Final = 100_000
"""Budget: heads of queues that a prediction considers. A count, so that equal snapshots give equal bytes."""

MODEL_WORK: Final = 2_000_000
"""Limit of heads times queues under fair sharing, with at least `FEWEST_STEPS` heads."""

FEWEST_STEPS: Final = 29_000
"""Smallest budget under fair sharing, where the time of a head hardly grows with more queues.

A plan for 1,000 queues with one shape of jobs each takes 28,000: a plan has up to three waves, each played seven times.
"""

MODEL_WORK_IN_ORDER: Final = 4_000_000
"""Limit of heads times queues without fair sharing, where a head takes longer with more queues (measured)."""

MOST_EXACT: Final = 6
"""Most writes of a wave for which every order is simulated."""

MOST_PORTIONS: Final = 12
"""Most portions in which a larger wave is simulated forward and backward."""

FEWEST_PORTIONS: Final = 3
"""Fewest portions."""

MOST_STATES: Final = 8
"""States of the cluster that are followed from wave to wave, where the order within a wave made a difference."""

MOST_NAMED: Final = 3
"""Workloads that a sentence names."""

EXACT_PART: Final = 8
"""All orders of a wave are simulated if this is expected to use at most 1 / `EXACT_PART` of the remaining steps."""


class LoopError(Exception):
    """Workloads would preempt one another forever; the message names them."""


@dataclass(frozen=True, slots=True)
class State:
    """A possible state of the cluster."""

    cluster: Projection
    excused: frozenset[str] = frozenset()
    """Workloads that the cluster preempts by itself, and has not yet: their first loss is not the plan's doing."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The cluster after some waves: its possible states, preempted workloads, and what was not simulated."""

    states: tuple[State, ...]
    """The first is the one in which the writes of each wave were rendered at once."""
    losses: Losses = field(default_factory=dict)
    not_played: tuple[str, ...] = ()

    @property
    def gpus(self) -> int:
        """Accelerators lost to preemption."""
        return sum(gpus_of(loss.held) for loss in self.losses.values())


class Player:
    """Plays waves of writes on copies of a cluster, within one budget of model steps."""

    def __init__(
        self, snapshot: Snapshot, changes: Iterable[Change], table: InstanceTypeTable, steps: int | None = None
    ) -> None:
        """Take the cluster and all changes that may be played, with `steps` heads of queues to consider, if given.

        Raises `KeyError` or `ValueError` for objects that cannot be read, LoopError where the cluster never rests.
        """
        may_be_made = tuple(changes)
        today = Projection.of(snapshot, may_be_made, table)
        self.steps = steps_for(today.model) if steps is None else steps
        self.budget = scheduling.Budget(self.steps)
        self.calm = today.copy()
        self.today = today
        rest = self.calm.settle(self.budget)
        self._most_steps = 1 + self.steps - self.budget.left
        if rest.loop:
            raise LoopError(f"workloads would preempt one another forever: {', '.join(sorted(rest.loop))}")
        # The first wave may be rendered before the queues have come to rest by themselves.
        moved = bool(rest.admitted or rest.preempted)
        not_played = () if rest.settled else ("the cluster as it is",)
        anyway = frozenset(loss.workload for loss in rest.preempted)
        states: tuple[State, ...] = (State(self.calm), State(today, anyway)) if moved else (State(self.calm),)
        if today.may_put_back(may_be_made):
            states += tuple(State(state.cluster.copy(puts_back=True), state.excused) for state in states)
        self.start = Stage(states, not_played=not_played)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits. Then no write can start or preempt a workload."""
        return not any(state.cluster.model.anybody_waits() for state in self.start.states)

    def after(self, stage: Stage, wave: Sequence[Change], number: int, *, every_order: bool = True) -> Stage:
        """Return the cluster once a wave has settled; without `every_order` its writes are rendered at once only.

        Raises LoopError where it never settles.
        """
        losses, not_played, all_played = dict(stage.losses), stage.not_played, True
        ends = self._in_portions(stage.states, [wave], number, losses)
        if every_order and len(wave) > 1:
            if self._can_play_every_order(len(wave)):
                every = self._in_every_order(stage.states, wave, number, losses)
                ends += every
                all_played = bool(every)
            else:
                size = -(-len(wave) // self._portions(len(wave)))
                portions = [wave[begin : begin + size] for begin in range(0, len(wave), size)]
                backward = [portion[::-1] for portion in portions[::-1]]
                # The likeliest state is played in both ways, each other one in one of them.
                ends += self._in_portions((*stage.states[:1], *stage.states[1::2]), portions, number, losses)
                ends += self._in_portions((*stage.states[:1], *stage.states[2::2]), backward, number, losses)
        states = _distinct(ends or stage.states)
        if self.budget.is_spent or not all_played or len(states) > MOST_STATES:
            not_played = (*not_played, f"every order of wave {number}" if ends else f"wave {number}")
        return Stage(states[:MOST_STATES], losses, not_played)

    def _portions(self, writes: int) -> int:
        """Return the number of portions in which a wave is simulated forward and backward."""
        affordable = self.budget.left // (EXACT_PART * self._most_steps)
        return min(writes, MOST_PORTIONS, max(affordable, FEWEST_PORTIONS))

    def _can_play_every_order(self, writes: int) -> bool:
        plays = writes * 2 ** (writes - 1)
        return writes <= MOST_EXACT and plays * self._most_steps <= self.budget.left // EXACT_PART

    def _in_portions(
        self, states: Iterable[State], portions: Sequence[Sequence[Change]], number: int, losses: Losses
    ) -> list[State]:
        ends: list[State] = []
        collect_recent()  # each play has a model of its own, which is full of cycles
        for state in states:
            end = state
            for portion in portions:
                if self.budget.is_spent:
                    return ends
                end = self._played(end, portion, number, losses)
            ends.append(end)
        return ends

    def _in_every_order(
        self, states: Iterable[State], wave: Sequence[Change], number: int, losses: Losses
    ) -> list[State]:
        """Play every order of single writes, each set of writes once for each state that it leads to.

        Return nothing where these are too many to follow.
        """
        reached: dict[frozenset[int], tuple[State, ...]] = {frozenset(): tuple(states)}
        for _ in wave:
            following: dict[frozenset[int], list[State]] = {}
            for written, ends in reached.items():
                for index in (index for index in range(len(wave)) if index not in written):
                    if self.budget.is_spent:
                        return []
                    after = (self._played(end, (wave[index],), number, losses) for end in ends)
                    following.setdefault(written | {index}, []).extend(after)
            reached = {written: _distinct(ends) for written, ends in following.items()}
            if any(len(ends) > MOST_STATES for ends in reached.values()):
                return []
        return list(reached[frozenset(range(len(wave)))])

    def _played(self, before: State, changes: Sequence[Change], number: int, losses: Losses) -> State:
        """Return the cluster after these changes were rendered at once and the queues have settled."""
        end, left, excused = before.cluster.copy(), self.budget.left, set(before.excused)
        end.write(changes)
        rest = end.settle(self.budget)
        self._most_steps = max(self._most_steps, left - self.budget.left)
        if rest.loop:
            raise LoopError(f"workloads would preempt one another forever: {', '.join(sorted(rest.loop))}")
        if rest.preempted:
            admitted = {event.workload: event.admission for event in rest.admitted}
            for loss in rest.preempted:
                held = before.cluster.model.admission(loss.workload) or admitted[loss.workload]
                if loss.workload in excused:
                    excused.remove(loss.workload)
                elif loss.workload not in losses:
                    losses[loss.workload] = Loss(loss.workload, number, loss.reason, loss.preemptor, held)
        return State(end, frozenset(excused))


def steps_for(model: KueueModel) -> int:
    """Return how many heads of queues one question about a cluster may consider, in a plan, an audit or what-if."""
    queues = max(len(list(model.cluster_queues())), 1)
    if model.config.fair_sharing:
        return min(MODEL_STEPS, max(MODEL_WORK // queues, FEWEST_STEPS))
    return min(MODEL_STEPS, MODEL_WORK_IN_ORDER // queues)


def prediction_of(player: Player, end: Stage, waves: Iterable[Sequence[Change]]) -> Prediction:
    """Return what a path of waves does to the workloads, in words: what differs from the cluster that is left alone."""
    why = f"the {player.steps:,} model steps of a prediction are used up"
    if not player.budget.is_spent:
        why = f"it leads to more than {MOST_STATES} states"
    not_played = tuple(f"{what} and the following was not simulated: {why}" for what in end.not_played[:1])
    ends = tuple(state.cluster for state in end.states)
    again = scheduling.Budget(player.steps)
    alone = (player.today.model, player.calm.model)
    at_risk = may_be_preempted(alone, player.today, waves, end.losses, again)
    effects = tuple(effects_of(player.calm, ends, end.losses, at_risk))
    return Prediction(
        simulated=True,
        effects=effects,
        preempted_gpus=end.gpus,
        not_modelled=not_followed(player.calm.model.not_modelled),
        not_predicted=(*not_played, *not_read(player)),
        may_be_preempted_gpus=sum(effect.gpus for effect in effects if effect.effect == AT_RISK),
    )


def not_read(player: Player) -> tuple[str, ...]:
    """Return the workloads and other objects that could not be read, a sentence for both; nothing where all could."""
    found = (("workloads", player.calm.unread), ("objects", player.calm.unread_objects))
    return tuple(f"{kind} that cannot be read were left out: {_some(names)}" for kind, names in found if names)


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def _distinct(states: Sequence[State]) -> tuple[State, ...]:
    if len(states) == 1:
        return tuple(states)
    by_signature: dict[object, State] = {}
    for state in states:
        key = state.cluster.model.signature(), state.excused, state.cluster.puts_back
        by_signature.setdefault(key, state)
    return tuple(by_signature.values())
