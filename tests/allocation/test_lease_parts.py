"""Leases in every unit: to teams without the type, to the shared pool, given in part; and that they return exactly."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from taskgov.allocation.capacity import count_capacity
from taskgov.allocation.parts import row_key
from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas, row_sources
from taskgov.allocation.sources import Cause, amounts_in
from taskgov.allocation.transfer import without_leases
from taskgov.allocation.wording import said
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaResource
from taskgov.policy.document import CapacityRules
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import AppliedQuota
from tests.allocation.world import C5, G5, NOW, P5, applied, document, fixed, nodes, quota, row, share, snapshot

HOUR = timedelta(hours=1)
MIG = "mig-1g.10gb"
UNKNOWN = "ml.z9.48xlarge"
SLICES = {"unit": "acceleratorPartition", "acceleratorPartitionType": MIG}


def lease(to: str, source: str, count: int, instance_type: str = P5, **fields: Any) -> dict[str, Any]:
    given = {"instanceType": instance_type, "start": NOW - HOUR, "end": NOW + 3 * HOUR, "reason": "deadline", **fields}
    return {"to": to, "from": source, "count": count, **given}


def slices(count: int) -> dict[str, Any]:
    return {"AcceleratorPartition": {"Type": MIG, "Count": count}}


def world(
    *leases: dict[str, Any], a: dict[str, Any], b: dict[str, Any], machines: int = 4, **sections: Any
) -> Snapshot:
    teams = [fixed(name, *([row(P5, **rows)] if rows else [])) for name, rows in (("a", a), ("b", b))]
    return snapshot(document(*teams, leases=leases, **sections), nodes(machines, P5))


def planned(each: Snapshot) -> tuple[Plan, dict[str, str]]:
    plan = plan_quotas(each, mode="apply")
    after = {change.team: change.after for change in plan.changes if isinstance(change.after, ComputeQuotaConfig)}
    return plan, {team: "; ".join(map(said, config.compute_quota_resources)) for team, config in after.items()}


GPUS = {"unit": "accelerators"}
CASES: dict[str, tuple[Snapshot, dict[str, str]]] = {
    "accelerators of a donor of accelerators": (
        world(lease("a", "b", 2, **GPUS), a={"Accelerators": 2}, b={"Accelerators": 6}),
        {"a": "4 Accelerators", "b": "4 Accelerators"},
    ),
    "accelerators of a donor of whole instances": (
        world(lease("a", "b", 2, **GPUS), a={"Accelerators": 2}, b={"Count": 2}),
        {"a": "4 Accelerators", "b": "14 Accelerators, 336 VCpu, 3584 MemoryInGiB"},
    ),
    "accelerators to a borrower of whole instances": (
        world(lease("a", "b", 2, **GPUS), a={"Count": 1}, b={"Accelerators": 8}),
        {"a": "10 Accelerators, 240 VCpu, 2560 MemoryInGiB", "b": "6 Accelerators"},
    ),
    "an instance of a donor of accelerators": (
        world(lease("a", "b", 1), a={"Count": 1}, b={"Accelerators": 12}),
        {"a": "2", "b": "4 Accelerators"},
    ),
    "an instance to a borrower of instances with more vCPUs": (
        world(lease("a", "b", 1), a={"Count": 1, "VCpu": 300}, b={"Count": 2}),
        {"a": "2, 492 VCpu", "b": "1"},
    ),
    "vCPUs": (
        world(lease("a", "b", 48, unit="vcpu"), a={"VCpu": 10}, b={"VCpu": 96}),
        {"a": "58 VCpu", "b": "48 VCpu"},
    ),
    "GiB, with the vCPUs that belong to them": (
        world(lease("a", "b", 512, unit="memoryInGiB"), a={}, b={"Count": 1}),
        {"a": "512 MemoryInGiB", "b": "8 Accelerators, 144 VCpu, 1536 MemoryInGiB"},
    ),
    "slices": (
        world(lease("a", "b", 3, **SLICES), a=slices(2), b=slices(7)),
        {"a": f"5 {MIG}", "b": f"4 {MIG}"},
    ),
    "to a team that has none of the type": (
        world(lease("a", "b", 1), a={}, b={"Count": 3}),
        {"a": "1", "b": "2"},
    ),
    "accelerators of the shared pool": (
        world(lease("a", "shared-pool", 3, **GPUS), a={"Count": 1}, b={"Count": 1}),
        {
            "a": "11 Accelerators, 264 VCpu, 2816 MemoryInGiB",
            "shared-pool": "13 Accelerators, 312 VCpu, 3328 MemoryInGiB",
        },
    ),
    "an instance that is leased itself, by a lease that comes later by name": (
        world(lease("b", "shared-pool", 2), lease("a", "b", 1), a={}, b={"Count": 0}),
        {"a": "1", "b": "1", "shared-pool": "2"},
    ),
    "GiB of an instance that is leased itself": (
        world(lease("b", "shared-pool", 1), lease("a", "b", 2048, unit="memoryInGiB"), a={}, b={"Count": 0}),
        {"a": "2048 MemoryInGiB", "b": "8 Accelerators, 0 VCpu, 0 MemoryInGiB"},
    ),
    "to the shared pool": (
        world(lease("shared-pool", "b", 2), a={"Count": 1}, b={"Count": 3}),
        {"a": "1", "b": "1", "shared-pool": "2"},
    ),
    "in part": (
        world(lease("a", "b", 5, partial=True), a={"Count": 1}, b={"Count": 3}, guardrails={"minimumQuota": {"b": 8}}),
        {"a": "3", "b": "1"},
    ),
    "in part, of the shared pool": (
        world(lease("a", "shared-pool", 40, partial=True, **GPUS), a={"Count": 1}, b={"Count": 1}),
        {"a": "24 Accelerators, 576 VCpu, 6144 MemoryInGiB", "b": "1"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("each", "want"), CASES.values(), ids=CASES.keys())
def test_a_lease_moves_its_unit(each: Snapshot, want: dict[str, str]) -> None:
    plan, found = planned(each)
    found = {team: words for team, words in found.items() if team in want}
    assert found == want
    assert not [finding for finding in plan.findings if finding.code == "lease-refused"]
    assert plan_quotas(applied(each, plan), mode="apply").changes == ()


@pytest.mark.parametrize("each", [each for each, _ in CASES.values()], ids=CASES.keys())
def test_the_sources_of_what_a_lease_moved_add_up(each: Snapshot) -> None:
    assert each.policy is not None
    sides = {side for given in each.policy.leases for side in (given.to, given.from_)}
    after = {change.team: change.after for change in planned(each)[0].changes}
    for team, trails in row_sources(each).items():
        rows = getattr(after[team], "compute_quota_resources", ()) if team in after else ()
        assert all(row_key(one) in trails for one in rows)
        for key, trail in trails.items():
            one = next((each for each in rows if row_key(each) == key), ComputeQuotaResource(instance_type=key[0]))
            assert {u: n for u, n in trail.amounts.items() if n} == {u: n for u, n in amounts_in(one).items() if n}
            assert any(source.cause.value == "lease" for source in trail.sources) == (team in sides)


@pytest.mark.parametrize("each", [each for each, _ in CASES.values()], ids=CASES.keys())
def test_a_lease_that_is_taken_out_returns_all_that_it_moved(each: Snapshot) -> None:
    """Taken out of the document early, below a limit of 0 %: what comes back is set aside."""
    assert each.policy is not None
    lent = applied(each, planned(each)[0])
    wrote = {change.team: change for change in planned(each)[0].changes}
    records = tuple(
        AppliedQuota(
            compute_quota_id=one.compute_quota_id,
            version=one.compute_quota_version,
            config=one.compute_quota_config,
            target=one.compute_quota_target,
            plan_id="plan-1",
            at=NOW - HOUR / 2,
            leased=wrote[one.compute_quota_target.team_name].leased,
        )
        for one in lent.quotas
    )
    limits = each.policy.guardrails.model_copy(update={"max_decrease_percent": 0})
    over = replace(lent, policy=each.policy.model_copy(update={"leases": (), "guardrails": limits}), applied=records)
    plan = plan_quotas(over, mode="apply")
    assert plan.outcome.value == "apply", plan.guardrails
    plain = replace(each, policy=each.policy.model_copy(update={"leases": ()}))
    assert held(applied(over, plan)) == held(applied(plain, planned(plain)[0]))


def held(each: Snapshot) -> dict[str, list[str]]:
    found = {
        one.compute_quota_target.team_name: [
            said(row) for row in one.compute_quota_config.compute_quota_resources if any(amounts_in(row).values())
        ]
        for one in each.quotas
    }
    return {team: rows for team, rows in found.items() if rows}


REFUSED = {
    "a donor that has fewer": (
        world(lease("a", "b", 7, **GPUS), a={"Count": 1}, b={"Accelerators": 6}),
        (
            "the donor b has 6 Accelerators ml.p5.48xlarge, and cannot give 7 accelerators; "
            "it can give 6 accelerators (partial: true takes that)"
        ),
    ),
    "a donor at its floor": (
        world(lease("a", "b", 3, **GPUS), a={"Count": 1}, b={"Accelerators": 6}, guardrails={"minimumQuota": {"b": 4}}),
        (
            "the donor b has 6 Accelerators ml.p5.48xlarge and a floor of 0.5, and cannot give 3 accelerators; "
            "it can give 2 accelerators (partial: true takes that)"
        ),
    ),
    "a donor that has none of the type": (
        world(lease("a", "b", 1, G5), a={"Count": 1}, b={"Count": 1}),
        "the donor b has no ml.g5.8xlarge",
    ),
    "a donor of another profile": (
        world(lease("a", "b", 1, **SLICES), a=slices(1), b={"Count": 1}),
        f"the donor b has no ml.p5.48xlarge {MIG}",
    ),
    "a profile that the type does not have": (
        world(lease("a", "b", 1, **SLICES | {"acceleratorPartitionType": "mig-1g.5gb"}), a=slices(1), b=slices(7)),
        "ml.p5.48xlarge has no partitions of mig-1g.5gb",
    ),
    "a pool that has less": (
        world(lease("a", "shared-pool", 17, **GPUS), a={"Count": 1}, b={"Count": 1}),
        (
            "the shared pool has no 17 accelerators of ml.p5.48xlarge left; "
            "it can give 16 accelerators (partial: true takes that)"
        ),
    ),
    "a partial lease of nothing": (
        world(lease("a", "b", 1, partial=True), a={"Count": 1}, b={"Count": 1}, guardrails={"minimumQuota": {"b": 8}}),
        "the donor b has 1 ml.p5.48xlarge and a floor of 1, and cannot give 1; it can give none",
    ),
    "a borrower in parts of a type that nobody knows": (
        snapshot(
            document(
                share("a", 50, UNKNOWN, unit="accelerators"), share("b", 50, UNKNOWN), pool=False,
                leases=[lease("a", "b", 1, UNKNOWN)],
            ),
            nodes(4, UNKNOWN),
        ),
        f"the borrower a has 0 Accelerators {UNKNOWN}, whose resources are not known",
    ),
    "to a pool that stays as it is, because nobody knows the type": (
        snapshot(
            document(
                fixed("a", row(UNKNOWN, Accelerators=2)), fixed("b", row(UNKNOWN, Count=2)),
                leases=[lease("shared-pool", "b", 1, UNKNOWN)],
            ),
            nodes(4, UNKNOWN),
        ),
        "the quota of the borrower shared-pool is left as it is (the resources of the type are not known)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("each", "because"), REFUSED.values(), ids=REFUSED.keys())
def test_a_lease_is_refused_with_the_numbers(each: Snapshot, because: str) -> None:
    [finding] = [finding for finding in planned(each)[0].findings if finding.code == "lease-refused"]
    assert finding.because.endswith(f"(deadline) is refused: {because}.")


def test_a_lease_given_in_part_is_a_finding() -> None:
    each = world(lease("a", "b", 5, partial=True), a={"Count": 1}, b={"Count": 3})
    [finding] = [finding for finding in planned(each)[0].findings if finding.code == "lease-partial"]
    assert finding.because == "The lease of 5 ml.p5.48xlarge (deadline) is given in part: b can give 3."


def test_a_lease_on_a_type_without_nodes_moves_once() -> None:
    each = world(lease("a", "b", 2), a={"Count": 2}, b={"Count": 7}, machines=20, pool=False)
    each = applied(each, planned(each)[0])
    wrote = {"a": {P5: 2}, "b": {P5: -2}}
    records = tuple(
        AppliedQuota(
            compute_quota_id=one.compute_quota_id,
            version=one.compute_quota_version,
            config=one.compute_quota_config,
            target=one.compute_quota_target,
            plan_id="plan-1",
            at=NOW - HOUR / 2,
            leased=wrote[one.compute_quota_target.team_name],
        )
        for one in each.quotas
    )
    gone = replace(each, nodes=(), applied=records)
    assert plan_quotas(gone, mode="apply").changes == ()


def test_a_share_in_accelerators_lends_accelerators() -> None:
    policy = document(
        share("a", 50, P5, unit="accelerators", floor=2), share("b", 50, P5, unit="accelerators"),
        leases=[lease("b", "a", 6, **GPUS)], pool=False,
    )  # fmt: skip
    assert planned(snapshot(policy, nodes(2, P5)))[1] == {"a": "2 Accelerators", "b": "14 Accelerators"}


@pytest.mark.parametrize(
    ("instance_type", "rows", "unit", "count"),
    [
        ("ml.c5n.9xlarge", {"VCpu": 36, "MemoryInGiB": 85}, {"unit": "vcpu"}, 2),
        (P5, {"VCpu": 33.3}, {"unit": "memoryInGiB"}, 7),
        (P5, {**slices(9), "VCpu": 20, "MemoryInGiB": 100}, SLICES, 2),
    ],
    ids=str,
)
def test_a_lease_leaves_numbers_that_the_api_keeps(
    instance_type: str, rows: dict[str, Any], unit: dict[str, Any], count: int
) -> None:
    """The API holds 32-bit floats: 85 GiB less the 5.33 of two vCPUs would come back as another number each time."""
    teams = fixed("a"), fixed("b", row(instance_type, **rows))
    leases = [lease("a", "b", count, instance_type, **unit)]
    each = snapshot(document(*teams, leases=leases), nodes(4, instance_type))
    plan, _ = planned(each)
    configs = {change.team: change.after for change in plan.changes if isinstance(change.after, ComputeQuotaConfig)}
    assert {"a", "b"} <= configs.keys()
    for config in configs.values():
        for after in config.compute_quota_resources:
            fractions = [number for number in (after.vcpu, after.memory_in_gib) if number is not None]
            assert fractions == [float(f"{number:.6g}") for number in fractions]
    assert plan_quotas(applied(each, plan), mode="apply").changes == ()


@pytest.mark.parametrize("net", [{P5: 1, f"{P5} memoryInGiB": -2048}, {f"{P5} memoryInGiB": -2048, P5: 1}])
def test_what_was_lent_of_a_leased_instance_is_put_back_before_the_instance_is_taken_off(net: dict[str, int]) -> None:
    left = ComputeQuotaConfig.model_validate(
        {"ComputeQuotaResources": [row(P5, Accelerators=8, VCpu=0, MemoryInGiB=0)]}
    )
    machines = count_capacity(nodes(2, P5), CapacityRules(), NOW, InstanceTypeTable())
    [before] = without_leases(left, net, machines).compute_quota_resources
    assert said(before) == "0 Accelerators, 0 VCpu, 0 MemoryInGiB"


OFFER = {"cpu": 188_160, "memory": 1945 * 2**30, "nvidia.com/gpu": 8}
"""Less than an instance has: what the node keeps for itself is no pod's."""


