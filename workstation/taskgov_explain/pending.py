"""Why is a workload where it is? Each reason has one rule that gives a sentence when it holds; the first one counts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from taskgov.kueue.named import named
from taskgov.number_text import counted
from taskgov.scheduling import moment
from taskgov.scheduling.assignment import FIT
from taskgov.scheduling.instants import NEVER_AGAIN
from taskgov.scheduling.matching import selects
from taskgov.scheduling.reasons import WAITING, Blocker
from taskgov.scheduling.status_reading import read_requeue_state
from taskgov.snapshot.model import KueueObjects
from taskgov.usage.amounts import all_words, words
from taskgov.usage.never_fits import never_fits
from taskgov.usage.node_shortage import short_of_nodes
from taskgov.usage.workload_facts import facts_in
from taskgov.usage.workloads import preemptions_of
from taskgov_explain.case import Case
from taskgov_explain.reasons import Reason
from taskgov_manifests.workloads import QUEUE_ON_PODS

Rule = Callable[[Case], str | None]

_KUEUE_SAYS: Final = frozenset({Reason.SUSPENDED, Reason.ADMISSION_GATED, Reason.WAITING_FOR_PODS_READY})
"""Reasons that a snapshot cannot show by itself: taken from Kueue's condition, where its granular reasons are on."""


def judge(case: Case) -> tuple[Reason, str]:
    """Return the dominant reason and its sentence."""
    for reason, rule in RULES.items():
        because = rule(case)
        if because is not None:
            return reason, because
    raise AssertionError("a workload without quota is always waiting for something")


def _finished(case: Case) -> str | None:
    since = case.since("Finished")
    return None if since is None else f"It finished at {since:%Y-%m-%d %H:%M} ({case.conditions['Finished'].reason})."


def _not_governed(case: Case) -> str | None:
    if case.workload.queue or case.admission:
        return None
    on_pods = (case.item["metadata"].get("annotations") or {}).get(QUEUE_ON_PODS)
    where = f" (its pod template names {on_pods}, which Kueue does not read)" if on_pods else ""
    return f"{case.named.shown} names no queue{where}: it uses no quota, and none is reserved for it."


def _deactivated(case: Case) -> str | None:
    if case.workload.active:
        return None
    evicted = case.conditions.get("Evicted")
    after = f", after it was evicted: {evicted.reason}" if evicted and evicted.status else ""
    return f"It is deactivated (spec.active is false){after}."


def _on_hold(case: Case) -> str | None:
    if not case.is_pending:
        return None
    for kind, queue in (("LocalQueue", case.local_queue), ("ClusterQueue", case.queue_object)):
        policy = (queue or {}).get("spec", {}).get("stopPolicy") or "None"
        if queue is not None and policy != "None":
            return f"{kind} {queue['metadata']['name']} is stopped ({policy}): it admits nothing."
    reserved = case.conditions.get("QuotaReserved")
    if reserved is not None and not reserved.status and reserved.reason == Reason.ON_HOLD:
        return f"Its job needs no quota now: {reserved.message}."
    return None


def _misconfigured(case: Case) -> str | None:
    if not case.is_pending:
        return None
    if case.local_queue is None:
        return f"There is no LocalQueue {case.workload.queue} in namespace {case.workload.namespace}."
    if case.queue is None:
        return f"LocalQueue {case.workload.queue} leads to ClusterQueue {case.queue_name}, which does not exist."
    active = case.world.cluster_queue(case.queue.name)["status"]["conditions"][0]
    if active["status"] != "True":
        return f"ClusterQueue {case.queue.name} is not active: {active['reason']}."
    labels = {"kubernetes.io/metadata.name": case.workload.namespace}
    if not selects(case.queue.namespace_selector, labels):
        return f"ClusterQueue {case.queue.name} does not admit workloads of namespace {case.workload.namespace}."
    refusal = case.world.read(case.item).refusal
    return f"Kueue refuses it: {refusal}." if refusal else None


def _no_matching_flavor(case: Case) -> str | None:
    if not case.is_pending or case.assignment is None or case.assignment.blocker is not Blocker.NO_MATCHING_FLAVOR:
        return None
    said = dict.fromkeys(str(reason) for pods in case.assignment.pod_sets for reason in pods.reasons)
    return f"No instance type of {case.queue_name} suits its pods: {'; '.join(said)}."


def _request_never_fits(case: Case) -> str | None:
    """Ask the audit, of this workload alone and as if it held nothing."""
    if not case.snapshot.nodes:
        return None
    alone = KueueObjects(workloads=({**case.item, "status": {}},))
    looked_at = replace(case.snapshot, kueue=alone, quotas=(), observed_use=())
    return next((finding.because for finding in never_fits(looked_at)), None)


