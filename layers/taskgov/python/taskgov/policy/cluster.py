"""Which cluster does a document govern? Asked before any of it is used, and so without the rest of its grammar."""

from typing import Any, Final

from taskgov.hyperpod.cluster_arn import EKS_ARN
from taskgov.policy.text import read_text

KUEUE: Final = "kueue"
"""The backend that writes Kueue's objects (`taskgov.policy.document.Backend`)."""


def kueue_cluster_of(text: str | bytes) -> str | None:
    """Return the ARN of the EKS cluster that a document governs with `backend: kueue`, or None.

    Example:
        >>> kueue_cluster_of("cluster: {arn: 'arn:aws:eks:us-east-1:111122223333:cluster/ml', backend: kueue}")
        'arn:aws:eks:us-east-1:111122223333:cluster/ml'

    """
    cluster = (read_text(text).data or {}).get("cluster")
    meant = isinstance(cluster, dict) and cluster.get("backend") == KUEUE
    return eks_arn_in(cluster) if meant else None


def mistaken_cluster_of(text: str | bytes, name: str) -> str | None:
    """Return the ARN of the EKS cluster that the document of this name may stand for by mistake, or None.

    Its backend may be lost or misspelt, or nothing of the document may be readable: the cluster has to be looked at
    for the mistakes to be told. Only the ARN is needed then, with the document's own name in it. A HyperPod cluster's
    document may hold it too, of the EKS cluster below: who asks rules that out.

    Example:
        >>> mistaken_cluster_of("cluster: {arn: 'arn:aws:eks:us-east-1:111122223333:cluster/ml'", "ml")
        'arn:aws:eks:us-east-1:111122223333:cluster/ml'

    """
    # Also in a text that cannot be read: ARNs are ASCII, whatever the rest is.
    plain = text if isinstance(text, str) else text.replace(b"\0", b"").decode(errors="replace")
    found = [match[0] for match in EKS_ARN.finditer(plain) if match["name"] == name]
    if not found:  # The usual case, and reading a document costs.
        return None
    cluster = (read_text(text).data or {}).get("cluster")
    if isinstance(cluster, dict):
        arn = eks_arn_in(cluster)
        return arn if arn is not None and arn.endswith(f"/{name}") else None
    return found[0]


def eks_arn_in(cluster: Any) -> str | None:
    """Return the ARN that a document's `cluster` gives, if it is an EKS cluster's."""
    arn = cluster.get("arn") if isinstance(cluster, dict) else None
    return arn if isinstance(arn, str) and EKS_ARN.fullmatch(arn) else None
