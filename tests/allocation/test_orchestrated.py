"""Quotas that Kueue itself sets (`status.effectiveQuotas`, 0.20): read everywhere, written by nobody here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taskgov.allocation.planner import plan_quotas
from taskgov.audit.findings import audit
from taskgov.scheduling import KueueModel
from taskgov.scheduling.reading import orchestrator_of, read_cluster_queue, read_cohort
from taskgov.snapshot.forms import fault_of
from taskgov.usage.quota_usage import usage_of
from taskgov_explain.workload import explain_workload
from tests.allocation.work import job, queues
from tests.allocation.world import G5, document, fixed, nodes, quota, row, snapshot
from tests.scheduling.builders import a_cohort, a_door, a_flavor, a_group, a_job, a_queue

if TYPE_CHECKING:
    from taskgov.snapshot.model import Snapshot

REFERENCE = {"apiGroup": "kueue.x-k8s.io", "kind": "DynamicQuotaOrchestrator", "name": "nodes"}
GPU = "nvidia.com/gpu"


def effective(queue: dict[str, Any], gpus: int) -> dict[str, Any]:
    """Let the orchestrator give a queue so many GPUs; all else of its spec is copied, as it does."""
    groups = [
        {
            **group,
            "flavors": [
                {
                    **flavor,
                    "resources": [
                        {**resource, "nominalQuota": str(gpus)} if resource["name"] == GPU else resource
                        for resource in flavor["resources"]
                    ],
                }
                for flavor in group["flavors"]
            ],
        }
        for group in queue["spec"]["resourceGroups"]
    ]
    status = {**queue.get("status", {}), "effectiveQuotas": {"orchestratorRef": REFERENCE, "resourceGroups": groups}}
    return {**queue, "status": status}


def orchestrated(gpus: int = 2, jobs: tuple[dict[str, Any], ...] = ()) -> Snapshot:
    """team-a has 4 by its spec and is guaranteed 3; Kueue gives it `gpus`."""
    quotas = [quota("team-a", row(Count=4)), quota("team-b", row(Count=1))]
    kueue = queues(quotas, *jobs)
    first, *others = kueue.cluster_queues
    policy = document(fixed("team-a", row(Count=3)), fixed("team-b", row(Count=2)), pool=False)
    return snapshot(
        policy, nodes(6), quotas, kueue=replace(kueue, cluster_queues=(effective(dict(first), gpus), *others))
    )


def test_effective_quotas_take_the_place_of_the_spec_even_when_there_are_none() -> None:
    queue = a_queue("q", cpu="4")
    groups = [a_group({"gpu": {"cpu": "7"}})]
    queue["status"] = {"effectiveQuotas": {"orchestratorRef": REFERENCE, "resourceGroups": groups}}
    assert read_cluster_queue(queue).quotas["gpu/cpu"].nominal == 7000
    assert orchestrator_of(queue) == "DynamicQuotaOrchestrator nodes"
    queue["status"]["effectiveQuotas"]["resourceGroups"] = []
    assert read_cluster_queue(queue).quotas == {}
    queue["status"] = {"effectiveQuotas": None}
    assert read_cluster_queue(queue).quotas["gpu/cpu"].nominal == 4000
    assert orchestrator_of(queue) == ""


def test_a_cohorts_effective_quotas_count_too() -> None:
    cohort = a_cohort("pool", resourceGroups=[a_group({"gpu": {"cpu": "4"}})])
    cohort["status"] = {"effectiveQuotas": {"resourceGroups": [a_group({"gpu": {"cpu": "9"}})]}}
    assert read_cohort(cohort).quotas["gpu/cpu"].nominal == 9000
    assert orchestrator_of(cohort) == "somebody"


def test_the_model_schedules_by_them() -> None:
    queue = a_queue("q", cpu="1")
    queue["status"] = {"effectiveQuotas": {"resourceGroups": [a_group({"gpu": {"cpu": "3"}})]}}
    world = KueueModel()
    world.load([a_flavor(), queue, a_door("q"), a_job("large", "q", cpu="3")])
    assert [admitted.workload for admitted in world.cycle("2026-11-20T09:00:00Z").admitted] == ["default/large"]


def test_use_is_held_against_them() -> None:
    usage = usage_of(orchestrated(2, (job("team-a", "runs", 3),)).kueue.cluster_queues)
    [line] = [line for line in usage.of_team("team-a") if line.resource == GPU]
    assert (line.instance_type, line.guaranteed, line.used, line.own_use) == (G5, 2, 3, 2)


def test_the_plan_leaves_such_a_quota_alone_and_says_who_sets_it() -> None:
    plan = plan_quotas(orchestrated(), mode="apply")
    assert [change.team for change in plan.changes] == ["team-b"]
    [finding] = [finding for finding in plan.findings if finding.code == "orchestrated-elsewhere"]
    assert finding.subject == "team-a"
    assert (
        finding.because
        == "The quota of team-a is set in Kueue by DynamicQuotaOrchestrator nodes: the plan leaves it alone."
    )


def test_without_effective_quotas_the_same_quota_is_planned() -> None:
    plain = orchestrated()
    first, *others = plain.kueue.cluster_queues
    stripped = {**first, "status": {}}
    plain = replace(plain, kueue=replace(plain.kueue, cluster_queues=(stripped, *others)))
    assert [change.team for change in plan_quotas(plain, mode="apply").changes] == ["team-a", "team-b"]


def test_the_audit_reports_it_and_takes_it_for_no_drift_of_the_queue() -> None:
    world = orchestrated()
    codes = {(found.code, found.subject) for found in audit(world, plan_quotas(world, mode="plan"))}
    assert ("orchestrated-elsewhere", "team-a") in codes
    assert ("queue-drift", "team-a") not in codes


def test_an_explanation_counts_with_them() -> None:
    waiting = {**job("team-a", "waits", 5), "status": {}}
    world = orchestrated(2)
    world = replace(world, kueue=replace(world.kueue, workloads=(*world.kueue.workloads, waiting)))
    assert explain_workload(world, "team-a/waits").reason == "ExceedsMaxQuota"
    more = orchestrated(4)
    more = replace(more, kueue=replace(more.kueue, workloads=(*more.kueue.workloads, waiting)))
    assert explain_workload(more, "team-a/waits").reason != "ExceedsMaxQuota"


def test_effective_quotas_of_another_form_make_the_queue_unreadable() -> None:
    queue = a_queue("q", cpu="4")
    queue["status"] = {"effectiveQuotas": {"resourceGroups": [{"flavors": 4}]}}
    assert "status.effectiveQuotas.resourceGroups" in str(fault_of("ClusterQueue", queue))
