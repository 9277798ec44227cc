"""The reader over a real HTTP connection, and the contract that it shares with its in-memory twin."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
import yaml
from botocore.stub import Stubber
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from taskgov.adapters.kubernetes import EksConnections, KubernetesReader
from taskgov.adapters.kubernetes.connection import _parts_of
from taskgov.errors import (
    GovernanceError,
    InvalidRequestError,
    KueueMissingError,
    NotFoundError,
    ThrottledError,
    UpstreamError,
)
from taskgov.hyperpod.names import NODE_HEALTH
from taskgov.ports import ClusterAccess, KubernetesApi
from taskgov.snapshot.kueue_manager import MANAGER
from taskgov.snapshot.model import KueueObjects
from taskgov.snapshot.readable import readable_kueue
from taskgov_embedded.cluster.access import TokenVerifier, read_rules
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.objects import ObjectStore
from tests.support.kubernetes import InMemoryKubernetes

if TYPE_CHECKING:
    from collections.abc import Iterator

CLUSTER = ClusterAccess("arn:aws:eks:us-west-2:111122223333:cluster/ml-eks")
KEY_ID, SECRET = "AKIDEXAMPLE", "not-a-secret"
RBAC = Path(__file__).parents[2] / "docs" / "rbac.yaml"


class Given:
    """A cluster's objects, and the two ways to read them."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)
        self.store = ObjectStore(lambda: self.now)

    def twin(self) -> InMemoryKubernetes:
        twin = InMemoryKubernetes()
        plurals = (
            "configmaps",
            "nodes",
            "resourceflavors",
            "cohorts",
            "clusterqueues",
            "localqueues",
            "workloads",
            "limitranges",
        )
        twin.put(
            CLUSTER,
            {plural: self.store.list(plural) for plural in (*plurals, "workloadpriorityclasses", "runtimeclasses")},
        )
        return twin

    def server(self, **options: Any) -> ClusterApiServer:
        verifier = TokenVerifier("ml-eks", lambda: self.now, {KEY_ID: SECRET}.get)
        options = {"verifier": verifier, "rules": read_rules(RBAC), **options}
        return ClusterApiServer(self.store, **options)

    def reader(self, endpoint: str, key_id: str = KEY_ID, authority: str = "LS0t") -> KubernetesReader:
        session = boto3.Session(key_id, SECRET, region_name="us-west-2")
        eks = session.client("eks")
        stub = Stubber(eks)
        for _ in range(10):
            described = {"name": "ml-eks", "endpoint": endpoint, "certificateAuthority": {"data": authority}}
            stub.add_response("describe_cluster", {"cluster": described}, {"name": "ml-eks"})
        stub.activate()
        return KubernetesReader(EksConnections(eks, session, lambda: self.now))


@pytest.fixture
def given() -> Given:
    return Given()


@pytest.fixture(params=["over HTTP", "in memory"])
def api(request: pytest.FixtureRequest, given: Given) -> Iterator[KubernetesApi]:
    """The port, filled with a small cluster."""
    fill(given.store)
    if request.param == "in memory":
        yield given.twin()
        return
    with given.server() as server:
        yield given.reader(server.url)


def fill(store: ObjectStore) -> None:
    template = {
        "metadata": {"annotations": {"note": "private"}},
        "spec": {
            "nodeSelector": {"zone": "a"},
            "containers": [
                {
                    "name": "train",
                    "command": ["python", "--password=hunter2"],
                    "env": [{"name": "TOKEN", "value": "hunter2"}],
                    "resources": {"requests": {"nvidia.com/gpu": "4"}},
                }
            ],
        },
    }
    conditions = [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}]
    status = {"allocatable": {"cpu": "44610m"}, "images": [{"sizeBytes": 1}], "conditions": conditions}
    metadata = {"name": "n-1", "labels": {NODE_HEALTH: "Schedulable", "a": "b"}}
    store.apply({"kind": "Node", "metadata": metadata, "spec": {"podCIDR": "10.0.0.0/24"}, "status": status})
    store.apply(kueue("ClusterQueue", "q", spec={"cohortName": "shared-pool"}, status={"pendingWorkloads": 1}))
    pod_sets = [{"name": "worker", "count": 2, "template": template}]
    store.apply(kueue("Workload", "w", "team", spec={"queueName": "lq", "priority": 70, "podSets": pod_sets}))
    store.apply(kueue("WorkloadPriorityClass", "training-priority", value=70))


