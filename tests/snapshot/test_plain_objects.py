"""Most objects are found to have their form at once: what is said of any object is the same as without that."""

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from taskgov.scheduling.field_forms import ObjectForm
from taskgov.snapshot.forms import fault_of
from taskgov.snapshot.readable import KINDS
from tests.support.clusters import GPU, GovernedCluster

NODE = {
    "metadata": {"name": "n", "creationTimestamp": "2026-11-20T08:00:00Z"},
    "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True", "x": 1}]},
}


def objects() -> Iterator[tuple[str, Any]]:
    cluster = GovernedCluster().with_team("team-a", used={GPU: "6"}).with_team("team-b")
    kueue = cluster.with_waiting("waits", "team-a", gpus=8).snapshot().kueue
    for field, kind in KINDS.items():
        yield from ((kind, item) for item in getattr(kueue, field)[:3])
    yield "Node", NODE


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.0, 10**30, 2**31, float("nan"), "", "x", "-1", "1Gi", "9" * 5000, "2026-11-20T08:00:00"),
    *([], {}, [1], {"a": "b"}, {"a": 1}, {1: 2}, (1,), b"x", nested(57), nested(59), nested(61), nested(300)),
)


def holders(part: Any) -> Iterator[Any]:
    if part and isinstance(part, dict | list):
        yield part
        for each in part.values() if isinstance(part, dict) else part:
            yield from holders(each)


def damaged(item: Any, chance: random.Random) -> Any:
    item = deepcopy(item)
    holder = chance.choice(list(holders(item)))
    if isinstance(holder, dict):
        holder[chance.choice([*holder, "unknown", "active", "annotations"])] = chance.choice(ODD)
    else:
        holder[chance.randrange(len(holder))] = chance.choice(ODD)
    return item


def test_what_is_said_of_damaged_objects_does_not_depend_on_whether_plain_ones_are_found_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance, known = random.Random(7), list(objects())  # noqa: S311 - no secret
    items = [(kind, damaged(item, chance)) for kind, item in (chance.choice(known) for _ in range(3000))]
    said = [fault_of(kind, item) for kind, item in items]
    monkeypatch.setattr(ObjectForm, "is_plain", lambda _: False)
    assert said == [fault_of(kind, item) for kind, item in items]
    assert 1000 < sum(fault is None for fault in said) < 2000
