"""Why does my task wait, by what I may see? `taskgov explain` of a person who does not see all teams.

Only what rests on the task itself, its own queues, flavors and nodes is judged. Where the scheduler would have to be
run, which needs every team's queue and work, the answer has Kueue's own words.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from taskgov.allocation.projection import model_of
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.unseen import Part
from taskgov.usage.amounts import words
from taskgov_explain.case import Case
from taskgov_explain.find import find_workload
from taskgov_explain.own_view import EXPLAINING_NEEDS, not_visible, own_lines
from taskgov_explain.pending import RULES
from taskgov_explain.reasons import Reason
from taskgov_explain.workload import NEXT_STEPS, WorkloadExplanation, asks_since, preemptions_in_words

_ASK: Final = "a person who sees all teams gets more details (taskgov explain)"
_NEXT_STEPS: Final = {
    Reason.EXCEEDS_MAX_QUOTA: f"request less, or ask for more quota; {_ASK}",
    Reason.WAITING_FOR_QUOTA: f"wait; {_ASK}",
    Reason.ADMITTED_WAITING_FOR_NODES: "find out why nodes are missing; the quota is reserved",
}
_SCHEDULER_NEEDED: Final = frozenset(
    {
        Reason.MISCONFIGURED,
        Reason.NO_MATCHING_FLAVOR,
        Reason.EXCEEDS_MAX_QUOTA,
        Reason.WAITING_FOR_QUOTA,
        Reason.WAITING_FOR_PREEMPTED_WORKLOADS,
        Reason.PENDING_EVALUATION,
    }
)
"""Reasons whose rules ask the scheduler, who would decide with what is seen only."""


def explain_own_workload(snapshot: Snapshot, name: str) -> WorkloadExplanation:
    """Explain one workload by what can be seen of it. Raises `UnknownNameError` as `explain_workload` does."""
    its = find_workload(snapshot.kueue.workloads, name)
    case = Case(snapshot, model_of(replace(snapshot, kueue=replace(snapshot.kueue, workloads=()))), its)
    reason, because = _judged(case)
    condition = case.conditions.get("QuotaReserved")
    return WorkloadExplanation(
        workload=its.shown,
        key=its.key,
        team=its.team,
        queue=case.queue_name,
        reason=reason,
        because=because,
        next_step=_NEXT_STEPS.get(reason, NEXT_STEPS.get(reason, "")),
        since=asks_since(case),
        asks=case.asks,
        kueue_says=str(condition.message) if condition is not None and not condition.status else "",
        history=preemptions_in_words(case),
        borrowing=_beyond_quota(case),
        holders=(),
        leases=(),
        remedies=(),
        risks=(),
        earliest=None,
        earliest_because="",
        not_visible=not_visible(snapshot, EXPLAINING_NEEDS),
    )


def _judged(case: Case) -> tuple[Reason, str]:
    rules: dict[Reason, Callable[[Case], str | None]] = {**RULES, **_OWN_RULES}
    for reason, rule in rules.items():
        because = rule(case) if reason in _OWN_RULES or reason not in _SCHEDULER_NEEDED else None
        if because is not None:
            return reason, because
        if reason is Reason.PENDING_EVALUATION and case.is_pending:
            return _as_kueue_says(case)
    raise AssertionError("a workload without quota is always waiting for something")


def _misconfigured(case: Case) -> str | None:
    """See what its own queues say; a ClusterQueue that is not visible is not therefore missing."""
    if not case.is_pending:
        return None
    if case.local_queue is None:
        return f"There is no LocalQueue {case.workload.queue} in namespace {case.workload.namespace}."
    for queue in (case.local_queue, case.queue_object or {}):
        for condition in (queue.get("status") or {}).get("conditions", ()):
            if condition.get("type") == "Active" and condition.get("status") == "False":
                said = condition.get("message") or condition.get("reason")
                return f"{queue.get('kind', 'Queue')} {queue['metadata']['name']} is not active: {said}."
    return None


def _no_matching_flavor(case: Case) -> str | None:
    sees_flavors = Part.RESOURCE_FLAVORS not in {gap.part for gap in case.snapshot.unseen}
    return RULES[Reason.NO_MATCHING_FLAVOR](case) if case.queue_object is not None and sees_flavors else None


def _waiting_for_nodes(case: Case) -> str | None:
    """Take Kueue's answer, which includes the pods: machines that other teams' work holds are not visible."""
    ready = case.conditions.get("PodsReady")
    if case.admission is None or ready is None or ready.status:
        return None
    return f"It has its quota, but not all its pods are ready ({ready.reason})."


_OWN_RULES: Final[dict[Reason, Callable[[Case], str | None]]] = {
    Reason.MISCONFIGURED: _misconfigured,
    Reason.NO_MATCHING_FLAVOR: _no_matching_flavor,
    Reason.ADMITTED_WAITING_FOR_NODES: _waiting_for_nodes,
}


def _as_kueue_says(case: Case) -> tuple[Reason, str]:
    """Return what Kueue said when it last looked at a workload that waits."""
    condition = case.conditions.get("QuotaReserved")
    said = str(condition.message).rstrip(".") if condition is not None and not condition.status else ""
    if not said:
        return Reason.PENDING_EVALUATION, "Kueue has not yet stated what it waits for."
    if said.startswith("Preempted to accommodate"):
        return Reason.PENDING_EVALUATION, "It was preempted, and Kueue has not stated since then what it waits for."
    reason = Reason.WAITING_FOR_QUOTA
    if "> maximum capacity" in said:
        reason = Reason.EXCEEDS_MAX_QUOTA
    elif "Pending the preemption of" in said:
        reason = Reason.WAITING_FOR_PREEMPTED_WORKLOADS
    return reason, f"Kueue says: {said}."


def _beyond_quota(case: Case) -> tuple[str, ...]:
    """Say of an admitted workload what its team has beyond its quota."""
    if case.admission is None:
        return ()
    types = {str(flavor) for pods in case.admission.pod_sets for flavor in pods.flavors.values()}
    return tuple(
        f"{line.team} uses {words(line.resource, line.used)} of {line.instance_type} with a quota of {line.quota}: "
        f"{words(line.resource, line.beyond_quota)} beyond it"
        for line in own_lines(case.snapshot)
        if line.team == case.named.team and line.instance_type in types and line.beyond_quota
    )
