"""Cases that were worked out by hand from the documentation, with the numbers and the words that follow from it."""

import pytest

from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas, row_sources
from taskgov.allocation.wording import said
from taskgov.hyperpod.model import ComputeQuotaConfig
from tests.allocation.work import SCHEDULER, job, queues
from tests.allocation.world import (
    C5,
    G5,
    NOW,
    applied,
    broken,
    counts,
    document,
    fixed,
    nodes,
    quota,
    row,
    share,
    snapshot,
)


def words(plan: Plan) -> dict[str, str]:
    return {line.team: line.because for line in plan.allocations}


def test_floors_that_do_not_fit_are_said_with_the_numbers_of_their_division() -> None:
    policy = document(share("a", 50, floor=12), share("b", 50, floor=2), pool=False)
    plan = plan_quotas(snapshot(policy, nodes(10)), mode="plan")
    assert counts(plan) == {"a": 9, "b": 1}
    [finding] = [each for each in plan.findings if each.code == "floors-exceed-capacity"]
    assert finding.because.startswith("Not even the floors fit: floors of 14, 10 to give, capacity 10 ml.g5.8xlarge.")
    assert words(plan)["a"].endswith(
        "floors of 14, 10 to give, floors are scaled down, 50 % of 10 usable, floor 12, below its floor of 12"
    )
    assert words(plan)["b"].endswith("50 % of 10 usable, below its floor of 2")


def types(count: int) -> list[str]:
    families = ("g5.8xlarge", "g5.12xlarge", "g5.16xlarge", "g5.24xlarge", "g5.48xlarge", "g6.8xlarge", "g6.12xlarge")
    more = ("g6.16xlarge", "g6.24xlarge", "g6.48xlarge", "p4d.24xlarge", "p5.48xlarge", "c5.2xlarge", "c5.4xlarge")
    last = ("c5.9xlarge", "c5.18xlarge", "m5.xlarge")
    return [f"ml.{name}" for name in (*families, *more, *last)][:count]


def test_a_pool_of_more_than_fifteen_types_says_what_it_loses() -> None:
    machines = [node for name in types(17) for node in nodes(2, name)]
    world = snapshot(document(fixed("a", row(G5, Count=1))), machines)
    plan = plan_quotas(world, mode="apply")
    [finding] = [each for each in plan.findings if each.code == "too-many-types"]
    [change] = [each for each in plan.changes if each.team == "shared-pool"]
    assert isinstance(change.after, ComputeQuotaConfig)
    written = {each.instance_type: said(each) for each in change.after.compute_quota_resources}
    assert len(written) == 15
    lost = str(finding.evidence["instanceTypes"]).split(", ")
    assert sorted([*written, *lost]) == sorted(types(17))
    shown = {line.instance_type: line.after for line in plan.allocations if line.team == "shared-pool" and line.after}
    assert {name: f"{number:g}" for name, number in shown.items()} == written
    assert {key[0] for key in row_sources(world)["shared-pool"]} == set(written)
    assert plan_quotas(applied(world, plan), mode="apply").changes == ()


def test_fifteen_types_are_no_finding() -> None:
    machines = [node for name in types(15) for node in nodes(2, name)]
    plan = plan_quotas(snapshot(document(fixed("a", row(G5, Count=1))), machines), mode="plan")
    assert [each.code for each in plan.findings] == []


@pytest.mark.parametrize("promised", [{"VCpu": 500}, {"VCpu": 10, "MemoryInGiB": 900}, {"Count": 4}])
def test_on_a_type_without_nodes_nothing_is_granted_beyond_today(promised: dict[str, float]) -> None:
    world = snapshot(document(fixed("a", row(C5, **promised))), nodes(2), [quota("a", row(C5, VCpu=10))])
    plan = plan_quotas(world, mode="apply")
    assert [change.team for change in plan.changes] == ["shared-pool"]
    assert words(plan)["a"].endswith("the type has no nodes; nothing is added")


