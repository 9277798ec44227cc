"""The plan's prediction, what-if and the audit's supposed cluster are one answer: for the same snapshot they agree."""

import random
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.projection import Projection, after
from taskgov.kueue.named import named
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.model import Snapshot
from taskgov_explain.what_if import WhatIf, what_if
from tests.support.lab import Lab
from tests.support.memory import CLUSTER_ARN, NOON

G6 = "ml.g6.12xlarge"
"""4 GPUs, 48 vCPU, 192 GiB."""
TEAMS = ("ant", "bee", "cat")


def document(promises: dict[str, dict[str, Any]], **settings: Any) -> PolicyDocument:
    teams = [
        {"name": team, "quota": {"ComputeQuotaResources": [{"InstanceType": G6, **amounts}], **settings}}
        for team, amounts in promises.items()
    ]
    cluster = {"name": "ml-cluster", "arn": CLUSTER_ARN}
    return PolicyDocument.model_validate({"apiVersion": "taskgov/v1", "cluster": cluster, "teams": teams})


def in_parts(chance: random.Random, machines: int) -> dict[str, dict[str, Any]]:
    """Divide all GPUs, vCPUs and memory of the machines among the teams, each resource for itself."""
    parts: dict[str, dict[str, Any]] = {team: {} for team in TEAMS}
    for name, quarter in (("Accelerators", 1), ("VCpu", 12), ("MemoryInGiB", 48)):
        first, second = sorted(chance.sample(range(1, 4 * machines), 2))
        for team, quarters in zip(TEAMS, (first, second - first, 4 * machines - second), strict=True):
            parts[team][name] = quarters * quarter
    return parts


def in_instances(chance: random.Random, machines: int) -> dict[str, dict[str, Any]]:
    """Divide the machines among the teams; some may be left."""
    promises, left = dict[str, dict[str, Any]](), machines
    for team in TEAMS:
        promises[team] = {"Count": chance.randint(0, left)}
        left -= promises[team]["Count"]
    return promises


@cache
def a_world(seed: int) -> Snapshot:
    """A cluster with work, some of which was told to leave, whose document promises something else than there is."""
    chance = random.Random(seed)  # noqa: S311 -- a world for a test, no secret
    machines, divided = chance.randint(3, 6), in_parts if seed % 2 else in_instances
    lab = Lab(fair_share=chance.random() < 0.7, instance_type=G6).machines(machines)
    for team, amounts in divided(chance, machines).items():
        sharing = {"Strategy": "LendAndBorrow", "BorrowLimit": chance.choice((0, 100, 300))}
        rows = [{"InstanceType": G6, **amounts}]
        config = {"ComputeQuotaResources": rows, "ResourceSharingConfig": sharing, "PreemptTeamTasks": "LowerPriority"}
        lab.team(team, 0, weight=chance.choice((0, 10, 40)), ComputeQuotaConfig=config)
    for number in range(chance.randint(3, 9)):
        team, priority = chance.choice(TEAMS), chance.choice(("training", "inference"))
        lab.submit(team, f"job-{number}", gpus=chance.choice((1, 2, 4)), pods=chance.randint(1, 3), priority=priority)
    for key in sorted(lab.world.workloads()):
        if lab.world.admission(key) is not None and chance.random() < 0.3:
            told = NOON - timedelta(seconds=30)
            lab.world.evict(key, told, reason="Preempted", message="Preempted to accommodate a workload")
    lab.policy = document(divided(chance, machines))
    return lab.snapshot()


@cache
def its_plan(seed: int) -> Plan:
    return plan_quotas(a_world(seed), mode="plan")


def predicted(plan: Plan) -> dict[str, str]:
    """Workload -> why it is preempted, by whom."""
    assert plan.prediction.simulated
    effects = (each for each in plan.prediction.effects if each.effect == "preempted")
    return {f"{each.namespace}/{each.name}": each.because.removesuffix(", and starts again") for each in effects}


def supposed(snapshot: Snapshot, answer: WhatIf) -> dict[str, str]:
    keys = {one.shown: one.key for one in map(named, snapshot.kueue.workloads)}
    lost = (each for each in answer.workloads if each.preempted_by)
    return {keys[each.workload]: f"{each.because}, by {each.preempted_by}" for each in lost}


def specs(queues: Any) -> dict[str, Any]:
    return {each["metadata"]["name"]: each["spec"] for each in queues}


@pytest.mark.parametrize("seed", range(36))
def test_prediction_what_if_and_audit_agree(seed: int) -> None:
    snapshot = a_world(seed)
    plan, answer = its_plan(seed), what_if(snapshot, snapshot)
    if not plan.prediction.simulated:
        assert answer.loops or answer.not_settled
        return
    assert supposed(snapshot, answer) == predicted(plan)
    end = Projection.of(snapshot, plan.changes)
    for wave in sorted({change.wave for change in plan.changes}):
        end.write(change for change in plan.changes if change.wave == wave)
    audited = after(snapshot, plan)
    assert audited.quotas == end.snapshot().quotas
    assert specs(audited.kueue.cluster_queues) == specs(end.queues.values())


def test_the_worlds_have_what_they_are_for() -> None:
    worlds = [a_world(seed) for seed in range(36)]
    plans = [its_plan(seed) for seed in range(36)]
    assert sum(any(map(_was_told, each.kueue.workloads)) for each in worlds) > 12
    assert sum(each.prediction.preempted_gpus > 0 for each in plans) > 3
    assert sum(any(change.is_low for change in each.changes) for each in plans) > 3


def _was_told(item: Any) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Evicted" and each["status"] == "True" for each in conditions)


def told_to_leave() -> Snapshot:
    """A job is on its way out and will come back; meanwhile the plan takes the quota that its neighbour lives on."""
    lab = Lab(fair_share=False, instance_type=G6).team("ant", 1, borrow=100).team("bee", 2).machines(2)
    lab.submit("bee", "told", gpus=4)
    lab.submit("ant", "own", gpus=4, ago=50).submit("ant", "borrower", gpus=4, ago=40)
    [key] = [key for key in lab.world.workloads() if "told" in key]
    lab.world.evict(key, NOON, reason="Preempted", message="Preempted to accommodate a workload")
    lab.policy = document({"ant": {"Count": 0}, "bee": {"Count": 2}})
    return lab.snapshot()


def test_who_has_been_evicted_has_left_before_the_plan_is_played() -> None:
    snapshot = told_to_leave()
    lost = supposed(snapshot, what_if(snapshot, snapshot))
    assert lost == predicted(plan_quotas(snapshot, mode="plan"))
    assert set(lost.values()) == {"InCohortReclamation, by bee/told"}
