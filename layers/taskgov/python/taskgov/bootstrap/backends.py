"""Compose the port behind which all backends stand."""

from typing import TYPE_CHECKING

import boto3

from taskgov.adapters.clock import SystemClock
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

    from taskgov.adapters.kubernetes import EksConnections
    from taskgov.ports import ClusterAccess


class LateConnections:
    """Connections to EKS clusters, whose client is loaded when the first is opened: HyperPod runs save its 0.1 s."""

    def __init__(self) -> None:
        self._made: EksConnections | None = None

    def open(self, cluster: "ClusterAccess") -> "client.ApiClient":
        """Return a client, to be closed by the caller. Raises NotFoundError, ThrottledError, UpstreamError."""
        if self._made is None:
            from taskgov.adapters.kubernetes import EksConnections  # noqa: PLC0415 - receive_event has no layer with it

            self._made = EksConnections(aws.eks(), boto3.Session(), SystemClock().now)
        return self._made.open(cluster)


def backends(documents: Bucket, governed: GovernedClusters | None = None) -> Backends:
    """Return the port over AWS; its list of clusters has those that are `governed`, else all of them."""
    failures = ReportedFailures(logger, EmbeddedMetrics())
    services = (aws.sagemaker, aws.eks, aws.ec2, aws.auto_scaling)
    listed = governed or GovernedClusters(documents, EVERY)
    return registry.backends(registry.Reach(documents, LateConnections(), *services, failures, listed))
