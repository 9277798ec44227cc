"""The rights in `docs/rbac.yaml` are enough to read a cluster, and no more than that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from taskgov.adapters.kubernetes import KubeconfigConnections, KubernetesReader
from taskgov.errors import UpstreamError
from taskgov.kueue.render import manager_configuration
from taskgov.ports import ClusterAccess
from tests.cluster.kube import Kube
from tests.cluster.workbench import a_node, a_policy, a_quota, clear, govern

if TYPE_CHECKING:
    from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster
RBAC = Path(__file__).parents[2] / "docs" / "rbac.yaml"
POLICY = a_policy(training=70)
ANY = ClusterAccess("unused")


def test_readers_read_what_decisions_use_and_nothing_else(cluster: Cluster) -> None:
    cluster.run_kueue(manager_configuration(POLICY).to_manifest())
    kubeconfig = cluster.kubeconfig("reader", "taskgov-readers")
    reader = KubernetesReader(KubeconfigConnections(str(kubeconfig), "test"))
    with pytest.raises(UpstreamError, match="cannot list resource"):
        reader.nodes(ANY)

    cluster.kube.apply(*yaml.safe_load_all(RBAC.read_text()), a_node("node-1", "ml.g5.8xlarge"))
    govern(cluster.kube, [a_quota("team-a", [{"InstanceType": "ml.g5.8xlarge", "Count": 1}])], POLICY)
    assert "node-1" in [one["metadata"]["name"] for one in reader.nodes(ANY)]
    objects = reader.kueue_objects(ANY)
    assert len(objects.cluster_queues) == len(objects.local_queues) == len(objects.resource_flavors) == 1
    with pytest.raises(ApiException, match="cannot list resource"):
        Kube(kubeconfig).list("v1", "Secret")
    clear(cluster.kube)
