"""What shares come to: percentages, weights, units, bounds; and that their sources add up."""

from fractions import Fraction
from typing import Any

import pytest

from taskgov.allocation.capacity import TypeCapacity, count_capacity
from taskgov.allocation.claims import Claim
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.portions import portions
from taskgov.allocation.sources import amounts_in
from taskgov.allocation.wording import said
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.policy.document import CapacityBasis, CapacityRules
from taskgov.policy.measured import Share
from tests.allocation.world import G5, NOW, P5, counts, document, nodes, share, snapshot

MIG = "mig-1g.10gb"


def capacity(machines: int, instance_type: str = G5, **rules: Any) -> TypeCapacity:
    found = count_capacity(
        nodes(machines, instance_type),
        CapacityRules.model_validate(rules),
        NOW,
        InstanceTypeTable(),
        instance_types=[instance_type],
    )
    return found[instance_type]


def shares_of(instance_type: str, *drawn: dict[str, Any]) -> dict[str, Share]:
    return {
        f"team-{chr(97 + n)}": Share.model_validate({"instanceType": instance_type, **each})
        for n, each in enumerate(drawn)
    }


def of(
    machines: int, *drawn: dict[str, Any], instance_type: str = G5, taken: dict[str, int] | None = None
) -> dict[str, Claim]:
    room = capacity(machines, instance_type)
    return portions(shares_of(instance_type, *drawn), room, taken or {}, CapacityBasis.INSTANCES)


def percents(*numbers: float, **bounds: dict[str, int]) -> list[dict[str, Any]]:
    return [{"percent": percent, **bounds.get(chr(97 + n), {})} for n, percent in enumerate(numbers)]


WHOLE = {
    "ten over three equal shares is 4, 3, 3": (percents(33.33, 33.33, 33.33), 10, ["4", "3", "3"]),
    "three thirds written as 33.33 divide everything": (percents(33.33, 33.33, 33.33), 300, ["100", "100", "100"]),
    "percentages that sum to a little more than 100 divide everything": (
        percents(33.4, 33.3, 33.4),
        9,
        ["3", "3", "3"],
    ),
    "percentages that sum to less leave the rest": (percents(33.3, 33.3), 300, ["100", "99"]),
    "a third written as 33.33 is one of three": (percents(33.33), 3, ["1"]),
    "a third written as 33.32 is less than one of three": (percents(33.32), 3, ["0"]),
    "two thirds written as 33.33 each are one of three each": (percents(33.33, 33.33), 3, ["1", "1"]),
    "a sixth written as 16.66 is 50 of 300": (percents(16.66), 300, ["50"]),
    "less than a hundredth of a percent is not much of many": (percents(33.33), 6000, ["1999"]),
    "half of five is two, the rest is the pool's": (percents(50), 5, ["2"]),
    "two halves of five divide all five": (percents(50, 50), 5, ["3", "2"]),
    "unequal shares divide unequally": (percents(60, 20, 20), 10, ["6", "2", "2"]),
    "parts of a percent count, and equal claims go by name": (percents(2.5, 7.5), 20, ["1", "1"]),
    "a floor is lifted from the rest, not from the other shares": (percents(10, 50, a={"floor": 5}), 10, ["5", "5"]),
    "a floor takes from the other shares where nothing is left": (percents(50, 50, a={"floor": 8}), 10, ["8", "2"]),
    "a ceiling leaves its part to the other shares": (percents(50, 50, a={"ceiling": 2}), 10, ["2", "8"]),
    "no percent is none of what a ceiling leaves": (percents(100, 0, a={"ceiling": 2}), 10, ["2", "0"]),
    "no percent is its floor": (percents(60, 0, b={"floor": 1}), 10, ["6", "1"]),
    "shares of nothing are nothing": (percents(60, 40), 0, ["0", "0"]),
    "floors of nothing are still asked for": (percents(60, 40, b={"floor": 1}), 0, ["0", "1"]),
}


@pytest.mark.parametrize(("drawn", "machines", "want"), WHOLE.values(), ids=WHOLE.keys())
def test_shares_of_capacity_come_to_whole_instances(
    drawn: list[dict[str, Any]], machines: int, want: list[str]
) -> None:
    assert [said(portion.row) for portion in of(machines, *drawn).values()] == want


def instances(count: int) -> dict[str, int]:
    return {resource: amount * count for resource, amount in capacity(1).per_instance.items()}


