from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taskgov.scheduling.reasons import preempted_message
from taskgov.snapshot.model import KueueObjects
from taskgov.usage.workload_facts import FollowedKueue, facts_in, facts_of_all, waiting_for
from taskgov.usage.workloads import TeamPending, pending_by_team, preemptions_of

NINE = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
PATHS = ("/shared-pool/hyperpod-ns-team-b-clusterqueue", "/shared-pool/hyperpod-ns-team-a-clusterqueue")


def at(minutes: int) -> str:
    return f"{NINE + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"


def a_workload(
    name: str, *conditions: dict[str, Any], team: str = "team-a", gpus: int = 4, pods: int = 2, **spec: Any
) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}, "requests": {"cpu": "4"}}}
    pod_set = {"name": "main", "count": pods, "template": {"spec": {"containers": [container]}}}
    return {
        "metadata": {
            "name": name,
            "namespace": f"hyperpod-ns-{team}",
            "uid": f"uid-{name}",
            "creationTimestamp": at(0),
        },
        "spec": {"queueName": "q", "podSets": [pod_set], **spec},
        "status": {"conditions": list(conditions)},
    }


def condition(kind: str, *, true: bool = True, reason: str = "", message: str = "", minutes: int = 0) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True" if true else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": at(minutes),
    }


def preempted(reason: str = "InCohortReclamation", minutes: int = 5, message: str | None = None) -> dict[str, Any]:
    said = preempted_message(reason, "u-9", "j-9", *PATHS) if message is None else message
    return condition("Preempted", reason=reason, message=said, minutes=minutes)


def test_waiting_is_counted_by_team_with_what_is_asked_for() -> None:
    waiting = [
        a_workload("old"),
        a_workload("new", condition("QuotaReserved", true=False, minutes=3), gpus=1, pods=1),
        a_workload("other", team="team-b", gpus=0),
    ]

    assert pending_by_team(KueueObjects(workloads=tuple(waiting))) == (
        TeamPending("team-a", 2, 9, NINE),
        TeamPending("team-b", 1, 0, NINE),
    )


@pytest.mark.parametrize(
    "workload",
    [
        a_workload("reserved", condition("QuotaReserved")),
        a_workload("finished", condition("Finished")),
        a_workload("deactivated", active=False),
    ],
    ids=lambda one: str(one["metadata"]["name"]),
)
def test_what_holds_quota_or_is_done_does_not_wait(workload: dict[str, Any]) -> None:
    assert pending_by_team(KueueObjects(workloads=(workload,))) == ()


def test_what_waits_is_found_as_by_reading_all_of_each_workload() -> None:
    kinds = ("QuotaReserved", "Finished", "Admitted")
    some: list[tuple[dict[str, Any], ...]] = [(condition(kind, true=true),) for kind in kinds for true in (True, False)]
    some += [(), (condition("QuotaReserved"), condition("QuotaReserved", true=False))]
    selected = {"node.kubernetes.io/instance-type": "ml.g5.8xlarge"}
    for active in (True, False, None):
        for selector in (selected, {}, None):
            for conditions in some:
                item = a_workload("w", *conditions, active=active)
                item["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = selector
                kueue = KueueObjects(workloads=(item,))
                (facts,) = facts_in(kueue)
                asks = facts.asks if facts.waiting_since is not None else ()
                wanted = {("team-a", pods.instance_type or "") for pods in asks}
                assert waiting_for(kueue) == waiting_for(FollowedKueue(facts=(facts,))) == wanted


def test_a_preempted_workload_waits_since_its_eviction() -> None:
    evicted = a_workload("victim", condition("Evicted", minutes=5), condition("QuotaReserved", true=False, minutes=6))

    [pending] = pending_by_team(KueueObjects(workloads=(evicted,)))

    assert pending.oldest_wait(NINE + timedelta(minutes=8)) == timedelta(minutes=3)
    assert pending.oldest_wait(NINE) == timedelta()


def test_a_preemption_says_who_preempted_whom_why_and_when() -> None:
    [found] = preemptions_of(facts_of_all([a_workload("victim", condition("Admitted", minutes=1), preempted())]))

    assert (found.team, found.preempting_team) == ("team-a", "team-b")
    assert found.preempting_queue == "hyperpod-ns-team-b-clusterqueue"
    assert (found.preemptor_uid, found.preemptor_job_uid) == ("u-9", "j-9")
    assert (found.reason, found.accelerators) == ("InCohortReclamation", 8)
    assert found.at - (found.ran_since or NINE) == timedelta(minutes=4)
    assert found.identity == "uid-victim#2026-11-20T09:05:00Z"


def test_the_same_preemption_seen_again_is_the_same_and_a_later_one_is_another() -> None:
    first = a_workload("victim", condition("Admitted", minutes=1), preempted())
    later_look = a_workload("victim", condition("Admitted", true=False, minutes=6), preempted())
    once_more = a_workload("victim", preempted(minutes=30))

    identities = [preemptions_of(facts_of_all([one]))[0].identity for one in (first, later_look, once_more)]

    assert identities[0] == identities[1] != identities[2]
    assert preemptions_of(facts_of_all([later_look]))[0].ran_since is None


def test_a_workload_that_was_admitted_again_is_not_preempted_any_more() -> None:
    past = condition("Preempted", true=False, reason="QuotaReserved", message="Previously: Preempted to accommodate ..")

    assert preemptions_of(facts_of_all([a_workload("victim", past)])) == ()


@pytest.mark.parametrize(
    ("reason", "message", "want"),
    [
        ("InClusterQueue", "Preempted to accommodate a higher priority Workload", ("team-a", None)),
        ("InClusterQueue", "Preempted to accommodate a workload (UID: u-9) due to prioritization", ("team-a", "u-9")),
        ("InCohortReclamation", "Preempted to accommodate a workload (UID: u-9) due to reclamation", (None, "u-9")),
        (
            "InCohortReclamation",
            "Preempted to accommodate a workload (UID: UNKNOWN, JobUID: UNKNOWN) due",
            (None, None),
        ),
        ("InCohortReclamation", "", (None, None)),
    ],
    ids=["before 0.10", "0.10 in the own queue", "0.10", "nothing known", "no message"],
)
def test_what_older_releases_do_not_say_is_not_known(
    reason: str, message: str, want: tuple[str | None, str | None]
) -> None:
    [found] = preemptions_of(facts_of_all([a_workload("victim", preempted(reason, message=message))]))

    assert (found.preempting_team, found.preemptor_uid) == want


def test_a_queue_that_is_not_hyperpods_preempts_under_its_own_name() -> None:
    message = preempted_message("InCohortFairSharing", "u", "j", "/pool/research", "/pool/x")

    [found] = preemptions_of(facts_of_all([a_workload("victim", preempted("InCohortFairSharing", message=message))]))

    assert found.preempting_team == found.preempting_queue == "research"


def test_preemptions_come_oldest_first() -> None:
    workloads = [a_workload("b", preempted(minutes=9)), a_workload("c", preempted()), a_workload("a", preempted())]

    assert [one.name for one in preemptions_of(facts_of_all(workloads))] == ["a", "c", "b"]
