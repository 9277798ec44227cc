"""One dominant reason, in the order of the vocabulary, with the numbers in its sentence."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taskgov.snapshot.model import Snapshot
from taskgov_explain.pending import RULES
from taskgov_explain.reasons import Reason
from taskgov_explain.workload import explain_workload
from tests.support.lab import G5, P5, Lab, workload


def two_teams() -> Lab:
    return Lab().team("team-a", 6, borrow=50).team("team-b", 5, borrow=50).machines(11)


def full() -> Lab:
    return two_teams().submit("team-a", "a-own", pods=6).submit("team-b", "b-own", pods=4)


def changed(item: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {**item, **{name: {**item.get(name, {}), **part} for name, part in parts.items()}}


def conditions(*some: tuple[str, str, str, str]) -> dict[str, Any]:
    names = ("type", "status", "reason", "message")
    since = {"lastTransitionTime": "2026-11-20T11:30:00Z"}
    return {"conditions": [dict(zip(names, each, strict=True)) | since for each in some]}


def evicted(reason: str) -> dict[str, Any]:
    """The status of a workload that may come back five minutes after noon."""
    told = conditions(("Evicted", "True", reason, "it had to leave"), ("Requeued", "False", reason, ""))
    return {**told, "requeueState": {"count": 1, "requeueAt": "2026-11-20T12:05:00Z"}}


def not_governed() -> Snapshot:
    return full().put(changed(workload("team-b", "it", 1), spec={"queueName": ""})).snapshot()


def deactivated() -> Snapshot:
    return full().put(changed(workload("team-b", "it", 1), spec={"active": False})).snapshot()


def on_hold() -> Snapshot:
    lab = Lab().team("team-a", 6).team("team-b", 5, ActivationState="Disabled").machines(11)
    return lab.submit("team-b", "it").snapshot()


def without_local_queue() -> Snapshot:
    return full().put(changed(workload("team-b", "it", 1), spec={"queueName": "elsewhere"})).snapshot()


def without_flavor() -> Snapshot:
    snapshot = full().submit("team-b", "it", pods=3).snapshot()
    return replace(snapshot, kueue=replace(snapshot.kueue, resource_flavors=()))


def other_instance_type() -> Snapshot:
    selector = {"node.kubernetes.io/instance-type": P5}
    return full().submit("team-b", "it", nodeSelector=selector).snapshot()


def too_large_for_a_node() -> Snapshot:
    return full().submit("team-b", "it", gpus=2).snapshot()


def backing_off() -> Snapshot:
    return full().put(changed(workload("team-b", "it", 1), status=evicted("NodeFailures"))).snapshot()


def gated() -> Snapshot:
    status = conditions(("QuotaReserved", "False", "AdmissionGated", "gated by example.com/budget"))
    return full().put(changed(workload("team-b", "it", 1), status=status)).snapshot()


def pods_not_ready() -> Snapshot:
    return full().put(changed(workload("team-b", "it", 1), status=evicted("PodsReadyTimeout"))).snapshot()


def too_large_for_the_queue() -> Snapshot:
    return full().submit("team-b", "it", pods=8).snapshot()


def more_than_is_free() -> Snapshot:
    return full().submit("team-b", "it", pods=3).snapshot()


def victims_still_leaving() -> Snapshot:
    lab = two_teams().submit("team-a", "a-own", pods=6).submit("team-b", "b-low", pods=5)
    lab.put(workload("team-b", "it", 1, priority="inference"))
    lab.world.cycle("2026-11-20T11:59:00Z")
    return lab.snapshot()


def not_looked_at_yet() -> Snapshot:
    return full().put(workload("team-b", "it", 1)).snapshot()


def told_to_leave() -> Snapshot:
    lab = two_teams().submit("team-b", "it", pods=5).submit("team-a", "a-own", pods=6)
    lab.put(workload("team-b", "b-high", 1, priority="inference"))
    lab.world.cycle("2026-11-20T11:59:00Z")
    return lab.snapshot()


def more_quota_than_nodes() -> Snapshot:
    lab = Lab().team("team-b", 5).machines(3)
    return lab.submit("team-b", "first", pods=3).submit("team-b", "it", pods=2, ago=30).snapshot()


def running() -> Snapshot:
    return two_teams().submit("team-b", "it", pods=2).snapshot()


def finished() -> Snapshot:
    lab = two_teams().submit("team-b", "it")
    lab.world.finish("hyperpod-ns-team-b/pytorchjob-it-a1b2c", "2026-11-20T11:45:00Z")
    return lab.snapshot()


CASES: dict[Reason, tuple[Callable[[], Snapshot], str]] = {
    Reason.FINISHED: (finished, "finished at 2026-11-20 11:45"),
    Reason.NOT_GOVERNED: (not_governed, "names no queue"),
    Reason.DEACTIVATED: (deactivated, "spec.active is false"),
    Reason.ON_HOLD: (on_hold, "hyperpod-ns-team-b-localqueue is stopped (Hold)"),
    Reason.MISCONFIGURED: (without_local_queue, "no LocalQueue elsewhere in namespace hyperpod-ns-team-b"),
    Reason.NO_MATCHING_FLAVOR: (other_instance_type, f"flavor {G5} doesn't match node affinity"),
    Reason.REQUEST_NEVER_FITS: (too_large_for_a_node, "2 nvidia.com/gpu of 1"),
    Reason.SUSPENDED: (backing_off, "evicted (NodeFailures) and stays out of the queue until 2026-11-20 12:05:00"),
    Reason.ADMISSION_GATED: (gated, "Kueue says: gated by example.com/budget"),
    Reason.WAITING_FOR_PODS_READY: (pods_not_ready, "returns to the queue at 2026-11-20 12:05:00"),
    Reason.EXCEEDS_MAX_QUOTA: (
        too_large_for_the_queue,
        "8 GPUs of ml.g5.8xlarge, where its quota is 5",
    ),
    Reason.WAITING_FOR_QUOTA: (
        more_than_is_free,
        "1 free for it (quota 5, used 4, at most 7 with borrowing)",
    ),
    Reason.WAITING_FOR_PREEMPTED_WORKLOADS: (victims_still_leaving, "team-b/b-low was preempted for it"),
    Reason.PENDING_EVALUATION: (not_looked_at_yet, "There is quota for it; the scheduler has not considered it yet"),
    Reason.BEING_PREEMPTED: (told_to_leave, "evicted at 11:59 (Preempted) and still holds its quota"),
    Reason.ADMITTED_WAITING_FOR_NODES: (
        more_quota_than_nodes,
        "offer 3 GPUs, and workloads admitted before it hold 3",
    ),
    Reason.ADMITTED: (running, "holds 2 GPUs, 8 cpu on ml.g5.8xlarge in hyperpod-ns-team-b"),
}


@pytest.mark.parametrize("reason", CASES, ids=str)
def test_the_reason_and_the_numbers_behind_it_are_reported(reason: Reason) -> None:
    build, words = CASES[reason]
    answer = explain_workload(build(), "team-b/it")
    assert (answer.reason, words in answer.because) == (reason, True), answer.because


def test_every_reason_of_the_vocabulary_has_a_rule_in_its_order_and_a_case() -> None:
    assert list(RULES) == list(Reason) == list(CASES)


def test_a_flavor_that_is_missing_is_a_misconfiguration() -> None:
    answer = explain_workload(without_flavor(), "it")
    assert (answer.reason, "FlavorNotFound" in answer.because) == (Reason.MISCONFIGURED, True)


def test_the_first_reason_that_holds_is_the_dominant_one() -> None:
    both = full().put(changed(workload("team-b", "it", 2, pods=9), spec={"active": False})).snapshot()
    assert explain_workload(both, "it").reason is Reason.DEACTIVATED


def test_who_waits_behind_others_that_take_what_is_free_waits_for_quota() -> None:
    lab = full().put(workload("team-b", "first", 1)).put(workload("team-b", "it", 1, pods=1))
    assert explain_workload(lab.snapshot(), "first").reason is Reason.PENDING_EVALUATION
    answer = explain_workload(lab.snapshot(), "it")
    assert answer.because == "There is room for it now, but workloads before it take it: team-b/first."


def test_the_page_lists_the_vocabulary_in_its_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "explain.md").read_text()
    rows = re.findall(r"^\| \*?(\w+)\*? \| .* \| .* \|$", page, flags=re.MULTILINE)
    assert rows[1:] == [str(reason) for reason in Reason]


def test_a_local_queue_that_leads_nowhere_is_a_misconfiguration() -> None:
    snapshot = full().submit("team-b", "it", pods=3).snapshot()
    others = tuple(each for each in snapshot.kueue.cluster_queues if "team-b" not in each["metadata"]["name"])
    answer = explain_workload(replace(snapshot, quotas=(), kueue=replace(snapshot.kueue, cluster_queues=others)), "it")
    assert (answer.reason, "which does not exist" in answer.because) == (Reason.MISCONFIGURED, True)


def test_a_namespace_that_the_queue_does_not_select_is_a_misconfiguration() -> None:
    snapshot = full().submit("team-b", "it", pods=3).snapshot()
    queues = tuple(
        {**each, "spec": {**each["spec"], "namespaceSelector": {"matchLabels": {"team": "other"}}}}
        for each in snapshot.kueue.cluster_queues
    )
    answer = explain_workload(replace(snapshot, kueue=replace(snapshot.kueue, cluster_queues=queues)), "it")
    assert answer.because.endswith("does not admit workloads of namespace hyperpod-ns-team-b.")


def test_reserved_quota_may_wait_for_admission_checks() -> None:
    snapshot = running()
    [item] = snapshot.kueue.workloads
    kept = [each for each in item["status"]["conditions"] if each["type"] != "Admitted"]
    checks = [{"name": "budget", "state": "Pending"}, {"name": "quality", "state": "Ready"}]
    waiting = {**item, "status": {**item["status"], "conditions": kept, "admissionChecks": checks}}
    answer = explain_workload(replace(snapshot, kueue=replace(snapshot.kueue, workloads=(waiting,))), "it")
    assert answer.reason is Reason.ADMISSION_GATED
    assert answer.because == "Its quota is reserved; it waits for admission check budget: Pending."


def test_the_state_and_the_message_of_each_open_check_are_reported() -> None:
    [item] = running().kueue.workloads
    kept = [each for each in item["status"]["conditions"] if each["type"] != "Admitted"]
    checks = [{"name": "budget", "state": "Pending", "message": "asked"}, {"name": "quality", "state": "Retry"}]
    waiting = {**item, "status": {**item["status"], "conditions": kept, "admissionChecks": checks}}
    answer = explain_workload(replace(running(), kueue=replace(running().kueue, workloads=(waiting,))), "it")
    assert answer.because.endswith("it waits for admission checks budget: Pending (asked); quality: Retry.")


def test_who_keeps_out_of_the_queue_is_shown_why() -> None:
    item = workload("team-b", "it", 1)
    gates = {**item, "metadata": {**item["metadata"], "annotations": {"kueue.x-k8s.io/admission-gated-by": "cost"}}}
    answer = explain_workload(full().put(gates).snapshot(), "it")
    assert answer.reason is Reason.ADMISSION_GATED
    assert answer.because == "It stays out of the queue until these gates are opened: cost."
    held = changed(item, status=conditions(("QuotaReserved", "False", "OnHold", "Job is on hold")))
    answer = explain_workload(full().put(held).snapshot(), "it")
    assert (answer.reason, answer.because) == (Reason.ON_HOLD, "Its job needs no quota now: Job is on hold.")
    pods = changed(item, status=conditions(("WaitingForReplacementPods", "True", "PodsFailed", "some failed")))
    answer = explain_workload(full().put(pods).snapshot(), "it")
    assert (answer.reason, "pods that replace failed ones" in answer.because) == (Reason.SUSPENDED, True)


def test_whom_it_will_preempt_is_shown_before_it_happens() -> None:
    lab = two_teams().submit("team-a", "a-own", pods=6).submit("team-b", "b-low", pods=5)
    answer = explain_workload(lab.put(workload("team-b", "it", 1, priority="inference")).snapshot(), "it")
    assert answer.reason is Reason.PENDING_EVALUATION
    assert answer.because == "The scheduler has not considered it yet; it will preempt team-b/b-low."


def test_who_could_preempt_but_is_not_the_first_waits_for_quota() -> None:
    lab = two_teams().submit("team-a", "a-own", pods=6).submit("team-b", "b-low", pods=5)
    for name in ("first", "it"):
        lab.put(workload("team-b", name, 1, pods=5, priority="inference"))
    answer = explain_workload(lab.snapshot(), "it")
    assert answer.because == "It could preempt 1 workload, but others are before it in line."


def test_kueues_own_word_about_pods_comes_before_the_count_of_nodes() -> None:
    snapshot = more_quota_than_nodes()
    ready = {"type": "PodsReady", "status": "True", "reason": "PodsReady", "lastTransitionTime": "2026-11-20T11:40:00Z"}

    def said(status: str) -> Snapshot:
        workloads = tuple(
            {
                **each,
                "status": {
                    **each["status"],
                    "conditions": [*each["status"]["conditions"], {**ready, "status": status}],
                },
            }
            for each in snapshot.kueue.workloads
        )
        return replace(snapshot, nodes=(), kueue=replace(snapshot.kueue, workloads=workloads))

    assert explain_workload(said("True"), "it").reason is Reason.ADMITTED
    answer = explain_workload(said("False"), "it")
    assert answer.because == "It has its quota, but not all its pods are ready (PodsReady)."


def test_a_workload_that_kueue_refuses_is_a_misconfiguration_and_shows_what_counts() -> None:
    snapshot = full().put(workload("team-b", "it", 1, pods=1)).snapshot()
    limits = {"type": "Container", "defaultRequest": {"memory": "1Gi"}, "max": {"cpu": "2"}}
    limit_range = {"metadata": {"name": "limits", "namespace": "hyperpod-ns-team-b"}, "spec": {"limits": [limits]}}
    answer = explain_workload(replace(snapshot, kueue=replace(snapshot.kueue, limit_ranges=(limit_range,))), "it")
    assert answer.reason is Reason.MISCONFIGURED
    assert answer.because.startswith("Kueue refuses it: resources didn't satisfy LimitRange constraints: spec.podSets")
    assert answer.because.endswith('Invalid value: ["cpu"]: requests must not be above the limitRange max.')


def test_admission_that_waits_for_the_pods_of_others_is_reported_in_kueues_words() -> None:
    message = "waiting for all admitted workloads to be in PodsReady condition"
    waits = changed(workload("team-b", "it", 1), status=conditions(("QuotaReserved", "False", "Waiting", message)))
    answer = explain_workload(full().put(waits).snapshot(), "it")
    assert (answer.reason, answer.because) == (Reason.WAITING_FOR_PODS_READY, f"Kueue says: {message}.")
