"""Read what the doctor examines in the cluster: every Kueue that is there, and what the functions' group may do."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import boto3
import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.kubernetes import EksConnections
from taskgov.adapters.kubernetes.reader import GROUP
from taskgov.adapters.kubernetes.request import TIMEOUT_SECONDS
from taskgov.bootstrap.aws import CONFIG
from taskgov.errors import UpstreamError
from taskgov.hyperpod.names import KUEUE_NAMESPACE
from taskgov.ports import ClusterAccess
from taskgov_cli.doctor.checks_access import MANAGER_OBJECTS
from taskgov_cli.doctor.facts import Access, KueueDefinition, KueueDeployment, Kueues
from taskgov_cli.kubeconfig import KubeconfigContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov.adapters.kubernetes import ApiConnections

PAGE: Final = 500
HELM_RELEASE: Final = "meta.helm.sh/release-name"
HELM_NAMESPACE: Final = "meta.helm.sh/release-namespace"
ASKED_AS: Final = "taskgov-doctor"
"""The user of the review; only the group decides."""


class ClusterReader:
    """The API of one cluster, with the person's own rights."""

    def __init__(self, eks_arn: str, context: str | None) -> None:
        self._access = ClusterAccess(eks_arn)
        self._connections = KubeconfigContext(context) if context else _connections()

    def kueues(self) -> Kueues:
        """Return every Deployment of a Kueue and every definition of its types. Raises GovernanceError."""
        with self._connections.open(self._access) as api, _translated("look for Kueue"):
            deployments = [*_items(client.AppsV1Api(api).list_deployment_for_all_namespaces)]
            definitions = [*_items(client.ApiextensionsV1Api(api).list_custom_resource_definition)]
        return Kueues(
            tuple(filter(None, map(_deployment, deployments))),
            tuple(_definition(definition) for definition in definitions if definition["spec"]["group"] == GROUP),
        )

    def rights(self, asked: Iterable[tuple[str, str, str, str]]) -> tuple[Access, ...]:
        """Return which of these the functions' groups may do (SubjectAccessReview). Raises GovernanceError."""
        with self._connections.open(self._access) as api, _translated("ask what the functions' groups may do"):
            return tuple(self._asked(api, *right) for right in asked)

    @staticmethod
    def _asked(api: client.ApiClient, as_group: str, verb: str, group: str, resource: str) -> Access:
        attributes = {"verb": verb, "group": group, "resource": resource}
        if (group, resource) in MANAGER_OBJECTS:
            attributes |= {"namespace": KUEUE_NAMESPACE, "name": MANAGER_OBJECTS[group, resource]}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": ASKED_AS, "groups": [as_group], "resourceAttributes": attributes},
        }
        answered = client.AuthorizationV1Api(api).create_subject_access_review(
            review, _preload_content=False, _request_timeout=TIMEOUT_SECONDS
        )
        return Access(as_group, verb, group, resource, bool(json.loads(answered.read())["status"]["allowed"]))


def _connections() -> ApiConnections:
    session = boto3.Session()
    return EksConnections(session.client("eks", config=CONFIG), session, SystemClock().now)


def _items(list_page: Any) -> Iterator[dict[str, Any]]:
    token: str | None = None
    while True:
        answer = list_page(limit=PAGE, _continue=token, _preload_content=False, _request_timeout=TIMEOUT_SECONDS)
        page = json.loads(answer.read())
        yield from page["items"]
        token = page["metadata"].get("continue")
        if not token:
            return


def _deployment(item: Mapping[str, Any]) -> KueueDeployment | None:
    """Return a Deployment that runs a Kueue controller: by its upstream label, or by its image's name."""
    metadata = item["metadata"]
    images = [container["image"] for container in item["spec"]["template"]["spec"]["containers"]]
    image = next((name for name in images if _is_kueue(name)), None)
    labelled = metadata.get("labels", {}).get("app.kubernetes.io/name") == "kueue"
    if "viz" in metadata["name"] or not (labelled or image):
        return None
    annotations = metadata.get("annotations", {})
    named = image or next(iter(images), "")
    return KueueDeployment(metadata["namespace"], metadata["name"], named, annotations.get(HELM_RELEASE))


def _is_kueue(image: str) -> bool:
    """Return whether an image is Kueue's controller.

    >>> _is_kueue("registry.k8s.io/kueue/kueue:v0.14.1"), _is_kueue("registry.k8s.io/kueue/kueueviz-backend:v0.14.1")
    (True, False)
    """
    return image.rsplit("/", 1)[-1].partition("@")[0].partition(":")[0] == "kueue"


def _definition(item: Mapping[str, Any]) -> KueueDefinition:
    annotations = item["metadata"].get("annotations", {})
    return KueueDefinition(
        item["metadata"]["name"],
        tuple(_owners(item["metadata"].get("managedFields", ()))),
        annotations.get(HELM_RELEASE),
        annotations.get(HELM_NAMESPACE),
    )


def _owners(fields: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return who owns the definition itself; its status and the webhook's certificate are others' business."""
    return sorted(
        {field["manager"] for field in fields if "f:versions" in _spec(field) or field["operation"] == "Apply"}
    )


def _spec(field: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = field.get("fieldsV1", {}).get("f:spec", {})
    return found


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turn the client's errors into one sentence."""
    try:
        yield
    except ApiException as error:
        raise UpstreamError(f"{what}: {error.status} {error.reason}") from error
    except (urllib3.exceptions.HTTPError, json.JSONDecodeError) as error:
        raise UpstreamError(f"{what}: {error}") from error
