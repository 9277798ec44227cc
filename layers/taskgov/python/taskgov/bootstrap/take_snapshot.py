"""Compose `take_snapshot`, which three functions share."""

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.dynamodb import Table
from taskgov.adapters.kubernetes import KubernetesReader
from taskgov.adapters.kubernetes.following import KueueFollower
from taskgov.adapters.s3 import Bucket
from taskgov.bootstrap.backends import backends
from taskgov.bootstrap.kubernetes import connections
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
