"""All backends: how a cluster of each is recognised, and how it is built. The one place that names them all."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from taskgov.backends.backends import Backends
from taskgov.backends.hyperpod_eks.sagemaker import HyperPodEks
from taskgov.backends.plain_eks.backend import PlainEks
from taskgov.errors import NotFoundError
from taskgov.policy.backends import Backend
from taskgov.policy.cluster import backend_named_in
from taskgov.services.failures import Failures, Raised

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_sagemaker import SageMakerClient

    from taskgov.adapters.kubernetes import ApiConnections
    from taskgov.ports import ClusterBackend, DocumentStore


@dataclass(frozen=True, slots=True)
class Reach:
    """What backends are built from. Clients are made when a backend first needs them."""

    documents: "DocumentStore"
    connections: "ApiConnections"
    """To the Kubernetes APIs of EKS clusters."""
    sagemaker: "Callable[[], SageMakerClient]"
    eks: "Callable[[], EKSClient]"
    ec2: "Callable[[], EC2Client]"
    auto_scaling: "Callable[[], AutoScalingClient]"
    failures: Failures = field(default_factory=Raised)
    governed: "Callable[[], Callable[[str], bool]]" = lambda: lambda _: True
    """Returns what says of a cluster's name whether it is among `clusters()`; all are, unless it says otherwise."""


Siblings = tuple["ClusterBackend", ...]
"""The backends of the rows above."""


@dataclass(frozen=True, slots=True)
class Row:
    """One backend: its name in a policy document, how it is recognised, how it is built."""

    name: Backend
    recognises: "Callable[[str], bool]"
    """Says whether a cluster's ARN, or the id of a quota or cluster policy, is of a cluster that it can have."""
    build: "Callable[[Reach, Siblings], ClusterBackend]"


def is_eks(arn_or_id: str) -> bool:
    """Return whether an ARN, or an id that begins with one, is of an EKS cluster.

    Example:
        >>> is_eks("arn:aws:eks:us-east-1:111122223333:cluster/ml/quota/team-a"), is_eks("abcdefghijkl")
        (True, False)

    """
    return arn_or_id.split(":")[2:3] == ["eks"]


def _hyperpod_eks(reach: Reach, _above: Siblings) -> HyperPodEks:
    return HyperPodEks(reach.sagemaker(), reach.governed)


def _plain_eks(reach: Reach, above: Siblings) -> PlainEks:
    def is_named_above(cluster_name: str) -> bool:
        return any(_has(backend, cluster_name) for backend in above)

    return PlainEks(
        reach.connections,
        reach.documents,
        reach.failures,
        reach.eks,
        reach.ec2,
        reach.auto_scaling,
        is_named_elsewhere=is_named_above,
    )


BACKENDS: Final = (
    Row(Backend.SAGEMAKER, lambda arn_or_id: not is_eks(arn_or_id), _hyperpod_eks),
    Row(Backend.KUEUE, is_eks, _plain_eks),
)
"""A row for each name that a document may give. A name without ARN is the first row's that has such a cluster."""


def backends(reach: Reach, rows: tuple[Row, ...] = BACKENDS) -> Backends:
    """Return the port over all registered backends."""
    built: Siblings = ()
    for row in rows:
        built += (row.build(reach, built),)

    def named(cluster_name: str) -> str | None:
        stored = reach.documents.policy(cluster_name)
        return None if stored is None else backend_named_in(stored.body)

    by_name: dict[str, ClusterBackend] = {row.name: backend for row, backend in zip(rows, built, strict=True)}
    return Backends(by_name, lambda arn_or_id: backend_of(arn_or_id, named, rows), reach.failures)


def backend_of(arn_or_id: str, named: "Callable[[str], str | None]", rows: tuple[Row, ...] = BACKENDS) -> Backend:
    """Return which backend keeps the quotas of a cluster: the one whose row recognises its ARN.

    Where several do (backends of EKS clusters), it is the one that the cluster's document names, else the first.
    `named` returns that name for the cluster's; it is called only where it decides.
    """
    found = [row.name for row in rows if row.recognises(arn_or_id)]
    if len(found) == 1:
        return found[0]
    name = named(arn_or_id.split("/")[1])
    return next((backend for backend in found if backend == name), found[0])


def _has(backend: "ClusterBackend", cluster_name: str) -> bool:
    try:
        backend.describe_cluster(cluster_name)
    except NotFoundError:
        return False
    return True
