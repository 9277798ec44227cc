"""Do a real API server and the real Kueue take what is rendered, and do what it says?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client.exceptions import ApiException

from taskgov.hyperpod.names import cluster_queue_of, local_queue_of, namespace_of
from taskgov.kueue.foundation import admission_policy, cohort
from taskgov.kueue.render import KueueVersion, manager_configuration, render
from tests.cluster.kube import KUEUE, Kube, is_true, wait_for
from tests.cluster.workbench import TABLE, a_policy, a_quota, clear, govern, submit
from tests.support.kubectl import described, unspaced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster
SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
POLICY = a_policy(training=70)
VERSIONS: tuple[KueueVersion, ...] = ("v1beta1", "v1beta2")
QUEUE_NAME = "kueue.x-k8s.io/queue-name"
DOCUMENTED = a_quota(
    "onlygputeam", [{"InstanceType": "ml.g6.12xlarge", "Accelerators": 2, "VCpu": 48.0}], borrow_limit=50, weight=10
)


@pytest.fixture
def kube(cluster: Cluster) -> Iterator[Kube]:
    cluster.run_kueue(manager_configuration(POLICY).to_manifest())
    yield cluster.kube
    clear(cluster.kube)


def active(kube: Kube, team: str) -> bool:
    return is_true(kube.get(KUEUE, "ClusterQueue", cluster_queue_of(team)), "Active")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_kind_is_accepted_in_both_versions_and_makes_an_active_queue(kube: Kube, version: KueueVersion) -> None:
    strategies = {"a": "LendAndBorrow", "b": "Lend", "c": "DontLend"}
    quotas = [
        a_quota(team, [{"InstanceType": "ml.g5.8xlarge", "Count": 1}], strategy=strategy, preempt=preempt)
        for (team, strategy), preempt in zip(strategies.items(), ("LowerPriority", "Never", "Never"), strict=True)
    ]
    kube.apply(cohort(version), *admission_policy(), *render(quotas, POLICY, TABLE, version).in_order())
    wait_for("the queues are active", lambda: all(active(kube, team) for team in strategies))
    cohorts = {
        one["metadata"]["name"]: one["spec"].get("cohortName")
        for one in kube.list("kueue.x-k8s.io/v1beta2", "ClusterQueue")
    }
    assert [cohorts[cluster_queue_of(team)] for team in strategies] == ["shared-pool", "shared-pool", None]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_stored_is_what_was_rendered_field_by_field(kube: Kube, version: KueueVersion) -> None:
    """Nothing of it is defaulted away or rewritten, whichever version is asked for; Kueue adds no field either."""
    rendered = render([DOCUMENTED], POLICY, TABLE, version)
    kube.apply(*rendered.in_order())
    for read in VERSIONS:
        wanted = render([DOCUMENTED], POLICY, TABLE, read)
        for one in (*wanted.cluster_queues, *wanted.local_queues, *wanted.resource_flavors):
            metadata = one["metadata"]
            stored = kube.get(one["apiVersion"], one["kind"], metadata["name"], metadata.get("namespace"))
            assert stored["spec"] == one["spec"]
            assert stored["metadata"].get("labels") == metadata.get("labels")


def test_the_stored_queues_read_as_the_documentation_prints_them(kube: Kube) -> None:
    printed = list(SEEDS.glob("003_*"))
    if not printed:
        pytest.skip(f"the printed queues are not beside this checkout: {SEEDS}")
    text = unspaced(printed[0].read_text())
    kube.apply(*render([DOCUMENTED], POLICY, TABLE, "v1beta1").in_order())
    team = "onlygputeam"
    queue = kube.get("kueue.x-k8s.io/v1beta1", "ClusterQueue", cluster_queue_of(team))
    local = kube.get("kueue.x-k8s.io/v1beta1", "LocalQueue", local_queue_of(team), namespace_of(team))
    queue["spec"].pop("stopPolicy")  # the printed one ends in "..." before it
    assert described("ClusterQueue", queue["metadata"]["labels"], queue["spec"]) in text
    assert described("LocalQueue", local["metadata"]["labels"], local["spec"]) in text


def a_job(name: str, namespace: str, labels: dict[str, str], pod_labels: dict[str, str]) -> dict[str, Any]:
    container = {"name": "main", "image": "none"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"labels": pod_labels}, "spec": pod}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def refusal_of(kube: Kube, job: dict[str, Any]) -> str:
    try:
        kube.create(job)
    except ApiException as error:
        return str(error.body)
    return ""


def test_a_job_in_a_governed_namespace_has_to_name_its_queue(kube: Kube) -> None:
    govern(kube, [a_quota("team-a", [{"InstanceType": "ml.g5.8xlarge", "Count": 1}])], POLICY)
    kube.apply(*admission_policy())
    namespace, queue = namespace_of("team-a"), {QUEUE_NAME: local_queue_of("team-a")}
    # The API server compiles a new policy in its own time.
    wait_for("the policy is in force", lambda: "are governed" in refusal_of(kube, a_job("first", namespace, {}, {})))

    plain = refusal_of(kube, a_job("plain", namespace, {"app": "x"}, {}))
    assert f"jobs in namespace {namespace} are governed" in plain
    assert f"here {local_queue_of('team-a')}" in plain
    assert "are governed" in refusal_of(kube, a_job("empty", namespace, {QUEUE_NAME: ""}, {}))
    misplaced = refusal_of(kube, a_job("misplaced", namespace, {"app": "x"}, queue))
    assert "on the pod template, where Kueue does not look" in misplaced
    assert refusal_of(kube, a_job("outside", "default", {}, {})) == ""
    assert refusal_of(kube, a_job("good", namespace, queue, {})) == ""
    assert refusal_of(kube, a_job("printed", namespace, {}, queue)) == ""  # the API server copies the labels
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "1"}
    owned = a_job("owned", namespace, {}, {})
    owned["metadata"]["ownerReferences"] = [owner]
    assert refusal_of(kube, owned) == ""


def test_gang_scheduling_gives_up_on_jobs_whose_pods_are_not_ready_in_time(cluster: Cluster) -> None:
    """`waitForPodsReady` as it is rendered: Kueue takes the document, and says of an admitted job that it waits."""
    configuration = manager_configuration(POLICY, wait_for_pods_ready=True).to_manifest()
    cluster.run_kueue(configuration)
    kube = cluster.kube
    try:
        govern(kube, [a_quota("team-a", [{"InstanceType": "ml.g5.8xlarge", "Count": 1}])], POLICY)
        name = submit(kube, "team-a", "gang", {"nvidia.com/gpu": 1}, pods=1, priority="training")

        def told() -> str:
            workload = kube.get(KUEUE, "Workload", name, namespace_of("team-a"))
            found = [one for one in workload.get("status", {}).get("conditions", ()) if one["type"] == "PodsReady"]
            return found[0]["status"] if found else ""

        wait_for("Kueue watches whether the pods are ready", lambda: told() == "False")
    finally:
        clear(kube)
