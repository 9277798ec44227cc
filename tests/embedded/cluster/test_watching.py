"""The watch of the simulated API server: every write once and in order, bookmarks, and 410 for what is too old."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from taskgov_embedded.cluster import history, reading
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.objects import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterator

PATH = "/apis/kueue.x-k8s.io/v1beta2/workloads"


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore(lambda: datetime(2026, 11, 20, tzinfo=UTC))


@pytest.fixture
def server(store: ObjectStore) -> Iterator[ClusterApiServer]:
    with ClusterApiServer(store) as server:
        yield server


def write(store: ObjectStore, name: str, priority: int = 0, **labels: str) -> int:
    metadata = {"name": name, "namespace": "ns", "labels": labels}
    stored = store.apply({"kind": "Workload", "metadata": metadata, "spec": {"priority": priority}})
    return int(stored["metadata"]["resourceVersion"])


def watched(server: ClusterApiServer, since: int, seconds: float = 0.1, **query: str) -> list[dict[str, Any]]:
    fields = {"watch": "1", "resourceVersion": str(since), "timeoutSeconds": str(seconds), **query}
    answer = urllib3.request("GET", server.url + PATH, fields=fields, timeout=60.0)
    return [json.loads(line) for line in answer.data.splitlines()]


def said(events: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    return [
        (event["type"], event["object"]["metadata"]["name"], int(event["object"]["metadata"]["resourceVersion"]))
        for event in events
    ]


def test_every_write_after_the_version_is_reported_once_and_in_order(
    store: ObjectStore, server: ClusterApiServer
) -> None:
    since = write(store, "a")
    write(store, "b")
    write(store, "a", priority=1)
    store.delete("workloads", "b", "ns")
    write(store, "b")
    store.apply({"kind": "Node", "metadata": {"name": "n"}})
    assert said(watched(server, since)) == [
        ("ADDED", "b", 2),
        ("MODIFIED", "a", 3),
        ("DELETED", "b", 4),
        ("ADDED", "b", 5),
    ]


def test_without_a_version_all_that_is_there_comes_first(store: ObjectStore, server: ClusterApiServer) -> None:
    write(store, "a")
    write(store, "a", priority=1)
    assert said(watched(server, 0)) == [("ADDED", "a", 2)]


def test_what_comes_into_a_selection_is_added_and_what_leaves_it_deleted(
    store: ObjectStore, server: ClusterApiServer
) -> None:
    since = write(store, "a")
    write(store, "a", mine="yes")
    write(store, "b")
    write(store, "a")
    found = watched(server, since, labelSelector="mine=yes")
    assert said(found) == [("ADDED", "a", 2), ("DELETED", "a", 4)]


def test_a_bookmark_has_the_version_of_all_that_was_delivered(
    store: ObjectStore, server: ClusterApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BOOKMARK_BEFORE_END", 0.2)
    since = write(store, "a")
    store.apply({"kind": "Node", "metadata": {"name": "n"}})
    (mark,) = watched(server, since, seconds=0.3, allowWatchBookmarks="true")
    assert mark["type"] == "BOOKMARK"
    assert mark["object"] == {
        "kind": "Workload",
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "metadata": {"resourceVersion": "2"},
    }
    assert watched(server, since, seconds=0.3) == []


def test_what_is_not_kept_any_more_is_gone(store: ObjectStore, server: ClusterApiServer) -> None:
    since = write(store, "a")
    latest = write(store, "b")
    store.compact()
    (gone,) = watched(server, since)
    assert (gone["type"], gone["object"]["code"], gone["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert watched(server, latest) == []


def test_only_so_much_is_kept(store: ObjectStore, server: ClusterApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEPT", 2)
    for number in range(5):
        write(store, f"w-{number}")
    assert [event["type"] for event in watched(server, 1)] == ["ERROR"]
    assert said(watched(server, 4)) == [("ADDED", "w-4", 5)]
