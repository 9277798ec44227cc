"""Every code of the audit, found where it should be and not where it should not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from taskgov.allocation.planner import plan_quotas
from taskgov.audit.findings import audit
from taskgov.findings import Finding
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
from taskgov.kueue.render import render
from taskgov.quantities import GIBIBYTE
from taskgov.snapshot.model import KueueObjects, ObservedUse, Snapshot
from tests.allocation.work import SCHEDULER, job, queues
from tests.allocation.world import C5, G5, P5, document, fixed, nodes, quota, row, snapshot

BORROW = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100}}
LEND = {"ResourceSharingConfig": {"Strategy": "Lend"}}
CLOSED = {"ResourceSharingConfig": {"Strategy": "DontLend"}}
LAYER = Path(__file__).parents[2] / "layers" / "taskgov" / "python" / "taskgov"
DOCS = Path(__file__).parents[2] / "docs" / "allocation.md"


def findings(world: Snapshot) -> tuple[Finding, ...]:
    return audit(world, plan_quotas(world, mode="plan"))


def watched(*quotas: ComputeQuota, instances: int = 8, **fields: Any) -> Snapshot:
    """A cluster without a document."""
    return snapshot(None, fields.pop("cluster", nodes(instances)), quotas, **fields)


def team(name: str, count: int = 4, settings: Mapping[str, Any] = LEND, **fields: Any) -> ComputeQuota:
    return quota(name, row(Count=count), settings=settings, **fields)


def working(*quotas: ComputeQuota, jobs: Sequence[dict[str, Any]] = (), **fields: Any) -> Snapshot:
    """A cluster whose jobs have been scheduled."""
    return watched(*quotas, kueue=queues(list(quotas), *jobs), **fields)


def fair(**weights: int) -> Snapshot:
    quotas = (team(name, 2, BORROW, weight=weight) for name, weight in weights.items())
    return replace(watched(*quotas), scheduler_config=replace_config(FairShare="Enabled"))


def replace_config(status: str = "Created", **config: Any) -> Any:
    return SCHEDULER.model_copy(update={"status": status, "scheduler_config": SchedulerConfig.model_validate(config)})


def starving() -> Snapshot:
    """team-b borrows 3 of team-a's 4; then team-a's job arrives, and its queue is held."""
    quotas = [team("team-a", 4, BORROW), team("team-b", 4, BORROW)]
    kueue = queues(quotas, job("team-b", "borrower", 7))
    waiting = {**job("team-a", "waiting", 2), "status": {}}
    return watched(*quotas, kueue=replace(kueue, workloads=(*kueue.workloads, waiting)))


def after_a_cut() -> Snapshot:
    """team-a runs 4; its quota has been lowered to 1 and it may borrow 1."""
    ran = queues([team("team-a", 4, BORROW)], job("team-a", "running", 4))
    cut = [team("team-a", 1, BORROW), team("team-b", 1, LEND)]
    lowered = [{**queue} for queue in render(cut, SCHEDULER.scheduler_config, InstanceTypeTable()).cluster_queues]
    lowered[0]["status"] = ran.cluster_queues[0]["status"]
    return watched(*cut, kueue=replace(ran, cluster_queues=tuple(lowered)))


def hoarding(settings: Mapping[str, Any]) -> Snapshot:
    quotas = [team("team-a", 4, settings), team("team-b", 1, LEND)]
    return working(*quotas, jobs=[job("team-b", "waiting", 3)])


def used(peak: float, hours: float = 168) -> Snapshot:
    return watched(team("team-a", 4), observed_use=(ObservedUse("team-a", G5, hours, peak),))


def asking(cpu: int) -> Snapshot:
    waiting = job("team-a", "greedy", 1)
    waiting["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(cpu)
    offer = {"cpu": 29_570, "memory": 104 * GIBIBYTE, "nvidia.com/gpu": 1}
    cluster = nodes(4, allocatable=offer)
    return watched(team("team-a", 1), cluster=cluster, kueue=replace(KueueObjects(), workloads=(waiting,)))


def thrown_out(times: int) -> Snapshot:
    stats = {"evictions": [{"reason": "Preempted", "underlyingCause": "", "count": times}]}
    work = {**job("team-a", "victim", 1), "status": {"schedulingStats": stats}}
    return watched(team("team-a"), kueue=replace(KueueObjects(), workloads=(work,)))


def offering(cpu: int) -> Snapshot:
    """Four m5.xlarge of 4 vCPU each, of which the kubelet and one thread per core leave less."""
    cluster = nodes(4, "ml.m5.xlarge", allocatable={"cpu": cpu, "memory": 16 * GIBIBYTE})
    return watched(quota("team-a", row("ml.m5.xlarge", Count=4)), cluster=cluster)


def drifted(nominal: int) -> Snapshot:
    quotas = [team("team-a", 2)]
    kueue = queues([team("team-a", nominal)])
    return watched(*quotas, kueue=kueue)


@dataclass(frozen=True)
class Case:
    found: Snapshot
    not_found: Snapshot
    words: str


CASES = {
    "over-commitment": Case(
        watched(team("team-a", 9)), watched(team("team-a", 8)), "Quotas guarantee 9 ml.g5.8xlarge, 8 are usable (112 %)"
    ),
    "quota-drift": Case(
        snapshot(document(fixed("team-a", row(Count=2)), pool=False), nodes(4), [team("team-a", 1)]),
        snapshot(document(fixed("team-a", row(Count=1)), pool=False), nodes(4), [team("team-a", 1)]),
        "The quota of team-a differs from the policy: 1 -> 2 ml.g5.8xlarge: guaranteed 2.",
    ),
    "policy-drift": Case(
        snapshot(document(schedulerConfig={"FairShare": "Enabled"}, pool=False), scheduler_config=SCHEDULER),
        snapshot(document(schedulerConfig={"FairShare": "Disabled"}, pool=False), scheduler_config=SCHEDULER),
        "The cluster policy differs from the document",
    ),
    "queue-drift": Case(
        drifted(3), drifted(2), "has a nominal quota of 96 cpu on ml.g5.8xlarge, its compute quota says 64"
    ),
    "quota-status-stuck": Case(
        watched(team("team-a", status="CreateFailed", failure_reason="no add-on")),
        watched(team("team-a", status="Updating")),
        "The quota team-a-quota has status CreateFailed: no add-on",
    ),
    "policy-status-stuck": Case(
        watched(scheduler_config=replace_config("UpdateFailed")),
        watched(scheduler_config=replace_config("Updated")),
        "The cluster policy has status UpdateFailed",
    ),
    "quota-without-nodes": Case(
        watched(quota("team-a", row(P5, Count=1))),
        watched(quota("team-a", row(P5, Count=0))),
        "team-a have quota on ml.p5.48xlarge, and the cluster has no nodes of that type",
    ),
    "borrow-limit-rounds-to-zero": Case(
        watched(
            quota(
                "onlygputeam2",
                row("ml.g6.12xlarge", Accelerators=2),
                settings={"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 10}},
            )
        ),
        watched(
            quota(
                "onlygputeam2",
                row("ml.g6.12xlarge", Accelerators=2),
                settings={"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50}},
            )
        ),
        "10 % of 2 nvidia.com/gpu on ml.g6.12xlarge is less than one",
    ),
    "borrow-limit-unusable": Case(
        watched(team("team-a", settings=BORROW), team("team-b", settings=CLOSED)),
        watched(team("team-a", settings=BORROW), team("team-b", settings=LEND)),
        "team-a may borrow ml.g5.8xlarge, and nobody else has any to lend",
    ),
    "weight-zero": Case(fair(a=0, b=10), fair(a=0, b=0), "a has fair-share weight 0 beside teams with a weight"),
    "nominal-above-allocatable": Case(
        offering(1_930), offering(4_000), "Quotas guarantee 16 vCPU (nodes offer 7.72) of ml.m5.xlarge: 207 %"
    ),
    "starved-while-another-borrows": Case(
        starving(),
        working(team("team-a", 4, BORROW), team("team-b", 4, BORROW), jobs=[job("team-b", "borrower", 7)]),
        "team-a waits for 2 accelerators and uses 0 of its 4 ml.g5.8xlarge, while others borrow 3 "
        "(2 can be reclaimed).",
    ),
    "hoarding": Case(
        hoarding(CLOSED),
        hoarding(LEND),
        "team-a leaves 4 of 4 accelerators on ml.g5.8xlarge unused and lends none (DontLend), while team-b wait.",
    ),
    "over-quota": Case(
        after_a_cut(),
        working(team("team-a", 4), jobs=[job("team-a", "running", 4)]),
        "team-a holds 4 accelerators on ml.g5.8xlarge, 2 above its quota of 1 and not borrowed",
    ),
    "idle-quota": Case(used(1), used(4), "team-a used 1 of 4 ml.g5.8xlarge at most in 168 h: 3 were never used."),
    "request-never-fits": Case(
        asking(32), asking(29), "A pod of team-a/greedy requests more than any node offers: 32 cpu of 29.57."
    ),
    "eviction-loop": Case(thrown_out(3), thrown_out(2), "victim was evicted 3 times (Preempted)."),
}


@pytest.mark.parametrize(("code", "case"), CASES.items(), ids=CASES.keys())
def test_the_audit_finds(code: str, case: Case) -> None:
    [found] = [finding for finding in findings(case.found) if finding.code == code]
    assert case.words in found.because
    assert found.remedy
    assert found.evidence
    assert code not in {finding.code for finding in findings(case.not_found)}


def test_a_cluster_in_order_has_no_findings() -> None:
    jobs = [job("team-a", "one", 2), job("team-b", "two", 2)]
    assert findings(working(team("team-a"), team("team-b"), jobs=jobs)) == ()


def test_what_the_plan_found_is_part_of_the_audit_and_said_once() -> None:
    world = snapshot(
        document(fixed("team-a", row(P5, Count=1)), pool=False), nodes(2), [quota("team-a", row(P5, Count=1))]
    )
    codes = [finding.code for finding in findings(world)]
    assert codes.count("quota-without-nodes") == 1


def test_a_pod_bound_to_one_type_is_held_against_that_type_alone() -> None:
    world = asking(40)
    larger = nodes(1, C5, allocatable={"cpu": 100_000, "memory": 999 * GIBIBYTE, "nvidia.com/gpu": 9})
    world = replace(world, nodes=(*world.nodes, *larger))
    assert "request-never-fits" not in {finding.code for finding in findings(world)}
    [bound] = world.kueue.workloads
    bound["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": G5}
    assert "request-never-fits" in {finding.code for finding in findings(world)}


def test_the_audit_does_not_know_more_than_the_snapshot() -> None:
    assert findings(watched(team("team-a"), cluster=nodes(8))) == ()