def kueue(kind: str, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "annotations": {"note": "private"}, "managedFields": [{"manager": "x"}]}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, **fields}


def test_nodes_come_with_what_decisions_use_and_nothing_else(api: KubernetesApi) -> None:
    [node] = api.nodes(CLUSTER)
    assert node["metadata"]["labels"] == {NODE_HEALTH: "Schedulable"}
    assert node["status"] == {
        "allocatable": {"cpu": "44610m"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    assert node["spec"] == {}


def test_workloads_come_without_commands_environment_and_annotations(api: KubernetesApi) -> None:
    [workload] = api.kueue_objects(CLUSTER).workloads
    assert workload["spec"]["podSets"] == [
        {
            "name": "worker",
            "count": 2,
            "template": {
                "spec": {
                    "nodeSelector": {"zone": "a"},
                    "containers": [{"name": "train", "resources": {"requests": {"nvidia.com/gpu": "4"}}}],
                }
            },
        }
    ]
    assert "hunter2" not in str(workload)
    assert "private" not in str(workload)


def test_a_priority_class_keeps_its_value(api: KubernetesApi) -> None:
    [priority_class] = api.kueue_objects(CLUSTER).priority_classes
    assert priority_class["value"] == 70


def test_a_cluster_that_is_not_there_is_not_found(given: Given) -> None:
    with pytest.raises(NotFoundError):
        InMemoryKubernetes().nodes(CLUSTER)


def test_the_twin_fails_when_asked_to(given: Given) -> None:
    twin = given.twin()
    twin.fail(ThrottledError("slow down"))
    with pytest.raises(ThrottledError, match="slow down"):
        twin.kueue_objects(CLUSTER)


CONFIGURATION = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "clientConnection": {"qps": 50},
    "featureGates": {"PartialAdmission": False},
}


def config_map(text: str) -> dict[str, Any]:
    metadata = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    return {"kind": "ConfigMap", "metadata": metadata, "data": {"controller_manager_config.yaml": text}}


def test_the_managers_configuration_comes_with_what_changes_decisions_and_nothing_else(given: Given) -> None:
    fill(given.store)
    given.store.place(config_map(yaml.safe_dump(CONFIGURATION)))
    with given.server() as server:
        settings = given.reader(server.url).manager_settings(CLUSTER)
    assert settings.configuration == {key: CONFIGURATION[key] for key in ("apiVersion", "featureGates")}
    assert settings == given.twin().manager_settings(CLUSTER)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "is not valid YAML or JSON"),
        ("- a", "a list - must be a mapping"),
        ("apiVersion: v1", "cannot be read: apiVersion: v1 is neither"),
    ],
)
def test_a_managers_configuration_of_another_form_is_none_and_says_why(given: Given, text: str, why: str) -> None:
    given.store.place(config_map(text))
    with given.server() as server:
        settings = given.reader(server.url).manager_settings(CLUSTER)
    assert settings.configuration is None
    assert why in settings.unread


def test_a_managers_configuration_that_may_not_be_read_is_none_and_says_why(given: Given) -> None:
    given.store.place(config_map(yaml.safe_dump(CONFIGURATION)))
    rules = [rule for rule in read_rules(RBAC) if "configmaps" not in rule.resources]
    with given.server(rules=rules) as server:
        settings = given.reader(server.url).manager_settings(CLUSTER)
    assert settings.configuration is None
    assert "403" in settings.unread


def test_a_managers_configuration_that_is_not_there_is_none_and_says_why(given: Given) -> None:
    with given.server() as server:
        settings = given.reader(server.url).manager_settings(CLUSTER)
    assert settings.configuration is None
    assert "404" in settings.unread


def test_a_failure_to_read_the_managers_configuration_is_an_error(given: Given) -> None:
    with given.server() as server:
        server.fail_next(429)
        with pytest.raises(ThrottledError):
            given.reader(server.url).manager_settings(CLUSTER)