@pytest.mark.parametrize("unit", ["instances", "accelerators"])
@pytest.mark.parametrize("donor", ["b", "shared-pool"])
def test_a_donor_can_lend_all_that_it_has_at_the_basis_allocatable(unit: str, donor: str) -> None:
    count = 16 if unit == "accelerators" else 2
    teams = [share(name, 50, P5, unit=unit) for name in ("a", "b") if name in {"a", donor}]
    policy = document(*teams, leases=[lease("a", donor, count, unit=unit)], capacity={"basis": "allocatable"})
    each = snapshot(policy, nodes(4, P5, allocatable=OFFER))
    plan, found = planned(each)
    assert found["a"] == "32 Accelerators, 752 VCpu, 7780 MemoryInGiB"
    assert plan_quotas(applied(each, plan), mode="apply").changes == ()


def test_nodes_that_offer_nothing_yet_are_no_pool_to_lease_from() -> None:
    policy = document(share("a", 10, P5), leases=[lease("a", "shared-pool", 1)], capacity={"basis": "allocatable"})
    [refused] = [each for each in planned(snapshot(policy, nodes(3, P5)))[0].findings if each.code == "lease-refused"]
    assert refused.because.endswith("the shared pool has no 1 of ml.p5.48xlarge left; it can give none.")


