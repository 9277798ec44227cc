"""Following the workloads on a real API server: what is known at a version is what the server says of that version.

The server itself is the judge: a list with `resourceVersion` and `resourceVersionMatch=Exact` gives the collection as
it was at the version that a look ended with, while writers, and Kueue, create, change and delete workloads.
"""

from __future__ import annotations

import gc
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from random import Random
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from taskgov.adapters.kubernetes.following import KueueFollower
from taskgov.adapters.kubernetes.paging import list_pages
from taskgov.adapters.kubernetes.request import Requests
from taskgov.adapters.kubernetes.trimming import trimmed_workload
from taskgov.kueue.render import manager_configuration
from taskgov.ports import ClusterAccess, WorkloadsKnown
from taskgov.services.follow_workloads import KEY, FollowWorkloads
from taskgov.usage.attempt_facts import nobody
from taskgov.usage.workload_facts import FollowedKueue
from taskgov.usage.workload_memory import WorkloadMemory, record_of
from taskgov_cli.kubeconfig import KubeconfigContext
from tests.cluster.conftest import OwnCluster
from tests.cluster.kube import Kube, wait_for
from tests.cluster.workbench import a_policy
from tests.support.memory import FixedClock, InMemoryDocuments, RecordingMeter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskgov.ports import WorkloadsRead
    from tests.cluster.conftest import Cluster

# A connection that the server resets before TLS begins stays open until it is collected: Python's `ssl` raises there
# and does not close it. What a restart under load has left is collected in this file, whichever test comes then.
pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")]
ANY = ClusterAccess("unused")
WORKLOADS = 600
WRITERS = 4
LOOKS = 8
CHANGES = 400
"""So many changes are followed at least, in so many looks at most:"""
MOST_LOOKS = 100
FORGETS, RESTARTS = 4, 8
"""The looks before which the server has forgotten the version that is known, and before which it restarts."""
MEMORY = KEY.format("ml-cluster")
KUEUE = "kueue.x-k8s.io/v1beta2"


class Looking:
    """Somebody who looks again and again, and remembers."""

    def __init__(self, cluster: Cluster) -> None:
        self.connections = KubeconfigContext(cluster.kube.context, str(cluster.kube.kubeconfig))
        self.follower = KueueFollower(self.connections)
        self.state: dict[tuple[str, str], Any] = {}
        self.known: WorkloadsKnown | None = None

    def look(self) -> WorkloadsRead[Any]:
        _, read = self.follower.kueue_since(ANY, self.known, lambda item: item)
        after = dict(read.changed) if read.is_whole else {**self.state, **read.changed}
        self.state = {key: item for key, item in after.items() if item is not None}
        self.known = WorkloadsKnown(read.api_version, read.resource_version)
        return read

    def at(self, version: str) -> dict[tuple[str, str], Any]:
        """Return all workloads as they were at a version, by the server's word."""
        with self.connections.open(ANY) as connection:
            api = Requests(connection)

            def page(query: Any) -> dict[str, Any]:
                exactly = {} if "continue" in query else {"resourceVersion": version, "resourceVersionMatch": "Exact"}
                return api.get(f"/apis/{KUEUE}/workloads", "list", {**query, **exactly})

            items = [trimmed_workload(item) for items in list_pages(page, "list") for item in items]
        return {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in items}


def a_workload(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queueName": "none", "podSets": [pods], "priority": 0},
    }


@pytest.fixture(scope="module")
def followed(cluster: Cluster) -> Iterator[Cluster]:
    """Give a cluster with more workloads than a page has."""
    cluster.run_kueue(manager_configuration(a_policy()).to_manifest())
    try:
        each(cluster, lambda kube, number: kube.create(a_workload(f"followed-{number}")), WORKLOADS)
        yield cluster
    finally:
        cluster.kube.delete(cluster.kube.list(KUEUE, "Workload"))
        gc.collect()


@pytest.fixture
def looking(followed: Cluster) -> Looking:
    """Give somebody who has looked at it once."""
    found = Looking(followed)
    assert found.look().is_whole
    return found


def each(cluster: Cluster, do: Callable[[Kube, int], Any], number: int) -> None:
    """Do something so many times, with several connections at once."""
    kubes = [Kube(cluster.kube.kubeconfig) for _ in range(WRITERS)]

    def part(worker: int) -> None:
        for index in range(worker, number, WRITERS):
            do(kubes[worker], index)

    try:
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(part, range(WRITERS)))
    finally:
        for kube in kubes:
            kube.close()


