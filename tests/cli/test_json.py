"""Every member of every answer for programs is in camelCase."""

import json

import pytest
from typer.testing import CliRunner

from taskgov.allocation.codec import plan_to_json
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.model import ComputeQuotaResource
from taskgov.snapshot.codec import snapshot_to_json
from taskgov.snapshot.model import ClusterFacts
from taskgov_cli.main import app
from taskgov_cli.output import jsonable
from tests.allocation.test_golden_plans import SCENARIOS
from tests.cli.test_leases import DOCUMENT as POLICY
from tests.support.json_names import member_names
from tests.support.lab import Lab
from tests.support.memory import NOON

COMMANDS = {
    "explain a workload": ["explain", "team-a/waits", "--snapshot", "SNAPSHOT"],
    "explain a team": ["explain", "--team", "team-a", "--snapshot", "SNAPSHOT"],
    "status": ["status", "--snapshot", "SNAPSHOT"],
    "jobs": ["jobs", "--snapshot", "SNAPSHOT"],
    "plan": ["plan", "--snapshot", "SNAPSHOT"],
    "what-if": ["what-if", "--snapshot", "SNAPSHOT", "--set", "team-a.ml.g5.8xlarge=3"],
    "audit": ["audit", "--snapshot", "SNAPSHOT"],
    "validate": ["validate", "POLICY"],
    "lease list": ["lease", "list", "--policy", "POLICY"],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("json")
    lab = Lab().team("team-a", 2).team("team-b", 4).machines(5).machines(1, cordoned=True)
    lab.submit("team-a", "borrows", pods=4).submit("team-a", "waits", pods=3)
    (folder / "snapshot.json").write_bytes(snapshot_to_json(lab.snapshot()))
    (folder / "policy.yaml").write_text(POLICY)
    return {"SNAPSHOT": str(folder / "snapshot.json"), "POLICY": str(folder / "policy.yaml")}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_member_is_in_camel_case(files: dict[str, str], name: str) -> None:
    arguments = [files.get(word, word) for word in COMMANDS[name]]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert isinstance(result.exception, SystemExit | None), result.output
    found = set(member_names(json.loads(result.stdout)))
    assert len(found) > 2
    assert {member for member in found if "_" in member} == set()


def test_a_plan_that_is_printed_is_the_plan_as_json() -> None:
    plan = plan_quotas(SCENARIOS["preemption"], mode="apply")
    assert jsonable(plan) == json.loads(plan_to_json(plan))


def test_keys_that_are_data_and_what_aws_names_keep_their_form() -> None:
    row = ComputeQuotaResource(instance_type="ml.g5.8xlarge", count=2)
    data = jsonable({"team_a": [ClusterFacts("ml", "arn", eks_arn="eks")], "rows": (row,), "at": NOON})
    assert data["team_a"][0]["eksArn"] == "eks"
    assert data["rows"][0]["InstanceType"] == "ml.g5.8xlarge"
    assert data["at"] == "2026-11-20T12:00:00Z"
