"""Whether the outcome of a plan is the one that the document's limits demand."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

from taskgov.allocation.plan import Outcome, WorkloadEffect
from taskgov.policy.document import CapacityRules, PolicyDocument
from taskgov.quantities import parse
from taskgov.snapshot.health import node_fault
from taskgov.snapshot.model import Node, Snapshot
from tests.prove.account import is_policy
from tests.prove.amounts import is_accelerator, resources_of, sevenths_by_type, slices_of, unnamed_by_type
from tests.prove.facts import Facts
from tests.prove.limits import Broken, change_limits
from tests.prove.path import QuotaPath, paths_of
from tests.prove.play import Played

APPROVAL = "approval"
NODES_SEEN = "nodes-seen"
NEVER = datetime.min.replace(tzinfo=UTC)
ASKING = frozenset({APPROVAL, NODES_SEEN})
ALWAYS_OPEN = "* * * * *"


def judging_failures(facts: Facts, played: Played | None) -> Iterator[str]:
    """Yield what is wrong with the outcome: a limit that is broken and let through, or none that is and no way."""
    plan = facts.plan
    if plan.outcome is Outcome.NO_PROGRESS:
        yield "the plan makes no progress, though no plan was made before it"
    if not plan.changes or facts.snapshot.policy_violations:
        if plan.changes:
            yield "the document is broken, and the plan changes something"
        return
    yield from _miscounted(facts)
    broken = [*change_limits(facts), *_other_limits(facts, played)]
    stopping = [item for item in broken if item.limit not in ASKING]
    asking = [item for item in broken if item.limit in ASKING]
    if plan.outcome in {Outcome.APPLY, Outcome.NEEDS_APPROVAL}:
        yield from (f"{item.limit} is broken and lets through: {item.words}" for item in stopping if item.surely)
    if plan.outcome is Outcome.APPLY:
        yield from (f"nobody is asked: {item.words}" for item in asking if item.surely)
    if plan.outcome is Outcome.BLOCKED and not stopping:
        told = "; ".join(verdict.because for verdict in plan.guardrails if not verdict.passed)
        yield f"the plan is blocked, and no limit is broken ({told})"
    if plan.outcome is Outcome.NEEDS_APPROVAL and not asking:
        yield "a person is asked, and no threshold is passed"
    if plan.outcome is Outcome.NOTHING_TO_DO:
        yield "there is nothing to do, and the plan has changes"


def _other_limits(facts: Facts, played: Played | None) -> Iterator[Broken]:
    snapshot, policy = facts.snapshot, facts.snapshot.policy
    if policy is None:
        return
    rules = policy.guardrails
    if snapshot.stopped is not False:
        yield Broken("stop-switch", "the stop switch is on, or cannot be read", surely=True)
    if rules.change_windows and not any(window.cron == ALWAYS_OPEN for window in rules.change_windows):
        yield Broken("change-window", "the window may be closed", surely=False)
    yield from _frozen(facts, rules.freeze)
    yield from _nodes(facts)
    yield from _minimum(facts, rules.minimum_quota)
    gpus = _preempted(facts, played)
    known = facts.plan.prediction.is_complete
    for limit, most in (
        ("max-preempted-gpus", rules.max_preempted_gpus),
        (APPROVAL, rules.approve_above.preempted_gpus if rules.approve_above else None),
    ):
        if most is not None and (gpus > most or not known):
            words = f"{gpus} GPUs are preempted, {most} is the most" if known else "the prediction is not complete"
            yield Broken(limit, words, surely=True)
    threshold = rules.approve_above.changed_gpus if rules.approve_above else None
    if threshold is not None:
        gross, net = changed_gpus(facts)
        if gross > threshold:
            yield Broken(APPROVAL, f"{float(gross):g} GPUs change hands, {threshold} go without", net > threshold)
        unknown = sorted({name for path in paths_of(facts) for name in _uncounted(facts, path)})
        if unknown:
            words = f"quotas on {', '.join(unknown)} change, and nobody knows by how many GPUs"
            yield Broken(APPROVAL, words, surely=not any(path.deleted for path in paths_of(facts)))


def _frozen(facts: Facts, frozen: Iterable[str]) -> Iterator[Broken]:
    for change in facts.plan.changes:
        if change.team in frozen and not is_policy(change):
            yield Broken("freeze", f"{change.team} is frozen and changed", surely=True)


def _nodes(facts: Facts) -> Iterator[Broken]:
    losses, perhaps = _suddenly_lost(facts.snapshot), _perhaps_lost(facts.snapshot)
    if facts.snapshot.nodes and not perhaps:
        return
    surely = bool(losses) or not facts.snapshot.nodes
    for path in paths_of(facts):
        before, after = (resources_of(config, facts.book) for config in (path.before, path.after))
        if any(after.get(key, 0) < amount for key, amount in before.items()):
            words = f"{path.team} falls, and nobody confirms the loss of {', '.join(perhaps) or 'all nodes'}"
            yield Broken(NODES_SEEN, words, surely=surely)
        elif any(before.get(key, 0) < amount for key, amount in after.items()):
            words = f"{path.team} rises, perhaps into what was lost of {', '.join(perhaps)}"
            yield Broken(NODES_SEEN, words, surely=False)


def _suddenly_lost(snapshot: Snapshot) -> list[str]:
    """Return the types of which too many nodes were lost within the hold time, and SageMaker does not say so.

    It says so by a status other than Running, or by a label or check of HyperPod that speaks against the node. What a
    person approved is no loss any more.
    """
    rules = PolicyDocument.model_fields["guardrails"].default if snapshot.policy is None else snapshot.policy.guardrails
    hold, approved = _delays(snapshot)[1], _approved(snapshot)
    unsaid: dict[str, list[Node]] = {}
    for node in (*snapshot.nodes, *_unsaid_gone(snapshot)):
        if _is_unsaid(node):
            unsaid.setdefault(node.instance_type, []).append(node)
    found = []
    for name, nodes in sorted(unsaid.items()):
        moments = [moment for node in nodes if (moment := _lost_at(node, snapshot)) is not None]
        lost = [moment for moment in moments if moment > approved.get(name, NEVER)]
        for first in lost:
            there = sum(_was_healthy(node, first) for node in nodes)
            within = sum(first <= moment <= first + hold for moment in lost)
            if within > 1 and 100 * within > rules.mass_loss_percent * there:
                found.append(name)
    return sorted(set(found))


def _approved(snapshot: Snapshot) -> Mapping[str, datetime]:
    """Return until when a person approved losses of each type, by the records of what was written then."""
    approved: dict[str, datetime] = {}
    for record in snapshot.applied:
        for name, until in (record.accepted_losses or {}).items():
            approved[name] = max(until, approved.get(name, NEVER))
    return approved


def _unsaid_gone(snapshot: Snapshot) -> list[Node]:
    """Return the nodes that are in no list; a group that SageMaker describes may say so of its nodes."""
    return [node for node in snapshot.gone if not (node.instance_group and snapshot.cluster.instance_groups)]


def _perhaps_lost(snapshot: Snapshot) -> list[str]:
    """Return the types of which two nodes or more do not count, for a reason that SageMaker does not give."""
    grow = _delays(snapshot)[0]
    types = [
        node.instance_type
        for node in snapshot.nodes
        if _is_unsaid(node) and (node_fault(node) or snapshot.taken_at - (node.healthy_since or NEVER) < grow)
    ]
    types += [node.instance_type for node in snapshot.gone]
    return sorted({name for name in types if types.count(name) > 1})


def _delays(snapshot: Snapshot) -> tuple[timedelta, timedelta]:
    """Return how long health lasts before it counts, and sickness."""
    rules = CapacityRules() if snapshot.policy is None else snapshot.policy.capacity
    return timedelta(minutes=rules.grow_after_minutes), timedelta(minutes=rules.hold_unhealthy_minutes)


def _is_unsaid(node: Node) -> bool:
    return (
        node.instance_status in {None, "Running"}
        and node.health in {None, "Schedulable"}
        and node.deep_health_check in {None, "Passed"}
    )


def _lost_at(node: Node, snapshot: Snapshot) -> datetime | None:
    """Return when a node that counted stopped being healthy; one that is back too shortly to count is lost.

    A node that came back within the hold time never stopped counting, and one whose health never lasted never did.
    """
    grow, hold = _delays(snapshot)
    if not node.turns:
        return node.unhealthy_since
    is_back = node.healthy_since is not None
    sick = node.turns[:-1] if is_back else node.turns
    starts = node.turns[1::2] if node.found_healthy else node.turns[::2]
    counted = node.found_healthy or any(turn - start >= grow for start, turn in pairwise(sick) if start in starts)
    if not sick or not counted:
        return None
    out_for, back_for = node.turns[-1] - sick[-1], snapshot.taken_at - node.turns[-1]
    return sick[-1] if not is_back or (out_for >= hold and back_for < grow) else None


def _was_healthy(node: Node, moment: datetime) -> bool:
    """Say whether a node was healthy just before a moment, as far as anybody looked."""
    if node.turns:
        return node.found_healthy != (len([turn for turn in node.turns if turn < moment]) % 2 == 1)
    if node.unhealthy_since is not None or node_fault(node) is not None:
        return node.unhealthy_since is not None and node.unhealthy_since >= moment
    return node.healthy_since is None or node.healthy_since < moment


def _minimum(facts: Facts, minima: Mapping[str, int]) -> Iterator[Broken]:
    for path in paths_of(facts):
        if path.team in minima:
            before, after = (sum(sevenths_by_type(config, facts.book).values()) for config in (path.before, path.after))
            if (after < before or _unknown_falls(facts, path)) and after < 7 * minima[path.team]:
                words = f"{path.team} falls to {after / 7:g} accelerators, {minima[path.team]} is its minimum"
                yield Broken("minimum-quota", words, surely=not path.deleted)


def _unknown_falls(facts: Facts, path: QuotaPath) -> bool:
    """Say whether anything falls on a type of which nobody knows how many accelerators that is."""
    moved = _uncounted(facts, path)
    before, after = (resources_of(config, facts.book) for config in (path.before, path.after))
    return bool(moved) and any(after.get(key, 0) < amount for key, amount in before.items())


def _uncounted(facts: Facts, path: QuotaPath) -> set[str]:
    had, has = (unnamed_by_type(config, facts.book) for config in (path.before, path.after))
    return {name for name in {*had, *has} if had.get(name) != has.get(name)}


def changed_gpus(facts: Facts) -> tuple[Fraction, Fraction]:
    """Return how many GPUs change hands: with a quota that is deleted and made again counted twice, and not at all.

    Types are never netted against each other: what quotas give of each type adds up, and what they take; the greater
    of the two is the answer.
    """
    moves: dict[tuple[str, str], list[int]] = {}
    for path in paths_of(facts):
        before, after = (sevenths_by_type(config, facts.book) for config in (path.before, path.after))
        for name in {*before, *after}:
            moves.setdefault((path.team, name), []).append(after.get(name, 0) - before.get(name, 0))
    singly = [move for each in moves.values() for move in each]
    together = [sum(each) for each in moves.values()]
    gross, net = (
        max(sum(move for move in each if move > 0), -sum(move for move in each if move < 0))
        for each in (singly, together)
    )
    return Fraction(gross, 7), Fraction(net, 7)


def _preempted(facts: Facts, played: Played | None) -> int:
    """Return the GPUs of everybody who was predicted or played to be preempted.

    What a workload holds in the snapshot is counted anew; the prediction is believed of those that start on the way.
    """
    said = {key_of(item): item.gpus for item in facts.plan.prediction.effects if item.effect == "preempted"}
    held = {workload_key(item): gpus_held(item) for item in facts.snapshot.kueue.workloads}
    seen = set() if played is None or not played.settled else set(played.preempted)
    return sum(held.get(key, 0) or said.get(key, 0) for key in {*said, *seen})


def _miscounted(facts: Facts) -> Iterator[str]:
    """Yield the effects that count other accelerators than the workload holds."""
    held = {workload_key(item): gpus_held(item) for item in facts.snapshot.kueue.workloads}
    for item in facts.plan.prediction.effects:
        counted = held.get(key_of(item), 0)
        if item.effect == "preempted" and counted and item.gpus != counted:
            yield f"{key_of(item)} holds {counted} GPUs, the prediction says {item.gpus}"


def key_of(effect: WorkloadEffect) -> str:
    """Return the workload that an effect is about."""
    return f"{effect.namespace}/{effect.name}"


def workload_key(workload: Mapping[str, Any]) -> str:
    """Return `namespace/name` of a workload."""
    return f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"


def gpus_held(workload: Mapping[str, Any]) -> int:
    """Return the accelerators that a workload holds in the snapshot; partitions in sevenths, rounded up."""
    admission = (workload.get("status") or {}).get("admission") or {}
    sevenths = 0
    for pods in admission.get("podSetAssignments") or ():
        for resource, amount in (pods.get("resourceUsage") or {}).items():
            if is_accelerator(resource):
                sevenths += parse(resource, amount) * slices_of(resource)
    return -(-sevenths // 7)
