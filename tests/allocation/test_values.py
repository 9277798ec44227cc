"""Values never change once they are made, and names are compared by what they say."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

import taskgov.allocation
from benchmarks.worlds import world
from benchmarks.worlds_draw import FAMILIES
from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.planner import plan_quotas
from taskgov.snapshot.model import Snapshot
from tests.allocation.limits_world import HOUR, moving, record
from tests.allocation.world import G5, NOW, P5, document, fixed, nodes, quota, row, snapshot

FILLED_UP = {"Axis", "Loaded", "Slot", "_Slot", "_Team"}
"""What a plan fills up while it is worked out: within one function, or as the model that one snapshot shares."""


def dataclasses() -> Iterator[Any]:
    for module in pkgutil.iter_modules(taskgov.allocation.__path__, "taskgov.allocation."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.name:
                yield value


def test_a_value_of_a_plan_is_frozen_and_takes_no_other_field() -> None:
    found = list(dataclasses())
    assert len(found) > 40
    assert {each.__name__ for each in found if "__slots__" not in vars(each)} == set()
    assert {each.__name__ for each in found if not each.__dataclass_params__.frozen} == FILLED_UP


def apart(value: Any) -> Any:
    """Return the same value in which no two strings are one object, as far as Python can tell them apart."""
    made = value
    match value:
        case Enum():
            pass
        case str():
            made = "".join(list(value))
        case BaseModel():
            made = value.model_copy(update={name: apart(getattr(value, name)) for name in type(value).model_fields})
        case Mapping():
            made = {apart(key): apart(entry) for key, entry in value.items()}
        case tuple() | list() | frozenset() | set():
            made = type(value)(apart(entry) for entry in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            made = replace(
                value, **{each.name: apart(getattr(value, each.name)) for each in fields(value) if each.init}
            )
        case _:
            pass
    return made


CUT_BACK = snapshot(
    document(
        fixed("a", row(Count=6)), fixed("b", row(Count=16)), guardrails={"maxDecreasePercent": 25, "onLimit": "partial"}
    ),
    nodes(24),
    [quota("a", row(Count=12)), quota("b", row(Count=10)), quota("left-alone", row(Count=2))],
)
HELD = quota("a", row(Count=3))
LEASE = {"to": "a", "from": "shared-pool", "instanceType": G5, "count": 1, "reason": "deadline"}
ENDED = snapshot(
    document(fixed("a", row(Count=2)), leases=[{**LEASE, "start": NOW - 9 * HOUR, "end": NOW - HOUR}]),
    nodes(4),
    [HELD],
    applied=(record(HELD, leased={G5: 1}),),
)
WORLDS = {family: [world(family, 2026, number) for number in (0, 1)] for family in FAMILIES} | {
    "partial": [CUT_BACK],
    "a lease that has ended": [ENDED],
    "limits of parts": [
        moving(before, after, maxDecreasePercent=25)
        for before, after in (
            (row(P5, Accelerators=8), row(P5, Accelerators=4)),
            (row(P5, Count=2), row(P5, Accelerators=8)),
            (row(P5, Accelerators=16), row(P5, Count=1)),
        )
    ],
}


@pytest.mark.parametrize("worlds", WORLDS.values(), ids=WORLDS.keys())
def test_a_plan_compares_names_by_what_they_say(worlds: list[Snapshot]) -> None:
    for drawn in worlds:
        other = apart(drawn)
        assert other == drawn
        assert len({id(node.instance_type) for node in other.nodes}) == len(other.nodes)
        assert plan_to_json(plan_quotas(other, mode="apply")) == plan_to_json(plan_quotas(drawn, mode="apply"))