def test_on_a_type_without_nodes_less_is_granted_and_said_so() -> None:
    world = snapshot(document(fixed("a", row(C5, VCpu=4)), pool=False), nodes(2), [quota("a", row(C5, VCpu=10))])
    [change] = plan_quotas(world, mode="apply").changes
    assert change.because == "10 -> 4 VCpu ml.c5.2xlarge: guaranteed 4 VCpu, the type has no nodes"


def test_accelerators_promised_on_a_type_that_has_none_are_not_given() -> None:
    world = snapshot(document(fixed("a", row(C5, Accelerators=3, VCpu=8))), nodes(4, C5))
    plan = plan_quotas(world, mode="plan")
    [change] = [each for each in plan.changes if each.team == "a"]
    assert isinstance(change.after, ComputeQuotaConfig)
    assert [said(each) for each in change.after.compute_quota_resources] == ["0 Accelerators, 8 VCpu"]
    assert "ml.c5.2xlarge has no accelerators" in words(plan)["a"]
    assert not [each for each in plan.findings if each.code == "capacity-shortage"]


def test_a_lease_of_an_instance_to_a_row_of_instances_and_vcpus_brings_its_gpu() -> None:
    lease = {
        "to": "a",
        "from": "b",
        "instanceType": G5,
        "count": 1,
        "start": NOW,
        "end": "2026-11-21T00:00:00Z",
        "reason": "r",
    }
    policy = document(fixed("a", row(Count=1, VCpu=48)), fixed("b", row(Count=3)), leases=[lease], pool=False)
    after = {c.team: c.after for c in plan_quotas(snapshot(policy, nodes(5)), mode="plan").changes}
    assert isinstance(after["a"], ComputeQuotaConfig)
    assert [said(each) for each in after["a"].compute_quota_resources] == ["2, 80 VCpu"]


def test_a_share_of_less_than_one_instance_is_a_finding_with_the_way_out() -> None:
    plan = plan_quotas(snapshot(document(share("a", 25)), nodes(1), [quota("a", row(Count=1))]), mode="plan")
    [finding] = [each for each in plan.findings if each.code == "share-rounds-to-nothing"]
    assert finding.because == "a has no ml.g5.8xlarge: 25 % of 1 usable is less than one instance."
    assert "unit: accelerators" in finding.remedy
    assert plan_quotas(snapshot(document(share("a", 25)), nodes(4)), mode="plan").findings == ()


@pytest.mark.long
def test_five_thousand_shapes_of_jobs_that_wait_can_be_predicted() -> None:
    jobs = [job("a", f"waits-{n:04}", 90) for n in range(5_200)]
    for n, each in enumerate(jobs):
        containers = each["spec"]["podSets"][0]["template"]["spec"]["containers"]
        containers[0]["resources"]["requests"]["cpu"] = f"{8_000 + n}m"
    quotas = [quota("a", row(Count=2)), quota("b", row(Count=2))]
    policy = document(
        fixed("a", row(Count=3)), fixed("b", row(Count=1)), pool=False, guardrails={"maxPreemptedGpus": 0}
    )
    world = snapshot(policy, nodes(4), quotas, scheduler_config=SCHEDULER, kueue=queues(quotas, *jobs))
    plan = plan_quotas(world, mode="apply")
    assert (plan.outcome.value, plan.prediction.not_predicted) == ("apply", ())


def test_a_mass_loss_names_the_capacity_it_divides() -> None:
    policy = document(fixed("a", row(Count=12), tier=1), fixed("b", row(Count=5), tier=1), pool=False)
    plan = plan_quotas(snapshot(policy, [*nodes(10), *broken(7)]), mode="plan")
    assert counts(plan) == {"a": 7, "b": 3}
    [finding] = [each for each in plan.findings if each.code == "capacity-shortage"]
    assert finding.because.startswith(
        "Guarantees exceed capacity: guarantees of 17, 10 to give, capacity 17 -> 10 healthy"
    )