@contextmanager
def under_load(cluster: Cluster) -> Iterator[None]:
    """Create, change and delete workloads meanwhile. What the server does not answer is not tried again."""
    over = Event()
    names = [item["metadata"]["name"] for item in cluster.kube.list(KUEUE, "Workload")]

    def write(kube: Kube, worker: int) -> None:
        chance, serial = Random(worker), 0  # noqa: S311
        own = names[worker::WRITERS]
        while not over.is_set():
            serial += 1
            happens = chance.randrange(4)
            try:
                if happens == 0 or not own:
                    own.append(f"new-{worker}-{time.time_ns()}")
                    kube.create(a_workload(own[-1]))
                elif happens == 1:
                    kube.delete([a_workload(own.pop(chance.randrange(len(own))))])
                else:
                    kube.patch_status(a_workload(chance.choice(own)), {"conditions": [a_condition(serial)]})
            except (ApiException, HTTPError):
                over.wait(0.1)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(each, cluster, write, WRITERS)
        try:
            yield
        finally:
            over.set()
        writing.result()


def test_what_is_followed_under_load_is_what_the_server_had_at_that_version(cluster: Cluster, looking: Looking) -> None:
    with under_load(cluster):
        changed = 0
        for _ in range(LOOKS):
            time.sleep(0.3)
            read = looking.look()
            assert (read.is_whole, read.relisted) == (False, "")
            assert looking.state == looking.at(read.resource_version)
            changed += len(read.changed)
    assert changed > LOOKS


def test_a_memory_is_the_list_at_its_version_after_hundreds_of_changes_a_410_and_restarts(
    cluster: Cluster, looking: Looking
) -> None:
    """Each second look is of a new process, which has the stored memory alone; the API server restarts too."""
    documents, meter, seen = InMemoryDocuments(), RecordingMeter(), 0
    follow = FollowWorkloads(KueueFollower(looking.connections), documents, meter, FixedClock())
    with under_load(cluster):
        for number in count():
            if number == FORGETS:
                old = WorkloadMemory.from_bytes(documents.stored[MEMORY])
                documents.stored[MEMORY] = replace(old, resource_version="1").to_bytes()
            if number == RESTARTS and isinstance(cluster, OwnCluster):
                cluster.stop_api_server()
                cluster.start_api_server()
            if number % 2:
                follow = replace(follow, last={})
            kueue, _ = follow("ml-cluster", ANY)
            assert isinstance(kueue, FollowedKueue)
            memory = WorkloadMemory.from_bytes(documents.stored[MEMORY])
            listed = looking.at(memory.resource_version)
            assert memory.records == {key: record_of(item, nobody) for key, item in listed.items()}
            assert kueue.facts == memory.facts()
            seen += len(kueue.told)
            if number > RESTARTS and seen >= CHANGES:
                break
            assert number < MOST_LOOKS, f"{seen} changes were seen"
    relisted = [str(value.properties.get("why", "")) for _, value in meter.recorded]
    assert relisted[FORGETS - 1] == "the version that is known is too old"  # the first look has nothing to follow
    assert relisted.count("") >= RESTARTS - 2
    assert set(relisted[RESTARTS:]) == {""}


def a_condition(serial: int) -> dict[str, Any]:
    moment = f"2026-11-20T09:{serial // 60 % 60:02}:{serial % 60:02}Z"
    return {
        "type": "PodsReady",
        "status": "True" if serial % 2 else "False",
        "reason": "Test",
        "message": str(serial),
        "lastTransitionTime": moment,
    }


def test_where_no_workload_changes_a_bookmark_says_so_within_a_few_seconds(cluster: Cluster, looking: Looking) -> None:
    wait_for("Kueue has looked at all of them", lambda: not looking.look().changed, seconds=180)
    for number in range(3):
        before = looking.known
        write = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a-write", "namespace": "default"}}
        cluster.kube.apply({**write, "data": {"number": str(number)}})
        began = time.monotonic()
        read = looking.look()
        assert (read.is_whole, read.relisted, read.changed, read.objects_read) == (False, "", {}, 1)
        assert time.monotonic() - began < 10
        assert looking.known != before


def test_a_version_that_the_server_does_not_keep_any_more_lists_all(looking: Looking) -> None:
    assert looking.known is not None
    looking.known = WorkloadsKnown(looking.known.api_version, "1")
    read = looking.look()
    assert (read.is_whole, read.relisted) == (True, "the version that is known is too old")
    assert looking.state == looking.at(read.resource_version)