def test_both_give_the_same(given: Given) -> None:
    fill(given.store)
    with given.server() as server:
        reader = given.reader(server.url)
        assert replace(reader.kueue_objects(CLUSTER), manager_silence="") == given.twin().kueue_objects(CLUSTER)
        assert reader.nodes(CLUSTER) == given.twin().nodes(CLUSTER)


def test_twelve_hundred_workloads_come_in_three_pages(given: Given) -> None:
    for index in range(1200):
        given.store.apply(kueue("Workload", f"w-{index:04}", "team", spec={"podSets": []}))
    with given.server() as server:
        found = given.reader(server.url).kueue_objects(CLUSTER).workloads
    asked = [call.query.get("limit") for call in server.calls if call.path.endswith("/workloads")]
    assert len({workload["metadata"]["name"] for workload in found}) == 1200
    assert asked == ["500", "500", "500"]


def test_an_older_kueue_is_read_in_its_own_version(given: Given) -> None:
    fill(given.store)
    with given.server(versions_served=("v1", "v1beta1")) as server:
        objects = given.reader(server.url).kueue_objects(CLUSTER)
    assert objects.cluster_queues[0]["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    assert objects.cluster_queues[0]["spec"] == {"cohort": "shared-pool"}


def test_a_cluster_that_serves_no_kueue_says_that_it_is_missing(given: Given) -> None:
    with given.server(versions_served=("v1",)) as server, pytest.raises(KueueMissingError, match="is Kueue installed"):
        given.reader(server.url).kueue_objects(CLUSTER)


@pytest.mark.parametrize(
    ("code", "error"), [(429, ThrottledError), (500, UpstreamError), (503, UpstreamError), (404, NotFoundError)]
)
def test_the_servers_errors_are_the_domains(given: Given, code: int, error: type[GovernanceError]) -> None:
    with given.server() as server:
        server.fail_next(code)
        with pytest.raises(error, match=str(code)):
            given.reader(server.url).nodes(CLUSTER)
    assert len(server.calls) == 1


def test_a_list_that_expired_is_read_again_from_its_beginning(given: Given) -> None:
    fill(given.store)
    with given.server() as server:
        server.fail_next(410)
        assert len(given.reader(server.url).nodes(CLUSTER)) == 1
    assert [call.status for call in server.calls] == [410, 200]


def test_a_list_that_expires_twice_is_an_upstream_error(given: Given) -> None:
    with given.server() as server:
        server.fail_next(410, 410)
        with pytest.raises(UpstreamError, match="410"):
            given.reader(server.url).nodes(CLUSTER)


def test_an_unknown_signer_is_refused(given: Given) -> None:
    with given.server() as server, pytest.raises(UpstreamError, match="401"):
        given.reader(server.url, key_id="AKIDSTRANGER").nodes(CLUSTER)


def test_a_token_for_another_cluster_is_refused(given: Given) -> None:
    elsewhere = TokenVerifier("other-eks", lambda: given.now, {KEY_ID: SECRET}.get)
    with given.server(verifier=elsewhere) as server, pytest.raises(UpstreamError, match="401"):
        given.reader(server.url).nodes(CLUSTER)


def test_what_the_cluster_role_does_not_name_is_forbidden(given: Given) -> None:
    rules = [rule for rule in read_rules(RBAC) if "nodes" not in rule.resources]
    with given.server(rules=rules) as server, pytest.raises(UpstreamError, match="403"):
        given.reader(server.url).nodes(CLUSTER)


def test_a_long_read_renews_its_token(given: Given) -> None:
    with given.server() as server:
        connections = given.reader(server.url)._connections
        with connections.open(CLUSTER) as api:
            first = api.configuration.get_api_key_with_prefix("authorization")
            given.now += timedelta(minutes=9)
            assert api.configuration.get_api_key_with_prefix("authorization") == first
            api.configuration.api_key.clear()
            given.now += timedelta(minutes=1)
            assert api.configuration.get_api_key_with_prefix("authorization")


def test_a_cluster_is_described_once_for_the_connections_of_a_snapshot(given: Given) -> None:
    with given.server() as server:
        reader = given.reader(server.url)
        connections = cast("EksConnections", reader._connections)
        described: list[str] = []
        connections._eks.meta.events.register("before-parameter-build.eks.*", lambda **_: described.append("once"))
        reader.nodes(CLUSTER)
        given.now += timedelta(seconds=29)
        reader.nodes(CLUSTER)
        assert len(described) == 1
        given.now += timedelta(seconds=1)
        reader.nodes(CLUSTER)
        assert len(described) == 2, "its endpoint may be another one by now"


@pytest.mark.parametrize("endpoint", ["http://10.0.0.7", "http://cluster.example.com", "ftp://127.0.0.1", ""])
def test_no_token_is_sent_in_the_clear(given: Given, endpoint: str) -> None:
    with pytest.raises(UpstreamError, match="no token is sent"):
        given.reader(endpoint).nodes(CLUSTER)


def test_an_endpoint_that_nobody_listens_at_is_an_upstream_error(given: Given) -> None:
    with given.server() as server:
        url = server.url
    with pytest.raises(UpstreamError, match="list nodes"):
        given.reader(url).nodes(CLUSTER)


def certificate(folder: Path) -> tuple[str, str]:
    """Make a certificate for this machine; return the paths of certificate and key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cluster")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2100, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.crt").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "tls.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    return str(folder / "tls.crt"), str(folder / "tls.key")


def test_the_servers_certificate_is_checked_against_the_authority_that_eks_names(given: Given, tmp_path: Path) -> None:
    fill(given.store)
    own = certificate(tmp_path)
    authority = base64.b64encode(Path(own[0]).read_bytes()).decode()
    (tmp_path / "other").mkdir()
    stranger = base64.b64encode(Path(certificate(tmp_path / "other")[0]).read_bytes()).decode()
    with given.server(certificate=own) as server:
        assert server.url.startswith("https://")
        assert len(given.reader(server.url, authority=authority).nodes(CLUSTER)) == 1
        with pytest.raises(UpstreamError, match="CERTIFICATE_VERIFY_FAILED"):
            given.reader(server.url, authority=stranger).nodes(CLUSTER)


def test_a_chinese_region_is_asked_under_its_own_name() -> None:
    assert _parts_of("arn:aws-cn:eks:cn-north-1:111122223333:cluster/ml") == ("ml", "cn-north-1", "amazonaws.com.cn")


def test_an_answer_that_is_no_json_is_an_upstream_error(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskgov_embedded.cluster.api_server.json.dumps", lambda _body: "<html>502</html>")
    with given.server() as server:
        with pytest.raises(UpstreamError, match="list nodes"):
            given.reader(server.url).nodes(CLUSTER)
        server.fail_next(502)
        with pytest.raises(UpstreamError, match="502 BAD GATEWAY"):
            given.reader(server.url).nodes(CLUSTER)


@pytest.mark.parametrize("odd", ['"\\ud800"', "[" * 300 + "]" * 300], ids=["half a surrogate pair", "deep lists"])
def test_what_one_object_has_and_fast_parsers_refuse_spoils_no_page(
    given: Given, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    text = '{"metadata": {}, "items": [{"metadata": {"name": "odd", "labels": ODD}}, {"metadata": {"name": "even"}}]}'
    monkeypatch.setattr("taskgov_embedded.cluster.api_server.json.dumps", lambda _body: text.replace("ODD", odd))
    with given.server() as server:
        assert [node["metadata"]["name"] for node in given.reader(server.url).nodes(CLUSTER)] == ["odd", "even"]


def test_without_credentials_no_token_is_made(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = given.reader("http://127.0.0.1:1")
    monkeypatch.setattr(boto3.Session, "get_credentials", lambda _session: None)
    with pytest.raises(UpstreamError, match="no AWS credentials"):
        reader.nodes(CLUSTER)


def test_the_twin_without_kueue_says_so(given: Given) -> None:
    twin = InMemoryKubernetes()
    twin.put(CLUSTER, {"nodes": []})
    with pytest.raises(KueueMissingError, match="Kueue is not installed"):
        twin.kueue_objects(CLUSTER)


def test_an_arn_of_something_else_is_refused(given: Given) -> None:
    with pytest.raises(InvalidRequestError, match="not the ARN of an EKS cluster"):
        given.reader("https://x").nodes(ClusterAccess("arn:aws:sagemaker:us-west-2:111122223333:cluster/abc"))


def test_an_empty_kueue_has_no_objects(given: Given) -> None:
    with given.server() as server:
        assert replace(given.reader(server.url).kueue_objects(CLUSTER), manager_silence="") == KueueObjects()


LIMITS = {"type": "Container", "default": {"cpu": "2"}, "max": {"nvidia.com/gpu": "8"}}


def test_what_completes_pods_is_read_too(api: KubernetesApi, given: Given) -> None:
    noise = {"managedFields": [{"manager": "x"}], "annotations": {"note": "private"}}
    limits = {"metadata": {"name": "limits", "namespace": "team", **noise}, "spec": {"limits": [LIMITS]}}
    overhead = {"metadata": {"name": "gvisor", **noise}, "overhead": {"podFixed": {"cpu": "250m"}}}
    given.store.apply({"apiVersion": "v1", "kind": "LimitRange", "status": {"private": 1}, **limits})
    given.store.apply({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "private", **overhead})
    found = (given.twin() if isinstance(api, InMemoryKubernetes) else api).kueue_objects(CLUSTER)
    [limit_range], [runtime_class] = found.limit_ranges, found.runtime_classes
    assert limit_range["spec"] == {"limits": [LIMITS]}
    assert runtime_class["overhead"] == {"podFixed": {"cpu": "250m"}}
    assert "private" not in str(found.limit_ranges + found.runtime_classes)
    readable, odd = readable_kueue(found)
    assert (readable.limit_ranges, odd) == (found.limit_ranges, ())


def test_without_the_right_to_list_what_completes_pods_the_rest_is_read_and_that_is_said(given: Given) -> None:
    """With the rights of a release before."""
    fill(given.store)
    beside = {"limitranges", "runtimeclasses"}
    rules = [replace(rule, resources=rule.resources - beside) for rule in read_rules(RBAC)]
    with given.server(rules=rules) as server:
        found = given.reader(server.url).kueue_objects(CLUSTER)
    readable, odd = readable_kueue(found)
    assert len(readable.cluster_queues) == 1
    assert (readable.limit_ranges, readable.runtime_classes) == ((), ())
    assert [(left_out.kind, left_out.because.split(":")[0]) for left_out in odd] == [
        ("LimitRange", "list limitranges"),
        ("RuntimeClass", "list runtimeclasses"),
    ]


def deployed(given: Given, *images: str) -> None:
    given.store.place(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"},
            "spec": {"template": {"spec": {"containers": [{"name": "manager", "image": image} for image in images]}}},
        }
    )


def test_the_image_of_kueues_manager_is_read_with_the_rights_of_a_reader(given: Given) -> None:
    deployed(given, "registry.k8s.io/kueue/kueue:v0.19.2")
    with given.server() as server:
        objects = given.reader(server.url).kueue_objects(CLUSTER)
    assert (objects.manager_image, objects.manager_silence) == ("registry.k8s.io/kueue/kueue:v0.19.2", "")


def test_a_look_does_not_fail_where_kueues_manager_may_not_be_read(given: Given) -> None:
    fill(given.store)
    rules = [rule for rule in read_rules(RBAC) if "deployments" not in rule.resources]
    with given.server(rules=rules) as server:
        objects = given.reader(server.url).kueue_objects(CLUSTER)
    assert objects.cluster_queues
    assert objects.manager_image == ""
    assert objects.manager_silence.startswith("read Kueue's Deployment: 403")


def test_a_manager_without_containers_names_no_image(given: Given) -> None:
    deployed(given)
    with given.server() as server:
        objects = given.reader(server.url).kueue_objects(CLUSTER)
    assert objects.manager_silence == "Kueue's Deployment names no image"


def test_readers_see_no_other_deployment(given: Given) -> None:
    rules = read_rules(RBAC)
    assert [rule for rule in rules if rule.allows("list", "apps", "deployments", "kueue-system")] == []
    assert [rule for rule in rules if rule.allows("get", "apps", "deployments", "kueue-system", "other")] == []
    assert [rule for rule in rules if rule.allows("get", "apps", "deployments", "batch", MANAGER)] == []
