"""What no plan may do by itself: judge the changes, name what is stopped and what would unblock it.

Guardrails fail closed: a limit that cannot be read, or an effect that cannot be predicted, stops the plan. One failed
guardrail stops the whole plan, because its changes belong together: what one team gives another receives. Only
`nodes-seen` and `approval` do not stop but wait for a person.

| guardrail | reads | refuses when |
| --- | --- | --- |
| `stop-switch` | the switch | it is on, or cannot be read |
| `all-read` | quotas, cluster policy and instance groups | one of them cannot be read: it may promise anything |
| `nodes-seen` | nodes lost and not confirmed | any number of a quota would be lowered, or raised into what was lost |
| `change-window` | the clock | no window is open |
| `max-decrease` | every resource of every type of a quota | it falls by more than a percentage in one step |
| `max-decrease-per-period` | the same, against the most in the period | it falls by more than a percentage |
| `max-increase` | every resource of every type of a quota | it rises by more than a percentage in one step |
| `max-increase-per-period` | the same, against the least in the period | it rises by more than a percentage |
| `minimum-quota` | a quota's accelerators | they fall below the minimum, or may: their number is not known |
| `max-preempted-gpus` | the prediction | more would be preempted, or not everything could be predicted |
| `approval` | moved and preempted GPUs | they exceed what goes without a person, or are not known |

Quotas are judged, not writes: one that is written twice by what stood before and what the last write makes of it
(`taskgov.allocation.goals`). What a lease moves by the document's own words is neither a decrease nor an increase, and
the shared pool is nobody's promise: neither is limited (`taskgov.allocation.limits`). What rises from nothing has no
percentage: it is let through, and said so; `approval` counts its GPUs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from taskgov.allocation.capacity import TypeCapacity
from taskgov.allocation.changes import quota_sums, vectors_of
from taskgov.allocation.confirmed_losses import is_confirmed_empty
from taskgov.allocation.doubts import RESTORED, state_verdicts
from taskgov.allocation.exchange import exchange, gpus_by_type, uncounted
from taskgov.allocation.goals import Goal, goals_of
from taskgov.allocation.limits import limits
from taskgov.allocation.low_write import queue_amounts
from taskgov.allocation.mass_loss import said_loss
from taskgov.allocation.parts import add
from taskgov.allocation.plan import POLICY_KINDS, Change, GuardrailVerdict, MassLoss, Prediction
from taskgov.allocation.quota_deltas import QuotaDelta
from taskgov.allocation.windows import Opening, opening
from taskgov.allocation.wording import need_approval, said_gpus, said_number
from taskgov.policy.document import Guardrails
from taskgov.scheduling.unmodelled import words_of
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.unreadable import PROMISES

APPROVAL = "approval"
NODES_SEEN = "nodes-seen"
_NAMED = 5
FOR_A_PERSON = frozenset({APPROVAL, NODES_SEEN, RESTORED})
"""Guardrails that a person passes by approving the plan; the others block it."""


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """The unconfirmed mass losses, and the capacity without the lost nodes."""

    losses: tuple[MassLoss, ...] = ()
    capacities: Mapping[str, TypeCapacity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """The changes with their verdicts, the verdicts on the plan, and when a window opens."""

    changes: tuple[Change, ...]
    verdicts: tuple[GuardrailVerdict, ...]
    opens_at: Opening
    losses: tuple[MassLoss, ...] = ()
    """The mass losses that a person approves together with the plan."""

    @property
    def is_blocked(self) -> bool:
        """Whether a guardrail fails that no approval overrides."""
        return any(not verdict.passed for verdict in self.verdicts if verdict.guardrail not in FOR_A_PERSON)

    @property
    def needs_approval(self) -> bool:
        """Whether the plan needs an approval."""
        return any(not verdict.passed for verdict in self.verdicts if verdict.guardrail in FOR_A_PERSON)


def judge(
    snapshot: Snapshot,
    guardrails: Guardrails,
    changes: Sequence[Change],
    deltas: Iterable[QuotaDelta],
    prediction: Prediction,
    capacities: Mapping[str, TypeCapacity],
    unconfirmed: Unconfirmed = Unconfirmed(),
) -> Judged:
    """Return the verdicts of all guardrails; none without changes.

    The verdicts on a quota are in its last write.
    """
    if not changes:
        return Judged((), (), Opening(is_open=True))
    goals = goals_of(snapshot, changes)
    by_quota = _of_quotas(goals, deltas, guardrails, capacities)
    last = {change.subject: change.index for change in changes if change.kind not in POLICY_KINDS}
    judged = tuple(
        replace(change, guardrails=by_quota[change.subject] if last.get(change.subject) == change.index else ())
        for change in changes
    )
    window, window_verdicts = _window(snapshot, guardrails)
    failed = (verdict for change in judged for verdict in change.guardrails if not verdict.passed)
    nodes_seen = tuple(_nodes_seen(snapshot, goals, capacities, unconfirmed))
    verdicts = (
        _stop_switch(snapshot),
        *_all_read(snapshot),
        *nodes_seen,
        *state_verdicts(snapshot, changes, goals, lambda goal: _is_lowered(goal, capacities)),
        *window_verdicts,
        *failed,
        *_preempted(guardrails, prediction),
        *_approval(guardrails, goals, prediction, capacities),
    )
    return Judged(judged, verdicts, window, unconfirmed.losses if nodes_seen else ())


def _verdict(guardrail: str, because: str, remedy: str, *, passed: bool) -> GuardrailVerdict:
    return GuardrailVerdict(guardrail, passed, because, "" if passed else remedy)


def _stop_switch(snapshot: Snapshot) -> GuardrailVerdict:
    state = {None: "could not be read", True: "is on", False: "is off"}[snapshot.stopped]
    remedy = "wait until it can be read" if snapshot.stopped is None else "turn it off"
    return _verdict("stop-switch", f"The stop switch {state}.", remedy, passed=snapshot.stopped is False)


def _all_read(snapshot: Snapshot) -> Iterable[GuardrailVerdict]:
    """Stop while a promise is unknown, because an increase might then exceed the capacity."""
    unread = [item for item in snapshot.unreadable_objects if item.kind in PROMISES]
    if unread:
        named = "; ".join(f"{item.kind} {item}" for item in unread[:_NAMED])
        more = f"; and {len(unread) - _NAMED} more" if len(unread) > _NAMED else ""
        remedy = "correct or delete it, or run a release that supports its form"
        yield _verdict("all-read", f"Quotas, or machines, are not known: {named}{more}.", remedy, passed=False)


def _nodes_seen(
    snapshot: Snapshot,
    goals: Sequence[Goal],
    capacities: Mapping[str, TypeCapacity],
    unconfirmed: Unconfirmed,
) -> Iterable[GuardrailVerdict]:
    """Reject an unconfirmed mass loss, and a cluster without nodes, while quotas depend on it."""
    lost = " ".join(map(said_loss, unconfirmed.losses))
    remedy = "check whether the cluster's nodes can be read; approve the plan if the nodes are really gone"
    if any(_is_lowered(goal, capacities) for goal in goals):
        if lost:
            yield _verdict(NODES_SEEN, f"{lost} Quotas would be lowered.", remedy, passed=False)
        elif not snapshot.nodes and not is_confirmed_empty(snapshot):
            because = "The snapshot shows no nodes at all, and quotas would be lowered."
            yield _verdict(NODES_SEEN, because, remedy, passed=False)
    elif beyond := _raised_beyond(snapshot, goals, capacities, unconfirmed):
        because = f"{lost} Quotas on {', '.join(beyond)} would be raised above the capacity without them."
        yield _verdict(NODES_SEEN, because, remedy, passed=False)


def _raised_beyond(
    snapshot: Snapshot,
    goals: Sequence[Goal],
    capacities: Mapping[str, TypeCapacity],
    unconfirmed: Unconfirmed,
) -> list[str]:
    """Return the types on which quotas would rise above the capacity without the lost nodes."""
    types = [loss.instance_type for loss in unconfirmed.losses]
    if not types:
        return []
    today = quota_sums(snapshot.quotas, capacities)
    before = [vectors_of(goal.stands.compute_quota_resources, capacities) for goal in goals]
    after = [vectors_of(goal.after.compute_quota_resources, capacities) for goal in goals]
    beyond = []
    for name in types:
        room = unconfirmed.capacities[name].total if name in unconfirmed.capacities else {}
        gives, takes = (add(vector.get(name, {}) for vector in vectors) for vectors in (before, after))
        for resource, amount in takes.items():
            rises = amount - gives.get(resource, 0)
            if rises > 0 and today.get(name, {}).get(resource, 0) + rises > room.get(resource, 0):
                beyond.append(name)
                break
    return beyond


def _is_lowered(goal: Goal, capacities: Mapping[str, TypeCapacity]) -> bool:
    """Return whether any resource of any type of a quota falls."""
    before, after = (
        queue_amounts(config, lambda name: capacities[name].resources if name in capacities else None)
        for config in (goal.stands, goal.lowest)
    )
    return any(after.get(place, 0) < amount for place, amount in before.items())


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


def _of_quotas(
    goals: Iterable[Goal],
    deltas: Iterable[QuotaDelta],
    guardrails: Guardrails,
    capacities: Mapping[str, TypeCapacity],
) -> dict[str, tuple[GuardrailVerdict, ...]]:
    """Return what the limits say of each quota, by its key."""
    moving: dict[str, list[QuotaDelta]] = {}
    for delta in deltas:
        moving.setdefault(delta.quota, []).append(delta)
    bounds = limits(guardrails)
    return {
        goal.key: (
            *(verdict for limit in bounds for verdict in limit.verdicts(moving.get(goal.key, []))),
            *_minimum(goal, guardrails, capacities),
        )
        for goal in goals
    }


def _minimum(goal: Goal, guardrails: Guardrails, capacities: Mapping[str, TypeCapacity]) -> Iterable[GuardrailVerdict]:
    minimum = guardrails.minimum_quota.get(goal.team)
    before, after = (sum(gpus_by_type(config, capacities).values()) for config in (goal.stands, goal.lowest))
    unknown = ", ".join(sorted(uncounted(goal.stands, goal.lowest, capacities)))
    if minimum is None or (after >= before and not (unknown and _is_lowered(goal, capacities))):
        return
    because = f"{goal.team} would have {said_number(Fraction(after))} accelerators; its minimum is {minimum}."
    remedy = f"lower guardrails.minimumQuota.{goal.team}, or bring nodes back"
    if unknown:
        because = f"{because} How many {unknown} has is not known, and counts as none."
        remedy = f"add {unknown} to instanceTypes in the policy document, or lower guardrails.minimumQuota.{goal.team}"
    yield _verdict("minimum-quota", because, remedy, passed=after >= minimum)


def _preempted(guardrails: Guardrails, prediction: Prediction) -> Iterable[GuardrailVerdict]:
    limit, would_be = guardrails.max_preempted_gpus, prediction.most_preempted_gpus
    if limit is None:
        return
    because = f"{_said_preempted(prediction)}; the most allowed is {limit}."
    remedy = f"raise guardrails.maxPreemptedGpus to {would_be}, or wait until the work is done"
    if not prediction.simulated:
        because = f"What would be preempted cannot be predicted: {'; '.join(prediction.not_modelled)}."
        remedy = "remove guardrails.maxPreemptedGpus to continue without a prediction"
    elif not prediction.is_complete:
        because = (
            f"At least {_said_preempted(prediction)}; the most allowed is {limit}. "
            f"What was not predicted: {'; '.join(prediction.not_predicted)}."
        )
        remedy = "change fewer quotas at once, or remove guardrails.maxPreemptedGpus to continue without a prediction"
    yield _verdict("max-preempted-gpus", because, remedy, passed=prediction.is_complete and would_be <= limit)


def _said_preempted(prediction: Prediction) -> str:
    """Return how much would be preempted, with what may be: as a sentence without its end."""
    certain = f"{said_gpus(prediction.preempted_gpus)} would be preempted"
    if not prediction.may_be_preempted_gpus:
        return certain
    return f"{certain}, and {prediction.may_be_preempted_gpus} more may be (not certain: {words_of(prediction.doubts)})"


def _approval(
    guardrails: Guardrails,
    goals: Iterable[Goal],
    prediction: Prediction,
    capacities: Mapping[str, TypeCapacity],
) -> Iterable[GuardrailVerdict]:
    threshold = guardrails.approve_above
    if threshold is None:
        return
    if threshold.changed_gpus is not None:
        moved = exchange(goals, capacities)
        because = f"{said_gpus(moved.gpus)} would change hands. {need_approval(threshold.changed_gpus)}"
        if moved.unknown:
            because = f"At least {because} How many {', '.join(moved.unknown)} has is not known."
        passed = moved.gpus <= threshold.changed_gpus and not moved.unknown
        yield _verdict(APPROVAL, because, "approve the plan", passed=passed)
    if threshold.preempted_gpus is not None:
        would_be = prediction.most_preempted_gpus
        said = _said_preempted(prediction)
        if not prediction.is_complete:
            said = f"At least {said}" if prediction.simulated else "An unknown number of GPUs would be preempted"
        because = f"{said}. {need_approval(threshold.preempted_gpus)}"
        if prediction.simulated and prediction.not_predicted:
            because = f"{because} What was not predicted: {'; '.join(prediction.not_predicted)}."
        passed = prediction.is_complete and would_be <= threshold.preempted_gpus
        yield _verdict(APPROVAL, because, "approve the plan", passed=passed)
