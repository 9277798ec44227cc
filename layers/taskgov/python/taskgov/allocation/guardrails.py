"""What no plan may do by itself: judge the changes, name what is stopped and what would let it through.

Guardrails fail closed: a limit that cannot be read, or an effect that cannot be predicted, stops the plan. One failed
guardrail stops the whole plan, because its changes belong together: what one team gives another receives. Only
`approval` does not stop but waits for a person.

| guardrail | looks at | says no when |
| --- | --- | --- |
| `stop-switch` | the switch | it is on, or cannot be read |
| `nodes-seen` | the node list | it is empty, and quotas would be lowered |
| `change-window` | the clock | no window is open |
| `max-decrease` | each number of each team | it falls by more than a percentage in one step |
| `max-decrease-per-period` | the same, against the most in the period | it falls by more than a percentage |
| `max-increase` | each number of each team | it rises by more than a percentage in one step |
| `max-increase-per-period` | the same, against the least in the period | it rises by more than a percentage |
| `minimum-quota` | a team's accelerators | they fall below the minimum |
| `max-preempted-gpus` | the prediction | more would be preempted, or nothing could be predicted |
| `approval` | moved and preempted GPUs | they exceed what goes without a person |

What a lease moves by the document's own words is neither a decrease nor an increase, and the shared pool is nobody's
promise: neither is limited (`taskgov.allocation.movements`). What rises from nothing has no percentage: it is let
through, and said so; `approval` counts its GPUs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from taskgov.allocation.movements import Movement
from taskgov.allocation.plan import Change, GuardrailVerdict, Prediction
from taskgov.allocation.windows import Opening, opening
from taskgov.policy.document import GrowthLimit, Guardrails, PeriodLimit
from taskgov.snapshot.model import Snapshot

APPROVAL = "approval"


@dataclass(frozen=True, slots=True)
class Judged:
    """The changes with what guardrails said of each, what they said of the plan, and when a window opens."""

    changes: tuple[Change, ...]
    verdicts: tuple[GuardrailVerdict, ...]
    opens_at: Opening

    @property
    def is_blocked(self) -> bool:
        """Whether any guardrail but the approval says no."""
        return any(not verdict.passed for verdict in self.verdicts if verdict.guardrail != APPROVAL)

    @property
    def needs_approval(self) -> bool:
        """Whether a person has to agree."""
        return any(not verdict.passed for verdict in self.verdicts if verdict.guardrail == APPROVAL)


def judge(
    snapshot: Snapshot,
    guardrails: Guardrails,
    changes: Sequence[Change],
    movements: Iterable[Movement],
    prediction: Prediction,
) -> Judged:
    """Return what every guardrail says. Without changes there is nothing to stop."""
    if not changes:
        return Judged((), (), Opening(is_open=True))
    by_team: dict[str, list[Movement]] = {}
    for movement in movements:
        by_team.setdefault(movement.team, []).append(movement)
    judged = tuple(
        replace(each, guardrails=_of_change(each, by_team.get(each.team, []), guardrails)) for each in changes
    )
    window, window_verdicts = _window(snapshot, guardrails)
    failed = (verdict for change in judged for verdict in change.guardrails if not verdict.passed)
    verdicts = (
        _stop_switch(snapshot),
        *_nodes_seen(snapshot, changes),
        *window_verdicts,
        *failed,
        *_preempted(guardrails, prediction),
        *_approval(guardrails, changes, prediction),
    )
    return Judged(judged, verdicts, window)


def moved_gpus(changes: Iterable[Change]) -> float:
    """Return how many GPUs change hands: the greater of all that is given and all that is taken."""
    moves = [change.gpus_after - change.gpus_before for change in changes]
    return max(sum(move for move in moves if move > 0), -sum(move for move in moves if move < 0))


def _verdict(guardrail: str, because: str, remedy: str, *, passed: bool) -> GuardrailVerdict:
    return GuardrailVerdict(guardrail, passed, because, "" if passed else remedy)


def _stop_switch(snapshot: Snapshot) -> GuardrailVerdict:
    state = {None: "could not be read", True: "is on", False: "is off"}[snapshot.stopped]
    remedy = "wait until it can be read" if snapshot.stopped is None else "turn it off"
    return _verdict("stop-switch", f"The stop switch {state}.", remedy, passed=snapshot.stopped is False)


def _nodes_seen(snapshot: Snapshot, changes: Iterable[Change]) -> Iterable[GuardrailVerdict]:
    """Take a node list without nodes for a failed reading rather than for a cluster without machines."""
    if not snapshot.nodes and any(change.gpus_after < change.gpus_before for change in changes):
        because = "The snapshot shows no nodes at all, and quotas would be lowered."
        yield _verdict("nodes-seen", because, "see whether the cluster's nodes can be read", passed=False)


def _window(snapshot: Snapshot, guardrails: Guardrails) -> tuple[Opening, list[GuardrailVerdict]]:
    if not guardrails.change_windows:
        return Opening(is_open=True), []
    try:
        window = opening(guardrails.change_windows, snapshot.taken_at)
    except ValueError as error:
        because = f"The change windows cannot be read: {error}."
        return Opening(is_open=False), [
            _verdict("change-window", because, "correct guardrails.changeWindows", passed=False)
        ]
    when = f"{window.next_at:%Y-%m-%d %H:%M} UTC" if window.next_at else "never"
    because = "A change window is open." if window.is_open else f"No change window is open; the next one: {when}."
    return window, [_verdict("change-window", because, "wait for the window, or change it", passed=window.is_open)]


def _of_change(change: Change, movements: Sequence[Movement], guardrails: Guardrails) -> tuple[GuardrailVerdict, ...]:
    limits = {each.falls: each for each in (_DECREASE, _INCREASE)}
    verdicts = [verdict for each in movements for verdict in limits[each.falls].judge(each, guardrails)]
    minimum = guardrails.minimum_quota.get(change.team)
    if minimum is not None and change.gpus_after < change.gpus_before:
        verdicts.append(_minimum(change, minimum))
    return tuple(verdicts)


@dataclass(frozen=True, slots=True)
class _Limit:
    """How far a number may move in one direction: the words of it, and where the document has its numbers."""

    falls: bool
    name: str
    moves: str
    farthest: str
    steps: str
    field: str

    def judge(self, movement: Movement, guardrails: Guardrails) -> Iterable[GuardrailVerdict]:
        step = guardrails.max_decrease_percent if self.falls else guardrails.max_increase_percent
        if step is not None:
            yield self._in_step(movement, step)
        period = guardrails.max_decrease_per_period if self.falls else guardrails.max_increase_per_period
        if period is not None:
            yield self._in_period(movement, period)

    def _in_step(self, movement: Movement, limit: float) -> GuardrailVerdict:
        percent = movement.percent_of(movement.before)
        if percent is None:
            return self._from_nothing(self.name, movement)
        because = f"{movement.words} {self.moves} by {percent:g} % in one step, {limit:g} % is the most."
        remedy = f"raise guardrails.{self.field}Percent to {percent:g}, or {self.steps} the quota in steps"
        return _verdict(self.name, because, remedy, passed=percent <= limit)

    def _in_period(self, movement: Movement, period: PeriodLimit | GrowthLimit) -> GuardrailVerdict:
        name, base, hours = f"{self.name}-per-period", movement.farthest, period.hours
        if base is None:
            because = f"{movement.words}: what it was in the last {hours} h cannot be read."
            return _verdict(name, because, "wait until the history can be read", passed=False)
        percent = movement.percent_of(base)
        if percent is None:
            return self._from_nothing(name, movement)
        because = (
            f"{movement.words} {self.moves} by {percent:g} % from the {self.farthest} in {hours} h ({base:g}), "
            f"{period.percent:g} % is the most."
        )
        remedy = f"wait, or raise guardrails.{self.field}PerPeriod.percent to {percent:g}"
        return _verdict(name, because, remedy, passed=percent <= period.percent)

    @staticmethod
    def _from_nothing(name: str, movement: Movement) -> GuardrailVerdict:
        because = f"{movement.words}: there was nothing before, and nothing has no percentage."
        return _verdict(name, because, "", passed=True)


_DECREASE = _Limit(falls=True, name="max-decrease", moves="falls", farthest="most", steps="lower", field="maxDecrease")
_INCREASE = _Limit(
    falls=False, name="max-increase", moves="rises", farthest="least", steps="raise", field="maxIncrease"
)


def _minimum(change: Change, minimum: int) -> GuardrailVerdict:
    because = f"{change.team} would have {change.gpus_after:g} accelerators, {minimum} is its minimum."
    remedy = f"lower guardrails.minimumQuota.{change.team}, or bring nodes back"
    return _verdict("minimum-quota", because, remedy, passed=change.gpus_after >= minimum)


def _preempted(guardrails: Guardrails, prediction: Prediction) -> Iterable[GuardrailVerdict]:
    limit, would_be = guardrails.max_preempted_gpus, prediction.preempted_gpus
    if limit is None:
        return
    because = f"{would_be} GPUs would be preempted, {limit} is the most."
    remedy = f"raise guardrails.maxPreemptedGpus to {would_be}, or wait until the work is done"
    if not prediction.simulated:
        because = f"What would be preempted cannot be predicted: {'; '.join(prediction.not_modelled)}."
        remedy = "remove guardrails.maxPreemptedGpus to go ahead without knowing"
    yield _verdict("max-preempted-gpus", because, remedy, passed=prediction.simulated and would_be <= limit)


def _approval(guardrails: Guardrails, changes: Iterable[Change], prediction: Prediction) -> Iterable[GuardrailVerdict]:
    threshold = guardrails.approve_above
    if threshold is None:
        return
    if threshold.changed_gpus is not None:
        moved = moved_gpus(changes)
        because = f"{moved:g} GPUs change hands, up to {threshold.changed_gpus} go without approval."
        yield _verdict(APPROVAL, because, "approve the plan", passed=moved <= threshold.changed_gpus)
    if threshold.preempted_gpus is not None:
        known, would_be = prediction.simulated, prediction.preempted_gpus
        because = (
            f"{would_be if known else 'An unknown number of'} GPUs would be preempted, "
            f"up to {threshold.preempted_gpus} go without approval."
        )
        yield _verdict(APPROVAL, because, "approve the plan", passed=known and would_be <= threshold.preempted_gpus)
