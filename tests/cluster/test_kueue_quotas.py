"""The contract of the `kueue` backend on a real API server with the real Kueue."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.dynamic.exceptions import NotFoundError

from taskgov.backends.plain_eks.quotas import KueueQuotas
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.kueue.render import ManagerConfiguration
from taskgov_cli.kubeconfig import KubeconfigContext
from taskgov_embedded.cluster.objects import RESOURCE_TYPES
from tests.cluster.kube import is_true, wait_for
from tests.cluster.real_cluster import runnable
from tests.cluster.workbench import clear
from tests.support.quota_store import Edit, QuotaStoreContract, Rig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster


class TestReal(QuotaStoreContract):
    """The contract on the real cluster."""

    @pytest.fixture
    def rig(self, cluster: Cluster) -> Iterator[Rig]:
        cluster.run_kueue(ManagerConfiguration(fair_sharing=True).to_manifest())
        kube = cluster.kube
        connections = KubeconfigContext(kube.context, str(kube.kubeconfig))

        def find(plural: str, name: str, namespace: str = "") -> dict[str, Any] | None:
            kind = RESOURCE_TYPES[plural]
            try:
                return kube.get(kind.api_version(), kind.kind, name, namespace or None)
            except NotFoundError:
                return None

        def edit(change: Edit) -> None:
            queue = find("clusterqueues", Rig.queue)
            assert queue is not None
            kube.merge(queue, {"spec": change(queue)["spec"]}, manager="somebody")

        def put(*objects: dict[str, Any]) -> None:
            kube.apply(*objects, manager="somebody", force=True)

        def delete(plural: str, name: str, namespace: str = "") -> None:
            if found := find(plural, name, namespace):
                kube.delete([found])

        def settle() -> None:
            wait_for(
                "Kueue has seen every queue",
                lambda: all(map(seen, kube.list("kueue.x-k8s.io/v1beta2", "ClusterQueue"))),
            )
            jobs = kube.list("batch/v1", "Job")
            wait_for("the jobs run", lambda: all(not one["spec"]["suspend"] for one in kube.list("batch/v1", "Job")))
            if jobs:
                time.sleep(0.5)  # the queue's own count follows

        yield Rig(
            KueueQuotas(connections, lambda _arn: InstanceTypeTable()),
            edit=edit,
            put=put,
            find=find,
            delete=delete,
            submit=lambda job: kube.create(runnable(job)),
            settle=settle,
        )
        clear(kube)


def seen(queue: dict[str, Any]) -> bool:
    if queue["metadata"].get("deletionTimestamp"):
        return False
    told = [one for one in queue.get("status", {}).get("conditions", ()) if one["type"] == "Active"]
    return bool(told) and told[0]["observedGeneration"] == queue["metadata"]["generation"] and is_true(queue, "Active")