def _suspended(case: Case) -> str | None:
    if not case.is_pending:
        return None
    if case.holds("WaitingForReplacementPods"):
        return "It waits for pods that replace failed ones, and stays out of the queue until they exist."
    _, back = read_requeue_state(case.item.get("status") or {})
    if back is None or _timed_out(case):
        return _as_kueue_says(case, Reason.SUSPENDED)
    until = "until it is released" if back == NEVER_AGAIN else f"until {moment(back):%Y-%m-%d %H:%M:%S}"
    return f"It was evicted ({_evicted_by(case)}) and stays out of the queue {until}."


def _admission_gated(case: Case) -> str | None:
    if case.admission is not None and not case.holds("Admitted"):
        checks = (case.item.get("status") or {}).get("admissionChecks") or ()
        open_checks = [_named_check(check) for check in checks if check.get("state") != "Ready"]
        noun = "admission checks" if len(open_checks) != 1 else "admission check"
        return f"Its quota is reserved; it waits for {' '.join((noun, '; '.join(open_checks))).strip()}."
    if case.is_pending and case.workload.gates:
        return f"It stays out of the queue until these gates are opened: {case.workload.gates}."
    return _as_kueue_says(case, Reason.ADMISSION_GATED)


def _named_check(check: Mapping[str, Any]) -> str:
    """Name a check, its state and what it says about it: `capacity: Pending (no nodes yet)`."""
    said = f" ({check['message']})" if check.get("message") else ""
    return f"{check['name']}: {check.get('state', 'Pending')}{said}"


def _waiting_for_pods_ready(case: Case) -> str | None:
    if not case.is_pending:
        return None
    _, back = read_requeue_state(case.item.get("status") or {})
    if back is not None and _timed_out(case):
        return f"Its pods were not ready in time; it returns to the queue at {moment(back):%Y-%m-%d %H:%M:%S}."
    condition = case.conditions.get("QuotaReserved")
    if condition is not None and not condition.status and condition.reason == WAITING:
        return f"Kueue says: {condition.message}."
    return _as_kueue_says(case, Reason.WAITING_FOR_PODS_READY)


def _exceeds_max_quota(case: Case) -> str | None:
    if not case.is_pending or case.assignment is None or case.assignment.blocker is not Blocker.EXCEEDS_MAX_QUOTA:
        return None
    return f"{case.named.shown} requests more than {case.queue_name} can ever have: {_shortfall_words(case)}."


def _waiting_for_quota(case: Case) -> str | None:
    if not case.is_pending or _victims_on_the_way(case) or case.rested.admission(case.named.key) is not None:
        return None
    if case.assignment is not None and case.assignment.mode == FIT:
        if not (ahead := _taking(case)):
            return "There is room for it now, but the workloads before it preempt one another endlessly."
        return f"There is room for it now, but workloads before it take it: {', '.join(ahead)}."
    if case.victims:
        return f"It could preempt {counted(len(case.victims), 'workload')}, but others are before it in line."
    return f"{case.named.shown} requests more than is free: {_shortfall_words(case)}."


def _waiting_for_preempted(case: Case) -> str | None:
    leaving = _victims_on_the_way(case) if case.is_pending else ()
    if not leaving:
        return None
    return f"{', '.join(leaving)} {'was' if len(leaving) == 1 else 'were'} preempted for it and still hold quota."


def _pending_evaluation(case: Case) -> str | None:
    if not case.is_pending:
        return None
    ahead = _taking(case)
    before = f" (before it in line: {', '.join(ahead)})" if ahead else ""
    if case.victims and case.assignment is not None and case.assignment.mode != FIT:
        others = ", ".join(case.shown(victim.workload) for victim in case.victims)
        return f"The scheduler has not considered it yet{before}; it will preempt {others}."
    return f"There is quota for it; the scheduler has not considered it yet{before}."


def _being_preempted(case: Case) -> str | None:
    if not case.holds("Evicted"):
        return None
    return f"It was evicted at {case.since('Evicted'):%H:%M} ({_evicted_by(case)}) and still holds its quota."


def _admitted_waiting_for_nodes(case: Case) -> str | None:
    if case.admission is None or case.holds("PodsReady"):
        return None
    if short := short_of_nodes(case.snapshot).get(case.named.key):
        return (
            f"It has its quota, but the healthy {short.instance_type} nodes offer "
            f"{words(short.resource, short.offered)}, "
            f"and workloads admitted before it hold {short.taken} of them: it needs {short.asked}."
        )
    ready = case.conditions.get("PodsReady")
    if ready is not None and not ready.status:
        return f"It has its quota, but not all its pods are ready ({ready.reason})."
    return None


