"""The rights of `docs/rbac.yaml` are all that readers and writers need, and no more; tokens are as EKS has them."""

from __future__ import annotations

import base64
import ssl
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
import time_machine
import urllib3
import yaml
from botocore.stub import Stubber
from kubernetes.client.exceptions import ApiException

from taskgov.adapters.kubernetes import EksConnections, KubernetesReader
from taskgov.adapters.kubernetes.following import KueueFollower
from taskgov.backends.plain_eks.quotas import KueueQuotas
from taskgov.errors import UpstreamError
from taskgov.hyperpod.model import ComputeQuotaTarget
from taskgov.kueue.render import manager_configuration
from taskgov.ports import ClusterAccess, WorkloadsKnown
from taskgov.snapshot.unseen import Part
from taskgov_cli.kubeconfig import KubeconfigContext
from taskgov_cli.mine import mine_of
from taskgov_cli.own_reading import OwnKubernetes
from taskgov_cli.own_rights import OwnRights, namespaces_of
from taskgov_embedded.cluster.access import TokenVerifier
from tests.cluster.certificates import authority
from tests.cluster.conftest import OwnCluster
from tests.cluster.kube import Kube, wait_for
from tests.cluster.real_world import AuditLog
from tests.cluster.workbench import TABLE, a_node, a_policy, a_quota, clear, govern
from tests.support.quota_store import instances, ranks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubernetes.client import ApiClient

    from tests.cluster.conftest import Cluster
    from tests.cluster.kube import Object

pytestmark = pytest.mark.cluster
RBAC = Path(__file__).parents[2] / "docs" / "rbac.yaml"
TEAM_RBAC = RBAC.with_name("rbac-team.yaml")
POLICY = a_policy(training=70)
ARN = "arn:aws:eks:us-east-1:111122223333:cluster/ml"
ANY = ClusterAccess(ARN)
Right = tuple[str, str, str]


@pytest.fixture
def own(cluster: Cluster) -> Iterator[OwnCluster]:
    if not isinstance(cluster, OwnCluster):
        pytest.skip("nobody's certificates and tokens can be made on a given cluster")
    cluster.run_kueue(manager_configuration(POLICY).to_manifest())
    cluster.kube.apply(*yaml.safe_load_all(RBAC.read_text()), force=True)
    yield cluster
    clear(cluster.kube)


def test_readers_read_what_decisions_use_and_nothing_else(own: OwnCluster) -> None:
    own.kube.apply(a_node("node-1", "ml.g5.8xlarge"))
    govern(own.kube, [a_quota("team-a", [{"InstanceType": "ml.g5.8xlarge", "Count": 1}])], POLICY)
    kubeconfig = own.kubeconfig("reader", "taskgov-readers")
    reader = KubernetesReader(KubeconfigContext("test", str(kubeconfig)))
    assert "node-1" in [one["metadata"]["name"] for one in reader.nodes(ANY)]
    objects = reader.kueue_objects(ANY)
    assert len(objects.cluster_queues) == len(objects.local_queues) == len(objects.resource_flavors) == 1
    configuration = manager_configuration(POLICY).to_manifest()
    own.kube.apply(a_config_map(yaml.safe_dump(configuration)))
    assert reader.manager_settings(ANY).configuration == configuration
    with closing(Kube(kubeconfig)) as kube, pytest.raises(ApiException, match="cannot list resource"):
        kube.list("v1", "Secret")
    stranger = KubernetesReader(KubeconfigContext("test", str(own.kubeconfig("stranger", "nobody"))))
    with pytest.raises(UpstreamError, match="cannot list resource"):
        stranger.nodes(ANY)
    assert "cannot get resource" in stranger.manager_settings(ANY).unread
    own.kube.delete([a_config_map("")])


def a_config_map(text: str) -> Object:
    metadata = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"controller_manager_config.yaml": text},
    }  # fmt: skip


