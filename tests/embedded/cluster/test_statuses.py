"""What job controllers write: counts, times and conditions, from the first pod to the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.cluster.manifests import job_manifest
from taskgov_embedded.cluster.objects import TYPE_OF_KIND
from taskgov_embedded.cluster.tables import row
from tests.embedded.cluster.support import GPU, RANKS, Lab, policy, quota

if TYPE_CHECKING:
    from taskgov_embedded.cluster.manifests import JobKind

NS = "hyperpod-ns-team-a"
START = "2026-11-20T09:00:00Z"


@pytest.fixture
def lab() -> Lab:
    made = Lab().nodes("ml.g5.8xlarge", 2)
    made.cluster.govern([quota("team-a", {"InstanceType": "ml.g5.8xlarge", "Count": 2})], policy(RANKS))
    return made


def submitted(
    lab: Lab, kind: JobKind, name: str, *, pods: int = 1, priority: str | None = None, ends: int = 60
) -> None:
    manifest = job_manifest("team-a", name, {GPU: 1}, kind=kind, pods=pods, priority=priority)
    lab.cluster.submit(manifest, run_seconds=ends)


def status(lab: Lab, kind: str, name: str) -> dict[str, Any]:
    return dict(lab.cluster.store.get(TYPE_OF_KIND[kind].plural, name, NS).get("status", {}))


def conditions(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["type"], one["status"]) for one in told.get("conditions", ())]


def shown(lab: Lab, kind: str, name: str) -> tuple[str, ...]:
    plural = TYPE_OF_KIND[kind].plural
    return row(plural, lab.cluster.store.get(plural, name, NS), lab.moment)


def test_a_batch_job_counts_its_pods_and_its_time(lab: Lab) -> None:
    submitted(lab, "Job", "train", pods=2)
    running = status(lab, "Job", "train")
    assert (running["active"], running["ready"], running["startTime"]) == (2, 2, START)
    lab.advance(20)
    assert shown(lab, "Job", "train") == ("train", "Running", "0/2", "20s", "20s")
    lab.advance(60)
    done = status(lab, "Job", "train")
    assert (done["succeeded"], done["startTime"], done["completionTime"]) == (2, START, "2026-11-20T09:01:00Z")
    assert "active" not in done
    assert conditions(done) == [("SuccessCriteriaMet", "True"), ("Complete", "True")]
    lab.advance(600)
    assert shown(lab, "Job", "train")[1:4] == ("Complete", "2/2", "60s")


def test_a_preempted_batch_job_is_suspended_and_resumed(lab: Lab) -> None:
    submitted(lab, "Job", "low", pods=2, priority="training", ends=600)
    submitted(lab, "Job", "high", pods=2, priority="inference")
    lab.advance(1)
    waiting = status(lab, "Job", "low")
    assert conditions(waiting) == [("Suspended", "True")]
    assert "startTime" not in waiting
    assert shown(lab, "Job", "low")[1:4] == ("Suspended", "0/2", "")
    lab.advance(70)
    resumed = status(lab, "Job", "low")
    assert (conditions(resumed), resumed["active"]) == ([("Suspended", "False")], 2)


@pytest.mark.parametrize(("kind", "replicas"), [("PyTorchJob", "Worker"), ("HyperPodPyTorchJob", "pod")])
def test_a_training_job_has_the_operators_conditions(lab: Lab, kind: JobKind, replicas: str) -> None:
    submitted(lab, kind, "low", pods=2, priority="training", ends=600)
    running = status(lab, kind, "low")
    assert conditions(running) == [("Created", "True"), ("Running", "True")]
    assert (running["replicaStatuses"], running["startTime"]) == ({replicas: {"active": 2}}, START)
    submitted(lab, kind, "high", pods=2, priority="inference")
    lab.advance(1)
    assert conditions(status(lab, kind, "low")) == [("Created", "True"), ("Running", "False"), ("Suspended", "True")]
    lab.advance(70)
    assert conditions(status(lab, kind, "low"))[-2:] == [("Suspended", "False"), ("Running", "True")]
    assert conditions(status(lab, kind, "high"))[-2:] == [("Running", "False"), ("Succeeded", "True")]
    assert status(lab, kind, "high")["replicaStatuses"] == {replicas: {"succeeded": 2}}


def test_a_ray_job_names_its_cluster(lab: Lab) -> None:
    submitted(lab, "RayJob", "tune")
    name, job, deployment, cluster, start, end, _ = shown(lab, "RayJob", "tune")
    assert (name, job, deployment, start, end) == ("tune", "RUNNING", "Running", START, "")
    assert cluster.startswith("tune-")
    lab.advance(60)
    assert shown(lab, "RayJob", "tune")[1:6] == ("SUCCEEDED", "Complete", cluster, START, "2026-11-20T09:01:00Z")


def test_a_service_says_how_much_of_it_is_there(lab: Lab) -> None:
    submitted(lab, "Deployment", "serve", pods=3, ends=10_000)
    told = status(lab, "Deployment", "serve")
    assert (told["replicas"], told["readyReplicas"], told["unavailableReplicas"]) == (3, 2, 1)
    assert conditions(told) == [("Available", "False")]
    submitted(lab, "StatefulSet", "space", ends=10_000)
    assert shown(lab, "StatefulSet", "space")[1] == "0/1"
    lab.cluster.delete_object("deployments", "serve", NS)
    lab.advance(1)
    assert shown(lab, "StatefulSet", "space")[1] == "1/1"
    assert status(lab, "StatefulSet", "space")["readyReplicas"] == 1


def test_what_does_not_change_is_not_written_again(lab: Lab) -> None:
    submitted(lab, "Job", "train", ends=10_000)
    submitted(lab, "PyTorchJob", "other", ends=10_000)
    version = lab.cluster.store.resource_version
    lab.advance(30)
    assert lab.cluster.store.resource_version == version
