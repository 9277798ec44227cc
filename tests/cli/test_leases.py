"""`taskgov lease list` and `check`: offline answers about temporary quota."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov.snapshot.codec import snapshot_to_json
from taskgov.snapshot.model import ClusterFacts, Node, Snapshot
from taskgov_cli.main import app
from tests.support.memory import CLUSTER_ARN, NOON

DOCUMENT = f"""
apiVersion: taskgov/v1
cluster: {{name: ml-cluster, arn: "{CLUSTER_ARN}"}}
teams:
  - name: team-a
    quota: {{ComputeQuotaResources: [{{InstanceType: ml.g5.8xlarge, Count: 1}}]}}
  - name: team-b
    quota: {{ComputeQuotaResources: [{{InstanceType: ml.g5.8xlarge, Count: 1}}]}}
sharedPool: {{team: shared-pool, takes: remainder}}
capacity: {{growAfterMinutes: 0}}
leases:
  - {{to: team-a, from: shared-pool, instanceType: ml.g5.8xlarge, count: 2,
      start: {NOON + timedelta(hours=1):%Y-%m-%dT%H:%MZ},
      end: {NOON + timedelta(hours=2):%Y-%m-%dT%H:%MZ}, reason: deadline}}
  - {{to: team-a, from: team-b, instanceType: ml.g5.8xlarge, count: 2,
      start: {NOON + timedelta(hours=2):%Y-%m-%dT%H:%MZ},
      end: {NOON + timedelta(hours=3):%Y-%m-%dT%H:%MZ}, reason: demonstration}}
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    file = tmp_path / "policy.yaml"
    file.write_text(DOCUMENT)
    return str(file)


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    nodes = tuple(Node(f"i-{number}", "ml.g5.8xlarge", found_healthy=True) for number in range(4))
    file = tmp_path / "snapshot.json"
    file.write_bytes(snapshot_to_json(Snapshot(ClusterFacts("ml-cluster", CLUSTER_ARN), NOON, nodes)))
    return str(file)


@pytest.mark.parametrize(
    ("hours", "states"),
    [(0, ["due", "due"]), (1, ["active", "due"]), (2, ["ended", "active"]), (3, ["ended", "ended"])],
)
def test_a_lease_holds_from_its_start_to_before_its_end(policy: str, hours: int, states: list[str]) -> None:
    at = f"{NOON + timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}"
    result = CliRunner().invoke(app, ["lease", "list", "--policy", policy, "--at", at, "--json"])
    assert [each["state"] for each in json.loads(result.stdout)] == states


def test_a_lease_that_the_donor_could_not_give_is_refused_with_the_reason(policy: str, snapshot: str) -> None:
    result = CliRunner().invoke(app, ["lease", "check", "--policy", policy, "--snapshot", snapshot, "--json"])
    given, refused = json.loads(result.stdout)
    assert (result.exit_code, given["refused"]) == (1, None)
    assert "the donor team-b has 1 ml.g5.8xlarge, and cannot give 2" in refused["refused"]


def test_a_lease_that_is_refused_at_the_moment_gives_nothing(policy: str, snapshot: str) -> None:
    at = f"{NOON + timedelta(hours=2):%Y-%m-%dT%H:%M:%S}"
    result = CliRunner().invoke(app, ["lease", "check", "-p", policy, "-s", snapshot, "--at", at, "--json"])
    found = [(each["state"], each["given"]) for each in json.loads(result.stdout)]
    assert found == [("ended", None), ("refused", None)]


def test_leases_that_can_all_be_given_are_well(policy: str, snapshot: str) -> None:
    Path(policy).write_text(DOCUMENT.replace("from: team-b", "from: shared-pool"))
    result = CliRunner().invoke(app, ["lease", "check", "--policy", policy, "--snapshot", snapshot])
    assert (result.exit_code, "demonstration" in result.stdout) == (0, True)


def test_a_lease_that_has_ended_is_not_checked_any_more(policy: str, snapshot: str) -> None:
    later = f"{NOON + timedelta(hours=3):%Y-%m-%dT%H:%M:%S}"
    result = CliRunner().invoke(app, ["lease", "check", "-p", policy, "-s", snapshot, "--at", later, "--json"])
    assert (result.exit_code, [each["refused"] for each in json.loads(result.stdout)]) == (0, [None, None])


def test_a_document_that_breaks_rules_is_sent_to_validate(policy: str) -> None:
    Path(policy).write_text(DOCUMENT.replace("count: 2", "count: none"))
    result = CliRunner().invoke(app, ["lease", "list", "--policy", policy])
    assert (result.exit_code, "taskgov validate" in " ".join(result.stderr.split())) == (2, True)
