"""The raw answers of a folder, behind the product's own adapters: boto3 and the Kubernetes client parse and page them.

The table and the bucket are kept in memory. Answers are read from disk when they are asked for, as they would come over
the network, so that peaks of memory are the product's own.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

import boto3
from botocore.awsrequest import AWSResponse
from kubernetes import client

from benchmarks.scale.world import EKS_ARN, NAME, VERSION_AFTER, WATCHED
from taskgov.adapters.kubernetes import KubernetesReader
from taskgov.adapters.kubernetes.following import KueueFollower
from taskgov.backends.backends import Backends
from taskgov.backends.registry import Reach, backends
from taskgov.ports import ClusterAccess, Meter
from taskgov.services.follow_workloads import FollowWorkloads
from taskgov.services.read_queue import ReadQueue
from taskgov.services.take_snapshot import TakeSnapshot
from tests.support.memory import FixedClock, InMemoryDocuments, InMemoryState, RecordingFailures

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

_KINDS: Final = ("resourceflavors", "cohorts", "clusterqueues", "localqueues", "workloadpriorityclasses", "workloads")
_SERVED: Final = {"resources": [{"name": plural} for plural in _KINDS]}
CHUNK: Final = 65_536
REQUESTS: Final = Counter[str]()
"""Requests that were answered in this process: operations of SageMaker, plural names of the Kubernetes API, `watch`."""
_EMPTY: Final[dict[str, Any]] = {"metadata": {}, "items": []}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster whose APIs answer from a folder, and the stores that taskgov keeps of it."""

    folder: Path
    documents: InMemoryDocuments
    state: InMemoryState
    clock: FixedClock

    @classmethod
    def of(cls, folder: Path) -> "Cluster":
        """Return the cluster with the policy document in the bucket."""
        documents = InMemoryDocuments({f"policies/{NAME}.yaml": (folder / "policy.yaml").read_bytes()})
        return cls(folder, documents, InMemoryState(), FixedClock())

    def backends(self) -> Backends:
        """Return the port of quotas over SageMaker's answers."""
        reach: Any = Reach(
            self.documents,
            _Connections(self.folder),
            lambda: sagemaker(self.folder),
            _no_client,
            _no_client,
            _no_client,
            _failures,
        )
        return backends(reach)

    def take_snapshot(self) -> TakeSnapshot:
        """Return the use case, which reads the cluster."""
        reader = KubernetesReader(_Connections(self.folder))
        return TakeSnapshot(self.backends(), reader, self.documents, self.state, self.clock)

    def follow_workloads(self, meter: Meter) -> FollowWorkloads:
        """Return the use case, which follows the workloads."""
        follower = KueueFollower(_Connections(self.folder))
        follower.list_up_to = -1  # so that each size does the same work
        return FollowWorkloads(follower, self.documents, meter, self.clock)

    def read_queue(self) -> ReadQueue:
        """Return what reads the queue for estimates."""
        follower = KueueFollower(_Connections(self.folder))
        return ReadQueue(self.backends(), follower, follower, self.clock, self.documents)


class _Answer:
    """An answer of the Kubernetes API."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.body, self.status, self.reason = body, status, "OK" if status == 200 else "Not Found"

    def read(self) -> bytes:
        return self.body


class _Watch(_Answer):
    """An answer that comes in parts."""

    @property
    def response(self) -> "_Watch":
        return self

    def stream(self, **_options: Any) -> Iterator[bytes]:
        yield from (self.body[begin : begin + CHUNK] for begin in range(0, len(self.body), CHUNK))

    def close(self) -> None:
        """Close nothing: there is no connection."""


class _FromFolder:
    """Stands in for the HTTP layer of the Kubernetes client."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def close(self) -> None:
        """Close nothing: there is no connection."""

    def request(self, _method: str, url: str, **_more: Any) -> _Answer:
        parts = urlsplit(url)
        *_, last = parts.path.split("/")
        REQUESTS["watch" if "watch=" in parts.query else last] += 1
        if last == "v1beta2":
            return _Answer(b'{"message": "not served"}', 404)
        if last == "v1beta1":
            return _Answer(json.dumps(_SERVED).encode())
        with suppress(FileNotFoundError):
            return self._listed(last, parse_qs(parts.query))
        if last in {"limitranges", "runtimeclasses"}:
            return _Answer(json.dumps(_EMPTY).encode())
        return _Answer(b'{"message": "not found"}', 404)

    def _listed(self, plural: str, query: dict[str, list[str]]) -> _Answer:
        """Return a page of a list, or what a watch tells. Raises FileNotFoundError."""
        if "watch" in query:
            return _Watch((self._folder / WATCHED).read_bytes())
        if query.get("limit") == ["1"]:
            return _Answer(json.dumps({"metadata": {"resourceVersion": VERSION_AFTER}, "items": []}).encode())
        page = query.get("continue", ["0"])[0]
        return _Answer((self._folder / f"{plural}-{page}.json").read_bytes())


class _Connections:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, cluster: ClusterAccess) -> client.ApiClient:
        if cluster.eks_cluster_arn != EKS_ARN:
            raise ValueError(cluster.eks_cluster_arn)
        api = client.ApiClient(client.Configuration(host="https://cluster.example"))
        api.rest_client = _FromFolder(self._folder)
        return api


def sagemaker(folder: Path) -> "SageMakerClient":
    """Return a client of SageMaker whose requests are answered from the folder."""
    made = boto3.client(
        "sagemaker",
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",  # noqa: S106
    )

    def answer(request: Any, **_more: Any) -> Any:
        operation = request.headers["X-Amz-Target"].decode().rpartition(".")[2]
        REQUESTS[operation] += 1
        page = json.loads(request.body or b"{}").get("NextToken", "0")
        found: Any = AWSResponse(request.url, 200, _HEADERS, None)
        found._content = (folder / f"{operation}-{page}.json").read_bytes()  # noqa: SLF001 - what a socket would give
        return found

    made.meta.events.register("before-send.sagemaker", answer)
    return made


_HEADERS: Final[Any] = {"Content-Type": "application/x-amz-json-1.1"}
_failures = RecordingFailures()


def _no_client() -> Any:
    raise AssertionError("only SageMaker and the Kubernetes API are asked")
