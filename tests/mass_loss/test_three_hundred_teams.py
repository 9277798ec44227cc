"""300 teams lose half of 3,000 nodes at once, on a whole stack: held, recorded, noticed, approved, applied."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from taskgov.allocation.plan import Outcome
from taskgov.hyperpod.names import INSTANCE_TYPE_LABEL
from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.mass_loss

TEAMS: Final = 300
TYPES: Final = ("ml.g5.8xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge")
EACH: Final = 10
"""Nodes for each team."""
KIB, KB = 1024, 1000


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Return a cluster in which a third of the teams share each instance type."""
    groups = [
        {"name": f"group-{number}", "instanceType": instance_type, "count": EACH * TEAMS // len(TYPES)}
        for number, instance_type in enumerate(TYPES)
    ]
    walkthrough = {
        "name": "mass-loss",
        "source": "the tests of this file",
        "about": "half of the nodes are lost at once",
        "mode": "apply",
        "starts": "2026-11-20T09:00:00Z",
        "cluster": {"name": "ml", "groups": groups},
        "steps": [{"title": "lose nodes"}],
    }
    with World(Walkthrough.model_validate(walkthrough)) as opened:
        opened.stack.sagemaker.governance.limit_per_cluster = TEAMS
        govern(opened)
        yield opened


def govern(world: World) -> None:
    """Let the teams of an instance type have the same share of it each."""
    document = {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml", "arn": world.cluster_arn},
        "teams": [
            {
                "name": f"team-{number}",
                "share": [{"instanceType": TYPES[number % len(TYPES)], "percent": 100 * len(TYPES) / TEAMS}],
            }
            for number in range(TEAMS)
        ],
    }
    Actor(world)._policy(document)
    world.stack.run_until_quiet(7200)
    resync(world)


def resync(world: World) -> None:
    world.stack.advance(3600, schedules=["ResyncAllSchedule"])
    world.stack.run_until_quiet(7200)


def counts(world: World) -> Counter[int]:
    """Return how many teams have how many nodes."""
    return Counter(sum(row["Count"] for row in rows) for rows in world.quotas().values())


def lose_every_second_node(world: World) -> None:
    """Take them out of what Kubernetes lists, half of each instance type. Their machines run on."""
    nodes = [node["metadata"] for node in world.cluster.store.list("nodes")]
    for node in sorted(nodes, key=lambda node: (node["labels"][INSTANCE_TYPE_LABEL], node["name"]))[::2]:
        world.cluster.store.delete("nodes", node["name"])


def items(world: World, partition: str) -> list[dict[str, Any]]:
    pages = (
        world.stack.client("dynamodb").get_paginator("scan").paginate(TableName=world.stack.physical("GovernanceTable"))
    )
    return [item for page in pages for item in page["Items"] if item["pk"]["S"].startswith(partition)]


def records(world: World) -> list[dict[str, Any]]:
    """Return the records of runs, the oldest first."""
    return sorted((item for item in items(world, "CLUSTER#") if "outcome" in item), key=lambda item: item["sk"]["S"])


def runs(world: World) -> list[str]:
    """Return how the runs on record ended, the oldest first."""
    return [item["outcome"]["S"] for item in records(world)]


def given(world: World, operation: str) -> list[Mapping[str, Any]]:
    """Return what each call of an operation that went well was given, the oldest first."""
    return [call.params for call in world.stack.calls if call.operation == operation and call.error is None]


def assert_that_nothing_was_large(world: World) -> None:
    """Look at each answer of a step, event, notice and item of the table."""
    assert max(len(result.payload.encode()) for result in world.stack.results) <= 64 * KIB
    sent = [*given(world, "Publish"), *given(world, "PutEvents")]
    assert max(len(json.dumps(params, default=str).encode()) for params in sent) <= 128 * KIB
    assert max(len(json.dumps(item, default=str).encode()) for item in items(world, "")) <= 200 * KB


def test_half_of_the_nodes_are_lost_and_a_person_decides(world: World) -> None:
    assert counts(world) == {EACH: TEAMS}
    ended = len(runs(world))
    lose_every_second_node(world)
    lost = EACH * TEAMS // 2

    resync(world)
    assert counts(world) == {EACH: TEAMS}, "held: no quota is lowered before a person approves"
    (asked,) = items(world, "APPROVAL#")
    plan = world.plan_at(json.loads(asked["plan"]["S"]))
    assert asked["planId"]["S"] == plan.plan_id
    assert plan.outcome is Outcome.NEEDS_APPROVAL
    assert len({change.subject for change in plan.changes}) == TEAMS
    assert {verdict.guardrail for verdict in plan.guardrails if not verdict.passed} == {"nodes-seen"}
    found = [finding for finding in plan.findings if finding.code == "mass-loss"]
    assert [(finding.evidence["lost"], finding.evidence["of"]) for finding in found] == [(lost // 3, 2 * lost // 3)] * 3
    data = (datum for result in world.stack.results for datum in result.metrics)
    assert lost in [value for datum in data if datum.name == "NodesLost" for value in datum.values]

    incident, question = (params for params in given(world, "Publish") if "lost" in params["Message"])
    assert (incident["Subject"], question["Subject"]) == ("taskgov: incident on ml", "taskgov: approval needed for ml")

    Actor(world)._approve(True)
    world.stack.run_until_quiet(7200)
    after = counts(world)
    assert sum(nodes * teams for nodes, teams in after.items()) == lost
    assert max(after) < EACH
    assert runs(world)[ended:][-1] == "applied"
    (record,) = [item for item in records(world) if item.get("planId", {}).get("S") == plan.plan_id]
    assert f"plan {plan.plan_id} approved by" in record["cause"]["S"], "the hold and its end are on record"
    (ending,) = [
        json.loads(entry["Detail"])
        for params in given(world, "PutEvents")
        for entry in params["Entries"]
        if entry["DetailType"] == "Quota Changes Applied" and "nodes were lost" in entry["Detail"]
    ]
    assert (ending["applied"], ending["changeCount"]) == (TEAMS, TEAMS)

    resync(world)
    assert counts(world) == after, "the loss is approved: nobody is asked again"
    assert len([params for params in given(world, "Publish") if "lost" in params["Message"]]) == 2
    assert_that_nothing_was_large(world)
