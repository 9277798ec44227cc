"""Who governs a cluster, and handing it over."""

from collections.abc import Iterator

import pytest

from taskgov.adapters.items import NEWEST
from taskgov_embedded.walkthrough.world import World
from tests.support.operating import DOCUMENT, data, opened, played, taskgov

pytestmark = pytest.mark.long

ELDER = "taskgov:stack:elder"


@pytest.fixture
def world() -> Iterator[World]:
    with opened({"policy": DOCUMENT}, {"waitMinutes": 2}) as opened_world:
        yield played(opened_world)


def test_the_marks_of_a_cluster_are_shown_and_those_of_others_taken_away(world: World) -> None:
    tags = world.registered.tags
    (mine,) = tags
    alone = data("govern", "ml-cluster")
    assert [mark["lineage"] for mark in alone["marks"]] == [alone["lineage"]] == [mine.rpartition(":")[2]]
    tags[ELDER] = "2026-11-01T09:00:00+00:00"
    shown = taskgov("govern", "ml-cluster")
    assert "stack elder (since 2026-11-01 09:00 UTC), which governs it" in " ".join(shown.stdout.split())
    assert "Nothing was changed." in shown.stdout
    assert ELDER in tags
    assert data("govern", "ml-cluster", "--yes")["takenAway"] == ["elder"]
    assert list(tags) == [mine]


def test_a_stack_that_never_looked_is_advised_to_look(world: World) -> None:
    key = {"pk": {"S": f"CLUSTER#{world.cluster_arn}"}, "sk": {"S": "LINEAGE"}}
    world.stack.client("dynamodb").delete_item(TableName=world.stack.outputs["TableName"], Key=key)
    refused = taskgov("govern", "ml-cluster")
    assert refused.exit_code == 1
    assert "taskgov reconcile ml-cluster" in refused.stderr


@pytest.mark.parametrize(("command", "mode"), [("apply", "plan"), ("rollback", "apply")])
def test_a_command_that_writes_stands_down_where_another_stack_governs(command: str, mode: str) -> None:
    with opened({"policy": DOCUMENT}, {"waitMinutes": 2}, mode=mode) as world:
        played(world)
        plan = next(run["planId"] for run in data("history", "ml-cluster") if run["planId"])
        world.registered.tags[ELDER] = "2026-11-01T09:00:00+00:00"
        before = world.quotas()
        refused = taskgov(command, plan, "--yes")
        assert refused.exit_code == 1
        said = " ".join(refused.stderr.split())
        assert "stack elder (since 2026-11-01 09:00 UTC) governs the cluster; this stack," in said
        assert "taskgov govern CLUSTER --yes" in said
        assert world.quotas() == before
        data("govern", "ml-cluster", "--yes")
        assert taskgov(command, plan, "--yes").exit_code == 0
        assert world.quotas() != before
        assert_each_item_has_its_form(world)


def assert_each_item_has_its_form(world: World) -> None:
    items = world.stack.client("dynamodb").scan(TableName=world.stack.outputs["TableName"])["Items"]
    assert [(item["pk"]["S"], item["sk"]["S"]) for item in items if item.get("schema") != {"N": str(NEWEST)}] == []
    assert {"CLUSTER", "ORDER"} <= {item["pk"]["S"].partition("#")[0] for item in items}
