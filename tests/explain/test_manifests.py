"""Manifests of every governed kind become the Workload that Kueue would make of them."""

from typing import Any

import pytest

from taskgov.explain.manifests import QUEUE_ON_PODS, workload_of
from taskgov.scheduling.reading import read_workload
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


def test_a_queue_that_only_the_pods_name_is_told_of_and_not_taken() -> None:
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
        workload_of({"kind": "Job", "metadata": {"name": "train"}, "spec": {}}, SNAPSHOT)


def test_a_kind_that_no_queue_governs_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="Service is no kind of job that queues govern here: Job, Pod, PyTorchJob"):
        workload_of(manifest("Service", {}), SNAPSHOT)
