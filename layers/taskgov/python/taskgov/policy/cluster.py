"""Which cluster does a document govern? Asked before any of it is used, and so without the rest of its grammar."""

import re
from typing import Final

from taskgov.policy.text import read_text

EKS_ARN: Final = re.compile(r"arn:aws[a-z-]*:eks:[a-z0-9-]+:[0-9]{12}:cluster/(?P<name>[0-9A-Za-z][A-Za-z0-9_-]{0,99})")
"""The ARN of an EKS cluster; its name by the pattern of EKS' CreateCluster."""
KUEUE: Final = "kueue"
"""The backend that writes Kueue's objects (`taskgov.policy.document.Backend`)."""


def kueue_cluster_of(text: str) -> str | None:
    """Return the ARN of the EKS cluster that a document governs by backend kueue, or None.

    A document with other mistakes is one too: the cluster has to be looked at for the mistakes to be told.
    """
    cluster = (read_text(text).data or {}).get("cluster")
    if not isinstance(cluster, dict) or cluster.get("backend") != KUEUE:
        return None
    arn = cluster.get("arn")
    return arn if isinstance(arn, str) and EKS_ARN.fullmatch(arn) else None
