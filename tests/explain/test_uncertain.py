"""What rests on something that the scheduling model does not follow says so: in explanations and in what-if answers."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from taskgov.snapshot.codec import snapshot_to_json
from taskgov.snapshot.model import Snapshot
from taskgov_cli.main import app
from taskgov_explain.what_if import WorkloadDifference, what_if
from taskgov_explain.workload import explain_workload
from tests.allocation.work import SCHEDULER, job, queues
from tests.allocation.world import document, fixed, nodes, quota, row, snapshot

TOPOLOGY = ("TopologyAwareScheduling",)
SHARING = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100}}


def racked(workload: dict[str, Any]) -> dict[str, Any]:
    """The same workload, whose pods have to be near one another."""
    twin = deepcopy(workload)
    twin["spec"]["podSets"][0]["topologyRequest"] = {"required": "rack"}
    return twin


def world(*jobs: dict[str, Any], new: tuple[dict[str, Any], ...] = (), a: int = 2, b: int = 4) -> Snapshot:
    """Two teams that share 6 instances; `jobs` have come to rest there, and `new` ones nobody has looked at."""
    quotas = [quota("team-a", row(Count=2), settings=SHARING), quota("team-b", row(Count=4), settings=SHARING)]
    promised = (fixed("team-a", row(Count=a), **SHARING), fixed("team-b", row(Count=b), **SHARING))
    kueue = queues(quotas, *jobs)
    return snapshot(
        document(*promised, pool=False),
        nodes(6),
        quotas,
        kueue=replace(kueue, workloads=(*kueue.workloads, *new)),
        scheduler_config=SCHEDULER,
    )


BORROWS, BESIDE = job("team-b", "borrows", 3), job("team-b", "beside", 2)
COMES = job("team-a", "comes", 2, minute=5)
ONE, TWO = job("team-b", "one", 2), job("team-b", "two", 2)
WAITS = job("team-a", "waits", 3, minute=1)


@pytest.mark.parametrize(
    ("name", "comes", "uncertain", "may_be_preempted"),
    [
        ("borrows", COMES, (), False),
        ("borrows", racked(COMES), TOPOLOGY, True),
        ("comes", COMES, (), False),
        ("comes", racked(COMES), TOPOLOGY, False),
    ],
)
def test_an_explanation_says_what_makes_it_uncertain(
    name: str, comes: dict[str, Any], uncertain: tuple[str, ...], *, may_be_preempted: bool
) -> None:
    answer = explain_workload(world(BORROWS, BESIDE, new=(comes,)), name)
    assert (answer.uncertain, answer.may_be_preempted) == (uncertain, may_be_preempted)


def differences(waits: dict[str, Any]) -> dict[str, WorkloadDifference]:
    """Suppose that team-a has 3 and team-b too: by quota one of the two jobs of team-b is then preempted."""
    today = world(ONE, TWO, waits)
    answer = what_if(today, replace(today, policy=world(a=3, b=3).policy))
    return {difference.workload: difference for difference in answer.workloads}


def test_a_what_if_answer_says_who_may_be_preempted_besides() -> None:
    certain, unsure = differences(WAITS), differences(racked(WAITS))
    assert certain["team-b/one"].preempted_by == unsure["team-b/one"].preempted_by == "team-a/waits"
    assert {name: difference.uncertain for name, difference in certain.items()} == dict.fromkeys(certain, ())
    assert {name: difference.uncertain for name, difference in unsure.items()} == dict.fromkeys(unsure, TOPOLOGY)
    assert [name for name, difference in certain.items() if difference.may_be_preempted] == []
    assert [name for name, difference in unsure.items() if difference.may_be_preempted] == ["team-b/two"]
    assert unsure["team-b/two"].differs


def said(tmp_path: Path, known: Snapshot, *words: str) -> str:
    path = tmp_path / "snapshot.json"
    path.write_bytes(snapshot_to_json(known))
    result = CliRunner().invoke(app, [*words, "--snapshot", str(path)], env={"COLUMNS": "300"})
    assert result.exit_code == 0, result.output
    return result.output


def test_explain_says_so_to_people_and_programs(tmp_path: Path) -> None:
    known = world(BORROWS, BESIDE, new=(racked(COMES),))
    assert "It may be preempted, not certain: topology." in said(tmp_path, known, "explain", "borrows")
    assert "What follows is not certain: topology." in said(tmp_path, known, "explain", "comes")
    told = json.loads(said(tmp_path, known, "explain", "borrows", "--json"))
    assert (told["uncertain"], told["mayBePreempted"]) == (list(TOPOLOGY), True)


def test_what_if_says_so_to_people_and_programs(tmp_path: Path) -> None:
    today = world(ONE, TWO, racked(WAITS), a=3, b=3)
    assert "may be preempted, not certain: topology" in said(tmp_path, today, "what-if")
    told = json.loads(said(tmp_path, today, "what-if", "--json"))
    [two] = [workload for workload in told["workloads"] if workload["workload"] == "team-b/two"]
    assert (two["uncertain"], two["mayBePreempted"]) == (list(TOPOLOGY), True)
