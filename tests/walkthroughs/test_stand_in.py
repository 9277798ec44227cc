"""The stand-in for kubectl prints and does what kubectl does, where both can be asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.manifests import job_manifest
from tests.embedded.cluster.support import GPU, RANKS, Lab, policy, quota
from tests.support import kubectl_client
from tests.support.kubectl_program import Kubectl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NS = ("-n", "hyperpod-ns-team-a")
Typed = tuple[int, str, str]


@pytest.fixture
def lab() -> Lab:
    made = Lab().nodes("ml.g5.8xlarge", 2)
    made.cluster.govern([quota("team-a", {"InstanceType": "ml.g5.8xlarge", "Count": 2})], policy(RANKS))
    return made


@pytest.fixture
def server(lab: Lab) -> Iterator[ClusterApiServer]:
    with ClusterApiServer(lab.cluster.store, writes=lab.cluster) as server:
        yield server


@pytest.fixture
def stand_in(
    server: ClusterApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Typed]:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": {"server": server.url}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "current-context": "it",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))

    def typed(*arguments: str) -> Typed:
        capsys.readouterr()
        try:
            code = kubectl_client.main(list(arguments))
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
            print(ended.code)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return typed


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job_manifest("team-a", "serve", {GPU: 1}, kind="Deployment", priority="training")))
    return str(file)


def test_what_the_page_types_and_more_is_carried_out(lab: Lab, stand_in: Callable[..., Typed], manifest: str) -> None:
    assert stand_in("apply", "-f", manifest) == (0, "deployment.apps/serve created\n", "")
    assert stand_in("apply", "-f", manifest)[1] == "deployment.apps/serve unchanged\n"
    assert stand_in("scale", "deployment", "serve", "--replicas=2", *NS)[1] == "deployment.apps/serve scaled\n"
    assert (
        stand_in("wait", "--for=condition=available", "deploy/serve", *NS)[1] == "deployment.apps/serve condition met\n"
    )
    assert (
        stand_in("patch", "deploy", "serve", "-p", '{"spec":{"replicas":1}}', *NS)[1]
        == "deployment.apps/serve patched\n"
    )
    assert stand_in("label", "deploy", "serve", "app=x", *NS)[1] == "deployment.apps/serve labeled\n"
    assert lab.cluster.store.get("deployments", "serve", NS[1])["metadata"]["labels"]["app"] == "x"
    assert stand_in("get", "po", *NS)[1].splitlines()[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert stand_in("create", "namespace", "mine")[1] == "namespace/mine created\n"
    assert stand_in("delete", "-f", manifest)[1] == 'deployment.apps "serve" deleted\n'
    assert stand_in("get", "po", *NS)[1:] == ("", f"No resources found in {NS[1]} namespace.\n")


def test_what_goes_wrong_is_reported_and_ends_with_1(stand_in: Callable[..., Typed], tmp_path: Path) -> None:
    assert stand_in("logs", "nobody", *NS) == (1, "", 'Error from server (NotFound): pods "nobody" not found\n')
    assert stand_in("get", "unicorns")[:2] == (1, 'error: the server doesn\'t have a resource type "unicorns"\n')
    wrong = job_manifest("team-a", "wrong", {GPU: 1}, kind="Job")
    wrong["spec"]["paralelism"] = 1
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(wrong))
    assert 'unknown field "spec.paralelism"' in stand_in("apply", "-f", str(tmp_path / "wrong.yaml"))[2]


def test_what_it_does_not_know_it_refuses(stand_in: Callable[..., Typed]) -> None:
    assert stand_in("exec", "pod", "--", "sh")[0] == 2
    assert stand_in("get", "pods", "--sort-by=x")[0] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "ns"),
        ("get", "nodes"),
        ("get", "queue", "-A"),
        ("get", "cq", "-o", "wide"),
        ("get", "deployments,localqueues", *NS),
        ("get", "workloads", *NS, "-o", "name"),
        ("get", "cq", "hyperpod-ns-team-a-clusterqueue", "-o", "jsonpath={.spec.resourceGroups[0].flavors[0].name}"),
        ("describe", "cq", "hyperpod-ns-team-a-clusterqueue"),
        ("describe", "localqueues.v1beta1.kueue.x-k8s.io", "hyperpod-ns-team-a-localqueue", *NS),
        ("get", "validatingadmissionpolicies"),
    ],
    ids=" ".join,
)
def test_it_prints_what_kubectl_prints(
    server: ClusterApiServer, stand_in: Callable[..., Typed], manifest: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    kubectl = Kubectl(tmp_path, server.url)
    assert stand_in("apply", "-f", manifest)[0] == 0
    printed = [line.split() for line in kubectl(*arguments).strip().splitlines()]
    assert [line.split() for line in stand_in(*arguments)[1].strip().splitlines()] == printed
