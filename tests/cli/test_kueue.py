"""`taskgov adopt` and `taskgov kueue-config`."""

from __future__ import annotations

import copy
import json
import re
import signal
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kubernetes import client
from typer.testing import CliRunner

from taskgov.backends.plain_eks.quotas import KueueQuotas
from taskgov.errors import ConflictError, NotFoundError
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ActivationState, ComputeQuota, ComputeQuotaConfig
from taskgov.kueue.record import RECORD, Reading
from taskgov.snapshot.unreadable import UnreadableObject
from taskgov_cli import kueue
from taskgov_cli.kueue_objects import KueueObjectWriter
from taskgov_cli.main import app
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.simulated import SimulatedCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ARN = "arn:aws:eks:us-east-1:111122223333:cluster/plain"
DOCUMENT = {
    "apiVersion": "taskgov/v1",
    "cluster": {"name": "plain", "arn": ARN, "backend": "kueue"},
    "schedulerConfig": {"FairShare": "Enabled"},
    "teams": [{"name": "team-a", "share": [{"instanceType": "ml.g5.8xlarge", "percent": 50}]}],
}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "plain.yaml"
    path.write_text(yaml.safe_dump(DOCUMENT))
    return path


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedCluster]:
    """A cluster where somebody made the queues of team-a and team-c with kubectl."""
    simulated = SimulatedCluster("plain", lambda: datetime(2026, 11, 20, 9, tzinfo=UTC))
    config = ComputeQuotaConfig.model_validate(
        {"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "Count": 2}]}
    )
    reading = Reading(ARN, InstanceTypeTable(), "v1beta2")
    for team in ("team-a", "team-c"):
        for manifest in reading.rendered(team, config, 0, ActivationState.ENABLED).in_order():
            simulated.apply_object(dict(manifest), "kubectl")
    with ClusterApiServer(simulated.store, writes=simulated) as server:

        class Context:
            def __init__(self, context: str) -> None:
                assert context == "here"

            def open(self, _cluster: object) -> client.ApiClient:
                return client.ApiClient(client.Configuration(host=server.url))

            def server(self) -> str:
                return server.url

        def unknown(_name: str) -> str:
            raise NotFoundError("describe EKS cluster plain: not found")

        monkeypatch.setattr(kueue, "_endpoint_of", unknown)

        monkeypatch.setattr(kueue, "KubeconfigContext", Context)
        yield simulated


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def queue_of(cluster: SimulatedCluster, team: str = "team-a") -> dict[str, Any]:
    return cluster.store.get("clusterqueues", f"hyperpod-ns-{team}-clusterqueue")


def is_adopted(cluster: SimulatedCluster, team: str) -> bool:
    return RECORD in queue_of(cluster, team)["metadata"].get("annotations", {})


@pytest.fixture
def of_both(policy: Path) -> Path:
    """A document of team-a and team-c."""
    teams = [{**DOCUMENT["teams"][0], "name": name} for name in ("team-a", "team-c")]  # type: ignore[index]
    policy.write_text(yaml.safe_dump({**DOCUMENT, "teams": teams}))
    return policy


def test_without_yes_it_shows_what_would_be_adopted_and_writes_nothing(policy: Path, cluster: SimulatedCluster) -> None:
    before = queue_of(cluster)
    result = run("adopt", policy, "--context", "here")
    assert result.exit_code == 1
    assert re.search(r"team-a +2 x ml\.g5\.8xlarge", result.output)
    assert "Nothing was written" in result.output
    assert queue_of(cluster) == before


def test_with_yes_the_queue_carries_the_record_and_its_quota_stays(policy: Path, cluster: SimulatedCluster) -> None:
    spec = queue_of(cluster)["spec"]
    result = run("adopt", policy, "--context", "here", "--yes", "--json")
    assert result.exit_code == 0
    [adopted] = json.loads(result.stdout)["quotas"]
    assert adopted["quota"]["ComputeQuotaResources"] == [{"InstanceType": "ml.g5.8xlarge", "Count": 2}]
    assert RECORD in queue_of(cluster)["metadata"]["annotations"]
    assert queue_of(cluster)["spec"] == spec
    again = run("adopt", policy, "--context", "here")
    assert again.exit_code == 0
    assert "nothing to adopt" in again.output


def test_a_team_that_the_document_does_not_have_is_refused(policy: Path, cluster: SimulatedCluster) -> None:
    before = queue_of(cluster)
    refused = run("adopt", policy, "--context", "here", "--team", "team-b", "--team", "team-a", "--yes")
    said = " ".join(refused.output.replace("│", " ").split())
    assert (refused.exit_code, "has no team team-b; its teams are team-a" in said) == (2, True)
    assert queue_of(cluster) == before


def test_another_team_is_left_alone(of_both: Path, cluster: SimulatedCluster) -> None:
    before = queue_of(cluster)
    assert run("adopt", of_both, "--context", "here", "--team", "team-c", "--yes").exit_code == 0
    assert queue_of(cluster) == before


def test_the_managers_configuration_follows_the_policy(policy: Path) -> None:
    plain = yaml.safe_load(run("kueue-config", policy).output)
    assert (plain["apiVersion"], plain["kind"]) == ("config.kueue.x-k8s.io/v1beta2", "Configuration")
    assert plain["fairSharing"] == {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
    assert "waitForPodsReady" not in plain
    assert json.loads(run("kueue-config", policy, "--json").stdout) == plain
    gang = yaml.safe_load(run("kueue-config", policy, "--wait-for-pods-ready").output)
    assert gang["waitForPodsReady"] == {"timeout": "5m", "blockAdmission": True}


def test_a_document_of_a_hyperpod_cluster_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hyperpod.yaml"
    arn = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
    path.write_text(yaml.safe_dump({"apiVersion": "taskgov/v1", "cluster": {"name": "ml", "arn": arn}}))
    result = run("kueue-config", path)
    assert result.exit_code == 2
    assert "not kueue" in result.output


def test_a_broken_document_is_refused_with_its_violations(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(yaml.safe_dump({**DOCUMENT, "cluster": {**DOCUMENT["cluster"], "arn": "ml"}}))  # type: ignore[dict-item]
    result = run("kueue-config", path)
    assert result.exit_code == 1
    assert "must be the ARN of the EKS cluster" in result.output


def test_an_edit_after_the_queue_was_read_stays(
    policy: Path, cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    inspect = KueueObjectWriter.inspect

    def and_then_somebody_edits(self: Any, access: Any, objects: Any) -> Any:
        found = inspect(self, access, objects)
        queue = copy.deepcopy(queue_of(cluster))
        for flavor in queue["spec"]["resourceGroups"][0]["flavors"]:
            for resource in flavor["resources"]:
                resource["nominalQuota"] = "1"
        cluster.update_object(queue, "ana")
        return found

    monkeypatch.setattr(KueueObjectWriter, "inspect", and_then_somebody_edits)
    result = run("adopt", policy, "--context", "here", "--yes")
    assert result.exit_code == 3
    assert "team-a: ClusterQueue hyperpod-ns-team-a-clusterqueue changed after it was read" in result.stderr
    assert "Adopted: none." in result.stdout
    flavors = queue_of(cluster)["spec"]["resourceGroups"][0]["flavors"]
    assert {resource["nominalQuota"] for flavor in flavors for resource in flavor["resources"]} == {"1"}
    assert RECORD not in queue_of(cluster)["metadata"].get("annotations", {})


def test_one_queue_that_is_not_adopted_holds_up_no_other(
    of_both: Path, cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt = KueueQuotas.adopt

    def refused(self: KueueQuotas, quota: ComputeQuota) -> None:
        if quota.compute_quota_target.team_name == "team-a":
            raise ConflictError("ClusterQueue changed after it was read: read it again")
        adopt(self, quota)

    monkeypatch.setattr(KueueQuotas, "adopt", refused)
    result = run("adopt", of_both, "--context", "here", "--yes")
    assert result.exit_code == 3
    assert "Adopted: team-c." in result.stdout
    assert "team-a: ClusterQueue changed after it was read" in result.stderr
    assert (is_adopted(cluster, "team-a"), is_adopted(cluster, "team-c")) == (False, True)
    monkeypatch.undo()


def test_ctrl_c_ends_after_the_queue_that_is_being_adopted_and_the_next_command_adopts_the_others(
    of_both: Path, cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt, interrupted = KueueQuotas.adopt, [True]

    def and_then_ctrl_c(self: KueueQuotas, quota: ComputeQuota) -> None:
        if interrupted:
            interrupted.clear()
            signal.raise_signal(signal.SIGINT)
        adopt(self, quota)

    monkeypatch.setattr(KueueQuotas, "adopt", and_then_ctrl_c)
    result = run("adopt", of_both, "--context", "here", "--yes")
    assert (result.exit_code, "Adopted: team-a." in result.stdout) == (3, True), result.output
    assert "team-c: SIGINT ended the command" in result.stderr
    assert (is_adopted(cluster, "team-a"), is_adopted(cluster, "team-c")) == (True, False)
    again = run("adopt", of_both, "--context", "here", "--yes")
    assert (again.exit_code, "Adopted: team-c." in again.stdout) == (0, True), again.output
    assert is_adopted(cluster, "team-c")


def test_a_queue_that_cannot_be_read_is_named_and_the_others_are_adopted(
    policy: Path, cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas = KueueQuotas.quotas
    odd = UnreadableObject("ComputeQuota", "of ClusterQueue team-c", "spec.resourceGroups: not a list")

    def with_an_odd_queue(self: KueueQuotas, arn: str, on_unreadable: Any = None) -> tuple[ComputeQuota, ...]:
        on_unreadable(odd)
        return quotas(self, arn)

    monkeypatch.setattr(KueueQuotas, "quotas", with_an_odd_queue)
    result = run("adopt", policy, "--context", "here", "--yes")
    assert (result.exit_code, is_adopted(cluster, "team-a")) == (0, True), result.output
    assert "Left out: of ClusterQueue team-c: spec.resourceGroups: not a list" in result.stderr


@pytest.mark.parametrize(
    ("server", "endpoint", "code", "said"),
    [
        ("https://other.gr7.us-east-1.eks.amazonaws.com", "plain.gr7.us-east-1.eks.amazonaws.com", 2, "reaches other."),
        ("https://plain.gr7.us-east-1.eks.amazonaws.com", "plain.gr7.us-east-1.eks.amazonaws.com", 0, ""),
        ("https://127.0.0.1:8443", "plain.gr7.us-east-1.eks.amazonaws.com", 0, "was not checked that context here"),
    ],
    ids=["another cluster", "this cluster", "a tunnel"],
)
def test_queues_of_another_cluster_are_not_adopted(
    policy: Path,
    cluster: SimulatedCluster,
    monkeypatch: pytest.MonkeyPatch,
    server: str,
    endpoint: str,
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr("taskgov_cli.kueue.KubeconfigContext.server", lambda _: server)
    monkeypatch.setattr(kueue, "_endpoint_of", lambda _: endpoint)
    result = CliRunner().invoke(app, ["adopt", str(policy), "--context", "here", "--yes"], env={"COLUMNS": "400"})
    assert (result.exit_code, said in result.stderr) == (code, True), result.output
    assert (RECORD in queue_of(cluster)["metadata"].get("annotations", {})) == (code == 0)


def test_a_cluster_that_cannot_be_described_is_adopted_with_a_note(policy: Path, cluster: SimulatedCluster) -> None:
    result = run("adopt", policy, "--context", "here", "--yes")
    assert result.exit_code == 0, result.output
    assert "It was not checked that context here is arn:aws:eks" in result.stderr
