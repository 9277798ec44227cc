"""How does a person's machine reach a cluster's API? As `kubectl --context` does."""

from http import HTTPStatus
from typing import Final

import urllib3
import yaml
from kubernetes import client, config
from kubernetes.config import ConfigException

from taskgov.adapters.kubernetes.connection import CONNECT_RETRIES
from taskgov.errors import InvalidRequestError
from taskgov.ports import ClusterAccess

STATUS_RETRIES: Final = 5
RETRIED: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)
"""A throttled request, and one whose admission webhook did not answer (a 500, and nothing is stored)."""
REPEATABLE: Final = ("GET", "PUT", "PATCH", "DELETE")
"""Methods that may be sent twice; every PATCH here is a server-side apply."""
UNREADABLE: Final = (ConfigException, yaml.YAMLError, OSError, AttributeError, LookupError, TypeError, ValueError)
"""What the Kubernetes client raises for a file of another form, or in another encoding than UTF-8."""


class KubeconfigContext:
    """Connects to the cluster of a context, whatever its EKS name, with the credentials that the kubeconfig gives it.

    Parameters
    ----------
    context
        The name of the context.
    path
        The file; None for `KUBECONFIG` or the user's own.

    """

    def __init__(self, context: str, path: str | None = None) -> None:
        self._context = context
        self._path = path

    def open(self, cluster: ClusterAccess) -> client.ApiClient:  # noqa: ARG002 -- a context names its cluster
        """Return a client of the context's cluster, to be closed by the caller.

        Raises `InvalidRequestError` when there is no such context, or the kubeconfig cannot be read.
        """
        configuration = self._configuration()
        # No state machine stands behind a person's machine to try again.
        configuration.retries = urllib3.Retry(
            total=None,
            connect=CONNECT_RETRIES,
            read=CONNECT_RETRIES,
            status=STATUS_RETRIES,
            status_forcelist=RETRIED,
            allowed_methods=REPEATABLE,
            raise_on_status=False,
            backoff_factor=0.2,
        )
        return client.ApiClient(configuration)

    def server(self) -> str:
        """Return the URL of the context's API server. Raises `InvalidRequestError` as `open`."""
        return str(self._configuration().host)

    def _configuration(self) -> client.Configuration:
        configuration = client.Configuration()
        try:
            config.load_kube_config(self._path, self._context, configuration)
        except UNREADABLE as error:
            raise _unusable(error) from error
        return configuration

    def namespaces(self) -> tuple[str, ...]:
        """Return the namespace that the context names, if it names one. Raises `InvalidRequestError`."""
        try:
            contexts, _ = config.list_kube_config_contexts(self._path)
        except UNREADABLE as error:
            raise _unusable(error) from error
        found = (known["context"].get("namespace") for known in contexts if known["name"] == self._context)
        return tuple(namespace for namespace in found if namespace)


def _unusable(error: Exception) -> InvalidRequestError:
    match error:
        case ConfigException():
            why = str(error)
        case UnicodeDecodeError():
            why = f"it must be UTF-8 text, and byte {error.start} is not"
        case yaml.YAMLError():
            why = f"it is not valid YAML: {' '.join(str(error).split())}"
        case OSError():
            why = f"it cannot be read: {error.strerror or error}"
        case _:
            why = "it does not have the form of a kubeconfig file"
    return InvalidRequestError(f"kubeconfig: {why}; see: kubectl config get-contexts")
