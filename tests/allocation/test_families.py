"""Promises on hardware families become rows of the instance types that the cluster has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgov.allocation.planner import plan_quotas, row_sources
from taskgov.hyperpod.families import FAMILIES
from taskgov.hyperpod.hardware import ACCELERATORS, stands_for
from taskgov.hyperpod.instance_types import KNOWN_TYPES
from taskgov.policy.parse import parse_policy
from taskgov_explain.quota_settings import QuotaSetting
from taskgov_explain.suppose import Hypothesis, suppose
from tests.allocation.world import ARN, applied, broken, document, fixed, nodes, quota, row, snapshot

if TYPE_CHECKING:
    from taskgov.allocation.plan import Plan
    from taskgov.snapshot.model import Snapshot

SMALL, LARGE, G5_8, G5_12 = "ml.p5.4xlarge", "ml.p5.48xlarge", "ml.g5.8xlarge", "ml.g5.12xlarge"
H200 = "ml.p5en.48xlarge"
GPUS = {SMALL: 1, LARGE: 8, G5_8: 1, G5_12: 4, H200: 8}
COUNTS = st.dictionaries(st.sampled_from(sorted(GPUS)), st.integers(1, 6), min_size=1)
FAMILIES_TOLD = st.sampled_from(["p5", "h100", "ml.p5.*", "g5", "a10g", "h200", "ml.*.48xlarge"])


def by_family(name: str, *families: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "families": list(families), **more}


def cluster(policy: Any, counts: dict[str, int], *quotas: Any) -> Snapshot:
    return snapshot(policy, tuple(node for kind, n in counts.items() for node in nodes(n, kind)), quotas)


def rows_after(plan: Plan, team: str) -> dict[str, float]:
    return {line.instance_type: line.after for line in plan.allocations if line.team == team and line.after}


def planned(policy: Any, counts: dict[str, int]) -> Plan:
    return plan_quotas(cluster(policy, counts), mode="plan")


def test_a_count_is_divided_by_what_there_is_of_each_type() -> None:
    policy = document(by_family("ant", {"family": "p5", "count": 4}))
    plan = planned(policy, {LARGE: 6, SMALL: 2, G5_8: 9})
    assert rows_after(plan, "ant") == {LARGE: 3, SMALL: 1}
    assert plan.findings == ()


def test_accelerators_of_a_family_are_divided_by_accelerators() -> None:
    policy = document(by_family("ant", {"family": "h100", "unit": "accelerators", "count": 18}))
    assert rows_after(planned(policy, {LARGE: 2, SMALL: 2}), "ant") == {LARGE: 16, SMALL: 2}


def test_a_share_is_of_each_type_with_bounds_divided_over_them() -> None:
    policy = document(by_family("ant", {"family": "p5", "percent": 50, "ceiling": 4}))
    assert rows_after(planned(policy, {LARGE: 4, SMALL: 8}), "ant") == {LARGE: 1, SMALL: 3}
    weights = document(
        by_family("ant", {"family": "g5", "weight": 1}), by_family("bee", {"family": "a10g", "weight": 3})
    )
    assert rows_after(planned(weights, {G5_8: 4, G5_12: 8}), "bee") == {G5_8: 3, G5_12: 6}


def test_teams_take_what_others_leave_so_that_nothing_is_promised_twice() -> None:
    teams = [by_family(name, {"family": "p5", "count": 1}) for name in ("ant", "bee")]
    plan = planned(document(*teams), {LARGE: 1, SMALL: 1})
    assert {*rows_after(plan, "ant"), *rows_after(plan, "bee")} == {SMALL, LARGE}
    assert plan.findings == ()
    beside = document(fixed("ant", row(LARGE, Count=2)), by_family("bee", {"family": "p5", "count": 3}))
    assert rows_after(planned(beside, {LARGE: 2, SMALL: 3}), "bee") == {SMALL: 3}


def test_what_is_left_alone_is_not_promised_again() -> None:
    policy = document(by_family("bee", {"family": "p5", "count": 2}), pool=False)
    plan = plan_quotas(cluster(policy, {LARGE: 2, SMALL: 2}, quota("other", row(LARGE, Count=2))), mode="plan")
    assert rows_after(plan, "bee") == {SMALL: 2}


def test_a_family_without_nodes_leaves_what_the_team_holds_and_says_so() -> None:
    policy = document(by_family("ant", {"family": "p5", "count": 2}), pool=False)
    plan = plan_quotas(cluster(policy, {G5_8: 1}, quota("ant", row(LARGE, Count=2))), mode="plan")
    assert {each.code for each in plan.findings} == {"family-without-nodes", "quota-without-nodes"}
    assert plan.changes == ()
    assert [each.code for each in planned(policy, {G5_8: 1}).findings] == ["family-without-nodes"]


def test_a_type_that_appears_takes_its_part_and_one_that_breaks_gives_it_back() -> None:
    policy = document(by_family("ant", {"family": "p5", "count": 3}), pool=False)
    before = cluster(policy, {LARGE: 4})
    world = applied(before, plan_quotas(before, mode="plan"))
    more = snapshot(policy, (*world.nodes, *nodes(2, SMALL)), world.quotas)
    assert rows_after(plan_quotas(more, mode="plan"), "ant") == {LARGE: 2, SMALL: 1}
    gone = snapshot(policy, (*nodes(1, LARGE), *broken(3, LARGE), *nodes(2, SMALL)), world.quotas)
    assert rows_after(plan_quotas(gone, mode="plan"), "ant") == {LARGE: 1, SMALL: 2}


def test_what_exceeds_the_family_is_a_shortage_as_of_exact_types() -> None:
    plan = planned(document(by_family("ant", {"family": "p5", "count": 5})), {LARGE: 1, SMALL: 1})
    assert rows_after(plan, "ant") == {LARGE: 1, SMALL: 1}
    assert {each.code for each in plan.findings} == {"capacity-shortage"}


def test_it_says_of_which_family_a_row_is_a_part() -> None:
    policy = document(by_family("ant", {"family": "p5", "count": 4}))
    world = cluster(policy, {LARGE: 6, SMALL: 2})
    lines = {
        line.instance_type: line.because for line in plan_quotas(world, mode="plan").allocations if line.team == "ant"
    }
    assert "3 of the 4 instances of family p5" in lines[LARGE]
    (source,) = row_sources(world)["ant"][LARGE, ""].sources
    assert source.because == "guaranteed by the document, 3 of the 4 instances of family p5"


def test_a_quota_that_a_family_promises_is_supposed_in_the_document() -> None:
    world = cluster(document(by_family("ant", {"family": "p5", "count": 4})), {LARGE: 6})
    with pytest.raises(ValueError, match="guarantees it by family p5"):
        suppose(world, Hypothesis(quotas=(QuotaSetting("ant", LARGE, 2),)))
    assert suppose(world, Hypothesis(added_nodes={SMALL: 2})).policy == world.policy


@settings(max_examples=60, deadline=None)
@given(
    counts=COUNTS,
    families=st.lists(
        st.tuples(st.sampled_from("abc"), FAMILIES_TOLD, st.integers(0, 9), st.booleans()),
        max_size=3,
        unique_by=lambda each: each[0],
    ),
    exact=st.one_of(st.none(), st.tuples(st.sampled_from(sorted(GPUS)), st.integers(0, 3))),
)
def test_any_families_come_to_what_exact_rows_by_hand_come_to(
    counts: dict[str, int], families: list[tuple[str, str, int, bool]], exact: tuple[str, int] | None
) -> None:
    teams = [
        by_family(name, {"family": family, "count": count, "unit": "accelerators" if in_gpus else "instances"})
        for name, family, count, in_gpus in families
    ]
    own = [fixed("z", row(exact[0], Count=exact[1]))] if exact else []
    plan = planned(document(*teams, *own), counts)
    assert planned(document(*own, *reversed(teams)), counts).changes == plan.changes  # order independent
    by_hand = []
    for name, family, count, in_gpus in families:
        sources = row_sources(cluster(document(*teams, *own), counts)).get(name, {})
        rows = {key[0]: trail.sources[0].amounts for key, trail in sources.items() if trail.sources}
        asked = {kind: int(next(iter(amounts.values()))) for kind, amounts in rows.items()}
        types = [kind for kind in counts if stands_for(family, kind)]
        assert sum(asked.values()) == (count if types else 0)  # exact sums
        assert set(asked) <= set(types)
        unit = "Accelerators" if in_gpus else "Count"
        by_hand.append(fixed(name, *(row(kind, **{unit: amount}) for kind, amount in sorted(asked.items()))))
    written = planned(document(*by_hand, *own), counts)
    for name, *_ in families:
        assert rows_after(written, name) == rows_after(plan, name)
    room = sum(counts.values())
    if not own and len({family for _, family, _, _ in families}) <= 1 and not any(each[3] for each in families):
        there = sum(n for kind, n in counts.items() if families and stands_for(families[0][1], kind))
        if sum(each[2] for each in families) <= there <= room:
            assert "capacity-shortage" not in {each.code for each in plan.findings}  # no over-promise
    world = cluster(document(*teams, *own), counts)
    after = applied(world, plan)
    assert plan_quotas(after, mode="plan").changes == ()


@settings(max_examples=60, deadline=None)
@given(counts=COUNTS, family=FAMILIES_TOLD, count=st.integers(0, 12))
def test_one_more_never_takes_from_a_type(counts: dict[str, int], family: str, count: int) -> None:
    def parts(asked: int) -> dict[str, int]:
        world = cluster(document(by_family("a", {"family": family, "count": asked})), counts)
        sources = row_sources(world).get("a", {})
        return {key[0]: int(next(iter(t.sources[0].amounts.values()))) for key, t in sources.items() if t.sources}

    before, after = parts(count), parts(count + 1)
    there = any(number and stands_for(family, kind) for kind, number in counts.items())
    assert (sum(before.values()), sum(after.values())) == ((count, count + 1) if there else (0, 0))
    assert all(after.get(kind, 0) >= amount for kind, amount in before.items())


# Selectors, and the rules of the document


def test_every_accelerated_family_is_of_one_accelerator() -> None:
    accelerated = {each.name for each in FAMILIES if each.gpu or each.neuron}
    named = [name for hardware, names in ACCELERATORS.items() if hardware != "trainium" for name in names]
    assert sorted(named) == sorted(accelerated)
    known = sorted(name for name in KNOWN_TYPES if stands_for("trainium2", name))
    assert known == ["ml.trn2.3xlarge", "ml.trn2.48xlarge"]
    assert stands_for("p5", "p5.48xlarge")  # EC2's own names, with backend kueue


@pytest.mark.parametrize(
    ("team", "said"),
    [
        ({"families": [{"family": "P5", "count": 1}]}, 'families[0].family: "P5" - must be a family such as p5'),
        ({"families": [{"family": "ml.p5.48xlarge", "count": 1}]}, "must be a family such as p5"),
        ({"families": [{"family": "p5"}]}, "needs one of count, percent and weight; it has none"),
        ({"families": [{"family": "p5", "count": 1, "percent": 5}]}, "it has count and percent"),
        ({"families": [{"family": "p5", "count": 1, "floor": 1}]}, "cannot stand beside count"),
        (
            {"families": [{"family": "p5", "weight": 1, "floor": 3, "ceiling": 2}]},
            "a floor of 3 above its ceiling of 2",
        ),
        ({"families": [{"family": "p5", "count": 1, "unit": "vcpu"}]}, "families[0].unit"),
        ({"families": [{"family": "p5", "counts": 1}]}, "did you mean count?"),
        (
            {"families": [{"family": "h100", "count": 1}], "share": [{"instanceType": LARGE, "percent": 5}]},
            'families[0].family: "h100" - stands for ml.p5.48xlarge too, on which this team already has a quota',
        ),
        (
            {"families": [{"family": "p5", "count": 1}, {"family": "h100", "count": 1}]},
            "stands for ml.p5.48xlarge, as p5 of this team does",
        ),
        ({"families": [{"family": "p99", "count": 1}, {"family": "p99", "count": 1}]}, "is given twice"),
        (
            {"families": [{"family": "p5", "percent": 60}, {"family": "g5", "percent": 101}]},
            "families[1].percent: 101",
        ),
    ],
)
def test_what_a_family_cannot_be_is_refused_with_its_rule(team: dict[str, Any], said: str) -> None:
    given = {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml-cluster", "arn": ARN},
        "teams": [{"name": "a", **team}],
    }
    violations = parse_policy(yaml.safe_dump(given)).violations
    assert any(said in str(each) for each in violations), violations


def test_shares_of_families_add_up_with_those_of_their_types() -> None:
    teams = [
        {"name": "a", "families": [{"family": "p5", "percent": 60}]},
        {"name": "b", "share": [{"instanceType": LARGE, "percent": 30}]},
        {"name": "c", "families": [{"family": "h100", "percent": 20}]},
    ]
    given = {"apiVersion": "taskgov/v1", "cluster": {"name": "ml-cluster", "arn": ARN}, "teams": teams}
    (violation,) = parse_policy(yaml.safe_dump(given)).violations
    assert (
        str(violation)
        == "teams[2].families[0].percent: 20.0 - brings the shares of ml.p5.48xlarge to 110 percent; 100 is all"
    )


def test_a_family_that_is_unknown_is_a_warning_and_counts_in_instances_are_not_of_the_allocatable_basis() -> None:
    teams = [{"name": "a", "families": [{"family": "p55", "count": 1}]}]
    given = {"apiVersion": "taskgov/v1", "cluster": {"name": "ml-cluster", "arn": ARN}, "teams": teams}
    assert [each.code for each in parse_policy(yaml.safe_dump(given)).warnings] == ["unknown-family"]
    violations = parse_policy(yaml.safe_dump(given | {"capacity": {"basis": "allocatable"}})).violations
    assert [each.rule for each in violations] == ["needs unit: accelerators where capacity.basis is allocatable"]


def test_a_document_without_families_is_written_as_before() -> None:
    (team,) = document(fixed("ant", row(LARGE, Count=1))).teams
    assert "families" not in team.model_dump_json(by_alias=True)
