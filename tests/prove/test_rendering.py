"""The prover's own rendering and completion say the same as the product's: a difference is seen here first."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from benchmarks.worlds import world
from benchmarks.worlds_draw import FAMILIES
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuota
from taskgov.kueue.render import render
from taskgov.quantities import parse
from tests.allocation.world import G6, P5, quota, row
from tests.prove.amounts import Book, numbers_of
from tests.prove.facts import facts_of
from tests.prove.proof import plan_to_apply
from tests.prove.rendering import objects_of

Spec = dict[tuple[str, str], Any]
SHARING: tuple[dict[str, Any], ...] = (
    {},
    {"Strategy": "Lend"},
    {"Strategy": "DontLend"},
    {"Strategy": "LendAndBorrow", "BorrowLimit": 33},
    {"Strategy": "LendAndBorrow", "AbsoluteBorrowLimits": [row(P5, Accelerators=1, VCpu=0.5), row(G6, Count=1)]},
)
ROWS: tuple[list[dict[str, Any]], ...] = (
    [row(P5, Count=2)],
    [row(P5, Accelerators=3)],
    [row(P5, Accelerators=3, VCpu=1.333, MemoryInGiB=5.25)],
    [row(P5, VCpu=7), row(G6, MemoryInGiB=3)],
    [
        row(P5, Accelerators=1),
        row(P5, AcceleratorPartition={"Type": "mig-1g.10gb", "Count": 5}),
        row("ml.c5.2xlarge", Count=1),
    ],
    [row("ml.trn1.32xlarge", Accelerators=5)],
    [],
)


def comparable(objects: Iterable[Mapping[str, Any]]) -> Spec:
    """Return kind and name -> what the object says, quantities as numbers."""
    return {(each["kind"], each["metadata"]["name"]): _plain(each) for each in objects}


def _plain(value: Any, resource: str = "") -> Any:
    if isinstance(value, Mapping):
        name = str(value.get("name", ""))
        return {
            key: parse(name, item) if key in {"nominalQuota", "borrowingLimit"} else _plain(item, name)
            for key, item in value.items()
        }
    return [_plain(item, resource) for item in value] if isinstance(value, list | tuple) else value


def rendered_by_both(quotas: list[ComputeQuota], book: Book, table: InstanceTypeTable) -> tuple[Spec, Spec]:
    ours = [item for each in quotas for item in objects_of(each, book)]
    theirs = render(quotas, None, table).in_order()
    return comparable(ours), comparable(theirs)


@pytest.mark.parametrize("sharing", SHARING, ids=str)
@pytest.mark.parametrize("rows", ROWS, ids=str)
def test_a_quota_is_rendered_as_the_product_does(rows: list[dict[str, Any]], sharing: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"PreemptTeamTasks": "Never"}
    if sharing:
        settings["ResourceSharingConfig"] = sharing
    held = quota("ant", *rows, weight=7, settings=settings)
    types = {P5, G6, "ml.c5.2xlarge", "ml.trn1.32xlarge"}
    book = {name: numbers for name in types if (numbers := numbers_of(name, None)) is not None}
    ours, theirs = rendered_by_both([held], book, InstanceTypeTable())
    assert ours == theirs


@pytest.mark.parametrize("family", FAMILIES)
def test_worlds_are_rendered_as_the_product_does(family: str) -> None:
    compared = 0
    for number in range(12):
        drawn = world(family, 3, number)
        facts = facts_of(drawn, plan_to_apply(drawn))
        assert drawn.policy is not None
        table = drawn.policy.instance_type_table()
        known = [
            each
            for each in drawn.quotas
            if all(item.instance_type in facts.known for item in each.compute_quota_config.compute_quota_resources)
        ]
        ours, theirs = rendered_by_both(known, facts.known, table)
        assert ours == theirs
        compared += len(known)
    assert compared
