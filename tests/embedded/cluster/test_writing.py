"""Jobs through the cluster's API: each kind is created, patched, scaled, suspended and deleted."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from taskgov.hyperpod.names import ADMISSION_POLICY
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.manifests import job_manifest
from taskgov_embedded.cluster.objects import TYPE_OF_KIND
from taskgov_embedded.cluster.patches import PatchError, json_patched, strategic_patched
from tests.embedded.cluster.support import GPU, RANKS, Lab, policy, quota
from tests.fuzz.mutation import mutated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.cluster.manifests import JobKind

TEAM = "/namespaces/hyperpod-ns-team-a"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
A_LIST = "must be a list with an entry or more"
NO_TEMPLATE = "spec.template: 3 - must be a mapping"
ODD_MANIFESTS = int(os.environ.get("TASKGOV_ODD_MANIFESTS", "150"))
KINDS: tuple[JobKind, ...] = (
    "PyTorchJob",
    "HyperPodPyTorchJob",
    "RayJob",
    "Job",
    "Pod",
    "Deployment",
    "StatefulSet",
)


@dataclass
class Bench:
    """A cluster with one team, its API, and short ways to ask it."""

    lab: Lab
    server: ClusterApiServer
    pool: urllib3.PoolManager

    def ask(self, method: str, path: str, body: Any = None, media: str = "application/json") -> tuple[int, Any]:
        data = None if body is None else json.dumps(body)
        answer = self.pool.request(method, self.server.url + path, body=data, headers={"Content-Type": media})
        return answer.status, answer.json()

    def place(self, kind: str, name: str = "") -> str:
        found = TYPE_OF_KIND[kind]
        base = f"/apis/{found.group}/{found.versions[0]}" if found.group else f"/api/{found.versions[0]}"
        return f"{base}{TEAM}/{found.plural}" + (f"/{name}" if name else "")

    def create(self, kind: JobKind, *, pods: int = 1, **about: Any) -> dict[str, Any]:
        manifest = job_manifest("team-a", "it", {GPU: 1}, kind=kind, pods=pods, **about)
        code, created = self.ask("POST", self.place(kind), manifest)
        assert code == 201, created
        return dict(created)

    def patch(self, kind: str, patch: Any, media: str = MERGE, part: str = "") -> tuple[int, Any]:
        answer = self.ask("PATCH", self.place(kind, "it") + part, patch, media)
        self.lab.advance(10)
        return answer

    @property
    def workloads(self) -> list[dict[str, Any]]:
        return self.lab.cluster.store.list("workloads")


@pytest.fixture
def bench() -> Iterator[Bench]:
    lab = Lab().nodes("ml.g5.8xlarge", 4)
    lab.cluster.govern([quota("team-a", {"InstanceType": "ml.g5.8xlarge", "Count": 2})], policy(RANKS))
    with (
        ClusterApiServer(lab.cluster.store, writes=lab.cluster) as server,
        urllib3.PoolManager(retries=False, timeout=20) as pool,
    ):
        yield Bench(lab, server, pool)


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_of_each_kind_runs_in_its_queue_and_leaves_nothing_behind(bench: Bench, kind: JobKind) -> None:
    created = bench.create(kind)
    [workload] = bench.workloads
    owner = workload["metadata"]["ownerReferences"][0]["kind"]
    assert owner == ("Pod" if kind == "Deployment" else kind)
    assert workload["metadata"]["name"].startswith(f"{owner.lower()}-it-")
    assert workload["status"]["admission"]["clusterQueue"] == "hyperpod-ns-team-a-clusterqueue"
    assert set(bench.lab.pods("team-a").values()) == {"Running"}
    assert created["metadata"]["managedFields"][0]["operation"] == "Update"
    code, answer = bench.ask("DELETE", bench.place(kind, "it"))
    assert (code, answer["details"]["uid"]) == (200, created["metadata"]["uid"])
    assert bench.lab.pods("team-a") == {}
    assert bench.workloads == []
    assert bench.ask("GET", bench.place(kind, "it"))[0] == 404


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {"Pod", "Deployment"}])
def test_a_job_that_does_not_fit_waits_without_pods(bench: Bench, kind: JobKind) -> None:
    bench.create(kind, pods=5)
    [workload] = bench.workloads
    assert "admission" not in workload["status"]
    assert bench.lab.pods("team-a") == {}


WORKERS = {
    "PyTorchJob": ("/spec/pytorchReplicaSpecs/Worker/replicas", "worker"),
    "HyperPodPyTorchJob": ("/spec/replicaSpecs/0/replicas", "pod"),
    "RayJob": ("/spec/rayClusterSpec/workerGroupSpecs/0/replicas", "workers"),
    "Job": ("/spec/parallelism", "main"),
    "StatefulSet": ("/spec/replicas", "main"),
}


@pytest.mark.parametrize("kind", WORKERS)
def test_another_number_of_pods_is_queued_anew(bench: Bench, kind: JobKind) -> None:
    bench.create(kind, pods=2)
    path, pod_set = WORKERS[kind]
    code, _ = bench.patch(kind, [{"op": "replace", "path": path, "value": 1}], JSON_PATCH)
    assert code == 200
    [workload] = bench.workloads
    assert {one["name"]: one["count"] for one in workload["spec"]["podSets"]}[pod_set] == 1
    assert len(bench.lab.pods("team-a")) == sum(one["count"] for one in workload["spec"]["podSets"])
    assert bench.lab.used("team-a") == ("1", "0")


@pytest.mark.parametrize(("kind", "workloads"), [("Deployment", 2), ("StatefulSet", 1)])
def test_the_part_scale_changes_the_number_of_replicas(bench: Bench, kind: JobKind, workloads: int) -> None:
    bench.create(kind)
    code, scale = bench.patch(kind, {"spec": {"replicas": 2}}, part="/scale")
    assert (code, scale["kind"], scale["spec"]["replicas"]) == (200, "Scale", 2)
    assert len(bench.lab.pods("team-a")) == 2
    assert len(bench.workloads) == workloads
    assert bench.patch(kind, {"spec": {"replicas": 0}}, part="/scale")[0] == 200
    assert bench.lab.pods("team-a") == {}
    code, refused = bench.patch(kind, {"spec": {"replicas": -1}}, part="/scale")
    assert (code, refused["message"]) == (422, "spec.replicas: Invalid value: -1: must be 0 or more")


def test_only_kueue_resumes_a_governed_job(bench: Bench) -> None:
    bench.create("Job", pods=5)
    assert bench.patch("Job", {"spec": {"suspend": False}})[1]["spec"]["suspend"] is True
    assert bench.lab.pods("team-a") == {}


def test_a_job_without_a_queue_is_suspended_and_resumed_by_hand(bench: Bench) -> None:
    bench.lab.cluster.store.delete("validatingadmissionpolicybindings", ADMISSION_POLICY)
    manifest = job_manifest("team-a", "it", {GPU: 1}, kind="Job")
    del manifest["metadata"]["labels"]
    bench.ask("POST", bench.place("Job"), manifest)
    assert len(bench.lab.pods("team-a")) == 1
    bench.patch("Job", {"spec": {"suspend": True}}, STRATEGIC)
    assert bench.lab.pods("team-a") == {}
    bench.patch("Job", {"spec": {"suspend": False}}, STRATEGIC)
    assert len(bench.lab.pods("team-a")) == 1


def test_a_workload_that_is_deactivated_stops_its_job_until_it_is_active_again(bench: Bench) -> None:
    bench.create("PyTorchJob")
    name = bench.workloads[0]["metadata"]["name"]
    path = f"/apis/kueue.x-k8s.io/v1beta2{TEAM}/workloads/{name}"
    assert bench.ask("PATCH", path, {"spec": {"active": False}}, MERGE)[0] == 200
    bench.lab.advance(10)
    assert bench.lab.pods("team-a") == {}
    bench.ask("PATCH", path, {"spec": {"active": True}}, MERGE)
    bench.lab.advance(10)
    assert len(bench.lab.pods("team-a")) == 1


def test_a_class_that_is_named_later_ranks_the_job_anew(bench: Bench) -> None:
    bench.create("Job", pods=5)
    label = {"kueue.x-k8s.io/priority-class": "inference-priority"}
    bench.patch("Job", {"metadata": {"labels": label}})
    assert [one["spec"]["priority"] for one in bench.workloads] == [90]


def test_a_pod_that_is_deleted_is_made_again_by_its_controller(bench: Bench) -> None:
    bench.create("PyTorchJob")
    [name] = bench.lab.pods("team-a")
    uid = bench.lab.cluster.store.get("pods", name, "hyperpod-ns-team-a")["metadata"]["uid"]
    assert bench.ask("DELETE", bench.place("Pod", name))[0] == 200
    assert bench.lab.pods("team-a") == {name: "Running"}
    assert bench.lab.cluster.store.get("pods", name, "hyperpod-ns-team-a")["metadata"]["uid"] != uid


def test_a_workload_that_is_deleted_is_queued_anew(bench: Bench) -> None:
    bench.create("PyTorchJob")
    [before] = bench.workloads
    name = before["metadata"]["name"]
    assert bench.ask("DELETE", f"/apis/kueue.x-k8s.io/v1beta2{TEAM}/workloads/{name}")[0] == 200
    [after] = bench.workloads
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert list(bench.lab.pods("team-a").values()) == ["Running"]


def test_a_namespace_takes_all_that_is_in_it_along(bench: Bench) -> None:
    bench.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}})
    bench.create("Deployment")
    assert bench.ask("DELETE", "/api/v1/namespaces/hyperpod-ns-team-a")[0] == 200
    assert [one["metadata"]["name"] for one in bench.lab.cluster.store.list("namespaces")] == ["mine"]
    assert bench.workloads == bench.lab.cluster.store.list("pods") == []


@pytest.mark.parametrize(
    ("kind", "change", "because"),
    [
        ("PyTorchJob", {"spec": {}}, "spec.pytorchReplicaSpecs: (missing) - must name one of Master, Worker"),
        (
            "RayJob",
            {"spec": {"rayClusterSpec": {}}},
            f"spec.rayClusterSpec.headGroupSpec.template.spec.containers: (missing) - {A_LIST}",
        ),
        ("StatefulSet", {"spec": {"template": 3}}, NO_TEMPLATE),
        (
            "Deployment",
            {"spec": {"template": {"spec": {"containers": []}}}},
            f"spec.template.spec.containers: [] - {A_LIST}",
        ),
        ("Pod", {"spec": {"containers": [{}]}}, "spec.containers[0].name: (missing) - must be a name"),
        (
            "Pod",
            {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "much"}}}]}},
            "spec.containers[0].resources.requests.cpu: \"much\" - 'much' is not a Kubernetes quantity",
        ),
    ],
)
def test_a_manifest_that_queues_cannot_read_is_refused(
    bench: Bench, kind: JobKind, change: dict[str, Any], because: str
) -> None:
    manifest = job_manifest("team-a", "it", {GPU: 1}, kind=kind) | change
    code, refused = bench.ask("POST", bench.place(kind), manifest)
    assert (code, refused["reason"], refused["message"]) == (422, "Invalid", f'{kind} "it" is invalid: {because}')
    assert bench.lab.cluster.store.list(TYPE_OF_KIND[kind].plural, "hyperpod-ns-team-a") == []


def test_no_odd_manifest_stops_the_cluster(bench: Bench) -> None:
    draw, answers = Random(20), Counter[int]()  # noqa: S311
    for number in range(ODD_MANIFESTS):
        kind = draw.choice(KINDS)
        odd = mutated(job_manifest("team-a", f"odd-{number}", {GPU: 1}, kind=kind, pods=2), draw)
        code, answer = bench.ask(
            *draw.choice([("POST", bench.place(kind), odd, "application/json"), _changed(bench, kind, odd)])
        )
        assert code < 500, (odd, answer)
        answers[code // 100] += 1
        assert bench.ask("GET", bench.place(kind), None, "application/json")[0] == 200
        bench.lab.advance(5)
    assert min(answers[2], answers[4]) > ODD_MANIFESTS / 10, answers
    for kind in KINDS:
        bench.ask("DELETE", bench.place(kind, "it"))
    bench.lab.cluster.settle()


def _changed(bench: Bench, kind: JobKind, odd: Any) -> tuple[str, str, Any, str]:
    """Return the request that makes a sound job of the same kind an odd one."""
    bench.ask("POST", bench.place(kind), job_manifest("team-a", "it", {GPU: 1}, kind=kind))
    spec = odd.get("spec") if isinstance(odd, dict) else odd
    return "PATCH", bench.place(kind, "it"), {"spec": spec}, MERGE


def test_what_does_not_fit_the_cluster_is_refused_with_kubernetes_words(bench: Bench) -> None:
    bench.create("Job")
    manifest = job_manifest("team-a", "it", {GPU: 1}, kind="Job")
    elsewhere = bench.place("Job").replace("team-a", "team-z")

    def message(method: str, path: str, body: Any, media: str = "application/json") -> tuple[int, str]:
        code, answer = bench.ask(method, path, body, media)
        return code, answer["message"]

    assert message("POST", bench.place("Job"), manifest) == (409, 'jobs.batch "it" already exists')
    manifest["metadata"].pop("namespace")
    assert message("POST", elsewhere, manifest) == (404, 'namespaces "hyperpod-ns-team-z" not found')
    assert message("POST", bench.place("Pod"), manifest) == (400, "apiVersion is 'batch/v1', but the path is for v1")
    named = {**manifest, "metadata": {"name": "other"}}
    code, told = message("PUT", bench.place("Job", "it"), named)
    assert (code, told) == (400, "the name of the object (other) does not match the name on the URL (it)")
    stale = {**manifest, "metadata": {"name": "it", "resourceVersion": "1"}}
    assert message("PUT", bench.place("Job", "it"), stale)[0] == 409
    assert message("PATCH", bench.place("Job", "none"), {}, MERGE) == (404, 'jobs.batch "none" not found')
    assert message("POST", bench.place("Job"), {"metadata": {}}) == (
        422,
        "metadata.name: Required value: name or generateName is required",
    )
    assert message("PATCH", bench.place("Job", "it"), [{"op": "remove", "path": "/spec/none"}], JSON_PATCH) == (
        422,
        "the patch does not fit: there is nothing at /spec/none",
    )
    bench.ask("DELETE", bench.place("Job", "it"))
    bench.create("PyTorchJob")
    assert message("PATCH", bench.place("PyTorchJob", "it"), {}, STRATEGIC)[0] == 415


def test_a_dry_run_changes_nothing(bench: Bench) -> None:
    manifest = job_manifest("team-a", "it", {GPU: 1}, kind="Job")
    code, tried = bench.ask("POST", bench.place("Job") + "?dryRun=All", manifest)
    assert (code, tried["kind"]) == (201, "Job")
    assert bench.lab.cluster.store.list("jobs") == []
    bench.create("Job")
    bench.ask("PATCH", bench.place("Job", "it") + "?dryRun=All", {"spec": {"parallelism": 2}}, MERGE)
    bench.ask("DELETE", bench.place("Job", "it") + "?dryRun=All")
    assert bench.lab.cluster.store.get("jobs", "it", "hyperpod-ns-team-a")["spec"]["parallelism"] == 1


def test_a_watch_reports_what_happens_after_a_list(bench: Bench) -> None:
    version = bench.ask("GET", bench.place("Pod"))[1]["metadata"]["resourceVersion"]
    path = f"{bench.place('Pod')}?watch=true&resourceVersion={version}&timeoutSeconds=10"
    answer = bench.pool.request("GET", bench.server.url + path, preload_content=False)
    bench.create("StatefulSet")
    seen: list[tuple[str, str]] = []
    for line in answer:
        event = json.loads(line)
        seen.append((event["type"], event["object"]["metadata"]["name"]))
        if event["type"] == "DELETED":
            break
        bench.ask("DELETE", bench.place("StatefulSet", "it"))
    answer.close()
    assert seen == [("ADDED", "it-0"), ("MODIFIED", "it-0"), ("DELETED", "it-0")]  # it was placed on a node


def test_lists_of_named_things_are_merged_by_name_and_others_replaced() -> None:
    before = {
        "containers": [{"name": "a", "env": [{"name": "X", "value": "1"}], "args": ["1"]}, {"name": "b"}],
        "ports": [{"containerPort": 80, "name": "web"}],
        "finalizers": ["one", "two"],
        "tolerations": [{"key": "old"}],
        "strategy": {"type": "Rolling", "rolling": 1},
    }
    patch = {
        "$setElementOrder/containers": [{"name": "a"}],
        "containers": [
            {"name": "a", "env": [{"name": "Y", "value": "2"}], "args": ["2"]},
            {"name": "b", "$patch": "delete"},
        ],
        "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}],
        "$deleteFromPrimitiveList/finalizers": ["one"],
        "finalizers": ["three"],
        "tolerations": [{"key": "new"}],
        "strategy": {"$retainKeys": ["type"], "type": "Recreate"},
    }
    assert strategic_patched(before, patch) == {
        "containers": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}], "args": ["2"]}],
        "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}],
        "finalizers": ["two", "three"],
        "tolerations": [{"key": "new"}],
        "strategy": {"type": "Recreate"},
    }


@pytest.mark.parametrize(
    ("patch", "because"),
    [
        ({}, "a list of operations"),
        ([{"op": "move", "path": "/a"}], "cannot take the operation 'move'"),
        ([{"op": "test", "path": "/a/0", "value": 2}], "the test of /a/0 failed"),
        ([{"op": "replace", "path": "/a/1", "value": 2}], "there is nothing at /a/1"),
        ([{"op": "add", "path": "/b/c", "value": 2}], "there is nothing at /b/c"),
    ],
)
def test_a_json_patch_that_does_not_fit_is_refused(patch: Any, because: str) -> None:
    with pytest.raises(PatchError, match=because):
        json_patched({"a": [1]}, patch)