def _admitted(case: Case) -> str | None:
    admission, since = case.admission, case.since("Admitted")
    if admission is None:
        return None
    where = sorted({flavor for pods in admission.pod_sets for flavor in pods.flavors.values()})
    held = f" since {since:%Y-%m-%d %H:%M}" if since else ""
    return f"It holds {all_words(case.asks)} on {', '.join(where)} in {admission.cluster_queue}{held}."


RULES: Final[dict[Reason, Rule]] = {
    Reason.FINISHED: _finished,
    Reason.NOT_GOVERNED: _not_governed,
    Reason.DEACTIVATED: _deactivated,
    Reason.ON_HOLD: _on_hold,
    Reason.MISCONFIGURED: _misconfigured,
    Reason.NO_MATCHING_FLAVOR: _no_matching_flavor,
    Reason.REQUEST_NEVER_FITS: _request_never_fits,
    Reason.SUSPENDED: _suspended,
    Reason.ADMISSION_GATED: _admission_gated,
    Reason.WAITING_FOR_PODS_READY: _waiting_for_pods_ready,
    Reason.EXCEEDS_MAX_QUOTA: _exceeds_max_quota,
    Reason.WAITING_FOR_QUOTA: _waiting_for_quota,
    Reason.WAITING_FOR_PREEMPTED_WORKLOADS: _waiting_for_preempted,
    Reason.PENDING_EVALUATION: _pending_evaluation,
    Reason.BEING_PREEMPTED: _being_preempted,
    Reason.ADMITTED_WAITING_FOR_NODES: _admitted_waiting_for_nodes,
    Reason.ADMITTED: _admitted,
}
"""In the order of the vocabulary."""


def _as_kueue_says(case: Case, reason: Reason) -> str | None:
    """Return Kueue's own sentence, where its granular reasons are on and it gives this one."""
    condition = case.conditions.get("QuotaReserved")
    if condition is None or condition.status or reason not in _KUEUE_SAYS or condition.reason != reason:
        return None
    return f"Kueue says: {condition.message}."


def _timed_out(case: Case) -> bool:
    return _evicted_by(case) == "PodsReadyTimeout"


def _evicted_by(case: Case) -> str:
    evicted = case.conditions.get("Evicted")
    return evicted.reason if evicted else "unknown"


def _shortfall_words(case: Case) -> str:
    return "; ".join(dict.fromkeys(_numbers(case, key) for key in case.lacking))


def _numbers(case: Case, key: str) -> str:
    """Say what there is of one flavor and resource: asked, free, quota, used, and how far borrowing goes."""
    flavor, _, resource = key.partition("/")
    view = case.world.quota(case.queue_name or "")
    nominal, used = view.nominal.get(key, 0), view.usage.get(key, 0)
    free, most = max(0, view.available.get(key, 0)), view.potential.get(key, 0)
    asked = f"{words(resource, case.asks.get(resource, 0))} of {flavor}"
    if case.assignment is not None and case.assignment.blocker is Blocker.EXCEEDS_MAX_QUOTA:
        borrow = f" and it may borrow {words(resource, most - nominal)}" if most > nominal else ""
        return f"{asked}, where its quota is {_number(resource, nominal)}{borrow}"
    return (
        f"{asked}, {_number(resource, free)} free for it "
        f"(quota {_number(resource, nominal)}, used {_number(resource, used)}, "
        f"at most {_number(resource, most)} with borrowing)"
    )


def _number(resource: str, amount: int) -> str:
    """Return an amount without its noun: `4`, `32Gi`."""
    return words(resource, amount).partition(" ")[0]


def _victims_on_the_way(case: Case) -> tuple[str, ...]:
    """Return who was preempted for this workload and still holds quota."""
    for_it = {
        preemption.name: preemption
        for preemption in preemptions_of(facts_in(case.snapshot.kueue))
        if preemption.preemptor_uid == case.workload.uid
    }
    held = (
        named(item)
        for item in case.snapshot.kueue.workloads
        if item["metadata"]["name"] in for_it and (item.get("status") or {}).get("admission")
    )
    return tuple(sorted(workload.shown for workload in held)) if case.workload.uid else ()


def _taking(case: Case) -> list[str]:
    """Return who is admitted before it, or instead of it, when the world comes to rest."""
    before = {key for key in case.world.workloads() if case.world.admission(key) is not None}
    line = [key for key in case.world.workloads() if key not in before and key != case.named.key]
    return sorted(case.shown(key) for key in line if case.rested.admission(key) is not None)
