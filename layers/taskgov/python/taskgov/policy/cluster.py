"""Which cluster does a document govern? Asked before any of it is used, and so without the rest of its grammar."""

from functools import lru_cache
from typing import Any, Final

from taskgov.hyperpod.cluster_arn import EKS_ARN
from taskgov.hyperpod.limits import CLUSTER_ARN, matcher
from taskgov.policy.backends import EKS_BACKENDS, Backend
from taskgov.policy.text import read_text

REMEMBERED: Final = 4
"""Documents that are not read again: each may have 2 MiB."""


def eks_cluster_of(text: str | bytes, backend: Backend) -> str | None:
    """Return the ARN of the EKS cluster that a document governs with this backend, or None.

    Example:
        >>> text = "cluster: {arn: 'arn:aws:eks:us-east-1:111122223333:cluster/ml', backend: kueue}"
        >>> eks_cluster_of(text, Backend.KUEUE)
        'arn:aws:eks:us-east-1:111122223333:cluster/ml'

    """
    cluster = _cluster_in(text)
    return eks_arn_in(cluster) if _backend_in(cluster) == backend else None


def backend_named_in(text: str | bytes) -> str | None:
    """Return the backend that a document names, whether or not there is one of this name; None if it names none."""
    return _backend_in(_cluster_in(text))


def mistaken_cluster_of(text: str | bytes, name: str) -> str | None:
    """Return the ARN of the EKS cluster that the document of this name may stand for by mistake, or None.

    Its backend may be lost or misspelt, or nothing of the document may be readable: the cluster has to be read
    for the mistakes to be reported. Only the ARN is needed then, with the document's own name in it. A HyperPod
    cluster's document may hold it too, of the EKS cluster below: the caller rules that out. A document that names a
    backend of EKS clusters is that backend's, and mistaken for no other's.

    Example:
        >>> mistaken_cluster_of("cluster: {arn: 'arn:aws:eks:us-east-1:111122223333:cluster/ml'", "ml")
        'arn:aws:eks:us-east-1:111122223333:cluster/ml'

    """
    # Also in a text that cannot be read: ARNs are ASCII, whatever the rest is.
    plain = text if isinstance(text, str) else text.replace(b"\0", b"").decode(errors="replace")
    found = [match[0] for match in EKS_ARN.finditer(plain) if match["name"] == name]
    if not found:  # The usual case, and reading a document costs.
        return None
    cluster = _cluster_in(text)
    if isinstance(cluster, dict):
        if names_eks_backend(cluster):
            return None
        arn = eks_arn_in(cluster)
        return arn if arn is not None and arn.endswith(f"/{name}") else None
    return found[0]


def names_hyperpod_cluster(text: str | bytes, name: str) -> bool:
    """Return whether a document of this name names a HyperPod cluster, whether or not there is one.

    Example:
        >>> arn = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
        >>> [names_hyperpod_cluster(f"cluster: {{name: ml, arn: '{arn}'}}", name) for name in ("ml", "other")]
        [True, False]

    """
    cluster = _cluster_in(text)
    if not isinstance(cluster, dict) or names_eks_backend(cluster) or cluster.get("name", name) != name:
        return False
    arn = cluster.get("arn")
    return isinstance(arn, str) and bool(matcher(CLUSTER_ARN.pattern)(arn))


@lru_cache(maxsize=REMEMBERED)
def _cluster_in(text: str | bytes) -> Any:
    """Return what a document has as `cluster`. Publishing reads the same documents each minute."""
    return (read_text(text).data or {}).get("cluster")


def eks_arn_in(cluster: Any) -> str | None:
    """Return the ARN that a document's `cluster` gives, if it is an EKS cluster's."""
    arn = cluster.get("arn") if isinstance(cluster, dict) else None
    return arn if isinstance(arn, str) and EKS_ARN.fullmatch(arn) else None


def names_eks_backend(cluster: Any) -> bool:
    """Return whether a document's `cluster` names a backend of EKS clusters."""
    return _backend_in(cluster) in EKS_BACKENDS


def _backend_in(cluster: Any) -> str | None:
    """Return the name as a text; anything else is not a name."""
    name = cluster.get("backend") if isinstance(cluster, dict) else None
    return name if isinstance(name, str) else None
