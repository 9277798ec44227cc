"""Compose `take_snapshot`, which three functions share."""

import boto3

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.dynamodb import Table
from taskgov.adapters.kubernetes import EksConnections, KubernetesReader
from taskgov.adapters.s3 import Bucket
from taskgov.bootstrap import aws
from taskgov.bootstrap.backends import backends
from taskgov.services.take_snapshot import TakeSnapshot


def take_snapshot(state: Table, documents: Bucket) -> TakeSnapshot:
    """Return the use case over AWS and the cluster's Kubernetes API."""
    clock = SystemClock()
    return TakeSnapshot(
        backends=backends(documents),
        kubernetes=KubernetesReader(EksConnections(aws.eks(), boto3.Session(), clock.now)),
        documents=documents,
        state=state,
        clock=clock,
    )
