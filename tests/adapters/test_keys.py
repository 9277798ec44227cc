"""The keys of the table are those of `docs/architecture.md`: what is kept outlives the release that wrote it."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from inspect import getmembers, isfunction
from pathlib import Path
from typing import Any

import pytest

from taskgov import keys

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abc"
AT = datetime(2026, 11, 20, 12, 0, 0, 250_000, tzinfo=UTC)
OF_CLUSTER = f"CLUSTER#{ARN}"
KEYS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str, str]] = {
    "state": (keys.state, (ARN,), OF_CLUSTER, "STATE"),
    "lineage": (keys.lineage, (ARN,), OF_CLUSTER, "LINEAGE"),
    "applied_quota": (keys.applied_quota, (ARN, "q1"), OF_CLUSTER, "QUOTA#q1"),
    "applied_policy": (keys.applied_policy, (ARN,), OF_CLUSTER, "POLICY"),
    "edit": (keys.edit, (ARN, "q1"), OF_CLUSTER, "EDIT#q1"),
    "refused": (keys.refused, (ARN, "team-a/a"), OF_CLUSTER, "REFUSED#team-a/a"),
    "run": (keys.run, (ARN, AT, "r1"), OF_CLUSTER, "RUN#2026-11-20T12:00:00.250000+00:00#r1"),
    "once": (keys.once, (ARN, "notice"), OF_CLUSTER, "ONCE#notice"),
    "turn": (keys.turn, (ARN,), OF_CLUSTER, "TELLING"),
    "look": (keys.look, (ARN,), OF_CLUSTER, "LOOK"),
    "owner": (keys.owner, ("q1",), "QUOTA#q1", "CLUSTER"),
    "request": (keys.request, (ARN, "p1"), f"APPROVAL#{ARN}", "APPROVAL#p1"),
    "document": (keys.document, ("ml", "v1"), "DOCUMENT#ml", "VERSION#v1"),
    "order": (keys.order, (ARN, AT, "o1"), f"ORDER#{ARN}", "ORDER#2026-11-20T12:00:00.250000+00:00#o1"),
    "STOP_SWITCH": (lambda: keys.STOP_SWITCH, (), "SWITCH", "STOP"),
}
"""Each key by the function that makes it: what it is given, and both parts as they stand in the tables of people."""


@pytest.mark.parametrize("name", KEYS)
def test_a_key_is_as_it_was(name: str) -> None:
    make, given, partition, sort = KEYS[name]
    assert make(*given) == {"pk": partition, "sk": sort}


def test_every_function_that_makes_a_key_is_here() -> None:
    makers = {name for name, _ in getmembers(keys, isfunction) if not name.startswith("_")} - {"cluster"}
    assert makers == KEYS.keys() - {"STOP_SWITCH"}


def test_the_page_of_the_stores_names_each_key_and_no_other() -> None:
    rows = re.findall(r"^\| (`[A-Z]+(?:#<[^|]*)?`[^|]*) \| (`[A-Z][^|]*) \|", PAGE.read_text(), re.MULTILINE)
    told = {(_kind(partition), _kind(sort)) for partition, sorts in rows for sort in sorts.split(", ")}
    assert told == {(_kind(partition), _kind(sort)) for _, _, partition, sort in KEYS.values()}


def _kind(part: str) -> str:
    """Return what a part of a key begins with."""
    return part.strip("`").partition("`")[0].partition("#")[0]