def test_no_right_is_missing_and_none_is_in_vain(own: OwnCluster) -> None:
    """Do everything that the functions do, as each group, and compare with what the API server wrote down."""
    log = AuditLog(own.plane.audit_log)
    begin = len(log.requests())
    write(own)
    read(own)
    wait_for("the audit log is written", lambda: len(log.requests()) > begin)
    time.sleep(0.5)
    asked = log.requests()[begin:]
    assert [one["uri"] for one in asked if one["code"] == 403] == []
    for group in ("taskgov-readers", "taskgov-writers"):
        used = {
            (one["verb"], one["group"], one["resource"]) for one in asked if group in one["groups"] and one["resource"]
        }
        assert used | created_by(used) == granted(group)


def write(own: OwnCluster) -> None:
    """Do what `apply_change` may have to do: make, change and take back quotas and policy."""
    kubeconfig = own.kubeconfig("apply", "taskgov-writers")
    quotas = KueueQuotas(KubeconfigContext("test", str(kubeconfig)), lambda _arn: TABLE)
    quotas.create_scheduler_config(ARN, "policy", ranks(training=70, tuning=50))
    quotas.update_scheduler_config(f"{ARN}/policy", 1, ranks(training=80))
    made = quotas.create_quota(ARN, "a-quota", instances(2), ComputeQuotaTarget(team_name="team-a"))
    quotas.update_quota(made.resource_id, 1, instances(1), ComputeQuotaTarget(team_name="team-a"))
    assert quotas.quota(made.resource_id).compute_quota_version == 2
    quotas.delete_quota(made.resource_id)
    quotas.delete_scheduler_config(f"{ARN}/policy")


def read(own: OwnCluster) -> None:
    """Do what a snapshot and a verification read."""
    connections = KubeconfigContext("test", str(own.kubeconfig("reader", "taskgov-readers")))
    quotas, reader = KueueQuotas(connections, lambda _arn: TABLE), KubernetesReader(connections)
    quotas.quotas(ARN)
    quotas.scheduler_config(ARN)
    reader.nodes(ANY)
    reader.kueue_objects(ANY)
    follow(own, KueueFollower(connections))
    assert reader.manager_settings(ANY).unread.endswith('configmaps "kueue-manager-config" not found')


def follow(own: OwnCluster, follower: KueueFollower) -> None:
    """Look twice with a write in between, so that the second look follows the first one."""
    follower.list_up_to = -1
    _, known = follower.kueue_since(ANY, None, lambda item: item)
    write = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a-write", "namespace": "default"}}
    own.kube.apply({**write, "data": {"at": known.resource_version}})
    _, read = follower.kueue_since(ANY, WorkloadsKnown(known.api_version, known.resource_version), lambda item: item)
    assert (read.is_whole, read.relisted) == (False, "")


def test_a_member_reads_the_own_team_and_is_known_by_name(own: OwnCluster) -> None:
    """The roles of `docs/rbac-team.yaml`, on the API server whose RBAC they are written for."""
    own.kube.apply(a_node("node-1", "ml.g5.8xlarge"))
    quotas = [a_quota(team, [{"InstanceType": "ml.g5.8xlarge", "Count": 1}]) for team in ("team-a", "team-b")]
    govern(own.kube, quotas, POLICY)
    own.kube.apply(*yaml.safe_load_all(TEAM_RBAC.read_text()), force=True)
    connections = KubeconfigContext("test", str(own.kubeconfig("ana", "taskgov-team-a")))
    rights = OwnRights(namespaces_of(["team-a"]))
    reader = OwnKubernetes(connections, rights)
    seen = reader.kueue_objects(ANY)
    assert [one["metadata"]["name"] for one in seen.cluster_queues] == ["hyperpod-ns-team-a-clusterqueue"]
    assert [one["metadata"]["namespace"] for one in seen.local_queues] == ["hyperpod-ns-team-a"]
    assert "node-1" in [one["metadata"]["name"] for one in reader.nodes(ANY)]
    assert set(rights.unseen) == {Part.CLUSTER_QUEUES, Part.COHORTS, Part.LOCAL_QUEUES, Part.WORKLOADS}
    assert mine_of(connections, ANY, ()).username == "ana"
    with pytest.raises(UpstreamError, match="hyperpod-ns-team-b"):
        OwnKubernetes(connections, OwnRights(namespaces_of(["team-b"]))).kueue_objects(ANY)


