"""Reasons and sentences that say where a number comes from."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from taskgov.allocation import predict
from taskgov.allocation.plan import Plan, Reason
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.wording import amounts_of, value_in
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.snapshot.model import Node, Snapshot
from tests.allocation.limits_world import failed, moving, record, stopped_by
from tests.allocation.test_path_search import returned
from tests.allocation.world import C5, G5, P5, broken, document, fixed, nodes, quota, row, share, snapshot


def plan_of(world: Snapshot) -> Plan:
    return plan_quotas(world, mode="apply")


MOVES: Mapping[str, tuple[dict[str, Any], dict[str, Any], Reason]] = {
    "more instances": (row(Count=2), row(Count=3), Reason.CAPACITY_GREW),
    "fewer instances": (row(Count=3), row(Count=2), Reason.CAPACITY_SHRANK),
    "more instances without accelerators": (row(C5, Count=2), row(C5, Count=3), Reason.CAPACITY_GREW),
    "fewer instances without accelerators": (row(C5, Count=3), row(C5, Count=2), Reason.CAPACITY_SHRANK),
    "a greater number that is fewer GPUs": (row(P5, Count=2), row(P5, Accelerators=8), Reason.CAPACITY_SHRANK),
    "a smaller number that is more GPUs": (row(P5, Accelerators=8), row(P5, Count=2), Reason.CAPACITY_GREW),
    "a type that was not there": (row(P5, Count=1), row(Count=2), Reason.CAPACITY_GREW),
}


@pytest.mark.parametrize(("before", "after", "want"), MOVES.values(), ids=MOVES.keys())
def test_an_old_promise_that_is_given_otherwise_says_that_capacity_grew_or_shrank(
    before: dict[str, Any], after: dict[str, Any], want: Reason
) -> None:
    held = quota("team-a", before)
    policy = document(fixed("team-a", after), pool=False)
    machines = [node for name in (G5, P5, C5) for node in nodes(4, name)]
    plan = plan_of(snapshot(policy, machines, [held], applied=(record(held),)))
    assert {line.reason for line in plan.allocations if line.instance_type == after["InstanceType"]} == {want}


SHARES: Mapping[str, tuple[dict[str, Any], str]] = {
    "a part that is rounded down": (share("a", 33), "33 % of 10 usable"),
    "a ceiling that is just the part": (share("a", 30, ceiling=3), "30 % of 10 usable"),
    "a ceiling that the part does not reach": (share("a", 30, ceiling=4), "30 % of 10 usable"),
    "a ceiling below the part": (share("a", 50, ceiling=3), "50 % of 10 usable, ceiling 3"),
    "a floor above the part": (share("a", 20, floor=3), "20 % of 10 usable, floor 3"),
}


@pytest.mark.parametrize(("team", "words"), SHARES.values(), ids=SHARES.keys())
def test_a_bound_of_a_share_is_said_where_it_made_the_number(team: dict[str, Any], words: str) -> None:
    [line] = plan_of(snapshot(document(team, pool=False), nodes(10))).allocations
    assert line.after == 3
    assert line.because.endswith(words)


def test_of_numbers_that_fall_alike_a_verdict_names_the_accelerators() -> None:
    before, after = (row(P5, Accelerators=n, VCpu=24 * n, MemoryInGiB=256 * n) for n in (8, 4))
    [verdict] = failed(plan_of(moving(before, after, maxDecreasePercent=25)))
    assert verdict.because.startswith("team-a ml.p5.48xlarge 8 -> 4 GPUs falls by 50 %")


def test_writes_that_can_settle_together_share_a_wave() -> None:
    assert [change.wave for change in plan_of(returned(2, 0, bees_wait=True)).changes] == [1, 1, 2, 3]


@pytest.mark.parametrize(
    ("queues", "fair", "want"),
    [
        (0, True, 100_000),
        (20, True, 100_000),
        (40, True, 50_000),
        (1000, True, 29_000),
        (40, False, 100_000),
        (1000, False, 4_000),
    ],
)
def test_a_prediction_takes_fewer_steps_where_many_queues_share_fairly(queues: int, fair: bool, want: int) -> None:
    world = SimpleNamespace(config=SimpleNamespace(fair_sharing=fair), cluster_queues=lambda: range(queues))
    today: Any = SimpleNamespace(model=world)
    assert predict.steps_for(today.model) == want


def test_whole_instances_that_become_parts_are_said_in_gpus() -> None:
    [verdict] = failed(plan_of(moving(row(P5, Count=2), row(P5, Accelerators=8), maxDecreasePercent=25)))
    assert verdict.because.startswith("team-a ml.p5.48xlarge 16 -> 8 GPUs falls by 50 %")


@pytest.mark.parametrize(
    ("there", "said", "percent"),
    [(nodes(3), "5 ml.g5.8xlarge, 3 are usable (167 %): ", 167), (broken(1), "5 ml.g5.8xlarge, 0 are usable: ", 0)],
)
def test_over_commitment_is_said_in_percent_of_what_is_usable(there: Sequence[Node], said: str, percent: int) -> None:
    world = snapshot(document(pool=False), there, [quota("left-alone", row(Count=5))])
    [finding] = [each for each in plan_of(world).findings if each.code == "over-commitment"]
    assert finding.because.startswith(f"Quotas guarantee {said}")
    assert finding.evidence["percent"] == percent


@pytest.mark.parametrize(("before", "after", "want"), [(2, 4, []), (4, 2, ["minimum-quota"]), (9, 8, [])])
def test_a_quota_below_its_minimum_may_rise(before: int, after: int, want: list[str]) -> None:
    assert stopped_by(moving(row(Count=before), row(Count=after), minimumQuota={"team-a": 8})) == want


def test_the_number_of_a_unit_is_that_of_no_other() -> None:
    held = ComputeQuotaResource.model_validate(row(P5, Accelerators=2, VCpu=48, MemoryInGiB=512))
    units = [amount.unit for amount in amounts_of(held)]
    assert [value_in(held, unit) for unit in units] == [amount.value for amount in amounts_of(held)]
    assert sorted(amount.value for amount in amounts_of(held)) == [2, 48, 512]
    assert value_in(held, "Count") == 0


def test_a_row_is_shown_by_the_number_that_changes() -> None:
    before, after = (row(P5, Accelerators=8, VCpu=vcpu, MemoryInGiB=2048) for vcpu in (192, 96))
    [line] = plan_of(moving(before, after)).allocations
    assert (line.unit, line.before, line.after) == ("VCpu", 192, 96)
