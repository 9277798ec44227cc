"""The add-on's admission policy: jobs in governed namespaces name their queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from taskgov_embedded.cluster.admission import denial_of
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.manifests import job_manifest
from taskgov_embedded.cluster.objects import TYPE_OF_KIND
from tests.embedded.cluster.support import GPU, RANKS, Lab, policy, quota

if TYPE_CHECKING:
    from taskgov_embedded.cluster.manifests import JobKind

NAME = "hyperpod-task-governance-admission-policy"


@pytest.fixture(scope="module")
def lab() -> Lab:
    made = Lab().nodes("ml.g5.8xlarge", 2)
    made.cluster.govern([quota("team-a", {"InstanceType": "ml.g5.8xlarge", "Count": 2})], policy(RANKS))
    return made


def job(kind: JobKind, labels: dict[str, str] | None, **metadata: Any) -> dict[str, Any]:
    made = job_manifest("team-a", "train", {GPU: 1}, kind=kind)
    return {**made, "metadata": {**made["metadata"], "labels": labels or {}, **metadata}}


def denial(lab: Lab, made: dict[str, Any]) -> str | None:
    return denial_of(lab.cluster.store, TYPE_OF_KIND[made["kind"]], made)


def test_document_002_managed_resources_the_add_on_keeps_an_admission_policy_and_its_binding(lab: Lab) -> None:
    found = lab.cluster.store.get("validatingadmissionpolicies", NAME)
    binding = lab.cluster.store.get("validatingadmissionpolicybindings", NAME)
    assert found["spec"]["failurePolicy"] == "Fail"
    assert binding["spec"]["policyName"] == NAME
    kept = ("clusterqueues", "localqueues", "workloadpriorityclasses", "resourceflavors")
    assert all(lab.cluster.store.list(plural) for plural in kept)


def test_a_cluster_without_the_add_on_has_none() -> None:
    bare = Lab().nodes("ml.g5.8xlarge", 1)
    assert bare.cluster.store.list("validatingadmissionpolicies") == []
    assert denial(bare, job("PyTorchJob", None)) is None


@pytest.mark.parametrize("kind", ["PyTorchJob", "HyperPodPyTorchJob", "RayJob", "Job"])
def test_a_job_without_a_queue_is_refused(lab: Lab, kind: JobKind) -> None:
    told = denial(lab, job(kind, {"app": "x"}))
    assert told is not None
    assert "jobs in namespace hyperpod-ns-team-a are governed" in told
    assert "here hyperpod-ns-team-a-localqueue" in told


def test_who_is_let_in(lab: Lab) -> None:
    queue = {"kueue.x-k8s.io/queue-name": "hyperpod-ns-team-a-localqueue"}
    assert denial(lab, job("PyTorchJob", queue)) is None
    assert denial(lab, job("Deployment", None)) is None
    assert denial(lab, job("Pod", None)) is None
    assert denial(lab, job("Job", None, ownerReferences=[{"kind": "CronJob", "name": "c", "uid": "u"}])) is None
    assert denial(lab, job("Job", None, namespace="default")) is None
    assert denial(lab, job("Job", {"kueue.x-k8s.io/queue-name": ""})) is not None


def test_document_003_kubectl_the_printed_job_has_its_queue_on_the_pods_and_is_let_in(lab: Lab) -> None:
    printed = job("Job", None)
    printed["spec"]["template"]["metadata"] = {"labels": {"kueue.x-k8s.io/queue-name": "lq"}}
    assert denial(lab, printed) is None
    labelled = {**printed, "metadata": {**printed["metadata"], "labels": {"app": "x"}}}
    assert "on the pod template, where Kueue does not look" in str(denial(lab, labelled))


def test_the_api_refuses_it_and_stores_nothing(lab: Lab) -> None:
    with ClusterApiServer(lab.cluster.store, writes=lab.cluster) as server:
        path = "/apis/kubeflow.org/v1/namespaces/hyperpod-ns-team-a/pytorchjobs"
        answer = urllib3.request("POST", server.url + path, json=job("PyTorchJob", {"app": "x"}), timeout=20)
    assert (answer.status, answer.json()["reason"]) == (422, "Invalid")
    assert f"ValidatingAdmissionPolicy '{NAME}'" in answer.json()["message"]
    assert lab.cluster.store.list("pytorchjobs") == []
