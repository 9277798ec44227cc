"""How does a person's machine reach a cluster's API? As its kubeconfig says: the command line's connections.

`aws eks update-kubeconfig` names a cluster by its ARN, so the ARN finds its context; another one can be named.
"""

from http import HTTPStatus
from typing import Any, Final

import urllib3
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

from taskgov.adapters.kubernetes.connection import CONNECT_RETRIES
from taskgov.errors import NotFoundError, UpstreamError
from taskgov.ports import ClusterAccess

STATUS_RETRIES: Final = 5
RETRIED: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)
"""A throttled request, and one whose admission webhook did not answer (a 500, and nothing is stored)."""
REPEATABLE: Final = ("GET", "PUT", "PATCH", "DELETE")
"""Methods that may be sent twice; every PATCH here is a server-side apply."""


class KubeconfigConnections:
    """Connects with a kubeconfig. Plugins that it names (`aws eks get-token`) give and renew the credentials.

    Parameters
    ----------
    path
        The file; None for `KUBECONFIG` or the user's own.
    context
        The context to use for every cluster; None for the one whose cluster is named by the EKS cluster's ARN.

    """

    def __init__(self, path: str | None = None, context: str | None = None) -> None:
        self._path = path
        self._context = context

    def open(self, cluster: ClusterAccess) -> client.ApiClient:
        """Return a client of the cluster's API, to be closed by the caller. Raises NotFoundError, UpstreamError."""
        configuration = client.Configuration()
        try:
            context = self._context or self._context_of(cluster)
            config.load_kube_config(self._path, context, configuration, persist_config=False)
        except ConfigException as error:
            raise UpstreamError(f"kubeconfig: {error}") from error
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

    def _context_of(self, cluster: ClusterAccess) -> str:
        contexts: list[dict[str, Any]] = config.list_kube_config_contexts(self._path)[0]
        for one in contexts:
            if one["context"]["cluster"] == cluster.eks_cluster_arn:
                return str(one["name"])
        known = ", ".join(sorted(str(one["name"]) for one in contexts)) or "none"
        raise NotFoundError(
            f"no context of the kubeconfig is of {cluster.eks_cluster_arn} (contexts: {known});"
            " add one with `aws eks update-kubeconfig`, or name a context"
        )