WEIGHTS = {
    "equal weights need no 33.33": ([{"weight": 1}] * 3, 10, 0, ["4", "3", "3"]),
    "weights divide what others leave": ([{"weight": 2}, {"weight": 1}], 10, 4, ["4", "2"]),
    "weights come after percentages": ([{"percent": 50}, {"weight": 1}, {"weight": 1}], 10, 1, ["5", "2", "2"]),
    "a floor holds where nothing is left": ([{"weight": 1, "floor": 2}, {"weight": 1}], 4, 4, ["2", "0"]),
    "a ceiling leaves its part to the other weights": ([{"weight": 1, "ceiling": 1}, {"weight": 1}], 6, 0, ["1", "5"]),
    "a weight alone has everything": ([{"weight": 7}], 6, 2, ["4"]),
}


@pytest.mark.parametrize(("drawn", "machines", "taken", "want"), WEIGHTS.values(), ids=WEIGHTS.keys())
def test_weights_divide_what_is_left(drawn: list[dict[str, Any]], machines: int, taken: int, want: list[str]) -> None:
    assert [said(portion.row) for portion in of(machines, *drawn, taken=instances(taken)).values()] == want


GPUS = {"unit": "accelerators"}
PARTS: dict[str, tuple[list[dict[str, Any]], int, list[str]]] = {
    "a quarter of one machine is two of its eight GPUs": ([GPUS | {"percent": 25}], 1, ["2 Accelerators"]),
    "GPUs are divided by weight": (
        [GPUS | {"weight": 2}, GPUS | {"weight": 1}],
        1,
        ["5 Accelerators", "3 Accelerators"],
    ),
    "vCPUs": ([{"percent": 12.5, "unit": "vcpu"}], 1, ["24 VCpu"]),
    "GiB": ([{"percent": 50, "unit": "memoryInGiB", "ceiling": 100}], 1, ["100 MemoryInGiB"]),
    "slices": (
        [{"percent": 50, "unit": "acceleratorPartition", "acceleratorPartitionType": MIG}], 1, [f"28 {MIG}"]
    ),
    "units beside each other each have their part": (
        [{"percent": 50}, {"percent": 25, "unit": "accelerators"}], 2, ["1", "4 Accelerators"]
    ),
    "a floor in accelerators": ([{"percent": 5, "unit": "accelerators", "floor": 3}], 1, ["3 Accelerators"]),
}  # fmt: skip


@pytest.mark.parametrize(("drawn", "machines", "want"), PARTS.values(), ids=PARTS.keys())
def test_shares_in_parts_are_divided_in_their_unit(drawn: list[dict[str, Any]], machines: int, want: list[str]) -> None:
    assert [said(portion.row) for portion in of(machines, *drawn, instance_type=P5).values()] == want


def test_a_share_at_allocatable_brings_what_the_nodes_offer() -> None:
    offer = {"cpu": 180_000, "memory": 1_900 * 2**30, "nvidia.com/gpu": 8}
    [room] = count_capacity(
        nodes(1, P5, allocatable=offer), CapacityRules(basis=CapacityBasis.ALLOCATABLE), NOW, InstanceTypeTable()
    ).values()
    drawn = shares_of(P5, {"percent": 50, "unit": "accelerators"}, {"percent": 25})
    rows = [portion.row for portion in portions(drawn, room, {}, CapacityBasis.ALLOCATABLE).values()]
    assert said(rows[0]) == "4 Accelerators, 90 VCpu, 950 MemoryInGiB"


@pytest.mark.parametrize("machines", [0, 1, 2, 7, 10])
@pytest.mark.parametrize(("drawn", "instance_type"), [
    *((drawn, G5) for drawn, _, _ in WHOLE.values()), *((drawn, P5) for drawn, _, _ in PARTS.values()),
])  # fmt: skip
def test_the_sources_of_a_share_add_up_to_it(drawn: list[dict[str, Any]], instance_type: str, machines: int) -> None:
    for portion in of(machines, *drawn, instance_type=instance_type).values():
        assert {u: n for u, n in portion.tell().amounts.items() if n} == {
            unit: amount for unit, amount in amounts_in(portion.row).items() if amount
        }


