"""Rendered objects get into a cluster by server-side apply: ours are kept right, others' are respected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskgov.errors import ConflictError, UpstreamError
from taskgov.hyperpod.names import cluster_queue_of
from taskgov.kueue.ownership import Ownership
from taskgov.kueue.render import RenderedObjects, manager_configuration, render
from taskgov.ports import ClusterAccess
from taskgov_cli.kubeconfig import KubeconfigContext
from taskgov_cli.kueue_objects import KueueObjectWriter
from tests.cluster.kube import KUEUE, Kube, is_true, wait_for
from tests.cluster.workbench import TABLE, a_policy, a_quota, clear, submit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster
POLICY = a_policy(inference=90, training=70)
ANY = ClusterAccess("unused")
QUEUE = cluster_queue_of("team-a")


@pytest.fixture
def kube(cluster: Cluster) -> Iterator[Kube]:
    cluster.run_kueue(manager_configuration(POLICY).to_manifest())
    yield cluster.kube
    clear(cluster.kube)


@pytest.fixture
def backend(kube: Kube) -> KueueObjectWriter:
    return KueueObjectWriter(KubeconfigContext(kube.context, str(kube.kubeconfig)))


def rendered(count: int = 2) -> RenderedObjects:
    return render([a_quota("team-a", [{"InstanceType": "ml.g5.8xlarge", "Count": count}])], POLICY, TABLE, "v1beta2")


def standings(backend: KueueObjectWriter, objects: RenderedObjects) -> dict[str, Ownership]:
    return {one.name: one.ownership for one in backend.inspect(ANY, objects.in_order()) if one.kind != "Namespace"}


def test_what_is_applied_is_ours_and_applying_again_changes_nothing(backend: KueueObjectWriter) -> None:
    assert set(standings(backend, rendered()).values()) == {Ownership.ABSENT}
    backend.apply(ANY, rendered().in_order())
    assert set(standings(backend, rendered()).values()) == {Ownership.MADE}
    assert [one.changes for one in backend.inspect(ANY, rendered().in_order()) if one.changes] == []


def test_drift_is_reported_and_put_right_by_adoption_only(backend: KueueObjectWriter, kube: Kube) -> None:
    backend.apply(ANY, rendered(2).in_order())
    drifted = {**rendered(3).cluster_queues[0]}
    kube.apply(drifted, manager="somebody", force=True)
    [queue] = backend.inspect(ANY, rendered(2).cluster_queues)
    assert [change.path for change in queue.changes] == ["spec.resourceGroups"]
    with pytest.raises(ConflictError, match="somebody"):
        backend.apply(ANY, rendered(2).in_order())
    backend.adopt(ANY, rendered(2).cluster_queues)
    assert [one.changes for one in backend.inspect(ANY, rendered(2).cluster_queues)] == [()]


def test_a_foreign_queue_is_left_alone_until_it_is_adopted_and_never_deleted(
    backend: KueueObjectWriter, kube: Kube
) -> None:
    kube.apply(*rendered(1).in_order(), manager="somebody")
    before = kube.get(KUEUE, "ClusterQueue", QUEUE)["spec"]
    with pytest.raises(ConflictError, match="adopt it"):
        backend.apply(ANY, rendered(2).cluster_queues)
    [queue] = backend.inspect(ANY, rendered(2).cluster_queues)
    assert (queue.ownership, bool(queue.changes)) == (Ownership.FOREIGN, True)
    assert kube.get(KUEUE, "ClusterQueue", QUEUE)["spec"] == before
    backend.adopt(ANY, rendered(2).cluster_queues)
    [queue] = backend.inspect(ANY, rendered(2).cluster_queues)
    assert (queue.ownership, queue.changes) == (Ownership.ADOPTED, ())
    with pytest.raises(ConflictError, match="was not made by taskgov"):
        backend.delete(ANY, rendered(2).cluster_queues)


def test_a_queue_with_running_work_is_not_deleted(backend: KueueObjectWriter, kube: Kube) -> None:
    backend.apply(ANY, rendered().in_order())
    wait_for("the queue is active", lambda: is_true(kube.get(KUEUE, "ClusterQueue", QUEUE), "Active"))
    submit(kube, "team-a", "job", {"nvidia.com/gpu": 1}, pods=1, priority="training")
    wait_for("the queue counts it", lambda: kube.get(KUEUE, "ClusterQueue", QUEUE)["status"]["reservingWorkloads"] == 1)
    with pytest.raises(ConflictError, match="hold quota"):
        backend.delete(ANY, rendered().cluster_queues)


def test_what_was_made_is_deleted(backend: KueueObjectWriter, kube: Kube) -> None:
    backend.apply(ANY, rendered().in_order())
    backend.delete(ANY, (*rendered().local_queues, *rendered().cluster_queues))
    wait_for("the queue is gone", lambda: kube.list(KUEUE, "ClusterQueue") == [])


def test_an_apply_that_a_restart_of_the_api_server_interrupts_is_finished_by_the_next(
    backend: KueueObjectWriter, cluster: Cluster
) -> None:
    objects = rendered().in_order()
    backend.apply(ANY, objects[:2])
    cluster.stop_api_server()
    try:
        with pytest.raises(UpstreamError):
            backend.apply(ANY, objects)
    finally:
        cluster.start_api_server()
    backend.apply(ANY, objects)
    assert set(standings(backend, rendered()).values()) == {Ownership.MADE}
    assert [one.changes for one in backend.inspect(ANY, objects) if one.changes] == []
