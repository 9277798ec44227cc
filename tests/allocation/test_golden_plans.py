"""Whole plans as files, so that a change of any word or number is seen; TASKGOV_UPDATE_GOLDEN=1 rewrites them."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.planner import plan_quotas
from taskgov.snapshot.model import Snapshot
from tests.allocation.work import SCHEDULER, job, queues
from tests.allocation.world import G5, NOW, P5, broken, document, fixed, minutes, nodes, quota, row, share, snapshot
from tests.support.golden import assert_golden

HERE = Path(__file__).parent / "golden"
BORROW = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50}}
LEASE = {
    "to": "team-a",
    "from": "shared-pool",
    "instanceType": P5,
    "count": 2,
    "start": NOW,
    "end": NOW + timedelta(hours=6),
    "reason": "paper deadline",
}
TODAY = (quota("shared-pool", row(P5, Count=2)), quota("team-a", row(P5, Count=4)), quota("team-b", row(P5, Count=6)))
TEAMS = (fixed("team-a", row(P5, Count=4)), share("team-b", 50, P5, tier=2, floor=3))


def preempting() -> Snapshot:
    quotas = [quota("team-a", row(Count=2), settings=BORROW), quota("team-b", row(Count=2), settings=BORROW)]
    policy = document(
        fixed("team-a", row(Count=1), **BORROW),
        fixed("team-b", row(Count=3), **BORROW),
        pool=False,
        guardrails={"maxPreemptedGpus": 2, "approveAbove": {"changedGpus": 0}},
    )
    kueue = queues(quotas, job("team-a", "borrower", 3, minute=1), job("team-b", "owner", 3, minute=2))
    return snapshot(policy, nodes(4), quotas, kueue=kueue, scheduler_config=SCHEDULER)


SCENARIOS = {
    "node-loss": snapshot(document(*TEAMS), (*nodes(10, P5), *broken(2, P5)), TODAY),
    "node-loss-within-the-hold-time": snapshot(
        document(*TEAMS), (*nodes(10, P5), *broken(2, P5, since=NOW - minutes(4))), TODAY
    ),
    "scale-up": snapshot(
        document(*TEAMS), (*nodes(14, P5), *nodes(2, P5, "new", healthy_since=NOW - minutes(2))), TODAY
    ),
    "shortage-by-tiers": snapshot(document(*TEAMS), (*nodes(6, P5), *broken(6, P5)), TODAY),
    "incident": snapshot(document(*TEAMS), (*nodes(2, P5), *broken(10, P5)), TODAY),
    "lease-start": snapshot(document(*TEAMS, leases=[LEASE]), nodes(12, P5), TODAY),
    "guardrail-stop": snapshot(
        document(*TEAMS, guardrails={"maxDecreasePercent": 10}), (*nodes(8, P5), *broken(4, P5)), TODAY
    ),
    "approval": snapshot(
        document(fixed("team-a", row(P5, Count=8)), guardrails={"approveAbove": {"changedGpus": 8}}),
        nodes(12, P5),
        TODAY,
    ),
    "preemption": preempting(),
    "over-commitment-without-a-document": snapshot(
        None, nodes(2), (quota("team-a", row(Count=1)), quota("team-b", row(Count=2)))
    ),
    "parts-and-whole-instances": snapshot(
        document(fixed("team-a", row(P5, Accelerators=2)), fixed("team-b", row(P5, Count=1), row(G5, Count=1))),
        (*nodes(2, P5), *nodes(3)),
    ),
}


@pytest.mark.parametrize(("name", "world"), SCENARIOS.items(), ids=SCENARIOS.keys())
def test_the_plan_is_as_it_was(name: str, world: Snapshot) -> None:
    plan = json.loads(plan_to_json(plan_quotas(world, mode="apply")))
    assert_golden(HERE / f"{name}.json", json.dumps(plan, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def test_every_golden_file_has_its_scenario() -> None:
    assert {path.stem for path in HERE.glob("*.json")} == SCENARIOS.keys()
