"""Clusters of 4 to 1,000 nodes are read whole, page by page, from a real API server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from taskgov.adapters.kubernetes import KubernetesReader
from taskgov.adapters.kubernetes.paging import PAGE
from taskgov.ports import ClusterAccess
from taskgov.snapshot.nodes import nodes_from_kubernetes
from taskgov_cli.kubeconfig import KubeconfigContext
from tests.cluster.kube import Kube
from tests.cluster.workbench import a_node

if TYPE_CHECKING:
    from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster
WRITERS = 8


def test_four_to_a_thousand_nodes_are_read_in_pages(cluster: Cluster) -> None:
    kubes = [Kube(cluster.kube.kubeconfig) for _ in range(WRITERS)]
    reader = KubernetesReader(KubeconfigContext(cluster.kube.context, str(cluster.kube.kubeconfig)))
    before = {one["metadata"]["name"] for one in cluster.kube.list("v1", "Node")}

    def make(number: int) -> None:
        kubes[number % WRITERS].create(a_node(f"fake-{number:04}", "ml.g5.8xlarge"))

    def read() -> int:
        nodes = nodes_from_kubernetes(reader.nodes(ClusterAccess("unused")))
        return sum(node.name not in before and node.instance_type == "ml.g5.8xlarge" for node in nodes)

    try:
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(make, range(4)))
            assert read() == 4
            list(pool.map(make, range(4, 1000)))
        assert PAGE < 1000
        assert read() == 1000
    finally:
        cluster.kube.delete_all("v1", "Node", keep=before)
        for kube in kubes:
            kube.close()
