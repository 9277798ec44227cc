"""The cluster's API over HTTP, asked by the official client and by hand."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from kubernetes import client

from taskgov_embedded.cluster.access import EVERYTHING, TokenVerifier, UnauthorizedError, read_rules
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.objects import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
RBAC = Path(__file__).parents[3] / "docs" / "rbac.yaml"


@dataclass
class Answer:
    status: int
    body: Any

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


@pytest.fixture
def store() -> ObjectStore:
    store = ObjectStore(lambda: NOW)
    for team in ("a", "b"):
        labels = {"team": team, "managed": "true"}
        store.apply({"kind": "Namespace", "metadata": {"name": f"ns-{team}", "labels": labels}})
        for index in range(3):
            metadata = {"name": f"pod-{index}", "namespace": f"ns-{team}", "labels": {"index": str(index)}}
            pod = {
                "kind": "Pod",
                "metadata": metadata,
                "spec": {"nodeName": f"n-{index}"},
                "status": {"phase": "Running"},
            }
            store.apply(pod)
    queue = {"cohortName": "shared-pool", "flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}}
    store.apply(
        {"kind": "ClusterQueue", "metadata": {"name": "q"}, "apiVersion": "kueue.x-k8s.io/v1beta2", "spec": queue}
    )
    reference = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "training-priority"}
    workload = {"queueName": "lq", "priority": 70, "priorityClassRef": reference}
    store.apply({"kind": "Workload", "metadata": {"name": "w", "namespace": "ns-a"}, "spec": workload})
    return store


@pytest.fixture
def server(store: ObjectStore) -> Iterator[ClusterApiServer]:
    with ClusterApiServer(store) as server:
        yield server


def get(server: ClusterApiServer, path: str, *, method: str = "GET", token: str | None = None, **query: str) -> Answer:
    url = f"{server.url}{path}" + (f"?{urlencode(query)}" if query else "")
    request = Request(url, method=method, headers={"Authorization": f"Bearer {token}"} if token else {})  # noqa: S310
    try:
        with urlopen(request) as response:  # noqa: S310 - a loopback address
            return Answer(response.status, json.load(response))
    except HTTPError as error:
        with error:
            return Answer(error.code, json.load(error))


def test_the_official_client_reads_nodes_namespaces_and_custom_objects(server: ClusterApiServer) -> None:
    api = client.ApiClient(client.Configuration(host=server.url))
    assert [one.metadata.name for one in client.CoreV1Api(api).list_namespace().items] == ["ns-a", "ns-b"]
    assert client.VersionApi(api).get_code().major == "1"
    assert [group.name for group in client.ApisApi(api).get_api_versions().groups] == [
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apps",
        "batch",
        "kubeflow.org",
        "kueue.x-k8s.io",
        "node.k8s.io",
        "ray.io",
        "sagemaker.amazonaws.com",
    ]
    custom = client.CustomObjectsApi(api)
    assert custom.get_cluster_custom_object("kueue.x-k8s.io", "v1beta2", "clusterqueues", "q")["kind"] == "ClusterQueue"


def test_the_dynamic_client_finds_the_resources_by_discovery(server: ClusterApiServer) -> None:
    assert [one["name"] for one in get(server, "/apis/kueue.x-k8s.io/v1beta2").body["resources"]] == [
        "resourceflavors",
        "cohorts",
        "clusterqueues",
        "localqueues",
        "workloadpriorityclasses",
        "workloads",
    ]
    [group] = [one for one in get(server, "/apis").body["groups"] if one["name"] == "kueue.x-k8s.io"]
    assert group["preferredVersion"]["version"] == "v1beta2"
    assert [one["version"] for one in group["versions"]] == ["v1beta2", "v1beta1"]
    assert get(server, "/api").body["versions"] == ["v1"]


def test_lists_go_over_namespaces_or_stay_in_one(server: ClusterApiServer) -> None:
    assert get(server, "/api/v1/pods").names == ["pod-0", "pod-1", "pod-2"] * 2
    assert len(get(server, "/api/v1/namespaces/ns-b/pods").names) == 3
    assert get(server, "/api/v1/namespaces/ns-b/pods/pod-1").body["metadata"]["namespace"] == "ns-b"


def test_items_of_built_in_types_come_without_their_kind(server: ClusterApiServer) -> None:
    assert "kind" not in get(server, "/api/v1/pods").body["items"][0]
    assert get(server, "/api/v1/namespaces/ns-b/pods/pod-1").body["kind"] == "Pod"
    assert get(server, "/apis/kueue.x-k8s.io/v1beta2/workloads").body["items"][0]["kind"] == "Workload"


def test_pages_continue_after_the_last_object(server: ClusterApiServer, store: ObjectStore) -> None:
    first = get(server, "/api/v1/pods", limit="4")
    assert first.body["metadata"]["remainingItemCount"] == 2
    store.delete("pods", "pod-0", "ns-a")
    second = get(server, "/api/v1/pods", limit="4", **{"continue": first.body["metadata"]["continue"]})
    assert second.names == ["pod-1", "pod-2"]
    assert "continue" not in second.body["metadata"]


def test_a_broken_continue_token_is_gone(server: ClusterApiServer) -> None:
    answer = get(server, "/api/v1/pods", **{"continue": "%%%"})
    assert (answer.status, answer.body["reason"]) == (410, "Expired")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("team=a", ["ns-a"]),
        ("team==b", ["ns-b"]),
        ("team!=a", ["ns-b"]),
        ("team in (a, b),managed", ["ns-a", "ns-b"]),
        ("team notin (a)", ["ns-b"]),
        ("!managed", []),
    ],
)
def test_label_selectors(server: ClusterApiServer, selector: str, found: list[str]) -> None:
    assert get(server, "/api/v1/namespaces", labelSelector=selector).names == found


def test_field_selectors(server: ClusterApiServer) -> None:
    assert get(server, "/api/v1/pods", fieldSelector="spec.nodeName=n-1,metadata.namespace!=ns-b").names == ["pod-1"]


@pytest.mark.parametrize("selector", [{"labelSelector": "a in b"}, {"fieldSelector": "spec.nodeName"}])
def test_a_selector_that_cannot_be_read_is_a_bad_request(server: ClusterApiServer, selector: dict[str, str]) -> None:
    assert get(server, "/api/v1/pods", **selector).status == 400


def test_v1beta1_shows_the_older_names(server: ClusterApiServer) -> None:
    queue = get(server, "/apis/kueue.x-k8s.io/v1beta1/clusterqueues/q").body
    assert queue["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    assert queue["spec"]["cohort"] == "shared-pool"
    assert "cohortName" not in queue["spec"]
    [workload] = get(server, "/apis/kueue.x-k8s.io/v1beta1/workloads").body["items"]
    assert workload["spec"]["priorityClassName"] == "training-priority"
    assert workload["spec"]["priorityClassSource"] == "kueue.x-k8s.io/workloadpriorityclass"
    assert "priorityClassRef" not in workload["spec"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/secrets",
        "/apis/kueue.x-k8s.io/v1alpha1/cohorts",
        "/apis/batch/v1/pods",
        "/apis/nothing.example/v1",
        "/nothing",
        "/api/v1/namespaces/ns-a/pods/none",
        "/api/v1/namespaces/ns-a/pods/pod-1/exec",
    ],
)
def test_what_is_not_there_is_not_found(server: ClusterApiServer, path: str) -> None:
    answer = get(server, path)
    assert (answer.status, answer.body["kind"], answer.body["reason"]) == (404, "Status", "NotFound")


def test_an_administrator_cannot_write_either(server: ClusterApiServer) -> None:
    assert get(server, "/api/v1/namespaces/ns-a/pods/pod-1", method="DELETE").status == 405


def test_calls_are_kept(server: ClusterApiServer) -> None:
    get(server, "/api/v1/pods", limit="2")
    get(server, "/api/v1/secrets")
    assert [(call.path, call.status) for call in server.calls] == [("/api/v1/pods", 200), ("/api/v1/secrets", 404)]
    assert server.calls[0].query == {"limit": "2"}


def test_a_server_that_is_not_started_has_no_address(store: ObjectStore) -> None:
    with pytest.raises(RuntimeError, match="not started"):
        _ = ClusterApiServer(store).url


def presigned(**changes: str) -> str:
    query = {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": "AKIDEXAMPLE/20261120/us-west-2/sts/aws4_request",
        "X-Amz-Date": "20261120T090000Z",
        "X-Amz-Expires": "60",
        "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
        "X-Amz-Signature": "0",
        **changes,
    }
    return encoded(f"https://sts.us-west-2.amazonaws.com/?{urlencode(query)}")


def encoded(url: str) -> str:
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def verify(token: str, *, after: timedelta = timedelta()) -> str:
    return TokenVerifier("ml-eks", lambda: NOW + after).verify(f"Bearer {token}").access_key_id


def test_a_presigned_identity_call_is_a_token() -> None:
    assert verify(presigned()) == "AKIDEXAMPLE"
    assert verify(presigned(), after=timedelta(minutes=15)) == "AKIDEXAMPLE"


@pytest.mark.parametrize(
    ("token", "because"),
    [
        ("secret", "no EKS bearer token"),
        ("k8s-aws-v1.\u00e4", "not base64url"),
        (presigned(**{"X-Amz-SignedHeaders": "host"}), "does not sign x-k8s-aws-id"),
        (presigned(**{"X-Amz-Expires": "901"}), "X-Amz-Expires"),
        (presigned(**{"X-Amz-Expires": ""}), "X-Amz-Expires"),
        (presigned(**{"X-Amz-Date": "yesterday"}), "X-Amz-Date"),
        (presigned(**{"X-Amz-Date": "20261120T084459Z"}), "expired"),
        (presigned(**{"X-Amz-Date": "20261120T091000Z"}), "from the future"),
        (presigned(Action="AssumeRole"), "not for GetCallerIdentity"),
        (encoded("https://evil.example.com/?Action=GetCallerIdentity"), "not STS"),
        (encoded("http://sts.us-west-2.amazonaws.com/?Action=GetCallerIdentity"), "not STS"),
        (encoded("https://sts.us-west-2.amazonaws.com.evil.example/?Action=GetCallerIdentity"), "not STS"),
    ],
)
def test_anything_else_is_refused(token: str, because: str) -> None:
    with pytest.raises(UnauthorizedError, match=because):
        verify(token)


def test_a_token_for_an_endpoint_of_this_machine_is_taken_where_its_host_is_named() -> None:
    signed = (
        "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Credential=AKIDEXAMPLE/20261120/us-east-1/sts/aws4_request"
    )
    dated = "X-Amz-Date=20261120T090000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host;x-k8s-aws-id"
    token = encoded(f"http://127.0.0.1:4566/?{signed}&{dated}")
    with pytest.raises(UnauthorizedError, match="not STS"):
        verify(token)
    verifier = TokenVerifier("ml-eks", lambda: NOW, sts_hosts=["127.0.0.1"])
    assert verifier.verify(f"Bearer {token}").access_key_id == "AKIDEXAMPLE"


def test_a_forged_signature_is_refused_where_secrets_are_known() -> None:
    verifier = TokenVerifier("ml-eks", lambda: NOW, {"AKIDEXAMPLE": "secret"}.get)
    with pytest.raises(UnauthorizedError, match="signature"):
        verifier.verify(f"Bearer {presigned()}")


def test_without_a_token_nothing_is_answered(store: ObjectStore) -> None:
    with ClusterApiServer(store, verifier=TokenVerifier("ml-eks", lambda: NOW)) as server:
        assert get(server, "/api/v1/pods").status == 401
        assert get(server, "/apis").status == 401
        assert get(server, "/api/v1/pods", token=presigned()).status == 200
    assert [call.caller for call in server.calls] == [None, None, "AKIDEXAMPLE"]


def test_the_shipped_cluster_role_reads_nodes_and_kueue_and_nothing_else(store: ObjectStore) -> None:
    with ClusterApiServer(store, rules=read_rules(RBAC)) as server:
        kueue = "/apis/kueue.x-k8s.io/v1beta2"
        assert get(server, "/api/v1/nodes").status == 200
        assert get(server, f"{kueue}/workloads").status == 200
        refused = get(server, "/api/v1/pods")
        assert get(server, "/apis/batch/v1/jobs").status == 403
        assert get(server, f"{kueue}/clusterqueues/q", method="DELETE").status == 403
        assert get(server, f"{kueue}/clusterqueues", watch="true").status == 403
    assert refused.status == 403
    assert refused.body["message"] == (
        'pods is forbidden: User cannot list resource "pods" in API group "" at the cluster scope'
    )


def test_writers_may_write_queues_and_readers_may_not_delete_anything() -> None:
    kueue = "kueue.x-k8s.io"
    assert EVERYTHING[0].allows("delete", "", "nodes")
    assert not any(rule.allows("delete", "", "nodes") for rule in read_rules(RBAC))
    assert any(rule.allows("patch", kueue, "clusterqueues") for rule in read_rules(RBAC, "taskgov-writers"))
    assert not any(rule.allows("patch", kueue, "clusterqueues") for rule in read_rules(RBAC))
    assert not any(rule.allows("delete", "", "namespaces") for rule in read_rules(RBAC, "taskgov-writers"))
    assert read_rules(RBAC, "somebody") == ()
