"""Every registered backend keeps the contract: SageMaker's on the embedded stack, Kueue's on the simulated cluster."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import urllib3
from botocore.config import Config
from kubernetes import client

from taskgov.backends.registry import BACKENDS, Reach, backends
from taskgov.policy.backends import Backend
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.simulated import SimulatedCluster
from taskgov_embedded.sagemaker.cluster_port import GroupFact, StaticCluster
from taskgov_embedded.stack import Stack
from tests.backends.contract import BackendContract, Rig
from tests.support.memory import InMemoryDocuments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from taskgov.ports import ClusterAccess, ClusterBackend

APP = Path(__file__).parents[1] / "embedded" / "fixtures" / "app" / "template.yaml"
ONE_TRY = Config(retries={"mode": "standard", "total_max_attempts": 1})
CODES = {429: "ThrottlingException", 403: "AccessDeniedException", 500: "InternalFailure"}


class OverHttp:
    """Connections to one server, for all callers."""

    def __init__(self, url: str) -> None:
        self._url = url

    def open(self, cluster: ClusterAccess) -> client.ApiClient:
        configuration = client.Configuration(host=self._url)
        # As `EksConnections` has it: what is throttled is for the state machine to try again.
        configuration.retries = urllib3.Retry(0, status=0, respect_retry_after_header=False)
        return client.ApiClient(configuration)


def built(name: Backend, **reach: Any) -> ClusterBackend:
    """Return the registered backend alone: its row, built as the registry builds it."""
    clients = dict.fromkeys(("connections", "sagemaker", "eks", "ec2", "auto_scaling"))
    parts: dict[str, Any] = {"documents": InMemoryDocuments(), **clients, **reach}
    row = next(row for row in BACKENDS if row.name is name)
    return backends(Reach(**parts), (row,)).by_name[name]


def _settled(stack: Stack) -> None:
    stack.run_until_quiet()


@contextmanager
def hyperpod_eks() -> Iterator[Rig]:
    with Stack(APP) as stack:
        port = StaticCluster([GroupFact("workers", "ml.g5.8xlarge", 4)], stack.clock.now)
        cluster = stack.sagemaker.register_cluster("ml-cluster", port)
        stack.run_until_quiet()
        sagemaker = boto3.client("sagemaker", config=ONE_TRY)

        def answer(code: int) -> None:
            status = code if code >= 500 else 400
            stack.faults.fail("sagemaker", "ListComputeQuotas", code=CODES[code], status=status)

        def refuse_writes() -> None:
            stack.faults.fail("sagemaker", "CreateComputeQuota", code="ValidationException")

        def without_version(parsed: dict[str, Any], **_: Any) -> None:
            for found in (parsed, *parsed.get("ComputeQuotaSummaries", ())):
                if found.get("ComputeQuotaTarget", {}).get("TeamName") == "team-a":
                    found["ComputeQuotaVersion"] = "odd"

        def spoil() -> None:
            for operation in ("ListComputeQuotas", "DescribeComputeQuota"):
                sagemaker.meta.events.register(f"after-call.sagemaker.{operation}", without_version)

        yield Rig(
            Backend.SAGEMAKER,
            built(Backend.SAGEMAKER, sagemaker=lambda: sagemaker),
            cluster.arn,
            other_arn=f"{cluster.arn[:-4]}none",
            settle=lambda: _settled(stack),
            answer=answer,
            refuse_writes=refuse_writes,
            spoil=spoil,
        )


@contextmanager
def plain_eks() -> Iterator[Rig]:
    with Stack(APP) as stack:
        cluster = SimulatedCluster("plain", lambda: stack.clock.now)
        arn = stack.place.arn("eks", "cluster/plain")
        document = f"cluster: {{name: plain, arn: '{arn}', backend: kueue}}\n".encode()
        with ClusterApiServer(cluster.store, writes=cluster) as server:
            stack.eks.register_cluster("plain", server.url, "")
            eks = boto3.client("eks")

            def spoil() -> None:
                queue = cluster.store.get("clusterqueues", "hyperpod-ns-team-a-clusterqueue")
                cluster.store.apply({**queue, "spec": {**queue["spec"], "resourceGroups": 7}})

            yield Rig(
                Backend.KUEUE,
                built(
                    Backend.KUEUE,
                    documents=InMemoryDocuments({"policies/plain.yaml": document}),
                    connections=OverHttp(server.url),
                    eks=lambda: eks,
                ),
                arn,
                other_arn=stack.place.arn("eks", "cluster/none"),
                settle=cluster.settle,
                answer=server.fail_next,
                refuse_writes=lambda: None,  # an instance type that nobody knows is refused already
                spoil=spoil,
            )


RIGS: dict[Backend, Callable[[], AbstractContextManager[Rig]]] = {
    Backend.SAGEMAKER: hyperpod_eks,
    Backend.KUEUE: plain_eks,
}


def test_each_registered_backend_has_a_rig() -> None:
    assert list(RIGS) == [row.name for row in BACKENDS]


class TestEveryBackend(BackendContract):
    """The contract on each of them."""

    @pytest.fixture(params=list(RIGS.values()), ids=list(RIGS))
    def rig(self, request: pytest.FixtureRequest) -> Iterator[Rig]:
        with request.param() as rig:
            yield rig
