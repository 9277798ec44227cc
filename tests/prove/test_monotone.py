"""The prover sees a team that has less because there is a node more, and compares what it says that it compares."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.worlds import world
from taskgov.allocation.plan import Plan
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.snapshot.model import Snapshot
from tests.allocation.test_lease_parts import lease
from tests.allocation.world import P5, document, fixed, nodes, row, share, snapshot
from tests.prove.monotone import monotone_failures, promised_unit, without_what_varies
from tests.prove.proof import plan_to_apply

GPUS: dict[str, Any] = {"unit": "accelerators"}
COMPARED: dict[str, tuple[list[dict[str, Any]], str | None]] = {
    "whole instances": ([fixed("ant", row(P5, Count=3)), fixed("bee", row(P5, Count=2))], "Count"),
    "instances and shares of them": ([fixed("ant", row(P5, Count=3)), share("bee", 50, P5)], "Count"),
    "accelerators": ([fixed("ant", row(P5, Accelerators=9)), fixed("bee", row(P5, Accelerators=20))], "Accelerators"),
    "shares in accelerators": ([share("ant", 50, P5, **GPUS), share("bee", 30, P5, **GPUS)], "Accelerators"),
    "two units": ([fixed("ant", row(P5, Accelerators=9)), fixed("bee", row(P5, VCpu=20))], None),
    "two units in one row": ([fixed("ant", row(P5, Accelerators=9, VCpu=20))], None),
    "accelerators and shares of them": ([fixed("ant", row(P5, Accelerators=9)), share("bee", 50, P5, **GPUS)], None),
    "nothing": ([fixed("ant")], None),
}


def of(teams: Iterable[dict[str, Any]], **sections: Any) -> Snapshot:
    return snapshot(document(*teams, **sections), nodes(4, P5))


@pytest.mark.parametrize("case", COMPARED)
def test_what_is_promised_in_one_unit_is_compared(case: str) -> None:
    teams, unit = COMPARED[case]
    policy = of(teams).policy
    assert policy is not None
    assert promised_unit(policy, P5) == unit


def taking(asked: Snapshot) -> Plan:
    """Plan, and halve what everybody gets where there is another node."""
    plan = plan_to_apply(asked)
    if not any(node.name.endswith("another") for node in asked.nodes):
        return plan

    def less(config: ComputeQuotaConfig) -> ComputeQuotaConfig:
        rows = (
            each.model_copy(
                update={
                    "count": each.count and each.count // 2,
                    "accelerators": each.accelerators and each.accelerators // 2,
                }
            )
            for each in config.compute_quota_resources
        )
        return config.model_copy(update={"compute_quota_resources": tuple(rows)})

    changes = (
        replace(each, after=less(each.after)) if isinstance(each.after, ComputeQuotaConfig) else each
        for each in plan.changes
    )
    return replace(plan, changes=tuple(changes))


@pytest.mark.parametrize("case", [case for case, (_, unit) in COMPARED.items() if unit])
def test_a_team_that_has_less_with_another_node_is_seen(case: str) -> None:
    teams, unit = COMPARED[case]
    asked = of([{**team, "tier": 1} for team in teams], leases=[lease("ant", "bee", 1)])
    assert list(monotone_failures(asked, plan_to_apply)) == []
    found = list(monotone_failures(asked, taking))
    assert found
    assert all(f"{unit} of {P5}" in failure for failure in found)


def test_leases_demand_and_partial_plans_are_taken_out() -> None:
    teams = COMPARED["whole instances"][0]
    asked = of(teams, leases=[lease("ant", "bee", 1)], demand={"enabled": True}, guardrails={"onLimit": "partial"})
    plain = without_what_varies(asked)
    assert plain is not None
    assert plain.policy is not None
    assert not plain.policy.leases
    assert not plain.policy.demand.enabled
    assert plain.policy.guardrails.on_limit == "block"
    assert without_what_varies(of([share("ant", 50, P5)], capacity={"basis": "allocatable"})) is None


def test_worlds_have_types_that_are_compared() -> None:
    units: list[str] = []
    for family in ("portions", "path", "converge"):
        for number in range(25):
            policy = world(family, 5, number).policy
            assert policy is not None
            types = {share.instance_type for team in policy.teams for share in team.share}
            types |= {
                row.instance_type
                for team in policy.teams
                for row in (team.quota.compute_quota_resources if team.quota else ())
            }
            units += [unit for name in sorted(types) if (unit := promised_unit(policy, name))]
    assert {"Count", "Accelerators", "VCpu"} <= set(units)
    assert units.count("Count") >= 10
