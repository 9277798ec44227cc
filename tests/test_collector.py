"""Python's collector of cycles is paused for a while, and works again afterwards."""

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import pytest

from taskgov.collector import collect_recent, collector_paused
from taskgov.contracts.steps import PublishUsageRequest, ReadSnapshotRequest
from taskgov.ports import ClusterAccess
from taskgov.services.read_snapshot import ReadSnapshot
from taskgov.snapshot.model import KubernetesObject
from tests.support.clusters import GovernedCluster
from tests.support.memory import CLUSTER_ARN, FixedKubernetes


def test_the_collector_is_paused_and_works_again_after_an_error() -> None:
    def fails() -> None:
        assert not gc.isenabled()
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        collector_paused()(fails)()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_is_paused_during_each_call_of_a_function() -> None:
    enabled = collector_paused()(gc.isenabled)
    assert (enabled(), enabled(), gc.isenabled()) == (False, False, True)


def test_cycles_that_are_made_between_pauses_are_freed() -> None:
    class Node:
        pass

    made = []
    for _ in range(200):
        node = Node()
        node.others = [[node] for _ in range(1000)]  # type: ignore[attr-defined]
        made.append(ref(node))
        with collector_paused():
            _ = [[number] for number in range(1000)]
    assert sum(node() is not None for node in made) < 100


class Cycle:
    """An object that only a search for cycles frees."""

    def __init__(self) -> None:
        self.own = self


@dataclass
class Watched(FixedKubernetes):
    """A cluster that notes whether the collector is on while it is read, and leaves a cycle."""

    was_on: list[bool] = field(default_factory=list)
    left: list[ref[Cycle]] = field(default_factory=list)

    def nodes(self, cluster: ClusterAccess) -> list[KubernetesObject]:
        self.was_on.append(gc.isenabled())
        self.left.append(ref(Cycle()))
        return super().nodes(cluster)


def publish(cluster: GovernedCluster) -> None:
    cluster.publish_usage()(PublishUsageRequest())


def read(cluster: GovernedCluster) -> None:
    request = ReadSnapshotRequest.parse({"clusterArn": CLUSTER_ARN, "runId": "run-1", "cause": None})
    ReadSnapshot(cluster.take_snapshot(), cluster.documents, cluster.state)(request)


@pytest.mark.parametrize("work", [publish, read])
def test_it_is_paused_while_a_cluster_is_read_and_cycles_are_freed_afterwards(
    work: Callable[[GovernedCluster], Any],
) -> None:
    kubernetes = Watched()
    work(GovernedCluster(kubernetes=kubernetes).with_team("team-a"))
    gc.collect(0)
    assert (kubernetes.was_on, gc.isenabled()) == ([False], True)
    assert [cycle() for cycle in kubernetes.left] == [None]


def test_cycles_that_were_made_lately_are_freed_while_it_is_paused() -> None:
    class Node:
        me: object = None

    with collector_paused():
        node = Node()
        node.me, gone = node, ref(node)
        del node
        assert gone() is not None
        collect_recent()
        assert gone() is None
