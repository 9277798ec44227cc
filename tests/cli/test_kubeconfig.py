import json
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from werkzeug.serving import make_server
from werkzeug.wrappers import Response

from taskgov.errors import InvalidRequestError
from taskgov.ports import ClusterAccess
from taskgov_cli.kubeconfig import KubeconfigContext

CLUSTER = ClusterAccess("arn:aws:eks:us-west-2:111122223333:cluster/ml-eks")
OTHER = "arn:aws:eks:us-west-2:111122223333:cluster/other"


def a_kubeconfig(folder: Path, **servers: str) -> str:
    """Write a kubeconfig as `aws eks update-kubeconfig` does: the ARN names cluster and context."""
    arns = {"ml": CLUSTER.eks_cluster_arn, "other": OTHER}
    named = {arns[name]: server for name, server in servers.items()}
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": f"to-{next(iter(named))}",
        "clusters": [{"name": arn, "cluster": {"server": server}} for arn, server in named.items()],
        "users": [{"name": arn, "user": {"token": f"token-of-{server}"}} for arn, server in named.items()],
        "contexts": [{"name": f"to-{arn}", "context": {"cluster": arn, "user": arn}} for arn in named],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_the_context_decides_which_cluster_is_reached(tmp_path: Path) -> None:
    path = a_kubeconfig(tmp_path, ml="https://ml.test", other="https://other.test")
    with KubeconfigContext(f"to-{OTHER}", path).open(CLUSTER) as api:
        assert api.configuration.host == "https://other.test"
        assert api.configuration.get_api_key_with_prefix("BearerToken") == "Bearer token-of-https://other.test"


def test_a_kubeconfig_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="kubeconfig"):
        KubeconfigContext("dev", str(tmp_path / "none")).open(CLUSTER)
    with pytest.raises(InvalidRequestError, match="kubeconfig"):
        KubeconfigContext("dev", str(tmp_path / "none")).namespaces()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"contexts: \xfc", "it must be UTF-8 text, and byte 10 is not"),
        (b"a: [", "it is not valid YAML: while parsing"),
        (b"[]", "it does not have the form of a kubeconfig file"),
        (b"contexts: 3", "it does not have the form of a kubeconfig file"),
    ],
)
def test_a_file_that_is_not_a_kubeconfig_is_reported_with_what_it_is(tmp_path: Path, body: bytes, said: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(body)
    context = KubeconfigContext("anything", str(file))
    for reach in (lambda: context.open(CLUSTER), context.namespaces):
        with pytest.raises(InvalidRequestError, match=said):
            reach()


def test_an_unknown_context_is_reported(tmp_path: Path) -> None:
    path = a_kubeconfig(tmp_path, ml="https://ml.test")
    with pytest.raises(InvalidRequestError, match=r"nobody.*get-contexts"):
        KubeconfigContext("nobody", path).open(CLUSTER)


@pytest.mark.parametrize(
    ("method", "failures", "expected"),
    [("PATCH", 2, 200), ("GET", 5, 200), ("GET", 6, 500), ("POST", 1, 500)],
)
def test_a_webhook_that_does_not_answer_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, failures: int, expected: int
) -> None:
    monkeypatch.setattr("urllib3.util.retry.time.sleep", lambda _seconds: None)
    asked: list[str] = []

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        asked.append(environ["REQUEST_METHOD"])
        status = 500 if len(asked) <= failures else 200
        return Response(b"{}", status=status, content_type="application/json")(environ, start_response)

    server = make_server("127.0.0.1", 0, answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        path = a_kubeconfig(tmp_path, ml=f"http://127.0.0.1:{server.port}")
        with KubeconfigContext(f"to-{CLUSTER.eks_cluster_arn}", path).open(CLUSTER) as api:
            response = api.call_api(*api.param_serialize(method, "/api", body={}))
            response.read()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert response.status == expected
    assert asked == [method] * min(failures + 1, 6 if method != "POST" else 1)


def test_a_context_of_the_kubeconfig_is_reached_as_kubectl_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {
        "clusters": [{"name": "dev", "cluster": {"server": "http://127.0.0.1:8001"}}],
        "users": [{"name": "me", "user": {"token": "a-token"}}],
        "contexts": [{"name": "dev", "context": {"cluster": "dev", "user": "me"}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))
    api = KubeconfigContext("dev").open(ClusterAccess("arn:aws:eks:us-east-1:111122223333:cluster/ml-eks"))
    assert api.configuration.host == "http://127.0.0.1:8001"
    api.close()
