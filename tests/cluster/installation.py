"""Install Kueue as its own manifests say, from the module that Go downloaded: CRDs, webhooks, and its configuration.

What differs from `kubectl apply -k config/default`, because the manager runs beside the API server and not in a pod:
the webhook Service is an ExternalName for localhost (the certificate is still checked against the Service's name), the
serving certificate is made here, and only webhooks of kinds that are installed are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.binaries import Modules
    from tests.cluster.certificates import Certificate
    from tests.cluster.kube import Object

NAMESPACE: Final = "kueue-system"
MANAGER: Final = "kueue"
"""The manager's user."""
PREFIX: Final = "kueue-"
"""Of the names of webhook configurations, as in `config/default`."""
SERVICE: Final = "kueue-webhook-service"
SERVICE_HOST: Final = f"{SERVICE}.{NAMESPACE}.svc"
AUTHORITY: Final = "kueue-ca"
"""The manager makes certificates of its own unless the authority has this name."""
FRAMEWORKS: Final = ("batch/job", "kubeflow.org/pytorchjob")
"""The kinds of jobs that Kueue governs here: those of the published walkthroughs."""
GROUP: Final = "kueue.x-k8s.io"
_GROUPS: Final = {GROUP, "batch", "kubeflow.org"}


_PYTORCH_JOB: Final = "manifests/base/crds/kubeflow.org_pytorchjobs.yaml"


def manifests(modules: Modules, port: int, authority: Certificate, serving: Certificate) -> list[Object]:
    """Return what the manager needs before it starts, in the order to apply it."""
    components = modules.kueue / "config" / "components"
    service = {"type": "ExternalName", "externalName": "localhost"}
    certificates = {
        "ca.crt": authority.certificate_pem.decode(),
        "ca.key": authority.key_pem.decode(),
        "tls.crt": serving.certificate_pem.decode(),
        "tls.key": serving.key_pem.decode(),
    }
    return [
        _object("v1", "Namespace", {"name": NAMESPACE}),
        _object("v1", "Service", {"name": SERVICE, "namespace": NAMESPACE}, spec=service),
        _object(
            "v1",
            "Secret",
            {"name": "kueue-webhook-server-cert", "namespace": NAMESPACE},
            stringData=certificates,
        ),
        *_rights(components / "rbac"),
        *_definitions(components / "crd", port),
        yaml.safe_load((modules.training_operator / _PYTORCH_JOB).read_text()),
        *_webhooks(components / "webhook" / "manifests.yaml", port),
    ]


def configuration(governance: Object, port: int, certificates: Path) -> Object:
    """Return the manager's whole configuration: what task governance decides, and where this manager serves."""
    return {
        **governance,
        "featureGates": {"VisibilityOnDemand": False, **governance.get("featureGates", {})},
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 300, "burst": 500},
        "integrations": {"frameworks": list(FRAMEWORKS)},
    }


def _rights(folder: Path) -> Iterator[Object]:
    """Give the manager the rights of its own manifests, but for one: to write events.

    Nobody reads them here, and with them the differential test takes 301 s of processor time instead of 212 s.
    """
    everywhere = yaml.safe_load((folder / "role.yaml").read_text())
    everywhere["rules"] = [_of_here(rule) for rule in everywhere["rules"] if "events" not in rule["resources"]]
    yield everywhere
    yield _binding(everywhere)
    secrets = yaml.safe_load((folder / "manager_secrets_role.yaml").read_text())
    secrets["metadata"]["namespace"] = NAMESPACE
    yield secrets
    yield _binding(secrets)


def _of_here(rule: Object) -> Object:
    """Return a rule with the names that the webhook configurations have here, as kustomize would give them."""
    if rule["apiGroups"] != ["admissionregistration.k8s.io"] or "resourceNames" not in rule:
        return rule
    return {**rule, "resourceNames": [f"{PREFIX}{name}" for name in rule["resourceNames"]]}


def _binding(role: Object) -> Object:
    group = role["apiVersion"].partition("/")[0]
    return {
        **_object(role["apiVersion"], f"{role['kind']}Binding", dict(role["metadata"])),
        "roleRef": {"apiGroup": group, "kind": role["kind"], "name": role["metadata"]["name"]},
        "subjects": [{"apiGroup": group, "kind": "User", "name": MANAGER}],
    }


def _definitions(folder: Path, port: int) -> Iterator[Object]:
    """Give the CRDs, those that `kustomization.yaml` patches with their conversion webhook."""
    patches: list[Object] = yaml.safe_load((folder / "kustomization.yaml").read_text())["patches"]
    conversions = {
        patch["metadata"]["name"]: patch["spec"]["conversion"]
        for patch in (yaml.safe_load((folder / one["path"]).read_text()) for one in patches)
    }
    for path in sorted((folder / "bases").glob("*.yaml")):
        definition: Object = yaml.safe_load(path.read_text())
        if conversion := conversions.get(definition["metadata"]["name"]):
            definition["spec"]["conversion"] = conversion
            _serve_here(conversion["webhook"]["clientConfig"], port)
        yield definition


def _webhooks(path: Path, port: int) -> Iterator[Object]:
    """Give the two webhook configurations, with those webhooks whose kinds are here."""
    for document in yaml.safe_load_all(path.read_text()):
        document["metadata"]["name"] = f"{PREFIX}{document['metadata']['name']}"
        document["webhooks"] = [one for one in document["webhooks"] if _groups(one) <= _GROUPS]
        for webhook in document["webhooks"]:
            _serve_here(webhook["clientConfig"], port)
        yield document


def _groups(webhook: Object) -> set[str]:
    return {group for rule in webhook["rules"] for group in rule["apiGroups"]}


def _serve_here(client_config: Object, port: int) -> None:
    client_config["service"].update(name=SERVICE, namespace=NAMESPACE, port=port)


def _object(api_version: str, kind: str, metadata: Object, **content: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}
