"""Manifests of every governed kind become the Workload that Kueue would make of them."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgov.scheduling.reading import read_workload
from taskgov.snapshot.model import KubernetesObject, Snapshot
from taskgov_manifests.pod_sets import KINDS as POD_KINDS
from taskgov_manifests.pod_sets import ManifestError
from taskgov_manifests.workloads import QUEUE_ON_PODS, workloads_of
from tests.support.lab import GPU, Lab

SNAPSHOT = Lab().team("team-a", 1).snapshot()
POD = {"containers": [{"name": "main", "resources": {"requests": {GPU: "2"}}}]}
LABELS = {
    "kueue.x-k8s.io/queue-name": "hyperpod-ns-team-a-localqueue",
    "kueue.x-k8s.io/priority-class": "training-priority",
}


def manifest(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "train", "namespace": "hyperpod-ns-team-a", "labels": LABELS}
    return {"apiVersion": "any/v1", "kind": kind, "metadata": metadata, "spec": spec}


def workload_of(job: dict[str, Any], snapshot: Snapshot, team: str | None = None) -> KubernetesObject:
    (found,) = workloads_of([job], snapshot, team)
    return found


KINDS: dict[str, tuple[dict[str, Any], list[tuple[str, int]]]] = {
    "Job": ({"parallelism": 4, "completions": 3, "template": {"spec": POD}}, [("main", 3)]),
    "Pod": (POD, [("main", 1)]),
    "PyTorchJob": (
        {
            "pytorchReplicaSpecs": {
                "Worker": {"replicas": 3, "template": {"spec": POD}},
                "Master": {"template": {"spec": POD}},
            }
        },
        [("master", 1), ("worker", 3)],
    ),
    "MPIJob": (
        {
            "mpiReplicaSpecs": {
                "Worker": {"replicas": 2, "template": {"spec": POD}},
                "Launcher": {"template": {"spec": POD}},
            }
        },
        [("launcher", 1), ("worker", 2)],
    ),
    "HyperPodPyTorchJob": (
        {"replicaSpecs": [{"name": "pods", "replicas": 5, "template": {"spec": POD}}]},
        [("pods", 5)],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_pods_queue_and_priority_are_read(kind: str) -> None:
    spec, pod_sets = KINDS[kind]
    read = read_workload(workload_of(manifest(kind, spec), SNAPSHOT), {"training-priority": 70})
    assert [(each.name, each.count) for each in read.pod_sets] == pod_sets
    assert all(each.requests == ((GPU, 2),) for each in read.pod_sets)
    assert (read.queue, read.priority, read.namespace) == ("hyperpod-ns-team-a-localqueue", 70, "hyperpod-ns-team-a")


def test_a_queue_that_only_the_pods_name_is_reported_and_not_taken() -> None:
    template = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "lq"}}, "spec": POD}
    spec = {"template": template}
    named = {"name": "train", "namespace": "hyperpod-ns-team-a", "labels": {"app": "x"}}
    misplaced = workload_of({"kind": "Job", "metadata": named, "spec": spec}, SNAPSHOT)
    assert (misplaced["spec"]["queueName"], misplaced["metadata"]["annotations"]) == ("", {QUEUE_ON_PODS: "lq"})
    printed = workload_of({"kind": "Job", "metadata": {**named, "labels": {}}, "spec": spec}, SNAPSHOT)
    assert printed["spec"]["queueName"] == "lq"
    replicas = {"Worker": {"replicas": 2, "template": template}}
    unlabelled = {"kind": "PyTorchJob", "metadata": {**named, "labels": {}}, "spec": {"pytorchReplicaSpecs": replicas}}
    assert workload_of(unlabelled, SNAPSHOT)["metadata"]["annotations"] == {QUEUE_ON_PODS: "lq"}


def test_a_workload_is_taken_as_it_is() -> None:
    spec = {"queueName": "own", "podSets": [{"name": "main", "count": 2, "template": {"spec": POD}}]}
    read = read_workload(workload_of(manifest("Workload", spec), SNAPSHOT), {})
    assert (read.name, read.queue, read.pod_sets[0].count) == ("train", "own", 2)


def test_a_team_given_beside_the_manifest_is_whose_it_is() -> None:
    bare = {"kind": "Job", "metadata": {"name": "train"}, "spec": {"template": {"spec": POD}}}
    read = read_workload(workload_of(bare, SNAPSHOT, "team-a"), {})
    assert (read.namespace, read.queue) == ("hyperpod-ns-team-a", "hyperpod-ns-team-a-localqueue")


def test_a_manifest_without_namespace_says_what_to_write() -> None:
    with pytest.raises(ValueError, match=r"write metadata\.namespace, or give its team"):
        workload_of({"kind": "Job", "metadata": {"name": "train"}, "spec": {"template": {"spec": POD}}}, SNAPSHOT)


TEMPLATE = {"spec": POD}


def asks(*manifests: dict[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """Return workload -> (pods, GPUs of each pod) of its pod sets."""
    read = [read_workload(one, {}) for one in workloads_of(manifests, SNAPSHOT)]
    return {one.name: [(each.count, dict(each.requests).get(GPU, 0)) for each in one.pod_sets] for one in read}


def pod(name: str, total: int, gpus: str = "2", **annotations: str) -> dict[str, Any]:
    requests = {"requests": {GPU: gpus}}
    made = manifest("Pod", {"containers": [{"name": "main", "resources": requests}]})
    counted = {"kueue.x-k8s.io/pod-group-total-count": str(total), **annotations}
    labels = {**LABELS, "kueue.x-k8s.io/pod-group-name": "ring"}
    return {**made, "metadata": {**made["metadata"], "name": name, "labels": labels, "annotations": counted}}


def test_each_replica_of_a_deployment_and_of_an_endpoint_is_a_workload() -> None:
    assert asks(manifest("Deployment", {"template": TEMPLATE})) == {"pod-train": [(1, 2)]}
    two = manifest("Deployment", {"replicas": 2, "template": TEMPLATE})
    assert asks(two) == {"pod-train-1": [(1, 2)], "pod-train-2": [(1, 2)]}
    worker = {"resources": {"limits": {GPU: "4"}}}
    endpoint = manifest("InferenceEndpointConfig", {"replicas": 1, "instanceType": "ml.g5.24xlarge", "worker": worker})
    assert asks(endpoint) == {"pod-train": [(1, 4)]}


def test_a_deployment_has_the_queue_of_its_pods_where_it_names_none() -> None:
    template = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "lq"}}, "spec": POD}
    bare = {"kind": "Deployment", "metadata": {"name": "web", "namespace": "any"}, "spec": {"template": template}}
    assert workload_of(bare, SNAPSHOT)["spec"]["queueName"] == "lq"


def test_each_group_of_a_leader_is_a_workload() -> None:
    with_leader = {"size": 4, "leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE}
    groups = manifest("LeaderWorkerSet", {"replicas": 2, "leaderWorkerTemplate": with_leader})
    assert asks(groups) == {f"leaderworkerset-train-{number}": [(1, 2), (3, 2)] for number in (0, 1)}
    alike = manifest("LeaderWorkerSet", {"leaderWorkerTemplate": {"size": 4, "workerTemplate": TEMPLATE}})
    assert asks(alike) == {"leaderworkerset-train": [(4, 2)]}


def test_a_list_is_unfolded_and_what_has_no_pods_is_passed_over() -> None:
    listed = {"kind": "List", "items": [manifest("Service", {}), manifest("Pod", POD)]}
    assert asks(listed) == {"pod-train": [(1, 2)]}


def test_a_train_job_asks_for_what_its_runtime_says_with_its_own_numbers() -> None:
    jobs = [
        {"name": "dataset-initializer", "replicas": 1, "template": {"spec": {"template": TEMPLATE}}},
        {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}}},
    ]
    runtime = manifest("ClusterTrainingRuntime", {"template": {"spec": {"replicatedJobs": jobs}}})
    runtime["metadata"] = {"name": "torch"}
    trainer = {"numNodes": 3, "resourcesPerNode": {"requests": {GPU: 8}}}
    job = manifest("TrainJob", {"runtimeRef": {"name": "torch"}, "trainer": trainer})
    assert asks(job, runtime) == {"trainjob-train": [(1, 2), (3, 8)]}
    with pytest.raises(ManifestError, match="give its manifest beside the job"):
        workloads_of([job], SNAPSHOT)


def test_an_app_wrapper_asks_for_its_declared_pods_or_for_those_of_its_components() -> None:
    inner = {"kind": "Job", "spec": {"parallelism": 3, "template": TEMPLATE}}
    listed = {"kind": "Other", "spec": {"parts": [{"template": TEMPLATE}]}}
    declared = {"podSets": [{"replicas": 5, "path": "template.spec.parts[0].template"}], "template": listed}
    wrapper = manifest("AppWrapper", {"components": [{"template": inner}, declared, {"template": {"kind": "Service"}}]})
    assert asks(wrapper) == {"appwrapper-train": [(3, 2), (5, 2)]}


def test_pods_of_a_group_are_one_workload() -> None:
    unlike = asks(pod("a", 3), pod("b", 3), pod("c", 3, gpus="1"))
    assert {name: sorted(pods) for name, pods in unlike.items()} == {"ring": [(1, 1), (2, 2)]}
    fast = {"kueue.x-k8s.io/pod-group-fast-admission": "true"}
    assert asks(pod("a", 3, **fast)) == {"ring": [(3, 2)]}


@pytest.mark.parametrize(
    ("manifests", "said"),
    [
        ([manifest("Service", {})], "Service has no pods: there is nothing to submit"),
        (
            [manifest("PytorchJob", {})],
            "PytorchJob is not a kind of job that can be queued here: queues govern Job, Pod",
        ),
        ([manifest("CronJob", {})], "its Jobs are queued"),
        ([manifest("Job", {})], r"Job train: spec.template.spec.containers: \(missing\) - must be a list"),
        ([manifest("Job", {"parallelism": "two", "template": TEMPLATE})], 'spec.parallelism: "two" - must be a whole'),
        ([manifest("Job", {"template": [1]})], r"spec.template: \[1\] - must be a mapping"),
        ([manifest("TFJob", {"tfReplicaSpecs": {"Boss": {}}})], "Boss: {} - is not one of Chief, Master, PS, Worker"),
        ([manifest("StatefulSet", {"replicas": -1, "template": TEMPLATE})], "spec.replicas: -1 - must be a whole"),
        ([manifest("Deployment", {"replicas": 0, "template": TEMPLATE})], "must be 1 to 1,000 to be tried here"),
        ([manifest("RayJob", {"clusterSelector": {"a": "b"}})], "a job on a running cluster is not queued"),
        ([pod("a", 2)], "the group ring has 1 of its 2 pods here"),
        ([pod("a", 2), pod("b", 3)], "must be the same whole number"),
        ([manifest("Pod", POD), manifest("Pod", POD)], "hyperpod-ns-team-a/pod-train is submitted 2 times"),
        ([manifest("Workload", {"podSets": []})], r"spec.podSets: \[\] - must be a list with an entry or more"),
        ([{"kind": "Pod", "metadata": ["x"], "spec": POD}], "must be mappings"),
        ([{"kind": "List", "items": [3]}], "items of a List must be manifests, not 3"),
        ([manifest("JumpStartModel", {})], "it does not state the requests of its pods"),
    ],
)
def test_what_cannot_be_submitted_is_named_with_its_field_value_and_rule(
    manifests: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(ManifestError, match=said):
        workloads_of(manifests, SNAPSHOT)


def test_all_that_is_wrong_is_named_at_once() -> None:
    odd = {"containers": [{"name": 3, "resources": {"requests": {GPU: "-1", "cpu": True}}}]}
    jobs = [manifest("Job", {"completions": 2.5, "template": {"spec": odd}}), manifest("JobSet", {})]
    with pytest.raises(ManifestError) as refused:
        workloads_of(jobs, SNAPSHOT)
    lines = str(refused.value).splitlines()
    assert [line.split(" - ")[0] for line in lines] == [
        "Job train: spec.completions: 2.5",
        "Job train: spec.template.spec.containers[0].name: 3",
        'Job train: spec.template.spec.containers[0].resources.requests["nvidia.com/gpu"]: "-1"',
        "Job train: spec.template.spec.containers[0].resources.requests.cpu: true",
        "JobSet train: spec.replicatedJobs: (missing)",
    ]


_ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4), lambda inner: st.lists(inner, max_size=2)
)


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(POD_KINDS), key=st.sampled_from(["spec", "metadata"]), odd=_ODD, inner=st.text(max_size=9))
def test_odd_manifests_are_refused_and_never_fail_otherwise(kind: str, key: str, odd: object, inner: str) -> None:
    for value in (odd, {"template": odd, "replicas": odd}, {inner: odd, "rayClusterSpec": {"headGroupSpec": odd}}):
        with suppress(ManifestError):
            workloads_of([manifest(kind, {"template": TEMPLATE}) | {key: value}], SNAPSHOT)


JOB_FILES = sorted((Path(__file__).parents[2] / "examples" / "jobs").rglob("*.yaml"))


@pytest.mark.parametrize("file", JOB_FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_each_example_can_be_submitted(file: Path) -> None:
    found = workloads_of(yaml.safe_load_all(file.read_text()), SNAPSHOT)
    assert found
    assert all(one["spec"]["queueName"] == f"{one['metadata']['namespace']}-localqueue" for one in found)
