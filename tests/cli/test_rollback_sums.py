"""A rollback never leaves more guaranteed than there is, whatever was written or lost since its plan."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation.plan import ChangeKind
from taskgov_cli.restored_sums import _steps
from taskgov_embedded.walkthrough.world import World
from tests.support.memory import CLUSTER_ARN, InMemoryHyperPod
from tests.support.operating import DOCUMENT, G5, counts, data, opened, played, taskgov
from tests.support.plans import creation, instances, target, update

pytestmark = pytest.mark.long


def document(**teams: int) -> dict[str, Any]:
    """Return the document without a pool: what nobody is given is guaranteed to nobody."""
    rows = [
        {"name": f"team-{name}", "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": count}]}}
        for name, count in teams.items()
    ]
    return {"policy": {name: part for name, part in DOCUMENT.items() if name != "sharedPool"} | {"teams": rows}}


WAIT = {"waitMinutes": 2}


@pytest.fixture
def moved() -> Iterator[World]:
    """Team A gave an instance, which team B was given by the plan after that: 4 of 4 are guaranteed."""
    steps = (document(a=2, b=2), WAIT, document(a=1, b=2), WAIT, document(a=1, b=3), WAIT)
    with opened(*steps) as world:
        yield played(world)


def test_a_plan_is_not_rolled_back_onto_what_another_team_was_given_since(moved: World) -> None:
    later, earlier, _ = [run["planId"] for run in data("history", "ml-cluster")]
    shown, done = taskgov("rollback", earlier), taskgov("rollback", earlier, "--yes")
    assert (shown.exit_code, done.exit_code) == (1, 1)
    assert f"would guarantee 5 of 4 {G5}" in shown.stdout
    assert f"would guarantee 5 of 4 {G5}" in done.stderr
    assert counts(moved) == {"team-a": 1, "team-b": 3}
    assert taskgov("rollback", later, "--yes", "--stop").exit_code == 0
    assert taskgov("rollback", earlier, "--yes").exit_code == 0
    assert counts(moved) == {"team-a": 2, "team-b": 2}


@pytest.fixture
def lost() -> Iterator[World]:
    """A node failed, and a plan lowered what was guaranteed with it: 3 of 3."""
    with opened(document(a=2, b=2), WAIT, {"nodes": {"happens": "fails"}}, WAIT) as world:
        yield played(world)


def test_a_plan_is_not_rolled_back_onto_nodes_that_were_lost(lost: World) -> None:
    before = counts(lost)
    (lowered, *_) = [run["planId"] for run in data("history", "ml-cluster") if run["outcome"] == "applied"]
    assert data("rollback", lowered)["excess"] == f"4 of 3 {G5}"
    assert taskgov("rollback", lowered, "--yes").exit_code == 1
    assert (sum(before.values()), counts(lost)) == (3, before)


def test_a_quota_that_was_deleted_counts_as_it_was_and_one_that_was_created_not_at_all() -> None:
    hyperpod = InMemoryHyperPod()
    hyperpod.create_quota(CLUSTER_ARN, "team-b", instances(4), target("team-b"))
    deleted = replace(update(0, "team-a", "q-a", 3, 0), kind=ChangeKind.DELETE_QUOTA)
    steps = [*_steps(hyperpod.quotas(CLUSTER_ARN), (creation(1, "team-b", 4), deleted))]
    found = [[(one.name, one.compute_quota_config) for one in step] for step in steps]
    assert found == [[], [("team-a", instances(3))]]
