"""What a person types: kubectl against the simulated cluster's API, with kubectl's own tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.fields import unknown_fields
from taskgov_embedded.cluster.manifests import job_manifest
from tests.embedded.cluster.support import GPU, RANKS, Lab, policy, quota
from tests.support.kubectl_program import Kubectl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.cluster.manifests import JobKind

NS = ("-n", "hyperpod-ns-team-a")


@pytest.fixture(scope="module")
def lab() -> Lab:
    made = Lab().nodes("ml.g5.8xlarge", 2)
    made.cluster.govern([quota("team-a", {"InstanceType": "ml.g5.8xlarge", "Count": 2})], policy(RANKS))
    return made


@pytest.fixture(scope="module")
def kubectl(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with ClusterApiServer(lab.cluster.store, writes=lab.cluster) as server:
        yield Kubectl(tmp_path_factory.mktemp("home"), server.url)


def cells(printed: str) -> list[list[str]]:
    """Split a table of kubectl into lines of cells."""
    return [re.split(r"\s{2,}", line.rstrip()) for line in printed.splitlines()]


def test_a_job_is_applied_listed_described_and_deleted(lab: Lab, kubectl: Kubectl, tmp_path: Path) -> None:
    manifest = tmp_path / "job.yaml"
    manifest.write_text(yaml.safe_dump(job_manifest("team-a", "train", {GPU: 1}, pods=2, priority="training")))
    assert kubectl("apply", "-f", str(manifest)) == "pytorchjob.kubeflow.org/train created\n"
    assert kubectl("apply", "-f", str(manifest)) == "pytorchjob.kubeflow.org/train unchanged\n"
    assert cells(kubectl("get", "pods", *NS)) == [
        ["NAME", "READY", "STATUS", "RESTARTS", "AGE"],
        ["train-worker-0", "1/1", "Running", "0", "0s"],
        ["train-worker-1", "1/1", "Running", "0", "0s"],
    ]
    header, row = cells(kubectl("get", "workloads", *NS))
    assert header == ["NAME", "QUEUE", "RESERVED IN", "ADMITTED", "FINISHED", "AGE"]
    assert row[1:4] == ["hyperpod-ns-team-a-localqueue", "hyperpod-ns-team-a-clusterqueue", "True"]
    assert cells(kubectl("get", "ns"))[0] == ["NAME", "STATUS", "AGE"]
    assert cells(kubectl("get", "pytorchjob", *NS))[1] == ["train", "Running", "0s"]
    described = kubectl("describe", "workload", row[0], *NS)
    assert re.search(r"Reason:\s+Admitted\n\s+Status:\s+True\n\s+Type:\s+Admitted", described)
    assert "Node:" in kubectl("describe", "pod", "train-worker-0", *NS)
    assert "master_addr=train-worker-0" in kubectl("logs", "train-worker-1", *NS)
    deleted = kubectl("delete", "-f", str(manifest))
    assert deleted.startswith('pytorchjob.kubeflow.org "train" deleted')
    gone = kubectl.run("logs", "train-worker-0", *NS)
    assert (gone.code, gone.out) == (1, "")
    assert 'pods "train-worker-0" not found' in gone.err
    assert lab.cluster.store.list("workloads") == []


def test_a_deployment_is_scaled_patched_and_applied_server_side(lab: Lab, kubectl: Kubectl) -> None:
    manifest = job_manifest("team-a", "serve", {GPU: 1}, kind="Deployment")
    manifest["spec"]["selector"] = {"matchLabels": {"app": "serve"}}
    text = yaml.safe_dump(manifest)
    kubectl("apply", "--validate=strict", "-f", "-", stdin=text)
    assert kubectl("scale", "deployment", "serve", "--replicas=3", *NS) == "deployment.apps/serve scaled\n"
    assert cells(kubectl("get", "deployments", *NS))[1] == ["serve", "2/3", "3", "2", "0s"]
    states = sorted(row[2] for row in cells(kubectl("get", "po", *NS))[1:])
    assert states == ["Running", "Running", "SchedulingGated"]
    image = '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"new"}]}}}}'
    kubectl("patch", "deployment", "serve", "-p", image, *NS)
    [container] = lab.cluster.store.get("deployments", "serve", "hyperpod-ns-team-a")["spec"]["template"]["spec"][
        "containers"
    ]
    assert container["image"] == "new"
    assert container["resources"] == {"requests": {GPU: "1"}}
    refused = kubectl.run("apply", "--server-side", "-f", "-", stdin=text.replace("replicas: 1", "replicas: 4"))
    assert "conflict" in refused.err
    forced = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
    assert forced == "deployment.apps/serve serverside-applied\n"
    assert len(cells(kubectl("get", "po", *NS))) == 2
    kubectl("delete", "deployment", "serve", *NS)


def test_the_queues_are_shown_with_kueues_columns(kubectl: Kubectl) -> None:
    queue = ["hyperpod-ns-team-a-localqueue", "hyperpod-ns-team-a-clusterqueue", "0", "0"]
    assert cells(kubectl("get", "queue", *NS)) == [
        ["NAME", "CLUSTERQUEUE", "PENDING WORKLOADS", "ADMITTED WORKLOADS"],
        queue,
    ]
    assert cells(kubectl("get", "cq"))[1] == ["hyperpod-ns-team-a-clusterqueue", "shared-pool", "0"]
    usage = "jsonpath={.status.flavorsUsage[0].name}"
    assert kubectl("get", "clusterqueue", "hyperpod-ns-team-a-clusterqueue", "-o", usage) == "ml.g5.8xlarge"
    assert "Spec:" in kubectl("describe", "clusterqueue", "hyperpod-ns-team-a-clusterqueue")
    assert "lq,queue,queues" in kubectl("api-resources", "--verbs=create").replace("queue,queues,lq", "lq,queue,queues")


def test_kubectl_learns_who_it_is(kubectl: Kubectl) -> None:
    printed = kubectl("auth", "whoami", "-o", "jsonpath={.kind} {.status.userInfo.groups}")  # it asks as protobuf
    assert printed.startswith("SelfSubjectReview ")
    assert "system:authenticated" in printed


def test_a_namespace_is_made_and_unmade(lab: Lab, kubectl: Kubectl) -> None:
    refused = kubectl.run("create", "namespace", "mine")  # kubectl sends this one as protobuf
    assert "send JSON, as `kubectl apply` does" in refused.err
    manifest = "{apiVersion: v1, kind: Namespace, metadata: {name: mine}}"
    assert kubectl("apply", "-f", "-", stdin=manifest) == "namespace/mine created\n"
    assert kubectl("delete", "namespace", "mine").startswith('namespace "mine" deleted')
    assert lab.cluster.store.find("namespaces", "mine") is None


def test_a_mistake_in_a_manifest_is_named(kubectl: Kubectl) -> None:
    manifest = job_manifest("team-a", "wrong", {GPU: "one"}, kind="Job")
    typed = kubectl.run("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert typed.code == 1
    assert "'one' is not a Kubernetes quantity" in typed.err


MANIFESTS = sorted((Path(__file__).parents[3] / "examples" / "jobs").rglob("*.yaml"))


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_the_example_jobs_pass_strict_validation(file: Path) -> None:
    for manifest in yaml.safe_load_all(file.read_text()):
        assert unknown_fields(manifest) == []


def test_strict_validation_refuses_a_typing_error_and_stores_nothing(lab: Lab, kubectl: Kubectl) -> None:
    manifest = job_manifest("team-a", "typo", {GPU: 1}, kind="Job")
    manifest["spec"]["template"]["spec"]["containers"][0]["imge"] = "new"
    manifest["spec"]["paralelism"] = 1
    text = yaml.safe_dump(manifest)
    refused = kubectl.run("apply", "--validate=strict", "-f", "-", stdin=text)
    assert refused.code == 1
    assert 'unknown field "spec.paralelism", unknown field "spec.template.spec.containers[0].imge"' in refused.err
    assert lab.cluster.store.find("jobs", "typo", "hyperpod-ns-team-a") is None
    assert kubectl("apply", "--validate=ignore", "-f", "-", stdin=text) == "job.batch/typo created\n"
    kubectl("delete", "job", "typo", *NS)


@pytest.mark.parametrize("kind", ["PyTorchJob", "HyperPodPyTorchJob", "RayJob", "Deployment", "StatefulSet", "Pod"])
def test_a_typing_error_in_the_pods_of_each_kind_is_found(kind: JobKind) -> None:
    manifest = job_manifest("team-a", "typo", {GPU: 1}, kind=kind)
    assert unknown_fields(manifest) == []
    text = yaml.safe_dump(manifest).replace("containers:", "container:")
    assert [path.rpartition(".")[2] for path in unknown_fields(yaml.safe_load(text))].count("container") >= 1


def test_what_has_unknown_fields_is_not_checked() -> None:
    assert unknown_fields({"kind": "ClusterQueue", "spec": {"anything": 1}}) == []
    assert unknown_fields({"kind": "PyTorchJob", "spec": {"runPolicy": {"suspended": True}}}) == [
        "spec.runPolicy.suspended"
    ]
    assert unknown_fields({"kind": "Job", "spec": None, "metadata": []}) == []
