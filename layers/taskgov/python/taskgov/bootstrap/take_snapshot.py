"""Compose `take_snapshot`, which three functions share."""

import boto3

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.dynamodb import Table
from taskgov.adapters.kubernetes import EksConnections, KubernetesReader
from taskgov.adapters.kubernetes.following import KueueFollower
from taskgov.adapters.s3 import Bucket
from taskgov.bootstrap import aws
from taskgov.bootstrap.backends import backends
from taskgov.services.take_snapshot import TakeSnapshot


def take_snapshot(state: Table, documents: Bucket) -> TakeSnapshot:
    """Return the use case over AWS and the cluster's Kubernetes API."""
    clock = SystemClock()
    return TakeSnapshot(
        backends=backends(documents),
        kubernetes=KubernetesReader(connections()),
        documents=documents,
        state=state,
        clock=clock,
    )


def kueue_follower(also: str) -> KueueFollower:
    """Return what reads Kueue's objects, and of the workloads what changed; it also keeps an annotation or label."""
    return KueueFollower(connections(), also)


def connections() -> EksConnections:
    """Return how Kubernetes is reached: with a token for the EKS cluster."""
    return EksConnections(aws.eks(), boto3.Session(), SystemClock().now)
