"""Keep when a cluster was read without an error, under each name that a schedule has for it."""

from datetime import datetime

from taskgov.ports import StateStore
from taskgov.snapshot.model import ClusterFacts


def keep_look(state: StateStore, cluster: ClusterFacts, at: datetime) -> None:
    """Keep it by ARN; by name as well where the fan-out has no ARN: of an EKS cluster, it has the document's name."""
    state.record_look(cluster.arn, at)
    if cluster.arn == cluster.eks_arn:
        state.record_look(cluster.name, at)
