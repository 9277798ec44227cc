"""The `kueue` backend over HTTP, on the embedded cluster; `tests/cluster` runs the same on a real one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from kubernetes import client

from taskgov.adapters.kueue_quotas import KueueQuotas
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.simulated import SimulatedCluster
from tests.support.quota_store import Edit, QuotaStoreContract, Rig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov.ports import ClusterAccess


class OverHttp:
    """Connections to one server, whoever asks."""

    def __init__(self, url: str) -> None:
        self._url = url

    def open(self, cluster: ClusterAccess) -> client.ApiClient:
        return client.ApiClient(client.Configuration(host=self._url))


class TestEmbedded(QuotaStoreContract):
    """The contract on the simulated cluster."""

    @pytest.fixture
    def rig(self) -> Iterator[Rig]:
        cluster = SimulatedCluster("ml", lambda: datetime(2026, 11, 20, 9, tzinfo=UTC))
        with ClusterApiServer(cluster.store, writes=cluster) as server:
            quotas = KueueQuotas(OverHttp(server.url), lambda _arn: InstanceTypeTable())

            def edit(change: Edit) -> None:
                cluster.update_object(change(cluster.store.get("clusterqueues", Rig.queue)), "somebody")

            def put(*objects: dict[str, object]) -> None:
                for one in objects:
                    cluster.apply_object(dict(one), "somebody", force=True)

            yield Rig(
                quotas,
                edit=edit,
                put=put,
                find=lambda kind, name, namespace="": cluster.store.find(kind, name, namespace),
                delete=cluster.delete_object,
                submit=cluster.submit,
                settle=cluster.settle,
            )
