"""One contract for the bucket and for its in-memory twin."""

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from taskgov.adapters import s3
from taskgov.adapters.s3 import Bucket, RememberingBucket
from taskgov.errors import ConflictError, NotFoundError, UpstreamError
from taskgov.policy.text import MAX_BYTES
from taskgov.ports import DocumentStore
from tests.support.memory import InMemoryDocuments


@pytest.fixture(params=["memory", "s3", "s3, remembering"])
def store(request: pytest.FixtureRequest) -> Iterator[DocumentStore]:
    if request.param == "memory":
        yield InMemoryDocuments()
        return
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="bucket")
        client.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
        yield (Bucket if request.param == "s3" else RememberingBucket)(client, "bucket")


def test_a_version_is_replaced_only_by_who_has_read_it(store: Any) -> None:
    assert store.find_version("work/c/1") is None
    store.put_version("work/c/1", b"one", "text/plain", None)
    first = store.find_version("work/c/1")
    with pytest.raises(ConflictError):
        store.put_version("work/c/1", b"two", "text/plain", None)
    store.put_version("work/c/1", b"two", "text/plain", first)
    with pytest.raises(ConflictError):
        store.put_version("work/c/1", b"three", "text/plain", first)
    assert store.find("work/c/1") == store.find_version("work/c/1").body == b"two"


def test_what_was_put_is_what_is_got(store: DocumentStore) -> None:
    pointer = store.put("plans/c/1.json", b"{}", "application/json")
    assert pointer.key == "plans/c/1.json"
    assert store.get(pointer) == b"{}"


def test_a_document_that_changed_since_is_refused(store: DocumentStore) -> None:
    pointer = store.put("plans/c/1.json", b"{}", "application/json")
    store.put("plans/c/1.json", b"[]", "application/json")
    with pytest.raises(UpstreamError, match="changed"):
        store.get(pointer)


def test_a_document_that_is_not_there_is_an_error_for_get_and_none_for_find(store: DocumentStore) -> None:
    pointer = store.put("plans/c/1.json", b"{}", "application/json").model_copy(update={"key": "plans/c/2.json"})
    with pytest.raises(NotFoundError):
        store.get(pointer)
    assert store.find("plans/c/2.json") is None


def test_a_cluster_without_a_document_has_none(store: DocumentStore) -> None:
    assert store.policy("ml-cluster") is None


def test_no_more_of_a_policy_is_read_than_shows_that_it_is_too_long(store: DocumentStore) -> None:
    store.put("policies/ml-cluster.yaml", b"#" * (MAX_BYTES + 1_000), "application/yaml")

    policy = store.policy("ml-cluster")

    assert policy is not None
    assert len(policy.body) == MAX_BYTES + 1


def test_each_version_of_a_policy_has_its_own_version_id(store: DocumentStore) -> None:
    versions = []
    for text in (b"apiVersion: taskgov/v1", b"apiVersion: taskgov/v2"):
        store.put("policies/ml-cluster.yaml", text, "application/yaml")
        policy = store.policy("ml-cluster")
        assert policy is not None
        assert policy.body == text
        versions.append(policy.version)
    assert versions[0] != versions[1]


def test_a_caching_bucket_is_sent_a_document_again_only_when_it_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="bucket")
        sent: list[int] = []
        client.meta.events.register(
            "after-call.s3.GetObject", lambda http_response, **_: sent.append(http_response.status_code)
        )
        store = RememberingBucket(client, "bucket")
        for body in (b"one", b"two"):
            store.put("policies/c.yaml", body, "application/yaml")
            for _ in range(2):
                policy = store.policy("c")
                assert policy is not None
                assert policy.body == body
        assert sent == [200, 304, 200, 304]
        client.delete_object(Bucket="bucket", Key="policies/c.yaml")
        assert store.policy("c") is None
        monkeypatch.setattr(s3, "MOST_DOCUMENTS", 1)
        for key in ("a", "b", "a"):
            store.put(key, b"x", "text/plain")
            assert store.find(key) == b"x"
        assert sent[-3:] == [200, 200, 200]


def test_a_bucket_that_is_gone_is_an_error_of_each_call() -> None:
    """It is not the same as a bucket without documents: quotas would be planned as if there were none."""
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="bucket")
        store = RememberingBucket(client, "bucket")
        store.put("a", b"x", "text/plain")
        assert store.find("a") == b"x"
        client.delete_object(Bucket="bucket", Key="a")
        client.delete_bucket(Bucket="bucket")
        calls: list[Callable[[], Any]] = [
            lambda: store.put("a", b"y", "text/plain"),
            lambda: store.find("a"),
            lambda: store.find_version("a"),
            lambda: store.policy("ml-cluster"),
            store.policy_names,
        ]
        for call in calls:
            with pytest.raises(UpstreamError, match="NoSuchBucket"):
                call()
