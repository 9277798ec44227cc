"""A quota has at most 15 instance types: the largest stay, and what finds no row is told."""

from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas
from tests.allocation.world import document, fixed, nodes, row, snapshot

TYPES = [f"ml.x{number:02}.large" for number in range(1, 18)]
"""Types that nobody knows: the first has one node, the second two, and so on."""
MACHINES = [node for number, name in enumerate(TYPES, start=1) for node in nodes(number, name)]


def told(plan: Plan) -> list[tuple[str, str]]:
    return [(each.subject, each.because) for each in plan.findings if each.code == "too-many-types"]


def test_the_shared_pool_of_more_than_15_types_has_the_largest_and_counts_the_rest() -> None:
    plan = plan_quotas(snapshot(document(), MACHINES), mode="apply")
    [change] = plan.changes
    rows = getattr(change.after, "compute_quota_resources", ())
    assert {each.instance_type: each.count for each in rows} == {f"ml.x{n:02}.large": n for n in range(3, 18)}
    [finding] = [each for each in plan.findings if each.code == "too-many-types"]
    assert (finding.subject, finding.because) == (
        "shared-pool",
        "shared-pool has more than 15 instance types; its quota has nothing of ml.x01.large, ml.x02.large.",
    )
    assert finding.evidence == {"instanceTypes": "ml.x01.large, ml.x02.large"}
    lines = {line.instance_type: (line.after, line.because) for line in plan.allocations}
    assert lines[TYPES[1]] == (
        0,
        "shared-pool 0 -> 0: remainder of capacity 2 ml.x02.large, a quota has at most 15 rows",
    )


def test_15_types_are_not_too_many() -> None:
    held = fixed("a", *[row(name, Count=number) for number, name in enumerate(TYPES[:2], start=1)])
    assert told(plan_quotas(snapshot(document(held), MACHINES), mode="apply")) == []
