"""What a run keeps in the bucket may be damaged: it is refused with its name, and what to do, by whoever reads it."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from taskgov.contracts.steps import AuditClusterRequest, PublishUsageRequest, ReadSnapshotRequest
from taskgov.errors import InvalidRequestError
from taskgov.services.read_snapshot import ReadSnapshot
from taskgov.snapshot.identity import BucketStamp
from tests.fuzz.samples import audit_of
from tests.support.clusters import GPU, GovernedCluster
from tests.support.memory import CLUSTER_ARN

NODES = "memory/ml-cluster/nodes.json"
USE = "memory/ml-cluster/use.json.gz"


def read(cluster: GovernedCluster) -> None:
    take = cluster.take_snapshot()
    ReadSnapshot(take, cluster.documents, cluster.state)(ReadSnapshotRequest(cluster_arn=CLUSTER_ARN, run_id="run-1"))


def measure(cluster: GovernedCluster) -> None:
    cluster.publish_usage()(PublishUsageRequest(cluster_arn=CLUSTER_ARN))


def audit(cluster: GovernedCluster) -> None:
    audit_of(cluster, cluster.take_snapshot())(AuditClusterRequest(cluster_arn=CLUSTER_ARN, run_id="audit-1"))


@pytest.fixture(scope="module")
def kept() -> dict[str, bytes]:
    cluster = GovernedCluster().with_fair_share().with_nodes(2).with_team("team-a", used={GPU: "6"})
    read(cluster)
    for _ in range(2):
        cluster.clock.advance(minutes=10)
        measure(cluster)
    return dict(cluster.documents.stored)


def first(found: dict[str, Any]) -> Any:
    return next(iter(found.values()))


def put(*way: str, value: object = None) -> Callable[[dict[str, Any]], None]:
    """Return what puts a value at a place (`*` is the first member); an ellipsis takes the member away."""

    def damage(document: dict[str, Any]) -> None:
        holder: Any = document
        for step in way[:-1]:
            holder = first(holder) if step == "*" else holder[step]
        if value is ...:
            del holder[way[-1]]
        else:
            holder[next(iter(holder)) if way[-1] == "*" else way[-1]] = value

    return damage


OF_NODES = {
    "a node without its turns": put("nodes", "*", "turns", value=...),
    "a node without its beginning": put("nodes", "*", "found", value=...),
    "a node that is text": put("nodes", "*", value="healthy"),
    "a node whose health is a number": put("nodes", "*", "healthy", value=7),
    "nodes in a list": put("nodes", value=[]),
    "no nodes": put("nodes", value=...),
    "a moment that is a number": put("lookedAt", value=7),
    "a moment without a time zone": put("lookedAt", value="2026-11-20T09:00:00"),
    "a moment that no clock shows": put("lookedAt", value="0001-01-01T00:00:00+14:00"),
    "a moment before all clocks": put("nodes", "*", "leaves", value="0001-01-01T00:00:00+00:00"),
    "turns that are no moments": put("nodes", "*", "turns", value=[None]),
    "a cluster that is a number": put("cluster", value=7),
}
OF_USE = {
    "no spending": put("spent", value=None),
    "spending of a team in a list": put("spent", "*", value=[]),
    "an endless amount": put("spent", "*", "*", value=float("inf")),
    "an amount below zero": put("spent", "*", "*", value=-1),
    "places in a list": put("watched", value=[]),
    "types in a list": put("watched", "*", value=[7]),
    "a place without its beginning": put("watched", "*", "*", "since", value=...),
    "a peak without its value": put("watched", "*", "*", "peaks", value=[[1]]),
    "a moment without a time zone": put("at", value="2026-11-20T09:00:00"),
}
CASES = [*((NODES, name) for name in OF_NODES), *((USE, name) for name in OF_USE)]


@pytest.mark.parametrize("reader", [read, measure, audit], ids=lambda reader: reader.__name__)
@pytest.mark.parametrize(("key", "name"), CASES)
def test_a_damaged_memory_is_refused_with_its_name_and_what_to_do(
    kept: dict[str, bytes], key: str, name: str, reader: Callable[[GovernedCluster], None]
) -> None:
    cluster = GovernedCluster().with_fair_share().with_nodes(2).with_team("team-a", used={GPU: "6"})
    packed = key == USE
    document = json.loads(gzip.decompress(kept[key]) if packed else kept[key])
    (OF_USE if packed else OF_NODES)[name](document)
    body = json.dumps(document).encode()
    cluster.documents.stored[key] = gzip.compress(body) if packed else body
    with pytest.raises(InvalidRequestError, match=rf"{key} cannot be read \(.*delete it"):
        reader(cluster)


@pytest.mark.parametrize(
    "damage",
    [
        put("serial", value=float("inf")),
        put("serial", value="7"),
        put("at", value="0001-01-01T00:00:00+14:00"),
        put("snapshot", value=[]),
        put("lineage", value=json.loads("[" * 300 + "]" * 300)),
    ],
)
def test_a_damaged_stamp_is_none(kept: dict[str, bytes], damage: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(kept["memory/ml-cluster/state.json"])
    damage(document)
    with pytest.raises(ValueError, match="the stamp is not a version 1 document"):
        BucketStamp.from_json(json.dumps(document).encode())