def test_a_bound_is_named_where_it_makes_the_number_and_nowhere_else() -> None:
    below_its_ceiling = of(10, *percents(80, 20, a={"ceiling": 6}, b={"floor": 7}))
    above_its_floor = of(10, *percents(10, 90, a={"floor": 3}, b={"ceiling": 4}))
    assert [(said(each.row), each.because) for each in below_its_ceiling.values()] == [
        ("3", "80 % of 10 usable"),
        ("7", "20 % of 10 usable, floor 7"),
    ]
    assert [(said(each.row), each.because) for each in above_its_floor.values()] == [
        ("6", "10 % of 10 usable"),
        ("4", "90 % of 10 usable, ceiling 4"),
    ]


def test_each_source_of_a_share_names_its_cause() -> None:
    found = of(10, *percents(50, 50, a={"floor": 8}))
    told = {
        team: [(s.cause.value, int(s.amounts["Count"]), s.because) for s in each.tell().sources]
        for team, each in found.items()
    }
    assert told == {
        "team-a": [("share", 5, "50 % of 10 usable"), ("floor", 3, "floor 8")],
        "team-b": [("share", 5, "50 % of 10 usable"), ("bounds-of-others", -3, "floors and ceilings of other shares")],
    }
    [one] = of(5, *percents(50)).values()
    assert [(s.cause.value, s.amounts["Count"]) for s in one.tell().sources] == [
        ("share", Fraction(5, 2)),
        ("rounding", Fraction(-1, 2)),
    ]
    assert [each.because for each in of(10, *percents(10, 50, a={"floor": 5})).values()] == [
        "10 % of 10 usable, floor 5",
        "50 % of 10 usable",
    ]
    assert [each.because for each in of(10, *percents(50, 50, a={"ceiling": 3})).values()] == [
        "50 % of 10 usable, ceiling 3",
        "50 % of 10 usable",
    ]
    assert [each.because for each in of(1, {"percent": 12.5, "unit": "vcpu"}, instance_type=P5).values()] == [
        "12.5 % of 192 usable vCPUs"
    ]
    assert [each.because for each in of(10, {"weight": 2}, {"weight": 1}, taken=instances(4)).values()] == [
        "weight 2 of 3 in the 6 that fixed quotas leave",
        "weight 1 of 3 in the 6 that fixed quotas leave",
    ]


@pytest.mark.parametrize("prefix", ["a", "z"])
@pytest.mark.parametrize("unit", ["instances", "accelerators"])
def test_a_node_whose_device_plugin_does_not_run_takes_only_its_own_accelerators(unit: str, prefix: str) -> None:
    """At basis `allocatable`: one such node of four does not leave every whole instance without accelerators."""
    offer = {"cpu": 188_000, "memory": 1900 * 2**30, "nvidia.com/gpu": 8}
    lacking = {name: amount for name, amount in offer.items() if name != "nvidia.com/gpu"}
    machines = (*nodes(3, P5, "m", allocatable=offer), *nodes(1, P5, prefix, allocatable=lacking))
    policy = document(
        share("a", 50, P5, unit=unit), share("b", 50, P5, unit=unit), pool=False, capacity={"basis": "allocatable"}
    )
    plan = plan_quotas(snapshot(policy, machines), mode="apply")
    assert counts(plan) == {"a": 12, "b": 12}
    assert plan.outcome.value == "apply"


NOTHING = {
    "a percentage of too little": (percents(30), 3, 0, "30 % of 3 usable is less than one instance"),
    "floors of others": (
        percents(50, 50, b={"floor": 10}),
        10,
        0,
        "floors of other shares leave nothing of 50 % of 10 usable",
    ),
    "a weight in nothing": (
        [{"weight": 1}],
        2,
        2,
        "weight 1 of 1 in the 0 that fixed quotas leave is less than one instance",
    ),
    "a weight on no instances": ([{"weight": 1}], 0, 0, ""),
    "no percent": (percents(0), 3, 0, ""),
    "a percentage of no instances": (percents(50), 0, 0, ""),
    "a ceiling of nothing": (percents(50, a={"ceiling": 0}), 3, 0, ""),
}


@pytest.mark.parametrize(("drawn", "machines", "taken", "why"), NOTHING.values(), ids=NOTHING.keys())
def test_why_a_share_comes_to_nothing(drawn: list[dict[str, Any]], machines: int, taken: int, why: str) -> None:
    found = of(machines, *drawn, taken=instances(taken))["team-a"]
    assert (said(found.row), found.nothing) == ("0", why)