def created_by(used: set[Right]) -> set[Right]:
    """Return the right to create: the API server asks for it when an apply makes an object, and logs the apply."""
    return {("create", group, resource) for verb, group, resource in used if verb == "patch"}


def granted(group: str) -> set[Right]:
    documents = list(yaml.safe_load_all(RBAC.read_text()))
    roles = {
        (one["roleRef"]["kind"], one["roleRef"]["name"])
        for one in documents
        if one["kind"].endswith("RoleBinding") and group in {subject["name"] for subject in one["subjects"]}
    }
    return {
        (verb, api_group, resource)
        for one in documents
        if (one["kind"], one["metadata"]["name"]) in roles
        for rule in one["rules"]
        for api_group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


KEY_ID, SECRET = "AKIDEXAMPLE", "not-a-secret"


class At:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.moment = datetime.now(UTC)

    def now(self) -> datetime:
        return self.moment


def eks(own: OwnCluster, clock: At, trusted: bytes = b"") -> EksConnections:
    """Return connections of a role, as a function has them: EKS tells endpoint and certificate."""
    endpoint, authority = own.plane.endpoint
    session = boto3.Session(KEY_ID, SECRET, region_name="us-east-1")
    client = session.client("eks")
    described = {
        "endpoint": endpoint,
        "certificateAuthority": {"data": base64.b64encode(trusted or authority).decode()},
    }
    stub = Stubber(client)
    for _ in range(5):
        stub.add_response("describe_cluster", {"cluster": {"name": "ml", **described}}, {"name": "ml"})
    stub.activate()
    return EksConnections(client, session, clock.now)


def test_a_presigned_token_is_good_for_15_minutes_and_renewed_before(own: OwnCluster) -> None:
    clock, authenticator = At(), own.plane.authenticator
    verifier = TokenVerifier("ml", clock.now, {KEY_ID: SECRET}.get)
    authenticator.entries(verifier, lambda _key: ("read-snapshot", ("taskgov-readers",)))

    endpoint, certificate = own.plane.endpoint
    pool = urllib3.PoolManager(ssl_context=ssl.create_default_context(cadata=certificate.decode()))

    def status(header: str) -> int:
        return pool.request("GET", f"{endpoint}/api/v1/nodes", headers={"authorization": header}).status

    def header_of(api: ApiClient) -> str:
        return str(api.param_serialize("GET", "/api/v1/nodes", auth_settings=["BearerToken"])[2]["authorization"])

    with pool, eks(own, clock).open(ANY) as api:
        first = header_of(api)
        assert status(first) == 200
        assert authenticator.reviewed[-1] == "read-snapshot"
        with time_machine.travel(clock.moment + timedelta(minutes=16), tick=False):
            clock.moment += timedelta(minutes=16)
            wait_for("the API server has forgotten the token, which is too old", lambda: status(first) == 401)
            assert "expired" in authenticator.refused[-1]
            second = header_of(api)
            assert second != first
            assert status(second) == 200


def test_a_token_for_another_cluster_or_without_an_entry_is_refused(own: OwnCluster) -> None:
    clock = At()
    verifier = TokenVerifier("other", clock.now, {KEY_ID: SECRET}.get)
    own.plane.authenticator.entries(verifier, lambda _key: ("read-snapshot", ("taskgov-readers",)))
    with pytest.raises(UpstreamError, match="401"):
        KubernetesReader(eks(own, clock)).nodes(ANY)
    own.plane.authenticator.entries(TokenVerifier("ml", clock.now, {KEY_ID: SECRET}.get), lambda _key: ("it", ()))
    with pytest.raises(UpstreamError, match="401"):
        KubernetesReader(eks(own, clock)).nodes(ANY)


def test_the_certificate_of_describe_cluster_is_what_is_trusted(own: OwnCluster) -> None:
    connections = eks(own, At(), trusted=authority("somebody").certificate_pem)
    with pytest.raises(UpstreamError, match="certificate verify failed"):
        KubernetesReader(connections).nodes(ANY)
