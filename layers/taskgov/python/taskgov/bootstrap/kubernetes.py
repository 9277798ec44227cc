"""How Kubernetes is reached, made once for the lifetime of the function's process."""

from functools import cache

import boto3

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.kubernetes import EksConnections
from taskgov.bootstrap import aws


@cache
def connections() -> EksConnections:
    """Return connections to EKS clusters, with a token for each. They share what EKS says of a cluster."""
    return EksConnections(aws.eks(), boto3.Session(), SystemClock().now)
