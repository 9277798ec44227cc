"""Compose the port behind which all backends stand."""

from typing import TYPE_CHECKING

from taskgov.adapters.failures import ReportedFailures
from taskgov.adapters.metrics import EmbeddedMetrics
from taskgov.adapters.s3 import Bucket
from taskgov.backends import registry
from taskgov.backends.backends import Backends
from taskgov.bootstrap import aws
from taskgov.observability import logger
from taskgov.services.governed_clusters import EVERY, GovernedClusters

if TYPE_CHECKING:
    from kubernetes import client

    from taskgov.ports import ClusterAccess


class LateConnections:
    """Connections to EKS clusters, whose client is loaded with the first: HyperPod runs save its 0.1 s."""

    def open(self, cluster: "ClusterAccess") -> "client.ApiClient":
        """Return a client, to be closed by the caller. Raises NotFoundError, ThrottledError, UpstreamError."""
        from taskgov.bootstrap.kubernetes import connections  # noqa: PLC0415 - receive_event has no layer with it

        return connections().open(cluster)


def backends(documents: Bucket, governed: GovernedClusters | None = None) -> Backends:
    """Return the port over AWS; its list of clusters has those that are `governed`, else all of them."""
    failures = ReportedFailures(logger, EmbeddedMetrics())
    services = (aws.sagemaker, aws.eks, aws.ec2, aws.auto_scaling)
    listed = governed or GovernedClusters(documents, EVERY)
    return registry.backends(registry.Reach(documents, LateConnections(), *services, failures, listed))