def test_a_row_that_is_lent_whole_names_the_lease_and_is_not_written() -> None:
    each = world(lease("shared-pool", "b", 2, **SLICES), a={"Accelerators": 2}, b=slices(2))
    assert "b" not in planned(each)[1]
    sources = row_sources(each)["b"][P5, MIG].sources
    assert [(source.cause.value, int(source.amounts[MIG])) for source in sources] == [("promise", 2), ("lease", -2)]


def test_what_was_lent_before_parts_are_borrowed_is_reported() -> None:
    """The only instance is lent, and then vCPUs come: the promise and the first lease are told in parts."""
    each = world(lease("a", "b", 1), lease("b", "a", 48, unit="vcpu", start=NOW), a={"Count": 1}, b={"Count": 1})
    [trail] = row_sources(each)["b"].values()
    assert [(source.cause, source.amounts["VCpu"]) for source in trail.sources] == [
        (Cause.PROMISE, Fraction(192)),
        (Cause.LEASE, Fraction(-192)),
        (Cause.LEASE, Fraction(48)),
    ]


def test_what_a_lease_left_written_out_is_no_other_number_when_it_is_over() -> None:
    """A row of vCPUs that lent and got back stays written out; nothing is written, and no number changes."""
    policy = document({"name": "a", "share": [{"instanceType": C5, "weight": 1, "unit": "vcpu"}]}, pool=False)
    stands = quota("a", row(C5, Accelerators=0, VCpu=16, MemoryInGiB=32))
    plan = plan_quotas(snapshot(policy, nodes(2, C5), [stands]), mode="apply")
    assert plan.changes == ()
    assert [(line.unit, line.before, line.after) for line in plan.allocations] == [("VCpu", 16, 16)]
