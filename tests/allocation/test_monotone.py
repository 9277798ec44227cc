"""More machines never give anybody less: per instance type, for whole instances, leases and demand aside."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from taskgov.allocation.planner import plan_quotas
from taskgov.policy.document import PolicyDocument
from tests.allocation.world import G5, P5, counts, document, fixed, nodes, quota, row, share, snapshot


def planned(policy: PolicyDocument, machines: int, instance_type: str = G5, kept: int = 0) -> Mapping[str, float]:
    stands = [quota("left-alone", row(instance_type, Count=kept))] if kept else []
    found = dict(counts(plan_quotas(snapshot(policy, nodes(machines, instance_type), stands), mode="plan")))
    found.pop("shared-pool", None)
    return found


@st.composite
def promises(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Teams with fixed promises, percentages and weights on one type; the percentages add up to 100 at most."""
    teams: list[dict[str, Any]] = []
    room = 100.0
    for n in range(draw(st.integers(1, 5))):
        name, tier = f"team-{n}", draw(st.integers(1, 3))
        kind = draw(st.sampled_from(["fixed", "percent", "percent", "weight"]))
        floor = draw(st.sampled_from([0, 0, 1, 3]))
        bounds: dict[str, Any] = {"floor": floor, "ceiling": draw(st.sampled_from([None, floor, floor + 2, 9]))}
        if kind == "fixed":
            teams.append(fixed(name, row(Count=draw(st.integers(0, 12))), tier=tier))
        elif kind == "percent":
            percent = min(draw(st.sampled_from([10, 25, 33.33, 50, 70, 12.5])), room)
            room -= percent
            teams.append(share(name, percent, tier=tier, **bounds))
        else:
            weighted = {"instanceType": G5, "weight": draw(st.integers(1, 4)), **bounds}
            teams.append({"name": name, "tier": tier, "share": [weighted]})
    return teams


@settings(max_examples=150)
@given(
    promises(), st.integers(1, 30), st.sampled_from([0, 0, 3]), st.sampled_from([0, 0, 10]), st.sampled_from([0, 25])
)
def test_one_machine_more_takes_from_nobody(
    teams: list[dict[str, Any]], machines: int, kept: int, headroom: int, overcommit: int
) -> None:
    minimum = {team["name"]: 2 for team in teams if "quota" in team}
    rules = {"headroomPercent": headroom, "overcommitPercent": overcommit}
    policy = document(*teams, capacity=rules, guardrails={"minimumQuota": minimum})
    fewer, more = (planned(policy, count, kept=kept) for count in (machines, machines + 1))
    assert {team: (fewer[team], more[team]) for team in fewer if more[team] < fewer[team]} == {}


def test_the_alabama_paradox_is_gone() -> None:
    """Largest remainder gives c 2 of 10 and 1 of 11; the weights are those of the textbook."""
    policy = document(share("a", 42.8), share("b", 42.8), share("c", 14.4), pool=False)
    assert [planned(policy, machines)["c"] for machines in (9, 10, 11, 12)] == [1, 2, 2, 2]


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.integers(0, 24), st.integers(1, 2), st.sampled_from([0, 1, 3])), min_size=1, max_size=5),
    st.integers(1, 6),
)
def test_one_machine_more_takes_no_accelerator_of_fixed_promises_in_parts(
    asked: list[tuple[int, int, int]], machines: int
) -> None:
    teams = [fixed(f"team-{n}", row(P5, Accelerators=gpus), tier=tier) for n, (gpus, tier, _) in enumerate(asked)]
    minimum = {f"team-{n}": floor for n, (_, _, floor) in enumerate(asked)}
    policy = document(*teams, guardrails={"minimumQuota": minimum})
    fewer, more = (planned(policy, count, P5) for count in (machines, machines + 1))
    assert all(fewer[team] <= more[team] for team in fewer)


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.sampled_from([5, 10, 12.5, 33.3, 50]), st.integers(0, 3)), min_size=1, max_size=2),
    st.integers(0, 20),
    st.integers(1, 6),
)
def test_one_machine_more_takes_no_accelerator_of_shares_in_accelerators(
    shares: list[tuple[float, int]], gpus: int, machines: int
) -> None:
    teams = [
        share(f"team-{n}", percent, P5, unit="accelerators", floor=floor) for n, (percent, floor) in enumerate(shares)
    ]
    policy = document(*teams, fixed("other", row(P5, Accelerators=gpus)))
    fewer, more = (planned(policy, count, P5) for count in (machines, machines + 1))
    assert all(fewer[team] <= more[team] for team in fewer)
