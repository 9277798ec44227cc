"""Limits of decreases and increases hold for every number of a quota, exactly."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from taskgov.allocation.goals import Goal
from taskgov.allocation.limits import limits, said_percent
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.quota_deltas import quota_deltas
from taskgov.hyperpod.model import ComputeQuotaConfig
from tests.allocation.limits_world import UNKNOWN, failed, mig, moving, stopped_by
from tests.allocation.world import C5, G5, G6, P5, config, document, fixed, nodes, quota, row, snapshot

DOWN: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], float]] = {
    "one number of a row within, another beyond": (
        row(P5, Accelerators=8, VCpu=192, MemoryInGiB=2048),
        row(P5, Accelerators=7, VCpu=10, MemoryInGiB=2048),
        25,
    ),
    "vCPUs that the ratio brought": (row(P5, Accelerators=8), row(P5, Accelerators=8, VCpu=1), 25),
    "another unit, measured by what the ratio brings": (row(P5, Accelerators=8), row(P5, VCpu=1), 25),
    "memory to vCPU": (row(P5, MemoryInGiB=298), row(P5, VCpu=1), 0),
    "two of 5000 at 0 %": (row(P5, VCpu=5000), row(P5, VCpu=4998), 0),
    "25.04 % at 25 %": (row(P5, VCpu=10000), row(P5, VCpu=7496), 25),
    "slices of one profile for those of another": (mig("mig-1g.5gb", 7), mig("mig-7g.40gb", 1), 25),
    "whole instances of an unknown type": (row(UNKNOWN, Count=8), row(UNKNOWN, Count=5), 25),
}


@pytest.mark.parametrize(("before", "after", "percent"), DOWN.values(), ids=DOWN.keys())
def test_every_number_is_limited_on_its_way_down(
    before: Mapping[str, Any], after: Mapping[str, Any], percent: float
) -> None:
    assert stopped_by(moving(before, after, maxDecreasePercent=percent)) == ["max-decrease"]
    period = {"percent": percent, "hours": 24}
    assert stopped_by(moving(before, after, maxDecreasePerPeriod=period)) == ["max-decrease-per-period"]


UP: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], float]] = {
    "one number of a row within, another beyond": (
        row(P5, Accelerators=7, VCpu=10, MemoryInGiB=2048),
        row(P5, Accelerators=8, VCpu=192, MemoryInGiB=2048),
        25,
    ),
    "vCPUs that the ratio brings": (row(P5, Accelerators=8, VCpu=1), row(P5, Accelerators=8), 25),
    "another unit, measured by what the ratio brings": (row(P5, VCpu=1), row(P5, Accelerators=8), 25),
    "vCPU to memory": (row(P5, VCpu=1), row(P5, MemoryInGiB=298), 0),
    "two of 5000 at 0 %": (row(P5, VCpu=4998), row(P5, VCpu=5000), 0),
    "25.04 % at 25 %": (row(P5, VCpu=10000), row(P5, VCpu=12504), 25),
}


@pytest.mark.parametrize(("before", "after", "percent"), UP.values(), ids=UP.keys())
def test_every_number_is_limited_on_its_way_up(
    before: Mapping[str, Any], after: Mapping[str, Any], percent: float
) -> None:
    assert stopped_by(moving(before, after, maxIncreasePercent=percent)) == ["max-increase"]
    period = {"percent": percent, "hours": 24}
    assert stopped_by(moving(before, after, maxIncreasePerPeriod=period)) == ["max-increase-per-period"]


def test_a_number_that_was_nothing_throughout_the_period_has_no_percentage_to_grow_by() -> None:
    period = {"percent": 50, "hours": 24}
    world = moving(row(G5, Count=2), row(P5, Count=2), maxIncreasePerPeriod=period)
    assert stopped_by(world) == []
    assert stopped_by(moving(row(P5, Count=1), row(P5, Count=2), maxIncreasePerPeriod=period)) != []


WITHIN: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], dict[str, Any]]] = {
    "just a quarter": (row(P5, VCpu=10000), row(P5, VCpu=7500), {"maxDecreasePercent": 25}),
    "the same in another unit": (row(P5, Accelerators=8), row(P5, Count=1), {"maxDecreasePercent": 0}),
    "what the service filled in by ratio": (
        row(P5, Accelerators=8, VCpu=192, MemoryInGiB=2048),
        row(P5, Accelerators=8),
        {"maxDecreasePercent": 0, "maxIncreasePercent": 0},
    ),
    "EFA that follows the largest share": (
        row(G6, Accelerators=2, VCpu=48, MemoryInGiB=96),
        row(G6, Accelerators=2, VCpu=24, MemoryInGiB=96),
        {"maxDecreasePercent": 50},
    ),
    "a new number beside one that stays": (
        row(P5, Accelerators=0, VCpu=192, MemoryInGiB=2048),
        row(P5, Accelerators=8, VCpu=192, MemoryInGiB=2048),
        {"maxIncreasePercent": 0},
    ),
}


@pytest.mark.parametrize(("before", "after", "guardrails"), WITHIN.values(), ids=WITHIN.keys())
def test_what_is_within_its_limit_goes_through(
    before: Mapping[str, Any], after: Mapping[str, Any], guardrails: dict[str, Any]
) -> None:
    assert stopped_by(moving(before, after, **guardrails)) == []


def test_a_verdict_names_the_worst_number_and_how_many_more() -> None:
    before, after = row(P5, Accelerators=8, VCpu=192, MemoryInGiB=2048), row(P5, Accelerators=2, VCpu=10)
    [verdict] = failed(plan_quotas(moving(before, after, maxDecreasePercent=25), mode="apply"))
    assert verdict.because == (
        "team-a ml.p5.48xlarge 192 -> 10 vCPU falls by 94.79 % in one step; the most allowed is 25 %. "
        "2 more numbers are beyond it."
    )
    assert verdict.remedy == (
        "raise guardrails.maxDecreasePercent to 94.8, or lower the quota in steps (guardrails.onLimit: partial)"
    )


def test_the_percentage_that_is_named_lets_the_plan_through() -> None:
    before, after = row(C5, VCpu=3), row(C5, VCpu=2)
    [verdict] = failed(plan_quotas(moving(before, after, maxDecreasePercent=25), mode="apply"))
    assert verdict.remedy.startswith("raise guardrails.maxDecreasePercent to 33.34,")
    assert stopped_by(moving(before, after, maxDecreasePercent=33.33)) == ["max-decrease"]
    assert stopped_by(moving(before, after, maxDecreasePercent=33.34)) == []


def test_a_percentage_that_no_document_can_hold_is_not_named() -> None:
    before, after = row(P5, VCpu=0.001), row(P5, VCpu=192)
    [verdict] = failed(plan_quotas(moving(before, after, maxIncreasePercent=100), mode="apply"))
    assert verdict.remedy == "raise the quota in steps (guardrails.onLimit: partial)"


PERCENTAGES = {
    "a half": ("37.5", 25, "37.5"),
    "more than the limit by little": ("25.0004", 25, "25.0004"),
    "less than the limit by little": ("24.99996", 25, "24.99996"),
    "the limit itself": ("25", 25, "25"),
    "very little": ("0.0004", 0, "0.0004"),
    "a long one": ("33.3333333", 25, "33.33"),
}


@pytest.mark.parametrize(("percent", "limit", "want"), PERCENTAGES.values(), ids=PERCENTAGES.keys())
def test_a_percentage_never_contradicts_its_verdict(percent: str, limit: int, want: str) -> None:
    assert said_percent(Fraction(percent), Fraction(limit)) == want


def test_what_loses_its_unit_on_an_unknown_type_falls_to_nothing() -> None:
    """The planner leaves such a quota alone; nobody could say how much of it falls."""
    before, after = (
        ComputeQuotaConfig.model_validate(config(row(UNKNOWN, **parts))) for parts in ({"Count": 8}, {"VCpu": 500})
    )
    policy = document(guardrails={"maxDecreasePercent": 99, "maxIncreasePercent": 0})
    goal = Goal("team-a-quota", "team-a", before, before, after)
    moved = quota_deltas(snapshot(policy), policy, [goal], [], {})
    said = [verdict for limit in limits(policy.guardrails) for verdict in limit.verdicts(moved)]
    assert [(verdict.passed, verdict.because) for verdict in said] == [
        (False, "team-a ml.x99.large 8 -> 0 falls by 100 % in one step; the most allowed is 99 %."),
        (True, "team-a ml.x99.large 0 -> 500 VCpu: it was zero before, and zero has no percentage."),
    ]


DEFAULT = {"maxDecreasePercent": 25, "maxDecreaseInstances": 1}
SMALL: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], bool]] = {
    "a quota of 2 may lose 1": (row(Count=2), row(Count=1), True),
    "a quota of 1 may lose it": (row(Count=1), row(Count=0), True),
    "a quota of 2 may not lose both": (row(Count=2), row(Count=0), False),
    "a quota of 12 may lose 3": (row(Count=12), row(Count=9), True),
    "a quota of 12 may not lose 6": (row(Count=12), row(Count=6), False),
    "parts may lose what one instance has of each": (
        row(G6, Accelerators=8, VCpu=96, MemoryInGiB=384),
        row(G6, Accelerators=4, VCpu=48, MemoryInGiB=192),
        True,
    ),
    "parts may not lose more of one resource": (
        row(G6, Accelerators=8, VCpu=96, MemoryInGiB=384),
        row(G6, Accelerators=8, VCpu=47, MemoryInGiB=384),
        False,
    ),
    "seven slices of a GPU's are one GPU of eight": (mig("mig-1g.5gb", 56), mig("mig-1g.5gb", 1), True),
}


@pytest.mark.parametrize(("before", "after", "passes"), SMALL.values(), ids=SMALL.keys())
def test_the_greater_of_a_percentage_and_one_instance(
    before: Mapping[str, Any], after: Mapping[str, Any], passes: bool
) -> None:
    assert stopped_by(moving(before, after, **DEFAULT)) == ([] if passes else ["max-decrease"])


def test_a_verdict_says_both_sides_of_the_greater() -> None:
    [verdict] = failed(plan_quotas(moving(row(Count=12), row(Count=6), **DEFAULT), mode="apply"))
    assert verdict.because == (
        "team-a ml.g5.8xlarge 12 -> 6 falls by 50 % in one step; the most allowed is 25 % or 1 whole instance."
    )


def test_mass_loss_is_stopped() -> None:
    """Three quarters of the nodes are gone."""
    teams = [fixed(f"team-{letter}", row(Count=6)) for letter in "abc"]
    quotas = [quota(f"team-{letter}", row(Count=6)) for letter in "abc"]
    world = snapshot(document(*teams, guardrails=DEFAULT, pool=False), nodes(4), quotas)
    assert stopped_by(world) == ["max-decrease"] * 3
