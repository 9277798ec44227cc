"""Keep when a cluster was read without an error, under each name that a schedule has for it."""

from datetime import datetime

from taskgov.ports import StateStore
from taskgov.snapshot.model import ClusterFacts


def keep_look(state: StateStore, cluster: ClusterFacts, at: datetime) -> None:
    """Keep the moment by ARN; for an EKS cluster also by name, because the fan-out lists such clusters by name."""
    state.record_look(cluster.arn, at)
    if cluster.arn == cluster.eks_arn:
        state.record_look(cluster.name, at)
